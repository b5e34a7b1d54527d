//! What the query of a view is made of, as far as changes of its rows ask: windows, queries inside,
//! and the order, which says what are the first rows for a change with LIMIT.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem, Value,
};

use crate::select_list::expression_of;
use crate::walk;

/// The order of a view's rows, over columns of its table that are made names alone by `own`;
/// `None` where it cannot be told.
pub(super) fn order_of(
    query: &Query,
    select: &Select,
    own: &mut impl FnMut(&Expr) -> Expr,
) -> Option<Vec<OrderByExpr>> {
    let mut order = Vec::new();
    for by in ordered_by(query)? {
        let item = match &by.expr {
            Expr::Value(value) => match &value.value {
                Value::Number(place, _) => {
                    let place = place.parse::<usize>().ok()?.checked_sub(1)?;
                    select.projection.get(place).and_then(expression_of)
                }
                _ => None,
            },
            Expr::Identifier(name) => named_item(select, name),
            _ => None,
        };
        // Whether such a name means a column of the table only that table can tell.
        let is_item = &mut |expr: &Expr| match expr {
            Expr::Identifier(name) => named_item(select, name).is_some(),
            _ => false,
        };
        if item.is_none() && (walk::finds(&by.expr, is_item) || walk::has_subquery(&by.expr)) {
            return None;
        }
        let expr = own(item.unwrap_or(&by.expr));
        // A constant orders nothing, and a number would be the place of a column.
        if !matches!(expr, Expr::Value(_)) {
            order.push(OrderByExpr { expr, ..by.clone() });
        }
    }
    Some(order)
}

/// What a query is ordered by; `None` for what is no list.
fn ordered_by(query: &Query) -> Option<&[OrderByExpr]> {
    match &query.order_by {
        None => Some(&[]),
        Some(order_by) => match &order_by.kind {
            OrderByKind::Expressions(list) => Some(list),
            OrderByKind::All(_) => None,
        },
    }
}

/// The expression of a select list that has this name as its alias.
fn named_item<'a>(select: &'a Select, name: &Ident) -> Option<&'a Expr> {
    select.projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } => alias
            .value
            .eq_ignore_ascii_case(&name.value)
            .then_some(expr),
        _ => None,
    })
}

/// Whether windows are computed for the rows or for their order.
pub(super) fn has_windows(query: &Query, select: &Select) -> bool {
    let items = select.projection.iter().filter_map(expression_of);
    let order = ordered_by(query).unwrap_or_default();
    let is_window = &mut |expr: &Expr| matches!(expr, Expr::Function(f) if f.over.is_some());
    { items.chain(order.iter().map(|by| &by.expr)) }.any(|item| walk::finds(item, is_window))
}

/// Whether there are queries inside of a SELECT.
pub(super) fn has_subquery(select: &Select) -> bool {
    let mut items = select.projection.iter().filter_map(expression_of);
    items.any(walk::has_subquery) || select.selection.as_ref().is_some_and(walk::has_subquery)
}
