//! EXCEPT and INTERSECT.
//!
//! The planner makes joins of them that find NULL equal to NULL, as no other join does before a
//! plan is optimised. Their sides have the types of their columns together, as those of a UNION.
//! With ALL a row counts as often as it is there: equal rows are numbered, and rows of one number
//! meet.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, NullEquality};
use datafusion::error::Result;
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Join, JoinType, LogicalPlan, LogicalPlanBuilder,
};

use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::union::{converted, together};
use crate::functions::raise;

/// The columns that count equal rows.
const LEFT_NUMBER: &str = "\u{1}left number";
const RIGHT_NUMBER: &str = "\u{1}right number";

/// Whether a join is EXCEPT or INTERSECT.
pub(crate) fn is_set_operation(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
}

/// Lets the columns of both sides have the types of their values together.
pub(super) fn typed(mut join: Join) -> Result<LogicalPlan> {
    if let Some(targets) = together(&[&join.left, &join.right]) {
        join.left = Arc::new(side_as(&join.left, &targets)?);
        join.right = Arc::new(side_as(&join.right, &targets)?);
        return LogicalPlan::Join(join).recompute_schema();
    }
    Ok(LogicalPlan::Join(join))
}

/// A side whose columns are of other types. Rows are told apart, and counted, as what they become.
fn side_as(side: &LogicalPlan, targets: &[Option<ColumnType>]) -> Result<LogicalPlan> {
    match side {
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let input = converted(input.as_ref().clone(), targets)?;
            Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(input))))
        }
        LogicalPlan::Projection(projection) => match (projection.input.as_ref(), number(side)) {
            (LogicalPlan::Window(window), Some(name)) => {
                let input = converted(window.input.as_ref().clone(), targets)?;
                with_number(&input, &name)
            }
            _ => converted(side.clone(), targets),
        },
        side => converted(side.clone(), targets),
    }
}

/// Whether a plan numbers the rows of a side of EXCEPT ALL or INTERSECT ALL.
pub(super) fn numbers_rows(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Projection(_)) && number(plan).is_some()
}

/// The name of the column that counts equal rows, where there is one.
fn number(side: &LogicalPlan) -> Option<String> {
    let last = side.schema().fields().last()?;
    let is_number = [LEFT_NUMBER, RIGHT_NUMBER].contains(&last.name().as_str());
    is_number.then(|| last.name().clone())
}

/// Numbers equal rows of EXCEPT ALL and INTERSECT ALL in a plan that nothing has typed.
pub(crate) fn number_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let numbered = plan.transform_up_with_subqueries(|plan| {
        Ok(match &plan {
            // Where the left rows are distinct there is one of each.
            LogicalPlan::Join(join)
                if is_set_operation(join)
                    && !matches!(*join.left, LogicalPlan::Distinct(_))
                    // Those of a view were numbered with it.
                    && !numbers_rows(&join.left) =>
            {
                Transformed::yes(numbered(join)?)
            }
            _ => Transformed::no(plan),
        })
    })?;
    Ok(numbered.data)
}

fn numbered(join: &Join) -> Result<LogicalPlan> {
    for side in [&join.left, &join.right] {
        // ORDER BY asked for columns that are not selected, and got them there.
        if let Some(extra) = side.schema().fields().get(join.on.len()) {
            let arguments: [&dyn std::fmt::Display; 2] = [extra.name(), &"order clause"];
            return Err(raise(MySqlError::new(ErrorCode::UnknownColumn, &arguments)));
        }
    }
    let left = with_number(&join.left, LEFT_NUMBER)?;
    let right = with_number(&join.right, RIGHT_NUMBER)?;
    let mut keys = (join.left.schema().columns(), join.right.schema().columns());
    keys.0.push(Column::from_name(LEFT_NUMBER));
    keys.1.push(Column::from_name(RIGHT_NUMBER));
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
