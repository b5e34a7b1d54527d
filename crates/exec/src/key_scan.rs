//! The rows that a key finds.
//!
//! Owns the plan node. The search is made when the plan is: what is kept are ids of rows, in the
//! order of the pages, so that each page is read once.

use std::fmt;
use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use mayfly_space::Reservation;
use mayfly_table::{Key, Table, TableSnapshot};

use crate::error::{space_error, table_error};
use crate::key_choice::Access;
use crate::scan_columns::ScanColumns;

/// Reads some rows of a snapshot by their ids.
pub struct KeyScan {
    found: Found,
    snapshot: Arc<TableSnapshot>,
    columns: ScanColumns,
    /// Ids in the order of the pages.
    ids: Arc<Vec<u64>>,
    /// Memory of the ids.
    reservation: Option<Reservation>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
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
}

impl Found {
    /// The key.
    pub fn key(&self) -> &Key {
        &self.table.definition().keys[self.key]
    }
}

impl KeyScan {
    pub(crate) fn new(
        found: Found,
        snapshot: TableSnapshot,
        mut ids: Vec<u64>,
        columns: ScanColumns,
    ) -> Self {
        ids.sort_unstable();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&columns.schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            found,
            snapshot: Arc::new(snapshot),
            columns,
            ids: Arc::new(ids),
            reservation: None,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The scan with the memory that its ids take.
    pub(crate) fn holding(self, reservation: Option<Reservation>) -> Self {
        Self {
            reservation,
            ..self
        }
    }

    /// The key that is used.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The number of rows.
    pub fn row_count(&self) -> usize {
        self.ids.len()
    }
}

impl fmt::Debug for KeyScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyScan")
            .field("found", &self.found)
            .field("rows", &self.ids.len())
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
        write!(f, ", rows={}", self.ids.len())
    }
}

impl ExecutionPlan for KeyScan {
    fn name(&self) -> &'static str {
        "KeyScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let (snapshot, ids) = (Arc::clone(&self.snapshot), Arc::clone(&self.ids));
        let columns = self.columns.clone();
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
            }
            Some(rows)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            futures::stream::iter(batches),
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics {
            num_rows: Precision::Exact(self.ids.len()),
            total_byte_size: Precision::Absent,
            column_statistics: vec![ColumnStatistics::new_unknown(); self.schema().fields().len()],
        }))
    }
}
