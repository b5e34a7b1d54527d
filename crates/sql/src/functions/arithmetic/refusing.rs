//! Divisions by zero that a statement which stores their result refuses.
//!
//! In strict mode with ERROR_FOR_DIVISION_BY_ZERO such a division is an error where it is NULL with
//! a warning in a query. So is a logarithm of what has none. What is marked here is computed for a
//! row only if MySQL computes it too: the engine asks both sides of AND for all rows of a batch,
//! and so conditions are left as they are. **Cost**: one walk over the plan of a statement that
//! writes.

use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator as Connective, ScalarUDF, when};

use super::Arithmetic;
use super::operator::Operator;
use crate::functions::define;

/// The plan with its divisions marked, as far as they are not below a condition.
pub fn refusing_zero(plan: LogicalPlan) -> Result<LogicalPlan> {
    let marked = plan.transform_down(|node| {
        // The optimizer may move what is computed below a condition into it.
        if matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_)) {
            return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
        }
        node.map_expressions(|expr| marked(expr, true))
    })?;
    Ok(marked.data)
}

/// The expression with its divisions marked.
pub(crate) fn refusing_zero_in(expr: Expr) -> Result<Expr> {
    Ok(marked(expr, true)?.data)
}

/// `is_certain` says whether all rows ask for the value.
fn marked(expr: Expr, is_certain: bool) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(mut binary) if matches!(binary.op, Connective::And | Connective::Or) => {
            *binary.left = marked(*binary.left, is_certain)?.data;
            Ok(Transformed::yes(Expr::BinaryExpr(binary)))
        }
        Expr::Case(_) => expr.map_children(|part| marked(part, false)),
        // A subquery for some rows is computed for all.
        Expr::ScalarSubquery(mut query) if is_certain && query.outer_ref_columns.is_empty() => {
            let plan = refusing_zero(query.subquery.as_ref().clone())?;
            query.subquery = Arc::new(plan);
            Ok(Transformed::yes(Expr::ScalarSubquery(query)))
        }
        Expr::ScalarFunction(mut call) => {
            match define::name_of(&call.func) {
                // The typing puts a lazy CASE in their places.
                Some("if" | "nullif") => {
                    call.args = marked_all(call.args, false)?;
                }
                // MySQL asks for no more than it needs, the engine for all.
                Some("ifnull" | "coalesce") if asks_in_turn(&call.args) => {
                    let mut rest = call.args.into_iter();
                    let (Some(first), Some(second)) = (rest.next(), rest.next()) else {
                        return internal_err!("there are two arguments");
                    };
                    let first = marked(first, is_certain)?.data;
                    let second = marked(second, false)?.data;
                    let case = when(first.clone().is_not_null(), first).otherwise(second)?;
                    return Ok(Transformed::yes(case));
                }
                Some("ifnull" | "coalesce") => {
                    if let Some(first) = call.args.first_mut() {
                        *first = marked(std::mem::take(first), is_certain)?.data;
                    }
                }
                _ => call.args = marked_all(call.args, is_certain)?,
            }
            let refusing = refusing(&call.func).or_else(|| define::refusing_zero(&call.func));
            let func = refusing.map_or(call.func, Arc::new);
            let call = ScalarFunction::new_udf(func, call.args);
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        other => other.map_children(|part| marked(part, is_certain)),
    }
}

/// Whether two arguments are better asked as the branches of a CASE: the second may warn, and the
/// first may be asked twice.
fn asks_in_turn(arguments: &[Expr]) -> bool {
    matches!(
        arguments,
        [
            Expr::Column(_) | Expr::Literal(..),
            Expr::ScalarFunction(_) | Expr::Cast(_)
        ]
    )
}

fn marked_all(list: Vec<Expr>, is_certain: bool) -> Result<Vec<Expr>> {
    let list = list.into_iter();
    list.map(|expr| Ok(marked(expr, is_certain)?.data))
        .collect()
}

/// The same operator, refusing zero; `None` if it does not divide.
fn refusing(function: &ScalarUDF) -> Option<ScalarUDF> {
    let operator = function.inner().downcast_ref::<Arithmetic>()?;
    let divides = matches!(
        operator.operator,
        Operator::Divide | Operator::IntegerDivide | Operator::Modulo
    );
    divides.then(|| {
        ScalarUDF::new_from_impl(Arithmetic {
            refuses_zero: true,
            ..operator.clone()
        })
    })
}
