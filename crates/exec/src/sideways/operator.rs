//! Drops rows of groups that no row of a join's left side asks for.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan,
};
use futures::{StreamExt, stream};

use crate::join::{WantedKeys, told};
use crate::plan_node::pass_through_node;

/// What is counted beside the rows that go on.
const ROWS_DROPPED: &str = "rows_dropped";

/// The rows of its input whose keys a join above may have a partner for; all of them where it does
/// not say.
pub struct SidewaysOperator {
    /// By which the join and this node know each other.
    promise: u64,
    /// The columns of the input that are the keys, in the order in which they are told.
    columns: Arc<[usize]>,
    input: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
}

impl SidewaysOperator {
    pub(super) fn new(promise: u64, columns: Arc<[usize]>, input: Arc<dyn ExecutionPlan>) -> Self {
        SidewaysOperator {
            promise,
            columns,
            input,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _options: &ReplaceChildrenOptions,
    ) -> Result<Self> {
        Ok(Self::new(self.promise, Arc::clone(&self.columns), input))
    }

    /// How many rows its executions have dropped; `None` where it was not executed, as where copies
    /// of it were (each level of a recursion has its own).
    pub fn rows_dropped(&self) -> Option<usize> {
        let dropped = self.metrics.clone_inner().sum_by_name(ROWS_DROPPED)?;
        Some(dropped.as_usize())
    }
}

impl fmt::Debug for SidewaysOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SidewaysOperator")
            .field("promise", &self.promise)
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for SidewaysOperator {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let keys = self.columns.iter();
        let keys = keys.map(|column| format!("{}@{column}", schema.field(*column).name()));
        let keys = keys.collect::<Vec<_>>().join(", ");
        write!(f, "SidewaysOperator: keys=[{keys}]")
    }
}

impl ExecutionPlan for SidewaysOperator {
    pass_through_node!("SidewaysOperator");

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let dropped = MetricBuilder::new(&self.metrics).counter(ROWS_DROPPED, partition);
        let schema = self.schema();
        let dropping = match told(&context, self.promise) {
            // No group is wanted, so no row needs to be read.
            Some(wanted) if wanted.is_empty() => {
                return Ok(Box::pin(EmptyRecordBatchStream::new(schema)));
            }
            wanted => Dropping {
                wanted,
                columns: Arc::clone(&self.columns),
                input: self.input.execute(partition, context)?,
                metrics,
                dropped,
            },
        };
        let rows = stream::try_unfold(dropping, async |mut dropping| {
            Ok(dropping.next().await?.map(|batch| (batch, dropping)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}

/// One partition.
struct Dropping {
    /// What the join said; `None` if it said nothing.
    wanted: Option<Arc<WantedKeys>>,
    columns: Arc<[usize]>,
    input: SendableRecordBatchStream,
    metrics: BaselineMetrics,
    dropped: Count,
}

impl Dropping {
    /// The next rows that go on.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(batch) = self.input.next().await {
            let batch = self.kept(batch?)?;
            if batch.num_rows() > 0 {
                return Ok(Some(batch.record_output(&self.metrics)));
            }
        }
        Ok(None)
    }

    fn kept(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let Some(wanted) = &self.wanted else {
            return Ok(batch);
        };
        let timer = self.metrics.elapsed_compute().timer();
        let keys = self.columns.iter();
        let keys: Vec<ArrayRef> =
            { keys.map(|column| Arc::clone(batch.column(*column))) }.collect();
        let found = wanted.wanted(&keys, batch.num_rows())?;
        let dropped = found.len() - found.count_set_bits();
        let kept = match dropped {
            0 => batch,
            _ => filter_record_batch(&batch, &BooleanArray::from(found))?,
        };
        self.dropped.add(dropped);
        timer.done();
        Ok(kept)
    }
}
