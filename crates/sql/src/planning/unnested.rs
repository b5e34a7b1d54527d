//! Whether the rules have made a plan that can run of one with correlated subqueries.
//!
//! A rule that finds no way leaves a subquery where it is, or moves a condition to where a column
//! that it names does not come. The planner of operators would say so, at the end.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::utils::merge_schema;

use super::optimize::optimized;
use super::watch::check;
use crate::apply::{is_lateral, names_outer_row};
use crate::typing::refused;

/// The same as [`optimized`], where no subquery is left that names rows around it.
///
/// # Errors
/// As of [`optimized`], and 1235 where a subquery is left.
pub(crate) fn unnested(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = optimized(state, plan)?;
    plan.apply_with_subqueries(|node| {
        check()?;
        // One of LATERAL; those of expressions that name no outer row are run before the plan.
        if is_lateral(node) {
            return Err(refused());
        }
        let inputs = merge_schema(&node.inputs());
        let is_leaf = node.inputs().is_empty();
        node.apply_expressions(|expr| {
            let columns = expr.column_refs().into_iter();
            let mut lost = columns.filter(|column| inputs.maybe_index_of_column(column).is_none());
            let is_lost = !is_leaf && lost.next().is_some();
            match is_lost || expr.contains_outer() || names_outer_row(expr)? {
                true => Err(refused()),
                false => Ok(TreeNodeRecursion::Continue),
            }
        })
    })?;
    Ok(plan)
}
