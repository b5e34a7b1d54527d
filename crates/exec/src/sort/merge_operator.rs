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

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use arrow::row::Rows;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::common::spawn_buffered;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties,
};
use futures::TryStreamExt;

use super::keys::{KeyEncoder, head};
use super::losers::LoserTree;
use super::sorter::Sizes;
use super::spec::{SortSpec, batch_bytes};
use crate::context::StatementContext;

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

    fn rebuild(stock: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let ours = match stock.downcast_ref::<SortPreservingMergeExec>() {
            Some(merge) => Self::try_from_stock(merge)?,
            None => None,
        };
        Ok(match ours {
            Some(operator) => Arc::new(operator),
            None => Arc::clone(stock),
        })
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
    fn name(&self) -> &'static str {
        "MergeOperator"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.stock.properties()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.stock.input_distribution_requirements()
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.stock.required_input_ordering()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.stock.maintains_input_order()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.stock.benefits_from_input_partitioning()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.stock.input()]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.stock.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let stock: Arc<dyn ExecutionPlan> = Arc::new(self.stock.clone());
        Self::rebuild(&stock.replace_children(children, options)?)
    }

    crate::with_new_children!();

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
        let encoder = KeyEncoder::new(&self.spec)?;
        let inputs = (0..partitions).map(|partition| {
            let stream = input.execute(partition, Arc::clone(&context))?;
            // Partitions sort side by side, each in a task of its own.
            Ok(Input::new(spawn_buffered(stream, 1), &encoder))
        });
        let merge = Merge {
            inputs: inputs.collect::<Result<_>>()?,
            encoder,
            spec: Arc::clone(&self.spec),
            limits: Limits {
                rows: sizes.batch_rows,
                bytes: sizes.output_bytes,
                held: partitions + HELD_EXTRA,
            },
            tree: None,
            held: Vec::new(),
            waiting: None,
            rows_left: self.stock.fetch().unwrap_or(usize::MAX),
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

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.stock.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.stock.statistics_from_inputs(input_stats, args)
    }

    fn fetch(&self) -> Option<usize> {
        self.stock.fetch()
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.stock.cardinality_effect()
    }
}

/// Ended batches that an output may keep beside the current ones.
const HELD_EXTRA: usize = 4;

/// What an output holds at most.
#[derive(Clone, Copy)]
struct Limits {
    rows: usize,
    bytes: usize,
    /// Batches that it refers to.
    held: usize,
}

/// The place of a merge in one partition.
struct Input {
    stream: SendableRecordBatchStream,
    /// First bytes of the keys of the current batch.
    heads: Vec<u128>,
    /// Whole keys of the current batch.
    keys: Rows,
    row: usize,
    /// Position of the current batch in `Merge::held`.
    slot: usize,
    is_live: bool,
}

impl Input {
    fn new(stream: SendableRecordBatchStream, encoder: &KeyEncoder) -> Self {
        Self {
            stream,
            heads: Vec::new(),
            keys: encoder.empty(),
            row: 0,
            slot: 0,
            is_live: true,
        }
    }
}

/// A batch that the next output may refer to.
struct Held {
    batch: RecordBatch,
    row_bytes: usize,
}

/// A merge in progress.
struct Merge {
    // Fixed.
    encoder: KeyEncoder,
    spec: Arc<SortSpec>,
    limits: Limits,
    // State.
    inputs: Vec<Input>,
    /// None before the first batches came.
    tree: Option<LoserTree>,
    held: Vec<Held>,
    /// The input whose batch ended and whose next one is not loaded yet.
    waiting: Option<usize>,
    rows_left: usize,
}

impl Merge {
    /// Loads the next batch of an input, or ends the input.
    async fn load(&mut self, index: usize) -> Result<()> {
        let input = &mut self.inputs[index];
        let batch = loop {
            match input.stream.try_next().await? {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => break batch,
                None => {
                    input.is_live = false;
                    input.heads = Vec::new();
                    return Ok(());
                }
            }
        };
        let inner = self.spec.enter(&batch)?;
        self.encoder.encode_into(&inner, &mut input.keys)?;
        input.heads.clear();
        let heads = input.keys.iter().map(|key| head(key.data()));
        input.heads.extend(heads);
        input.row = 0;
        input.slot = self.held.len();
        self.held.push(Held {
            row_bytes: batch_bytes(&batch) / batch.num_rows() + 1,
            batch,
        });
        Ok(())
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (left, right) = (&self.inputs[a], &self.inputs[b]);
        match (left.is_live, right.is_live) {
            (true, true) => {}
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => return a.cmp(&b),
        }
        left.heads[left.row]
            .cmp(&right.heads[right.row])
            .then_with(|| left.keys.row(left.row).cmp(&right.keys.row(right.row)))
            .then(a.cmp(&b))
    }

    fn replay(&mut self, index: usize) {
        if let Some(mut tree) = self.tree.take() {
            tree.replay(index, |a, b| self.compare(a, b));
            self.tree = Some(tree);
        }
    }

    /// The next rows in order, or none at the end.
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.tree.is_none() {
            for index in 0..self.inputs.len() {
                self.load(index).await?;
            }
            let tree = LoserTree::new(self.inputs.len(), |a, b| self.compare(a, b));
            self.tree = Some(tree);
        }
        let mut picks: Vec<(usize, usize)> = Vec::new();
        let mut bytes = 0;
        while picks.len() < self.limits.rows && bytes < self.limits.bytes && self.rows_left > 0 {
            if let Some(index) = self.waiting {
                if self.held.len() >= self.limits.held && !picks.is_empty() {
                    break;
                }
                self.load(index).await?;
                self.waiting = None;
                self.replay(index);
            }
            let winner = self.tree.as_ref().map_or(0, LoserTree::winner);
            let input = &mut self.inputs[winner];
            if !input.is_live {
                break;
            }
            picks.push((input.slot, input.row));
            bytes += self.held[input.slot].row_bytes;
            self.rows_left -= 1;
            input.row += 1;
            if input.row < input.heads.len() {
                self.replay(winner);
            } else {
                self.waiting = Some(winner);
            }
        }
        if picks.is_empty() {
            return Ok(None);
        }
        let batches: Vec<&RecordBatch> = self.held.iter().map(|held| &held.batch).collect();
        let output = interleave_record_batch(&batches, &picks)?;
        self.release_ended();
        Ok(Some(output))
    }

    /// Keeps only the batches that inputs stand in.
    fn release_ended(&mut self) {
        let mut held: Vec<Option<Held>> = self.held.drain(..).map(Some).collect();
        for input in &mut self.inputs {
            if input.is_live
                && input.row < input.heads.len()
                && let Some(current) = held[input.slot].take()
            {
                self.held.push(current);
                input.slot = self.held.len() - 1;
            }
        }
    }
}
