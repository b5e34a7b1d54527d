//! DISTINCT with a LIMIT over a derived table that has an order.
//!
//! MySQL fills a derived table in its order, and DISTINCT keeps the first of equal rows: what it
//! shows comes in that order too, and a LIMIT decides by it which rows are shown. Paginators count
//! on it, Doctrine's for one. Here the rows of DISTINCT come in no order, so the rows of the
//! derived table get numbers, and each group goes by its least one:
//!
//! ```text
//!   SELECT DISTINCT id FROM (SELECT DISTINCT id, name FROM t ORDER BY name) r LIMIT 10
//!
//!   SELECT id FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY name) AS place
//!                   FROM (SELECT DISTINCT id, name FROM t) s) r
//!   GROUP BY id ORDER BY MIN(place) LIMIT 10
//! ```
//!
//! A derived table that is merged has no order of its own, as in MySQL. One whose order names what
//! it does not show is left as it is.
//!
//! **Source**: answers of MySQL 9.7 and MariaDB 10.11.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr,
    TableFactor,
};
use mayfly_types::MySqlError;

use super::merged::is_merged;
use crate::bindings::Bindings;
use crate::functions::own::MARK;
use crate::parse;
use crate::select_list::{column, expression_of};

/// Gives such a query the order of its derived table.
///
/// # Errors
/// None but for a bug in the parser.
pub(super) fn keep_order(query: &mut Query, bindings: &Bindings) -> Result<(), MySqlError> {
    if query.order_by.is_some() || query.limit_clause.is_none() {
        return Ok(());
    }
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Ok(());
    };
    let Some(selected) = columns_alone(select) else {
        return Ok(());
    };
    let Some(derived) = only_derived(select) else {
        return Ok(());
    };
    if is_merged(derived, bindings) {
        return Ok(());
    }
    let Some(keys) = keys(derived) else {
        return Ok(());
    };
    number(derived, &keys)?;
    select.distinct = None;
    select.group_by = GroupByExpr::Expressions(selected, Vec::new());
    let ordered = parse::skeleton(&format!("SELECT 1 ORDER BY MIN(`{MARK}place`)"))?;
    query.order_by = ordered.order_by;
    Ok(())
}

/// What a DISTINCT selects that neither groups nor computes anything.
fn columns_alone(select: &Select) -> Option<Vec<Expr>> {
    let is_distinct = matches!(select.distinct, Some(Distinct::Distinct));
    let groups = match &select.group_by {
        GroupByExpr::Expressions(keys, modifiers) => !keys.is_empty() || !modifiers.is_empty(),
        GroupByExpr::All(_) => true,
    };
    if !is_distinct || groups || select.having.is_some() || select.into.is_some() {
        return None;
    }
    let items = select.projection.iter();
    items
        .map(|item| {
            expression_of(item)
                .filter(|expr| column(expr).is_some())
                .cloned()
        })
        .collect()
}

/// The query of a derived table that is all of FROM.
fn only_derived(select: &mut Select) -> Option<&mut Query> {
    let [table] = select.from.as_mut_slice() else {
        return None;
    };
    match &mut table.relation {
        TableFactor::Derived {
            lateral: false,
            subquery,
            alias: Some(alias),
            ..
        } if table.joins.is_empty() && alias.columns.is_empty() => Some(subquery),
        _ => None,
    }
}

/// The keys that a query is ordered by, as text, if it shows all of them.
fn keys(query: &Query) -> Option<String> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let OrderByKind::Expressions(list) = &query.order_by.as_ref()?.kind else {
        return None;
    };
    let keys: Option<Vec<String>> = list.iter().map(|by| key(by, select)).collect();
    keys.map(|keys| keys.join(", "))
}

fn key(by: &OrderByExpr, select: &Select) -> Option<String> {
    let parts = column(&by.expr)?;
    let name = parts.last()?.value.to_lowercase();
    let is_it = |item: &&SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => {
            parts.len() == 1 && alias.value.to_lowercase() == name
        }
        SelectItem::UnnamedExpr(expr) => column(expr).is_some_and(|shown| {
            let mut pairs = shown.iter().rev().zip(parts.iter().rev());
            pairs.all(|(one, other)| one.value.to_lowercase() == other.value.to_lowercase())
        }),
        _ => false,
    };
    // A star may show it as well.
    let has_star = select
        .projection
        .iter()
        .any(|item| expression_of(item).is_none());
    if has_star || select.projection.iter().filter(is_it).count() != 1 {
        return None;
    }
    let direction = match by.options.asc {
        Some(false) => " DESC",
        _ => "",
    };
    Some(format!("`{}`{direction}", name.replace('`', "``")))
}

/// Puts a query around that of a derived table, which numbers its rows in the order of these keys.
fn number(derived: &mut Query, keys: &str) -> Result<(), MySqlError> {
    let text = format!(
        "SELECT *, ROW_NUMBER() OVER (ORDER BY {keys}) AS `{MARK}place` \
         FROM (SELECT 1) AS `{MARK}rows`"
    );
    let numbered = parse::skeleton(&text)?;
    let mut rows = std::mem::replace(derived, numbered);
    if rows.limit_clause.is_none() {
        rows.order_by = None;
    }
    if let SetExpr::Select(select) = derived.body.as_mut() {
        // It stands nowhere in the statement.
        select.select_token = AttachedToken::empty();
        if let Some(TableFactor::Derived { subquery, .. }) =
            select.from.first_mut().map(|table| &mut table.relation)
        {
            **subquery = rows;
        }
    }
    Ok(())
}
