//! How many tables a query reads.
//!
//! A common table expression is planned once for each place where it is named: thirty of them, each
//! of which names the one before twice, are a billion tables in a kilobyte of text. DataFusion's
//! planner walks over them before it comes back to us, so they are counted in the text.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{Query, TableFactor, Visitor};
use mayfly_types::{ErrorCode, MySqlError};

use super::watch::hold_bytes;
use crate::walk;

/// In one statement, subqueries and all parts of a UNION included. Planning so many takes seconds.
const TABLES_MAX: u64 = 10_000;
/// What one takes with its share of the operators above it.
const TABLE_BYTES: u64 = 8 << 10;

/// Counts the tables of a query, and tells the watch of the thread how much they take.
///
/// # Errors
/// 1116 for too many; those of the watch.
pub fn hold_tables(query: &Query) -> Result<()> {
    let tables = count(query);
    if tables > TABLES_MAX {
        let error = MySqlError::new(ErrorCode::TooManyTables, &[&TABLES_MAX]);
        return Err(DataFusionError::External(Box::new(error)));
    }
    hold_bytes(tables * TABLE_BYTES)
}

fn count(query: &Query) -> u64 {
    let mut expansion = Expansion::default();
    let _always_continues = walk::read(query, &mut expansion);
    expansion.tables
}

/// What has been counted in one query.
#[derive(Default)]
struct Scope {
    tables: u64,
    /// The tables of each common table expression, by its name in lower case.
    expressions: HashMap<String, u64>,
}

#[derive(Default)]
struct Expansion {
    /// The queries around the place that is visited, the innermost last.
    scopes: Vec<Scope>,
    /// The names of common table expressions, by the address of their query.
    names: HashMap<usize, String>,
    /// Those of the queries that stand in no other.
    tables: u64,
}

impl Expansion {
    fn add(&mut self, tables: u64) {
        let sum = match self.scopes.last_mut() {
            Some(scope) => &mut scope.tables,
            None => &mut self.tables,
        };
        *sum = sum.saturating_add(tables);
    }

    fn expression(&self, name: &str) -> Option<u64> {
        let mut scopes = self.scopes.iter().rev();
        scopes.find_map(|scope| scope.expressions.get(name).copied())
    }
}

fn address(query: &Query) -> usize {
    std::ptr::from_ref(query).addr()
}

impl Visitor for Expansion {
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
        let tables = self.scopes.pop().map_or(0, |scope| scope.tables);
        match (self.names.remove(&address(query)), self.scopes.last_mut()) {
            (Some(name), Some(outer)) => {
                outer.expressions.insert(name, tables);
            }
            _ => self.add(tables),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, .. } = factor {
            let name = match name.0.as_slice() {
                [name] => name.as_ident().map(|name| name.value.to_lowercase()),
                _ => None,
            };
            let tables = name.and_then(|name| self.expression(&name));
            self.add(tables.unwrap_or(1));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::count;
    use crate::parse::parse;
    use crate::statement::Statement;

    #[test]
    fn table_expressions_count_wherever_they_are_named() {
        let check = |text: &str, expect: u64| {
            let Ok((Statement::Query(query), _)) = parse(text) else {
                panic!("{text}");
            };
            assert_eq!(count(&query), expect, "{text}");
        };
        check("SELECT 1", 0);
        check("SELECT 1 FROM t JOIN u USING (a), (SELECT 1 FROM v) w", 3);
        check(
            "SELECT 1 FROM t WHERE a IN (SELECT a FROM u) UNION SELECT 1 FROM v",
            3,
        );
        check("WITH w AS (SELECT 1 FROM t, u) SELECT 1", 0);
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
}
