//! Values as texts spell them. A text that is not wholly a value is none.
//!
//! A number that its type would spell otherwise is none of that type: one with more digits than
//! the type keeps, with zeros in front (`0042` is a code, not a number), or a zero with a sign,
//! which only a floating-point number keeps. Zeros behind the last digit of a fraction, and the
//! place of the point, do not count: `1.50` is 1.5, and `1e2` is 100.

use std::fmt;
use std::io::Write;

/// Any decimal number of so many digits is spelled back by the floating-point number next to it.
const DIGITS_OF_ANY: usize = 15;
/// So many digits tell each floating-point number from all others.
const DIGITS_OF_DOUBLE: usize = 17;

/// A whole number.
pub fn integer(text: &str) -> Option<i64> {
    match has_usual_start(text) && text != "-0" {
        true => text.parse().ok(),
        false => None,
    }
}

/// A whole number without a sign.
pub fn unsigned(text: &str) -> Option<u64> {
    match has_usual_start(text) {
        true => text.parse().ok(),
        false => None,
    }
}

/// Whether a number begins without a plus and without zeros in front.
fn has_usual_start(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !matches!(digits.as_bytes(), [b'+', ..] | [b'0', b'0'..=b'9', ..])
}

/// A truth value: `true` or `false` in letters of any case.
pub fn boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// A floating-point number that holds the number of the text: written with as many digits, at most
/// 17, or with as few as tell it from others, it is that number. `NaN` and `inf` are texts: DOUBLE
/// has neither.
pub fn double(text: &str) -> Option<f64> {
    // The words that Rust reads too are none of these.
    let is_usual = |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
    if !has_usual_start(text) || !text.bytes().all(is_usual) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    let is_held = text.len() <= DIGITS_OF_ANY && value.is_normal() || spells(value, text)?;
    is_held.then_some(value)
}

/// Whether a floating-point number, written with the digits of a number, is that number.
fn spells(value: f64, number: &str) -> Option<bool> {
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()),
        None => (unsigned, Some(0)),
    };
    let is_significant = |byte: u8| matches!(byte, b'1'..=b'9');
    let Some(first) = mantissa.bytes().position(is_significant) else {
        return Some(true);
    };
    let last = mantissa.bytes().rposition(is_significant)?;
    let digits = mantissa.get(first..=last)?;
    let digits = digits.bytes().filter(u8::is_ascii_digit);
    let count = digits.clone().count();
    if count > DIGITS_OF_DOUBLE || !value.is_finite() {
        return Some(false);
    }
    if count <= DIGITS_OF_ANY && value.is_normal() {
        return Some(true);
    }
    let point = mantissa.find('.').unwrap_or(mantissa.len());
    // The place of the first digit: 0 in front of the point.
    let place = match i64::try_from(point)
        .ok()?
        .checked_sub(first.try_into().ok()?)?
    {
        whole @ 1.. => whole.checked_sub(1)?,
        fraction => fraction,
    };
    let place = exponent.and_then(|exponent| exponent.checked_add(place))?;
    let is_spelled = |spelled: fmt::Arguments<'_>| {
        let mut buffer = [0_u8; 32];
        let mut rest = buffer.as_mut_slice();
        rest.write_fmt(spelled).ok()?;
        let unused = rest.len();
        let spelled = buffer.get(..buffer.len().checked_sub(unused)?)?;
        let (spelled, exponent) = std::str::from_utf8(spelled).ok()?.split_once('e')?;
        let spelled = spelled.bytes().filter(u8::is_ascii_digit);
        Some(exponent.parse() == Ok(place) && spelled.eq(digits.clone()))
    };
    // Beside a power of two the shortest spelling may not be the nearest of its length.
    let digits_behind = count.checked_sub(1)?;
    let value = value.abs();
    Some(
        is_spelled(format_args!("{value:.digits_behind$e}"))?
            || is_spelled(format_args!("{value:e}"))?,
    )
}

/// The digits of a decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) is_negative: bool,
    /// Digits before the point, without zeros in front.
    pub(crate) whole_digits: usize,
    /// Digits behind the point.
    pub(crate) fraction_digits: usize,
    pub(crate) has_point: bool,
    pub(crate) has_exponent: bool,
    pub(crate) is_zero: bool,
}

/// What a number is made of: `-12.5e3`, `.5`, `5.`; none if it has zeros in front.
pub(crate) fn number(text: &str) -> Option<Number> {
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (rest.get(..at)?, rest.get(at.checked_add(1)?..)),
        None => (rest, None),
    };
    if let Some(exponent) = exponent {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits.is_empty() || !is_digits(digits) {
            return None;
        }
    }
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let behind = fraction.unwrap_or_default();
    if !is_digits(whole) || !is_digits(behind) || whole.is_empty() && behind.is_empty() {
        return None;
    }
    if !has_usual_start(whole) {
        return None;
    }
    let is_zero = |digits: &str| digits.bytes().all(|digit| digit == b'0');
    Some(Number {
        is_negative,
        whole_digits: whole.trim_start_matches('0').len(),
        fraction_digits: behind.len(),
        has_point: fraction.is_some(),
        has_exponent: exponent.is_some(),
        is_zero: is_zero(whole) && is_zero(behind),
    })
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The digits of an exact number of a scale, without a point: `1.5` of scale 2 is `150`. `None` if
/// it has more digits than the precision and the scale hold, or is a zero with a sign.
pub fn decimal_digits(text: &str, precision: u8, scale: u8) -> Option<String> {
    let parts = number(text).filter(|parts| !parts.has_exponent)?;
    let (precision, scale) = (usize::from(precision), usize::from(scale));
    let unsigned = text.trim_start_matches('-');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let fraction = fraction.trim_end_matches('0');
    let is_short = parts.whole_digits <= precision.saturating_sub(scale);
    if fraction.len() > scale || !is_short || parts.is_zero && parts.is_negative {
        return None;
    }
    let sign = if parts.is_negative { "-" } else { "" };
    Some(format!("{sign}{whole}{fraction:0<scale$}"))
}

const DAY_SECONDS: i64 = 86_400;

/// A day, `2024-02-29`: days since 1970.
pub fn date(text: &str) -> Option<i32> {
    match text.len() {
        10 => days(text.as_bytes()),
        _ => None,
    }
}

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since 1970, UTC if it has a zone.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanoseconds: u32,
    /// Digits of a second that are written, at most 9.
    pub digits: u8,
}

impl Moment {
    /// The moment in a unit that has so many digits of a second: 0, 3, 6 or 9. `None` if that does
    /// not hold it.
    pub fn in_unit(self, digits: u8) -> Option<i64> {
        let per_second = 10_i64.checked_pow(u32::from(digits))?;
        let nanoseconds = i64::from(self.nanoseconds);
        let step = 1_000_000_000_i64.checked_div(per_second)?;
        if nanoseconds.checked_rem(step)? != 0 {
            return None;
        }
        let whole = self.seconds.checked_mul(per_second)?;
        whole.checked_add(nanoseconds.checked_div(step)?)
    }
}

/// A day, or a day and a time: `2024-02-29 12:30:00.5`, also with `T` between them and a zone
/// (`Z`, `+02:00`, `+0200`, `+02`) behind.
pub fn moment(text: &str) -> Option<Moment> {
    let bytes = text.as_bytes();
    let (day, rest) = bytes.split_at_checked(10)?;
    let day = i64::from(days(day)?).checked_mul(DAY_SECONDS)?;
    if rest.is_empty() {
        return Some(Moment {
            seconds: day,
            nanoseconds: 0,
            digits: 0,
        });
    }
    let (time, mut rest) = rest.split_at_checked(9)?;
    let [b'T' | b' ', h0, h1, b':', m0, m1, b':', s0, s1] = time else {
        return None;
    };
    let hour = two_digits(*h0, *h1).filter(|hour| *hour < 24)?;
    let minute = two_digits(*m0, *m1).filter(|minute| *minute < 60)?;
    let second = two_digits(*s0, *s1).filter(|second| *second < 60)?;
    let of_day = clock_seconds(hour, minute)?.checked_add(second)?;
    let (mut nanoseconds, mut digits) = (0_u32, 0_u8);
    if let Some((b'.', behind)) = rest.split_first() {
        rest = behind;
        while let Some((byte @ b'0'..=b'9', behind)) = rest.split_first() {
            if digits == 9 {
                return None;
            }
            let digit = u32::from(byte.checked_sub(b'0')?);
            nanoseconds = nanoseconds.checked_mul(10)?.checked_add(digit)?;
            digits = digits.checked_add(1)?;
            rest = behind;
        }
        if digits == 0 {
            return None;
        }
        let missing = 9_u32.checked_sub(u32::from(digits))?;
        nanoseconds = nanoseconds.checked_mul(10_u32.checked_pow(missing)?)?;
    }
    let offset = zone_seconds(rest)?;
    Some(Moment {
        seconds: day.checked_add(of_day)?.checked_sub(offset)?,
        nanoseconds,
        digits,
    })
}

fn zone_seconds(zone: &[u8]) -> Option<i64> {
    let zone = zone.strip_prefix(b" ").unwrap_or(zone);
    let (sign, hours, minutes) = match zone {
        [] | [b'Z' | b'z'] => return Some(0),
        [sign @ (b'+' | b'-'), h0, h1] => (sign, two_digits(*h0, *h1)?, 0),
        [sign @ (b'+' | b'-'), h0, h1, b':', m0, m1] | [sign @ (b'+' | b'-'), h0, h1, m0, m1] => {
            (sign, two_digits(*h0, *h1)?, two_digits(*m0, *m1)?)
        }
        _ => return None,
    };
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = clock_seconds(hours, minutes)?;
    match sign {
        b'-' => seconds.checked_neg(),
        _ => Some(seconds),
    }
}

fn clock_seconds(hours: i64, minutes: i64) -> Option<i64> {
    hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)
}

fn two_digits(tens: u8, ones: u8) -> Option<i64> {
    let digit = |byte: u8| char::from(byte).to_digit(10).map(i64::from);
    digit(tens)?.checked_mul(10)?.checked_add(digit(ones)?)
}

/// The days of `YYYY-MM-DD` since 1970.
///
/// **Source**: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
fn days(text: &[u8]) -> Option<i32> {
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = text else {
        return None;
    };
    let century = two_digits(*y0, *y1)?;
    let year = century
        .checked_mul(100)?
        .checked_add(two_digits(*y2, *y3)?)?;
    let (month, day) = (two_digits(*m0, *m1)?, two_digits(*d0, *d1)?);
    let is_leap =
        year.checked_rem(4)? == 0 && (year.checked_rem(100)? != 0 || year.checked_rem(400)? == 0);
    let last = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28_i64.checked_add(i64::from(is_leap))?,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=last).contains(&day) {
        return None;
    }
    // Years begin in March.
    let (year, month) = match month {
        1 | 2 => (year.checked_sub(1)?, month.checked_add(9)?),
        _ => (year, month.checked_sub(3)?),
    };
    let era = year.checked_div_euclid(400)?;
    let year_of_era = year.checked_rem_euclid(400)?;
    let day_of_year = month
        .checked_mul(153)?
        .checked_add(2)?
        .checked_div(5)?
        .checked_add(day)?
        .checked_sub(1)?;
    let day_of_era = year_of_era
        .checked_mul(365)?
        .checked_add(year_of_era.checked_div(4)?)?
        .checked_sub(year_of_era.checked_div(100)?)?
        .checked_add(day_of_year)?;
    let days = era
        .checked_mul(146_097)?
        .checked_add(day_of_era)?
        .checked_sub(719_468)?;
    i32::try_from(days).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_wholly_numbers() {
        for text in ["1", "-1", "1.5", ".5", "5.", "1e3", "1.5E-3"] {
            assert_eq!(double(text), text.parse().ok(), "{text}");
        }
        for text in [
            "", "-", "+1", "1e", "1e+", "1 ", " 1", "1.2.3", "infinity", "1e999", "0x1", ".",
            "NaN", "nan", "inf", "-inf", "01", "-00.5", "-+1", "--1", "1e1e1", "1-1",
        ] {
            assert_eq!(double(text), None, "{text}");
        }
        assert_eq!(integer("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer("9223372036854775808"), None);
        for text in ["+1", "01", "-01", "00", "-0"] {
            assert_eq!(integer(text), None, "{text}");
            assert_eq!(unsigned(text), None, "{text}");
        }
        assert_eq!(unsigned("18446744073709551615"), Some(u64::MAX));
    }

    #[test]
    fn doubles_hold_what_they_spell() {
        for text in [
            "0",
            "-0",
            "-0.00",
            "0e999",
            "0.04",
            "17954.55",
            "100000000000000000000",
            "1e308",
            "123456789012345",
            "0.100000000000000000000000000000000",
            "9007199254740992",
            "0.12345678901234568",
            "123456789012345.67",
            "3.141592653589793",
            "5e-324",
            "1e23",
            "0.10000000000000001",
            "5.6843418860808015e-14",
            "5.684341886080802E-14",
            "2.2250738585072014e-308",
            "1.7976931348623157e308",
            "4.9406564584124654e-324",
        ] {
            assert_eq!(double(text), text.parse().ok(), "{text}");
        }
        for text in [
            "9007199254740993",
            "12345678901234567.89",
            "0.1234567890123456789012345",
            "0.12345678901234567",
            "1.23456789012345678e5",
            "4e-324",
            "1e-999",
            "1e309",
            "1e99999999999999999999",
            "1e-99999999999999999999",
        ] {
            assert_eq!(double(text), None, "{text}");
        }
    }

    #[test]
    fn decimals_keep_every_digit() {
        let check = |text: &str, precision, scale, expect: Option<&str>| {
            let found = decimal_digits(text, precision, scale);
            assert_eq!(found.as_deref(), expect, "{text}");
        };
        check("1.5", 5, 2, Some("150"));
        check("-12", 5, 2, Some("-1200"));
        check("1.500", 5, 2, Some("150"));
        check("1.555", 5, 2, None);
        check("1234", 5, 2, None);
        check("0.5", 5, 2, Some("050"));
        check(".5", 5, 2, Some("50"));
        check("001.5", 5, 2, None);
        check("-0.00", 5, 2, None);
        check("1e3", 9, 2, None);
    }

    #[test]
    fn days_and_moments() {
        assert_eq!(date("1970-01-01"), Some(0));
        assert_eq!(date("2024-02-29"), Some(19782));
        assert_eq!(date("2000-03-01"), Some(11017));
        assert_eq!(date("0001-01-01"), Some(-719_162));
        assert_eq!(date("2023-02-29"), None);
        assert_eq!(date("2023-13-01"), None);
        assert_eq!(date("0000-00-00"), None);
        assert_eq!(date("2023-1-01"), None);
        let seconds = |text: &str| moment(text).map(|moment| moment.seconds);
        assert_eq!(seconds("1970-01-02"), Some(86_400));
        assert_eq!(seconds("1970-01-01 00:01:02"), Some(62));
        assert_eq!(seconds("1970-01-01T02:00:00+02:00"), Some(0));
        assert_eq!(seconds("1970-01-01T02:00:00Z"), Some(7200));
        assert_eq!(seconds("1970-01-01 24:00:00"), None);
        assert_eq!(seconds("1970-01-01 00:00:00 foo"), None);
        let precise = moment("1970-01-01 00:00:01.25").unwrap();
        assert_eq!((precise.digits, precise.in_unit(3)), (2, Some(1250)));
        assert_eq!(precise.in_unit(0), None);
        assert_eq!(moment("9999-01-01 00:00:00").unwrap().in_unit(9), None);
    }
}
