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
//! Below a projection a filter has what computes its columns in the place of them: in a chain of
//! `SELECT a + a AS a FROM (...)` it doubles at each one.
//!
//! Owns: [`PushByNames`], which runs the stock rule with a node above each plan whose names are
//! not its columns' own, above such semi joins, and above projections below which filters would
//! grow too large; no filter passes that. What the logical optimizer has pushed down before, by
//! qualified names, is not touched by this.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{
    ReplaceChildrenOptions, replace_children_if_necessary,
};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

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
        let (stopped, is_stopped, _) = with_stops(plan)?;
        let plan = self.0.optimize(stopped, config)?;
        match is_stopped {
            true => plan.transform_up(go_on).data(),
            false => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Filters may become so many times as large on their way down.
const GROWTH_MAX: u64 = 64;
/// They may also become as large as this where the projections are not much smaller themselves.
const WRITTEN_MAX: u64 = 1 << 10;
const COPIES_MAX: u64 = 4;

/// What a filter on a column becomes below the projections down to where none passes.
#[derive(Clone, Copy)]
struct Growth {
    /// The nodes of the largest of the projections' expressions, one for each projection.
    plain: u64,
    /// Those of the largest expression with all columns written out.
    written: u64,
}

impl Growth {
    const NONE: Growth = Growth {
        plain: 0,
        written: 1,
    };

    fn is_too_large(self) -> bool {
        let copies_max = self.plain.saturating_mul(COPIES_MAX);
        self.written > WRITTEN_MAX || self.written > copies_max.max(GROWTH_MAX)
    }

    /// Through one projection more.
    fn through(self, projection: &ProjectionExec) -> Result<Growth> {
        let mut largest = Growth::NONE;
        for projected in projection.expr() {
            let (mut plain, mut columns) = (0_u64, 0_u64);
            projected.expr.apply(|part| {
                plain += 1;
                columns += u64::from(part.is::<Column>());
                Ok(TreeNodeRecursion::Continue)
            })?;
            let written = columns.saturating_mul(self.written) + (plain - columns);
            largest.plain = largest.plain.max(plain);
            largest.written = largest.written.max(written);
        }
        Ok(Growth {
            plain: self.plain.saturating_add(largest.plain),
            written: largest.written,
        })
    }
}

/// A plan with a node above each one that no filter may pass, whether there is any, and what a
/// filter becomes below it.
fn with_stops(plan: Arc<dyn ExecutionPlan>) -> Result<(Arc<dyn ExecutionPlan>, bool, Growth)> {
    let mut growth = Growth::NONE;
    let mut is_stopped = false;
    let mut inputs = Vec::new();
    for input in plan.children() {
        let (input, stops, below) = with_stops(Arc::clone(input))?;
        is_stopped |= stops;
        growth.plain = growth.plain.max(below.plain);
        growth.written = growth.written.max(below.written);
        inputs.push(input);
    }
    let plan = match is_stopped {
        true => replace_children_if_necessary(plan, inputs)?,
        false => plan,
    };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        growth = growth.through(projection)?;
    }
    Ok(match is_stop(&plan) || growth.is_too_large() {
        true => (Arc::new(NoFilters { input: plan }), true, Growth::NONE),
        false => (plan, is_stopped, growth),
    })
}

/// Whether the names of a plan's columns do not tell these apart.
fn is_stop(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = plan.schema();
    let mut names = HashSet::with_capacity(schema.fields().len());
    let are_own = schema
        .fields()
        .iter()
        .all(|field| names.insert(field.name()));
    let are_pairs = plan
        .downcast_ref::<HashJoinExec>()
        .is_none_or(keys_are_pairs);
    !are_own || !are_pairs
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

    crate::plan_node::runs_input!();
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::PhysicalExpr;
    use datafusion::physical_expr::expressions::BinaryExpr;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::projection::ProjectionExpr;

    use super::*;

    /// Projections over one another of the sum of so many times the only column.
    fn chain(depth: usize, terms: usize) -> Arc<dyn ExecutionPlan> {
        let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
        let empty: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(Arc::new(schema)));
        let column = || -> Arc<dyn PhysicalExpr> { Arc::new(Column::new("a", 0)) };
        (0..depth).fold(empty, |input, _| {
            let sum = (1..terms).fold(column(), |sum, _| {
                Arc::new(BinaryExpr::new(sum, Operator::Plus, column()))
            });
            let projected = ProjectionExpr {
                expr: sum,
                alias: "a".to_owned(),
            };
            Arc::new(ProjectionExec::try_new(vec![projected], input).unwrap())
        })
    }

    #[test]
    fn filters_do_not_pass_projections_that_make_them_large() {
        let check = |depth: usize, terms: usize, expect: bool| {
            let (plan, is_stopped, _) = with_stops(chain(depth, terms)).unwrap();
            assert_eq!(is_stopped, expect, "{depth} of {terms}");
            let nodes = plan.transform_up(go_on).unwrap();
            assert_eq!(nodes.transformed, expect);
        };
        check(0, 2, false);
        check(5, 2, false);
        check(6, 2, true);
        check(1000, 1, false);
        // A long one alone is as long as it was written.
        check(1, 100, false);
        check(2, 100, true);
    }
}
