//! Filters that DataFusion pushes below nodes whose columns share a name.
//!
//! DataFusion 55 pushes filters down physical plans by the names of columns: for each input it
//! looks the names of a filter's columns up (`FilterRemapper::try_remap`,
//! `ProjectionExec::collect_reverse_alias`). Behind a join of two tables that have a column `a`,
//! two columns are named so, and the filter comes out with the first of them in the place of both:
//! `u.a < t.a` becomes `t.a < t.a`, and its rows are gone.
//!
//! A filter on a key of a semi join goes to either side. On the one whose columns do not come out
//! it takes the column that has the name of the other side's key: with `t.a = u.b` a filter on
//! `t.a` becomes one on `u.a`, if there is one.
//!
//! Owns: [`PushByNames`], which runs the stock rule with a node above each plan whose names are
//! not its columns' own, and above such semi joins; no filter passes that. What the logical
//! optimizer has pushed down before, by qualified names, is not touched by this.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::joins::HashJoinExec;
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
    let are_pairs = plan
        .downcast_ref::<HashJoinExec>()
        .is_none_or(keys_are_pairs);
    Ok(match are_own && are_pairs {
        true => Transformed::no(plan),
        false => Transformed::yes(Arc::new(NoFilters { input: plan })),
    })
}

/// Whether no key of the side that comes out of a semi join has the name of a column of the other
/// side that is not its partner.
fn keys_are_pairs(join: &HashJoinExec) -> bool {
    let is_right = match join.join_type() {
        JoinType::LeftSemi => false,
        JoinType::RightSemi => true,
        _ => return true,
    };
    let other = if is_right { join.left() } else { join.right() };
    let schema = other.schema();
    join.on().iter().all(|(left, right)| {
        let (key, partner) = if is_right {
            (right, left)
        } else {
            (left, right)
        };
        let Some(key) = key.downcast_ref::<Column>() else {
            return true;
        };
        let found = schema.index_of(key.name()).ok();
        let partner = partner.downcast_ref::<Column>().map(Column::index);
        found.is_none() || found == partner
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

    crate::plan_node::runs_input!();
}
