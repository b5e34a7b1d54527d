//! Selects that MySQL refuses and DataFusion's planner would take.

use datafusion::sql::sqlparser::ast::{Expr, Select, SelectItem};
use mayfly_types::{ErrorCode, MySqlError};

use crate::source::Source;
use crate::walk;

/// `*` stands at the beginning of a select list only; `t.*` may stand anywhere.
pub(super) fn check_stars(select: &Select, source: &Source) -> Result<(), MySqlError> {
    let others = select.projection.iter().skip(1);
    for item in others {
        if let SelectItem::Wildcard(star) = item {
            return Err(source.syntax_error(star.wildcard_token.0.span.start));
        }
    }
    Ok(())
}

/// HAVING is computed before window functions are, so it may not name one by its alias.
pub(super) fn check_window_aliases(select: &Select) -> Result<(), MySqlError> {
    let Some(having) = &select.having else {
        return Ok(());
    };
    for item in &select.projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else {
            continue;
        };
        let is_window = &mut |expr: &Expr| matches!(expr, Expr::Function(of) if of.over.is_some());
        if !walk::finds(expr, is_window) {
            continue;
        }
        let name = alias.value.to_lowercase();
        let is_alias = &mut |expr: &Expr| match expr {
            Expr::Identifier(ident) => ident.value.to_lowercase() == name,
            _ => false,
        };
        if walk::finds(having, is_alias) {
            let code = ErrorCode::WindowAliasNotAllowed;
            return Err(MySqlError::new(code, &[&alias.value]));
        }
    }
    Ok(())
}
