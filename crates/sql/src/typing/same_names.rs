//! Correlated subqueries whose conditions name columns of one name from several tables.
//!
//! The stock rules make one derived table of a subquery, and find the columns of its conditions
//! there by their names alone: of `u.a = t.a AND v.a = t.a` they would keep one. The columns below
//! such conditions get names of their own, and their old ones again above them:
//!
//! ```text
//! Filter: u.a = t.a AND v.a = t.a  ==>  Projection: column 1 AS u.a, column 2 AS v.a
//!                                         Filter: column 1 = t.a AND column 2 = t.a
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, Subquery};

use super::correlated::refused;
use super::joined::replaced;
use super::subquery_expressions::{has_subquery, is_correlated, subquery_of, with_subquery};
use crate::planning::check;

/// The table name of renamed columns.
const TABLE: &str = "mayfly told apart";

/// Tells the columns of all subqueries of a plan apart; nothing has typed it.
pub(super) fn told_apart(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_up_with_subqueries(|plan| {
        check()?;
        if let LogicalPlan::Subquery(subquery) = plan {
            return Ok(mended(&subquery)?.map_or_else(
                || Transformed::no(LogicalPlan::Subquery(subquery.clone())),
                |mended| Transformed::yes(LogicalPlan::Subquery(mended)),
            ));
        }
        plan.map_expressions(|expr| {
            expr.transform_up(|expr| {
                Ok(
                    match subquery_of(&expr).map(mended).transpose()?.flatten() {
                        Some(subquery) => Transformed::yes(with_subquery(expr, subquery)),
                        None => Transformed::no(expr),
                    },
                )
            })
        })
    })?;
    Ok(changed.data)
}

/// A subquery without columns that could be confused; `None` if it has none.
fn mended(subquery: &Subquery) -> Result<Option<Subquery>> {
    if !is_correlated(subquery) || !has_same_names(&subquery.subquery)? {
        return Ok(None);
    }
    let mut count = 0;
    let plan = subquery.subquery.as_ref().clone();
    let plan = plan.transform_up(|plan| {
        let (conditions, input) = match &plan {
            LogicalPlan::Filter(filter) if filter.predicate.contains_outer() => {
                let conditions = split_conjunction_owned(filter.predicate.clone());
                (conditions, filter.input.as_ref().clone())
            }
            LogicalPlan::Join(join)
                if join.join_type == JoinType::Inner
                    && join.filter.as_ref().is_some_and(Expr::contains_outer) =>
            {
                let mut join = join.clone();
                let conditions = join.filter.take().map(split_conjunction_owned);
                (conditions.unwrap_or_default(), LogicalPlan::Join(join))
            }
            _ => return Ok(Transformed::no(plan)),
        };
        Ok(Transformed::yes(renamed(input, conditions, &mut count)?))
    })?;
    Ok(Some(Subquery {
        subquery: Arc::new(plan.data),
        ..subquery.clone()
    }))
}

/// Whether two columns of one name are named beside outer columns, or one beside a column of its
/// name that the subquery returns.
fn has_same_names(plan: &LogicalPlan) -> Result<bool> {
    let mut names: HashMap<String, Column> = HashMap::new();
    let mut is_same = false;
    let mut add = |column: &Column| match names.get(&column.name) {
        Some(known) => is_same |= known != column,
        None => {
            names.insert(column.name.clone(), column.clone());
        }
    };
    plan.schema().columns().iter().for_each(&mut add);
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            if expr.contains_outer() {
                expr.column_refs().into_iter().for_each(&mut add);
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(is_same)
}

/// Rows that meet conditions, which name columns that are named nowhere else.
fn renamed(input: LogicalPlan, conditions: Vec<Expr>, count: &mut usize) -> Result<LogicalPlan> {
    let (of_both, of_inner): (Vec<Expr>, Vec<Expr>) =
        { conditions.into_iter() }.partition(Expr::contains_outer);
    let columns = input.schema().columns();
    let mut renamed = Vec::with_capacity(columns.len());
    let mut restored = Vec::with_capacity(columns.len());
    let mut names = HashMap::new();
    for column in columns {
        *count += 1;
        let name = format!("column {count}");
        renamed.push(Expr::Column(column.clone()).alias(&name));
        let inner = Expr::Column(Column::new(Some(TABLE), name));
        let (relation, name) = (column.relation.clone(), column.name.clone());
        restored.push(inner.clone().alias_qualified(relation, name));
        names.insert(column, inner);
    }
    let mut rows = LogicalPlanBuilder::from(input);
    if let Some(condition) = of_inner.into_iter().reduce(Expr::and) {
        rows = rows.filter(condition)?;
    }
    let mut conditions = Vec::with_capacity(of_both.len());
    for condition in of_both {
        if has_subquery(&condition)? {
            return Err(refused());
        }
        conditions.push(replaced(condition, &names)?);
    }
    let mut rows = rows.project(renamed)?.alias(TABLE)?;
    if let Some(condition) = conditions.into_iter().reduce(Expr::and) {
        rows = rows.filter(condition)?;
    }
    rows.project(restored)?.build()
}
