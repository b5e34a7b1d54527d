//! Exact numbers of 128 and of 256 bits, and one operation on two of them.

use arrow::array::{Array, Decimal128Array, Decimal256Array};
use arrow::datatypes::i256;

use super::operator::Operator;
use crate::functions::convert;

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

/// What one operation on 128 bits gives.
pub(super) enum Step {
    Value(i128),
    Null,
    Overflow,
}

/// A power of ten, where 128 bits hold it.
pub(super) fn power(exponent: i8) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// One operation on 128 bits.
pub(super) fn narrow(operator: Operator, left: i128, right: i128, scales: Scales) -> Step {
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
