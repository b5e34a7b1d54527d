//! What a join tells of itself: counters for EXPLAIN ANALYZE, and a temporary table in the report.

use std::sync::Arc;

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, Time};
use mayfly_space::Account;

use crate::context::StatementContext;
use crate::report::{TempTable, Why};

/// What is counted, in the order in which it is told.
pub(super) const NAMES: [&str; 10] = [
    "stock_joins",
    "build_rows",
    "probe_rows",
    "partitions_deferred",
    "tables_given_up",
    "rows_dropped",
    "chunks",
    "splits",
    "bytes_written",
    "bytes_read",
];

/// The counters of one execution.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// Executions whose left side was small enough for the stock join.
    pub(super) stock_joins: Count,
    pub(super) build_rows: Count,
    pub(super) probe_rows: Count,
    /// Partitions of the left side that are joined behind the others: there was no memory for their
    /// tables. Their rows may have stayed in memory all the same.
    pub(super) partitions_deferred: Count,
    /// Tables that were given up while the right side went by; they are counted above as well.
    tables_given_up: Count,
    /// Rows of the right side that a filter over the keys of the left side kept out of pages.
    pub(super) rows_dropped: Count,
    /// Tables that were built over parts of a partition, one after the other.
    pub(super) chunks: Count,
    pub(super) splits: Count,
    bytes_written: Count,
    bytes_read: Count,
    /// The time that its tasks computed, without waiting for rows of either side.
    pub(super) compute: Time,
}

impl Counts {
    pub(super) fn new(metrics: &ExecutionPlanMetricsSet) -> Counts {
        let count = |name: &'static str| MetricBuilder::new(metrics).global_counter(name);
        let [
            stock_joins,
            build_rows,
            probe_rows,
            partitions_deferred,
            tables_given_up,
            rows_dropped,
            chunks,
            splits,
            bytes_written,
            bytes_read,
        ] = NAMES.map(count);
        Counts {
            stock_joins,
            build_rows,
            probe_rows,
            partitions_deferred,
            tables_given_up,
            rows_dropped,
            chunks,
            splits,
            bytes_written,
            bytes_read,
            compute: MetricBuilder::new(metrics).elapsed_compute(0),
        }
    }

    /// A table was given up.
    pub(super) fn given_up(&self) {
        self.tables_given_up.add(1);
        self.partitions_deferred.add(1);
    }
}

/// Reports what a join used, when its last stream is gone.
pub(super) struct Usage {
    pub(super) id: u64,
    pub(super) account: Account,
    pub(super) context: Arc<StatementContext>,
    pub(super) counts: Counts,
}

impl Drop for Usage {
    fn drop(&mut self) {
        let counters = self.account.counters();
        let counts = &self.counts;
        counts.bytes_written.add(counters.bytes_written as usize);
        counts.bytes_read.add(counters.bytes_read as usize);
        // A join whose rows stay in memory is no more a temporary table than a join buffer is. But
        // pages can go to disk and come back while every partition gets its table.
        let is_deferred = counts.partitions_deferred.value() > 0;
        if !is_deferred && counters.evictions == 0 {
            return;
        }
        let rows = counts.build_rows.value() as u64;
        let passes = 1 + u64::from(is_deferred) + counts.splits.value().min(1) as u64;
        let table = TempTable::of(self.id, Why::Join, &self.account, rows, passes);
        self.context.report.add(table);
    }
}
