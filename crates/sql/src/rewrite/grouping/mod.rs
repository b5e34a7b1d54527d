//! GROUP BY as MySQL reads it.
//!
//! With ONLY_FULL_GROUP_BY a column that is neither grouped nor aggregated is error 1055 or 1140;
//! without it, any value of the group may be answered: the column is wrapped in `any_value()`. A
//! column that depends on what is grouped has one value in the group, and is wrapped too.
//! HAVING without GROUP BY and without aggregates is a second WHERE.
//!
//! Columns are compared as columns, other expressions by their text without qualifiers. Where two
//! tables have a column of one name this is too generous; the planner then refuses what is left.

mod columns;
mod context;
mod dependencies;
mod determined;
mod distinct;
mod group_by;
mod keys;
mod tables;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem,
    SetExpr, Value, VisitorMut,
};
use mayfly_types::MySqlError;

use super::call::call;
use super::refused::is_grouped;
use crate::bindings::Bindings;
use crate::walk;
pub(super) use columns::relations;
use columns::{expand_wildcards, name_of, refusal};
use context::aliases;
pub(super) use context::{GroupingContext, has_aggregate, is_aggregate};
use determined::Determined;
pub(super) use group_by::position;
use keys::{check_keys, key, keys, write_out_numbers};

/// Applies the rules to the selects of a query body.
pub(super) fn apply(
    body: &mut SetExpr,
    order_by: Option<&mut OrderBy>,
    context: &GroupingContext<'_>,
) -> Result<(), MySqlError> {
    match body {
        SetExpr::Select(select) => apply_select(select, order_by, context),
        SetExpr::SetOperation { left, right, .. } => {
            apply(left, None, context)?;
            apply(right, None, context)
        }
        _ => Ok(()),
    }
}

fn apply_select(
    select: &mut Select,
    order_by: Option<&mut OrderBy>,
    context: &GroupingContext<'_>,
) -> Result<(), MySqlError> {
    let bindings = context.bindings;
    let aggregates = &bindings.aggregates;
    let mut grouped = is_grouped(select);
    let mut aggregated = select
        .projection
        .iter()
        .any(|item| has_aggregate(item, aggregates))
        || select
            .having
            .iter()
            .any(|having| has_aggregate(having, aggregates));
    if let Some(order_by) = &order_by {
        aggregated |= has_aggregate(*order_by, aggregates);
    }
    if !grouped && !aggregated {
        having_as_where(select);
        grouped = distinct::group(select, order_by.as_deref(), context);
        if !grouped {
            return Ok(());
        }
    } else if grouped {
        distinct::leave_out(select, context);
    }
    let named = aliases(select);
    check_keys(select, &named, context)?;
    let keys = keys(select, &named);
    let mut outputs: HashSet<String> = named.keys().cloned().collect();
    write_out_numbers(select, &named, bindings);
    let determined = Determined::of(select, context, &named);
    if !bindings.only_full_group_by || !determined.is_empty() {
        expand_wildcards(select, determined.tables());
    }
    group_what_subqueries_name(select, order_by.as_deref(), &determined);
    let refuse = |select: &Select, column: &Expr, number, clause| {
        refusal(select, column, number, clause, grouped, bindings)
    };
    for (index, item) in select.projection.iter_mut().enumerate() {
        let mut found = Loose::new(&keys, aggregates, None, &determined);
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                let _ = walk::write(expr, &mut found);
            }
            _ => continue,
        }
        if let Some(column) = &found.undetermined
            && bindings.only_full_group_by
        {
            return Err(refuse(select, column, index + 1, "SELECT list"));
        }
        if let Some(column) = found.first
            && let SelectItem::UnnamedExpr(expr) = item
        {
            let name = name_of(&column);
            outputs.insert(name.clone());
            let expr = std::mem::replace(expr, Expr::Value(Value::Null.into()));
            *item = SelectItem::ExprWithAlias {
                expr,
                alias: Ident::with_quote('`', name),
            };
        }
    }
    // With those that were wrapped above.
    let named = aliases(select);
    if let Some(columns) = relations(select, bindings) {
        let is_column = |name: &str| {
            let mut tables = columns.iter().map(|(.., table)| table);
            tables.any(|table| table.columns.iter().any(|c| c.to_lowercase() == name))
        };
        let named =
            { named.iter() }.filter(|(name, expr)| is_column(name) && !is_named(expr, name));
        shadow_columns(select, named, &keys, aggregates);
    }
    if let Some(having) = &mut select.having {
        let mut found = Loose::new(&keys, aggregates, Some(&outputs), &determined);
        let _ = walk::write(having, &mut found);
        if let Some(column) = found.undetermined
            && bindings.only_full_group_by
        {
            return Err(refuse(select, &column, 1, "HAVING clause"));
        }
    }
    if let Some(OrderBy {
        kind: OrderByKind::Expressions(list),
        ..
    }) = order_by
    {
        for (index, by) in list.iter_mut().enumerate() {
            let mut found = Loose {
                passes_outer: false,
                ..Loose::new(&keys, aggregates, Some(&outputs), &determined)
            };
            let _ = walk::write(&mut by.expr, &mut found);
            if let Some(column) = found.undetermined
                && bindings.only_full_group_by
            {
                return Err(refuse(select, &column, index + 1, "ORDER BY"));
            }
        }
    }
    Ok(())
}

/// Groups by columns that subqueries name, which see only what is grouped. Since those depend on
/// the keys the groups stay the same.
fn group_what_subqueries_name(
    select: &mut Select,
    order_by: Option<&OrderBy>,
    determined: &Determined<'_>,
) {
    if determined.is_empty() {
        return;
    }
    let mut named = determined.in_subqueries(&select.projection);
    named.extend(determined.in_subqueries(&select.having));
    named.extend(
        order_by
            .into_iter()
            .flat_map(|by| determined.in_subqueries(by)),
    );
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by
        && !keys.is_empty()
    {
        for column in named {
            if !keys.contains(&column) {
                keys.push(column);
            }
        }
    }
}

/// Writes the expressions of some aliases into HAVING, where an alias goes before a column of a
/// table, unless that is grouped by.
fn shadow_columns<'a>(
    select: &mut Select,
    named: impl Iterator<Item = (&'a String, &'a Expr)>,
    keys: &HashSet<String>,
    aggregates: &HashSet<String>,
) {
    let Some(having) = &mut select.having else {
        return;
    };
    let named = named.filter(|(name, _)| !keys.contains(&format!("`{name}`")));
    let mut shadow = Shadow {
        aliases: named.map(|(name, expr)| (name.as_str(), expr)).collect(),
        aggregates,
        depth: 0,
    };
    let _ = walk::write(having, &mut shadow);
}

/// Puts expressions in the place of aliases; inside an aggregate a column is meant.
struct Shadow<'a> {
    /// Aliases, by their names.
    aliases: HashMap<&'a str, &'a Expr>,
    aggregates: &'a HashSet<String>,
    depth: usize,
}

impl Shadow<'_> {
    fn enters(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Function(function) if is_aggregate(function, self.aggregates))
    }
}

impl VisitorMut for Shadow<'_> {
    type Break = ();

    walk::counts_depth!(&mut Query);

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.depth += usize::from(self.enters(expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Identifier(ident) = expr
            && let Some(meaning) = self.aliases.get(ident.value.as_str())
        {
            *expr = Expr::Nested(Box::new((*meaning).clone()));
        } else {
            self.depth -= usize::from(self.enters(expr));
        }
        ControlFlow::Continue(())
    }
}

/// Writes the expressions of the chosen aliases into HAVING.
pub(super) fn write_out_aliases(
    select: &mut Select,
    chosen: &HashMap<String, String>,
    bindings: &Bindings,
) {
    let named = aliases(select);
    let keys = keys(select, &HashMap::new());
    let named = { named.iter() }.filter(|(name, _)| chosen.contains_key(*name));
    shadow_columns(select, named, &keys, &bindings.aggregates);
}

fn is_named(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Identifier(ident) if ident.value == name)
}

/// Wraps what is neither grouped nor aggregated; remembers the first such column.
struct Loose<'a> {
    keys: &'a HashSet<String>,
    aggregates: &'a HashSet<String>,
    /// Names that stand for select items.
    outputs: Option<&'a HashSet<String>>,
    determined: &'a Determined<'a>,
    /// Whether columns of outer queries stay as they are: each has one value for all groups.
    passes_outer: bool,
    safe: Vec<bool>,
    first: Option<Expr>,
    /// The first one that may have several values in a group.
    undetermined: Option<Expr>,
}

impl<'a> Loose<'a> {
    fn new(
        keys: &'a HashSet<String>,
        aggregates: &'a HashSet<String>,
        outputs: Option<&'a HashSet<String>>,
        determined: &'a Determined<'a>,
    ) -> Loose<'a> {
        Loose {
            keys,
            aggregates,
            outputs,
            determined,
            passes_outer: true,
            safe: Vec::new(),
            first: None,
            undetermined: None,
        }
    }

    fn is_safe(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Subquery(_) | Expr::Exists { .. } => return true,
            Expr::Function(function) if is_aggregate(function, self.aggregates) => return true,
            Expr::Identifier(ident)
                if self
                    .outputs
                    .is_some_and(|outputs| outputs.contains(&ident.value)) =>
            {
                return true;
            }
            column if self.passes_outer && self.determined.is_outside(column) => return true,
            _ => {}
        }
        match self.determined.is_grouped(expr) {
            Some(is_grouped) => is_grouped,
            None => self.keys.contains(&key(expr)),
        }
    }
}

impl VisitorMut for Loose<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        // Columns of a subquery are its own business.
        self.safe.push(true);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.safe.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let safe = self.safe.last().copied().unwrap_or(false) || self.is_safe(expr);
        self.safe.push(safe);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let safe = self.safe.pop().unwrap_or(true);
        if !safe && matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            let column = std::mem::replace(expr, Expr::Value(Value::Null.into()));
            self.first.get_or_insert_with(|| column.clone());
            if !self.determined.has(&column) {
                self.undetermined.get_or_insert_with(|| column.clone());
            }
            *expr = call("any_value", vec![column]);
        }
        ControlFlow::Continue(())
    }
}

fn having_as_where(select: &mut Select) {
    let Some(mut having) = select.having.take() else {
        return;
    };
    let aliases = aliases(select);
    walk::change_expressions(&mut having, &mut |expr| {
        if let Expr::Identifier(ident) = expr
            && let Some(meaning) = aliases.get(&ident.value)
        {
            *expr = Expr::Nested(Box::new(meaning.clone()));
        }
    });
    select.selection = Some(match select.selection.take() {
        None => having,
        Some(condition) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(condition))),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(Box::new(having))),
        },
    });
}
