//! The plan node, and which nodes of DataFusion's it stands for.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
};

use super::run::Run;
use super::spec::Spec;
use super::stream::results;
use crate::plan_node::{known_rows, stock_answers};
use crate::report::next_temp_table_id;
use crate::shared_run::SharedRun;

/// A left side of a cross join that is known to have so many rows is held in memory.
const ROWS_FEW: usize = 8192;

/// Puts ours in the place of a join without an equality. A cross join, which holds its left side
/// whatever it takes, stays where that side is known to be small.
pub(crate) fn replace(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let plan = match plan.downcast_ref::<CrossJoinExec>() {
        Some(join) if !has_few_rows(join.left()) => {
            let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
            let join = NestedLoopJoinExec::try_new(left, right, None, &JoinType::Inner, None)?;
            Arc::new(join)
        }
        _ => plan,
    };
    match plan.is::<NestedLoopJoinExec>() {
        true => Ok(Transformed::yes(Arc::new(NestedLoopOperator::new(plan)?))),
        false => Ok(Transformed::no(plan)),
    }
}

fn has_few_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let rows = known_rows(plan.as_ref());
    rows.get_value().is_some_and(|rows| *rows <= ROWS_FEW)
}

/// A join of two inputs by a condition, or by none.
///
/// The left side has one partition, which is read once; each partition of the right side is one of
/// the output. Rows come in no order.
pub(crate) struct NestedLoopOperator {
    id: u64,
    spec: Arc<Spec>,
    /// The node that it stands for, with the inputs.
    stock: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
    run: SharedRun<Run>,
}

impl NestedLoopOperator {
    fn new(stock: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let Some(join) = stock.downcast_ref::<NestedLoopJoinExec>() else {
            return internal_err!("{} is no nested loop join", stock.name());
        };
        Ok(Self {
            id: next_temp_table_id(),
            spec: Arc::new(Spec::of(join)?),
            stock,
            metrics: ExecutionPlanMetricsSet::new(),
            run: SharedRun::new(),
        })
    }

    /// DataFusion's node over the same inputs, which is quicker to begin where rows are few.
    pub(crate) fn stock(&self) -> &Arc<dyn ExecutionPlan> {
        &self.stock
    }
}

impl fmt::Debug for NestedLoopOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NestedLoopOperator")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for NestedLoopOperator {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NestedLoopOperator: join_type={}", self.spec.kind)?;
        match &self.spec.condition {
            Some(condition) => write!(f, ", filter={}", condition.expression()),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for NestedLoopOperator {
    stock_answers!("NestedLoopOperator");

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let stock = Arc::clone(&self.stock).replace_children(children, options)?;
        Ok(Arc::new(Self::new(stock)?))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let stock = Arc::clone(&self.stock).reset_state()?;
        Ok(Arc::new(Self::new(stock)?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let outputs = self.stock.output_partitioning().partition_count();
        let run = self.run.share(outputs, || {
            let inputs = self.children();
            let [left, right] = inputs.as_slice() else {
                return internal_err!("a join has two inputs");
            };
            Run::start(self.id, &self.spec, [left, right], &context)
        })?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            results(run, partition, metrics),
        )))
    }
}
