//! From MySQL's syntax tree to one that DataFusion's planner reads in the same sense.
//!
//! Owns the rewrites that need no types: labels and aliases, identifier case, files as tables,
//! variables, `||`, ORDER BY NULL, WITH ROLLUP, ONLY_FULL_GROUP_BY. What depends on types is the
//! analyzer's. Never looks a name up: what it needs stands in the bindings.

mod call;
mod chain;
mod column_names;
pub(crate) mod common_columns;
pub(crate) mod ctes;
mod declared_names;
mod distinct_order;
pub(crate) mod expression;
mod found_columns;
mod grouping;
pub(crate) mod invisible;
mod labels;
mod long_literals;
pub(crate) mod merged;
mod order_names;
pub(crate) mod qualifiers;
mod query_columns;
mod recursion;
pub(crate) mod refused;
pub(crate) mod relation;
mod repeated_stars;
mod rollup;
mod shown_twice;
mod tuple;
pub(crate) mod values;
mod windows;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, LimitClause, NamedWindowExpr, ObjectName, OrderBy, OrderByKind, Query, Select,
    SetExpr, Spanned, TableAlias, TableFactor, Value, Visitor, VisitorMut, WindowType,
};
use datafusion::sql::sqlparser::tokenizer::Location;
use mayfly_types::{ErrorCode, MySqlError};

use crate::bindings::Bindings;
use crate::references::table_name;
use crate::select_list::{expression_of, is_wildcard};
use crate::source::Source;
use crate::statement::TableName;
use crate::walk;
pub(crate) use call::call;
pub(crate) use column_names::lower;
pub(crate) use expression::WINDOW_ONLY;
use long_literals::LongLiterals;
use query_columns::Columns;

/// A rewritten query and how its columns are labelled.
pub(crate) struct Rewritten {
    pub(crate) query: Query,
    pub(crate) labels: labels::Labels,
    /// Whether it has set operations that its plan does not have as they are meant.
    pub(crate) has_set_operations: bool,
}

/// Rewrites a query; `hides` is whether it names one of the invisible columns of a table, and `*`
/// leaves it out.
pub(crate) fn query(
    mut query: Query,
    source: &Source,
    bindings: &Bindings,
    hides: bool,
) -> Result<Rewritten, MySqlError> {
    let settled = qualifiers::settle(&mut query, source, bindings)?;
    let source = settled.as_ref().unwrap_or(source);
    let written = match hides || source.joins_by_name() {
        true => common_columns::write(&mut query, source, bindings)?,
        false => None,
    };
    let source = written.as_ref().unwrap_or(source);
    let mut rewriter = Rewriter {
        source,
        bindings,
        spellings: labels::spellings(bindings),
        top_location: top_select(&query.body),
        top: None,
        recursive: HashSet::new(),
        unnamed: HashSet::new(),
        ctes: ctes::Ctes::default(),
        has_set_operations: false,
        error: None,
    };
    let _ = walk::write(&mut query, &mut rewriter);
    if let Some(error) = rewriter.error {
        return Err(error);
    }
    let _ = walk::write(&mut query, &mut LongLiterals::new(&bindings.long_texts));
    let mut leftovers = Leftovers {
        source,
        error: None,
    };
    let _ = walk::read(&query, &mut leftovers);
    if let Some(error) = leftovers.error {
        return Err(error);
    }
    let labels = labels::Labels::new(rewriter.top.unwrap_or_default(), rewriter.spellings);
    Ok(Rewritten {
        query,
        labels,
        has_set_operations: rewriter.has_set_operations,
    })
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
        unnamed: HashSet::new(),
        ctes: ctes::Ctes::default(),
        has_set_operations: false,
        error: None,
    };
    let _ = walk::write(&mut expr, &mut rewriter);
    if let Some(error) = rewriter.error {
        return Err(error);
    }
    let _ = walk::write(&mut expr, &mut LongLiterals::new(&bindings.long_texts));
    Ok(expr)
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

/// The selects of a set operation but for the first one, which names the columns.
fn arms(body: &SetExpr, found: &mut HashSet<Location>) {
    if let SetExpr::SetOperation { left, right, .. } = body {
        arms(left, found);
        arms(right, found);
        found.extend(top_select(right));
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
    /// The selects whose columns nobody names.
    unnamed: HashSet<Location>,
    ctes: ctes::Ctes<ctes::Named>,
    /// The selects that make up recursive common table expressions.
    recursive: HashSet<Location>,
    /// Whether a chain of UNION was found, or another set operation with ALL.
    has_set_operations: bool,
    /// What ended the rewriting.
    error: Option<MySqlError>,
}

impl VisitorMut for Rewriter<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        query.locks.clear();
        if let Err(error) = distinct_order::keep_order(query, self.bindings) {
            return self.stop(error);
        }
        self.ctes.enter();
        if let Some(with) = &mut query.with {
            if let Err(error) = recursion::simplify(with, self.bindings) {
                return self.stop(error);
            }
            for cte in &mut with.cte_tables {
                let named = self.columns().of_cte(cte);
                if let Some(error) = duplicate_column(&named.columns) {
                    return self.stop(error);
                }
                self.ctes.add(named);
                self.lower_columns(&mut cte.alias);
                if with.recursive {
                    selects(&cte.query.body, &mut self.recursive);
                }
            }
        }
        if let Err(error) = shown_twice::check_order(query, self.columns()) {
            return self.stop(error);
        }
        self.ctes.go_inside(query.with.as_ref());
        match relation::table_as_select(&query.body) {
            Ok(Some(select)) => query.body = select,
            Ok(None) => {}
            Err(error) => return self.stop(error),
        }
        if let Some(OrderBy {
            kind: OrderByKind::Expressions(list),
            ..
        }) = &mut query.order_by
        {
            list.retain(|by| !expression::is_constant_key(&by.expr));
            if list.is_empty() {
                query.order_by = None;
            }
        }
        let checked = refused::check_order_of_set_operation(query);
        if let Err(error) = checked.and_then(|()| windows::write_out_order(query)) {
            return self.stop(error);
        }
        if let SetExpr::Select(select) = query.body.as_mut() {
            rollup::write_out_keys(select, self.bindings);
        }
        if let SetExpr::Select(select) = query.body.as_ref()
            && (query.limit_clause.is_some()
                || self.top_location == Some(select.select_token.0.span.start))
            && let Err(error) = rollup::sort(query)
        {
            return self.stop(error);
        }
        order_by_place(query);
        arms(&query.body, &mut self.unnamed);
        if let SetExpr::SetOperation { .. } = query.body.as_ref()
            && let Some(table) = query.order_by.as_ref().and_then(qualifier)
        {
            let code = ErrorCode::TablenameNotAllowed;
            return self.stop(MySqlError::new(code, &[&table, &"global ORDER clause"]));
        }
        if let Some(limit) = &mut query.limit_clause {
            clamp_limit(limit);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let Query {
            body,
            order_by,
            limit_clause,
            ..
        } = query;
        let mut order_by = order_by.as_mut();
        if let SetExpr::Select(select) = body.as_ref()
            && let Err(error) =
                order_names::refuse_groups(select, order_by.as_deref(), self.bindings)
        {
            return self.stop(error);
        }
        let is_limited = limit_clause.is_some();
        if let Err(error) = self.set_aliases_apart(body, order_by.as_deref_mut(), is_limited) {
            return self.stop(error);
        }
        let context = grouping::GroupingContext {
            bindings: self.bindings,
            spellings: &self.spellings,
            ctes: self.ctes.visible(),
        };
        if let Err(error) = grouping::apply(body, order_by, &context) {
            return self.stop(error);
        }
        // Only now: what is grouped may be one of the query, and not yet the one that it makes.
        self.ctes.leave();
        match chain::set_apart(body) {
            Ok(has_set_operations) => {
                self.has_set_operations |= has_set_operations;
                ControlFlow::Continue(())
            }
            Err(error) => self.stop(error),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let checked = refused::check_columns(select);
        let checked = checked.and_then(|()| refused::check_grouping(select));
        let settled = checked.and_then(|()| shown_twice::settle_clauses(select, self.columns()));
        if let Err(error) = settled {
            return self.stop(error);
        }
        select.select_modifiers = None;
        select.optimizer_hints.clear();
        if let Some(condition) = &mut select.selection
            && let Err(error) = tuple::in_subqueries(condition)
        {
            return self.stop(error);
        }
        if let Err(error) = relation::simplify(select, self.bindings) {
            return self.stop(error);
        }
        relation::name_stars(select, self.bindings);
        if let Err(error) = windows::write_out(select) {
            return self.stop(error);
        }
        let checked = relation::check_names(select);
        if let Err(error) = checked.and_then(|()| refused::check_windows(select, self.bindings)) {
            return self.stop(error);
        }
        crate::typing::syntax::conditions(select);
        if self.recursive.contains(&select.select_token.0.span.start) {
            labels::untyped(select);
        }
        let outermost = self.top_location == Some(select.select_token.0.span.start);
        let is_free = self.is_free(select);
        let merged = match outermost {
            true => self.columns().merged_labels(select),
            false => Vec::new(),
        };
        let mut items = labels::name(select, self.source, &mut self.spellings, is_free);
        for (item, label) in items.iter_mut().zip(merged) {
            if let (labels::Item::Label(text), Some(label)) = (item, label) {
                *text = label;
            }
        }
        if is_free {
            repeated_stars::write_out(select, self.columns());
        }
        if outermost {
            labels::remember_hidden(&mut self.spellings, &items);
            self.top = Some(items);
        }
        for window in &mut select.named_window {
            lower(&mut window.0);
            if let NamedWindowExpr::NamedWindow(other) = &mut window.1 {
                lower(other);
            }
        }
        rollup::write_out_keys(select, self.bindings);
        match rollup::write_out(&mut select.group_by) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.stop(error),
        }
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        crate::typing::syntax::conditions(select);
        if self.recursive.contains(&select.select_token.0.span.start) {
            labels::untyped(select);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Derived {
                alias: Some(alias),
                subquery,
                ..
            } => {
                let columns = self.columns().aliased(subquery, alias);
                if let Some(error) = duplicate_column(&columns) {
                    return self.stop(error);
                }
                self.lower_columns(alias);
            }
            TableFactor::Derived { alias: None, .. } => {
                return self.stop(MySqlError::new(ErrorCode::DerivedMustHaveAlias, &[]));
            }
            TableFactor::Table {
                name, partitions, ..
            } if !partitions.is_empty() && self.is_bound(name) => {
                return self.stop(MySqlError::new(ErrorCode::PartitionOfNone, &[]));
            }
            other => relation::resolve(other),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(Function {
            over: Some(WindowType::NamedWindow(name)),
            ..
        }) = expr
        {
            lower(name);
        }
        if let Expr::Exists { subquery, .. } = expr {
            self.unnamed.extend(top_select(&subquery.body));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expression::rewrite(expr, self.source, self.bindings) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.stop(error),
        }
    }
}

impl Rewriter<'_> {
    fn stop(&mut self, error: MySqlError) -> ControlFlow<()> {
        self.error = Some(error);
        ControlFlow::Break(())
    }

    /// What tells the columns of queries and tables here.
    fn columns(&self) -> Columns<'_> {
        Columns {
            source: self.source,
            bindings: self.bindings,
            ctes: self.ctes.visible(),
        }
    }

    /// Sets aliases apart in the selects of a query body.
    fn set_aliases_apart(
        &self,
        body: &mut SetExpr,
        order_by: Option<&mut OrderBy>,
        is_limited: bool,
    ) -> Result<(), MySqlError> {
        match body {
            SetExpr::Select(select) => {
                let is_free = self.is_free(select);
                // Without LIMIT the order of a subquery says nothing.
                let order_by = order_by.filter(|_| is_free || is_limited);
                order_names::set_aliases_apart(select, order_by, self.bindings, is_free)
            }
            // An order names columns of the first select.
            SetExpr::SetOperation { left, right, .. } => {
                if order_by.is_none() {
                    self.set_aliases_apart(left, None, false)?;
                }
                self.set_aliases_apart(right, None, false)
            }
            _ => Ok(()),
        }
    }

    /// Whether the columns of a select may have any name.
    fn is_free(&self, select: &Select) -> bool {
        let place = select.select_token.0.span.start;
        self.top_location == Some(place) || self.unnamed.contains(&place)
    }

    /// Whether a name is that of a table, and not of one that the planner misses.
    fn is_bound(&self, name: &ObjectName) -> bool {
        let Some(TableName { database, table }) = table_name(name) else {
            return false;
        };
        let mut ctes = self.ctes.visible().iter();
        let is_cte = database.is_none() && ctes.any(|cte| cte.name == table);
        let database = database.or_else(|| self.bindings.database.clone());
        let tables = &self.bindings.tables;
        is_cte || database.is_some_and(|database| tables.contains_key(&(database, table)))
    }

    fn lower_columns(&mut self, alias: &mut TableAlias) {
        for column in &mut alias.columns {
            labels::remember(&mut self.spellings, &column.name.value);
            lower(&mut column.name);
        }
    }
}

/// The columns of a derived table are called by their names, so none may occur twice.
fn duplicate_column(columns: &[String]) -> Option<MySqlError> {
    let mut seen = HashSet::new();
    let twice = { columns.iter() }.find(|name| !seen.insert(name.to_lowercase()))?;
    Some(MySqlError::new(ErrorCode::DuplicateColumn, &[twice]))
}

/// DISTINCT and ORDER BY the same expression: by its place in the select list, as the planner does
/// not find it there under its name.
fn order_by_place(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return;
    };
    let has_star = select.projection.iter().any(is_wildcard);
    let Some(OrderByKind::Expressions(list)) = query.order_by.as_mut().map(|by| &mut by.kind)
    else {
        return;
    };
    if select.distinct.is_none() || has_star {
        return;
    }
    for by in list {
        let is_name = matches!(by.expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        if is_name || matches!(by.expr, Expr::Value(_)) {
            continue;
        }
        let mut items = select.projection.iter();
        let place = items.position(|item| expression_of(item) == Some(&by.expr));
        if let Some(place) = place {
            let number = Value::Number((place + 1).to_string(), false);
            by.expr = Expr::Value(number.with_empty_span());
        }
    }
}

/// Finds what the rewriting should have turned into something that can be planned.
struct Leftovers<'a> {
    source: &'a Source,
    error: Option<MySqlError>,
}

impl Visitor for Leftovers<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.error = match expr {
            Expr::Tuple(_) => Some(MySqlError::new(ErrorCode::OperandColumns, &[&1])),
            Expr::Interval(_) => Some(self.source.syntax_error(expr.span().start)),
            _ => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(())
    }
}

/// The table that an ORDER BY names in front of a column.
fn qualifier(order_by: &OrderBy) -> Option<String> {
    let OrderByKind::Expressions(list) = &order_by.kind else {
        return None;
    };
    list.iter().find_map(|by| match &by.expr {
        Expr::CompoundIdentifier(parts) if !parts[0].value.starts_with('@') => {
            Some(parts[parts.len().checked_sub(2)?].value.clone())
        }
        _ => None,
    })
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
