//! Filters that DataFusion pushes below nodes whose columns share a name.
//!
//! DataFusion 55 pushes filters down physical plans by the names of columns: for each input it
//! looks the names of a filter's columns up (`FilterRemapper::try_remap`,
//! `ProjectionExec::collect_reverse_alias`). Behind a join of two tables that have a column `a`,
//! two columns are named so, and the filter comes out with the first of them in the place of both:
//! `u.a < t.a` becomes `t.a < t.a`, and its rows are gone.
//!
//! Owns: [`PushByNames`], which runs the stock rule with a node above each plan whose names are not
//! its columns' own; no filter passes that. What the logical optimizer has pushed down before, by
//! qualified names, is not touched by this.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::plan_node::same_rows;

/// The stock rule for filters, where names tell columns apart.
#[derive(Debug)]
pub(crate) struct PushByNames(pub(crate) Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for PushByNames {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let stopped = plan.transform_up(stop)?;
        if !stopped.transformed {
            return self.0.optimize(stopped.data, config);
        }
        let plan = self.0.optimize(stopped.data, config)?;
        plan.transform_up(go_on).data()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

fn stop(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let schema = plan.schema();
    let mut names = HashSet::with_capacity(schema.fields().len());
    let are_own = schema
        .fields()
        .iter()
        .all(|field| names.insert(field.name()));
    Ok(match are_own {
        true => Transformed::no(plan),
        false => Transformed::yes(Arc::new(NoFilters { input: plan })),
    })
}

fn go_on(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    Ok(match plan.downcast_ref::<NoFilters>() {
        Some(stops) => Transformed::yes(Arc::clone(&stops.input)),
        None => Transformed::no(plan),
    })
}

/// The rows of its input, which no filter reaches: a node is asked whether it lets one pass, and
/// does not if it says nothing.
#[derive(Clone, Debug)]
struct NoFilters {
    input: Arc<dyn ExecutionPlan>,
}

impl NoFilters {
    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _options: &ReplaceChildrenOptions,
    ) -> Result<Self> {
        Ok(Self { input })
    }
}

impl DisplayAs for NoFilters {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoFilters")
    }
}

impl ExecutionPlan for NoFilters {
    crate::plan_node::pass_through_node!("NoFilters");
    same_rows!();

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
