//! How far a statement has come, read off the metrics of its plan.

use std::sync::Arc;
use std::time::Duration;

use datafusion::common::stats::Precision;
use datafusion::physical_plan::ExecutionPlan;
use mayfly_exec::known_rows;

/// How far a statement has come.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Rows read from tables and files so far.
    pub rows_read: u64,
    /// Rows to read in all, when known.
    pub rows_total: Option<u64>,
    /// Bytes of temp file written so far.
    pub temp_bytes_written: u64,
    /// What it does now, in the words of SHOW PROCESSLIST; empty between statements.
    pub phase: &'static str,
    /// Memory that it holds.
    pub memory_bytes: u64,
    /// What it has in temp files.
    pub disk_bytes: u64,
    /// Time since the statement arrived.
    pub elapsed: Duration,
}

/// Rows that the leaves of a plan have read.
pub(crate) fn rows_read(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let children = plan.children();
    if children.is_empty() {
        let metrics = plan.metrics();
        let rows = metrics.and_then(|metrics| metrics.output_rows());
        return rows.unwrap_or(0) as u64;
    }
    children.into_iter().map(rows_read).sum()
}

/// Rows that they read in all, if that is known of each.
pub(crate) fn rows_to_read(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let children = plan.children();
    if children.is_empty() {
        return expected_rows(plan).map(|rows| rows as u64);
    }
    children.into_iter().map(rows_to_read).sum()
}

/// Rows that a node is expected to produce.
pub(crate) fn expected_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    match known_rows(plan.as_ref()) {
        Precision::Exact(rows) | Precision::Inexact(rows) => Some(rows),
        Precision::Absent => None,
    }
}
