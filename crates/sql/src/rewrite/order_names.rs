//! Names in ORDER BY that are both a column and the alias of something else.
//!
//! Alone, a name is the alias: `SELECT -n AS n ... ORDER BY n`. Inside an expression and behind the
//! name of a table it is the column: `ORDER BY n + 0`, `ORDER BY t.n`. The planner takes the alias
//! every time, so where a column is meant the alias gets a name that nobody can write. So does one
//! beside `*`, which may show a column of its name. That of an aggregate is refused there.
//!
//! **Source**: `find_order_in_list` of MariaDB's `sql/sql_select.cc`.

use std::collections::{HashMap, HashSet};

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, OrderBy, OrderByExpr, OrderByKind, Select, SelectItem, SetExpr, TableFactor, Visit,
};
use mayfly_types::{ErrorCode, MySqlError};

use super::grouping;
use super::labels::apart;
use super::refused::{check_no_window, is_aggregate};
use super::relation::{base_table, name_of};
use crate::bindings::Bindings;
use crate::functions::own::MARK;
use crate::select_list::{expression_of, is_wildcard, table_of_star};
use crate::{from_list, walk};

/// Sets the aliases apart that the ORDER BY of a select does not mean, and where the columns may
/// have any name those of the names of columns that `*` shows. They may in the outermost select,
/// whose labels are kept elsewhere, and where nobody asks for them.
///
/// # Errors
/// 1235 in a subquery, whose columns need their names.
pub(super) fn set_aliases_apart(
    select: &mut Select,
    order_by: Option<&mut OrderBy>,
    bindings: &Bindings,
    is_free: bool,
) -> Result<(), MySqlError> {
    let mut none = Vec::new();
    let list = match order_by.map(|order_by| &mut order_by.kind) {
        Some(OrderByKind::Expressions(list)) => list,
        Some(OrderByKind::All(_)) => return Ok(()),
        None => &mut none,
    };
    let has_star = is_free && select.projection.iter().any(is_wildcard);
    // Asked once for all keys: a wide list has as many aliases as an order may have keys.
    let named = names_within(list);
    if named.is_empty() && !has_star {
        return Ok(());
    }
    let mut renamed = HashMap::new();
    for item in &select.projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else {
            continue;
        };
        let name = &alias.value;
        if name.starts_with(MARK) {
            continue;
        }
        let is_column_meant = named.contains(name)
            && list
                .iter()
                .any(|by| means_column(&by.expr, name, select, expr, bindings));
        // One that is no column of a known table is left to whoever asks for it by its name.
        let is_shown = || {
            let is_asked = |by: &OrderByExpr| alone(&by.expr).is_none() && names(&by.expr, name);
            has_column(select, name, bindings)
                || !(list.iter().any(is_asked)
                    || select.having.iter().any(|having| names(having, name))
                    || names(&select.group_by, name))
        };
        if !is_column(expr, name) && is_column_meant || has_star && is_shown() {
            renamed.insert(name.clone(), apart(name));
        }
    }
    if renamed.is_empty() {
        return Ok(());
    }
    if !is_free {
        let what = "ORDER BY a column beside an alias of its name in a subquery";
        return Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]));
    }
    grouping::write_out_aliases(select, &renamed, bindings);
    let renamed = |ident: &Ident| {
        renamed
            .get(&ident.value)
            .map(|name| Ident::with_quote('`', name))
    };
    for item in &mut select.projection {
        if let SelectItem::ExprWithAlias { alias, .. } = item
            && let Some(name) = renamed(alias)
        {
            *alias = name;
        }
    }
    for by in list {
        if let Some(name) = alone(&by.expr).and_then(renamed) {
            by.expr = Expr::Identifier(name);
        }
    }
    Ok(())
}

/// Refuses keys that compute something with the alias of an aggregate, as MySQL does: only as a
/// whole key, and in HAVING, it means the value of its group.
///
/// # Errors
/// 1247 for an alias that no column of FROM is meant by.
pub(super) fn refuse_groups(
    select: &Select,
    order_by: Option<&OrderBy>,
    bindings: &Bindings,
) -> Result<(), MySqlError> {
    let Some(OrderByKind::Expressions(list)) = order_by.map(|order_by| &order_by.kind) else {
        return Ok(());
    };
    let named = names_within(list);
    if named.is_empty() {
        return Ok(());
    }
    for item in &select.projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else {
            continue;
        };
        let name = &alias.value;
        let is_within = |by: &OrderByExpr| {
            alone(&by.expr).is_none() && names(&by.expr, name) && check_no_window(&by.expr).is_ok()
        };
        if named.contains(name)
            && !name.starts_with(MARK)
            && is_of_groups(expr, &bindings.aggregates)
            && list.iter().any(is_within)
            && finds_column(select, name, bindings) == Some(false)
        {
            let arguments: [&dyn std::fmt::Display; 2] = [name, &"reference to group function"];
            return Err(MySqlError::new(ErrorCode::IllegalReference, &arguments));
        }
    }
    Ok(())
}

/// Whether an expression aggregates, other than inside of windows, which come behind the groups.
fn is_of_groups(expr: &Expr, aggregates: &HashSet<String>) -> bool {
    let mut in_windows = 0;
    walk::finds(expr, &mut |expr| {
        if let Expr::Function(function) = expr
            && function.over.is_some()
        {
            in_windows += aggregates_in(function, aggregates);
        }
        false
    });
    aggregates_in(expr, aggregates) > in_windows
}

/// How many aggregates there are, but for ANY_VALUE, which is none in MySQL.
fn aggregates_in(node: &impl Visit, aggregates: &HashSet<String>) -> usize {
    let mut count = 0;
    walk::finds(node, &mut |expr| {
        if let Expr::Function(function) = expr {
            let is_any = function.name.to_string().eq_ignore_ascii_case("any_value");
            let aggregates = function.over.is_none() && is_aggregate(expr, aggregates);
            count += usize::from(aggregates && !is_any);
        }
        false
    });
    count
}

/// The names of columns and aliases in keys that are more than a name.
fn names_within(keys: &[OrderByExpr]) -> HashSet<String> {
    let mut names = HashSet::new();
    for key in keys.iter().filter(|key| alone(&key.expr).is_none()) {
        walk::finds(&key.expr, &mut |expr| {
            let name = match expr {
                Expr::Identifier(name) => Some(name),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            names.extend(name.map(|name| name.value.clone()));
            false
        });
    }
    names
}

/// Whether something names a column or an alias, without a table.
fn names(node: &impl Visit, name: &str) -> bool {
    walk::finds(
        node,
        &mut |expr| matches!(expr, Expr::Identifier(ident) if ident.value == name),
    )
}

/// Whether an expression is a column of this name.
fn is_column(expr: &Expr, name: &str) -> bool {
    match expr {
        Expr::Identifier(ident) => ident.value == name,
        other => is_qualified(other, name),
    }
}

fn is_qualified(expr: &Expr, name: &str) -> bool {
    let Expr::CompoundIdentifier(parts) = expr else {
        return false;
    };
    let is_variable = parts[0].value.starts_with('@');
    !is_variable && parts.last().is_some_and(|part| part.value == name)
}

/// The name that an expression is, in parentheses or not.
fn alone(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(ident) => Some(ident),
        Expr::Nested(inner) => alone(inner),
        _ => None,
    }
}

/// Whether a key of ORDER BY takes a name for a column, where `aliased` has it for an alias.
fn means_column(
    key: &Expr,
    name: &str,
    select: &Select,
    aliased: &Expr,
    bindings: &Bindings,
) -> bool {
    if alone(key).is_some() {
        return false;
    }
    walk::finds(key, &mut |expr| is_qualified(expr, name))
        || names(key, name)
            && (walk::finds(aliased, &mut |expr| is_column(expr, name))
                || has_column(select, name, bindings))
}

/// Whether a table of FROM is known to have a column of this name.
fn has_column(select: &Select, name: &str, bindings: &Bindings) -> bool {
    let is_named = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => alias.value == name,
        item => expression_of(item).is_some_and(|expr| is_column(expr, name)),
    };
    from_list::tables(&select.from)
        .into_iter()
        .any(|table| match table {
            TableFactor::Derived {
                alias, subquery, ..
            } => {
                let columns = alias.iter().flat_map(|alias| &alias.columns);
                let mut names = columns.map(|column| &column.name.value).peekable();
                match (names.peek(), subquery.body.as_ref()) {
                    (Some(_), _) => names.any(|column| column == name),
                    (None, SetExpr::Select(select)) => select.projection.iter().any(is_named),
                    _ => false,
                }
            }
            table => base_table(table, bindings)
                .is_some_and(|(.., table)| table.columns.iter().any(|c| c.to_lowercase() == name)),
        })
}

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
fn shows(body: &SetExpr, name: &str, bindings: &Bindings) -> Option<bool> {
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
