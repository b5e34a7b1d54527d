//! `DEFAULT(column)`: the default of a column in the place of a value.
//!
//! Owns the search for such calls and for the tables in whose scope they stand. What the default of
//! a column is, is asked of who knows the tables. **Never** looks into derived tables: their
//! columns have no defaults here.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart, Query, Select, VisitMut,
    VisitorMut,
};
use mayfly_types::{ErrorCode, MySqlError};

use crate::change::{Mention, mentions};
use crate::statement::TableName;
use crate::walk;

/// Finds the default of a column as an expression; `None` if the table has no such column.
pub type Lookup<'a> = dyn FnMut(&Mention, &str) -> Result<Option<Expr>, MySqlError> + 'a;

/// Whether a statement may have such calls, by its text.
pub fn may_call(text: &str) -> bool {
    let mut rest = text;
    while let Some(place) = rest.find(['d', 'D']) {
        rest = &rest[place..];
        let word = rest.get(.."default".len());
        if word.is_some_and(|word| word.eq_ignore_ascii_case("default"))
            && rest["default".len()..].trim_start().starts_with('(')
        {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

/// Puts defaults in the places of the calls in a query, where `database` is the current one.
///
/// # Errors
/// 1052 and 1054 for columns that several tables have or none, and those of `lookup`.
pub fn in_query(
    query: &mut Query,
    database: Option<&str>,
    lookup: &mut Lookup<'_>,
) -> Result<(), MySqlError> {
    replace(query, Vec::new(), database, lookup)
}

/// Puts defaults in the places of the calls in an expression over some tables.
///
/// # Errors
/// As [`in_query`].
pub fn in_expression(
    expr: &mut Expr,
    tables: &[Mention],
    database: Option<&str>,
    lookup: &mut Lookup<'_>,
) -> Result<(), MySqlError> {
    replace(expr, vec![tables.to_vec()], database, lookup)
}

fn replace(
    node: &mut impl VisitMut,
    scopes: Vec<Vec<Mention>>,
    database: Option<&str>,
    lookup: &mut Lookup<'_>,
) -> Result<(), MySqlError> {
    let mut replace = Replace {
        scopes,
        database,
        lookup,
        failed: None,
    };
    let _ = walk::write(node, &mut replace);
    replace.failed.map_or(Ok(()), Err)
}

struct Replace<'a, 'l> {
    /// The tables of the selects around, the innermost last.
    scopes: Vec<Vec<Mention>>,
    database: Option<&'a str>,
    lookup: &'a mut Lookup<'l>,
    failed: Option<MySqlError>,
}

impl Replace<'_, '_> {
    fn default_of(&mut self, table: Option<&TableName>, column: &str) -> Result<Expr, MySqlError> {
        let clause = "field list";
        let name = || match table {
            Some(table) => format!("{table}.{column}"),
            None => column.to_owned(),
        };
        for scope in self.scopes.iter().rev() {
            let mut found = None;
            for mention in scope {
                if table.is_some_and(|table| !mention.owns(table, self.database)) {
                    continue;
                }
                let Some(default) = (self.lookup)(mention, column)? else {
                    continue;
                };
                if found.replace(default).is_some() {
                    let code = ErrorCode::AmbiguousColumn;
                    return Err(MySqlError::new(code, &[&name(), &clause]));
                }
            }
            if let Some(found) = found {
                return Ok(found);
            }
        }
        let code = ErrorCode::UnknownColumn;
        Err(MySqlError::new(code, &[&name(), &clause]))
    }
}

impl VisitorMut for Replace<'_, '_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.scopes.push(mentions(&mut select.from));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _select: &mut Select) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Some((table, column)) = called(expr) else {
            return ControlFlow::Continue(());
        };
        match self.default_of(table.as_ref(), &column) {
            Ok(default) => {
                *expr = default;
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// The column whose default is called for, with its table if that is named.
fn called(expr: &Expr) -> Option<(Option<TableName>, String)> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let is_default = matches!(function.name.0.as_slice(), [ObjectNamePart::Identifier(name)]
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"));
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(column))] if is_default => match column {
            Expr::Identifier(name) => Some((None, name.value.clone())),
            Expr::CompoundIdentifier(names) => {
                let (database, table, name) = match names.as_slice() {
                    [table, name] => (None, table, name),
                    [database, table, name] => (Some(database.value.clone()), table, name),
                    _ => return None,
                };
                let table = TableName {
                    database,
                    table: table.value.clone(),
                };
                Some((Some(table), name.value.clone()))
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::may_call;

    #[test]
    fn calls_are_seen_in_the_text() {
        assert!(may_call("SELECT default (a) FROM t"));
        assert!(may_call("SELECT d, DEFAULT(a)"));
        assert!(!may_call("INSERT INTO t VALUES (DEFAULT, 1)"));
        assert!(!may_call("SELECT d\u{e9}fault(a)"));
        assert!(!may_call("defaul"));
    }
}
