//! Numbers as text.
//!
//! **Source**: `my_gcvt` of MySQL's `strings/dtoa.cc`: the shortest digits that read back as the
//! same number, plain while the point is within fifteen places, with `e` beyond.

use arrow_buffer::i256;
use bytes::{BufMut, BytesMut};

/// The decimal exponents between which numbers are written without `e`.
const PLAIN_POINT_MAX: i32 = 15;
const PLAIN_POINT_MIN: i32 = -14;
/// The digits that a FLOAT shows.
const FLOAT_DIGITS: usize = 6;

fn put(out: &mut BytesMut, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends a DOUBLE.
pub(super) fn write_double(value: f64, out: &mut BytesMut) {
    if !value.is_finite() {
        put(
            out,
            match (value.is_nan(), value > 0.0) {
                (true, _) => "nan",
                (false, true) => "inf",
                (false, false) => "-inf",
            },
        );
        return;
    }
    // In this range the shortest digits come in plain form already.
    if (1e-4..1e14).contains(&value.abs()) {
        let mut buffer = ryu::Buffer::new();
        let text = buffer.format_finite(value);
        put(out, text.strip_suffix(".0").unwrap_or(text));
    } else if value == 0.0 {
        out.put_u8(b'0');
    } else {
        shape(&format!("{value:e}"), out);
    }
}

/// Appends a DOUBLE that always shows so many digits behind the point.
pub(super) fn write_fixed(value: f64, digits: u8, out: &mut BytesMut) {
    let text = format!("{value:.digits$}", digits = usize::from(digits));
    match text.strip_prefix('-') {
        // What is rounded to zero has no sign.
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => put(out, rest),
        _ => put(out, &text),
    }
}

/// Appends a FLOAT: six digits at most.
pub(super) fn write_float(value: f32, out: &mut BytesMut) {
    if !value.is_finite() || value == 0.0 {
        write_double(f64::from(value), out);
        return;
    }
    let shortest = format!("{value:e}");
    let digits = shortest
        .bytes()
        .take_while(|byte| *byte != b'e')
        .filter(u8::is_ascii_digit);
    if digits.count() <= FLOAT_DIGITS {
        shape(&shortest, out);
    } else {
        shape(
            &format!("{value:.precision$e}", precision = FLOAT_DIGITS - 1),
            out,
        );
    }
}

/// Turns `-1.25e-3` into what MySQL prints.
fn shape(scientific: &str, out: &mut BytesMut) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    if mantissa.starts_with('-') {
        out.put_u8(b'-');
    }
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // The point stands before digit `point`.
    let point = exponent.saturating_add(1);
    if (PLAIN_POINT_MIN..=PLAIN_POINT_MAX).contains(&point) || (point > 0 && count > point) {
        let places = point.unsigned_abs() as usize;
        if point <= 0 {
            put(out, "0.");
            out.put_bytes(b'0', places);
            put(out, digits);
        } else if count <= point {
            put(out, digits);
            out.put_bytes(b'0', places.saturating_sub(digits.len()));
        } else {
            let (whole, fraction) = digits.split_at_checked(places).unwrap_or((digits, ""));
            put(out, whole);
            out.put_u8(b'.');
            put(out, fraction);
        }
    } else {
        let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
        put(out, first);
        if !rest.is_empty() {
            out.put_u8(b'.');
            put(out, rest);
        }
        out.put_u8(b'e');
        put(out, &exponent.to_string());
    }
}

/// Appends an exact number of that many digits after the point.
pub(super) fn write_decimal(value: i128, scale: i8, out: &mut BytesMut) {
    let mut buffer = itoa::Buffer::new();
    point(value < 0, buffer.format(value.unsigned_abs()), scale, out);
}

/// The same of more than 38 digits.
pub(super) fn write_wide_decimal(value: i256, scale: i8, out: &mut BytesMut) {
    let text = value.to_string();
    let digits = text.strip_prefix('-').unwrap_or(&text);
    point(text.starts_with('-'), digits, scale, out);
}

/// Puts the point into the digits of a number.
fn point(negative: bool, digits: &str, scale: i8, out: &mut BytesMut) {
    if negative {
        out.put_u8(b'-');
    }
    let places = usize::from(scale.unsigned_abs());
    if scale <= 0 {
        put(out, digits);
        if digits != "0" {
            out.put_bytes(b'0', places);
        }
        return;
    }
    match digits.len().checked_sub(places) {
        Some(whole_len) if whole_len > 0 => {
            let (whole, fraction) = digits.split_at_checked(whole_len).unwrap_or((digits, ""));
            put(out, whole);
            out.put_u8(b'.');
            put(out, fraction);
        }
        _ => {
            put(out, "0.");
            out.put_bytes(b'0', places.saturating_sub(digits.len()));
            put(out, digits);
        }
    }
}
