//! Sums, differences and products of exact numbers, a batch at a time on 128 bits.
//!
//! How many bits the values of both sides have at most is looked at first. Where those prove that
//! no step leaves 128 bits, no row is checked, whatever digits the types declare; factors of 64
//! bits are multiplied as such. All else is computed row by row.

use arrow::array::{Array, Decimal128Array};
use arrow::buffer::NullBuffer;

use super::exact_values::{Exact, Scales, power};
use super::operator::Operator;

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

#[cfg(test)]
mod tests {
    use arrow::datatypes::i256;

    use super::super::exact_values::wide;
    use super::*;

    /// Numbers that look random, the same in each run (the generator of Steele, Lea and Flood).
    fn scattered(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of at most so many bits beside its sign.
    fn number(seed: &mut u64, bits: u32) -> i128 {
        let all = u128::from(scattered(seed)) << 64 | u128::from(scattered(seed));
        let shift = 127 - bits + (scattered(seed) % 8) as u32;
        all.cast_signed() >> shift.min(127)
    }

    fn side(seed: &mut u64, rows: usize, bits: u32, is_constant: bool) -> Exact {
        let rows = if is_constant { 1 } else { rows };
        let values: Decimal128Array = (0..rows)
            .map(|_| {
                let is_null = !is_constant && scattered(seed).is_multiple_of(10);
                (!is_null).then(|| number(seed, bits))
            })
            .collect();
        Exact::Narrow(values, is_constant)
    }

    #[test]
    fn batches_are_computed_as_rows_are() {
        let mut seed = 18;
        let mut computed = 0;
        for round in 0..6_000 {
            let operator = [Operator::Add, Operator::Subtract, Operator::Multiply][round % 3];
            let bits = [0, 1, 40, 62, 63, 64, 90, 124, 125, 126, 127];
            let mut any = |values: &[u32]| values[scattered(&mut seed) as usize % values.len()];
            let (left_bits, right_bits) = (any(&bits), any(&bits));
            let (left_scale, right_scale) = (any(&[0, 2, 6, 30]) as i8, any(&[0, 2, 6]) as i8);
            let result = match operator {
                Operator::Multiply => left_scale + right_scale,
                _ => left_scale.max(right_scale),
            };
            let constant = any(&[0, 1, 2]);
            let rows = any(&[1, 2, 100]) as usize;
            let scales = Scales {
                left: left_scale,
                right: right_scale,
                result,
                cut: false,
            };
            let left = side(&mut seed, rows, left_bits, constant == 1);
            let right = side(&mut seed, rows, right_bits, constant == 2);
            let batch = compute(operator, (&left, &right), scales, |value| value);
            let small = left_bits + right_bits + 21 < STEP_BITS && left_scale < 30;
            assert!(
                batch.is_some() || !small,
                "{left_bits} and {right_bits} bits are few"
            );
            let Some((values, nulls)) = batch else {
                continue;
            };
            computed += 1;
            for (row, value) in values.into_iter().enumerate() {
                let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                let sides = left.wide(row).zip(right.wide(row));
                assert_eq!(is_null, sides.is_none());
                if let Some((left, right)) = sides {
                    let expected = wide(operator, left, right, scales);
                    assert_eq!(Some(i256::from_i128(value)), expected, "{operator:?}");
                }
            }
        }
        assert!(computed > 1_000, "{computed} batches were proven");
    }

    #[test]
    fn what_may_overflow_is_left_to_rows() {
        let one = |value: i128| Exact::Narrow(Decimal128Array::from(vec![value]), false);
        let scales = |left, right, result| Scales {
            left,
            right,
            result,
            cut: false,
        };
        let number = |value| value;
        let greatest = 10_i128.pow(38) - 1;
        for (operator, left, right, scales) in [
            (Operator::Multiply, greatest, 10, scales(0, 0, 0)),
            (Operator::Add, greatest, greatest, scales(0, 0, 0)),
            (Operator::Subtract, greatest, 1, scales(0, 2, 2)),
            // What these round is not for whole batches.
            (Operator::Multiply, 15, 15, scales(1, 1, 1)),
            (Operator::Add, 15, 15, scales(2, 1, 1)),
            (Operator::Divide, 15, 3, scales(0, 0, 4)),
            (Operator::Modulo, 15, 4, scales(0, 0, 0)),
        ] {
            let sides = (&one(left), &one(right));
            assert!(
                compute(operator, sides, scales, number).is_none(),
                "{operator:?}"
            );
        }
        let null = Exact::Narrow(Decimal128Array::from(vec![None]), true);
        let sides = (&one(1), &null);
        assert!(compute(Operator::Add, sides, scales(0, 0, 0), number).is_none());
    }
}
