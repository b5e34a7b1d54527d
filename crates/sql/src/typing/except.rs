//! EXCEPT and INTERSECT.
//!
//! The planner makes joins of them that find NULL equal to NULL, as no other join does before a plan
//! is optimised. Their sides have the types of their columns together, as those of a UNION. With ALL
//! a row counts as often as it is there: equal rows are numbered, and rows of one number meet.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, NullEquality};
use datafusion::error::Result;
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Join, JoinType, LogicalPlan, LogicalPlanBuilder,
};

use super::union::{converted, together};

/// Whether a join is EXCEPT or INTERSECT.
pub(crate) fn is_set_operation(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
}

/// Lets the columns of both sides have the types of their values together.
pub(super) fn typed(mut join: Join) -> Result<LogicalPlan> {
    if let Some(targets) = together(&[&join.left, &join.right]) {
        let left = match join.left.as_ref() {
            // Rows are told apart as what they become.
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let input = converted(input.as_ref().clone(), &targets)?;
                LogicalPlan::Distinct(Distinct::All(Arc::new(input)))
            }
            left => converted(left.clone(), &targets)?,
        };
        join.left = Arc::new(left);
        join.right = Arc::new(converted(join.right.as_ref().clone(), &targets)?);
    }
    Ok(LogicalPlan::Join(join))
}

/// Numbers equal rows of EXCEPT ALL and INTERSECT ALL in a plan that nothing has typed.
pub(crate) fn number_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let numbered = plan.transform_up_with_subqueries(|plan| {
        Ok(match &plan {
            // Where the left rows are distinct there is one of each.
            LogicalPlan::Join(join)
                if is_set_operation(join) && !matches!(*join.left, LogicalPlan::Distinct(_)) =>
            {
                Transformed::yes(numbered(join)?)
            }
            _ => Transformed::no(plan),
        })
    })?;
    Ok(numbered.data)
}

fn numbered(join: &Join) -> Result<LogicalPlan> {
    let (left_name, right_name) = ("\u{1}left number", "\u{1}right number");
    let left = with_number(&join.left, left_name)?;
    let right = with_number(&join.right, right_name)?;
    let mut keys = (join.left.schema().columns(), join.right.schema().columns());
    keys.0.push(Column::from_name(left_name));
    keys.1.push(Column::from_name(right_name));
    let shown = join.left.schema().columns().into_iter().map(Expr::Column);
    LogicalPlanBuilder::from(left)
        .join_detailed(
            right,
            join.join_type,
            keys,
            None,
            NullEquality::NullEqualsNull,
        )?
        .project(shown)?
        .build()
}

/// The rows of a plan, with a column that counts equal ones.
fn with_number(plan: &LogicalPlan, name: &str) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = plan
        .schema()
        .columns()
        .into_iter()
        .map(Expr::Column)
        .collect();
    let number = row_number().partition_by(columns.clone()).build()?;
    let builder = LogicalPlanBuilder::from(plan.clone()).window(vec![number])?;
    let number = builder.schema().columns().pop().map(Expr::Column);
    let number = number.map(|number| number.alias(name));
    builder.project(columns.into_iter().chain(number))?.build()
}
