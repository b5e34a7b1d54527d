//! Aggregates over frames that grow or slide: rows that come into a frame are added to an
//! accumulator, rows that leave it are taken back.
//!
//! Two cursors follow the ends of the frame, so each row is added once and taken back once however
//! long frames are. A frame that begins with its partition takes nothing back, and rows behind its
//! end are not needed again. Accumulators that cannot take rows back are refused, as DataFusion
//! does.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::bits::BitCounts;
use super::frame::{Frame, FrameSpec, Partition, View};
use super::function::{Function, Ready, Span};
use super::rows::{Cursor, PartitionRows, Source};

pub(super) struct RunningAggregate {
    // Fixed.
    aggregate: Arc<AggregateFunctionExpr>,
    /// Whether rows leave the frame.
    is_sliding: bool,
    /// The result of a frame without rows.
    empty: ScalarValue,
    // State.
    frame: Frame,
    /// The partition that the accumulator is of, by its ordinal.
    partition: Option<u64>,
    accumulator: Box<dyn Accumulator>,
    /// What is in the accumulator.
    taken: Range<u64>,
    entering: Cursor,
    leaving: Cursor,
}

impl RunningAggregate {
    pub(super) fn new(
        aggregate: Arc<AggregateFunctionExpr>,
        arguments: Vec<Source>,
        spec: &FrameSpec,
        first_flag: usize,
    ) -> Result<Self> {
        let is_sliding = !spec.starts_with_partition();
        Ok(Self {
            empty: aggregate.default_value(aggregate.field().data_type())?,
            accumulator: accumulator(&aggregate, is_sliding)?,
            aggregate,
            is_sliding,
            frame: Frame::new(spec, first_flag),
            partition: None,
            taken: 0..0,
            entering: Cursor::new(arguments.clone()),
            leaving: Cursor::new(arguments),
        })
    }

    /// Begins a partition unless it has begun.
    fn begin(&mut self, partition: &Partition) -> Result<()> {
        if self.partition == Some(partition.ordinal) {
            return Ok(());
        }
        if self.partition.is_some() {
            self.accumulator = accumulator(&self.aggregate, self.is_sliding)?;
        }
        self.partition = Some(partition.ordinal);
        self.taken = partition.start..partition.start;
        Ok(())
    }

    /// Adds rows up to a position, or those of them that lie in one chunk.
    fn add_some(&mut self, rows: &PartitionRows, to: u64) -> Result<()> {
        let values = self.entering.seek(rows, self.taken.end)?;
        let part = values.part(&(self.taken.end..to));
        let values = slices(&values.arrays, &part);
        self.accumulator.update_batch(&values)?;
        self.taken.end += part.len() as u64;
        Ok(())
    }

    fn add(&mut self, rows: &PartitionRows, to: u64) -> Result<()> {
        while self.taken.end < to {
            self.add_some(rows, to)?;
        }
        Ok(())
    }

    fn take_back(&mut self, rows: &PartitionRows, to: u64) -> Result<()> {
        while self.taken.start < to {
            let values = self.leaving.seek(rows, self.taken.start)?;
            let part = values.part(&(self.taken.start..to));
            let values = slices(&values.arrays, &part);
            self.accumulator.retract_batch(&values)?;
            self.taken.start += part.len() as u64;
        }
        Ok(())
    }

    /// The result of a frame.
    fn result(&mut self, rows: &PartitionRows, frame: &Range<u64>) -> Result<ScalarValue> {
        if self.is_sliding && (frame.is_empty() || frame.start >= self.taken.end) {
            self.take_back(rows, self.taken.end)?;
            self.taken = frame.start..frame.start;
        }
        if frame.is_empty() {
            return Ok(self.empty.clone());
        }
        self.add(rows, frame.end)?;
        if self.is_sliding {
            self.take_back(rows, frame.start)?;
        }
        self.accumulator.evaluate()
    }

    fn rest(&mut self) {
        self.entering.rest();
        self.leaving.rest();
        self.frame.rest();
    }
}

fn accumulator(
    aggregate: &AggregateFunctionExpr,
    is_sliding: bool,
) -> Result<Box<dyn Accumulator>> {
    if !is_sliding {
        return aggregate.create_accumulator();
    }
    match BitCounts::of(aggregate) {
        Some(counts) => Ok(Box::new(counts)),
        None => aggregate.create_sliding_accumulator(),
    }
}

fn slices(values: &[ArrayRef], part: &Range<usize>) -> Vec<ArrayRef> {
    let slice = |values: &ArrayRef| values.slice(part.start, part.len());
    values.iter().map(slice).collect()
}

impl Function for RunningAggregate {
    fn ready(&mut self, view: View<'_>, span: &Span) -> Result<Ready> {
        self.begin(&span.partition)?;
        // Chunk by chunk, so that others have their turn between them.
        let reached = self.frame.reaches(view, &span.partition, span.rows.start);
        if self.taken.end < reached {
            self.add_some(view.rows, reached)?;
            self.rest();
            if self.taken.end < reached {
                return Ok(Ready::Again);
            }
        }
        let ready = self.frame.ready(view, &span.partition, &span.rows)?;
        self.rest();
        Ok(Ready::To(ready))
    }

    fn evaluate(&mut self, view: View<'_>, spans: &[Span]) -> Result<ArrayRef> {
        let mut results: Vec<ScalarValue> = Vec::new();
        for span in spans {
            self.begin(&span.partition)?;
            let mut last = None;
            for position in span.rows.clone() {
                let frame = self.frame.of(view, &span.partition, position)?;
                let result = match (results.last(), &last) {
                    (Some(result), Some(last)) if *last == frame => result.clone(),
                    _ => self.result(view.rows, &frame)?,
                };
                last = Some(frame);
                results.push(result);
            }
            if span.ends_partition() {
                self.finish(span.rows.end);
            }
        }
        self.rest();
        ScalarValue::iter_to_array(results)
    }

    fn finish(&mut self, end: u64) {
        self.taken = end..end;
        self.frame.finish(end);
    }

    fn needs_from(&self) -> u64 {
        let taken = match self.is_sliding {
            true => self.taken.start,
            false => self.taken.end,
        };
        taken.min(self.frame.needs_from())
    }

    fn bytes(&self) -> usize {
        self.accumulator.size()
    }
}
