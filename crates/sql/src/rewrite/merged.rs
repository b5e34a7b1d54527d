//! Which derived tables and common table expressions are merged into the query around them.
//!
//! A column of one is called as the inner query calls it, that of any other table as it is written:
//!
//! ```text
//!   SELECT ID FROM (SELECT id FROM t) x               id
//!   SELECT ID FROM (SELECT id FROM t LIMIT 1) x       ID
//! ```
//!
//! So are the tables of INFORMATION_SCHEMA that are views of MySQL's dictionary. Programs for MySQL
//! read their columns by names in capitals, however they wrote them:
//!
//! ```text
//!   SELECT table_name FROM information_schema.tables     TABLE_NAME
//! ```
//!
//! **Source**: `Query_expression::is_mergeable` of MySQL 8.4; answers of MariaDB 10.11; those of
//! MySQL 9.7 for INFORMATION_SCHEMA.

use datafusion::sql::sqlparser::ast::{Query, SetExpr, TableFactor};

use super::refused::groups;
use super::relation::{base_table, is_dual};
use crate::bindings::Bindings;
use crate::from_list;

/// Whether a query that is a table is merged into the one around it: one SELECT over tables that
/// leaves rows what they are.
pub(crate) fn is_merged(query: &Query, bindings: &Bindings) -> bool {
    let select = match query.body.as_ref() {
        SetExpr::Select(select) => select,
        SetExpr::Query(inner) => {
            return query.limit_clause.is_none() && is_merged(inner, bindings);
        }
        _ => return false,
    };
    let tables = from_list::tables(&select.from);
    let has_tables = tables.iter().any(|table| !is_dual(table, bindings));
    query.limit_clause.is_none()
        && query.fetch.is_none()
        && select.distinct.is_none()
        && select.having.is_none()
        && has_tables
        && !groups(select, &bindings.aggregates)
}

/// The tables of INFORMATION_SCHEMA that are views in MySQL, sorted. Where only MySQL has one, it
/// is here if this server may have it one day.
const VIEWS: [&str; 32] = [
    "ADMINISTRABLE_ROLE_AUTHORIZATIONS",
    "CHARACTER_SETS",
    "CHECK_CONSTRAINTS",
    "COLLATION_CHARACTER_SET_APPLICABILITY",
    "COLUMNS",
    "COLUMNS_EXTENSIONS",
    "COLUMN_STATISTICS",
    "EVENTS",
    "FILES",
    "KEYWORDS",
    "KEY_COLUMN_USAGE",
    "PARAMETERS",
    "PARTITIONS",
    "REFERENTIAL_CONSTRAINTS",
    "RESOURCE_GROUPS",
    "ROUTINES",
    "SCHEMATA",
    "SCHEMATA_EXTENSIONS",
    "STATISTICS",
    "ST_GEOMETRY_COLUMNS",
    "ST_SPATIAL_REFERENCE_SYSTEMS",
    "ST_UNITS_OF_MEASURE",
    "TABLES",
    "TABLESPACES_EXTENSIONS",
    "TABLES_EXTENSIONS",
    "TABLE_CONSTRAINTS",
    "TABLE_CONSTRAINTS_EXTENSIONS",
    "TRIGGERS",
    "USER_ATTRIBUTES",
    "VIEWS",
    "VIEW_ROUTINE_USAGE",
    "VIEW_TABLE_USAGE",
];

/// Whether a table of FROM is a view that is merged into the query.
pub(super) fn is_merged_view(table: &TableFactor, bindings: &Bindings) -> bool {
    base_table(table, bindings)
        .and_then(|(.., bound)| bound.view.as_ref())
        .is_some_and(|view| view.is_merged)
}

/// Whether a table of FROM is a view of MySQL's dictionary.
pub(super) fn is_view(table: &TableFactor, bindings: &Bindings) -> bool {
    base_table(table, bindings).is_some_and(|(_, database, name, _)| {
        let name = name.to_ascii_uppercase();
        database.eq_ignore_ascii_case("information_schema")
            && VIEWS.binary_search(&name.as_str()).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::VIEWS;

    #[test]
    fn views_are_sorted() {
        assert!(VIEWS.is_sorted());
    }
}
