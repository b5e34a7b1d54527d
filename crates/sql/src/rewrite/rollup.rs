//! GROUP BY ... WITH ROLLUP: the form that the planner knows, and the order of its rows.

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, GroupByWithModifier, Ident, OrderBy, OrderByExpr, OrderByKind,
    OrderByOptions, Query, Select, SelectItem, SetExpr,
};
use mayfly_types::{ErrorCode, MySqlError};

use super::found_columns::finds_column;
use super::grouping::{has_aggregate, position};
use crate::bindings::Bindings;
use crate::parse::parse_expression;
use crate::select_list::{expression_of, is_wildcard};

/// Puts what places and aliases among the keys of WITH ROLLUP stand for in their place, which the
/// planner does in other keys only. Those of aggregates are left, to be refused.
pub(super) fn write_out_keys(select: &mut Select, bindings: &Bindings) {
    let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else {
        return;
    };
    if modifiers.as_slice() != [GroupByWithModifier::Rollup] {
        return;
    }
    let meant = keys.iter().map(|key| meaning(key, select, bindings));
    let meant: Vec<Option<Expr>> = meant.collect();
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else {
        return;
    };
    for (key, meaning) in keys.iter_mut().zip(meant) {
        if let Some(meaning) = meaning {
            *key = meaning;
        }
    }
}

/// What a place or an alias stands for; `None` for any other key.
fn meaning(key: &Expr, select: &Select, bindings: &Bindings) -> Option<Expr> {
    let items = &select.projection;
    let expr = match key {
        Expr::Identifier(name) => items.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias }
                if alias.value.eq_ignore_ascii_case(&name.value)
                    && finds_column(select, &name.value, bindings) == Some(false) =>
            {
                Some(expr)
            }
            _ => None,
        })?,
        key => {
            let before = position(key)?.checked_sub(1)?;
            if items.iter().take(before).any(is_wildcard) {
                return None;
            }
            expression_of(items.get(before)?)?
        }
    };
    (!has_aggregate(expr, &bindings.aggregates)).then(|| match position(expr) {
        // No place any more.
        Some(_) => Expr::Nested(Box::new(expr.clone())),
        None => expr.clone(),
    })
}

/// Gives a query WITH ROLLUP the order that MySQL's has without ORDER BY: by its keys, each sum
/// behind the rows that it adds up. Keys that are places or aliases are left alone.
///
/// # Errors
/// None but for a bug in how expressions are spelled.
pub(super) fn sort(query: &mut Query) -> Result<(), MySqlError> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return Ok(());
    };
    let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else {
        return Ok(());
    };
    let is_alias = |name: &Ident| {
        select.projection.iter().any(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => {
                alias.value.eq_ignore_ascii_case(&name.value)
            }
            _ => false,
        })
    };
    let is_known = |key: &Expr| match key {
        Expr::Value(_) => false,
        Expr::Identifier(name) => !is_alias(name),
        _ => true,
    };
    if modifiers.as_slice() != [GroupByWithModifier::Rollup]
        || query.order_by.is_some()
        || select.distinct.is_some()
        || !keys.iter().all(is_known)
    {
        return Ok(());
    }
    let by = |expr| OrderByExpr {
        expr,
        options: OrderByOptions::default(),
        with_fill: None,
    };
    let mut list = Vec::with_capacity(2 * keys.len());
    for key in keys {
        list.push(by(parse_expression(&format!("GROUPING({key})"))?));
        list.push(by(key.clone()));
    }
    query.order_by = Some(OrderBy {
        kind: OrderByKind::Expressions(list),
        interpolate: None,
    });
    Ok(())
}

/// Turns GROUP BY a, b WITH ROLLUP into the form that the planner knows.
pub(super) fn write_out(group_by: &mut GroupByExpr) -> Result<(), MySqlError> {
    let GroupByExpr::Expressions(list, modifiers) = group_by else {
        return Ok(());
    };
    match modifiers.as_slice() {
        [] => {}
        [GroupByWithModifier::Rollup] => {
            modifiers.clear();
            let sets = std::mem::take(list)
                .into_iter()
                .map(|expr| vec![expr])
                .collect();
            list.push(Expr::Rollup(sets));
        }
        _ => {
            return Err(MySqlError::new(
                ErrorCode::NotSupportedYet,
                &[&"GROUP BY ... WITH (other than ROLLUP)"],
            ));
        }
    }
    Ok(())
}
