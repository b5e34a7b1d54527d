//! Sums, differences and products of exact numbers, a batch at a time on 128 bits.
//!
//! How many bits the values of both sides have at most is looked at first. Where those prove that
//! no step leaves 128 bits, no row is checked, whatever digits the types declare; factors of 64
//! bits are multiplied as such. All else is computed row by row.

use arrow::array::{Array, Decimal128Array};
use arrow::buffer::NullBuffer;

use super::Operator;
use super::exact::{Exact, Scales, power};

/// Bits that a number on the way has at most, without its sign: one less than fit, since a sum has
/// one more than its sides.
const STEP_BITS: u32 = 126;

/// Bits of a factor, without its sign, up to which 64 bits hold it.
const SHORT_BITS: u32 = 63;

/// One side of an operation.
enum Side<'a> {
    Constant(i128),
    Column(&'a Decimal128Array),
}

impl<'a> Side<'a> {
    /// `None` for numbers of 256 bits and for a constant that is NULL.
    fn of(exact: &'a Exact) -> Option<Side<'a>> {
        match exact {
            Exact::Narrow(array, true) => array.is_valid(0).then(|| Side::Constant(array.value(0))),
            Exact::Narrow(array, false) => Some(Side::Column(array)),
            Exact::Wide(..) => None,
        }
    }

    /// Bits that hold each value beside its sign. What lies under a NULL counts too.
    fn bits(&self) -> u32 {
        // A negative number has as many as its complement.
        let magnitude = |value: i128| (value ^ (value >> 127)).cast_unsigned();
        let all = match self {
            Side::Constant(value) => magnitude(*value),
            Side::Column(array) => array
                .values()
                .iter()
                .fold(0, |all, value| all | magnitude(*value)),
        };
        u128::BITS - all.leading_zeros()
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        match self {
            Side::Constant(_) => None,
            Side::Column(array) => array.nulls(),
        }
    }

    /// The side with the factor by which each of its values is to be multiplied: a constant is
    /// multiplied here.
    fn aligned(self, factor: i128) -> (Side<'a>, i128) {
        match self {
            Side::Constant(value) => (Side::Constant(value * factor.abs()), factor.signum()),
            column @ Side::Column(_) => (column, factor),
        }
    }
}

/// The results of all rows and which of them are NULL; `None` where the values do not prove that
/// 128 bits suffice, and for other operators. `number` makes the result of its 128 bits.
pub(super) fn compute<T>(
    operator: Operator,
    (left, right): (&Exact, &Exact),
    scales: Scales,
    number: impl Fn(i128) -> T,
) -> Option<(Vec<T>, Option<NullBuffer>)> {
    use Operator::{Add, Multiply, Subtract};
    if !matches!(operator, Add | Multiply | Subtract) {
        return None;
    }
    let (left, right) = (Side::of(left)?, Side::of(right)?);
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    let (left_bits, right_bits) = (left.bits(), right.bits());
    let values = match operator {
        Multiply if scales.result == scales.left + scales.right => {
            if left_bits + right_bits > STEP_BITS {
                return None;
            }
            if left_bits.max(right_bits) <= SHORT_BITS {
                #[expect(clippy::cast_possible_truncation, reason = "64 bits hold both")]
                let product = |a: i128, b: i128| i128::from(a as i64) * i128::from(b as i64);
                each(&left, &right, |a, b| number(product(a, b)))?
            } else {
                each(&left, &right, |a, b| number(a.wrapping_mul(b)))?
            }
        }
        Add | Subtract => {
            let aligned = scales.left.max(scales.right);
            if aligned != scales.result {
                return None;
            }
            let left_factor = power(aligned - scales.left)?;
            let right_factor = power(aligned - scales.right)?;
            let factor_bits = |factor| Side::Constant(factor).bits();
            let bits =
                (left_bits + factor_bits(left_factor)).max(right_bits + factor_bits(right_factor));
            if bits >= STEP_BITS {
                return None;
            }
            let sign = if operator == Add { 1 } else { -1 };
            let (left, left_factor) = left.aligned(left_factor);
            let (right, right_factor) = right.aligned(right_factor * sign);
            match (left_factor, right_factor) {
                (1, 1) => each(&left, &right, |a, b| number(a.wrapping_add(b)))?,
                (1, -1) => each(&left, &right, |a, b| number(a.wrapping_sub(b)))?,
                _ => each(&left, &right, |a, b| {
                    let (a, b) = (a.wrapping_mul(left_factor), b.wrapping_mul(right_factor));
                    number(a.wrapping_add(b))
                })?,
            }
        }
        _ => return None,
    };
    Some((values, nulls))
}

/// The results of all rows; `None` where both sides are constants, whose rows nobody counts here.
fn each<T>(left: &Side<'_>, right: &Side<'_>, result: impl Fn(i128, i128) -> T) -> Option<Vec<T>> {
    Some(match (left, right) {
        (Side::Constant(_), Side::Constant(_)) => return None,
        (Side::Constant(a), Side::Column(right)) => {
            right.values().iter().map(|b| result(*a, *b)).collect()
        }
        (Side::Column(left), Side::Constant(b)) => {
            left.values().iter().map(|a| result(*a, *b)).collect()
        }
        (Side::Column(left), Side::Column(right)) => {
            let pairs = left.values().iter().zip(right.values());
            pairs.map(|(a, b)| result(*a, *b)).collect()
        }
    })
}
