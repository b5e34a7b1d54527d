//! The type of an operator's result.

use arrow::datatypes::FieldRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::Arithmetic;
use super::operator::Operator;
use crate::functions::raise::raise;
use crate::functions::unify::{decimal, double, exact_digits, shown_digits};

/// The type that an argument of an operator counts as.
pub(super) fn counted(of: &ColumnType) -> ColumnType {
    match of {
        ColumnType::Bool | ColumnType::Null => ColumnType::BigInt { unsigned: false },
        ColumnType::Date => ColumnType::BigInt { unsigned: false },
        ColumnType::DateTime { digits }
        | ColumnType::Timestamp { digits }
        | ColumnType::Time { digits } => match digits {
            0 => ColumnType::BigInt { unsigned: false },
            digits => decimal(14, *digits),
        },
        numeric if numeric.is_numeric() => numeric.clone(),
        _ => ColumnType::DOUBLE,
    }
}

/// The digits of a constant before and after its point.
fn constant_digits(value: &ScalarValue) -> Option<(u8, u8)> {
    let digits = |value: i128| {
        let mut rest = value.unsigned_abs();
        let mut count = 1;
        while rest >= 10 {
            rest /= 10;
            count += 1;
        }
        count
    };
    match value {
        ScalarValue::Int64(Some(value)) => Some((digits(i128::from(*value)), 0)),
        ScalarValue::UInt64(Some(value)) => Some((digits(i128::from(*value)), 0)),
        ScalarValue::Int32(Some(value)) => Some((digits(i128::from(*value)), 0)),
        _ => None,
    }
}

/// Whether the operand is the least BIGINT.
fn is_least(constants: &[Option<&ScalarValue>]) -> bool {
    matches!(constants, [Some(ScalarValue::Int64(Some(i64::MIN)))])
}

impl Arithmetic {
    pub(super) fn result(
        &self,
        fields: &[FieldRef],
        constants: &[Option<&ScalarValue>],
    ) -> Result<ColumnType> {
        use Operator::{
            Add, BitAnd, BitNot, BitOr, BitXor, Divide, IntegerDivide, Modulo, Multiply, Negate,
            ShiftLeft, ShiftRight, Subtract,
        };
        if let Some(of) = &self.decided {
            return Ok(of.clone());
        }
        let unary = matches!(self.operator, Negate | BitNot);
        if fields.len() != if unary { 1 } else { 2 } {
            let error = MySqlError::new(ErrorCode::ParameterCount, &[&self.operator.name()]);
            return Err(raise(error));
        }
        let types: Vec<ColumnType> = fields
            .iter()
            .map(|field| counted(&ColumnType::from_arrow(field)))
            .collect();
        if matches!(
            self.operator,
            BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight | BitNot
        ) {
            return Ok(ColumnType::BigInt { unsigned: true });
        }
        let is_double = types
            .iter()
            .any(|of| matches!(of, ColumnType::Double { .. } | ColumnType::Float { .. }));
        let is_decimal = types
            .iter()
            .any(|of| matches!(of, ColumnType::Decimal { .. }));
        let is_unsigned = |of: &ColumnType| {
            matches!(
                of,
                ColumnType::TinyInt { unsigned: true }
                    | ColumnType::SmallInt { unsigned: true }
                    | ColumnType::MediumInt { unsigned: true }
                    | ColumnType::Int { unsigned: true }
                    | ColumnType::BigInt { unsigned: true }
                    | ColumnType::Bit { .. }
                    | ColumnType::Year
            )
        };
        let unsigned = types.iter().any(is_unsigned);
        let digits = |index: usize| {
            let constant = constants
                .get(index)
                .copied()
                .flatten()
                .and_then(constant_digits);
            constant
                .or_else(|| exact_digits(&types[index]))
                .unwrap_or((19, 0))
        };
        let shown = || types.iter().map(shown_digits).max().unwrap_or(0);
        Ok(match self.operator {
            IntegerDivide => ColumnType::BigInt { unsigned },
            Divide if is_double => double(shown().saturating_add(self.more_digits)),
            _ if is_double => double(shown()),
            Negate if is_decimal => types[0].clone(),
            // The one number whose negative needs another type.
            Negate if is_least(constants) => decimal(19, 0),
            Negate => ColumnType::BigInt { unsigned: false },
            Divide => {
                let ((left, left_scale), (_, right_scale)) = (digits(0), digits(1));
                decimal(left + right_scale, left_scale + self.more_digits)
            }
            Add | Subtract if is_decimal => {
                let ((left, left_scale), (right, right_scale)) = (digits(0), digits(1));
                decimal(left.max(right) + 1, left_scale.max(right_scale))
            }
            Multiply if is_decimal => {
                let ((left, left_scale), (right, right_scale)) = (digits(0), digits(1));
                decimal(left + right, left_scale + right_scale)
            }
            Modulo if is_decimal => {
                let ((left, left_scale), (right, right_scale)) = (digits(0), digits(1));
                decimal(left.max(right), left_scale.max(right_scale))
            }
            Modulo => ColumnType::BigInt {
                unsigned: is_unsigned(&types[0]),
            },
            _ => ColumnType::BigInt { unsigned },
        })
    }
}
