//! Aggregates over whole partitions: one value for all rows of each.
//!
//! They are groups of rows that follow each other, so DataFusion's accumulators of groups take a
//! batch of many partitions in one call, and nothing is made for a partition by itself. Rows are
//! not read again: each is taken when it arrives.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::interleave;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::frame::View;
use super::function::{Arrival, Function, Ready, Span};
use super::rows::Source;

pub(super) struct WholeAggregate {
    arguments: Vec<Source>,
    states: States,
    /// Partitions that have begun.
    begun: u64,
    /// Partitions whose results are known.
    ended: u64,
    /// Results of partitions that have ended, as long as rows of them are not answered.
    results: VecDeque<Results>,
}

/// Results of partitions that follow each other.
struct Results {
    first: u64,
    values: ArrayRef,
}

impl Results {
    fn end(&self) -> u64 {
        self.first + self.values.len() as u64
    }
}

enum States {
    /// A group for each partition whose result is not known.
    Groups(Box<dyn GroupsAccumulator>),
    /// For functions without accumulators of groups: that of the partition that goes on.
    Single {
        aggregate: Arc<AggregateFunctionExpr>,
        accumulator: Box<dyn Accumulator>,
    },
}

impl WholeAggregate {
    pub(super) fn new(
        aggregate: Arc<AggregateFunctionExpr>,
        arguments: Vec<Source>,
    ) -> Result<Self> {
        let states = match aggregate.groups_accumulator_supported() {
            true => States::Groups(aggregate.create_groups_accumulator()?),
            false => States::Single {
                accumulator: aggregate.create_accumulator()?,
                aggregate,
            },
        };
        Ok(Self {
            arguments,
            states,
            begun: 0,
            ended: 0,
            results: VecDeque::new(),
        })
    }

    /// Ends the first `partitions` of those whose results are not known.
    fn end_partitions(&mut self, values: ArrayRef) {
        if values.is_empty() {
            return;
        }
        let first = self.ended;
        self.ended += values.len() as u64;
        self.results.push_back(Results { first, values });
    }

    /// Ends the partition that was the last one.
    fn end_last(&mut self) -> Result<()> {
        let values = match &mut self.states {
            States::Groups(groups) => groups.evaluate(EmitTo::All)?,
            States::Single { accumulator, .. } => accumulator.evaluate()?.to_array()?,
        };
        self.end_partitions(values);
        Ok(())
    }
}

impl Function for WholeAggregate {
    fn arrive(&mut self, arrival: &Arrival<'_>) -> Result<()> {
        let rows = arrival.batch.num_rows();
        let values = self.arguments.iter().map(|source| match source {
            Source::Column(column) => Ok(Arc::clone(arrival.batch.column(*column))),
            Source::Constant(value) => value.to_array_of_size(rows),
        });
        let values: Vec<ArrayRef> = values.collect::<Result<_>>()?;
        let known = (self.begun - self.ended) as usize;
        let begun = arrival.partitions.count_set_bits();
        self.begun += begun as u64;
        let ended = match &mut self.states {
            States::Groups(groups) => {
                let mut count = known;
                let numbers = arrival.partitions.iter().map(|begins| {
                    count += usize::from(begins);
                    count - 1
                });
                let numbers: Vec<usize> = numbers.collect();
                groups.update_batch(&values, &numbers, None, known + begun)?;
                match known + begun - 1 {
                    0 => return Ok(()),
                    ended => groups.evaluate(EmitTo::First(ended))?,
                }
            }
            States::Single {
                aggregate,
                accumulator,
            } => {
                let mut results = Vec::new();
                let mut from = 0;
                let mut is_first = known == 0;
                for to in arrival.partitions.set_indices().chain([rows]) {
                    if to > from {
                        let part: Vec<ArrayRef> = values
                            .iter()
                            .map(|value| value.slice(from, to - from))
                            .collect();
                        accumulator.update_batch(&part)?;
                    }
                    if to < rows && !std::mem::take(&mut is_first) {
                        results.push(accumulator.evaluate()?);
                        *accumulator = aggregate.create_accumulator()?;
                    }
                    from = to;
                }
                if results.is_empty() {
                    return Ok(());
                }
                ScalarValue::iter_to_array(results)?
            }
        };
        self.end_partitions(ended);
        Ok(())
    }

    fn ready(&mut self, _view: View<'_>, span: &Span) -> Result<Ready> {
        Ok(Ready::To(match span.partition.end {
            Some(_) => span.rows.end,
            None => span.rows.start,
        }))
    }

    fn evaluate(&mut self, _view: View<'_>, spans: &[Span]) -> Result<ArrayRef> {
        if spans
            .iter()
            .any(|span| span.partition.ordinal >= self.ended)
        {
            self.end_last()?;
        }
        let mut picks = Vec::new();
        let mut place = 0;
        for span in spans {
            let ordinal = span.partition.ordinal;
            while { self.results.get(place) }.is_some_and(|results| results.end() <= ordinal) {
                place += 1;
            }
            let Some(results) = self.results.get(place) else {
                return internal_err!("a partition is answered before it ends");
            };
            let row = (ordinal - results.first) as usize;
            let rows = (span.rows.end - span.rows.start) as usize;
            picks.extend(std::iter::repeat_n((place, row), rows));
        }
        let values: Vec<_> = { self.results.iter() }
            .map(|results| results.values.as_ref())
            .collect();
        let column = interleave(&values, &picks)?;
        // The last partition may have more rows.
        let ordinal = spans.last().map_or(0, |span| span.partition.ordinal);
        while { self.results.front() }.is_some_and(|results| results.end() <= ordinal) {
            self.results.pop_front();
        }
        Ok(column)
    }

    fn bytes(&self) -> usize {
        let states = match &self.states {
            States::Groups(groups) => groups.size(),
            States::Single { accumulator, .. } => accumulator.size(),
        };
        let results = self.results.iter();
        states
            + results
                .map(|results| results.values.get_array_memory_size())
                .sum::<usize>()
    }
}
