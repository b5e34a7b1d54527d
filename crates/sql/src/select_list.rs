//! What stands in a select list.

use datafusion::sql::sqlparser::ast::{Expr, SelectItem};

/// Whether an item is `*` or `t.*`.
pub(crate) fn is_wildcard(item: &SelectItem) -> bool {
    matches!(
        item,
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
    )
}

/// The expression of an item, with a name or without; `None` for `*` and `t.*`.
pub(crate) fn expression_of(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}
