//! Stars that show columns which the same select list has shown before.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Select, SelectItem, SelectItemQualifiedWildcardKind, TableFactor,
};

use super::labels::by_star;
use super::query_columns::Columns;
use super::relation::{base_table, name_of};
use crate::from_list;
use crate::references::table_name;
use crate::select_list::is_wildcard;

/// A table of FROM whose columns a star shows.
struct Starred {
    alias: String,
    /// That of a base table.
    database: Option<String>,
    columns: Vec<String>,
}

impl Starred {
    /// The table; `None` if its columns are not known.
    fn of(table: &TableFactor, within: Columns<'_>) -> Option<Starred> {
        if !within.tells_all_of_table(table) {
            return None;
        }
        let of_base = { within.cte(table).is_none() }.then(|| base_table(table, within.bindings));
        Some(Starred {
            alias: name_of(table)?,
            database: of_base.flatten().map(|(_, database, ..)| database),
            columns: within.of_table(table),
        })
    }
}

/// Writes `t.*` out where the same list shows the columns of `t` before it: no two columns of a
/// plan have one name.
pub(super) fn write_out(select: &mut Select, columns: Columns<'_>) {
    if select.projection.iter().filter(|i| is_wildcard(i)).count() < 2 {
        return;
    }
    let tables = from_list::tables(&select.from).into_iter();
    let tables: Option<Vec<Starred>> = tables.map(|table| Starred::of(table, columns)).collect();
    let Some(tables) = tables else {
        return;
    };
    let mut shown = HashSet::new();
    let mut list = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        let only = match &item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                table_name(name)
            }
            SelectItem::Wildcard(_) => {
                shown.extend(tables.iter().map(|table| &table.alias));
                None
            }
            _ => None,
        };
        let table = only.and_then(|only| {
            // It is named as FROM does.
            let of = only.database;
            let is_meant = |table: &&Starred| {
                table.alias == only.table && (of.is_none() || of == table.database)
            };
            let table = tables.iter().find(is_meant)?;
            Some((of, table))
        });
        let table = table.filter(|(_, table)| !shown.insert(&table.alias));
        let Some((database, table)) = table else {
            list.push(item);
            continue;
        };
        for column in &table.columns {
            let parts = database.iter().chain([&table.alias]).cloned();
            let parts = parts.chain([column.to_lowercase()]);
            let parts = parts.map(|part| Ident::with_quote('`', part)).collect();
            let name = by_star("star", list.len(), column);
            list.push(SelectItem::ExprWithAlias {
                expr: Expr::CompoundIdentifier(parts),
                alias: Ident::with_quote('`', name),
            });
        }
    }
    select.projection = list;
}
