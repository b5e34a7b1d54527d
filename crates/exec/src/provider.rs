//! A table of the temp space as a table of a plan.
//!
//! Owns: [`TableSource`] and the plan node that scans. Never: copies a row; batches point into the
//! pages, and a page stays pinned while an array of it lives.
//!
//! A scan sees the rows as they were when it was planned: it holds a snapshot. Partition `i` of
//! `n` reads the `i`-th part of the snapshot's batches.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Result, Statistics, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
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
use mayfly_table::{Change, Table, TableSnapshot};

use crate::error::{space_error, table_error};
use crate::key_choice::{self, Choice};
use crate::key_scan::{Found, KeyScan};
use crate::scan_columns::ScanColumns;

/// Pages of a scan that are pinned at once: the one it reads and one that a batch still holds.
const SCAN_PAGES: u64 = 2;

/// The number of a row and its id.
const KEY_SCAN_ROW_BYTES: u64 = 16;
/// So little is not worth asking for.
const KEY_SCAN_FREE_BYTES: u64 = 64 << 10;

/// A `TableProvider` over a table of the temp space.
#[derive(Clone)]
pub struct TableSource {
    table: Arc<Table>,
    schema: SchemaRef,
    /// The rows that are to be read; those at the time of planning without one.
    snapshot: Option<TableSnapshot>,
}

impl TableSource {
    /// The provider of a table.
    pub fn new(table: Arc<Table>) -> Self {
        Self {
            schema: Arc::clone(table.schema()),
            table,
            snapshot: None,
        }
    }

    /// The provider of the rows that a change sees, with their ids in a last column of this name.
    pub fn with_row_ids(change: &Change, name: &str) -> Self {
        let table = Arc::clone(change.table());
        let mut fields: Vec<FieldRef> = table.schema().fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(name, DataType::UInt64, false)));
        Self {
            schema: Arc::new(Schema::new(fields)),
            table,
            snapshot: Some(change.snapshot().clone()),
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

impl TableSource {
    /// The rows that a key finds; `None` if they are more than was thought.
    fn key_scan(
        &self,
        choice: &Choice,
        projection: Option<&Vec<usize>>,
    ) -> Result<Option<KeyScan>> {
        let limit = usize::try_from(choice.rows.saturating_mul(2).saturating_add(64));
        let limit = limit.unwrap_or(usize::MAX);
        let found = self.table.search(&choice.searches, limit);
        let Some((now, numbers)) = found.map_err(table_error)? else {
            return Ok(None);
        };
        let snapshot = self.snapshot.clone().unwrap_or(now);
        // Where the numbers and ids of the rows find no room, the table is scanned.
        let bytes = numbers.len() as u64 * KEY_SCAN_ROW_BYTES;
        let reservation = match bytes >= KEY_SCAN_FREE_BYTES {
            true => match snapshot.account().reserve(bytes) {
                Ok(reservation) => Some(reservation),
                Err(_) => return Ok(None),
            },
            false => None,
        };
        let ids = snapshot.locate(numbers).map_err(table_error)?;
        let columns = ScanColumns::new(&self.schema, &snapshot, projection)?;
        let found = Found {
            table: Arc::clone(&self.table),
            key: choice.key,
            parts: choice.parts,
            access: choice.access,
        };
        let scan = KeyScan::new(found, snapshot, ids, columns);
        Ok(Some(scan.holding(reservation)))
    }
}

impl fmt::Debug for TableSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSource")
            .field("table", &self.table.name())
            .finish()
    }
}

#[async_trait]
impl TableProvider for TableSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let supported = |filter: &&Expr| match key_choice::is_searchable(&self.table, filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(supported).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(choice) = key_choice::choose(&self.table, filters)?
            && let Some(scan) = self.key_scan(&choice, projection)?
        {
            return Ok(Arc::new(scan));
        }
        let scan = TableScan::new(
            self.table.name(),
            &self.schema,
            self.snapshot
                .clone()
                .unwrap_or_else(|| self.table.snapshot()),
            projection,
            limit,
            session.config().target_partitions(),
        )?;
        Ok(Arc::new(scan))
    }
}

/// Reads the rows of a snapshot.
pub struct TableScan {
    name: String,
    snapshot: Arc<TableSnapshot>,
    columns: ScanColumns,
    limit: Option<usize>,
    /// The batches of each partition.
    ranges: Vec<Range<usize>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TableScan {
    fn new(
        name: &str,
        schema: &SchemaRef,
        snapshot: TableSnapshot,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
        partitions_max: usize,
    ) -> Result<Self> {
        let columns = ScanColumns::new(schema, &snapshot, projection)?;
        let batches = match limit {
            None => snapshot.batch_count(),
            Some(limit) => batches_within(&snapshot, limit),
        };
        let partitions = partitions_max.min(batches).max(1);
        let ranges: Vec<_> = (0..partitions)
            .map(|index| batches * index / partitions..batches * (index + 1) / partitions)
            .collect();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&columns.schema)),
            Partitioning::UnknownPartitioning(ranges.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            name: name.to_owned(),
            snapshot: Arc::new(snapshot),
            columns,
            limit,
            ranges,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The name of the table.
    pub fn table_name(&self) -> &str {
        &self.name
    }
}

/// How many leading batches hold `limit` rows.
fn batches_within(snapshot: &TableSnapshot, limit: usize) -> usize {
    let mut rows = 0;
    let mut count = 0;
    while rows < limit && count < snapshot.batch_count() {
        rows += snapshot.rows_of(count);
        count += 1;
    }
    count
}

impl fmt::Debug for TableScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableScan")
            .field("table", &self.name)
            .field("ranges", &self.ranges)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for TableScan {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(t, DisplayFormatType::TreeRender) {
            return writeln!(f, "table={}", self.name);
        }
        let partitions = self.ranges.len();
        write!(f, "TableScan: table={}, partitions={partitions}", self.name)?;
        if self.columns.projection.is_some() {
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
    fn name(&self) -> &'static str {
        "TableScan"
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
        let range =
            self.ranges.get(partition).cloned().ok_or_else(|| {
                internal_datafusion_err!("no partition {partition} of a table scan")
            })?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        // The pages that it reads may not be taken by the operators that it feeds.
        let minimum_bytes = SCAN_PAGES * self.snapshot.page_bytes_max(range.clone());
        let admission = self
            .snapshot
            .account()
            .admit(minimum_bytes)
            .map_err(space_error)?;
        let mut scan = self
            .snapshot
            .scan(range.clone(), self.columns.projection.clone())
            .zip(range);
        let (snapshot, columns) = (Arc::clone(&self.snapshot), self.columns.clone());
        let batches = std::iter::from_fn(move || {
            let _admission = &admission;
            let _timer = baseline.elapsed_compute().timer();
            let (batch, index) = scan.next()?;
            let batch = batch
                .map_err(table_error)
                .and_then(|batch| columns.show(batch, || snapshot.row_ids(index)));
            if let Ok(batch) = &batch {
                baseline.record_output(batch.num_rows());
            }
            Some(batch)
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
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let ranges = match args.partition() {
            Some(partition) => self.ranges.get(partition..=partition).unwrap_or_default(),
            None => &self.ranges,
        };
        let rows: usize = ranges
            .iter()
            .cloned()
            .flatten()
            .map(|index| self.snapshot.rows_of(index))
            .sum();
        Ok(Arc::new(Statistics {
            num_rows: Precision::Exact(rows),
            total_byte_size: Precision::Absent,
            column_statistics: vec![ColumnStatistics::new_unknown(); self.schema().fields().len()],
        }))
    }
}
