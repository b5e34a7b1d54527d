//! The first rows in the order of a key, in the place of a sort with a limit; the rows that MIN and
//! MAX are found in; and some rows, where any of them will do.
//!
//! Owns the decision between the walk along a key and the steps that it stands for, made anew in
//! each run. Never: for a way on which a row may warn ([`may_warn`](crate::filter::may_warn)): how
//! often it does would depend on that decision.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::{SortOptions, concat_batches};
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::AggregateExec;

use super::run::Run;
use super::step::Step;
use crate::by_key::{
    Ordered, OrderedKey, Steps, Walk, Walked, extremes, is_worth, is_worth_a_key, rows_by_key,
};
use crate::context::StatementContext;
use crate::provider::{RowsNow, searchable_rows};
use crate::source::Source;
use crate::unbound::UnboundRows;

/// Steps that may be run along a key.
pub(super) struct FirstRows {
    /// A sort with a limit, or what returns all rows.
    steps: Box<Step>,
    way: Way,
    wanted: Wanted,
    schema: SchemaRef,
}

/// A table, and what is done to its rows one by one, without a limit.
struct Way {
    rows: UnboundRows,
    steps: Steps,
}

/// Which rows are wanted.
enum Wanted {
    /// So many of an order.
    First(usize, Vec<Ordered>),
    /// The first row of each order, and no other one, unless they are few.
    Ends(Vec<Ordered>),
    /// So many, of any order.
    Any(usize),
}

/// What came of a walk.
enum Found {
    Rows(RecordBatch),
    /// The steps are to be run.
    NotWorth,
    TooMany,
}

impl FirstRows {
    /// A sort that may be such a walk; any other step as it is.
    pub(super) fn of_sort(sort: Step, schema: &SchemaRef) -> Step {
        let Step::Sort {
            by,
            fetch: Some(fetch),
            input,
            ..
        } = &sort
        else {
            return sort;
        };
        let Some(way) = Way::of(input) else {
            return sort;
        };
        let ordered = by.iter().map(|by| way.ordered(&by.expr, by.options));
        let ordered: Option<Vec<Ordered>> = ordered.collect();
        match ordered.filter(|ordered| way.has_key(ordered)) {
            Some(ordered) => Step::FirstRows(FirstRows {
                way,
                wanted: Wanted::First(*fetch, ordered),
                schema: SchemaRef::clone(schema),
                steps: Box::new(sort),
            }),
            None => sort,
        }
    }

    /// The rows that an aggregate wants of its input.
    pub(super) fn of_input(aggregate: &AggregateExec, input: Step) -> Step {
        let (Some(way), Some(extremes)) = (Way::of(&input), extremes(aggregate)) else {
            return input;
        };
        let extremes = extremes.iter();
        let ordered = extremes.map(|(of, options)| way.ordered(of, *options));
        match ordered.collect() {
            Some(ordered) => Step::FirstRows(FirstRows {
                way,
                wanted: Wanted::Ends(ordered),
                schema: aggregate.input_schema(),
                steps: Box::new(input),
            }),
            None => input,
        }
    }

    /// The rows of a step of which so many are enough.
    pub(super) fn of_limit(fetch: usize, schema: &SchemaRef, input: Step) -> Step {
        match Way::of(&input) {
            Some(way) => Step::FirstRows(FirstRows {
                way,
                wanted: Wanted::Any(fetch),
                schema: SchemaRef::clone(schema),
                steps: Box::new(input),
            }),
            None => input,
        }
    }

    /// The rows; `None` if they are too many.
    pub(super) fn rows(&self, run: &mut Run) -> Result<Option<RecordBatch>> {
        match self.by_key(run)? {
            Found::Rows(rows) => Ok(Some(rows)),
            Found::NotWorth => self.steps.rows(run),
            Found::TooMany => Ok(None),
        }
    }

    fn by_key(&self, run: &mut Run) -> Result<Found> {
        let Some(source) = self.way.rows.source()? else {
            return Ok(Found::TooMany);
        };
        let found = searchable_rows(&source)?;
        let is_worth = match &self.wanted {
            Wanted::First(fetch, _) => is_worth(&source, *fetch, found),
            Wanted::Ends(_) => is_worth_a_key(&source, found),
            Wanted::Any(fetch) => {
                let all = found.unwrap_or(source.snapshot.row_count());
                *fetch > 0 && all > run.most.rows
            }
        };
        if !is_worth {
            return Ok(Found::NotWorth);
        }
        let key = |ordered: &[Ordered]| OrderedKey::best(&source.table, &source.filters, ordered);
        let keys = match &self.wanted {
            Wanted::First(fetch, ordered) => key(ordered).map(|key| vec![(key, *fetch)]),
            Wanted::Ends(ordered) => {
                let keys = ordered.iter().map(|ordered| {
                    let key = key(std::slice::from_ref(ordered))?;
                    Some((key.without_null(&source.table, *ordered)?, 1))
                });
                keys.collect()
            }
            Wanted::Any(fetch) => match key(&[]).filter(OrderedKey::is_narrowed) {
                Some(key) => Some(vec![(key, *fetch)]),
                None => return self.way.scanned(&source, *fetch, run),
            },
        };
        let Some(keys) = keys else {
            return Ok(Found::NotWorth);
        };
        let mut parts = Vec::new();
        for (key, fetch) in keys {
            match self.way.walked(&source, &key, fetch, run)? {
                Found::Rows(rows) => parts.push(rows),
                other => return Ok(other),
            }
        }
        Ok(Found::Rows(match parts.as_slice() {
            [rows] => rows.clone(),
            parts => concat_batches(&self.schema, parts)?,
        }))
    }
}

impl Way {
    /// The way of the rows of a step; `None` if they do not only pass filters and projections.
    fn of(step: &Step) -> Option<Way> {
        match step {
            Step::Table(rows) => (!rows.has_limit()).then(|| Way {
                rows: rows.clone(),
                steps: Steps::default(),
            }),
            Step::Filter {
                condition,
                projection,
                input,
            } => {
                let mut way = Way::of(input)?;
                way.steps.filter(condition.clone(), projection.clone());
                Some(way)
            }
            Step::Project {
                exprs,
                schema,
                input,
            } => {
                let mut way = Way::of(input)?;
                way.steps.project(exprs.clone(), SchemaRef::clone(schema));
                Some(way)
            }
            _ => None,
        }
    }

    /// The order by a column of the table; `None` for any other order.
    fn ordered(&self, by: &Arc<dyn PhysicalExpr>, options: SortOptions) -> Option<Ordered> {
        let (column, cast) = self.steps.column_or_cast(by)?;
        if cast.is_some() {
            return None;
        }
        let column = self.rows.column(column)?;
        Ordered::by(self.rows.table()?.as_ref(), column, options)
    }

    /// Whether a key of the table has the first column of an order.
    fn has_key(&self, ordered: &[Ordered]) -> bool {
        let (table, first) = (self.rows.table(), ordered.first());
        table
            .zip(first)
            .is_some_and(|(table, first)| first.has_key(&table))
    }

    /// The first rows in the order in which they were written.
    fn scanned(&self, source: &Source, fetch: usize, run: &mut Run) -> Result<Found> {
        let mut left = fetch;
        let mut parts = Vec::new();
        for batch in 0..source.snapshot.batch_count() {
            let read = RowsNow::of_batches(source.clone(), batch..batch + 1);
            if read.bytes_read > run.most.bytes_read {
                return Ok(Found::TooMany);
            }
            let (rows, _) = self.steps.run(run.read(read)?)?;
            let rows = rows.slice(0, rows.num_rows().min(left));
            left -= rows.num_rows();
            parts.push(rows);
            if left == 0 {
                break;
            }
        }
        self.joined(source, &parts).map(Found::Rows)
    }

    /// The first rows along a key.
    fn walked(
        &self,
        source: &Source,
        key: &OrderedKey,
        fetch: usize,
        run: &mut Run,
    ) -> Result<Found> {
        // The long way reads so many before it sorts.
        let sorted_from = rows_by_key(source.snapshot.row_count());
        let most = run.most.rows.min(run.most.bytes_read / source.row_bytes());
        let limit = usize::try_from(sorted_from.min(most)).unwrap_or(usize::MAX);
        let account = StatementContext::of(run.context)?.account.clone();
        let walk = Walk::begin(source, key, &self.steps, fetch, limit, &account);
        let Some(mut walk) = walk else {
            return Ok(Found::TooMany);
        };
        let mut parts: Vec<RecordBatch> = Vec::new();
        loop {
            match walk.next()? {
                Walked::Step(step) if step.bytes > run.most.bytes_read => {
                    return Ok(Found::TooMany);
                }
                Walked::Step(step) => {
                    run.has_walked(step.reads, step.bytes);
                    parts.extend(step.rows);
                }
                Walked::End => break,
                Walked::GivenUp if sorted_from <= most => return Ok(Found::NotWorth),
                Walked::GivenUp => return Ok(Found::TooMany),
            }
        }
        self.joined(source, &parts).map(Found::Rows)
    }

    /// The rows at its end, one behind the other.
    fn joined(&self, source: &Source, parts: &[RecordBatch]) -> Result<RecordBatch> {
        match parts {
            [rows] => Ok(rows.clone()),
            [] => Ok(self.steps.run(RecordBatch::new_empty(source.schema()))?.0),
            [first, ..] => Ok(concat_batches(&first.schema(), parts)?),
        }
    }
}
