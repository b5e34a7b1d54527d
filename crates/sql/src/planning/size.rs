//! How much memory a plan takes.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use super::watch::{check, hold_bytes};

/// What a node takes, with its copy in the plan before a rule and its operator in the physical
/// plan.
const NODE_BYTES: u64 = 2 << 10;
/// The same for one of its columns, and for a node of an expression.
const COLUMN_BYTES: u64 = 64;
pub(super) const EXPRESSION_BYTES: u64 = 512;
/// After so much the watch is told: the tree may be far larger than the text that it came from,
/// since a common table expression is a part of it wherever it is named.
const TOLD_EVERY_BYTES: u64 = 4 << 20;

/// Adds up what a plan takes, and tells the watch of the thread.
///
/// # Errors
/// Those of the watch.
pub fn hold(plan: &LogicalPlan) -> Result<()> {
    let mut bytes = 0;
    let mut told = 0;
    plan.apply_with_subqueries(|node| {
        check()?;
        bytes += NODE_BYTES + COLUMN_BYTES * node.schema().fields().len() as u64;
        node.apply_expressions(|expression| {
            expression.apply(|_| {
                bytes += EXPRESSION_BYTES;
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        if bytes - told > TOLD_EVERY_BYTES {
            told = bytes;
            hold_bytes(bytes)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    hold_bytes(bytes)
}
