//! What stands in GROUP BY.

use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Select, Value};

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

/// Whether there are rows that add up others, as WITH ROLLUP makes them.
pub(super) fn is_rolled_up(select: &Select) -> bool {
    match &select.group_by {
        GroupByExpr::Expressions(list, modifiers) => {
            let mut keys = list.iter();
            let is_set = |key| {
                matches!(
                    key,
                    &Expr::Rollup(_) | &Expr::Cube(_) | &Expr::GroupingSets(_)
                )
            };
            !modifiers.is_empty() || keys.any(is_set)
        }
        GroupByExpr::All(_) => false,
    }
}

/// The position in the select list that a key is.
pub(in crate::rewrite) fn position(key: &Expr) -> Option<usize> {
    match key {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}
