//! Correlated subqueries that would be answered wrongly, refused.
//!
//! DataFusion moves the conditions of a correlated subquery that name outer columns above the rest
//! of it, to a join with the outer rows. That is not the same where what lies between depends on
//! which rows there are: an aggregate has a row for no rows too, a window counts its neighbours, an
//! outer join fills up what its condition did not find, and EXCEPT takes away what is there.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, Subquery};
use mayfly_types::{ErrorCode, MySqlError};

use super::except::is_set_operation;
use super::outer_keys::has_outer_key;
use super::subquery_expressions::is_correlated;
use crate::functions::raise;
use crate::planning::check as watched;

/// What subqueries do with outer columns that the stock rules take wrongly.
#[derive(Default)]
pub(super) struct Found {
    /// Whether one of them groups by outer columns.
    pub(super) outer_keys: bool,
    /// Whether one of them names outer columns in ON of an inner join.
    pub(super) outer_joins: bool,
}

/// Looks at all subqueries of a plan that nothing has changed.
///
/// # Errors
/// 1235.
pub(super) fn check(plan: &LogicalPlan) -> Result<Found> {
    let mut found = Found::default();
    plan.apply_with_subqueries(|node| {
        watched()?;
        found.outer_keys |= has_outer_key(node);
        found.outer_joins |= has_outer_join(node);
        if is_lateral_moved_wrongly(node) {
            return Err(refused());
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                let (subquery, is_test) = match expr {
                    Expr::ScalarSubquery(subquery) => (subquery, false),
                    Expr::Exists(Exists { subquery, .. }) => {
                        if is_correlated(subquery)
                            && loses_limit(shown(&subquery.subquery), &mut false)
                        {
                            return Err(refused());
                        }
                        (subquery, true)
                    }
                    Expr::InSubquery(InSubquery { subquery, .. })
                    | Expr::SetComparison(SetComparison { subquery, .. }) => (subquery, true),
                    _ => return Ok(TreeNodeRecursion::Continue),
                };
                match is_moved_wrongly(subquery, is_test) {
                    true => Err(refused()),
                    false => Ok(TreeNodeRecursion::Continue),
                }
            })
        })
    })?;
    Ok(found)
}

fn has_outer_join(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            join.filter.as_ref().is_some_and(Expr::contains_outer)
        }
        _ => false,
    }
}

/// A plan that asks what inner joins ask of outer columns above them. The stock rules find columns
/// for a condition in ON by their names alone, and would take those of both sides.
pub(super) fn above_joins(plan: LogicalPlan) -> Result<LogicalPlan> {
    let moved = plan.transform_up_with_subqueries(|node| {
        watched()?;
        let is_moved = has_outer_join(&node);
        let mut join = match node {
            LogicalPlan::Join(join) if is_moved => join,
            node => return Ok(Transformed::no(node)),
        };
        let terms = join.filter.take().into_iter();
        let terms = terms.flat_map(split_conjunction_owned);
        let (outer, own): (Vec<Expr>, Vec<Expr>) = terms.partition(Expr::contains_outer);
        join.filter = conjunction(own);
        let plan = LogicalPlanBuilder::from(LogicalPlan::Join(join));
        let filters = conjunction(outer).into_iter();
        let plan = { filters }.try_fold(plan, LogicalPlanBuilder::filter)?;
        Ok(Transformed::yes(plan.build()?))
    });
    moved.data()
}

/// The refusal of a subquery.
pub(crate) fn refused() -> DataFusionError {
    let what = "this form of correlated subquery";
    raise(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]))
}

fn is_moved_wrongly(subquery: &Subquery, is_test: bool) -> bool {
    is_correlated(subquery) && has_barrier(&subquery.subquery, is_test)
}

/// Whether a LATERAL table is one whose conditions on outer columns must stay where they are. The
/// stock rule for these shows the columns of the conditions too, so DISTINCT would tell apart rows
/// that are alike without them.
fn is_lateral_moved_wrongly(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Subquery(lateral) => {
            is_moved_wrongly(lateral, false) || has_outer_below_distinct(lateral)
        }
        _ => false,
    }
}

fn has_outer_below_distinct(lateral: &Subquery) -> bool {
    let is_distinct = |node: &LogicalPlan| Ok(matches!(node, LogicalPlan::Distinct(_)));
    // The walk itself cannot fail.
    is_correlated(lateral) && lateral.subquery.exists(is_distinct).unwrap_or(true)
}

/// Whether a condition with outer columns would have to pass what it must not. The row for no rows
/// of a value that is computed is made elsewhere; `is_test` is whether the rows themselves are
/// asked for.
fn has_barrier(plan: &LogicalPlan, is_test: bool) -> bool {
    let is_barrier = match plan {
        // Rows of one side alone can be asked for later.
        LogicalPlan::Join(join) if is_set_operation(join) => {
            names_outer(&join.right) || (!is_test && names_outer(&join.left))
        }
        LogicalPlan::Join(join) => {
            let condition = join.filter.iter();
            let mut keys = join.on.iter().flat_map(|(left, right)| [left, right]);
            let is_outer = join.join_type != JoinType::Inner;
            let pads = |side: &LogicalPlan, pads: bool| pads && names_outer(side);
            let (left, right) = match join.join_type {
                JoinType::Left => (false, true),
                JoinType::Right => (true, false),
                JoinType::Full => (true, true),
                _ => (false, false),
            };
            (is_outer && (condition.chain(&mut keys).any(Expr::contains_outer)))
                || pads(&join.left, left)
                || pads(&join.right, right)
        }
        LogicalPlan::Window(_) => names_outer(plan),
        // It may leave no row of an aggregate that has one in any case.
        LogicalPlan::Filter(filter) => {
            filter.predicate.contains_outer() && is_of_one_row(&filter.input)
        }
        LogicalPlan::Aggregate(aggregate) => {
            is_test && aggregate.group_expr.is_empty() && names_outer(plan)
        }
        _ => false,
    };
    is_barrier || { plan.inputs().into_iter() }.any(|input| has_barrier(input, is_test))
}

/// Whether a plan is an aggregate without keys, or computed from one.
fn is_of_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_of_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_of_one_row(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// A subquery below the order and the limit of its own select, which are known.
fn shown(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(projection) => shown(&projection.input),
        LogicalPlan::Sort(sort) => shown(&sort.input),
        LogicalPlan::Limit(limit) => &limit.input,
        plan => plan,
    }
}

/// Whether the stock rule for EXISTS forgets a LIMIT: it does of any that it meets, from below,
/// after a condition with outer columns.
fn loses_limit(plan: &LogicalPlan, has_outer: &mut bool) -> bool {
    let below = { plan.inputs().into_iter() }.any(|input| loses_limit(input, has_outer));
    let is_lost = *has_outer && matches!(plan, LogicalPlan::Limit(_));
    *has_outer |= plan.contains_outer_reference();
    below || is_lost
}

/// Whether the stock rules do not find outer columns where they stand: in a derived table, whose
/// columns they do not extend, or on the left of EXCEPT or INTERSECT.
pub(super) fn is_mended(plan: &LogicalPlan) -> bool {
    let here = match plan {
        LogicalPlan::SubqueryAlias(alias) => names_outer(&alias.input),
        LogicalPlan::Join(join) => is_set_operation(join) && names_outer(&join.left),
        _ => false,
    };
    here || plan.inputs().into_iter().any(is_mended)
}

fn names_outer(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}
