//! The terms of the filters above a node.

use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The terms of the filters that a node is, and what is below all of them. Those of the innermost
/// filter are the first, as the rule that pushes filters down puts them together.
pub(super) fn filter_terms(node: &LogicalPlan) -> (Vec<&Expr>, &LogicalPlan) {
    let mut below = node;
    let mut conditions = Vec::new();
    while let LogicalPlan::Filter(filter) = below {
        conditions.push(&filter.predicate);
        below = &filter.input;
    }
    let inner_first = conditions.into_iter().rev();
    (inner_first.flat_map(split_conjunction).collect(), below)
}
