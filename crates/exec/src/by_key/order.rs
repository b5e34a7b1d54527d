//! The first rows in the order of a key.
//!
//! **Owns** the plan node, and the decision between reading on in the order of the key and sorting.
//! **Never** shows a row before it has all that were asked for: until then the stock sort can still
//! take its place, should filters let too few rows through.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::stats::Precision;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use futures::{StreamExt, TryStreamExt};
use mayfly_space::Reservation;
use mayfly_table::{ByKey, Search};

use super::pipeline::Pipeline;
use super::scan::Found;
use crate::context::StatementContext;
use crate::error::{space_error, table_error};
use crate::plan_node::{leaf_node, row_statistics};
use crate::reads::TableReads;
use crate::time_slice::TimeSlice;

/// The rows that are shown take at most so much memory, and those that are read at once.
pub(super) const KEPT_BYTES_MAX: u64 = 1 << 20;
/// Rows that are read at once.
const STEP_ROWS_MIN: usize = 64;
const STEP_ROWS_MAX: usize = 8192;

/// What is read in which order.
pub(super) struct Spec {
    pub(super) pipeline: Pipeline,
    pub(super) search: Search,
    pub(super) is_reversed: bool,
    /// How many rows are asked for.
    pub(super) fetch: usize,
    /// How many are read for them.
    pub(super) limit: usize,
}

/// Reads the first rows in the order of a key.
pub struct KeyOrder {
    spec: Arc<Spec>,
    found: Found,
    /// The sort that it stands for, in one partition.
    stock: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl KeyOrder {
    pub(super) fn new(spec: Spec, found: Found, stock: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            stock.properties().eq_properties.clone(),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self {
            spec: Arc::new(spec),
            found,
            stock,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The key that is used.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Whether the key is read against its order.
    pub fn is_reversed(&self) -> bool {
        self.spec.is_reversed
    }

    /// How many rows are asked for.
    pub fn row_count(&self) -> usize {
        self.spec.fetch
    }
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyOrder")
            .field("found", &self.found)
            .field("fetch", &self.spec.fetch)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for KeyOrder {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.found.table.name();
        let key = &self.found.key().name;
        if matches!(t, DisplayFormatType::TreeRender) {
            return writeln!(f, "table={table}\nkey={key}");
        }
        let fetch = self.spec.fetch;
        write!(f, "KeyOrder: table={table}, key={key}, fetch={fetch}")?;
        write!(f, ", reversed=[{}]", self.spec.is_reversed)
    }
}

impl ExecutionPlan for KeyOrder {
    leaf_node!("KeyOrder");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        debug_assert_eq!(self.stock.output_partitioning().partition_count(), 1);
        let statement = StatementContext::of(&context)?;
        let (spec, stock) = (Arc::clone(&self.spec), Arc::clone(&self.stock));
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let read = MetricBuilder::new(&self.metrics).counter("rows_read", partition);
        let rows = async move {
            let timer = baseline.elapsed_compute().timer();
            let kept = spec.read(&statement, |rows| read.add(rows)).await?;
            timer.done();
            let rows: SendableRecordBatchStream = match kept {
                Some((batches, reservation)) => {
                    let batches = batches.into_iter().map(move |batch| {
                        let _reservation = &reservation;
                        Ok(batch)
                    });
                    let batches = futures::stream::iter(batches);
                    Box::pin(RecordBatchStreamAdapter::new(stock.schema(), batches))
                }
                None => stock.execute(0, context)?,
            };
            Ok::<_, datafusion::common::DataFusionError>(rows.inspect_ok(move |batch| {
                baseline.record_output(batch.num_rows());
            }))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            futures::stream::once(rows).try_flatten().boxed(),
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
        let rows = self.spec.pipeline.source.snapshot.row_count();
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let rows = Precision::Inexact(self.spec.fetch.min(rows));
        row_statistics(self, rows)
    }

    fn fetch(&self) -> Option<usize> {
        Some(self.spec.fetch)
    }
}

impl Spec {
    /// What reading some rows counts as, the first ones among them or not.
    fn reads(&self, rows: usize, is_first: bool) -> TableReads {
        let (rows, is_whole) = (rows as u64, self.search.is_whole());
        let mut reads = TableReads::default();
        match self.is_reversed {
            true => reads.previous_rows = rows,
            false => reads.next_rows = rows,
        }
        match (is_first, is_whole, self.is_reversed) {
            (false, ..) => {}
            (true, true, false) => reads.firsts = 1,
            (true, true, true) => reads.lasts = 1,
            (true, false, _) => reads.searches = 1,
        }
        reads
    }

    /// The first rows; `None` if they are to be sorted.
    async fn read(
        &self,
        statement: &StatementContext,
        on_read: impl Fn(usize),
    ) -> Result<Option<(Vec<RecordBatch>, Reservation)>> {
        let Ok(reservation) = statement.account.reserve(2 * KEPT_BYTES_MAX) else {
            return Ok(None);
        };
        let source = &self.pipeline.source;
        let admission = source.snapshot.account().admit(source.page_bytes_max());
        let _admission = admission.map_err(space_error)?;
        let rows_max = usize::try_from(KEPT_BYTES_MAX / source.row_bytes()).unwrap_or(usize::MAX);
        let rows_max = rows_max.clamp(1, STEP_ROWS_MAX);
        let (mut left, mut limit) = (self.fetch, self.limit);
        let mut step_rows = left.max(STEP_ROWS_MIN);
        let mut place = None;
        let mut kept = Vec::new();
        let mut slice = TimeSlice::begin();
        while left > 0 {
            slice.share().await;
            let count = step_rows.min(rows_max).min(limit);
            if count == 0 {
                return Ok(None);
            }
            let step = source
                .table
                .walk(
                    &source.snapshot,
                    &self.search,
                    self.is_reversed,
                    place.as_ref(),
                    count,
                )
                .map_err(table_error)?;
            let ByKey::Found(step) = step else {
                return Ok(None);
            };
            on_read(step.numbers.len());
            statement
                .report
                .add_reads(self.reads(step.numbers.len(), place.is_none()));
            limit -= step.numbers.len();
            step_rows *= 2;
            if !step.numbers.is_empty() {
                let (rows, _) = self.pipeline.steps.run(source.rows(&step.numbers)?)?;
                let rows = rows.slice(0, rows.num_rows().min(left));
                left -= rows.num_rows();
                if rows.num_rows() > 0 {
                    kept.push(rows);
                }
            }
            place = step.next;
            if place.is_none() {
                break;
            }
        }
        Ok(Some((kept, reservation)))
    }
}
