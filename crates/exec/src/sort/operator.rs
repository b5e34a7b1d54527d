//! The plan node of a sort.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalExprRef};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::{StreamExt, TryStreamExt};

use super::cutoff::SharedCutoff;
use super::sorter::{Sizes, Sorter, SorterOptions};
use super::spec::SortSpec;
use crate::context::StatementContext;
use crate::page_classes::is_crowded;
use crate::plan_node::stock_node;
use crate::report::{Why, next_temp_table_id};
use crate::time_slice::TimeSlice;

/// Sorts each partition of its input, in memory and in pages of the temp space.
///
/// Batches leave with the schema of the input, at most `batch_size` rows long, none of them
/// empty. The minimum of every partition is admitted by `execute`, which fails with
/// `MinimumNotMet` when the budget cannot hold it.
pub struct SortOperator {
    /// The stock node that this one stands for: the source of everything that plans ask.
    stock: SortExec,
    spec: Arc<SortSpec>,
    shared: Option<Arc<SharedCutoff>>,
    id: u64,
    metrics: ExecutionPlanMetricsSet,
}

impl SortOperator {
    /// The operator for a stock sort; none when the input is sorted already, which stock passes
    /// through, or when a key has no normalised form.
    ///
    /// # Errors
    /// When DataFusion cannot type a sort expression.
    pub fn try_from_stock(stock: &SortExec) -> Result<Option<Self>> {
        let input = stock.input();
        if input
            .properties()
            .equivalence_properties()
            .ordering_satisfy(stock.expr().clone())?
        {
            return Ok(None);
        }
        let Some(spec) = SortSpec::new(&input.schema(), stock.expr())? else {
            return Ok(None);
        };
        let shared = stock.fetch().map(|_| {
            let dynamic_filter: Option<PhysicalExprRef> =
                stock.dynamic_expressions_produced().into_iter().next();
            Arc::new(SharedCutoff::new(stock.expr().clone(), dynamic_filter))
        });
        Ok(Some(Self {
            stock: stock.clone(),
            spec: Arc::new(spec),
            shared,
            id: next_temp_table_id(),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    /// Identity of the temporary table in the statement's report.
    pub fn temp_table_id(&self) -> u64 {
        self.id
    }

    /// Why the temporary table exists.
    pub fn why(&self) -> Why {
        if self.stock.fetch().is_some() {
            Why::OrderByLimit
        } else {
            Why::OrderBy
        }
    }

    /// The sort expressions.
    pub fn expr(&self) -> &LexOrdering {
        self.stock.expr()
    }

    /// The input.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        self.stock.input()
    }
}

impl fmt::Debug for SortOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SortOperator")
            .field("expr", self.stock.expr())
            .field("fetch", &self.stock.fetch())
            .finish_non_exhaustive()
    }
}

impl DisplayAs for SortOperator {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expr = self.stock.expr();
        if matches!(t, DisplayFormatType::TreeRender) {
            writeln!(f, "{expr}")?;
            return match self.stock.fetch() {
                Some(fetch) => writeln!(f, "limit={fetch}"),
                None => Ok(()),
            };
        }
        write!(f, "SortOperator: expr=[{expr}]")?;
        if let Some(fetch) = self.stock.fetch() {
            write!(f, ", fetch={fetch}")?;
        }
        write!(
            f,
            ", preserve_partitioning=[{}]",
            self.stock.preserve_partitioning()
        )
    }
}

impl ExecutionPlan for SortOperator {
    stock_node!("SortOperator", SortExec);

    fn dynamic_expressions_produced(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        self.stock.dynamic_expressions_produced()
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let statement = StatementContext::of(&context)?;
        let space = statement.account.space();
        let partitions = self.properties().output_partitioning().partition_count();
        let mut sizes = Sizes::new(
            space.memory_bytes(),
            space.default_page_class(),
            partitions,
            context.session_config().batch_size(),
        );
        while is_crowded(&space, sizes.minimum_bytes as u64)
            && let Some(smaller) = sizes.smaller()
        {
            sizes = smaller;
        }
        let mut sorter = loop {
            let options = SorterOptions {
                spec: Arc::clone(&self.spec),
                sizes,
                fetch: self.stock.fetch(),
                shared: self.shared.clone(),
                temp_table_id: self.id,
                partitions,
            };
            match Sorter::new(&statement, options) {
                Ok(sorter) => break sorter,
                Err(error) => sizes = sizes.smaller().ok_or(error)?,
            }
        };
        let mut input = self.stock.input().execute(partition, context)?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let runs = MetricBuilder::new(&self.metrics).counter("runs", partition);
        let passes = MetricBuilder::new(&self.metrics).gauge("passes", partition);
        let written = MetricBuilder::new(&self.metrics).spilled_bytes(partition);
        let sorted = async move {
            let mut slice = TimeSlice::begin();
            while let Some(batch) = input.next().await {
                let batch = batch?;
                let timer = baseline.elapsed_compute().timer();
                sorter.push(&batch)?;
                timer.done();
                slice.share().await;
            }
            drop(input);
            runs.add(sorter.run_count());
            sorter.finish().await?;
            passes.set(sorter.passes());
            Ok::<_, DataFusionError>(futures::stream::iter(std::iter::from_fn(move || {
                let timer = baseline.elapsed_compute().timer();
                let next = sorter.next_batch().transpose();
                timer.done();
                if let Some(Ok(batch)) = &next {
                    baseline.record_output(batch.num_rows());
                } else {
                    written.add(sorter.bytes_written());
                }
                next
            })))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            futures::stream::once(sorted).try_flatten(),
        )))
    }
}
