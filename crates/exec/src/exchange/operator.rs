//! The plan node of an exchange.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning};

use super::run::{self, Run};
use crate::plan_node::stock_node;
use crate::shared_run::SharedRun;

/// Deals the rows of its input out to partitions, by hash, by range or by turns.
///
/// Rows that nobody has taken yet wait in a part of the memory, or in pages of the temp space. What
/// the queues of all outputs need at least is admitted by the first `execute`, which fails with
/// `MinimumNotMet` when the budget cannot hold it.
pub struct ExchangeOperator {
    /// The stock node that this one stands for: the source of everything that plans ask.
    stock: RepartitionExec,
    metrics: ExecutionPlanMetricsSet,
    run: SharedRun<Run>,
}

impl ExchangeOperator {
    /// The operator for a stock exchange; none for one that merges its inputs, which keeps little.
    pub fn of_stock(stock: &RepartitionExec) -> Option<Self> {
        let is_dealt = matches!(
            stock.partitioning(),
            Partitioning::Hash(..) | Partitioning::Range(_) | Partitioning::RoundRobinBatch(_)
        );
        (is_dealt && !stock.preserve_order()).then(|| Self {
            stock: stock.clone(),
            metrics: ExecutionPlanMetricsSet::new(),
            run: SharedRun::new(),
        })
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "as all nodes that stand for a stock one"
    )]
    fn try_from_stock(stock: &RepartitionExec) -> Result<Option<Self>> {
        Ok(Self::of_stock(stock))
    }

    /// The input.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        self.stock.input()
    }

    /// The run that all outputs of one execution share.
    fn shared_run(&self, context: &Arc<TaskContext>) -> Result<Arc<Run>> {
        let outputs = self.stock.partitioning().partition_count();
        let begin = || run::begin(&self.stock, &self.metrics, context);
        self.run.share(outputs, begin)
    }
}

impl fmt::Debug for ExchangeOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExchangeOperator")
            .field("partitioning", self.stock.partitioning())
            .finish_non_exhaustive()
    }
}

impl DisplayAs for ExchangeOperator {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(t, DisplayFormatType::TreeRender) {
            return self.stock.fmt_as(t, f);
        }
        write!(
            f,
            "ExchangeOperator: partitioning={}",
            self.stock.partitioning()
        )
    }
}

impl ExecutionPlan for ExchangeOperator {
    stock_node!("ExchangeOperator", RepartitionExec);

    fn maintains_input_order(&self) -> Vec<bool> {
        self.stock.maintains_input_order()
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let run = self.shared_run(&context)?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let written = MetricBuilder::new(&self.metrics).spilled_bytes(partition);
        let rows = run::output(run, partition, baseline, written)?;
        let rows = Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows));
        // Rows that lie in pages are there whenever somebody asks.
        Ok(make_cooperative(rows))
    }
}
