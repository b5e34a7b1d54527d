//! From MySQL's syntax tree to one that DataFusion's planner reads in the same sense.
//!
//! Owns the rewrites that need no types: labels and aliases, identifier case, files as tables,
//! variables, `||`, ORDER BY NULL, WITH ROLLUP, ONLY_FULL_GROUP_BY. What depends on types is the
//! analyzer's. Never looks a name up: what it needs stands in the bindings.

mod expression;
mod grouping;
mod labels;
mod relation;

pub(crate) use expression::call;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, GroupByExpr, GroupByWithModifier, Ident, LimitClause, NamedWindowExpr, OrderBy,
    OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, Value, VisitMut, VisitorMut,
    WindowType,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Location;
use mayfly_types::{ErrorCode, MySqlError};

use crate::bindings::Bindings;
use crate::dialect::MayflyDialect;
use crate::source::Source;

/// A rewritten query and how its columns are labelled.
pub(crate) struct Rewritten {
    pub(crate) query: Query,
    pub(crate) labels: labels::Labels,
}

/// Rewrites a query.
pub(crate) fn query(
    mut query: Query,
    source: &Source,
    bindings: &Bindings,
) -> Result<Rewritten, MySqlError> {
    let mut rewriter = Rewriter {
        source,
        bindings,
        spellings: labels::spellings(bindings),
        top_location: top_select(&query.body),
        top: None,
        recursive: HashSet::new(),
    };
    if let ControlFlow::Break(error) = VisitMut::visit(&mut query, &mut rewriter) {
        return Err(error);
    }
    let labels = labels::Labels::new(rewriter.top.unwrap_or_default(), rewriter.spellings);
    Ok(Rewritten { query, labels })
}

/// Rewrites an expression that stands alone.
pub(crate) fn expression(mut expr: Expr, bindings: &Bindings) -> Result<Expr, MySqlError> {
    let source = Source::default();
    let mut rewriter = Rewriter {
        source: &source,
        bindings,
        spellings: labels::spellings(bindings),
        top_location: None,
        top: None,
        recursive: HashSet::new(),
    };
    match VisitMut::visit(&mut expr, &mut rewriter) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(expr),
    }
}

/// The first select of a query, which labels its columns.
fn top_select(body: &SetExpr) -> Option<Location> {
    match body {
        SetExpr::Select(select) => Some(select.select_token.0.span.start),
        SetExpr::Query(query) => top_select(&query.body),
        SetExpr::SetOperation { left, .. } => top_select(left),
        _ => None,
    }
}

/// The selects of a union.
fn selects(body: &SetExpr, found: &mut HashSet<Location>) {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            for side in [left, right] {
                match side.as_ref() {
                    SetExpr::Select(select) => {
                        found.insert(select.select_token.0.span.start);
                    }
                    other => selects(other, found),
                }
            }
        }
        SetExpr::Query(query) => selects(&query.body, found),
        _ => {}
    }
}

struct Rewriter<'a> {
    // fixed
    source: &'a Source,
    bindings: &'a Bindings,
    /// Where the select list stands that labels the result.
    top_location: Option<Location>,
    // state
    /// How names in lower case were written.
    spellings: HashMap<String, String>,
    /// Labels of the first outermost select list.
    top: Option<Vec<labels::Item>>,
    /// The selects that make up recursive common table expressions.
    recursive: HashSet<Location>,
}

fn stop<T>(error: MySqlError) -> ControlFlow<MySqlError, T> {
    ControlFlow::Break(error)
}

impl VisitorMut for Rewriter<'_> {
    type Break = MySqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<MySqlError> {
        query.locks.clear();
        if let Some(with) = &mut query.with {
            for cte in &mut with.cte_tables {
                self.lower_columns(&mut cte.alias);
                if with.recursive {
                    selects(&cte.query.body, &mut self.recursive);
                }
            }
        }
        if let SetExpr::Table(table) = query.body.as_ref() {
            let name = [table.schema_name.as_deref(), table.table_name.as_deref()]
                .into_iter()
                .flatten()
                .map(|part| format!("`{}`", part.replace('`', "``")))
                .collect::<Vec<_>>()
                .join(".");
            let text = format!("SELECT * FROM {name}");
            match Parser::new(&MayflyDialect)
                .try_with_sql(&text)
                .and_then(|mut parser| parser.parse_query())
            {
                Ok(select) => query.body = select.body,
                Err(_) => return stop(MySqlError::new(ErrorCode::Syntax, &[&text, &1])),
            }
        }
        if let Some(OrderBy {
            kind: OrderByKind::Expressions(list),
            ..
        }) = &mut query.order_by
        {
            list.retain(|by| !matches!(&by.expr, Expr::Value(value) if value.value == Value::Null));
            if list.is_empty() {
                query.order_by = None;
            }
        }
        if let Some(limit) = &mut query.limit_clause {
            clamp_limit(limit);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<MySqlError> {
        let Query { body, order_by, .. } = query;
        match grouping::apply(body, order_by.as_mut(), self.bindings) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => stop(error),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<MySqlError> {
        select.select_modifiers = None;
        select.optimizer_hints.clear();
        relation::simplify(select, self.bindings);
        if let Err(error) = relation::check_names(select) {
            return stop(error);
        }
        crate::typing::syntax::conditions(select);
        if self.recursive.contains(&select.select_token.0.span.start) {
            labels::untyped(select);
        }
        let outermost = self.top_location == Some(select.select_token.0.span.start);
        let items = labels::name(select, self.source, &mut self.spellings, outermost);
        if outermost {
            self.top = Some(items);
        }
        for window in &mut select.named_window {
            lower(&mut window.0);
            if let NamedWindowExpr::NamedWindow(other) = &mut window.1 {
                lower(other);
            }
        }
        rollup(&mut select.group_by)
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<MySqlError> {
        crate::typing::syntax::conditions(select);
        if self.recursive.contains(&select.select_token.0.span.start) {
            labels::untyped(select);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<MySqlError> {
        match factor {
            TableFactor::Derived {
                alias: Some(alias), ..
            } => self.lower_columns(alias),
            TableFactor::Derived { alias: None, .. } => {
                return stop(MySqlError::new(ErrorCode::DerivedMustHaveAlias, &[]));
            }
            other => relation::resolve(other),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<MySqlError> {
        if let Expr::Function(Function {
            over: Some(WindowType::NamedWindow(name)),
            ..
        }) = expr
        {
            lower(name);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<MySqlError> {
        match expression::rewrite(expr, self.bindings) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => stop(error),
        }
    }
}

impl Rewriter<'_> {
    fn lower_columns(&mut self, alias: &mut datafusion::sql::sqlparser::ast::TableAlias) {
        for column in &mut alias.columns {
            labels::remember(&mut self.spellings, &column.name.value);
            lower(&mut column.name);
        }
    }
}

/// Columns are compared without regard to case, so all are planned in lower case.
pub(crate) fn lower(ident: &mut Ident) {
    ident.value = ident.value.to_lowercase();
    ident.quote_style = Some('`');
}

/// Turns GROUP BY a, b WITH ROLLUP into the form that the planner knows.
fn rollup(group_by: &mut GroupByExpr) -> ControlFlow<MySqlError> {
    let GroupByExpr::Expressions(list, modifiers) = group_by else {
        return ControlFlow::Continue(());
    };
    match modifiers.as_slice() {
        [] => {}
        [GroupByWithModifier::Rollup] => {
            modifiers.clear();
            let sets = std::mem::take(list)
                .into_iter()
                .map(|expr| vec![expr])
                .collect();
            list.push(Expr::Rollup(sets));
        }
        _ => {
            return stop(MySqlError::new(
                ErrorCode::NotSupportedYet,
                &[&"GROUP BY ... WITH (other than ROLLUP)"],
            ));
        }
    }
    ControlFlow::Continue(())
}

/// The planner counts rows in 63 bits; MySQL's idiom for "all" has 64.
fn clamp_limit(clause: &mut LimitClause) {
    let clamp = |expr: &mut Expr| {
        if let Expr::Value(value) = expr
            && let Value::Number(digits, _) = &mut value.value
            && let Ok(number) = digits.parse::<u64>()
        {
            *digits = number.min(i64::MAX.unsigned_abs()).to_string();
        }
    };
    match clause {
        LimitClause::LimitOffset { limit, offset, .. } => {
            if let Some(limit) = limit {
                clamp(limit);
            }
            if let Some(offset) = offset {
                clamp(&mut offset.value);
            }
        }
        LimitClause::OffsetCommaLimit { offset, limit } => {
            clamp(offset);
            clamp(limit);
        }
    }
}

/// The column that a select item names without more, if it is one.
fn plain_column(item: &SelectItem) -> Option<&Ident> {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(ident)) => Some(ident),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last(),
        _ => None,
    }
}
