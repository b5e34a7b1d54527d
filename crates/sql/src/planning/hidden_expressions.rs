//! Expressions that are kept from the rule that simplifies them.
//!
//! Owns: the function in whose calls they stand while that rule looks at a node, and CASEs of many
//! arms. Never: changes what an expression means.
//!
//! A comparison that is not to meet another one stands within a call as it is ([`hide_whole`]). A
//! CASE of many arms becomes a call of its parts: of `CASE WHEN a = 1 THEN 1 ... END = 3` the rule
//! makes a CASE of truths, of that an OR of ANDs, and hashes each level of it with all below, which
//! takes seconds for a few hundred arms. What stands within a call is simplified as ever.
//!
//! **Cost**: linear in the expressions of the node.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// With so many arms a CASE is no longer looked into.
const ARMS_MIN: usize = 16;

/// Applies the rule that simplifies expressions to a node while some are hidden: those that `hide`
/// chooses, and large CASEs.
///
/// # Errors
/// Those of the rule.
pub(super) fn simplified_around(
    node: LogicalPlan,
    hide: impl FnOnce(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
    simplify: impl FnOnce(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<Transformed<LogicalPlan>> {
    let mut node = hide(node)?;
    let mut has_cases = false;
    node.data.apply_expressions(|expr| {
        has_cases |= expr.exists(|part| Ok(matches!(part, Expr::Case(case) if is_large(case))))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if has_cases {
        node = hide_each(node.data, |expr| match expr {
            Expr::Case(case) if is_large(&case) => Transformed::yes(hide_case(case)),
            other => Transformed::no(other),
        })?;
        node.transformed = true;
    }
    let is_hidden = node.transformed;
    let simplified = simplify(node.data)?;
    if !is_hidden {
        return Ok(simplified);
    }
    simplified.map_data(|plan| {
        Ok(plan
            .map_expressions(|expr| expr.transform_up(revealed))?
            .data)
    })
}

/// A node with the calls that `hide` makes in the place of expressions, under the names of these.
///
/// # Errors
/// None of its own.
pub(super) fn hide_each(
    node: LogicalPlan,
    hide: impl Fn(Expr) -> Transformed<Expr>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let hidden = expr.transform_up(|expr| Ok(hide(expr)))?;
        Ok(hidden.update_data(|expr| name.restore(expr)))
    })
}

/// A call around an expression.
pub(super) fn hide_whole(expr: Expr) -> Expr {
    call(Shape::Whole, vec![expr])
}

fn is_large(case: &Case) -> bool {
    case.when_then_expr.len() >= ARMS_MIN
}

/// A call of the parts of a CASE, its results first.
fn hide_case(case: Case) -> Expr {
    let shape = Shape::Case {
        arms: case.when_then_expr.len(),
        has_else: case.else_expr.is_some(),
    };
    let (whens, thens): (Vec<_>, Vec<_>) = case.when_then_expr.into_iter().unzip();
    let results = thens.into_iter().chain(case.else_expr);
    let parts = results.chain(whens).chain(case.expr);
    call(shape, parts.map(|part| *part).collect())
}

fn call(shape: Shape, parts: Vec<Expr>) -> Expr {
    let function = Hidden {
        // Volatile, so that nobody calls it, nor takes two of them for one.
        signature: Signature::any(parts.len(), Volatility::Volatile),
        shape,
    };
    let function = Arc::new(ScalarUDF::from(function));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, parts))
}

/// The expression that a call hides.
fn revealed(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(call) = expr else {
        return Ok(Transformed::no(expr));
    };
    let Some(hidden) = call.func.inner().downcast_ref::<Hidden>() else {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    };
    let shape = hidden.shape;
    let mut parts = call.args.into_iter();
    let revealed = match shape {
        Shape::Whole => parts.next(),
        Shape::Case { arms, has_else } => {
            let thens: Vec<_> = parts.by_ref().take(arms).map(Box::new).collect();
            let else_expr = has_else.then(|| parts.next()).flatten().map(Box::new);
            let whens: Vec<_> = parts.by_ref().take(arms).map(Box::new).collect();
            let operand = parts.next().map(Box::new);
            let arms = whens.into_iter().zip(thens).collect();
            Some(Expr::Case(Case::new(operand, arms, else_expr)))
        }
    };
    match revealed {
        Some(revealed) => Ok(Transformed::yes(revealed)),
        None => internal_err!("a call hides an expression"),
    }
}

/// What stands within a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    Whole,
    /// The results of a CASE, its conditions and its operand, in this order.
    Case {
        arms: usize,
        has_else: bool,
    },
}

/// An expression that nobody looks at from outside.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Hidden {
    signature: Signature,
    shape: Shape,
}

impl ScalarUDFImpl for Hidden {
    fn name(&self) -> &str {
        "hidden"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        let results = match self.shape {
            Shape::Whole => 1,
            Shape::Case { arms, has_else } => arms + usize::from(has_else),
        };
        // All results have one type by now, but for a NULL.
        let mut results = arg_types.iter().take(results);
        let known = results.find(|result| **result != DataType::Null);
        Ok(known.cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("a hidden expression is not called")
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{lit, when};
    use datafusion::prelude::col;

    use super::*;

    #[test]
    fn a_case_of_many_arms_comes_back_as_it_was() {
        let mut case = when(col("a").eq(lit(0)), lit("t0"));
        for arm in 1..40 {
            case = case.when(col("a").eq(lit(arm)), lit(format!("t{arm}")));
        }
        let cases = [
            case.clone().otherwise(lit("none")).unwrap(),
            case.end().unwrap(),
        ];
        for case in cases {
            let hidden = hide_case(match case.clone() {
                Expr::Case(case) => case,
                other => panic!("{other} is no CASE"),
            });
            assert_ne!(hidden, case);
            assert_eq!(revealed(hidden).unwrap().data, case);
        }
    }
}
