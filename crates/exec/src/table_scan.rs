//! The plan node that scans a table of the temp space.
//!
//! Owns: [`TableScan`], and into how many partitions it divides a table. Never: copies a row unless
//! it is told to; batches point into the pages, and a page stays pinned while an array of it lives.
//!
//! A scan sees the rows as they were when it was planned: it holds a snapshot. Partition `i` of
//! `n` reads the `i`-th part of the snapshot's batches.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::common::{Result, Statistics, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::{ProjectionExec, all_alias_free_columns};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use mayfly_space::{Account, Admission};
use mayfly_table::TableSnapshot;

use crate::context::StatementContext;
use crate::error::{space_error, table_error};
use crate::open_scan::OpenScan;
use crate::plan_node::{chosen_columns, leaf_node, leaf_properties, row_statistics, stream_of};
use crate::reads::TableReads;
use crate::source::Source;

/// Pages of a scan that are pinned at once: the one it reads and one that a batch still holds.
const SCAN_PAGES: u64 = 2;
/// The partitions of a scan take at most this part of the budget for them.
const SCANS_PER_MEMORY: u64 = 4;

/// Up to so many rows and bytes a table is one partition: no more are worth it, and the rows of a
/// small table come in the order in which they were written, as users of MySQL are used to. (Few
/// long rows are several: what hands the rows of one on to others holds many pages.)
const SMALL_ROWS: usize = 8192;
const SMALL_BYTES: u64 = 1 << 20;

/// Reads the rows of a snapshot.
pub struct TableScan {
    source: Source,
    limit: Option<usize>,
    /// The batches of each partition.
    ranges: Vec<Range<usize>>,
    /// Whether batches are in memory of their own, for those who keep them.
    copies: bool,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TableScan {
    pub(crate) fn new(source: Source, limit: Option<usize>, partitions_max: usize) -> Self {
        let (snapshot, columns) = (&source.snapshot, &source.columns);
        let batches = source.batches_within(limit);
        let rows = source.row_count(0..batches);
        let page_bytes = snapshot.page_bytes_max(0..batches);
        let is_small = rows <= SMALL_ROWS && batches as u64 * page_bytes <= SMALL_BYTES;
        let share_bytes = snapshot.account().space().memory_bytes() / SCANS_PER_MEMORY;
        let fitting = share_bytes / (SCAN_PAGES * page_bytes).max(1);
        let fitting = usize::try_from(fitting).unwrap_or(usize::MAX);
        let partitions = match is_small {
            true => 1,
            false => partitions_max.min(batches).min(fitting).max(1),
        };
        let ranges: Vec<_> = (0..partitions)
            .map(|index| batches * index / partitions..batches * (index + 1) / partitions)
            .collect();
        let properties = leaf_properties(Arc::clone(&columns.schema), ranges.len());
        Self {
            source,
            limit,
            ranges,
            copies: false,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same scan, whose batches are in memory of their own.
    pub(crate) fn copying(&self) -> Self {
        Self {
            copies: true,
            ..self.again()
        }
    }

    /// The pages of a partition, whose columns are read when they are asked for; `None` where the
    /// ids of rows are asked for as well.
    ///
    /// # Errors
    /// Where there is no memory for its pages.
    pub(crate) fn open(&self, partition: usize, context: &TaskContext) -> Result<Option<OpenScan>> {
        let width = self.schema().fields().len();
        let columns = (0..width).map(|place| self.source.columns.of_table(place));
        let Some(columns) = columns.collect::<Option<_>>() else {
            return Ok(None);
        };
        let range = self.range(partition)?;
        let snapshot = &self.source.snapshot;
        let page_bytes = snapshot.page_bytes_max(range.clone());
        Ok(Some(OpenScan {
            _admission: admit_scan(snapshot.account(), page_bytes)?,
            scan: snapshot.scan(range, None),
            snapshot: Arc::clone(snapshot),
            columns,
            copies: self.copies,
            report: StatementContext::report_of(context),
            baseline: BaselineMetrics::new(&self.metrics, partition),
        }))
    }

    /// The batches of a partition.
    fn range(&self, partition: usize) -> Result<Range<usize>> {
        let range = self.ranges.get(partition).cloned();
        range.ok_or_else(|| internal_datafusion_err!("no partition {partition} of a table scan"))
    }

    /// The same scan, which has read nothing yet.
    pub(crate) fn again(&self) -> Self {
        Self {
            source: self.source.clone(),
            limit: self.limit,
            ranges: self.ranges.clone(),
            copies: self.copies,
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// Bytes of the rows that are read, about.
    pub fn bytes(&self) -> u64 {
        self.source
            .row_bytes()
            .saturating_mul(self.row_count() as u64)
    }

    /// Whether batches are in memory of their own.
    pub(crate) fn copies(&self) -> bool {
        self.copies
    }

    /// What is read; `None` if not all rows are.
    pub(crate) fn source(&self) -> Option<Source> {
        self.limit.is_none().then(|| self.source.clone())
    }

    /// What is read, and how many rows of it are enough.
    pub(crate) fn source_and_limit(&self) -> (&Source, Option<usize>) {
        (&self.source, self.limit)
    }

    /// The rows that are read, and those beyond a limit.
    pub(crate) fn snapshot(&self) -> &TableSnapshot {
        &self.source.snapshot
    }

    /// The rows that are read.
    pub(crate) fn row_count(&self) -> usize {
        self.rows_of(&self.ranges)
    }

    fn rows_of(&self, ranges: &[Range<usize>]) -> usize {
        let ranges = ranges.iter().cloned();
        ranges.map(|batches| self.source.row_count(batches)).sum()
    }

    /// The name of the table.
    pub fn table_name(&self) -> &str {
        self.source.table.name()
    }
}

/// Memory for the pages that a scan reads, of which the longest has so many bytes: the operators
/// that it feeds may not take them.
pub(crate) fn admit_scan(account: &Account, page_bytes: u64) -> Result<Admission> {
    account
        .admit_within_limits(SCAN_PAGES * page_bytes)
        // With less it can go on where those that it feeds let go of a batch before the next.
        .or_else(|_| account.admit(page_bytes))
        .map_err(space_error)
}

impl fmt::Debug for TableScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableScan")
            .field("table", &self.table_name())
            .field("ranges", &self.ranges)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for TableScan {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(t, DisplayFormatType::TreeRender) {
            return writeln!(f, "table={}", self.table_name());
        }
        let partitions = self.ranges.len();
        write!(
            f,
            "TableScan: table={}, partitions={partitions}",
            self.table_name()
        )?;
        if self.source.columns.projection.is_some() {
            let schema = self.schema();
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            write!(f, ", projection=[{}]", names.join(", "))?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for TableScan {
    leaf_node!("TableScan");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let report = StatementContext::report_of(&context);
        let range = self.range(partition)?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let page_bytes = self.source.snapshot.page_bytes_max(range.clone());
        let admission = admit_scan(self.source.snapshot.account(), page_bytes)?;
        let mut scan = self
            .source
            .snapshot
            .scan(range.clone(), self.source.columns.projection.clone())
            .copying(self.copies)
            .zip(range);
        let (snapshot, columns) = (
            Arc::clone(&self.source.snapshot),
            self.source.columns.clone(),
        );
        let batches = std::iter::from_fn(move || {
            let _admission = &admission;
            let _timer = baseline.elapsed_compute().timer();
            let (batch, index) = scan.next()?;
            let batch = batch
                .map_err(table_error)
                .and_then(|batch| columns.show(batch, || snapshot.row_ids(index)));
            if let Ok(batch) = &batch {
                baseline.record_output(batch.num_rows());
                if let Some(report) = &report {
                    report.add_reads(TableReads::of_scan(batch.num_rows()));
                }
            }
            Some(batch)
        });
        Ok(stream_of(self, batches))
    }

    /// Reads fewer columns.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some((_, places)) = chosen_columns(projection) else {
            return Ok(None);
        };
        let is_rising = places.is_sorted_by(|one, next| one < next);
        if !is_rising || !all_alias_free_columns(projection.expr()) {
            return Ok(None);
        }
        let Some(columns) = self.source.columns.chosen(&places)? else {
            return Ok(None);
        };
        let mut scan = self.again();
        scan.properties = leaf_properties(Arc::clone(&columns.schema), self.ranges.len());
        scan.source.columns = columns;
        Ok(Some(Arc::new(scan)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let ranges = match args.partition() {
            Some(partition) => self.ranges.get(partition..=partition).unwrap_or_default(),
            None => &self.ranges,
        };
        let rows = Precision::Exact(self.rows_of(ranges));
        row_statistics(self, rows)
    }
}
