//! Names of columns as they are planned.

use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem};

/// Columns are compared without regard to case, so all are planned in lower case.
pub(crate) fn lower(ident: &mut Ident) {
    ident.value = ident.value.to_lowercase();
    ident.quote_style = Some('`');
}

/// The column that a select item names without more, if it is one.
pub(crate) fn plain_column(item: &SelectItem) -> Option<&Ident> {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(ident)) => Some(ident),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last(),
        _ => None,
    }
}
