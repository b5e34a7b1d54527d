//! Aggregates over frames that grow or slide: rows that come into a frame are added to a state,
//! rows that leave it are taken back.
//!
//! Two cursors follow the ends of the frame, so each row is added once and taken back once however
//! long frames are. A frame that begins with its partition takes nothing back, and rows behind its
//! end are not needed again. Accumulators that cannot take rows back are refused, as DataFusion
//! does.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::frame::{Frame, FrameSpec, Partition, View};
use super::frame_state::{Accumulated, FrameState};
use super::function::{Function, Ready, Span};
use super::rows::{Cursor, PartitionRows, Source};
use super::totals::total_of;

pub(super) struct RunningAggregate {
    // Fixed.
    /// Whether rows leave the frame.
    is_sliding: bool,
    // State.
    frame: Frame,
    /// The partition that the state is of, by its ordinal.
    partition: Option<u64>,
    state: Box<dyn FrameState>,
    /// What is in the state.
    taken: Range<u64>,
    entering: Cursor,
    leaving: Cursor,
}

impl RunningAggregate {
    pub(super) fn new(
        aggregate: Arc<AggregateFunctionExpr>,
        arguments: Vec<Source>,
        types: &[DataType],
        spec: &FrameSpec,
        first_flag: usize,
    ) -> Result<Self> {
        let is_sliding = !spec.starts_with_partition();
        let state = match total_of(&aggregate, types) {
            Some(total) => total,
            None => Box::new(Accumulated::new(aggregate, is_sliding)?),
        };
        Ok(Self {
            is_sliding,
            frame: Frame::new(spec, first_flag),
            partition: None,
            state,
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
        self.state.begin()?;
        self.partition = Some(partition.ordinal);
        self.taken = partition.start..partition.start;
        Ok(())
    }

    /// Adds rows up to a position, or those of them that lie in one chunk.
    fn add_some(&mut self, rows: &PartitionRows, to: u64) -> Result<()> {
        let values = self.entering.seek(rows, self.taken.end)?;
        let part = values.part(&(self.taken.end..to));
        self.taken.end += part.len() as u64;
        self.state.add(&values.arrays, part)
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
            self.taken.start += part.len() as u64;
            self.state.take_back(&values.arrays, part)?;
        }
        Ok(())
    }

    /// Answers a row by its frame.
    fn answer(&mut self, rows: &PartitionRows, frame: &Range<u64>) -> Result<()> {
        if self.is_sliding && (frame.is_empty() || frame.start >= self.taken.end) {
            self.take_back(rows, self.taken.end)?;
            self.taken = frame.start..frame.start;
        }
        if frame.is_empty() {
            self.state.answer_empty();
            return Ok(());
        }
        self.add(rows, frame.end)?;
        if self.is_sliding {
            self.take_back(rows, frame.start)?;
        }
        self.state.answer()
    }

    fn rest(&mut self) {
        self.entering.rest();
        self.leaving.rest();
        self.frame.rest();
    }
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
        for span in spans {
            self.begin(&span.partition)?;
            for position in span.rows.clone() {
                let frame = self.frame.of(view, &span.partition, position)?;
                self.answer(view.rows, &frame)?;
            }
            if span.ends_partition() {
                self.finish(span.rows.end);
            }
        }
        self.rest();
        self.state.answers()
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
        self.state.bytes()
    }
}
