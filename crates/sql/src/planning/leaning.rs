//! Conditions of many terms, kept shallow between the rules.
//!
//! The parser makes a shallow tree of a long chain of ANDs. Rules that take conditions apart put
//! them together again term by term, which leans to the left and is as deep as the terms are many.
//! The simplifier looks through all that is below each AND for the other side: the square of the
//! terms. A tree that is shallow has them below few nodes.
//!
//! **Never** changes the order of terms, nor which there are. **Cost**: a look at a few nodes of
//! each condition; linear in the terms where there are many.

use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

use crate::shallow;

/// How deep a chain of ANDs may lean to a side; a shallow tree of all the terms that a text has
/// room for is less deep.
const DEPTH_MAX: usize = 4 * shallow::LEANING_MAX;

/// A node whose own condition is shallow.
pub(super) fn without_leaning(node: LogicalPlan) -> LogicalPlan {
    match node {
        LogicalPlan::Filter(mut filter) if leans(&filter.predicate) => {
            filter.predicate = made_shallow(filter.predicate);
            LogicalPlan::Filter(filter)
        }
        LogicalPlan::Join(mut join) if join.filter.as_ref().is_some_and(leans) => {
            join.filter = join.filter.map(made_shallow);
            LogicalPlan::Join(join)
        }
        node => node,
    }
}

/// Whether a condition is a long chain of ANDs on its left or its right side.
fn leans(condition: &Expr) -> bool {
    let is_deep = |side: fn(&BinaryExpr) -> &Expr| {
        let mut expr = condition;
        let mut depth = 0;
        while let Expr::BinaryExpr(both) = expr
            && both.op == Operator::And
            && depth <= DEPTH_MAX
        {
            expr = side(both);
            depth += 1;
        }
        depth > DEPTH_MAX
    };
    is_deep(|both| &both.left) || is_deep(|both| &both.right)
}

fn made_shallow(condition: Expr) -> Expr {
    let terms = split_conjunction_owned(condition);
    // There is at least one term.
    shallow::joined(terms, Expr::and).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::utils::{conjunction, split_conjunction};
    use datafusion::logical_expr::{LogicalPlanBuilder, col, lit};

    use super::*;

    /// How many ANDs are above the deepest term.
    fn depth(condition: &Expr) -> usize {
        match condition {
            Expr::BinaryExpr(both) if both.op == Operator::And => {
                1 + depth(&both.left).max(depth(&both.right))
            }
            _ => 0,
        }
    }

    #[test]
    fn long_chains_become_shallow_and_keep_their_order() {
        for (count, deep) in [
            (2, 1),
            (65, 64),
            (66, shallow::depth(66)),
            (2000, shallow::depth(2000)),
        ] {
            let terms: Vec<Expr> = { 0..count }
                .map(|term| col("column1").not_eq(lit(i64::from(term))))
                .collect();
            let rows = LogicalPlanBuilder::values(vec![vec![lit(1_i64)]]).unwrap();
            let filter = rows.filter(conjunction(terms.clone()).unwrap()).unwrap();
            let LogicalPlan::Filter(filter) = without_leaning(filter.build().unwrap()) else {
                panic!("a filter");
            };
            let kept: Vec<Expr> = { split_conjunction(&filter.predicate).into_iter() }
                .cloned()
                .collect();
            assert_eq!((kept, depth(&filter.predicate)), (terms, deep), "{count}");
        }
    }
}
