//! What the functions of a window have in common.
//!
//! A function is asked for the results of rows one after the other, and knows how far it can answer
//! and which rows it will read again. It sees all rows through cursors of its own, so that nothing
//! of a partition needs to be in memory at once.

use std::ops::Range;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::buffer::BooleanBuffer;
use datafusion::common::Result;

use super::frame::{Partition, View};

/// Rows of one partition that are answered together.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub partition: Partition,
    pub rows: Range<u64>,
}

impl Span {
    /// Whether it has the last rows of its partition.
    pub(super) fn ends_partition(&self) -> bool {
        self.partition.end == Some(self.rows.end)
    }
}

/// Rows that have arrived.
pub(super) struct Arrival<'a> {
    pub batch: &'a RecordBatch,
    /// The rows that begin partitions.
    pub partitions: &'a BooleanBuffer,
}

/// How far a function can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// Up to a position.
    To(u64),
    /// It has done a step of work and can say more when it is asked again.
    Again,
}

/// One function of a window operator.
pub(super) trait Function: Send {
    /// Takes note of rows that have arrived, before any of them is asked for.
    fn arrive(&mut self, _arrival: &Arrival<'_>) -> Result<()> {
        Ok(())
    }

    /// Up to which of some rows of a partition it can answer. Asked if the partition goes on
    /// behind them; rows of partitions before have been answered.
    fn ready(&mut self, view: View<'_>, span: &Span) -> Result<Ready>;

    /// The results of the rows of some spans, which follow each other in the current rows. No page
    /// is pinned afterwards.
    fn evaluate(&mut self, view: View<'_>, spans: &[Span]) -> Result<ArrayRef>;

    /// Ends a partition of which all rows are answered. `evaluate` does so itself where a span ends
    /// one; this is for those that turn out to have ended.
    fn finish(&mut self, _end: u64) {}

    /// The first position that is read again, of those before the next row to be answered.
    fn needs_from(&self) -> u64 {
        u64::MAX
    }

    /// Bytes of its state.
    fn bytes(&self) -> usize {
        0
    }
}
