//! The values of a query that is written to a table, in the order in which MySQL computes them.
//!
//! Expressions are computed column by column, for all rows of a batch. Where one of them warns or
//! fails, the batch is divided here until the row is alone, so that whoever writes hears of rows
//! one after the other. **Cost**: nothing but for batches that warn; for those, as many more
//! computations as it takes halves to find the row.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::projection::Projector;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, PlanProperties, apply_expression_roots,
};
use futures::StreamExt;

use crate::functions::{SessionValues, aside};

/// The plan with the values that it ends with computed by row where one of them warns.
///
/// # Errors
/// None but for a bug in the planner.
pub fn by_row(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.is::<CooperativeExec>()
        && let Some(input) = plan.children().first()
    {
        let input = by_row(Arc::clone(input))?;
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        return plan.replace_children(vec![input], options);
    }
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else {
        return Ok(plan);
    };
    let exprs: Vec<Arc<dyn PhysicalExpr>> = projection.projection_expr().expr_iter().collect();
    // Nothing but functions warns, and what has another value each time is computed once.
    let warns = |expr: &Arc<dyn PhysicalExpr>| {
        expr.exists(|part| Ok(part.is::<ScalarFunctionExpr>()))
            .unwrap_or(true)
    };
    if !exprs.iter().any(warns) || exprs.iter().any(is_volatile) {
        return Ok(plan);
    }
    let (input, shown) = (Arc::clone(projection.input()), projection.schema());
    let of_plan = projection.projection_expr();
    Ok(Arc::new(ByRow {
        projector: of_plan.make_projector_with_schema_metadata(&input.schema(), &shown)?,
        input,
        properties: Arc::clone(projection.properties()),
    }))
}

/// A projection that divides the batches that warn.
#[derive(Debug)]
struct ByRow {
    projector: Projector,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for ByRow {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByRow: expr={}", self.projector.projection())
    }
}

impl ExecutionPlan for ByRow {
    fn name(&self) -> &'static str {
        "ByRow"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.projector.projection().iter(), f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else {
            return internal_err!("a projection has one input");
        };
        Ok(Arc::new(ByRow {
            projector: self.projector.clone(),
            input,
            properties: Arc::clone(&self.properties),
        }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let extensions = &context.session_config().options().extensions;
        let run = Run {
            projector: self.projector.clone(),
            session: extensions.get::<SessionValues>().cloned(),
            waiting: VecDeque::new(),
            input: self.input.execute(partition, Arc::clone(&context))?,
        };
        let batches = futures::stream::try_unfold(run, |mut run| async move {
            let batch = run.next().await?;
            Ok(batch.map(|batch| (batch, run)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            batches,
        )))
    }
}

struct Run {
    projector: Projector,
    session: Option<SessionValues>,
    /// Parts of a batch that warns.
    waiting: VecDeque<RecordBatch>,
    input: SendableRecordBatchStream,
}

impl Run {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let rows = match self.waiting.pop_front() {
                Some(rows) => rows,
                None => match self.input.next().await.transpose()? {
                    Some(rows) => rows,
                    None => return Ok(None),
                },
            };
            let count = rows.num_rows();
            let is_full = { self.session.as_ref() }.is_none_or(SessionValues::is_full);
            if count < 2 || is_full {
                return self.projector.project_batch(&rows).map(Some);
            }
            let (values, warned) = aside(|| self.projector.project_batch(&rows));
            if let (Ok(values), true) = (values, warned.is_empty()) {
                return Ok(Some(values));
            }
            let half = count / 2;
            self.waiting.push_front(rows.slice(half, count - half));
            self.waiting.push_front(rows.slice(0, half));
        }
    }
}
