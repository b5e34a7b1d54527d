//! Whether tables and queries have a column of a name.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{Expr, Select, SelectItem, SetExpr, TableFactor};

use super::relation::{base_table, name_of};
use crate::bindings::Bindings;
use crate::from_list;
use crate::select_list::{is_wildcard, table_of_star};

/// Whether a table of FROM has a column of this name; `None` if one is not known.
pub(super) fn finds_column(select: &Select, name: &str, bindings: &Bindings) -> Option<bool> {
    let tables = from_list::tables(&select.from).into_iter();
    any(tables.map(|table| table_has(table, name, bindings)))
}

/// Whether a table has a column of this name; `None` if it is not known.
pub(super) fn table_has(table: &TableFactor, name: &str, bindings: &Bindings) -> Option<bool> {
    match table {
        TableFactor::Derived {
            alias: Some(alias), ..
        } if !alias.columns.is_empty() => {
            let mut names = alias.columns.iter().map(|column| &column.name.value);
            Some(names.any(|column| column.eq_ignore_ascii_case(name)))
        }
        TableFactor::Derived { subquery, .. } => shows(&subquery.body, name, bindings),
        table => {
            let (.., table) = base_table(table, bindings)?;
            let mut columns = table.columns.iter();
            Some(columns.any(|column| column.eq_ignore_ascii_case(name)))
        }
    }
}

/// Whether a query has a column of this name; `None` if the name of one is not known.
pub(super) fn shows(body: &SetExpr, name: &str, bindings: &Bindings) -> Option<bool> {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { left, .. } => return shows(left, name, bindings),
        SetExpr::Query(query) => return shows(&query.body, name, bindings),
        _ => return None,
    };
    let (stars, items): (Vec<_>, Vec<_>) =
        { select.projection.iter() }.partition(|i| is_wildcard(i));
    let shown = items.into_iter().map(|item| {
        let shown = match item {
            SelectItem::ExprWithAlias { alias, .. } => alias,
            SelectItem::UnnamedExpr(Expr::Identifier(ident)) => ident,
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last()?,
            _ => return None,
        };
        Some(shown.value.eq_ignore_ascii_case(name))
    });
    // Each table is asked once, however many items show it: below it there may be as many again.
    let has_all = stars.iter().any(|star| table_of_star(star).is_none());
    let named = { stars.iter() }.filter_map(|star| table_of_star(star)?.0.last()?.as_ident());
    let named: HashSet<&str> = named.map(|ident| ident.value.as_str()).collect();
    let tables = from_list::tables(&select.from).into_iter();
    let tables = tables.filter(|table| {
        has_all || name_of(table).is_none_or(|called| named.contains(called.as_str()))
    });
    let tables: Vec<&TableFactor> = if stars.is_empty() {
        Vec::new()
    } else {
        tables.collect()
    };
    // A table that is not found under its name may be any.
    let is_found = has_all || named.len() <= tables.len();
    let of_tables = tables
        .into_iter()
        .map(|table| table_has(table, name, bindings));
    any(shown.chain(of_tables).chain((!is_found).then_some(None)))
}

/// Whether one of some is true; `None` if that cannot be told.
pub(super) fn any(of: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut is_known = true;
    for one in of {
        match one {
            Some(true) => return Some(true),
            Some(false) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(false)
}

#[cfg(test)]
mod tests {
    use super::shows;
    use crate::bindings::Bindings;
    use crate::parse::parse;
    use crate::statement::Statement;

    fn shows_in(query: &str, name: &str) -> Option<bool> {
        let (statement, _) = parse(query).expect("a statement");
        let Statement::Query(query) = statement else {
            return None;
        };
        shows(&query.body, name, &Bindings::default())
    }

    #[test]
    fn a_star_shows_the_table_that_it_names() {
        let from = "FROM (SELECT 1 AS a) x JOIN (SELECT 2 AS b) y";
        assert_eq!(shows_in(&format!("SELECT x.* {from}"), "b"), Some(false));
        assert_eq!(shows_in(&format!("SELECT y.* {from}"), "b"), Some(true));
        assert_eq!(shows_in(&format!("SELECT * {from}"), "B"), Some(true));
        assert_eq!(shows_in(&format!("SELECT z.* {from}"), "b"), None);
    }

    /// Were a table asked once for each star, this would take 3^24 steps.
    #[test]
    fn stars_of_nested_queries_do_not_double_the_work() {
        let mut query = "SELECT 1 AS c".to_owned();
        for level in 0..24 {
            query = format!("SELECT x.*, y.*, x.* FROM ({query}) x JOIN (SELECT 2 AS c{level}) y");
        }
        assert_eq!(shows_in(&query, "nothing"), Some(false));
    }
}
