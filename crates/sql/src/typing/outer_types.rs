//! Outer columns whose type has become another one.
//!
//! A subquery names a column of the rows around it with the type that it had when the text was
//! read. Typing may give it another one, as a UNION has the widest type of its parts; and it types
//! subqueries before the rows around them. Where a type has changed, the subquery is typed again.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema};
use datafusion::error::Result;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};

use super::subquery_expressions::{has_correlated, is_correlated, subquery_of, with_subquery};
use crate::planning::check;

/// A plan that is typed, whose subqueries name outer columns with the types that these have.
pub(super) fn renewed(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    plan.transform_up_with_subqueries(|plan| {
        // What subqueries share becomes a tree of its own for each of them here.
        check()?;
        let mut is_asked = false;
        plan.apply_expressions(|expr| {
            is_asked |= has_correlated(expr)?;
            Ok(match is_asked {
                true => TreeNodeRecursion::Stop,
                false => TreeNodeRecursion::Continue,
            })
        })?;
        if !is_asked {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        plan.map_expressions(|expr| {
            expr.transform_up(|expr| {
                let renewed = subquery_of(&expr).map(|of| with_types(of, &schema));
                Ok(match renewed.transpose()?.flatten() {
                    Some(subquery) => Transformed::yes(with_subquery(expr, subquery)),
                    None => Transformed::no(expr),
                })
            })
        })
    })
}

/// A subquery with the types of a schema; `None` if it has them.
fn with_types(subquery: &Subquery, schema: &DFSchema) -> Result<Option<Subquery>> {
    if !is_correlated(subquery) {
        return Ok(None);
    }
    let plan = subquery.subquery.as_ref().clone();
    let renewed = plan.transform_up(|plan| {
        let changed = plan.map_expressions(|expr| {
            expr.transform_up(|expr| {
                let Expr::OuterReferenceColumn(field, column) = &expr else {
                    return Ok(Transformed::no(expr));
                };
                Ok(match schema.field_from_column(column) {
                    Ok(now) if now.data_type() != field.data_type() => Transformed::yes(
                        Expr::OuterReferenceColumn(Arc::clone(now), column.clone()),
                    ),
                    _ => Transformed::no(expr),
                })
            })
        })?;
        match changed.transformed {
            true => changed.map_data(LogicalPlan::recompute_schema),
            false => Ok(changed),
        }
    })?;
    Ok(renewed.transformed.then(|| Subquery {
        outer_ref_columns: renewed.data.all_out_ref_exprs(),
        subquery: Arc::new(renewed.data),
        spans: subquery.spans.clone(),
    }))
}
