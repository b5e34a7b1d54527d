//! Labels of columns of derived tables and common table expressions that are merged into the query
//! around them.
//!
//! Such a column is called as the inner query calls it, that of any other table as it is written:
//!
//! ```text
//!   SELECT ID FROM (SELECT id FROM t) x               id
//!   SELECT ID FROM (SELECT id FROM t LIMIT 1) x       ID
//! ```
//!
//! **Source**: `Query_expression::is_mergeable` of MySQL 8.4; answers of MariaDB 10.11.

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, ObjectNamePart, Query, Select, SelectItem, SetExpr, TableFactor,
};

use super::grouping::has_aggregate;
use super::labels::Columns;
use super::qualifiers::name_of;
use super::relation::is_dual;
use crate::bindings::Bindings;
use crate::from_list;
use crate::select_list::column;
use crate::walk;

/// Whether a query that is a table is merged into the one around it: one SELECT over tables that
/// leaves rows what they are.
pub(super) fn is_merged(query: &Query, bindings: &Bindings) -> bool {
    let select = match query.body.as_ref() {
        SetExpr::Select(select) => select,
        SetExpr::Query(inner) => {
            return query.limit_clause.is_none() && is_merged(inner, bindings);
        }
        _ => return false,
    };
    let is_grouped = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let tables = from_list::tables(&select.from);
    let has_tables = tables.iter().any(|table| !is_dual(table, bindings));
    let mut is_window = |expr: &Expr| matches!(expr, Expr::Function(call) if call.over.is_some());
    query.limit_clause.is_none()
        && query.fetch.is_none()
        && select.distinct.is_none()
        && select.having.is_none()
        && !is_grouped
        && has_tables
        && !{ select.projection.iter() }.any(|item| has_aggregate(item, &bindings.aggregates))
        && !walk::finds(&select.projection, &mut is_window)
}

/// A table of FROM as labels see it.
pub(super) struct Shown {
    called: Option<String>,
    columns: Vec<String>,
    is_merged: bool,
}

/// The tables of FROM; none if none of them is merged.
pub(super) fn tables(select: &Select, columns: Columns<'_>) -> Vec<Shown> {
    let tables = from_list::tables(&select.from);
    let is_merged = |table: &TableFactor| match table {
        TableFactor::Derived { subquery, .. } => is_merged(subquery, columns.bindings),
        TableFactor::Table { name, .. } => match name.0.as_slice() {
            [ObjectNamePart::Identifier(name)] => {
                columns.merged.contains(&name.value) && columns.cte(table).is_some()
            }
            _ => false,
        },
        _ => false,
    };
    let merged: Vec<bool> = tables.iter().copied().map(is_merged).collect();
    if !merged.contains(&true) {
        return Vec::new();
    }
    { tables.into_iter().zip(merged) }
        .map(|(table, is_merged)| Shown {
            called: name_of(table),
            columns: columns.of_table(table, None),
            is_merged,
        })
        .collect()
}

/// What an item is called that names a column of a table which is merged.
pub(super) fn label(item: &SelectItem, tables: &[Shown]) -> Option<String> {
    let SelectItem::UnnamedExpr(expr) = item else {
        return None;
    };
    if tables.is_empty() {
        return None;
    }
    let parts = column(expr)?;
    let name = parts.last()?.value.to_lowercase();
    let of = match parts {
        [.., Ident { value, .. }, _] => Some(value),
        _ => None,
    };
    let is_meant = |table: &&Shown| of.is_none_or(|of| table.called.as_ref() == Some(of));
    let mut found = tables.iter().filter(is_meant).filter_map(|table| {
        let mut columns = table.columns.iter();
        let column = columns.find(|column| column.to_lowercase() == name)?;
        Some((table, column))
    });
    let (table, column) = found.next()?;
    let is_one = of.is_some() || found.next().is_none();
    (is_one && table.is_merged).then(|| column.clone())
}
