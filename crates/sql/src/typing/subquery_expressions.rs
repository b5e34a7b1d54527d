//! Expressions that are subqueries, or hold some.

use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::{Expr, Subquery};

/// Whether an expression has a subquery of any kind.
pub(crate) fn has_subquery(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| Ok(subquery_of(expr).is_some()))
}

/// Whether an expression has a subquery that names a column of the rows around it.
pub(super) fn has_correlated(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| Ok(subquery_of(expr).is_some_and(is_correlated)))
}

pub(super) fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

/// The subquery that an expression is, with or without a value before it.
pub(crate) fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(query) => Some(&query.subquery),
        Expr::SetComparison(comparison) => Some(&comparison.subquery),
        _ => None,
    }
}

/// An expression that is one over a subquery, over another one.
pub(crate) fn with_subquery(expr: Expr, subquery: Subquery) -> Expr {
    match expr {
        Expr::ScalarSubquery(_) => Expr::ScalarSubquery(subquery),
        Expr::Exists(exists) => Expr::Exists(Exists { subquery, ..exists }),
        Expr::InSubquery(query) => Expr::InSubquery(InSubquery { subquery, ..query }),
        Expr::SetComparison(comparison) => Expr::SetComparison(SetComparison {
            subquery,
            ..comparison
        }),
        other => other,
    }
}
