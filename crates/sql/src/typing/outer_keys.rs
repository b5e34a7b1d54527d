//! Subqueries that group by outer columns.
//!
//! Such a key has one value for all rows that a row around the subquery sees, as a constant has: no
//! rows are no group, and all others are one. The stock rules do not take an aggregate apart that
//! names outer columns; one with a constant key they do.
//!
//! **Never** where the subquery shows the key, or asks for it behind the groups.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery, lit};

use super::subquery_expressions::{subquery_of, with_subquery};
use crate::planning::check;

/// Whether an aggregate groups by outer columns.
pub(super) fn has_outer_key(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.iter().any(is_outer),
        _ => false,
    }
}

/// The plan with constants in the place of such keys.
pub(super) fn as_constants(plan: LogicalPlan) -> Result<LogicalPlan> {
    let made = plan.transform_up_with_subqueries(|node| {
        check()?;
        node.map_expressions(|expr| {
            expr.transform_up(|expr| {
                let made = subquery_of(&expr).map(with_constants).transpose()?;
                Ok(match made.flatten() {
                    Some(subquery) => Transformed::yes(with_subquery(expr, subquery)),
                    None => Transformed::no(expr),
                })
            })
        })
    })?;
    Ok(made.data)
}

/// A subquery with constants in the place of its keys; `None` for one that stays as it is.
fn with_constants(subquery: &Subquery) -> Result<Option<Subquery>> {
    if !subquery.subquery.exists(|node| Ok(has_outer_key(node)))? {
        return Ok(None);
    }
    let mut named: HashSet<Column> = HashSet::new();
    subquery.subquery.apply(|node| {
        node.apply_expressions(|expr| {
            named.extend(expr.column_refs().into_iter().cloned());
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    let plan = subquery.subquery.as_ref().clone();
    let made = plan.transform_up(|node| {
        let LogicalPlan::Aggregate(mut aggregate) = node else {
            return Ok(Transformed::no(node));
        };
        let mut is_changed = false;
        let schema = Arc::clone(&aggregate.schema);
        for (key, (table, field)) in aggregate.group_expr.iter_mut().zip(schema.iter()) {
            if is_outer(key) && !named.contains(&Column::from((table, field))) {
                *key = lit(1_i64).alias_qualified(table.cloned(), field.name());
                is_changed = true;
            }
        }
        let node = LogicalPlan::Aggregate(aggregate);
        Ok(match is_changed {
            true => Transformed::yes(node.recompute_schema()?),
            false => Transformed::no(node),
        })
    })?;
    Ok(made.transformed.then(|| Subquery {
        outer_ref_columns: made.data.all_out_ref_exprs(),
        subquery: Arc::new(made.data),
        spans: subquery.spans.clone(),
    }))
}

/// Whether a key is the same for all rows of the subquery.
fn is_outer(key: &Expr) -> bool {
    let is_one = !matches!(key, Expr::GroupingSet(_)) && !key.is_volatile();
    is_one && key.contains_outer() && key.column_refs().is_empty()
}
