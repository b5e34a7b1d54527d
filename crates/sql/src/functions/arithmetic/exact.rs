//! Exact numbers with a fraction: on 128 bits as long as the values fit (a batch at a time where
//! they prove it, see `batch`), otherwise on 256.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Decimal128Builder, Decimal256Array,
    Decimal256Builder,
};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, UInt64Type, i256};
use datafusion::error::Result;
use mayfly_types::ColumnType;

use super::{Arithmetic, Operator, batch, kept_digits};
use crate::functions::call::Call;
use crate::functions::cast;
use crate::functions::convert;
use crate::functions::unify::decimal;

impl Arithmetic {
    /// The numbers of an argument in 128 bits, with their scale.
    pub(super) fn exact(call: &Call<'_>, index: usize) -> Result<(Exact, i8)> {
        let array = convert::plain(call.array(index))?;
        let constant = call.is_constant(index);
        Ok(match array.data_type() {
            DataType::Decimal128(_, scale) => {
                let scale = *scale;
                (
                    Exact::Narrow(array.as_primitive::<Decimal128Type>().clone(), constant),
                    scale,
                )
            }
            DataType::Decimal256(_, scale) => {
                let scale = *scale;
                (
                    Exact::Wide(array.as_primitive::<Decimal256Type>().clone(), constant),
                    scale,
                )
            }
            DataType::UInt64 => {
                let values = array.as_primitive::<UInt64Type>();
                (
                    Exact::Narrow(values.unary::<_, Decimal128Type>(i128::from), constant),
                    0,
                )
            }
            DataType::Timestamp(_, _) | DataType::Duration(_)
                if call.column_type(index).second_digits() > 0 =>
            {
                let digits = call.column_type(index).second_digits();
                let of = decimal(14, digits);
                let values = if matches!(array.data_type(), DataType::Timestamp(_, _)) {
                    let from = call.column_type(index);
                    cast::convert_array(&array, &from, &of, call.session)?
                } else {
                    // A time has few enough digits for a DOUBLE.
                    let doubles: ArrayRef = Arc::new(convert::to_double(&array, call.session)?);
                    cast::convert_array(&doubles, &ColumnType::DOUBLE, &of, call.session)?
                };
                let scale = digits.cast_signed();
                (
                    Exact::Narrow(values.as_primitive::<Decimal128Type>().clone(), constant),
                    scale,
                )
            }
            _ => {
                let values = convert::to_integer(&array, call.session)?;
                (
                    Exact::Narrow(values.unary::<_, Decimal128Type>(i128::from), constant),
                    0,
                )
            }
        })
    }

    pub(super) fn decimals(&self, call: &Call<'_>, precision: u8, scale: i8) -> Result<ArrayRef> {
        let (left, left_scale) = Self::exact(call, 0)?;
        let (right, right_scale) = if call.count() > 1 {
            Self::exact(call, 1)?
        } else {
            (Exact::Narrow(Decimal128Array::from(vec![0_i128]), true), 0)
        };
        let scales = Scales {
            left: left_scale,
            right: right_scale,
            result: scale,
            cut: self.intermediate || self.cuts_at(left_scale, right_scale, scale),
        };
        let narrow_result = matches!(call.result_type().data_type(), DataType::Decimal128(_, _));
        let sides = (&left, &right);
        if narrow_result {
            let whole = batch::compute(self.operator, sides, scales, |value| value);
            if let Some((values, nulls)) = whole {
                let array = Decimal128Array::new(values.into(), nulls);
                return Ok(Arc::new(array.with_precision_and_scale(precision, scale)?));
            }
        } else if let Some((values, nulls)) =
            batch::compute(self.operator, sides, scales, i256::from_i128)
        {
            let array = Decimal256Array::new(values.into(), nulls);
            return Ok(Arc::new(array.with_precision_and_scale(precision, scale)?));
        }
        if let (true, Exact::Narrow(..), Exact::Narrow(..)) = (narrow_result, &left, &right) {
            let mut builder = Decimal128Builder::with_capacity(call.rows);
            for row in 0..call.rows {
                let (Some(left), Some(right)) = (left.narrow(row), right.narrow(row)) else {
                    builder.append_null();
                    continue;
                };
                match narrow(self.operator, left, right, scales) {
                    Step::Value(value) => builder.append_value(value),
                    Step::Null => {
                        self.division_by_zero(call)?;
                        builder.append_null();
                    }
                    Step::Overflow => {
                        // An intermediate step may need more bits than the result.
                        let (left, right) = (i256::from_i128(left), i256::from_i128(right));
                        match wide(self.operator, left, right, scales).and_then(i256::to_i128) {
                            Some(value) => builder.append_value(value),
                            None => return Err(self.out_of_range(call)),
                        }
                    }
                }
            }
            return Ok(Arc::new(
                builder
                    .finish()
                    .with_precision_and_scale(precision, scale)?,
            ));
        }
        let mut values = Vec::with_capacity(call.rows);
        for row in 0..call.rows {
            let (Some(left), Some(right)) = (left.wide(row), right.wide(row)) else {
                values.push(None);
                continue;
            };
            let divides = matches!(self.operator, Operator::Divide | Operator::Modulo);
            if divides && right == i256::ZERO {
                self.division_by_zero(call)?;
                values.push(None);
                continue;
            }
            let value = wide(self.operator, left, right, scales);
            values.push(Some(value.ok_or_else(|| self.out_of_range(call))?));
        }
        if narrow_result {
            let mut builder = Decimal128Builder::with_capacity(call.rows);
            for value in values {
                let value = value.map(|value| value.to_i128());
                match value {
                    Some(None) => return Err(self.out_of_range(call)),
                    Some(Some(value)) => builder.append_value(value),
                    None => builder.append_null(),
                }
            }
            return Ok(Arc::new(
                builder
                    .finish()
                    .with_precision_and_scale(precision, scale)?,
            ));
        }
        let mut builder = Decimal256Builder::with_capacity(call.rows);
        values
            .into_iter()
            .for_each(|value| builder.append_option(value));
        Ok(Arc::new(
            builder
                .finish()
                .with_precision_and_scale(precision, scale)?,
        ))
    }
}

impl Arithmetic {
    /// Whether a quotient has no digits behind those of the result, by which it would be rounded.
    fn cuts_at(&self, left: i8, right: i8, result: i8) -> bool {
        let scales = (left.unsigned_abs(), right.unsigned_abs());
        self.operator == Operator::Divide
            && kept_digits(scales, self.more_digits) <= result.unsigned_abs()
    }
}

/// Exact numbers, in as few bits as they came.
pub(super) enum Exact {
    Narrow(Decimal128Array, bool),
    Wide(Decimal256Array, bool),
}

impl Exact {
    pub(super) fn narrow(&self, row: usize) -> Option<i128> {
        match self {
            Exact::Narrow(array, constant) => {
                let row = if *constant { 0 } else { row };
                array.is_valid(row).then(|| array.value(row))
            }
            Exact::Wide(..) => self.wide(row).and_then(i256::to_i128),
        }
    }

    pub(super) fn wide(&self, row: usize) -> Option<i256> {
        match self {
            Exact::Narrow(..) => self.narrow(row).map(i256::from_i128),
            Exact::Wide(array, constant) => {
                let row = if *constant { 0 } else { row };
                array.is_valid(row).then(|| array.value(row))
            }
        }
    }
}

/// Digits behind the point of both sides and of the result.
#[derive(Clone, Copy)]
pub(super) struct Scales {
    pub(super) left: i8,
    pub(super) right: i8,
    pub(super) result: i8,
    /// Whether a quotient is cut off instead of rounded.
    pub(super) cut: bool,
}

enum Step {
    Value(i128),
    Null,
    Overflow,
}

/// A power of ten, where 128 bits hold it.
pub(super) fn power(exponent: i8) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// One operation on 128 bits.
fn narrow(operator: Operator, left: i128, right: i128, scales: Scales) -> Step {
    let aligned = scales.left.max(scales.right);
    let align = |value: i128, scale: i8| value.checked_mul(power(aligned - scale)?);
    let value = match operator {
        Operator::Negate if scales.left == scales.result => left.checked_neg(),
        Operator::Negate => None,
        Operator::Divide | Operator::Modulo if right == 0 => return Step::Null,
        // (left / 10^l) / (right / 10^r) = left * 10^(result - l + r) / right / 10^result.
        Operator::Divide => power(scales.result - scales.left + scales.right)
            .and_then(|factor| left.checked_mul(factor))
            .map(|dividend| {
                let (quotient, rest) = (dividend / right, dividend % right);
                let up = !scales.cut
                    && rest.unsigned_abs() >= right.unsigned_abs() - rest.unsigned_abs();
                let away = if (dividend < 0) == (right < 0) { 1 } else { -1 };
                quotient + if up && rest != 0 { away } else { 0 }
            }),
        Operator::Multiply if scales.result == scales.left + scales.right => {
            left.checked_mul(right)
        }
        Operator::Multiply => None,
        _ if aligned != scales.result => None,
        _ => match (align(left, scales.left), align(right, scales.right)) {
            (Some(left), Some(right)) => match operator {
                Operator::Add => left.checked_add(right),
                Operator::Subtract => left.checked_sub(right),
                _ => Some(left % right),
            },
            _ => None,
        },
    };
    value.map_or(Step::Overflow, Step::Value)
}

/// One operation on 256 bits; the divisor is not zero.
pub(super) fn wide(operator: Operator, left: i256, right: i256, scales: Scales) -> Option<i256> {
    let ten = i256::from_i128(10);
    let aligned = scales.left.max(scales.right);
    let align = |value: i256, scale: i8| {
        value.checked_mul(ten.checked_pow(u32::try_from(aligned - scale).ok()?)?)
    };
    match operator {
        Operator::Negate => {
            let negated = left.checked_neg()?;
            Some(convert::rescale(negated, scales.left, scales.result))
        }
        Operator::Divide => {
            let exponent =
                i32::from(scales.result) - i32::from(scales.left) + i32::from(scales.right);
            let factor = ten.checked_pow(exponent.unsigned_abs())?;
            let (dividend, divisor) = if exponent >= 0 {
                (left.checked_mul(factor)?, right)
            } else {
                (left, right.checked_mul(factor)?)
            };
            let quotient = dividend.checked_div(divisor)?;
            let rest = dividend
                .checked_sub(quotient.checked_mul(divisor)?)?
                .wrapping_abs();
            let away = if dividend.is_negative() == divisor.is_negative() {
                i256::ONE
            } else {
                i256::MINUS_ONE
            };
            let up = !scales.cut
                && rest != i256::ZERO
                && rest >= divisor.wrapping_abs().checked_sub(rest)?;
            if up {
                quotient.checked_add(away)
            } else {
                Some(quotient)
            }
        }
        Operator::Multiply => {
            let product = left.checked_mul(right)?;
            let scale = scales.left + scales.right;
            Some(convert::rescale(product, scale, scales.result))
        }
        _ => {
            let (left, right) = (align(left, scales.left)?, align(right, scales.right)?);
            let value = match operator {
                Operator::Add => left.checked_add(right)?,
                Operator::Subtract => left.checked_sub(right)?,
                _ => left.checked_rem(right)?,
            };
            Some(convert::rescale(value, aligned, scales.result))
        }
    }
}
