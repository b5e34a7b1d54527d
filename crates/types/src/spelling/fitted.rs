//! A DOUBLE in as many characters as there are.
//!
//! **Source**: `my_gcvt` of MySQL's `strings/dtoa.cc`: of `0.00012` and `1.2e-4` the form that
//! keeps more digits, rounded to what fits. All numbers of this file are counted as they are there.

/// The decimal exponent up to which a number that fits is written without `e`.
const PLAIN_POINT_MAX: i32 = 15;

/// The digits of a number without zeros at either end, and the place of the point behind the first
/// of them.
struct Digits {
    text: String,
    point: i32,
}

impl Digits {
    /// The shortest digits that read back as the number, but no more than `most`.
    fn significant(magnitude: f64, most: i32) -> Digits {
        let shortest = Digits::of_scientific(&format!("{magnitude:e}"));
        let most = usize::try_from(most.max(1)).unwrap_or(1);
        match shortest.text.len() <= most {
            true => shortest,
            false => {
                Digits::of_scientific(&format!("{magnitude:.precision$e}", precision = most - 1))
            }
        }
    }

    /// The digits of the number rounded to so many behind the point.
    fn behind_point(magnitude: f64, digits: i32) -> Digits {
        let digits = usize::try_from(digits).unwrap_or(0);
        let text = format!("{magnitude:.digits$}");
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let whole = whole.trim_start_matches('0');
        let all = format!("{whole}{fraction}");
        let first = all.len() - all.trim_start_matches('0').len();
        Digits {
            text: all.trim_matches('0').to_owned(),
            point: count(whole.len()) - count(first),
        }
    }

    fn of_scientific(text: &str) -> Digits {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let kept = digits.trim_end_matches('0');
        Digits {
            text: if kept.is_empty() { "0" } else { kept }.to_owned(),
            point: exponent.parse().unwrap_or(0) + 1,
        }
    }
}

fn count(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// The text of a finite number in at most `width` characters, and whether it says about the number:
/// otherwise it is the beginning of a text that does.
pub fn fitted_double(value: f64, width: usize) -> (String, bool) {
    let sign = if value < 0.0 { "-" } else { "" };
    let magnitude = value.abs();
    let mut text = String::with_capacity(width);
    if value == 0.0 || width == 0 {
        return ("0"[..width.min(1)].to_owned(), width > 0);
    }
    let most = width;
    let width = count(width) - count(sign.len());
    let digits = Digits::significant(magnitude, width);
    let (length, point) = (count(digits.text.len()), digits.point);
    let exponent_length =
        1 + i32::from(point >= 101 || point <= -99) + i32::from(point >= 11 || point <= -9);
    let plain_length = match point {
        point if point <= 0 => length - point + 2,
        point if point < length => length + 1,
        point => point,
    };
    let has_space = plain_length <= width;
    let forces_exponent = point < 0 && width <= 2 - point && width >= 3 + exponent_length;
    let is_plain = match has_space {
        true => point > -PLAIN_POINT_MAX && (point <= PLAIN_POINT_MAX || length > point),
        false => point <= width && point >= -2 && !forces_exponent,
    };
    let fits = match is_plain {
        true => plain(magnitude, digits, width, sign, &mut text),
        false => scientific(
            magnitude,
            digits,
            width - 1 - exponent_length,
            sign,
            &mut text,
        ),
    };
    text.truncate(most);
    (text, fits)
}

fn plain(magnitude: f64, mut digits: Digits, width: i32, sign: &str, text: &mut String) -> bool {
    let (length, point) = (count(digits.text.len()), digits.point);
    let room = width - i32::from(point < length) - if point <= 0 { 1 - point } else { 0 };
    let fits = room >= length || room >= point;
    if room < length {
        digits = Digits::behind_point(magnitude, room.max(point) - point);
    }
    if digits.text.is_empty() {
        text.push('0');
        return fits;
    }
    text.push_str(sign);
    if digits.point <= 0 {
        text.push_str("0.");
        text.extend((digits.point..0).map(|_| '0'));
    }
    let mut place = 0;
    for digit in digits.text.chars() {
        if place == digits.point && place > 0 {
            text.push('.');
        }
        text.push(digit);
        place += 1;
    }
    text.extend((place..digits.point).map(|_| '0'));
    fits
}

fn scientific(
    magnitude: f64,
    mut digits: Digits,
    room: i32,
    sign: &str,
    text: &mut String,
) -> bool {
    let room = room - i32::from(digits.point < 1) - i32::from(digits.text.len() > 1);
    if room < count(digits.text.len()) {
        digits = Digits::significant(magnitude, room);
    }
    text.push_str(sign);
    let (first, rest) = digits.text.split_at(1);
    text.push_str(first);
    if !rest.is_empty() {
        text.push('.');
        text.push_str(rest);
    }
    text.push('e');
    text.push_str(&(digits.point - 1).to_string());
    room > 0
}

#[cfg(test)]
mod tests {
    use super::fitted_double;

    #[test]
    fn numbers_are_rounded_to_the_width() {
        let told = |value: f64, width: usize| fitted_double(value, width).0;
        assert_eq!(told(1.0 / 3.0, 5), "0.333");
        assert_eq!(told(2.0 / 3.0, 5), "0.667");
        assert_eq!(told(2.0 / 3.0, 1), "1");
        assert_eq!(told(1e10 / 7.0, 5), "1.4e9");
        assert_eq!(told(0.1 + 0.2, 5), "0.3");
        assert_eq!(told(12345.678, 5), "12346");
        assert_eq!(told(-12345.678, 5), "-1e4");
        assert_eq!(told(0.00012345, 8), "1.234e-4");
        assert_eq!(told(-0.5, 3), "0");
        assert_eq!(told(0.05, 3), "0.1");
        assert_eq!(told(99999.5, 5), "1e5");
        assert_eq!(told(-1.5e-100, 8), "-2e-100");
        assert_eq!(told(f64::MAX, 12), "1.797693e308");
        assert_eq!(told(1e5, 5), "1e5");
        assert_eq!(told(999.5, 3), "1e3");
    }

    #[test]
    fn what_has_no_room_for_a_digit_does_not_fit() {
        assert_eq!(fitted_double(-1e-100, 5), ("-1e-1".to_owned(), false));
        assert_eq!(fitted_double(1e5, 2), ("1e".to_owned(), false));
        assert_eq!(fitted_double(-1e-7, 5), ("-1e-7".to_owned(), true));
    }
}
