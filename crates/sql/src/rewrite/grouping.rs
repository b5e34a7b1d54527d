//! GROUP BY as MySQL reads it.
//!
//! With ONLY_FULL_GROUP_BY a column that is neither grouped nor aggregated is error 1055 or 1140;
//! without it, any value of the group may be answered: the column is wrapped in `any_value()`.
//! HAVING without GROUP BY and without aggregates is a second WHERE.
//!
//! Expressions are compared by their text without qualifiers. Where two tables have a column of
//! one name this is too generous; the planner then refuses what is left.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, GroupByExpr, Ident, ObjectNamePart, OrderBy, OrderByKind,
    Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, Value, Visit,
    VisitMut, Visitor, VisitorMut,
};
use mayfly_types::{ErrorCode, MySqlError};

use super::expression::call;
use crate::bindings::{Bindings, BoundTable, FILES};

/// Applies the rules to the selects of a query body.
pub(super) fn apply(
    body: &mut SetExpr,
    order_by: Option<&mut OrderBy>,
    bindings: &Bindings,
) -> Result<(), MySqlError> {
    match body {
        SetExpr::Select(select) => apply_select(select, order_by, bindings),
        SetExpr::SetOperation { left, right, .. } => {
            apply(left, None, bindings)?;
            apply(right, None, bindings)
        }
        _ => Ok(()),
    }
}

fn apply_select(
    select: &mut Select,
    order_by: Option<&mut OrderBy>,
    bindings: &Bindings,
) -> Result<(), MySqlError> {
    let aggregates = &bindings.aggregates;
    let grouped = match &select.group_by {
        GroupByExpr::Expressions(list, _) => !list.is_empty(),
        GroupByExpr::All(_) => true,
    };
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
        return Ok(());
    }
    let aliases = aliases(select);
    let keys = keys(select, &aliases);
    let mut outputs: HashSet<String> = aliases.keys().cloned().collect();
    if !bindings.only_full_group_by {
        expand_wildcards(select, bindings);
    }
    for (index, item) in select.projection.iter_mut().enumerate() {
        let mut found = Loose::new(&keys, aggregates, None);
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                let _ = VisitMut::visit(expr, &mut found);
            }
            _ => continue,
        }
        if let Some(column) = found.first {
            if bindings.only_full_group_by {
                return Err(refusal(
                    select,
                    &column,
                    index + 1,
                    "SELECT list",
                    grouped,
                    bindings,
                ));
            }
            if let SelectItem::UnnamedExpr(expr) = item {
                let name = name_of(&column);
                outputs.insert(name.clone());
                let expr = std::mem::replace(expr, Expr::Value(Value::Null.into()));
                *item = SelectItem::ExprWithAlias {
                    expr,
                    alias: Ident::with_quote('`', name),
                };
            }
        }
    }
    if let Some(having) = &mut select.having {
        let mut found = Loose::new(&keys, aggregates, Some(&outputs));
        let _ = VisitMut::visit(having, &mut found);
        if let Some(column) = found.first
            && bindings.only_full_group_by
        {
            return Err(refusal(
                select,
                &column,
                1,
                "HAVING clause",
                grouped,
                bindings,
            ));
        }
    }
    if let Some(OrderBy {
        kind: OrderByKind::Expressions(list),
        ..
    }) = order_by
    {
        for (index, by) in list.iter_mut().enumerate() {
            let mut found = Loose::new(&keys, aggregates, Some(&outputs));
            let _ = VisitMut::visit(&mut by.expr, &mut found);
            if let Some(column) = found.first
                && bindings.only_full_group_by
            {
                return Err(refusal(
                    select,
                    &column,
                    index + 1,
                    "ORDER BY",
                    grouped,
                    bindings,
                ));
            }
        }
    }
    Ok(())
}

/// Wraps what is neither grouped nor aggregated; remembers the first such column.
struct Loose<'a> {
    keys: &'a HashSet<String>,
    aggregates: &'a HashSet<String>,
    /// Names that stand for select items.
    outputs: Option<&'a HashSet<String>>,
    safe: Vec<bool>,
    first: Option<Expr>,
}

impl<'a> Loose<'a> {
    fn new(
        keys: &'a HashSet<String>,
        aggregates: &'a HashSet<String>,
        outputs: Option<&'a HashSet<String>>,
    ) -> Loose<'a> {
        Loose {
            keys,
            aggregates,
            outputs,
            safe: Vec::new(),
            first: None,
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
            _ => {}
        }
        self.keys.contains(&key(expr))
    }
}

impl VisitorMut for Loose<'_> {
    type Break = ();

    fn pre_visit_query(
        &mut self,
        _query: &mut datafusion::sql::sqlparser::ast::Query,
    ) -> ControlFlow<()> {
        // Columns of a subquery are its own business.
        self.safe.push(true);
        ControlFlow::Continue(())
    }

    fn post_visit_query(
        &mut self,
        _query: &mut datafusion::sql::sqlparser::ast::Query,
    ) -> ControlFlow<()> {
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
            *expr = call("any_value", vec![column]);
        }
        ControlFlow::Continue(())
    }
}

struct FindAggregate<'a> {
    aggregates: &'a HashSet<String>,
    depth: usize,
}

impl Visitor for FindAggregate<'_> {
    type Break = ();

    fn pre_visit_query(
        &mut self,
        _query: &datafusion::sql::sqlparser::ast::Query,
    ) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(
        &mut self,
        _query: &datafusion::sql::sqlparser::ast::Query,
    ) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function)
                if self.depth == 0 && is_aggregate(function, self.aggregates) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn has_aggregate(node: &impl Visit, aggregates: &HashSet<String>) -> bool {
    node.visit(&mut FindAggregate {
        aggregates,
        depth: 0,
    })
    .is_break()
}

fn is_aggregate(function: &Function, aggregates: &HashSet<String>) -> bool {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
        return false;
    };
    let name = name.value.to_lowercase();
    function.over.is_none() && (aggregates.contains(&name) || name == "grouping")
}

/// The text by which expressions are compared.
fn key(expr: &Expr) -> String {
    struct Bare;
    impl VisitorMut for Bare {
        type Break = ();
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            match expr {
                Expr::CompoundIdentifier(parts) => {
                    if let Some(last) = parts.pop() {
                        *expr = Expr::Identifier(last);
                    }
                }
                Expr::Nested(inner) => {
                    *expr = std::mem::replace(inner, Expr::Value(Value::Null.into()));
                }
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let mut expr = expr.clone();
    let _ = VisitMut::visit(&mut expr, &mut Bare);
    expr.to_string()
}

fn name_of(column: &Expr) -> String {
    match column {
        Expr::Identifier(ident) => ident.value.clone(),
        Expr::CompoundIdentifier(parts) => parts
            .last()
            .map(|ident| ident.value.clone())
            .unwrap_or_default(),
        other => other.to_string(),
    }
}

/// Select items by their aliases.
fn aliases(select: &Select) -> HashMap<String, Expr> {
    select
        .projection
        .iter()
        .filter_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => Some((alias.value.clone(), expr.clone())),
            _ => None,
        })
        .collect()
}

/// What is grouped by: the expressions, and what positions and aliases among them stand for.
fn keys(select: &Select, aliases: &HashMap<String, Expr>) -> HashSet<String> {
    let mut keys = HashSet::new();
    let GroupByExpr::Expressions(list, _) = &select.group_by else {
        return keys;
    };
    let flat = list.iter().flat_map(|expr| match expr {
        Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
            sets.iter().flatten().collect::<Vec<_>>()
        }
        other => vec![other],
    });
    for expr in flat {
        keys.insert(key(expr));
        match expr {
            Expr::Value(value) => {
                if let Value::Number(digits, _) = &value.value
                    && let Some(item) = digits
                        .parse::<usize>()
                        .ok()
                        .and_then(|position| select.projection.get(position.checked_sub(1)?))
                    && let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } =
                        item
                {
                    keys.insert(key(expr));
                }
            }
            Expr::Identifier(ident) => {
                if let Some(expr) = aliases.get(&ident.value) {
                    keys.insert(key(expr));
                }
            }
            _ => {}
        }
    }
    keys
}

fn having_as_where(select: &mut Select) {
    struct Substitute<'a>(&'a HashMap<String, Expr>);
    impl VisitorMut for Substitute<'_> {
        type Break = ();
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Identifier(ident) = expr
                && let Some(meaning) = self.0.get(&ident.value)
            {
                *expr = Expr::Nested(Box::new(meaning.clone()));
            }
            ControlFlow::Continue(())
        }
    }
    let Some(mut having) = select.having.take() else {
        return;
    };
    let aliases = aliases(select);
    let _ = VisitMut::visit(&mut having, &mut Substitute(&aliases));
    select.selection = Some(match select.selection.take() {
        None => having,
        Some(condition) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(condition))),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(Box::new(having))),
        },
    });
}

/// The tables of FROM: alias, database, name, columns.
fn relations<'a>(
    select: &Select,
    bindings: &'a Bindings,
) -> Option<Vec<(String, String, String, &'a BoundTable)>> {
    let mut found = Vec::new();
    let factors = select.from.iter().flat_map(|table| {
        std::iter::once(&table.relation).chain(table.joins.iter().map(|j| &j.relation))
    });
    for factor in factors {
        let TableFactor::Table { name, alias, .. } = factor else {
            return None;
        };
        let parts: Vec<String> = name
            .0
            .iter()
            .filter_map(|part| part.as_ident().map(|ident| ident.value.clone()))
            .collect();
        let (database, table) = match parts.as_slice() {
            [table] => (bindings.database.clone()?, table.clone()),
            [database, table] => (database.clone(), table.clone()),
            _ => return None,
        };
        let bound = if database == FILES {
            bindings.files.get(&table)?
        } else {
            bindings.tables.get(&(database.clone(), table.clone()))?
        };
        let alias = alias
            .as_ref()
            .map_or_else(|| table.clone(), |alias| alias.name.value.clone());
        found.push((alias, database, table, bound));
    }
    Some(found)
}

/// `*` in a grouped query, column by column, so that each can be wrapped.
fn expand_wildcards(select: &mut Select, bindings: &Bindings) {
    let Some(relations) = relations(select, bindings) else {
        return;
    };
    let mut projection = Vec::new();
    for item in std::mem::take(&mut select.projection) {
        let only = match &item {
            SelectItem::Wildcard(_) => None,
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                name.0
                    .last()
                    .and_then(|part| part.as_ident())
                    .map(|ident| ident.value.clone())
            }
            _ => {
                projection.push(item);
                continue;
            }
        };
        for (alias, _, _, bound) in &relations {
            if only.as_ref().is_some_and(|only| only != alias) {
                continue;
            }
            for column in &bound.columns {
                projection.push(SelectItem::UnnamedExpr(Expr::CompoundIdentifier(vec![
                    Ident::with_quote('`', alias),
                    Ident::with_quote('`', column.to_lowercase()),
                ])));
            }
        }
    }
    select.projection = projection;
}

fn refusal(
    select: &Select,
    column: &Expr,
    number: usize,
    clause: &str,
    grouped: bool,
    bindings: &Bindings,
) -> MySqlError {
    let known = relations(select, bindings);
    let bare = name_of(column);
    if known.is_some_and(|tables| {
        !tables
            .iter()
            .any(|(.., table)| table.columns.iter().any(|c| c.to_lowercase() == bare))
    }) {
        let clause = match clause {
            "HAVING clause" => "having clause",
            "ORDER BY" => "order clause",
            _ => "field list",
        };
        return MySqlError::new(ErrorCode::UnknownColumn, &[&bare, &clause]);
    }
    let name = full_name(select, column, bindings);
    let code = if grouped {
        ErrorCode::NotInGroupBy
    } else {
        ErrorCode::MixOfGroupAndColumns
    };
    MySqlError::new(code, &[&number, &clause, &name])
}

/// `database.table.column` as far as it can be told.
fn full_name(select: &Select, column: &Expr, bindings: &Bindings) -> String {
    let name = name_of(column);
    let qualifier = match column {
        Expr::CompoundIdentifier(parts) if parts.len() > 1 => {
            Some(parts[parts.len() - 2].value.clone())
        }
        _ => None,
    };
    let relations = relations(select, bindings).unwrap_or_default();
    for (alias, database, _, bound) in &relations {
        let fits = match &qualifier {
            Some(qualifier) => qualifier == alias,
            None => bound
                .columns
                .iter()
                .any(|column| column.to_lowercase() == name),
        };
        if !fits {
            continue;
        }
        let spelled = bound
            .columns
            .iter()
            .find(|column| column.to_lowercase() == name);
        let spelled = spelled.cloned().unwrap_or(name);
        return if database == FILES {
            format!("{alias}.{spelled}")
        } else {
            format!("{database}.{alias}.{spelled}")
        };
    }
    qualifier.map_or(name.clone(), |qualifier| format!("{qualifier}.{name}"))
}
