//! Columns of the tables of INSERT ... SELECT that ON DUPLICATE KEY UPDATE names.
//!
//! The query shows them behind those that are inserted, and the values name what it shows:
//!
//! ```text
//!   INSERT INTO t (a) SELECT s.a FROM s ON DUPLICATE KEY UPDATE b = t.b + s.c
//!                     SELECT s.a, s.c AS `source 0`             b = t.b + t.`source 0`
//! ```
//!
//! A name without a table that the table which is filled and one of these have is error 1052. Of a
//! query that groups, or numbers rows, no columns are seen, and none of a set operation.
//!
//! **Source**: `select_insert::prepare` of MariaDB's `sql/sql_insert.cc`. Columns of the first
//! query of a UNION are NULL there; here, as in MySQL, they are unknown.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, Select, SelectItem, SetExpr, VisitorMut,
};
use mayfly_types::{ErrorCode, MySqlError};

use crate::bindings::Bindings;
use crate::change::{self, Mention};
use crate::rewrite::qualifiers::{Catalog, Columns, Named};
use crate::rewrite::refused::groups;
use crate::rewrite::relation::name_of;
use crate::select_list::column;
use crate::source::Source;
use crate::statement::TableName;
use crate::typing::syntax;
use crate::{from_list, walk};

/// The name of the n-th column that a query shows behind those that are inserted.
pub fn source_column(number: usize) -> String {
    format!("\u{1}source {number}")
}

/// The table that is filled.
pub struct Filled<'a> {
    /// As the statement names it.
    pub mention: &'a Mention,
    /// What its columns are qualified with when values are planned.
    pub alias: &'a str,
    /// The names of its columns.
    pub columns: Vec<&'a str>,
}

/// Lets a query show the columns that values name, and the values name what it shows. Returns how
/// many these are.
///
/// # Errors
/// 1052 for a name that means columns of several tables; 1235 for columns behind DISTINCT.
pub fn show<'v>(
    query: &mut Query,
    values: impl IntoIterator<Item = &'v mut Expr>,
    filled: &Filled<'_>,
    (bindings, source): (&Bindings, &Source),
) -> Result<usize, MySqlError> {
    let catalog = Catalog { bindings, source };
    let mut ctes = Vec::new();
    let Some(select) = select_of(query, catalog, &mut ctes) else {
        return Ok(0);
    };
    if groups(select, &catalog.bindings.aggregates) {
        return Ok(0);
    }
    let mut names = Names {
        sources: Sources::of(select, &ctes, filled, catalog),
        shown: Vec::new(),
        nearer: Vec::new(),
        skipped: 0,
        error: None,
    };
    for value in values {
        let _ = walk::write(value, &mut names);
        if let Some(error) = names.error {
            return Err(error);
        }
    }
    let shown = names.shown;
    if !shown.is_empty() && select.distinct.is_some() {
        let what = "columns of SELECT DISTINCT in ON DUPLICATE KEY UPDATE";
        return Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]));
    }
    let count = shown.len();
    let items = shown.into_iter().enumerate();
    let items = items.map(|(number, expr)| SelectItem::ExprWithAlias {
        expr,
        alias: Ident::with_quote('`', source_column(number)),
    });
    let items: Vec<SelectItem> = items.collect();
    if let Some(select) = select_mut(query) {
        select.projection.extend(items);
    }
    Ok(count)
}

/// The one select of a query, in parentheses or not, and the common table expressions that it can
/// name, the nearest last.
fn select_of<'q>(
    query: &'q Query,
    catalog: Catalog<'_>,
    ctes: &mut Vec<Named>,
) -> Option<&'q Select> {
    for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
        let columns = catalog.cte(cte, ctes);
        ctes.push((cte.alias.name.value.clone(), columns));
    }
    match query.body.as_ref() {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => select_of(query, catalog, ctes),
        _ => None,
    }
}

fn select_mut(query: &mut Query) -> Option<&mut Select> {
    match query.body.as_mut() {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => select_mut(query),
        _ => None,
    }
}

/// The names of the tables that ORDER BY and the selects of a query see.
fn tables_of(body: &SetExpr) -> HashSet<String> {
    match body {
        SetExpr::Select(select) => { from_list::tables(&select.from).into_iter() }
            .filter_map(name_of)
            .collect(),
        SetExpr::Query(query) => tables_of(&query.body),
        SetExpr::SetOperation { left, right, .. } => {
            let mut names = tables_of(left);
            names.extend(tables_of(right));
            names
        }
        _ => HashSet::new(),
    }
}

/// A table of the query.
struct Table {
    name: String,
    /// The database that it stands in, if it stands in one.
    database: Option<String>,
    columns: Columns,
}

impl Table {
    /// Whether it has a column; `None` where that is not known.
    fn has(&self, column: &Ident) -> Option<bool> {
        let name = column.value.to_lowercase();
        Some(self.columns.as_ref()?.contains(&name))
    }
}

/// The tables of a query, beside the one that is filled.
struct Sources<'a> {
    tables: Vec<Table>,
    filled: &'a Filled<'a>,
    current: Option<&'a str>,
}

impl<'a> Sources<'a> {
    fn of(
        select: &Select,
        ctes: &[Named],
        filled: &'a Filled<'a>,
        catalog: Catalog<'a>,
    ) -> Sources<'a> {
        let tables = from_list::tables(&select.from).into_iter();
        let tables = tables.filter_map(|factor| {
            let (database, columns) = catalog.table(factor, ctes)?;
            Some(Table {
                name: name_of(factor)?,
                database,
                columns,
            })
        });
        Sources {
            tables: tables.collect(),
            filled,
            current: catalog.bindings.database.as_deref(),
        }
    }

    /// Whether the table that is filled has a column.
    fn fills(&self, column: &Ident) -> bool {
        let name = column.value.to_lowercase();
        { self.filled.columns.iter() }.any(|column| column.to_lowercase() == name)
    }

    /// Whether a name without a table is that of a column of the query.
    fn shows_alone(&self, column: &Ident) -> Result<bool, MySqlError> {
        let is_had = |had: Option<bool>| self.tables.iter().any(|table| table.has(column) == had);
        match (self.fills(column), is_had(Some(true))) {
            (true, true) => Err(ambiguous(&column.value)),
            // A table that is not known is one that the planner will not find.
            (true, false) => Ok(false),
            // The query tells what is ambiguous there, or unknown.
            (false, is_shown) => Ok(is_shown || is_had(None)),
        }
    }

    /// The same for a name behind a table.
    fn shows_qualified(&self, name: &TableName, column: &Ident) -> Result<bool, MySqlError> {
        let is_it = |table: &Table| {
            let database = name.database.as_ref();
            table.name == name.table
                && database.is_none_or(|database| table.database.as_ref() == Some(database))
                && table.has(column) != Some(false)
        };
        let is_shown = self.tables.iter().any(is_it);
        let is_filled = self.filled.mention.owns(name, self.current) && self.fills(column);
        match is_shown && is_filled {
            true => Err(ambiguous(&format!("{name}.{}", column.value))),
            false => Ok(is_shown),
        }
    }
}

fn ambiguous(name: &str) -> MySqlError {
    MySqlError::new(ErrorCode::AmbiguousColumn, &[&name, &"field list"])
}

struct Names<'a> {
    // fixed
    sources: Sources<'a>,
    // state
    /// What the query is to show.
    shown: Vec<Expr>,
    /// The tables of the subqueries around, which go before those of the query.
    nearer: Vec<HashSet<String>>,
    /// How many calls are around whose argument is a column of the table that is filled.
    skipped: usize,
    error: Option<MySqlError>,
}

impl Names<'_> {
    fn is_source(&self, expr: &Expr) -> Result<bool, MySqlError> {
        if self.skipped > 0 || !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            return Ok(false);
        }
        let (database, table, column) = match column(expr) {
            Some([column]) if self.nearer.is_empty() => return self.sources.shows_alone(column),
            Some([table, column]) => (None, table, column),
            Some([database, table, column]) => (Some(database.value.clone()), table, column),
            _ => return Ok(false),
        };
        if self.nearer.iter().any(|near| near.contains(&table.value)) {
            return Ok(false);
        }
        let table = TableName {
            database,
            table: table.value.clone(),
        };
        self.sources.shows_qualified(&table, column)
    }
}

/// Whether an expression is `VALUES(column)` or `DEFAULT(column)`.
fn names_filled(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else {
        return false;
    };
    let name = function.name.to_string();
    name.eq_ignore_ascii_case("VALUES") || name.eq_ignore_ascii_case("DEFAULT")
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.nearer.push(tables_of(&query.body));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.nearer.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.skipped += usize::from(names_filled(expr));
        if let Expr::Function(function) = expr {
            // The unit of TIMESTAMPDIFF is no name.
            syntax::unit(function);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.skipped -= usize::from(names_filled(expr));
        match self.is_source(expr) {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => {
                let known = self.shown.iter().position(|shown| shown == expr);
                let number = known.unwrap_or_else(|| {
                    self.shown.push(expr.clone());
                    self.shown.len() - 1
                });
                *expr = change::column(self.sources.filled.alias, &source_column(number));
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}
