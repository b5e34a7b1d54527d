//! Selects that MySQL refuses and DataFusion's planner would take, or refuse without a number.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    GroupByWithModifier, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, WindowType,
};
use mayfly_types::{COLUMNS_MAX, ErrorCode, MySqlError};

use crate::bindings::Bindings;
use crate::select_list::expression_of;
use crate::walk;

/// # Errors
/// 1117 for a select list of more columns than a table has.
pub(super) fn check_columns(select: &Select) -> Result<(), MySqlError> {
    match select.projection.len() > COLUMNS_MAX {
        true => Err(MySqlError::new(ErrorCode::TooManyColumns, &[])),
        false => Ok(()),
    }
}

/// ORDER BY behind a set operation names columns of its result, which are those of the first query.
pub(super) fn check_order_of_set_operation(query: &Query) -> Result<(), MySqlError> {
    let (SetExpr::SetOperation { left, .. }, Some(order_by)) =
        (query.body.as_ref(), &query.order_by)
    else {
        return Ok(());
    };
    let OrderByKind::Expressions(list) = &order_by.kind else {
        return Ok(());
    };
    let Some(columns) = column_names(left) else {
        return Ok(());
    };
    let mut unknown = None;
    for by in list {
        walk::finds(&by.expr, &mut |expr| {
            if let Expr::Identifier(name) = expr
                && !columns
                    .iter()
                    .any(|column| column.eq_ignore_ascii_case(&name.value))
            {
                unknown.get_or_insert_with(|| name.value.clone());
            }
            unknown.is_some()
        });
    }
    match unknown {
        Some(name) => Err(MySqlError::new(
            ErrorCode::UnknownColumn,
            &[&name, &"order clause"],
        )),
        None => Ok(()),
    }
}

/// The names that a query gives to its columns, where its own text says them all.
fn column_names(body: &SetExpr) -> Option<Vec<String>> {
    match body {
        SetExpr::SetOperation { left, .. } => column_names(left),
        SetExpr::Query(query) => column_names(&query.body),
        SetExpr::Select(select) => {
            let names = select.projection.iter().map(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.value.clone()),
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                    parts.last().map(|name| name.value.clone())
                }
                // `*`, and what goes by its text, which a quoted name may be.
                _ => None,
            });
            names.collect()
        }
        _ => None,
    }
}

/// The keys of WITH ROLLUP: the planner tells its sums apart by a number that has a bit for each.
const ROLLUP_KEYS_MAX: usize = 64;

/// GROUPING tells of what ROLLUP adds up.
pub(super) fn check_grouping(select: &Select) -> Result<(), MySqlError> {
    if let GroupByExpr::Expressions(keys, modifiers) = &select.group_by
        && modifiers.contains(&GroupByWithModifier::Rollup)
    {
        if keys.len() > ROLLUP_KEYS_MAX {
            let what = format!("GROUP BY ... WITH ROLLUP of more than {ROLLUP_KEYS_MAX} keys");
            return Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]));
        }
        return Ok(());
    }
    let is_grouping = &mut |expr: &Expr| match expr {
        Expr::Function(function) => function.name.to_string().eq_ignore_ascii_case("grouping"),
        _ => false,
    };
    let items = select.projection.iter().filter_map(expression_of);
    for expr in items.chain(&select.having) {
        if walk::finds(expr, is_grouping) {
            return Err(MySqlError::new(ErrorCode::InvalidGroupFunction, &[]));
        }
    }
    Ok(())
}

/// The window function that an expression calls outside of its subqueries.
fn window_function(expr: &Expr) -> Option<String> {
    let mut found = None;
    walk::finds(expr, &mut |expr| match expr {
        Expr::Function(function) if function.over.is_some() => {
            found = Some(function.name.to_string().to_ascii_lowercase());
            true
        }
        _ => false,
    });
    found
}

/// Whether an expression is a call that aggregates.
pub(crate) fn is_aggregate(expr: &Expr, aggregates: &HashSet<String>) -> bool {
    matches!(expr, Expr::Function(function)
        if aggregates.contains(&function.name.to_string().to_ascii_lowercase()))
}

/// Whether a select has GROUP BY.
pub(crate) fn is_grouped(select: &Select) -> bool {
    match &select.group_by {
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        GroupByExpr::All(_) => true,
    }
}

/// Whether rows of a select are no rows of its tables: it groups, aggregates or numbers them.
pub(crate) fn groups(select: &Select, aggregates: &HashSet<String>) -> bool {
    let computes = &mut |expr: &Expr| {
        is_aggregate(expr, aggregates)
            || matches!(expr, Expr::Function(function) if function.over.is_some())
    };
    let mut computed = { select.projection.iter() }
        .filter_map(expression_of)
        .chain(&select.having);
    is_grouped(select) || computed.any(|expr| walk::finds(expr, computes))
}

/// Refuses an expression that aggregates outside of its subqueries.
pub(crate) fn check_no_aggregate(
    expr: &Expr,
    aggregates: &HashSet<String>,
) -> Result<(), MySqlError> {
    match walk::finds(expr, &mut |expr| is_aggregate(expr, aggregates)) {
        true => Err(MySqlError::new(ErrorCode::InvalidGroupFunction, &[])),
        false => Ok(()),
    }
}

/// Refuses an expression that calls a window function.
pub(crate) fn check_no_window(expr: &Expr) -> Result<(), MySqlError> {
    match window_function(expr) {
        Some(name) => Err(MySqlError::new(ErrorCode::WindowNotAllowed, &[&name])),
        None => Ok(()),
    }
}

/// Window functions stand in the select list and in ORDER BY, and not in each other.
pub(super) fn check_windows(select: &Select, bindings: &Bindings) -> Result<(), MySqlError> {
    let keys = match &select.group_by {
        GroupByExpr::Expressions(list, _) => list.as_slice(),
        GroupByExpr::All(_) => &[],
    };
    let conditions = { select.selection.iter() }.chain(&select.having);
    conditions.chain(keys).try_for_each(check_no_window)?;
    let mut orders = HashSet::new();
    for item in &select.projection {
        let Some(expr) = expression_of(item) else {
            continue;
        };
        if window_function(expr).is_none() {
            continue;
        }
        let mut refused = Ok(());
        walk::finds(expr, &mut |expr| {
            if let Expr::Function(function) = expr {
                refused = check_nesting(function, bindings);
                orders.extend(function.over.as_ref().map(order_of));
            }
            refused.is_err()
        });
        refused?;
        if let SelectItem::ExprWithAlias { alias, .. } = item
            && names(select, keys, &alias.value, bindings)
        {
            let code = ErrorCode::WindowAliasNotAllowed;
            return Err(MySqlError::new(code, &[&alias.value]));
        }
    }
    match orders.len() > ORDERS_MAX {
        true => Err(MySqlError::new(ErrorCode::StackOverrun, &[])),
        false => Ok(()),
    }
}

/// Windows of different keys that a select list may have: each is a node of the plan with all
/// columns of those below, and the planner goes through all of them for each item of the list.
const ORDERS_MAX: usize = 300;

/// What tells the windows of one order: their keys, or their name.
fn order_of(over: &WindowType) -> (Vec<Expr>, Vec<OrderByExpr>) {
    match over {
        WindowType::WindowSpec(window) => (window.partition_by.clone(), window.order_by.clone()),
        WindowType::NamedWindow(name) => (vec![Expr::Identifier(name.clone())], Vec::new()),
    }
}

/// What an aggregate or a window function is computed from is computed before it.
fn check_nesting(function: &Function, bindings: &Bindings) -> Result<(), MySqlError> {
    let name = function.name.to_string().to_lowercase();
    if function.over.is_none() && !bindings.aggregates.contains(&name) {
        return Ok(());
    }
    if let FunctionArguments::List(list) = &function.args {
        for argument in &list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument {
                check_no_window(argument)?;
            }
        }
    }
    if let Some(WindowType::WindowSpec(window)) = &function.over {
        let keys = window.order_by.iter().map(|key| &key.expr);
        let mut keys = window.partition_by.iter().chain(keys);
        if keys.any(|key| window_function(key).is_some()) {
            let code = ErrorCode::NestedWindow;
            return Err(MySqlError::new(code, &[&"<unnamed window>"]));
        }
    }
    Ok(())
}

/// Whether HAVING or GROUP BY names an item of the select list. A column goes before it in GROUP
/// BY.
fn names(select: &Select, keys: &[Expr], alias: &str, bindings: &Bindings) -> bool {
    let name = alias.to_lowercase();
    let is_alias = |expr: &Expr| match expr {
        Expr::Identifier(ident) => ident.value.to_lowercase() == name,
        _ => false,
    };
    let having = { select.having.iter() }.any(|having| walk::finds(having, &mut |e| is_alias(e)));
    let is_column = || {
        let mut columns = bindings.tables.values().flat_map(|table| &table.columns);
        columns.any(|column| column.to_lowercase() == name)
    };
    having || keys.iter().any(is_alias) && !is_column()
}
