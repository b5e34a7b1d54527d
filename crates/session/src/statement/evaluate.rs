//! Expressions that stand alone: values of SET, of VALUES, of DEFAULT.

use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr, UnaryOperator, Value};
use mayfly_sql::parse;
use mayfly_table::Column;
use mayfly_types::{ErrorCode, MySqlError};

use super::Job;
use crate::errors;

/// Digits that Arrow's 128-bit decimal holds.
const DECIMAL_DIGITS: usize = 38;

impl Job {
    /// The value of an expression without columns.
    pub(crate) async fn evaluate(&self, expression: &Expr) -> Result<ScalarValue, MySqlError> {
        match literal(expression) {
            Some(value) => Ok(value),
            None => Ok(Box::pin(self.evaluate_all(vec![expression.clone()]))
                .await?
                .pop()
                .unwrap_or(ScalarValue::Null)),
        }
    }

    /// The values of several expressions without columns.
    pub(crate) async fn evaluate_all(
        &self,
        expressions: Vec<Expr>,
    ) -> Result<Vec<ScalarValue>, MySqlError> {
        let count = expressions.len();
        let mut query = parse::select_one()?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection = expressions
                .into_iter()
                .enumerate()
                .map(|(index, expr)| SelectItem::ExprWithAlias {
                    expr,
                    alias: format!("value {index}").as_str().into(),
                })
                .collect();
        }
        let ready = self.ready(query).await?;
        let batch = self.small_result(&ready).await?;
        if batch.num_columns() != count || batch.num_rows() != 1 {
            return Err(MySqlError::new(ErrorCode::OperandColumns, &[&1]));
        }
        batch
            .columns()
            .iter()
            .map(|array| {
                ScalarValue::try_from_array(array, 0).map_err(|error| errors::from_plan(&error))
            })
            .collect()
    }

    /// What a column gets when nothing is given; `None` when something must be given.
    pub(crate) async fn default_value(
        &self,
        column: &Column,
    ) -> Result<Option<ScalarValue>, MySqlError> {
        match &column.default {
            Some(text) => Ok(Some(self.evaluate(&parse::parse_expression(text)?).await?)),
            None if column.is_nullable => Ok(Some(ScalarValue::Null)),
            None => Ok(None),
        }
    }
}

/// The value of a plain literal; `None` for any other expression.
pub(crate) fn literal(expression: &Expr) -> Option<ScalarValue> {
    match expression {
        Expr::Nested(inner) => literal(inner),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => number(&format!("-{digits}")),
                _ => None,
            },
            _ => None,
        },
        Expr::Value(value) => match &value.value {
            Value::Null => Some(ScalarValue::Null),
            Value::Boolean(truth) => Some(ScalarValue::Int64(Some(i64::from(*truth)))),
            Value::Number(digits, _) => number(digits),
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
                Some(ScalarValue::Utf8(Some(text.clone())))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The number that `0x41` or `b'101'` is to a column of numbers; it is text to other columns.
pub(crate) fn number_of_bits(expression: &Expr, column: &Column) -> Option<u64> {
    bits(expression).filter(|_| column.column_type.is_numeric())
}

fn bits(expression: &Expr) -> Option<u64> {
    let (digits, radix) = match expression {
        Expr::Nested(inner) => return bits(inner),
        Expr::Value(value) => match &value.value {
            Value::HexStringLiteral(digits) => (digits, 16),
            Value::SingleQuotedByteStringLiteral(digits) => (digits, 2),
            _ => return None,
        },
        _ => return None,
    };
    let digits = digits.trim_start_matches('0');
    match digits {
        "" => Some(0),
        digits => u64::from_str_radix(digits, radix).ok(),
    }
}

fn number(text: &str) -> Option<ScalarValue> {
    if let Ok(value) = text.parse::<i64>() {
        return Some(ScalarValue::Int64(Some(value)));
    }
    if let Ok(value) = text.parse::<u64>() {
        return Some(ScalarValue::UInt64(Some(value)));
    }
    if text.contains(['e', 'E']) {
        return text
            .parse()
            .ok()
            .map(|value| ScalarValue::Float64(Some(value)));
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = i8::try_from(fraction.len()).ok()?;
    let precision = (whole.trim_start_matches('0').len() + fraction.len()).max(1);
    if precision > DECIMAL_DIGITS {
        return None;
    }
    let unscaled = format!("{sign}{whole}{fraction}").parse::<i128>().ok()?;
    Some(ScalarValue::Decimal128(
        Some(unscaled),
        u8::try_from(precision).ok()?,
        scale,
    ))
}
