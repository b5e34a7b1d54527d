//! Which operators compare.

use datafusion::logical_expr::Operator;
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Whether an operator compares two values, and is NULL where one of them is.
pub(crate) fn compares(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// The same, with `<=>`, which takes NULL for a value.
pub fn is_comparison(op: &BinaryOperator) -> bool {
    compares(op) || matches!(op, BinaryOperator::Spaceship)
}

/// Whether an operator of a plan compares two values.
pub fn compares_in_plan(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    let compares = matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq);
    compares || matches!(op, IsDistinctFrom | IsNotDistinctFrom)
}
