//! Numbers as MySQL reads them.
//!
//! Reading takes the longest prefix that is a number, after leading spaces, and zero when there is
//! none.

use arrow::datatypes::i256;

/// The length of the longest prefix that is a number in decimal or scientific notation.
fn numeric_prefix(bytes: &[u8]) -> usize {
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(at);
    at += whole;
    let mut fraction = 0;
    if bytes.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        at += 1 + fraction;
    }
    if whole + fraction == 0 {
        return 0;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    at
}

/// What a text starts with, and whether anything but spaces follows.
fn prefix(text: &str) -> (&str, bool) {
    let trimmed = text.trim_start_matches(is_space);
    let length = numeric_prefix(trimmed.as_bytes());
    (
        &trimmed[..length],
        length > 0 && trimmed[length..].trim_end_matches(is_space).is_empty(),
    )
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Whether a text starts with a number at all.
pub(crate) fn begins_with_number(text: &str) -> bool {
    !prefix(text).0.is_empty()
}

/// The number that a text starts with, and whether that was all of it.
pub fn read_double(text: &str) -> (f64, bool) {
    let (value, whole) = read_unbounded(text);
    // MySQL clips what is too large for a double.
    (value.clamp(f64::MIN, f64::MAX), whole)
}

/// As [`read_double`], infinite where the number is too large for a double.
pub(crate) fn read_unbounded(text: &str) -> (f64, bool) {
    let (number, whole) = prefix(text);
    (number.parse().unwrap_or(0.0), whole)
}

/// The whole number that a text starts with (no fraction, no exponent), and whether that was all.
pub fn read_integer(text: &str) -> (i128, bool) {
    let trimmed = text.trim_start_matches(is_space);
    let bytes = trimmed.as_bytes();
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let digits = bytes[sign..]
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let end = sign + digits;
    let value = trimmed[..end].parse::<i128>().unwrap_or_else(|_| {
        if digits == 0 {
            0
        } else if bytes[0] == b'-' {
            i128::MIN
        } else {
            i128::MAX
        }
    });
    (
        value,
        digits > 0 && trimmed[end..].trim_end_matches(is_space).is_empty(),
    )
}

/// Whether neither BIGINT nor BIGINT UNSIGNED holds a number.
pub(crate) fn is_beyond_integers(value: i128) -> bool {
    value > i128::from(u64::MAX) || value < i128::from(i64::MIN)
}

/// The exact number that a text starts with, rounded to `scale` digits after the point, and
/// whether the text was nothing but that number. `None` if it has more digits than 256 bits hold.
pub fn read_decimal(text: &str, scale: i8) -> (Option<i256>, bool) {
    let read = read_rounded(text, scale);
    (read.value, read.is_whole)
}

/// What a text begins with, as an exact number.
pub(crate) struct ReadDecimal {
    /// The number, rounded; `None` if it has more digits than 256 bits hold.
    pub(crate) value: Option<i256>,
    /// Whether the text was nothing but that number.
    pub(crate) is_whole: bool,
    /// Whether digits other than zero have been rounded away.
    pub(crate) is_rounded: bool,
}

/// As [`read_decimal`], and says whether the number has been rounded.
pub(crate) fn read_rounded(text: &str, scale: i8) -> ReadDecimal {
    let (number, is_whole) = prefix(text);
    let (mantissa, exponent) = match number.find(['e', 'E']) {
        Some(at) => (
            &number[..at],
            number[at + 1..].parse::<i32>().unwrap_or(i32::MAX / 2),
        ),
        None => (number, 0),
    };
    let negative = mantissa.starts_with('-');
    let mut point = None;
    let mut digits: Vec<u8> = Vec::with_capacity(mantissa.len());
    for byte in mantissa.bytes() {
        match byte {
            b'.' => point = Some(digits.len()),
            b'0'..=b'9' => digits.push(byte - b'0'),
            _ => {}
        }
    }
    let before = i64::try_from(point.unwrap_or(digits.len())).unwrap_or(i64::MAX);
    // The digits up to the last kept place, and the one after it, which decides the rounding.
    let kept = before + i64::from(exponent) + i64::from(scale);
    let ten = i256::from_i128(10);
    let mut value = i256::ZERO;
    for index in 0..kept.clamp(0, 1000) {
        let digit = usize::try_from(index)
            .ok()
            .and_then(|i| digits.get(i))
            .copied()
            .unwrap_or(0);
        match value
            .checked_mul(ten)
            .and_then(|v| v.checked_add(i256::from_i128(digit.into())))
        {
            Some(next) => value = next,
            None => {
                return ReadDecimal {
                    value: None,
                    is_whole,
                    is_rounded: false,
                };
            }
        }
    }
    let after = usize::try_from(kept)
        .ok()
        .and_then(|i| digits.get(i))
        .copied()
        .unwrap_or(0);
    if after >= 5 {
        value = value.wrapping_add(i256::ONE);
    }
    let behind = usize::try_from(kept.max(0)).unwrap_or(usize::MAX);
    let behind = digits.get(behind..).unwrap_or_default();
    ReadDecimal {
        value: Some(if negative {
            value.wrapping_neg()
        } else {
            value
        }),
        is_whole,
        is_rounded: behind.iter().any(|digit| *digit != 0),
    }
}

/// Rounds to the nearest whole number, as MySQL does where it needs one.
pub fn round_to_integer(value: f64) -> i64 {
    // The cast clips what is out of range, as MySQL does.
    #[expect(clippy::cast_possible_truncation, reason = "clipping is meant")]
    let rounded = value.round_ties_even() as i64;
    rounded
}
