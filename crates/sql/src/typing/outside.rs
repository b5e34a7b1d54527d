//! Subqueries where the engine takes none: in ON, in ORDER BY, and in aggregates and their keys.
//!
//! In ON of an inner join a condition may as well come after it. That of an outer join goes to the
//! side whose columns it names: as a condition on rows of the side that may be missing, otherwise
//! each of its subqueries as a column. In ORDER BY a subquery becomes a column too, which is
//! gone above the sort, and in an aggregate one of the rows that it groups.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, Sort,
};

use super::correlated::refused;
use super::subquery_expressions::{has_subquery, is_correlated, subquery_of};

/// A plan before and after it is typed.
pub(super) type Typed<'a> = &'a dyn Fn(LogicalPlan) -> Result<LogicalPlan>;

/// A join without subqueries in its condition, a sort without subqueries in its keys, or an
/// aggregate without any, which `typed` has not seen; `None` if a plan has none, or none that
/// matters.
pub(super) fn moved(plan: &LogicalPlan, typed: Typed<'_>) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Join(join) => match &join.filter {
            Some(filter) if has_subquery(filter)? => of_join(join, filter.clone(), typed),
            _ => Ok(None),
        },
        LogicalPlan::Sort(sort) => of_sort(sort, typed),
        LogicalPlan::Aggregate(aggregate) => of_aggregate(aggregate, typed),
        _ => Ok(None),
    }
}

fn of_join(join: &Join, filter: Expr, typed: Typed<'_>) -> Result<Option<LogicalPlan>> {
    let mut join = join.clone();
    let columns = join.schema.columns();
    let (mut kept, mut after) = (Vec::new(), Vec::new());
    if !is_moved(&filter)? {
        return Ok(None);
    }
    for condition in split_conjunction_owned(filter) {
        if !is_moved(&condition)? {
            kept.push(condition);
            continue;
        }
        let padded = match join.join_type {
            JoinType::Inner => {
                after.push(condition);
                continue;
            }
            JoinType::Left => &mut join.right,
            JoinType::Right => &mut join.left,
            _ => return Err(refused()),
        };
        if has_all(padded, &columns_of(&condition)?) {
            let rows = Filter::try_new(condition, Arc::clone(padded))?;
            *padded = Arc::new(typed(LogicalPlan::Filter(rows))?);
        } else {
            kept.push(with_columns_of_sides(&mut join, condition, typed)?);
        }
    }
    join.filter = kept.into_iter().reduce(Expr::and);
    let mut plan = typed(LogicalPlan::Join(join).recompute_schema()?)?;
    if let Some(condition) = after.into_iter().reduce(Expr::and) {
        plan = typed(LogicalPlan::Filter(Filter::try_new(
            condition,
            Arc::new(plan),
        )?))?;
    }
    with_columns(plan, columns).map(Some)
}

/// A condition whose subqueries are columns of the sides that they name columns of.
fn with_columns_of_sides(join: &mut Join, condition: Expr, typed: Typed<'_>) -> Result<Expr> {
    let changed = condition.transform_down(|expr| {
        if subquery_of(&expr).is_none() {
            return Ok(Transformed::no(expr));
        }
        let number = join.left.schema().fields().len() + join.right.schema().fields().len();
        let named = columns_of(&expr)?;
        let side = match (has_all(&join.left, &named), has_all(&join.right, &named)) {
            (true, _) => &mut join.left,
            (false, true) => &mut join.right,
            (false, false) => return Err(refused()),
        };
        let column = with_column(side, number, expr, typed)?;
        Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
    })?;
    Ok(changed.data)
}

fn has_all(plan: &LogicalPlan, columns: &[Column]) -> bool {
    { columns.iter() }.all(|column| plan.schema().has_column(column))
}

/// Whether a condition has a subquery with outer columns, or a test.
fn is_moved(condition: &Expr) -> Result<bool> {
    condition.exists(|expr| Ok(is_moved_itself(expr)))
}

fn is_moved_itself(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarSubquery(subquery) => is_correlated(subquery),
        expr => subquery_of(expr).is_some(),
    }
}

fn of_aggregate(aggregate: &Aggregate, typed: Typed<'_>) -> Result<Option<LogicalPlan>> {
    let mut input = Arc::clone(&aggregate.input);
    let mut moved = |exprs: &[Expr]| -> Result<Vec<Expr>> {
        { exprs.iter() }
            .map(|expr| with_column_of_input(expr, &mut input, typed))
            .collect()
    };
    let groups = moved(&aggregate.group_expr)?;
    let aggregates = moved(&aggregate.aggr_expr)?;
    if Arc::ptr_eq(&input, &aggregate.input) {
        return Ok(None);
    }
    let aggregate = Aggregate::try_new(input, groups, aggregates)?;
    typed(LogicalPlan::Aggregate(aggregate)).map(Some)
}

/// An expression whose subqueries are columns of the rows that it is over, under its own name.
fn with_column_of_input(
    expr: &Expr,
    input: &mut Arc<LogicalPlan>,
    typed: Typed<'_>,
) -> Result<Expr> {
    if !is_moved(expr)? {
        return Ok(expr.clone());
    }
    let (qualifier, name) = expr.qualified_name();
    let changed = expr.clone().transform_down(|expr| {
        if !is_moved_itself(&expr) {
            return Ok(Transformed::no(expr));
        }
        let number = input.schema().fields().len();
        let column = with_column(input, number, expr, typed)?;
        Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
    })?;
    Ok(changed.data.alias_qualified(qualifier, name))
}

/// The columns of a plan that an expression names, and those that its subqueries do.
fn columns_of(expr: &Expr) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = expr.column_refs().into_iter().cloned().collect();
    expr.apply(|expr| {
        let outer = subquery_of(expr)
            .into_iter()
            .flat_map(|subquery| &subquery.outer_ref_columns);
        for outer in outer {
            outer.apply(|outer| {
                if let Expr::OuterReferenceColumn(_, column) = outer {
                    columns.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(columns)
}

/// Gives a plan a further column, and tells it.
fn with_column(
    plan: &mut Arc<LogicalPlan>,
    number: usize,
    expr: Expr,
    typed: Typed<'_>,
) -> Result<Expr> {
    let columns = plan.schema().columns();
    let name = format!("mayfly subquery {number}");
    let mut list: Vec<Expr> = columns.into_iter().map(Expr::Column).collect();
    list.push(expr.alias(&name));
    let projection = Projection::try_new(list, Arc::clone(plan))?;
    *plan = Arc::new(typed(LogicalPlan::Projection(projection))?);
    Ok(Expr::Column(Column::new_unqualified(name)))
}

/// A plan with certain of its columns only.
fn with_columns(plan: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    if plan.schema().columns() == columns {
        return Ok(plan);
    }
    LogicalPlanBuilder::from(plan)
        .project(columns.into_iter().map(Expr::Column))?
        .build()
}

fn of_sort(sort: &Sort, typed: Typed<'_>) -> Result<Option<LogicalPlan>> {
    let columns = sort.input.schema().columns();
    let mut sort = sort.clone();
    let mut has_moved = false;
    for key in &mut sort.expr {
        if !is_moved(&key.expr)? {
            continue;
        }
        has_moved = true;
        let named = columns_of(&key.expr)?;
        let missing: Vec<Column> = { named.into_iter() }
            .filter(|column| !sort.input.schema().has_column(column))
            .collect();
        if !missing.is_empty() {
            sort.input = Arc::new(with_missing(&sort.input, missing)?);
        }
        let number = sort.input.schema().fields().len();
        key.expr = with_column(&mut sort.input, number, key.expr.clone(), typed)?;
    }
    if !has_moved {
        return Ok(None);
    }
    let sorted = typed(LogicalPlan::Sort(sort))?;
    with_columns(sorted, columns).map(Some)
}

/// A select list with columns that it does not select.
fn with_missing(plan: &LogicalPlan, missing: Vec<Column>) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(projection) = plan else {
        return Err(refused());
    };
    let mut list = projection.expr.clone();
    for column in missing {
        if !projection.input.schema().has_column(&column) {
            return Err(refused());
        }
        let column = Expr::Column(column);
        if !list.contains(&column) {
            list.push(column);
        }
    }
    let projection = Projection::try_new(list, Arc::clone(&projection.input))?;
    Ok(LogicalPlan::Projection(projection))
}
