//! Whether the subqueries of a plan stand where they can be run.
//!
//! What is allowed says DataFusion's `check_subquery_expr`. It also checks whatever stands inside
//! the subquery, so each is shown to it without the subqueries of its own, which have been checked
//! before: every node of a plan is seen once.

use std::borrow::Cow;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, InvariantLevel, LogicalPlan, check_subquery_expr, lit};

use super::watch::check;
use crate::typing::{has_subquery, subquery_of};

/// Checks the subqueries of an analyzed plan, and its nodes that are not DataFusion's.
///
/// # Errors
/// Those of DataFusion for subqueries that it cannot run; those of the watch.
pub(super) fn check_subqueries(plan: &LogicalPlan) -> Result<()> {
    plan.apply(|node| {
        check()?;
        if let LogicalPlan::Extension(extension) = node {
            extension.node.check_invariants(InvariantLevel::Always)?;
            extension
                .node
                .check_invariants(InvariantLevel::Executable)?;
        }
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Some(subquery) = subquery_of(part) {
                    check_subqueries(&subquery.subquery)?;
                    let alone = without_subqueries(&subquery.subquery)?;
                    check_subquery_expr(node, &alone, part)?;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// Whether any expression of a plan has a subquery.
pub(super) fn has_subqueries(plan: &LogicalPlan) -> bool {
    let in_node = |node: &LogicalPlan| {
        let mut found = false;
        node.apply_expressions(|expression| {
            found = has_subquery(expression)?;
            Ok(match found {
                true => TreeNodeRecursion::Stop,
                false => TreeNodeRecursion::Continue,
            })
        })?;
        Ok(found)
    };
    // Looking does not fail.
    plan.exists(in_node).unwrap_or(true)
}

/// A plan with constants in the place of its subqueries.
fn without_subqueries(plan: &LogicalPlan) -> Result<Cow<'_, LogicalPlan>> {
    if !has_subqueries(plan) {
        return Ok(Cow::Borrowed(plan));
    }
    let constant = |part: Expr| {
        Ok(match subquery_of(&part) {
            Some(_) => Transformed::yes(lit(true)),
            None => Transformed::no(part),
        })
    };
    // Down: the operand of IN goes with it, as it may have subqueries too.
    let plan = plan.clone().transform_up(|node| {
        node.map_expressions(|expression| expression.transform_down(constant))
    })?;
    Ok(Cow::Owned(plan.data))
}
