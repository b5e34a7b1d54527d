//! EXISTS, IN, ANY and ALL as subqueries of one value.
//!
//! A test of rows has three results. Each row gives one of them as a number, the largest or the
//! smallest of which is that of all rows: ANY is true where one row is, ALL is false where one is.

use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::expr::SetQuantifier;
use datafusion::logical_expr::{
    BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, lit, when,
};

const FALSE: i64 = 0;
const UNKNOWN: i64 = 1;
const TRUE: i64 = 2;

/// The number of rows of a subquery, where more than one is as good as one.
pub(super) fn rows_of(plan: LogicalPlan) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(plan)
        .limit(0, Some(1))?
        .aggregate(Vec::<Expr>::new(), [count(lit(1_i64))])?
        .build()
}

/// Whether there are rows, or with `negated` none, by their number.
pub(super) fn exists(rows: Expr, negated: bool) -> Expr {
    match negated {
        false => rows.gt(lit(0_i64)),
        true => rows.eq(lit(0_i64)),
    }
}

/// The result of a comparison with each row of a subquery, as a number.
pub(super) fn compared(
    plan: LogicalPlan,
    value: Expr,
    operator: Operator,
    quantifier: &SetQuantifier,
) -> Result<LogicalPlan> {
    let row = Expr::Column(plan.schema().columns().swap_remove(0));
    let test = Expr::BinaryExpr(BinaryExpr::new(Box::new(value), operator, Box::new(row)));
    let result = when(test.clone(), lit(TRUE))
        .when(test.is_null(), lit(UNKNOWN))
        .otherwise(lit(FALSE))?;
    let result = match quantifier {
        SetQuantifier::Any => max(result),
        SetQuantifier::All => min(result),
    };
    LogicalPlanBuilder::from(plan)
        .aggregate(Vec::<Expr>::new(), [result])?
        .build()
}

/// The result by its number, which is NULL where there are no rows.
pub(super) fn result(number: &Expr, quantifier: &SetQuantifier, negated: bool) -> Result<Expr> {
    let (decided, decides) = match quantifier {
        SetQuantifier::Any => (TRUE, true),
        SetQuantifier::All => (FALSE, false),
    };
    when(number.clone().eq(lit(decided)), lit(decides != negated))
        .when(
            number.clone().eq(lit(UNKNOWN)),
            lit(ScalarValue::Boolean(None)),
        )
        .otherwise(lit(decides == negated))
}
