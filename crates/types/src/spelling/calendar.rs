//! Days and times as text. The Gregorian calendar is extended backwards, as MySQL does.

use super::Out;

/// Microseconds of a second.
pub const SECOND_MICROS: i64 = 1_000_000;
/// Microseconds of a day.
pub const DAY_MICROS: i64 = 86_400 * SECOND_MICROS;
/// The most digits of a fraction of a second.
const FRACTION_DIGITS: u32 = 6;

/// Year, month and day of a day counted from 1970.
///
/// **Source**: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March, so
/// that the leap day is their last.
pub fn date_of(day: i64) -> (i64, i64, i64) {
    let shifted = day.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

/// Appends a number with leading zeros.
pub fn write_padded(value: i64, width: usize, out: &mut impl Out) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value);
    out.push_times(b'0', width.saturating_sub(digits.len()));
    out.push_str(digits);
}

/// Appends two digits.
pub fn write_two(value: i64, out: &mut impl Out) {
    write_padded(value, 2, out);
}

/// Appends a day, counted from 1970, as `2024-01-31`.
pub fn write_date(day: i64, out: &mut impl Out) {
    let (year, month, day) = date_of(day);
    write_padded(year, 4, out);
    out.push(b'-');
    write_two(month, out);
    out.push(b'-');
    write_two(day, out);
}

/// Appends a moment, in microseconds since 1970, as `2024-01-31 12:00:00` with that many digits of
/// a second.
pub fn write_moment(micros: i64, digits: u8, out: &mut impl Out) {
    write_date(micros.div_euclid(DAY_MICROS), out);
    out.push(b' ');
    write_time(micros.rem_euclid(DAY_MICROS), digits, out);
}

/// Appends a signed time, in microseconds, as `-12:30:00` with that many digits of a second.
pub fn write_time(micros: i64, digits: u8, out: &mut impl Out) {
    if micros < 0 {
        out.push(b'-');
    }
    let micros = i64::try_from(micros.unsigned_abs()).unwrap_or(i64::MAX);
    let seconds = micros / SECOND_MICROS;
    write_two(seconds / 3600, out);
    out.push(b':');
    write_two(seconds / 60 % 60, out);
    out.push(b':');
    write_two(seconds % 60, out);
    write_fraction(micros % SECOND_MICROS, digits, out);
}

/// Appends the first `digits` digits of a fraction of a second, with its point.
fn write_fraction(micros: i64, digits: u8, out: &mut impl Out) {
    let digits = u32::from(digits).min(FRACTION_DIGITS);
    if digits > 0 {
        out.push(b'.');
        let shown = micros / 10_i64.pow(FRACTION_DIGITS - digits);
        write_padded(shown, digits as usize, out);
    }
}
