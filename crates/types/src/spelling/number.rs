//! Numbers as MySQL writes them.
//!
//! **Source**: `my_gcvt` of MySQL's `strings/dtoa.cc`: the shortest digits that read back as the
//! same number, plain while the point is within fifteen places, with `e` beyond.

use super::Out;

/// The decimal exponents between which numbers are written without `e`.
const PLAIN_POINT_MAX: i32 = 15;
const PLAIN_POINT_MIN: i32 = -14;
/// The digits that a FLOAT shows.
const FLOAT_DIGITS: usize = 6;

/// Appends a DOUBLE.
pub fn write_double(value: f64, out: &mut impl Out) {
    if !value.is_finite() {
        out.push_str(if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        });
        return;
    }
    let magnitude = value.abs();
    // In this range the shortest digits come in plain form already.
    if (1e-4..1e14).contains(&magnitude) {
        let mut buffer = ryu::Buffer::new();
        let text = buffer.format_finite(value);
        out.push_str(text.strip_suffix(".0").unwrap_or(text));
    } else if value == 0.0 {
        out.push(b'0');
    } else {
        shape(&format!("{value:e}"), out);
    }
}

/// From this number on a DOUBLE has no digits behind the point.
const WHOLE_MIN: f64 = 9_007_199_254_740_992.0;

/// Appends a DOUBLE that always shows so many digits behind the point. Where those are more than
/// tell it from its neighbours, zeros follow the shortest digits that do.
pub fn write_fixed(value: f64, digits: u8, out: &mut impl Out) {
    let wanted = usize::from(digits);
    let is_long = value.is_finite() && value.abs() * 10_f64.powi(i32::from(digits)) >= WHOLE_MIN;
    let shortest = is_long.then(|| format!("{value}"));
    let text = match shortest {
        Some(shortest) if fraction_len(&shortest) <= wanted => {
            let zeros = wanted - fraction_len(&shortest);
            let point = if zeros == wanted && wanted > 0 {
                "."
            } else {
                ""
            };
            format!("{shortest}{point}{:0<zeros$}", "")
        }
        _ => format!("{value:.wanted$}"),
    };
    match text.strip_prefix('-') {
        // What is rounded to zero has no sign.
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => out.push_str(rest),
        _ => out.push_str(&text),
    }
}

fn fraction_len(text: &str) -> usize {
    text.split_once('.')
        .map_or(0, |(_, fraction)| fraction.len())
}

/// Appends a FLOAT: six digits at most.
pub fn write_float(value: f32, out: &mut impl Out) {
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

/// Appends an exact number of that many digits after the point.
pub fn write_decimal(value: i128, scale: i8, out: &mut impl Out) {
    write_digits(itoa::Buffer::new().format(value), scale, out);
}

/// Appends an exact number by its digits, with a sign before them where it is negative, and the
/// point `scale` digits before their end.
pub fn write_digits(digits: &str, scale: i8, out: &mut impl Out) {
    let unsigned = digits.strip_prefix('-').unwrap_or(digits);
    if unsigned.len() < digits.len() {
        out.push(b'-');
    }
    let places = usize::from(scale.unsigned_abs());
    if scale <= 0 {
        out.push_str(unsigned);
        if unsigned != "0" {
            out.push_times(b'0', places);
        }
        return;
    }
    match unsigned.len().checked_sub(places) {
        Some(whole) if whole > 0 => {
            let (whole, fraction) = unsigned.split_at(whole);
            out.push_str(whole);
            out.push(b'.');
            out.push_str(fraction);
        }
        _ => {
            out.push_str("0.");
            out.push_times(b'0', places.saturating_sub(unsigned.len()));
            out.push_str(unsigned);
        }
    }
}

/// Turns `-1.25e-3` into what MySQL prints.
fn shape(scientific: &str, out: &mut impl Out) {
    let (mantissa, exponent) = scientific.split_once('e').expect("{:e} writes an exponent");
    let exponent: i32 = exponent
        .parse()
        .expect("the exponent of {:e} is a small integer");
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let digits: String = unsigned.chars().filter(|c| *c != '.').collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    if mantissa.starts_with('-') {
        out.push(b'-');
    }
    let count = i32::try_from(digits.len()).expect("a double has few digits");
    // The point stands before digit `point`.
    let point = exponent + 1;
    if (PLAIN_POINT_MIN..=PLAIN_POINT_MAX).contains(&point) || (point > 0 && count > point) {
        if point <= 0 {
            out.push_str("0.");
            out.push_times(b'0', point.unsigned_abs() as usize);
            out.push_str(digits);
        } else if count <= point {
            out.push_str(digits);
            out.push_times(b'0', (point - count).unsigned_abs() as usize);
        } else {
            let (whole, fraction) = digits.split_at(point.unsigned_abs() as usize);
            out.push_str(whole);
            out.push(b'.');
            out.push_str(fraction);
        }
    } else {
        let (first, rest) = digits.split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            out.push(b'.');
            out.push_str(rest);
        }
        out.push(b'e');
        out.push_str(&exponent.to_string());
    }
}
