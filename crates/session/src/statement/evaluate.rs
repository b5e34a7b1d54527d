//! Expressions that stand alone: values of SET and of VALUES.

use arrow::array::ArrayRef;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr, UnaryOperator, Value};
use mayfly_sql::bindings::Bindings;
use mayfly_sql::compute::{TypedValue, is_column_value};
use mayfly_sql::literal::Literal;
use mayfly_sql::plan::Planner;
use mayfly_sql::references::References;
use mayfly_sql::typing::type_planner;
use mayfly_sql::{change, declared, parse};
use mayfly_table::Column;
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::Job;
use super::query::{Ready, in_database};
use crate::errors;
use crate::render;

/// How long a statement may be whose values are computed where it runs: it takes microseconds, and
/// another thread would take as many to begin.
const SHORT_BYTES_MAX: usize = 128;

/// Whether an expression names columns.
pub(crate) fn names_columns(expression: &Expr) -> bool {
    !declared::mentions(expression).is_empty()
}

impl Job {
    /// The value of an expression without columns.
    pub(crate) async fn evaluate(&self, expression: &Expr) -> Result<ScalarValue, MySqlError> {
        match literal(expression) {
            Some(value) => Ok(value),
            None => {
                let mut values = Box::pin(self.evaluate_all(vec![expression.clone()])).await?;
                Ok(values.pop().map_or(ScalarValue::Null, |typed| typed.value))
            }
        }
    }

    /// The value of an expression for a variable of the user.
    pub(crate) async fn evaluate_for_user(
        &self,
        expression: &Expr,
    ) -> Result<ScalarValue, MySqlError> {
        if let Some(value) = literal(expression) {
            return Ok(value);
        }
        if let Some(bytes) = bytes_of_bits(expression) {
            return Ok(ScalarValue::Binary(Some(bytes)));
        }
        let ready = Box::pin(self.ready_alone(vec![expression.clone()])).await?;
        let batch = self.small_result(&ready).await?;
        match (batch.columns(), ready.columns(self).as_slice()) {
            ([array], [column]) if batch.num_rows() == 1 => user_value(array, &column.column_type),
            _ => Err(MySqlError::new(ErrorCode::OperandColumns, &[&1])),
        }
    }

    /// The values of several expressions without columns.
    pub(crate) async fn evaluate_all(
        &self,
        expressions: Vec<Expr>,
    ) -> Result<Vec<TypedValue>, MySqlError> {
        change::refuse_groups(&expressions, &self.connection.aggregates)?;
        if !expressions.iter().any(names_columns) {
            let mut references = References::default();
            for expression in &expressions {
                references.add(References::of_expression(expression));
            }
            let bindings = self.bindings(&references).await?;
            if let Some(values) = self.values(expressions.clone(), bindings).await? {
                return Ok(values);
            }
        }
        let count = expressions.len();
        let are_of_columns: Vec<bool> = expressions.iter().map(is_column_value).collect();
        let ready = self.ready_alone(expressions).await?;
        let batch = self.small_result(&ready).await?;
        if batch.num_columns() != count || batch.num_rows() != 1 {
            return Err(MySqlError::new(ErrorCode::OperandColumns, &[&1]));
        }
        let fields = batch.schema_ref().fields().iter();
        let values = fields.zip(batch.columns()).zip(are_of_columns);
        let values = values.map(|((field, array), is_of_column)| {
            let value = ScalarValue::try_from_array(array, 0);
            let value = value.map_err(|error| errors::from_plan(&error))?;
            Ok(TypedValue::of(value, field, is_of_column))
        });
        values.collect()
    }

    /// The values of expressions that take no plan; `None` for others.
    async fn values(
        &self,
        expressions: Vec<Expr>,
        bindings: Bindings,
    ) -> Result<Option<Vec<TypedValue>>, MySqlError> {
        let values = self.compute(move |job| {
            let planner = Planner {
                state: job.connection.state()?,
                type_planner: Some(type_planner()),
                bindings: &bindings,
            };
            let values = planner.values(expressions);
            values.map_err(|error| in_database(errors::from_plan(&error), &bindings))
        });
        values.await
    }

    /// Computes values on a thread that plans, or here for a short statement.
    pub(super) async fn compute<T: Send + 'static>(
        &self,
        compute: impl FnOnce(&Job) -> Result<T, MySqlError> + Send + 'static,
    ) -> Result<T, MySqlError> {
        match self.running.text.len() > SHORT_BYTES_MAX {
            true => self.plan(compute).await,
            false => compute(self),
        }
    }

    /// The plan of expressions without columns.
    pub(super) async fn ready_alone(&self, expressions: Vec<Expr>) -> Result<Ready, MySqlError> {
        change::refuse_groups(&expressions, &self.connection.aggregates)?;
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
        self.ready(query).await
    }
}

/// The value that a variable of the user has after a cell was assigned to it: a number or a text.
/// Moments are their texts, and all floating numbers are DOUBLE.
pub(crate) fn user_value(
    array: &ArrayRef,
    column_type: &ColumnType,
) -> Result<ScalarValue, MySqlError> {
    let mut cell = Vec::new();
    if array.data_type().is_temporal() && render::write_cell(&mut cell, array, 0, column_type) {
        return Ok(ScalarValue::Utf8(Some(
            String::from_utf8_lossy(&cell).into_owned(),
        )));
    }
    let value = ScalarValue::try_from_array(array, 0);
    match value.map_err(|error| errors::from_plan(&error))? {
        ScalarValue::Float32(number) => Ok(ScalarValue::Float64(number.map(f64::from))),
        value if value.data_type().is_temporal() => Ok(ScalarValue::Utf8(None)),
        value => Ok(value),
    }
}

/// The value of a plain literal; `None` for any other expression.
pub(crate) fn literal(expression: &Expr) -> Option<ScalarValue> {
    match expression {
        Expr::Nested(inner) => return literal(inner),
        Expr::Value(value) => {
            if let Value::Boolean(truth) = value.value {
                return Some(ScalarValue::Int64(Some(i64::from(truth))));
            }
        }
        _ => {}
    }
    match Literal::of(expression)? {
        Some(literal) => literal.value(),
        None => Some(ScalarValue::Null),
    }
}

/// Whether an expression is a value by its form: a literal, with a sign or without.
pub(crate) fn is_plain(expression: &Expr) -> bool {
    match expression {
        Expr::Value(_) => true,
        Expr::Nested(inner) => is_plain(inner),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => matches!(expr.as_ref(), Expr::Value(_)),
        _ => false,
    }
}

/// Whether an expression is a value as it stands.
pub(crate) fn is_constant(expression: &Expr) -> bool {
    literal(expression).is_some() || is_bits(expression)
}

/// Whether an expression is a literal of bits: `0x41` or `b'101'`.
pub(crate) fn is_bits(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => is_bits(inner),
        Expr::Value(value) => matches!(
            value.value,
            Value::HexStringLiteral(_) | Value::SingleQuotedByteStringLiteral(_)
        ),
        _ => false,
    }
}

/// The number that `0x41` or `b'101'` is to a column of numbers; it is text to other columns.
pub(crate) fn number_of_bits(expression: &Expr, column: &Column) -> Option<u64> {
    bits(expression).filter(|_| column.column_type.is_numeric())
}

/// The bytes that `x'0041'` is to a column that is not one of numbers. As an expression it would be
/// named by its bytes in each step of a plan, which takes a second for 3 MB.
pub(crate) fn bytes(expression: &Expr, column: &Column) -> Option<Vec<u8>> {
    let digits = match expression {
        Expr::Nested(inner) => return bytes(inner, column),
        Expr::Value(value) => match &value.value {
            Value::HexStringLiteral(digits) => digits.as_bytes(),
            _ => return None,
        },
        _ => return None,
    };
    if column.column_type.is_numeric() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16);
    let byte = |pair: &[u8]| u8::try_from(value(pair[0])? << 4 | value(pair[1])?).ok();
    digits.chunks_exact(2).map(byte).collect()
}

/// The bytes that `0x41` or `b'101'` is where no number is asked for.
fn bytes_of_bits(expression: &Expr) -> Option<Vec<u8>> {
    let (digits, radix, width) = match expression {
        Expr::Nested(inner) => return bytes_of_bits(inner),
        Expr::Value(value) => match &value.value {
            Value::HexStringLiteral(digits) => (digits, 16, 2),
            Value::SingleQuotedByteStringLiteral(digits) => (digits, 2, 8),
            _ => return None,
        },
        _ => return None,
    };
    let missing = digits.len().next_multiple_of(width) - digits.len();
    let digits = "0".repeat(missing) + digits;
    let digits = digits.as_bytes().chunks(width);
    digits
        .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok())
        .collect()
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
