//! How many tables a query reads, and how deep its plan is.
//!
//! A common table expression is planned once for each place where it is named: thirty of them, each
//! of which names the one before twice, are a billion tables in a kilobyte of text; ten, each of
//! which adds a thousand set operations to the one before, are a plan that no stack is deep enough
//! for. DataFusion's planner walks over them before it comes back to us, so they are counted in the
//! text.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{ObjectName, Query, SetExpr, TableFactor, Visitor};
use mayfly_types::{ErrorCode, MySqlError};

use super::watch::hold_bytes;
use crate::bindings::Bindings;
use crate::references::table_name;
use crate::statement::TableName;
use crate::walk;

/// In one statement, subqueries and all parts of a UNION included. Planning so many takes seconds.
const TABLES_MAX: u64 = 10_000;
/// Set operations and joins above one another: the longest chain of one text, over a FROM clause of
/// as many tables as there may be.
const DEPTH_MAX: u64 = 1100;
/// What a view adds to the depth: the planner begins anew inside of it, which takes stack.
const VIEW_DEPTH: u64 = 16;
/// What one takes with its share of the operators above it.
const TABLE_BYTES: u64 = 8 << 10;

/// Counts the tables of a query, and tells the watch of the thread how much they take.
///
/// # Errors
/// 1116 for too many, 1436 for a plan that is too deep; those of the watch.
pub fn hold_tables(query: &Query, bindings: &Bindings) -> Result<()> {
    let Extent { tables, depth } = count(query, bindings);
    if tables > TABLES_MAX {
        let error = MySqlError::new(ErrorCode::TooManyTables, &[&TABLES_MAX]);
        return Err(DataFusionError::External(Box::new(error)));
    }
    if depth > DEPTH_MAX {
        let error = MySqlError::new(ErrorCode::StackOverrun, &[]);
        return Err(DataFusionError::External(Box::new(error)));
    }
    hold_bytes(tables * TABLE_BYTES)
}

fn count(query: &Query, bindings: &Bindings) -> Extent {
    let mut expansion = Expansion {
        bindings,
        scopes: Vec::new(),
        names: HashMap::new(),
        extent: Extent::default(),
    };
    let _always_continues = walk::read(query, &mut expansion);
    expansion.extent
}

/// How wide and how deep the plan of a query is.
#[derive(Clone, Copy, Default)]
struct Extent {
    tables: u64,
    depth: u64,
}

/// How many tables a view has where it is named, and how deep its plan is there.
pub(crate) fn extent_of_view(query: &Query, bindings: &Bindings) -> (u64, u64) {
    let Extent { tables, depth } = count(query, bindings);
    // One without tables is planned as often as it is named, too.
    (tables.max(1), depth.saturating_add(VIEW_DEPTH))
}

impl Extent {
    /// Adds a part that stands beside the others.
    fn add(&mut self, part: Extent) {
        self.tables = self.tables.saturating_add(part.tables);
        self.depth = self.depth.max(part.depth);
    }
}

/// What has been counted in one query.
#[derive(Default)]
struct Scope {
    extent: Extent,
    /// Those of common table expressions, by their names in lower case.
    expressions: HashMap<String, Extent>,
}

struct Expansion<'a> {
    bindings: &'a Bindings,
    /// The queries around the place that is visited, the innermost last.
    scopes: Vec<Scope>,
    /// The names of common table expressions, by the address of their query.
    names: HashMap<usize, String>,
    /// That of the queries that stand in no other.
    extent: Extent,
}

impl Expansion<'_> {
    fn add(&mut self, part: Extent) {
        match self.scopes.last_mut() {
            Some(scope) => scope.extent.add(part),
            None => self.extent.add(part),
        }
    }

    /// The extent of a view, if the name is that of one.
    fn view(&self, name: &ObjectName) -> Option<Extent> {
        let TableName { database, table } = table_name(name)?;
        let bound = self.bindings.table(database.as_deref(), &table)?;
        let view = bound.view.as_ref()?;
        Some(Extent {
            tables: view.tables,
            depth: view.depth,
        })
    }

    fn expression(&self, name: &str) -> Option<Extent> {
        let mut scopes = self.scopes.iter().rev();
        scopes.find_map(|scope| scope.expressions.get(name).copied())
    }
}

/// The set operations of a query, and the joins of the SELECT that has most.
fn own_depth(query: &Query) -> u64 {
    let (mut sets, mut joins) = (0, 0);
    let mut parts = vec![query.body.as_ref()];
    while let Some(part) = parts.pop() {
        match part {
            SetExpr::SetOperation { left, right, .. } => {
                sets += 1;
                parts.extend([left.as_ref(), right.as_ref()]);
            }
            SetExpr::Select(select) => {
                let tables = select.from.iter().map(|from| 1 + from.joins.len());
                joins = joins.max(tables.sum());
            }
            _ => {}
        }
    }
    (sets + joins) as u64
}

fn address(query: &Query) -> usize {
    std::ptr::from_ref(query).addr()
}

impl Visitor for Expansion<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for expression in query.with.iter().flat_map(|with| &with.cte_tables) {
            let name = expression.alias.name.value.to_lowercase();
            self.names.insert(address(&expression.query), name);
        }
        self.scopes.push(Scope::default());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let mut extent = self.scopes.pop().unwrap_or_default().extent;
        extent.depth = extent.depth.saturating_add(own_depth(query));
        match (self.names.remove(&address(query)), self.scopes.last_mut()) {
            (Some(name), Some(outer)) => {
                // One without tables is planned as often as it is named, too.
                extent.tables = extent.tables.max(1);
                outer.expressions.insert(name, extent);
            }
            _ => self.add(extent),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, .. } = factor {
            let single = match name.0.as_slice() {
                [name] => name.as_ident().map(|name| name.value.to_lowercase()),
                _ => None,
            };
            let expression = single.and_then(|name| self.expression(&name));
            let expression = expression.or_else(|| self.view(name));
            let table = Extent {
                tables: 1,
                depth: 0,
            };
            self.add(expression.unwrap_or(table));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Extent, count};
    use crate::bindings::Bindings;
    use crate::parse::parse;
    use crate::statement::Statement;

    fn extent(text: &str) -> Extent {
        match parse(text) {
            Ok((Statement::Query(query), _)) => count(&query, &Bindings::default()),
            _ => panic!("{text}"),
        }
    }

    #[test]
    fn table_expressions_count_wherever_they_are_named() {
        let check = |text: &str, expect: u64| assert_eq!(extent(text).tables, expect, "{text}");
        check("SELECT 1", 0);
        check("SELECT 1 FROM t JOIN u USING (a), (SELECT 1 FROM v) w", 3);
        check(
            "SELECT 1 FROM t WHERE a IN (SELECT a FROM u) UNION SELECT 1 FROM v",
            3,
        );
        check("WITH w AS (SELECT 1 FROM t, u) SELECT 1", 0);
        check("WITH w AS (SELECT 1) SELECT 1 FROM w a, w b", 2);
        check("WITH w AS (SELECT 1 FROM t, u) SELECT 1 FROM w a, W b", 4);
        // A name ends with its query.
        check(
            "SELECT 1 FROM w, (WITH w AS (SELECT 1 FROM t, u) SELECT 1 FROM w) x",
            3,
        );
        check(
            "WITH RECURSIVE w AS (SELECT 1 a UNION SELECT a + 1 FROM w) SELECT 1 FROM w",
            1,
        );
        let doubled: String = (1..=100)
            .map(|at| format!(", w{at} AS (SELECT 1 FROM w{0} a, w{0} b)", at - 1))
            .collect();
        check(
            &format!("WITH w0 AS (SELECT 1 FROM t){doubled} SELECT 1 FROM w100"),
            u64::MAX,
        );
    }
    #[test]
    fn table_expressions_are_as_deep_as_what_they_name() {
        let check = |text: &str, expect: u64| assert_eq!(extent(text).depth, expect, "{text}");
        check("SELECT 1", 0);
        check("SELECT 1 FROM t, u JOIN v USING (a)", 3);
        check("SELECT 1 FROM t UNION SELECT 1 FROM u, v", 3);
        check("SELECT 1 FROM (SELECT 1 FROM t, u) d, (SELECT 1) e", 4);
        check("WITH w AS (SELECT 1 FROM t, u) SELECT 1 FROM w a, w b", 4);
        let chain: String = (1..=10)
            .map(|at| format!(", w{at} AS (SELECT 1 UNION SELECT 1 FROM w{0})", at - 1))
            .collect();
        check(
            &format!("WITH w0 AS (SELECT 1 FROM t){chain} SELECT 1 FROM w10"),
            22,
        );
    }
}
