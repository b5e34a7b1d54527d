//! SELECT DISTINCT in the order of what is not selected.
//!
//! It has no one answer, so with ONLY_FULL_GROUP_BY it is error 3065, which the planner knows.
//! Without that mode MySQL orders each row by a value of one of the rows that it stands for. Here
//! the select becomes one that groups by all that it selects, where the same is answered by
//! `any_value()`:
//!
//! ```text
//! SELECT DISTINCT a FROM t ORDER BY b    SELECT a FROM t GROUP BY a ORDER BY any_value(b)
//! ```
//!
//! One that groups already, and selects all that it groups by, needs no DISTINCT; another is
//! left as it is.

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, OrderBy, OrderByKind, Select, SelectItem,
};

use super::Loose;
use super::columns::expand_wildcards;
use super::context::{GroupingContext, aliases};
use super::determined::Determined;
use super::group_by::{flat_keys, is_rolled_up, position};
use super::keys::{constant, keys};
use super::tables::Tables;
use crate::select_list::{expression_of, is_wildcard};
use crate::walk;

/// Makes a select that neither groups nor aggregates one that groups, if its order needs it;
/// whether it did.
pub(super) fn group(
    select: &mut Select,
    order_by: Option<&OrderBy>,
    context: &GroupingContext<'_>,
) -> bool {
    let Some(OrderByKind::Expressions(list)) = order_by.map(|order_by| &order_by.kind) else {
        return false;
    };
    let is_distinct = matches!(select.distinct, Some(Distinct::Distinct));
    if !is_distinct || context.bindings.only_full_group_by {
        return false;
    }
    let mut grouped = select.clone();
    expand_wildcards(&mut grouped, Tables::of(select, context).all());
    let mut is_window = |expr: &Expr| matches!(expr, Expr::Function(call) if call.over.is_some());
    if grouped.projection.iter().any(is_wildcard)
        || walk::finds(&grouped.projection, &mut is_window)
    {
        return false;
    }
    let items = grouped.projection.iter().filter_map(expression_of);
    let mut selected: Vec<Expr> = items.filter(|item| !is_constant(item)).cloned().collect();
    if selected.is_empty() {
        selected.push(constant());
    }
    grouped.group_by = GroupByExpr::Expressions(selected, Vec::new());
    grouped.distinct = None;
    let named = aliases(&grouped);
    let keys = keys(&grouped, &named);
    let determined = Determined::of(&grouped, context, &named);
    let outputs = named.into_keys().collect();
    let is_needed = list.iter().any(|by| {
        let aggregates = &context.bindings.aggregates;
        let mut found = Loose::new(&keys, aggregates, Some(&outputs), &determined);
        let _ = walk::write(&mut by.expr.clone(), &mut found);
        found.first.is_some()
    });
    if is_needed {
        *select = grouped;
    }
    is_needed
}

/// Takes DISTINCT from a select that groups by nothing but what it selects.
pub(super) fn leave_out(select: &mut Select, context: &GroupingContext<'_>) {
    let is_distinct = matches!(select.distinct, Some(Distinct::Distinct));
    if !is_distinct || context.bindings.only_full_group_by || is_rolled_up(select) {
        return;
    }
    let tables = Tables::of(select, context);
    let is_selected = |key: &&Expr| {
        let place = tables.find(key);
        let is_alias = |name: &str| {
            let mut items = select.projection.iter();
            items.any(|item| matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value == name))
        };
        let mut items = select.projection.iter().filter_map(expression_of);
        match key {
            // A column goes before an alias.
            Expr::Identifier(name) if place.is_none() => {
                tables.lack(&name.value) && is_alias(&name.value)
            }
            key if position(key).is_some() => true,
            key => {
                items.any(|item| item == *key || (place.is_some() && tables.find(item) == place))
            }
        }
    };
    if flat_keys(select).iter().all(is_selected) {
        select.distinct = None;
    }
}

/// Whether an expression has one value, as far as its form tells.
fn is_constant(expr: &Expr) -> bool {
    !walk::finds(expr, &mut |expr| {
        matches!(
            expr,
            Expr::Identifier(_)
                | Expr::CompoundIdentifier(_)
                | Expr::Function(_)
                | Expr::Subquery(_)
                | Expr::Exists { .. }
                | Expr::InSubquery { .. }
        )
    })
}
