//! Conditions of an UPDATE that name no column.
//!
//! MariaDB asks them once, before it stores anything: what they warn of in strict mode is no error,
//! as it is in conditions of rows and in values. In a plan all constants are alike, so these are
//! computed before it is made.

use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};
use mayfly_sql::walk;
use mayfly_types::MySqlError;

use super::super::Job;

impl Job {
    /// Puts the truth in the place of constant conditions that may warn.
    ///
    /// # Errors
    /// Those of the conditions.
    pub(super) async fn settle_constant_conditions(
        &self,
        condition: &mut Expr,
    ) -> Result<(), MySqlError> {
        let mut rest = vec![condition];
        while let Some(expr) = rest.pop() {
            match expr {
                Expr::Nested(inner) => rest.push(inner),
                Expr::UnaryOp {
                    op: UnaryOperator::Not,
                    expr,
                } => rest.push(expr),
                Expr::BinaryOp {
                    left,
                    op: BinaryOperator::And | BinaryOperator::Or,
                    right,
                } => rest.extend([right.as_mut(), left.as_mut()]),
                constant if is_constant(constant) && may_warn(constant) => {
                    let truth = not(not(std::mem::replace(constant, number("0"))));
                    let truth = self.evaluate(&truth).await?;
                    *constant = match truth.cast_to(&DataType::Boolean) {
                        Ok(ScalarValue::Boolean(Some(true))) => number("1"),
                        Ok(ScalarValue::Boolean(Some(false))) => number("0"),
                        _ => Expr::Value(Value::Null.into()),
                    };
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether an expression has the same value for all rows, by its form.
fn is_constant(expr: &Expr) -> bool {
    !walk::finds(expr, &mut |part| {
        !matches!(
            part,
            Expr::Value(_)
                | Expr::TypedString(_)
                | Expr::Nested(_)
                | Expr::UnaryOp { .. }
                | Expr::BinaryOp { .. }
                | Expr::Cast { .. }
                | Expr::Between { .. }
                | Expr::InList { .. }
                | Expr::Case { .. }
                | Expr::IsNull(_)
                | Expr::IsNotNull(_)
                | Expr::IsTrue(_)
                | Expr::IsNotTrue(_)
                | Expr::IsFalse(_)
                | Expr::IsNotFalse(_)
        )
    })
}

/// Whether a constant may warn: numbers do only where they are divided.
fn may_warn(constant: &Expr) -> bool {
    walk::finds(constant, &mut |part| match part {
        Expr::Value(value) => !matches!(
            value.value,
            Value::Number(..) | Value::Boolean(_) | Value::Null
        ),
        Expr::BinaryOp { op, .. } => matches!(
            op,
            BinaryOperator::Divide | BinaryOperator::MyIntegerDivide | BinaryOperator::Modulo
        ),
        _ => false,
    })
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp {
        op: UnaryOperator::Not,
        expr: Box::new(Expr::Nested(Box::new(expr))),
    }
}

fn number(digits: &str) -> Expr {
    Expr::Value(Value::Number(digits.to_owned(), false).into())
}
