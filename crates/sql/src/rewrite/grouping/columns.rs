//! The columns of FROM, and the errors that name them.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Select, SelectItem, SelectItemQualifiedWildcardKind,
};
use mayfly_types::{ErrorCode, MySqlError};

use super::context::aliases;
use super::group_by::flat_keys;
use super::tables::Table;
use crate::bindings::{Bindings, BoundTable, FILES};
use crate::rewrite::labels::again;
use crate::rewrite::relation::base_table;

/// The tables of FROM: alias, database, name, columns; `None` if there are others than base tables.
pub(in crate::rewrite) fn relations<'a>(
    select: &Select,
    bindings: &'a Bindings,
) -> Option<Vec<(String, String, String, &'a BoundTable)>> {
    let factors = select.from.iter().flat_map(|table| {
        std::iter::once(&table.relation).chain(table.joins.iter().map(|j| &j.relation))
    });
    factors.map(|factor| base_table(factor, bindings)).collect()
}

/// `*` in a grouped query, column by column, so that each can be wrapped; not that of tables whose
/// columns cannot be told. No two columns of a plan have one name: of those that share one, the
/// first keeps it.
pub(super) fn expand_wildcards(select: &mut Select, tables: &[Table<'_>]) {
    let mut projection = Vec::new();
    let named = { select.projection.iter() }.filter_map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(column) => Some(name_of(column)),
        _ => None,
    });
    let mut taken: HashSet<String> = named.collect();
    for item in std::mem::take(&mut select.projection) {
        let only = match &item {
            SelectItem::Wildcard(_) => None,
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                name.0
                    .last()
                    .and_then(|part| part.as_ident())
                    .map(|ident| ident.value.clone())
            }
            _ => {
                projection.push(item);
                continue;
            }
        };
        let is_meant = |table: &&Table<'_>| only.is_none() || table.alias == only;
        let meant = { tables.iter().filter(is_meant) }
            .map(|table| Some((table.alias.as_ref()?, table.bound?)))
            .collect::<Option<Vec<_>>>();
        let Some(meant) = meant else {
            projection.push(item);
            continue;
        };
        for (alias, bound) in meant {
            for column in bound.columns.iter().filter(|column| bound.shows(column)) {
                let name = column.to_lowercase();
                let expr = Expr::CompoundIdentifier(vec![
                    Ident::with_quote('`', alias),
                    Ident::with_quote('`', &name),
                ]);
                projection.push(match taken.insert(name) {
                    true => SelectItem::UnnamedExpr(expr),
                    false => SelectItem::ExprWithAlias {
                        expr,
                        alias: Ident::with_quote('`', again(projection.len(), column)),
                    },
                });
            }
        }
    }
    select.projection = projection;
}

pub(super) fn refusal(
    select: &Select,
    column: &Expr,
    number: usize,
    clause: &str,
    grouped: bool,
    bindings: &Bindings,
) -> MySqlError {
    let known = relations(select, bindings);
    let bare = name_of(column);
    let is_unknown = |name: &str| {
        known.as_ref().is_some_and(|tables| {
            let mut tables = tables.iter().map(|(.., table)| table);
            !tables.any(|table| table.columns.iter().any(|c| c.to_lowercase() == name))
        })
    };
    let named = aliases(select);
    for key in flat_keys(select) {
        if let Expr::Identifier(ident) = key
            && is_unknown(&ident.value)
            && !named.contains_key(&ident.value)
        {
            let code = ErrorCode::UnknownColumn;
            return MySqlError::new(code, &[&ident.value, &"group statement"]);
        }
    }
    if is_unknown(&bare) {
        let clause = match clause {
            "HAVING clause" => "having clause",
            "ORDER BY" => "order clause",
            _ => "field list",
        };
        return MySqlError::new(ErrorCode::UnknownColumn, &[&bare, &clause]);
    }
    let name = full_name(select, column, bindings);
    let code = if grouped {
        ErrorCode::NotInGroupBy
    } else {
        ErrorCode::MixOfGroupAndColumns
    };
    MySqlError::new(code, &[&number, &clause, &name])
}

/// `database.table.column` as far as it can be told.
fn full_name(select: &Select, column: &Expr, bindings: &Bindings) -> String {
    let name = name_of(column);
    let qualifier = match column {
        Expr::CompoundIdentifier(parts) if parts.len() > 1 => {
            Some(parts[parts.len() - 2].value.clone())
        }
        _ => None,
    };
    let relations = relations(select, bindings).unwrap_or_default();
    for (alias, database, _, bound) in &relations {
        let fits = match &qualifier {
            Some(qualifier) => qualifier == alias,
            None => bound
                .columns
                .iter()
                .any(|column| column.to_lowercase() == name),
        };
        if !fits {
            continue;
        }
        let spelled = bound
            .columns
            .iter()
            .find(|column| column.to_lowercase() == name);
        let spelled = spelled.cloned().unwrap_or(name);
        return if database == FILES {
            format!("{alias}.{spelled}")
        } else {
            format!("{database}.{alias}.{spelled}")
        };
    }
    qualifier.map_or(name.clone(), |qualifier| format!("{qualifier}.{name}"))
}

pub(super) fn name_of(column: &Expr) -> String {
    match column {
        Expr::Identifier(ident) => ident.value.clone(),
        Expr::CompoundIdentifier(parts) => parts
            .last()
            .map(|ident| ident.value.clone())
            .unwrap_or_default(),
        other => other.to_string(),
    }
}
