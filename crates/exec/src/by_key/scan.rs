//! The rows that a key finds.
//!
//! Owns the plan node. The search is made when the plan is: what is kept are ids of rows, in the
//! order of the pages, so that each page is read once.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use mayfly_space::Reservation;
use mayfly_table::{Key, Table, TableSnapshot};

use super::Access;
use crate::context::StatementContext;
use crate::error::{space_error, table_error};
use crate::plan_node::{leaf_node, leaf_properties, row_statistics, stream_of};
use crate::reads::{Searched, TableReads};
use crate::source::Source;

/// Reads some rows of a snapshot by their ids.
pub struct KeyScan {
    found: Found,
    rows: FoundRows,
    searched: Searched,
    /// Memory of the rows or their ids.
    reservation: Option<Reservation>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// What was found.
pub(crate) enum FoundRows {
    /// Ids of rows in the order of the pages.
    Ids { source: Source, ids: Arc<Vec<u64>> },
    /// What the key itself says of them.
    Covered(RecordBatch),
}

impl FoundRows {
    /// Some rows of a table.
    pub(crate) fn by_ids(source: Source, mut ids: Vec<u64>) -> FoundRows {
        ids.sort_unstable();
        let ids = Arc::new(ids);
        FoundRows::Ids { source, ids }
    }

    /// The same, with conditions that are checked above.
    pub(crate) fn narrowed_by(mut self, filters: &[Expr]) -> FoundRows {
        if let FoundRows::Ids { source, .. } = &mut self {
            source.filters = filters.to_vec();
        }
        self
    }

    /// The number of rows.
    pub(crate) fn count(&self) -> usize {
        match self {
            FoundRows::Ids { ids, .. } => ids.len(),
            FoundRows::Covered(rows) => rows.num_rows(),
        }
    }

    /// The rows in one batch.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub(crate) fn read(&self) -> Result<RecordBatch> {
        match self {
            FoundRows::Ids { source, ids } => source.rows_by_id(ids),
            FoundRows::Covered(rows) => Ok(rows.clone()),
        }
    }

    fn schema(&self) -> SchemaRef {
        match self {
            FoundRows::Ids { source, .. } => Arc::clone(&source.columns.schema),
            FoundRows::Covered(rows) => rows.schema(),
        }
    }
}

/// The key of a scan, as EXPLAIN shows it.
#[derive(Debug, Clone)]
pub struct Found {
    /// The table.
    pub table: Arc<Table>,
    /// The place of the key in the table's definition.
    pub key: usize,
    /// How many columns of the key are used.
    pub parts: usize,
    /// How it is used.
    pub access: Access,
    /// Whether the key holds all that is read.
    pub is_covered: bool,
}

impl Found {
    /// The key.
    pub fn key(&self) -> &Key {
        &self.table.definition().keys[self.key]
    }
}

impl KeyScan {
    /// The scan of rows that were found.
    pub(crate) fn new(found: Found, rows: FoundRows, searched: Searched) -> Self {
        let properties = leaf_properties(rows.schema(), 1);
        Self {
            found,
            rows,
            searched,
            reservation: None,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The scan with the memory that its rows take.
    pub(crate) fn holding(self, reservation: Option<Reservation>) -> Self {
        Self {
            reservation,
            ..self
        }
    }

    /// Where the rows come from, if not off the key.
    pub(crate) fn source(&self) -> Option<&Source> {
        match &self.rows {
            FoundRows::Ids { source, .. } => Some(source),
            FoundRows::Covered(_) => None,
        }
    }

    /// The key that is used.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The number of rows.
    pub fn row_count(&self) -> usize {
        self.rows.count()
    }

    /// The rows in one batch, and how they are read.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub(crate) fn rows(&self) -> Result<(RecordBatch, TableReads)> {
        let rows = self.rows.read()?;
        let reads = self.searched.reads(rows.num_rows());
        Ok((rows, reads))
    }
}

impl KeyScan {
    /// Rows in batches.
    fn slices(
        &self,
        rows: RecordBatch,
        batch_rows: usize,
        baseline: BaselineMetrics,
    ) -> SendableRecordBatchStream {
        let starts = (0..rows.num_rows()).step_by(batch_rows);
        let batches = starts.map(move |start| {
            let batch = rows.slice(start, batch_rows.min(rows.num_rows() - start));
            baseline.record_output(batch.num_rows());
            Ok(batch)
        });
        stream_of(self, batches)
    }
}

impl fmt::Debug for KeyScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyScan")
            .field("found", &self.found)
            .field("rows", &self.row_count())
            .field("reserved", &self.reservation.is_some())
            .finish_non_exhaustive()
    }
}

impl DisplayAs for KeyScan {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.found.table.name();
        let key = &self.found.key().name;
        if matches!(t, DisplayFormatType::TreeRender) {
            return writeln!(f, "table={table}\nkey={key}");
        }
        write!(f, "KeyScan: table={table}, key={key}")?;
        write!(f, ", rows={}", self.row_count())?;
        match &self.rows {
            FoundRows::Ids { .. } => Ok(()),
            FoundRows::Covered(_) => write!(f, ", covered"),
        }
    }
}

impl ExecutionPlan for KeyScan {
    leaf_node!("KeyScan");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let (report, searched) = (StatementContext::report_of(&context), self.searched);
        let add_reads = move |reads: TableReads| {
            if let Some(report) = &report {
                report.add_reads(reads);
            }
        };
        add_reads(searched.reads(0));
        let (source, ids) = match &self.rows {
            FoundRows::Ids { source, ids } => (source, Arc::clone(ids)),
            FoundRows::Covered(rows) => {
                add_reads(searched.rows(rows.num_rows()));
                let batch_rows = context.session_config().batch_size();
                return Ok(self.slices(rows.clone(), batch_rows, baseline));
            }
        };
        let (snapshot, columns) = (Arc::clone(&source.snapshot), source.columns.clone());
        // The page that it reads may not be taken by the operators that it feeds.
        let mut pages: Vec<usize> = ids.iter().map(|id| TableSnapshot::batch_of(*id)).collect();
        pages.dedup();
        let pages = pages.into_iter();
        let largest = pages
            .map(|page| snapshot.page_bytes_max(page..page + 1))
            .max();
        let admission = snapshot
            .account()
            .admit(largest.unwrap_or(0))
            .map_err(space_error)?;
        let mut from = 0;
        let batches = std::iter::from_fn(move || {
            let _admission = &admission;
            let first = *ids.get(from)?;
            let _timer = baseline.elapsed_compute().timer();
            let batch_of = |id: u64| TableSnapshot::batch_of(id);
            let same = ids[from..].partition_point(|id| batch_of(*id) <= batch_of(first));
            let part = &ids[from..from + same];
            from += same;
            let rows = snapshot
                .fetch(batch_of(first), part, columns.projection.as_deref())
                .map_err(table_error)
                .and_then(|rows| columns.show(rows, || part.to_vec().into()));
            if let Ok(rows) = &rows {
                baseline.record_output(rows.num_rows());
                add_reads(searched.rows(rows.num_rows()));
            }
            Some(rows)
        });
        Ok(stream_of(self, batches))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let rows = Precision::Exact(self.row_count());
        row_statistics(self, rows)
    }
}
