//! The plan node that merges sorted partitions into one stream.
//!
//! Owns: [`MergeOperator`], in the place of DataFusion's `SortPreservingMergeExec`. Never: holds
//! more than the current batch of each partition, a few that the next output still refers to, and
//! that output.
//!
//! The stock node gathers 8,192 rows before it gives any away: of rows of 4 KB those are 32 MiB,
//! twice while they are copied, and a sort that spilled at 64 MiB failed on its last step. This one
//! ends an output by its bytes as well.
//!
//! Cost: log2(partitions) comparisons a row and one gather.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::OrderingRequirements;
use datafusion::physical_plan::common::spawn_buffered;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
};
use futures::TryStreamExt;

use super::keys::KeyEncoder;
use super::picker::{Limits, Picker};
use super::sorter::Sizes;
use super::spec::SortSpec;
use crate::compact::batch_bytes;
use crate::context::StatementContext;
use crate::plan_node::stock_node;

/// Merges the sorted partitions of its input into one.
///
/// Batches leave with the schema of the input, at most `batch_size` rows and a small part of the
/// budget long, unless a single row is longer; none of them is empty.
pub struct MergeOperator {
    /// The stock node that this one stands for: the source of everything that plans ask.
    stock: SortPreservingMergeExec,
    spec: Arc<SortSpec>,
    metrics: ExecutionPlanMetricsSet,
}

impl MergeOperator {
    /// The operator for a stock merge; none when a key has no normalised form.
    ///
    /// # Errors
    /// When DataFusion cannot type a sort expression.
    pub fn try_from_stock(stock: &SortPreservingMergeExec) -> Result<Option<Self>> {
        let spec = SortSpec::new(&stock.input().schema(), stock.expr())?;
        Ok(spec.map(|spec| Self {
            stock: stock.clone(),
            spec: Arc::new(spec),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

impl fmt::Debug for MergeOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeOperator")
            .field("expr", self.stock.expr())
            .field("fetch", &self.stock.fetch())
            .finish_non_exhaustive()
    }
}

impl DisplayAs for MergeOperator {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(t, DisplayFormatType::TreeRender) {
            return self.stock.fmt_as(t, f);
        }
        write!(f, "MergeOperator: [{}]", self.stock.expr())?;
        match self.stock.fetch() {
            Some(fetch) => write!(f, ", fetch={fetch}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for MergeOperator {
    stock_node!("MergeOperator", SortPreservingMergeExec);

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.stock.required_input_ordering()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.stock.maintains_input_order()
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.stock.input();
        let partitions = input.output_partitioning().partition_count();
        if partitions <= 1 {
            return self.stock.execute(partition, context);
        }
        let space = StatementContext::of(&context)?.account.space().clone();
        let sizes = Sizes::new(
            space.memory_bytes(),
            space.default_page_class(),
            partitions,
            context.session_config().batch_size(),
        );
        let inputs = (0..partitions).map(|partition| {
            let stream = input.execute(partition, Arc::clone(&context))?;
            // Partitions sort side by side, each in a task of its own.
            Ok(spawn_buffered(stream, 1))
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let limits = Limits {
            rows: sizes.batch_rows,
            bytes: sizes.output_bytes,
            held: partitions + HELD_EXTRA,
        };
        let encoder = Arc::new(KeyEncoder::new(&self.spec)?);
        let rows_max = self.stock.fetch().map_or(u64::MAX, |fetch| fetch as u64);
        let merge = Merge {
            spec: Arc::clone(&self.spec),
            picker: Picker::new(&encoder, partitions, limits, rows_max),
            inputs,
        };
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let merged = futures::stream::try_unfold(merge, move |mut merge| {
            let baseline = baseline.clone();
            async move {
                let next = merge.next_batch().await?;
                Ok(next.map(|batch| {
                    baseline.record_output(batch.num_rows());
                    (batch, merge)
                }))
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            merged,
        )))
    }
}

/// Ended batches that an output may keep beside the current ones.
const HELD_EXTRA: usize = 4;

/// A merge in progress.
struct Merge {
    spec: Arc<SortSpec>,
    picker: Picker,
    inputs: Vec<SendableRecordBatchStream>,
}

impl Merge {
    /// Loads the next batch of an input, or ends the input.
    async fn load(&mut self, index: usize) -> Result<()> {
        while let Some(batch) = self.inputs[index].try_next().await? {
            if batch.num_rows() > 0 {
                let inner = self.spec.enter(&batch)?;
                let row_bytes = batch_bytes(&batch) / batch.num_rows() + 1;
                return self.picker.enter(batch, &inner, row_bytes);
            }
        }
        self.picker.end();
        Ok(())
    }

    /// The next rows in order, or none at the end.
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.picker.has_room() {
            while let Some(index) = self.picker.waiting() {
                if self.picker.holds_enough() {
                    return self.picker.output();
                }
                self.load(index).await?;
            }
            if !self.picker.pick() {
                break;
            }
        }
        self.picker.output()
    }
}
