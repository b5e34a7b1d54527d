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

use super::in_order::{OrderedKey, Walk, Walked};
use super::pipeline::Pipeline;
use super::scan::Found;
use crate::context::StatementContext;
use crate::error::space_error;
use crate::plan_node::{leaf_node, row_statistics};
use crate::time_slice::TimeSlice;

/// What is read in which order.
pub(super) struct Spec {
    pub(super) pipeline: Pipeline,
    pub(super) key: OrderedKey,
    /// How many rows are asked for.
    pub(super) fetch: usize,
    /// How many are read for them.
    pub(super) limit: usize,
}

/// Reads the first rows in the order of a key, or in each of several orders.
pub struct KeyOrder {
    specs: Arc<[Spec]>,
    found: Found,
    is_reversed: bool,
    /// How many rows are asked for.
    fetch: usize,
    /// What it stands for, in one partition: a sort, or all rows.
    stock: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl KeyOrder {
    /// The first rows of these orders in the place of a plan in one partition; `None` without an
    /// order.
    pub(super) fn new(specs: Vec<Spec>, stock: Arc<dyn ExecutionPlan>) -> Option<Self> {
        let first = specs.first()?;
        let (found, is_reversed) = (
            first.key.found(&first.pipeline.source),
            first.key.is_reversed,
        );
        let properties = PlanProperties::new(
            stock.properties().eq_properties.clone(),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Some(Self {
            found,
            is_reversed,
            fetch: specs.iter().map(|spec| spec.fetch).sum(),
            specs: specs.into(),
            stock,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The key that is used.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Whether the key is read against its order.
    pub fn is_reversed(&self) -> bool {
        self.is_reversed
    }

    /// How many rows are asked for.
    pub fn row_count(&self) -> usize {
        self.fetch
    }
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyOrder")
            .field("found", &self.found)
            .field("fetch", &self.fetch)
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
        let fetch = self.fetch;
        write!(f, "KeyOrder: table={table}, key={key}, fetch={fetch}")?;
        write!(f, ", reversed=[{}]", self.is_reversed)
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
        let (specs, stock) = (Arc::clone(&self.specs), Arc::clone(&self.stock));
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let read = MetricBuilder::new(&self.metrics).counter("rows_read", partition);
        let rows = async move {
            let timer = baseline.elapsed_compute().timer();
            let kept = first_rows(&specs, &statement, |rows| read.add(rows)).await?;
            timer.done();
            let rows: SendableRecordBatchStream = match kept {
                Some((batches, reservations)) => {
                    let batches = batches.into_iter().map(move |batch| {
                        let _reservations = &reservations;
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
        let rows = self.found.table.row_count();
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let rows = Precision::Inexact(self.fetch.min(rows));
        row_statistics(self, rows)
    }

    fn fetch(&self) -> Option<usize> {
        Some(self.fetch)
    }
}

/// The first rows of all orders; `None` if the stock plan is to find them.
async fn first_rows(
    specs: &[Spec],
    statement: &StatementContext,
    on_read: impl Fn(usize),
) -> Result<Option<(Vec<RecordBatch>, Vec<Reservation>)>> {
    let mut kept = Vec::new();
    let mut reservations = Vec::new();
    for spec in specs {
        match spec.read(statement, &on_read, &mut kept).await? {
            Some(reservation) => reservations.push(reservation),
            None => return Ok(None),
        }
    }
    Ok(Some((kept, reservations)))
}

impl Spec {
    /// Adds the first rows, and returns their memory; `None` if the stock plan is to find them.
    async fn read(
        &self,
        statement: &StatementContext,
        on_read: &impl Fn(usize),
        kept: &mut Vec<RecordBatch>,
    ) -> Result<Option<Reservation>> {
        let Pipeline { source, steps } = &self.pipeline;
        let admission = source.snapshot.account().admit(source.page_bytes_max());
        let _admission = admission.map_err(space_error)?;
        let (fetch, limit) = (self.fetch, self.limit);
        let walk = Walk::begin(source, &self.key, steps, fetch, limit, &statement.account);
        let Some(mut walk) = walk else {
            return Ok(None);
        };
        let mut slice = TimeSlice::begin();
        loop {
            slice.share().await;
            match walk.next()? {
                Walked::Step(step) => {
                    on_read(step.count);
                    statement.report.add_reads(step.reads);
                    kept.extend(step.rows);
                }
                Walked::End => return Ok(Some(walk.end())),
                Walked::GivenUp => return Ok(None),
            }
        }
    }
}
