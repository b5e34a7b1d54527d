//! Whole numbers: sums through Arrow's kernels, `DIV`, remainders, bits.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, Scalar, UInt64Builder};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{Int64Type, UInt64Type, i256};
use datafusion::error::Result;
use mayfly_types::ColumnType;

use super::Arithmetic;
use super::operator::Operator;
use super::types::counted;
use crate::functions::call::Call;
use crate::functions::cast;
use crate::functions::convert;
use crate::functions::number;

impl Arithmetic {
    /// Signed whole numbers of up to 64 bits.
    pub(super) fn integers(&self, call: &Call<'_>) -> Result<ArrayRef> {
        let left = call.integers(0)?;
        if self.operator == Operator::Negate {
            let negated = left.array().try_unary::<_, Int64Type, _>(|value| {
                value.checked_neg().ok_or_else(|| self.out_of_range(call))
            })?;
            return Ok(Arc::new(negated));
        }
        let right = call.integers(1)?;
        if self.operator == Operator::Modulo {
            return self.integer_modulo(call, left.array(), right.array());
        }
        let kernel = match self.operator {
            Operator::Add => numeric::add,
            Operator::Subtract => numeric::sub,
            _ => numeric::mul,
        };
        let (left_array, right_array) = (left.array(), right.array());
        let result = match (call.is_constant(0), call.is_constant(1)) {
            (true, false) => kernel(&Scalar::new(left_array), right_array),
            (false, true) => kernel(left_array, &Scalar::new(right_array)),
            _ => kernel(left_array, right_array),
        };
        result.map_err(|_| self.out_of_range(call))
    }

    fn integer_modulo(
        &self,
        call: &Call<'_>,
        left: &Int64Array,
        right: &Int64Array,
    ) -> Result<ArrayRef> {
        if call.is_constant(1) && !call.is_constant(0) && right.is_valid(0) && right.value(0) != 0 {
            return Ok(Arc::new(remainders(left, right.value(0))));
        }
        let (constant_left, constant_right) = (call.is_constant(0), call.is_constant(1));
        call.make_integers(|row| {
            let at_left = if constant_left { 0 } else { row };
            let at_right = if constant_right { 0 } else { row };
            if left.is_null(at_left) || right.is_null(at_right) {
                return Ok(None);
            }
            if right.value(at_right) == 0 {
                call.division_by_zero()?;
                return Ok(None);
            }
            Ok(Some(
                left.value(at_left).wrapping_rem(right.value(at_right)),
            ))
        })
    }

    /// Whole numbers of which one is unsigned.
    pub(super) fn wide_integers(&self, call: &Call<'_>, of: &ColumnType) -> Result<ArrayRef> {
        let left = Self::exact(call, 0)?.0;
        let right = if call.count() > 1 {
            Some(Self::exact(call, 1)?.0)
        } else {
            None
        };
        let value = |row: usize| -> Result<Option<i128>> {
            let Some(left) = left.narrow(row) else {
                return Ok(None);
            };
            let Some(right) = right.as_ref().map_or(Some(0), |right| right.narrow(row)) else {
                return Ok(None);
            };
            let value = match self.operator {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                Operator::Multiply => left
                    .checked_mul(right)
                    .ok_or_else(|| self.out_of_range(call))?,
                Operator::Negate => -left,
                _ if right == 0 => {
                    call.division_by_zero()?;
                    return Ok(None);
                }
                _ => left % right,
            };
            Ok(Some(value))
        };
        self.in_range(call, of, value)
    }

    /// Whole numbers of a type, which must hold them all.
    fn in_range(
        &self,
        call: &Call<'_>,
        of: &ColumnType,
        value: impl Fn(usize) -> Result<Option<i128>>,
    ) -> Result<ArrayRef> {
        let out_of_range = |_| self.out_of_range(call);
        if *of == (ColumnType::BigInt { unsigned: true }) {
            return call.make_unsigned(|row| {
                let value = value(row)?.map(|value| u64::try_from(value).map_err(out_of_range));
                value.transpose()
            });
        }
        call.make_integers(|row| {
            let value = value(row)?.map(|value| i64::try_from(value).map_err(out_of_range));
            value.transpose()
        })
    }

    pub(super) fn integer_division(&self, call: &Call<'_>) -> Result<ArrayRef> {
        let is_double = |index: usize| {
            let of = counted(&call.column_type(index));
            matches!(of, ColumnType::Double { .. } | ColumnType::Float { .. })
        };
        let quotient: Box<dyn Fn(usize) -> Result<Option<i128>> + '_> =
            if is_double(0) || is_double(1) {
                let (left, right) = (call.doubles(0)?, call.doubles(1)?);
                Box::new(move |row| {
                    let (Some(left), Some(right)) = (left.at(row), right.at(row)) else {
                        return Ok(None);
                    };
                    if right == 0.0 {
                        call.division_by_zero()?;
                        return Ok(None);
                    }
                    #[expect(clippy::cast_possible_truncation, reason = "truncation is meant")]
                    let nearest = || (left / right).trunc() as i128;
                    Ok(Some(exact_quotient(left, right).unwrap_or_else(nearest)))
                })
            } else {
                let (left, left_scale) = Self::exact(call, 0)?;
                let (right, right_scale) = Self::exact(call, 1)?;
                let scale = left_scale.max(right_scale);
                Box::new(move |row| {
                    let (Some(left), Some(right)) = (left.wide(row), right.wide(row)) else {
                        return Ok(None);
                    };
                    let left = convert::rescale(left, left_scale, scale);
                    let right = convert::rescale(right, right_scale, scale);
                    if right == i256::ZERO {
                        call.division_by_zero()?;
                        return Ok(None);
                    }
                    let value = left.checked_div(right).and_then(i256::to_i128);
                    value.map(Some).ok_or_else(|| self.out_of_range(call))
                })
            };
        self.in_range(call, &call.result_type(), quotient)
    }

    pub(super) fn bits(&self, call: &Call<'_>) -> Result<ArrayRef> {
        let unsigned = |index: usize| -> Result<(ArrayRef, bool)> {
            let of = ColumnType::BigInt { unsigned: true };
            let from = call.column_type(index);
            let array = cast::convert_array(call.array(index), &from, &of, call.session)?;
            Ok((array, call.is_constant(index)))
        };
        let (left, left_constant) = unsigned(0)?;
        let left = left.as_primitive::<UInt64Type>();
        let mut builder = UInt64Builder::with_capacity(call.rows);
        if self.operator == Operator::BitNot {
            return Ok(Arc::new(left.unary::<_, UInt64Type>(|value| !value)));
        }
        let (right, right_constant) = unsigned(1)?;
        let right = right.as_primitive::<UInt64Type>();
        for row in 0..call.rows {
            let at_left = if left_constant { 0 } else { row };
            let at_right = if right_constant { 0 } else { row };
            if left.is_null(at_left) || right.is_null(at_right) {
                builder.append_null();
                continue;
            }
            let (left, right) = (left.value(at_left), right.value(at_right));
            let places = u32::try_from(right).unwrap_or(u32::MAX);
            builder.append_value(match self.operator {
                Operator::BitAnd => left & right,
                Operator::BitOr => left | right,
                Operator::BitXor => left ^ right,
                Operator::ShiftLeft => left.checked_shl(places).unwrap_or(0),
                _ => left.checked_shr(places).unwrap_or(0),
            });
        }
        Ok(Arc::new(builder.finish()))
    }
}

/// The whole part of the quotient of the DECIMALs that two DOUBLEs are shown as, which is not
/// always that of their own quotient: `0.3e0 DIV 0.1e0` is 3. `None` where DECIMAL cannot hold
/// them.
fn exact_quotient(left: f64, right: f64) -> Option<i128> {
    const SCALE: i8 = 30;
    let exact = |value: f64| number::read_decimal(&format!("{value:e}"), SCALE).0;
    exact(left)?.checked_div(exact(right)?)?.to_i128()
}

/// Remainders by one divisor. Numbers of 32 bits take the faster division.
fn remainders(values: &Int64Array, divisor: i64) -> Int64Array {
    if let Ok(small) = u32::try_from(divisor) {
        return values.unary(|value| match u32::try_from(value) {
            Ok(value) => i64::from(value % small),
            Err(_) => value.wrapping_rem(divisor),
        });
    }
    values.unary(|value| value.wrapping_rem(divisor))
}
