//! What a query is grouped by.

use std::collections::{HashMap, HashSet};

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Select, SelectItem, UnaryOperator, Value,
};
use mayfly_types::{ErrorCode, MySqlError};

use super::columns::relations;
use super::context::{GroupingContext, has_aggregate};
use super::group_by::{flat_keys, position};
use crate::bindings::Bindings;
use crate::rewrite::call;
use crate::rewrite::found_columns::finds_column;
use crate::select_list::expression_of;
use crate::walk;

/// Refuses keys that are aggregates, or that stand for one.
pub(super) fn check_keys(
    select: &Select,
    aliases: &HashMap<String, Expr>,
    context: &GroupingContext<'_>,
) -> Result<(), MySqlError> {
    let aggregates = &context.bindings.aggregates;
    let spelled = |name: &str| {
        context
            .spellings
            .get(name)
            .cloned()
            .unwrap_or(name.to_owned())
    };
    let columns = relations(select, context.bindings);
    let is_column = |name: &str| {
        columns.as_ref().is_none_or(|tables| {
            let mut tables = tables.iter().map(|(.., table)| table);
            tables.any(|table| table.columns.iter().any(|c| c.to_lowercase() == name))
        })
    };
    let unknown = |name: &str| {
        let arguments: [&dyn std::fmt::Display; 2] = [&name, &"group statement"];
        Err(MySqlError::new(ErrorCode::UnknownColumn, &arguments))
    };
    let wildcard = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
        )
    };
    for key in flat_keys(select) {
        if let Some(position) = position(key) {
            if select.projection.iter().any(wildcard) {
                continue;
            }
            let item = position
                .checked_sub(1)
                .and_then(|index| select.projection.get(index));
            let Some(item) = item else {
                return unknown(&position.to_string());
            };
            if has_aggregate(item, aggregates) {
                let name = match item {
                    SelectItem::ExprWithAlias { alias, .. } => spelled(&alias.value),
                    other => other.to_string(),
                };
                return Err(MySqlError::new(ErrorCode::CantGroupOn, &[&name]));
            }
        } else if let Expr::Identifier(ident) = key {
            let meaning = aliases.get(&ident.value);
            if !is_column(&ident.value)
                && meaning.is_some_and(|expr| has_aggregate(expr, aggregates))
            {
                let name = spelled(&ident.value);
                return Err(MySqlError::new(ErrorCode::CantGroupOn, &[&name]));
            }
        } else if matches!(key, Expr::UnaryOp { .. }) && is_whole_number(key) {
            return unknown(&key.to_string());
        } else if has_aggregate(key, aggregates) {
            return Err(MySqlError::new(ErrorCode::InvalidGroupFunction, &[]));
        }
    }
    Ok(())
}

/// What is grouped by: the expressions, and what positions and aliases among them stand for.
pub(super) fn keys(select: &Select, aliases: &HashMap<String, Expr>) -> HashSet<String> {
    let mut keys = HashSet::new();
    for expr in flat_keys(select) {
        keys.insert(key(expr));
        let item = position(expr).and_then(|at| select.projection.get(at.checked_sub(1)?));
        if let Some(expr) = item.and_then(expression_of) {
            keys.insert(key(expr));
        }
        if let Expr::Identifier(ident) = expr
            && let Some(expr) = aliases.get(&ident.value)
        {
            keys.insert(key(expr));
        }
    }
    keys
}

/// Takes keys that stand for a number out, as `k` does beside `100 AS k`: the planner would take
/// the number for a place. What is grouped by such keys alone is one group if there are rows, which
/// a constant text makes as well.
pub(super) fn write_out_numbers(
    select: &mut Select,
    aliases: &HashMap<String, Expr>,
    bindings: &Bindings,
) {
    let GroupByExpr::Expressions(keys, _) = &select.group_by else {
        return;
    };
    let mut others = Vec::with_capacity(keys.len());
    for key in keys {
        let is_column = match key {
            Expr::Identifier(ident) if aliases.get(&ident.value).is_some_and(is_whole_number) => {
                finds_column(select, &ident.value, bindings)
            }
            _ => Some(true),
        };
        match is_column {
            Some(true) => others.push(key.clone()),
            Some(false) => {}
            // The planner knows; a call is no place, whatever is in it.
            None => others.push(call("coalesce", vec![key.clone()])),
        }
    }
    if others.is_empty() && !keys.is_empty() {
        others.push(constant());
    }
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        *keys = others;
    }
}

/// A key that all rows have in common.
pub(super) fn constant() -> Expr {
    let constant = Value::SingleQuotedString("constant".to_owned());
    Expr::Value(constant.into())
}

/// Whether an expression is a whole number, with a sign or without.
fn is_whole_number(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_whole_number(inner),
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => is_whole_number(expr),
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.bytes().all(|digit| digit.is_ascii_digit()),
            _ => false,
        },
        _ => false,
    }
}

/// The text by which expressions are compared.
pub(super) fn key(expr: &Expr) -> String {
    let mut bare = expr.clone();
    walk::change_expressions(&mut bare, &mut |expr| match expr {
        Expr::CompoundIdentifier(parts) => {
            if let Some(last) = parts.pop() {
                *expr = Expr::Identifier(last);
            }
        }
        Expr::Nested(inner) => {
            *expr = std::mem::replace(inner, Expr::Value(Value::Null.into()));
        }
        _ => {}
    });
    bare.to_string()
}
