//! What a query is grouped by.

use std::collections::{HashMap, HashSet};

use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Select, SelectItem, Value};
use mayfly_types::{ErrorCode, MySqlError};

use super::columns::relations;
use super::{Known, has_aggregate};
use crate::select_list::expression_of;
use crate::walk;

/// Refuses keys that are aggregates, or that stand for one.
pub(super) fn check_keys(
    select: &Select,
    aliases: &HashMap<String, Expr>,
    known: &Known<'_>,
) -> Result<(), MySqlError> {
    let aggregates = &known.bindings.aggregates;
    let spelled = |name: &str| {
        known
            .spellings
            .get(name)
            .cloned()
            .unwrap_or(name.to_owned())
    };
    let columns = relations(select, known.bindings);
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

/// The expressions of GROUP BY, those of ROLLUP included.
pub(super) fn flat_keys(select: &Select) -> Vec<&Expr> {
    let GroupByExpr::Expressions(list, _) = &select.group_by else {
        return Vec::new();
    };
    list.iter()
        .flat_map(|expr| match expr {
            Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                sets.iter().flatten().collect::<Vec<_>>()
            }
            other => vec![other],
        })
        .collect()
}

/// The position in the select list that a key is.
fn position(key: &Expr) -> Option<usize> {
    match key {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
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
