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

use super::found_columns::finds_column;
use super::grouping;
use super::labels::apart;
use super::refused::{check_no_window, is_aggregate};
use super::relation::base_table;
use crate::bindings::Bindings;
use crate::functions::own::MARK;
use crate::select_list::{expression_of, is_wildcard};
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
