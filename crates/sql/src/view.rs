//! Views in queries.
//!
//! A view is planned by itself, in its own text, with the tables and modes of its own: whatever
//! stands in the query that names it means nothing inside. The plan then stands in the place of its
//! table, as that of a derived table would, so that all that is done with those is done with it.
//!
//! ```text
//!   FROM v AS x      SubqueryAlias x
//!                      SubqueryAlias v
//!                        SubqueryAlias <mark>v     the view begins: see `view_mark`
//!                          Projection              its columns under their names
//!                            ...                   the plan of its query
//! ```
//!
//! **Owns** the text that is kept of a view, and the plan that it becomes. **Never** looks a name
//! up: the tables of a view are bound before.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Column;
use datafusion::datasource::empty::EmptyTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Ident, Query, SetExpr, TableFactor, Visitor,
};
use datafusion::sql::sqlparser::tokenizer::Location;
use mayfly_types::{ErrorCode, MySqlError};

use crate::bindings::{Bindings, BoundTable, BoundView};
use crate::change::only_table;
use crate::places::offset;
use crate::planning::extent_of_view;
use crate::references::{file_path, table_name};
use crate::rewrite::common_columns::stars;
use crate::rewrite::merged::is_merged;
use crate::rewrite::relation::is_dual;
use crate::scanner::{Lexeme, Scanner};
use crate::select_list::{column, expression_of};
use crate::source::Source;
use crate::statement::CreateView;
use crate::view_mark::mark;
use crate::walk;

/// What a view is made of.
pub struct ViewParts {
    /// Its database and its name.
    pub name: (String, String),
    /// Its query.
    pub query: Query,
    /// The text of the query.
    pub source: Source,
    /// What the query names.
    pub bindings: Bindings,
    /// Whether it is never merged into the query that names it.
    pub is_apart: bool,
}

impl BoundView {
    /// A view with what its query names.
    pub fn new(parts: ViewParts) -> BoundView {
        let ViewParts {
            name,
            query,
            source,
            bindings,
            is_apart,
        } = parts;
        let (tables, depth) = extent_of_view(&query, &bindings);
        BoundView {
            tables,
            depth,
            is_merged: !is_apart && is_merged(&query, &bindings),
            name,
            query,
            source,
            bindings,
        }
    }

    /// Whether it is a part of the query that names it: one row for each row of its tables.
    pub fn is_merged(&self) -> bool {
        self.is_merged
    }

    /// The view as a table of a statement; `columns` are the names of its columns.
    pub fn into_table(self, columns: Vec<String>) -> BoundTable {
        BoundTable {
            // Its types are those of its plan, which nobody has made yet.
            provider: Arc::new(EmptyTable::new(Arc::new(Schema::empty()))),
            unique: self.unique(&columns),
            columns,
            invisible: Vec::new(),
            view: Some(Arc::new(self)),
        }
    }

    /// The unique keys of its only table, in the columns of the view that show them.
    fn unique(&self, columns: &[String]) -> Vec<Vec<String>> {
        let SetExpr::Select(select) = self.query.body.as_ref() else {
            return Vec::new();
        };
        if !self.is_merged || self.query.with.is_some() {
            return Vec::new();
        }
        let bound = only_table(&select.from).and_then(|mention| {
            let current = self.bindings.database.clone();
            let database = mention.table.database.or(current)?;
            self.bindings.tables.get(&(database, mention.table.table))
        });
        let items: Vec<&ast::Expr> = select.projection.iter().filter_map(expression_of).collect();
        if items.len() != columns.len() {
            return Vec::new();
        }
        let shown = |key: &String| {
            let is_it = |item: &&ast::Expr| {
                let name = column(item).and_then(<[Ident]>::last);
                name.is_some_and(|name| name.value.to_lowercase() == *key)
            };
            let place = items.iter().position(is_it)?;
            Some(columns.get(place)?.to_lowercase())
        };
        let keys = bound.map(|bound| bound.unique.as_slice());
        let keys = keys.unwrap_or_default().iter();
        keys.filter_map(|key| key.iter().map(shown).collect())
            .collect()
    }

    /// The plan of its query as the table that the view is.
    ///
    /// # Errors
    /// [`InvalidView`] if the query has not as many columns as the view.
    pub(crate) fn table(
        &self,
        plan: LogicalPlan,
        columns: &[String],
    ) -> Result<Arc<dyn TableProvider>> {
        if plan.schema().fields().len() != columns.len() {
            let cause = MySqlError::new(ErrorCode::ViewWrongList, &[]);
            return Err(self.invalid(DataFusionError::External(Box::new(cause))));
        }
        let named = columns.iter().enumerate().map(|(place, name)| {
            let column = Column::from(plan.schema().qualified_field(place));
            Expr::Column(column).alias(name.to_lowercase())
        });
        let named: Vec<Expr> = named.collect();
        let (database, view) = &self.name;
        let plan = LogicalPlanBuilder::from(plan).project(named)?;
        let plan = plan.alias(mark(database, view))?.build()?;
        let schema = Arc::new(plan.schema().as_arrow().clone());
        Ok(Arc::new(ViewTable { plan, schema }))
    }

    /// An error of the view's own query as one of the statement that names the view.
    pub(crate) fn invalid(&self, cause: DataFusionError) -> DataFusionError {
        if let DataFusionError::External(inner) = &cause
            && inner.is::<InvalidView>()
        {
            // The innermost of several is the one that is wrong.
            return cause;
        }
        DataFusionError::External(Box::new(InvalidView {
            name: self.name.clone(),
            cause,
        }))
    }
}

/// Why a view cannot be planned.
#[derive(Debug)]
pub struct InvalidView {
    /// Its database and its name.
    pub name: (String, String),
    /// The error of its query.
    pub cause: DataFusionError,
}

impl fmt::Display for InvalidView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (database, view) = &self.name;
        write!(f, "view {database}.{view}: {}", self.cause)
    }
}

impl std::error::Error for InvalidView {}

/// A view as DataFusion's planner reads it: a table that is a plan.
struct ViewTable {
    plan: LogicalPlan,
    schema: SchemaRef,
}

impl fmt::Debug for ViewTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ViewTable")
    }
}

#[async_trait]
impl TableProvider for ViewTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let what = "a scan of a view, whose plan stands in its place";
        Err(DataFusionError::Internal(what.to_owned()))
    }
}

/// The text of a view's query as it is kept: as it was written but for its comments, with the
/// columns that each `*` shows, so that none is added later; and with the database of a table where
/// the view stands in another one than the current.
///
/// # Errors
/// Those for which the columns behind a `*` are not known.
pub fn kept_text(
    view: &CreateView,
    database: &str,
    source: &Source,
    bindings: &Bindings,
) -> Result<String, MySqlError> {
    let mut patches: Vec<Patch> = Vec::new();
    // One without tables has its error when it is planned.
    let stars = stars(&view.query, source, bindings)?.into_iter();
    for star in stars.filter(|star| !star.columns.is_empty()) {
        let columns: Vec<String> = star.columns.iter().map(ToString::to_string).collect();
        patches.push(Patch {
            from: star.place.start,
            to: star.place.end,
            text: columns.join(", "),
        });
    }
    let current = bindings.database.as_deref();
    if current != Some(database) {
        let mut names = Unqualified {
            bindings,
            scopes: Vec::new(),
            pending: HashMap::new(),
            found: Vec::new(),
        };
        let _ = walk::read(view.query.as_ref(), &mut names);
        if current.is_none() && !names.found.is_empty() {
            return Err(MySqlError::new(ErrorCode::NoDatabase, &[]));
        }
        let prefix = format!("{}.", Ident::with_quote('`', current.unwrap_or_default()));
        patches.extend(names.found.into_iter().map(|at| Patch {
            from: at,
            to: at,
            text: prefix.clone(),
        }));
    }
    patches.sort_by_key(|patch| patch.from);
    let text = source.text();
    let at = |place: Location| offset(text, place.line, place.column);
    let (start, end) = (at(view.place.0), at(view.place.1));
    let mut kept = String::with_capacity(end.saturating_sub(start));
    let mut next = start;
    for patch in patches {
        let (from, to) = (at(patch.from), at(patch.to));
        kept.push_str(text.get(next..from).unwrap_or_default());
        kept.push_str(&patch.text);
        next = to;
    }
    kept.push_str(text.get(next..end).unwrap_or_default());
    Ok(without_comments(&kept).trim().to_owned())
}

/// Whether `||` stands in the query of a view, which means one thing or another by `sql_mode`.
pub fn has_pipes(query: &Query) -> bool {
    struct Search;
    impl Visitor for Search {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
            let is_it = |op: &BinaryOperator| *op == BinaryOperator::StringConcat;
            match expr {
                ast::Expr::BinaryOp { op, .. } if is_it(op) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk::read(query, &mut Search).is_break()
}

/// A text without its comments: a dump writes it into a comment of its own.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for (lexeme, range) in Scanner::new(text.as_bytes()) {
        match lexeme {
            Lexeme::Comment | Lexeme::Later if kept.ends_with(char::is_whitespace) => {}
            Lexeme::Comment | Lexeme::Later => kept.push(' '),
            _ => kept.push_str(text.get(range).unwrap_or_default()),
        }
    }
    kept
}

/// A part of a text that becomes another one.
struct Patch {
    from: Location,
    to: Location,
    text: String,
}

/// Finds the tables that are named without a database.
struct Unqualified<'a> {
    bindings: &'a Bindings,
    /// For each query around the place that is visited, the innermost last, the names in lower case
    /// of its common table expressions that are known there.
    scopes: Vec<Vec<String>>,
    /// The names of those that are known behind their query, by the address of the query.
    pending: HashMap<usize, String>,
    found: Vec<Location>,
}

impl Unqualified<'_> {
    fn is_expression(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.scopes.iter().any(|scope| scope.contains(&name))
    }
}

impl Visitor for Unqualified<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let mut known = Vec::new();
        if let Some(with) = &query.with {
            for cte in &with.cte_tables {
                let name = cte.alias.name.value.to_lowercase();
                // Without RECURSIVE the name means a table in the query itself.
                if with.recursive {
                    known.push(name);
                } else {
                    let place = std::ptr::from_ref(cte.query.as_ref()).addr();
                    self.pending.insert(place, name);
                }
            }
        }
        self.scopes.push(known);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.scopes.pop();
        let name = self.pending.remove(&std::ptr::from_ref(query).addr());
        if let (Some(name), Some(outer)) = (name, self.scopes.last_mut()) {
            outer.push(name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, .. } = factor
            && file_path(name).is_none()
            && !is_dual(factor, self.bindings)
            && let Some(found) = table_name(name)
            && found.database.is_none()
            && !self.is_expression(&found.table)
            && let Some(ident) = name.0.first().and_then(|part| part.as_ident())
        {
            self.found.push(ident.span.start);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::statement::Statement;

    /// The text that is kept of a view in the database `d`, where two databases have a table `t`.
    fn kept(text: &str, current: Option<&str>) -> String {
        let Ok((Statement::CreateView(view), source)) = parse(text) else {
            panic!("{text}");
        };
        let table = BoundTable {
            provider: Arc::new(EmptyTable::new(Arc::new(Schema::empty()))),
            columns: vec!["id".to_owned(), "B".to_owned()],
            unique: Vec::new(),
            invisible: Vec::new(),
            view: None,
        };
        let mut bindings = Bindings {
            database: current.map(str::to_owned),
            ..Bindings::default()
        };
        for database in ["d", "e"] {
            let place = (database.to_owned(), "t".to_owned());
            bindings.tables.insert(place, table.clone());
        }
        match kept_text(&view, "d", &source, &bindings) {
            Ok(kept) => kept,
            Err(error) => error.code.to_string(),
        }
    }

    #[test]
    fn stars_are_written_out_and_comments_go() {
        for (text, expected) in [
            ("SELECT * FROM t", "SELECT t.`id`, t.`B` FROM t"),
            (
                "SELECT x.*, 1 FROM t x, d.t WHERE x.id > 1 WITH CHECK OPTION",
                "SELECT x.`id`, x.`B`, 1 FROM t x, d.t WHERE x.id > 1",
            ),
            (
                "SELECT COUNT(*) FROM t UNION\nSELECT id * 2 FROM (SELECT * FROM t) AS d ;",
                "SELECT COUNT(*) FROM t UNION\nSELECT id * 2 FROM (SELECT t.`id`, t.`B` FROM t) AS d",
            ),
            (
                "SELECT * FROM t JOIN t AS u USING (id)",
                "SELECT t.`id`, t.`B`, u.`B` FROM t JOIN t AS u USING (id)",
            ),
            ("(SELECT id FROM t) LIMIT 1", "(SELECT id FROM t) LIMIT 1"),
            (
                "SELECT 1 /* a */ + 2 -- b\n, 3/*c*/AS d # e",
                "SELECT 1  + 2 \n, 3 AS d",
            ),
            (
                "SELECT '/* a */' FROM (SELECT 1 AS `-- b`) AS d",
                "SELECT '/* a */' FROM (SELECT 1 AS `-- b`) AS d",
            ),
            ("SELECT * FROM nosuch", "1146"),
            ("SELECT *", "SELECT *"),
            ("TABLE t", "1235"),
        ] {
            let statement = format!("CREATE VIEW v AS {text}");
            assert_eq!(kept(&statement, Some("d")), expected, "{text}");
        }
        let dumped = "/*!50001 CREATE ALGORITHM=MERGE */\n/*!50013 DEFINER=`a`@`%` \
                      SQL SECURITY INVOKER */\n/*!50001 VIEW `v` (`x`) AS SELECT 1 */;";
        assert_eq!(kept(dumped, Some("d")), "SELECT 1");
    }

    #[test]
    fn tables_of_another_database_are_named_with_it() {
        for (text, expected) in [
            (
                "SELECT id FROM t WHERE id IN (SELECT id FROM d.t)",
                "SELECT id FROM `e`.t WHERE id IN (SELECT id FROM d.t)",
            ),
            (
                "WITH q AS (SELECT id FROM t) SELECT * FROM q, t",
                "WITH q AS (SELECT id FROM `e`.t) SELECT q.`id`, t.`id`, t.`B` FROM q, `e`.t",
            ),
            (
                "WITH t AS (SELECT id FROM t) SELECT id FROM t",
                "WITH t AS (SELECT id FROM `e`.t) SELECT id FROM t",
            ),
            (
                "SELECT 1 FROM (WITH t AS (SELECT 1) SELECT 1 FROM t) AS q, t",
                "SELECT 1 FROM (WITH t AS (SELECT 1) SELECT 1 FROM t) AS q, `e`.t",
            ),
            (
                "WITH RECURSIVE t AS (SELECT 1 UNION SELECT 2 FROM t) SELECT 1 FROM t",
                "WITH RECURSIVE t AS (SELECT 1 UNION SELECT 2 FROM t) SELECT 1 FROM t",
            ),
            ("SELECT 1 FROM DUAL", "SELECT 1 FROM DUAL"),
        ] {
            let statement = format!("CREATE VIEW d.v AS {text}");
            assert_eq!(kept(&statement, Some("e")), expected, "{text}");
        }
        assert_eq!(kept("CREATE VIEW d.v AS SELECT id FROM t", None), "1046");
        assert_eq!(kept("CREATE VIEW d.v AS SELECT 1", None), "SELECT 1");
    }
}
