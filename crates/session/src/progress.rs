//! How far a statement has come, read off the metrics of its plan.

use std::sync::Arc;
use std::time::Duration;

use datafusion::common::stats::Precision;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

/// How far a statement has come.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Rows read from tables and files so far.
    pub rows_read: u64,
    /// Rows to read in all, when known.
    pub rows_total: Option<u64>,
    /// Bytes of temp file written so far.
    pub temp_bytes_written: u64,
    /// Time since the statement arrived.
    pub elapsed: Duration,
}

/// Rows that the leaves of a plan have read and will read.
pub(crate) fn of_plan(plan: &Arc<dyn ExecutionPlan>) -> (u64, Option<u64>) {
    let children = plan.children();
    if children.is_empty() {
        let read = plan
            .metrics()
            .and_then(|metrics| metrics.output_rows())
            .unwrap_or(0);
        return (read as u64, expected_rows(plan).map(|rows| rows as u64));
    }
    let mut read = 0;
    let mut total = Some(0);
    for child in children {
        let (child_read, child_total) = of_plan(child);
        read += child_read;
        total = total.zip(child_total).map(|(sum, more)| sum + more);
    }
    (read, total)
}

/// Rows that a node is expected to produce.
pub(crate) fn expected_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let found = StatisticsContext::new()
        .compute(plan.as_ref(), &StatisticsArgs::new())
        .ok()?;
    match found.num_rows {
        Precision::Exact(rows) | Precision::Inexact(rows) => Some(rows),
        Precision::Absent => None,
    }
}
