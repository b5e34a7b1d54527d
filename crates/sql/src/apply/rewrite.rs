//! Puts Apply below what asks for a subquery.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, internal_err};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, Sort, SortExpr,
    Subquery as OuterSubquery,
};

use mayfly_exec::Yield;

use super::node::{Apply, Subquery, field_of};
use super::outer::{
    OuterColumns, has_outer_rows, is_correlated, is_lateral, names_outer_row, next_number,
};
use super::tests_of_rows::{compared, exists, result, rows_of};
use crate::planning::{analyzed, check, unnested};
use crate::typing::{subquery_of, with_subquery};

/// A plan without types, in which the correlated subqueries that no rule unnests run row by row.
///
/// # Errors
/// Those of the subqueries' own plans.
pub(crate) fn with_applied(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    check()?;
    if is_lateral(&plan) {
        // What stands in it may name the row beside it, which the join above knows.
        return Ok(plan);
    }
    let plan = plan.map_children(|input| with_applied(state, input).map(Transformed::yes))?;
    let node = with_applied_inside(state, plan.data)?.data;
    Ok(at_node(state, &node)?.unwrap_or(node))
}

/// A node whose subqueries that name no row around them have what they need inside of them.
fn with_applied_inside(
    state: &SessionState,
    node: LogicalPlan,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.transform_up(|expr| match subquery_of(&expr) {
            Some(subquery) if !is_correlated(subquery)? && has_outer_rows(&subquery.subquery)? => {
                let plan = with_applied(state, subquery.subquery.as_ref().clone())?;
                let subquery = OuterSubquery {
                    subquery: Arc::new(plan),
                    ..subquery.clone()
                };
                Ok(Transformed::yes(with_subquery(expr, subquery)))
            }
            _ => Ok(Transformed::no(expr)),
        })?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })
}

/// A node over the values of its subqueries; `None` if it needs none.
fn at_node(state: &SessionState, node: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let mut is_asked = matches!(node, LogicalPlan::Join(join) if lateral(join).is_some());
    for expr in node.expressions() {
        is_asked |= names_outer_row(&expr)?;
    }
    if !is_asked {
        return Ok(None);
    }
    let applied = match node {
        LogicalPlan::Filter(filter) => filtered(state, filter)?,
        _ if unnested(state, node.clone()).is_ok() => None,
        LogicalPlan::Join(join) => joined(state, join)?,
        LogicalPlan::Sort(sort) => Some(sorted(state, sort)?),
        _ => match node.inputs().as_slice() {
            [input] => Some(over_input(state, node, input)?),
            _ => None,
        },
    };
    applied.map(|plan| showing(plan, node)).transpose()
}

/// A plan with the columns of a node alone.
fn showing(plan: LogicalPlan, node: &LogicalPlan) -> Result<LogicalPlan> {
    let columns = node.schema().columns();
    if plan.schema().columns() == columns {
        return Ok(plan);
    }
    let columns = columns.into_iter().map(Expr::Column);
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// A filter: what rules can do is asked first, so that subqueries run for few rows. `None` if they
/// can do all of it.
fn filtered(state: &SessionState, filter: &Filter) -> Result<Option<LogicalPlan>> {
    let over = |predicate: Expr, input: &Arc<LogicalPlan>| {
        Filter::try_new(predicate, Arc::clone(input)).map(LogicalPlan::Filter)
    };
    let mut plain = Vec::new();
    let mut applied = Vec::new();
    for term in split_conjunction_owned(filter.predicate.clone()) {
        let is_plain =
            !names_outer_row(&term)? || unnested(state, over(term.clone(), &filter.input)?).is_ok();
        match is_plain {
            true => plain.push(term),
            false => applied.push(term),
        }
    }
    if applied.is_empty() {
        return Ok(None);
    }
    let input = match conjunction(plain) {
        Some(predicate) => over(predicate, &filter.input)?,
        None => filter.input.as_ref().clone(),
    };
    let mut rows = Rows::of(state, input)?;
    let terms = applied.into_iter().map(|term| rows.with_values(term));
    let terms = terms.collect::<Result<Vec<_>>>()?;
    let plan = LogicalPlanBuilder::from(rows.plan);
    let plan = { conjunction(terms).into_iter() }.try_fold(plan, LogicalPlanBuilder::filter)?;
    plan.build().map(Some)
}

/// A join: an inner one is filtered behind it. A subquery in ON of another is the value of a row of
/// one side; `None` where one names both.
fn joined(state: &SessionState, join: &Join) -> Result<Option<LogicalPlan>> {
    if let Some(subquery) = lateral(join) {
        return beside(state, join, subquery);
    }
    let Some(condition) = &join.filter else {
        return Ok(None);
    };
    if join.join_type == JoinType::Inner {
        let mut plain = join.clone();
        plain.filter = None;
        let filter = Filter::try_new(condition.clone(), Arc::new(LogicalPlan::Join(plain)))?;
        let applied = filtered(state, &filter)?;
        return Ok(Some(applied.unwrap_or(LogicalPlan::Filter(filter))));
    }
    let mut sides = [&join.left, &join.right].map(|side| Some(side.as_ref().clone()));
    let mut terms = Vec::new();
    for mut term in split_conjunction_owned(condition.clone()) {
        if names_outer_row(&term)? {
            let named = outer_columns(&term)?;
            let side = sides.iter_mut().find(|side| {
                side.as_ref().is_some_and(|side| {
                    { named.iter() }.all(|column| field_of(side.schema(), column).is_some())
                })
            });
            let Some(side) = side else {
                return Ok(None);
            };
            let Some(plan) = side.take() else {
                return Ok(None);
            };
            let mut rows = Rows::of(state, plan)?;
            term = rows.with_values(term)?;
            *side = Some(rows.plan);
        }
        terms.push(term);
    }
    let [Some(left), Some(right)] = sides else {
        return Ok(None);
    };
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        join.on.clone(),
        conjunction(terms),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    Ok(Some(LogicalPlan::Join(join)))
}

/// The subquery on the right side of a join that names columns of the left one.
fn lateral(join: &Join) -> Option<&OuterSubquery> {
    let below = match join.right.as_ref() {
        LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
        right => right,
    };
    match below {
        LogicalPlan::Subquery(subquery) if is_lateral(below) => Some(subquery),
        _ => None,
    }
}

/// The rows of a join's left side, each beside those that the subquery on the right has for it.
fn beside(
    state: &SessionState,
    join: &Join,
    subquery: &OuterSubquery,
) -> Result<Option<LogicalPlan>> {
    let yields = match join.join_type {
        JoinType::Inner => Yield::Rows,
        JoinType::Left => Yield::RowsOrNull,
        _ => return Ok(None),
    };
    let mut rows = Rows::of(state, join.left.as_ref().clone())?;
    let on = join.on.iter();
    let on = on.map(|(left, right)| left.clone().eq(right.clone()));
    let condition = conjunction(on.chain(join.filter.clone()));
    rows.apply(yields, |outer| {
        let plan = outer.in_subquery(subquery.subquery.as_ref().clone())?;
        let mut plan = LogicalPlanBuilder::from(plan);
        if let LogicalPlan::SubqueryAlias(alias) = join.right.as_ref() {
            plan = plan.alias(alias.alias.clone())?;
        }
        match condition {
            Some(condition) => plan.filter(outer.in_value(condition)?)?.build(),
            None => plan.build(),
        }
    })?;
    Ok(Some(rows.plan))
}

/// The outer columns of the subqueries of an expression, and what it compares with them.
fn outer_columns(expr: &Expr) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    expr.apply(|expr| {
        if let Some(subquery) = subquery_of(expr) {
            for outer in &subquery.outer_ref_columns {
                if let Expr::OuterReferenceColumn(_, column) = outer {
                    found.push(column.clone());
                }
            }
            if let Expr::InSubquery(InSubquery { expr, .. })
            | Expr::SetComparison(SetComparison { expr, .. }) = expr
            {
                found.extend(expr.column_refs().into_iter().cloned());
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// An order: a subquery in it names rows of the query, of which the select list below the order may
/// have no column.
fn sorted(state: &SessionState, sort: &Sort) -> Result<LogicalPlan> {
    let (mut rows, list) = match sort.input.as_ref() {
        LogicalPlan::Projection(list) => {
            let rows = Rows::of(state, list.input.as_ref().clone())?;
            (rows, Some(&list.expr))
        }
        input => (Rows::of(state, input.clone())?, None),
    };
    let before = rows.plan.schema().fields().len();
    let mut keys = Vec::with_capacity(sort.expr.len());
    for key in &sort.expr {
        keys.push(SortExpr {
            expr: rows.with_values(key.expr.clone())?,
            ..key.clone()
        });
    }
    let found = rows.plan.schema().columns().split_off(before);
    let mut plan = LogicalPlanBuilder::from(rows.plan);
    if let Some(list) = list {
        let found = found.into_iter().map(Expr::Column);
        plan = plan.project(list.iter().cloned().chain(found))?;
    }
    plan.sort_with_limit(keys, sort.fetch)?.build()
}

/// Any other node of one input.
fn over_input(
    state: &SessionState,
    node: &LogicalPlan,
    input: &LogicalPlan,
) -> Result<LogicalPlan> {
    let mut rows = Rows::of(state, input.clone())?;
    let names = NamePreserver::new(node);
    let replaced = node.clone().map_expressions(|expr| {
        let name = names.save(&expr);
        let expr = rows.with_values(expr)?;
        Ok(Transformed::yes(name.restore(expr)))
    })?;
    let exprs = replaced.data.expressions();
    replaced.data.with_new_exprs(exprs, vec![rows.plan])
}

/// Rows that gain the values of subqueries.
struct Rows<'a> {
    state: &'a SessionState,
    /// It has its types.
    plan: LogicalPlan,
}

impl<'a> Rows<'a> {
    fn of(state: &'a SessionState, plan: LogicalPlan) -> Result<Self> {
        Ok(Self {
            state,
            plan: analyzed(state, plan)?,
        })
    }

    /// An expression with columns in the place of its correlated subqueries.
    fn with_values(&mut self, expr: Expr) -> Result<Expr> {
        let expr = expr.transform_up(|expr| match subquery_of(&expr) {
            Some(subquery) if is_correlated(subquery)? => self.value_of(expr).map(Transformed::yes),
            _ => Ok(Transformed::no(expr)),
        });
        expr.data()
    }

    fn value_of(&mut self, expr: Expr) -> Result<Expr> {
        Ok(match expr {
            Expr::ScalarSubquery(subquery) => {
                self.value(|outer| outer.in_subquery(Arc::unwrap_or_clone(subquery.subquery)))?
            }
            Expr::Exists(Exists { subquery, negated }) => {
                let rows = self.value(|outer| {
                    rows_of(outer.in_subquery(Arc::unwrap_or_clone(subquery.subquery))?)
                })?;
                exists(rows, negated)
            }
            Expr::InSubquery(InSubquery {
                expr,
                subquery,
                negated,
            }) => {
                let plan = Arc::unwrap_or_clone(subquery.subquery);
                self.test(*expr, plan, Operator::Eq, &SetQuantifier::Any, negated)?
            }
            Expr::SetComparison(SetComparison {
                expr,
                subquery,
                op,
                quantifier,
            }) => {
                let plan = Arc::unwrap_or_clone(subquery.subquery);
                self.test(*expr, plan, op, &quantifier, false)?
            }
            other => other,
        })
    }

    fn test(
        &mut self,
        value: Expr,
        plan: LogicalPlan,
        operator: Operator,
        quantifier: &SetQuantifier,
        negated: bool,
    ) -> Result<Expr> {
        let number = self.value(|outer| {
            let plan = outer.in_subquery(plan)?;
            compared(plan, outer.in_value(value)?, operator, quantifier)
        })?;
        result(&number, quantifier, negated)
    }

    /// The column of a subquery's value.
    fn value(
        &mut self,
        subquery: impl FnOnce(&mut OuterColumns<'_>) -> Result<LogicalPlan>,
    ) -> Result<Expr> {
        let found = self.apply(Yield::Value, |outer| {
            let plan = subquery(outer)?;
            let value = Expr::Column(plan.schema().columns().swap_remove(0));
            let name = format!("value of subquery {}", next_number());
            LogicalPlanBuilder::from(plan)
                .project([value.alias(name)])?
                .build()
        })?;
        match <[Column; 1]>::try_from(found) {
            Ok([value]) => Ok(Expr::Column(value)),
            Err(_) => internal_err!("a value has one column"),
        }
    }

    /// Puts what a subquery has for each row beside it; gives its columns.
    fn apply(
        &mut self,
        yields: Yield,
        subquery: impl FnOnce(&mut OuterColumns<'_>) -> Result<LogicalPlan>,
    ) -> Result<Vec<Column>> {
        let mut outer = OuterColumns::of(self.plan.schema());
        let plan = subquery(&mut outer)?;
        let outer = outer.found();
        let plan = optimized_or_applied(self.state, plan)?;
        let subquery = Subquery {
            varies: varies(&plan)?,
            plan,
            outer,
            yields,
        };
        let apply = Apply::over(self.plan.clone(), subquery)?;
        let found = apply.found();
        self.plan = apply.into_node();
        Ok(found)
    }
}

/// The plan of a subquery, whose own subqueries run row by row where nothing else will do.
fn optimized_or_applied(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    unnested(state, plan.clone()).or_else(|error| {
        let applied = with_applied(state, plan).and_then(|plan| unnested(state, plan));
        applied.map_err(|_| error)
    })
}

/// Whether a plan may have other rows each time.
fn varies(plan: &LogicalPlan) -> Result<bool> {
    let mut varies = false;
    plan.apply_with_subqueries(|node| {
        for expr in node.expressions() {
            varies |= expr.is_volatile();
        }
        varies |= Apply::of(node).is_some_and(|apply| apply.subquery.varies);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(varies)
}
