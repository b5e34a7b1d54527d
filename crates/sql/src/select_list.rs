//! What stands in a select list.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, SelectItem, SelectItemQualifiedWildcardKind,
};

use crate::references::is_clock;

/// Bytes of a label; what is longer is cut, as in MySQL and MariaDB. Drivers read it as one packet.
const LABEL_BYTES_MAX: usize = 255;

/// So much of a label as is shown.
pub fn shown(label: &str) -> &str {
    &label[..label.floor_char_boundary(LABEL_BYTES_MAX)]
}

/// Whether an item is `*` or `t.*`.
pub(crate) fn is_wildcard(item: &SelectItem) -> bool {
    matches!(
        item,
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
    )
}

/// The expression of an item, with a name or without; `None` for `*` and `t.*`.
pub fn expression_of(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// The parts of the name of a column that an expression is, in parentheses or not.
pub(crate) fn column(expr: &Expr) -> Option<&[Ident]> {
    let parts = match expr {
        Expr::Nested(inner) => return column(inner),
        Expr::Identifier(ident) if is_clock(ident) => return None,
        Expr::Identifier(ident) => std::slice::from_ref(ident),
        Expr::CompoundIdentifier(parts) => parts.as_slice(),
        _ => return None,
    };
    let is_column = |first: &Ident| first.quote_style.is_some() || !first.value.starts_with('@');
    parts.first().is_some_and(is_column).then_some(parts)
}

/// The table of `t.*` and `d.t.*`.
pub(crate) fn table_of_star(item: &SelectItem) -> Option<&ObjectName> {
    match item {
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            Some(name)
        }
        _ => None,
    }
}
