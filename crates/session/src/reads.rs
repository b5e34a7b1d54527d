//! What a statement has read, as its plan counts it.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use mayfly_exec::{TableReads, is_for_window};

use crate::files::TEXT_SCAN;
use crate::progress;

/// What a statement read.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reads {
    /// Of tables.
    pub(crate) tables: TableReads,
    /// Rows that the leaves of its plan gave, those of files among them.
    pub(crate) rows: u64,
    /// Whether a table or a file was read from its beginning to its end.
    pub(crate) has_full_scan: bool,
    /// Whether rows were joined without looking them up by a key.
    pub(crate) has_full_join: bool,
}

impl Reads {
    /// What a plan has read so far.
    pub(crate) fn of_plan(plan: &Arc<dyn ExecutionPlan>) -> Reads {
        let mut reads = Reads {
            rows: progress::rows_read(plan),
            ..Reads::default()
        };
        reads.add_kinds(plan);
        reads
    }

    /// `Rows_examined`: a statement by key has no plan, and lookups of a plan are no leaves of it.
    pub(crate) fn examined(&self) -> u64 {
        self.rows.max(self.tables.rows())
    }

    pub(crate) fn add_kinds(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        self.has_full_scan |= SCANS.contains(&plan.name());
        self.has_full_join |= JOINS.contains(&plan.name()) && !is_for_window(plan);
        for child in plan.children() {
            self.add_kinds(child);
        }
    }
}

/// Operators that read all rows, and those that join rows without a key.
const SCANS: [&str; 3] = ["DataSourceExec", TEXT_SCAN, "TableScan"];
const JOINS: [&str; 6] = [
    "CrossJoinExec",
    "HashJoinExec",
    "JoinOperator",
    "NestedLoopJoinExec",
    "NestedLoopOperator",
    "SortMergeJoinExec",
];
