//! Which derived tables and common table expressions are merged into the query around them.
//!
//! A column of one is called as the inner query calls it, that of any other table as it is written:
//!
//! ```text
//!   SELECT ID FROM (SELECT id FROM t) x               id
//!   SELECT ID FROM (SELECT id FROM t LIMIT 1) x       ID
//! ```
//!
//! **Source**: `Query_expression::is_mergeable` of MySQL 8.4; answers of MariaDB 10.11.

use datafusion::sql::sqlparser::ast::{Query, SetExpr};

use super::refused::groups;
use super::relation::is_dual;
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
