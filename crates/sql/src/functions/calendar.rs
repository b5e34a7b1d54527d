//! Days, times, and the texts that are read as such, without a calendar library.
//!
//! A day is a number counted from 1970-01-01, a moment microseconds since then, a time signed
//! microseconds. The Gregorian calendar is extended backwards, as MySQL does.
//!
//! Source of the day arithmetic: H. Hinnant, "chrono-compatible low-level date algorithms".

pub(crate) use mayfly_types::spelling::{DAY_MICROS, SECOND_MICROS as MICROS, date_of};

pub(crate) const DAY_SECONDS: i64 = 86_400;
/// TIME ends here: 838:59:59.
pub(crate) const TIME_MAX_MICROS: i64 = (838 * 3600 + 59 * 60 + 59) * MICROS;
/// TO_DAYS('1970-01-01').
pub(crate) const EPOCH_DAYS: i64 = 719_528;
/// Two-digit years below this belong to this century, the others to the last.
const CENTURY_TURN: i64 = 70;
const YEAR_MAX: i64 = 9999;

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(crate) const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// A moment in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) micro: i64,
}

/// The day of a date of the calendar.
pub(crate) fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

pub(crate) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The days of a year before this date.
pub(crate) fn day_of_year(day: i64) -> i64 {
    day - day_of(date_of(day).0, 1, 1) + 1
}

/// Monday is 0.
pub(crate) fn weekday(day: i64) -> i64 {
    (day + 3).rem_euclid(7)
}

pub(crate) fn split(moment: i64) -> Parts {
    let (year, month, day) = date_of(moment.div_euclid(DAY_MICROS));
    let rest = moment.rem_euclid(DAY_MICROS);
    let seconds = rest / MICROS;
    Parts {
        year,
        month,
        day,
        hour: seconds / 3600,
        minute: seconds / 60 % 60,
        second: seconds % 60,
        micro: rest % MICROS,
    }
}

impl Parts {
    /// The moment, if the parts are within their ranges.
    pub(crate) fn moment(self) -> Option<i64> {
        let valid = (0..=YEAR_MAX).contains(&self.year)
            && (1..=12).contains(&self.month)
            && self.day >= 1
            && self.day <= days_in_month(self.year, self.month)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second)
            && (0..MICROS).contains(&self.micro);
        let seconds = (self.hour * 60 + self.minute) * 60 + self.second;
        valid.then(|| {
            day_of(self.year, self.month, self.day) * DAY_MICROS + seconds * MICROS + self.micro
        })
    }
}

/// TO_DAYS: MySQL counts the first two months of the year 0 as if it had no leap day.
pub(crate) fn to_days(day: i64) -> i64 {
    let days = day + EPOCH_DAYS;
    days + i64::from((0..60).contains(&days))
}

/// Whether a day lies in MySQL's years.
pub(crate) fn in_range(day: i64) -> bool {
    (day_of(0, 1, 1)..=day_of(YEAR_MAX, 12, 31)).contains(&day)
}

/// The week of a day and the year that the week belongs to, by MySQL's mode (0 to 7).
///
/// Source: `calc_week` of MySQL's `sql-common/my_time.cc`.
pub(crate) fn week(day: i64, mode: u8) -> (i64, i64) {
    let monday_first = mode & 1 != 0;
    // Week 1 is the first that holds the first weekday, or else the first with four days.
    let by_weekday = (mode & 4 != 0) == monday_first;
    let mut within_years = mode & 2 != 0;
    let (mut year, month, day_of_month) = date_of(day);
    let mut first_day = day_of(year, 1, 1);
    let mut first = (weekday(first_day) + i64::from(!monday_first)) % 7;
    let begins_later = |first: i64| if by_weekday { first != 0 } else { first >= 4 };
    let mut days_in_year = 365 + i64::from(is_leap(year));
    if month == 1 && day_of_month <= 7 - first {
        if !within_years && begins_later(first) {
            return (0, year);
        }
        if begins_later(first) {
            within_years = true;
            year -= 1;
            days_in_year = 365 + i64::from(is_leap(year));
            first_day -= days_in_year;
            first = (first + 53 * 7 - days_in_year) % 7;
        }
    }
    let start = if begins_later(first) {
        first_day + 7 - first
    } else {
        first_day - first
    };
    let days = day - start;
    if within_years && days >= 52 * 7 {
        let next = (first + days_in_year) % 7;
        if if by_weekday { next == 0 } else { next < 4 } {
            return (1, year + 1);
        }
    }
    (days / 7 + 1, year)
}

/// What a text that should be a moment held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// Microseconds since 1970.
    pub(crate) moment: i64,
    /// Whether the text had a time.
    pub(crate) has_time: bool,
    /// The digits of a second that the text had.
    pub(crate) digits: u8,
    /// Whether something followed that does not belong there.
    pub(crate) has_rest: bool,
}

fn full_year(year: i64, digits: usize) -> i64 {
    if digits > 2 {
        year
    } else if year < CENTURY_TURN {
        year + 2000
    } else {
        year + 1900
    }
}

/// Microseconds from the digits of a fraction, rounded at the seventh, and how many there were.
fn fraction(bytes: &[u8]) -> (i64, u8, usize) {
    let length = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let digit = |at: usize| {
        bytes[..length]
            .get(at)
            .map_or(0, |byte| i64::from(byte - b'0'))
    };
    let micros = (0..6).fold(0, |value, at| value * 10 + digit(at)) + i64::from(digit(6) >= 5);
    (micros, u8::try_from(length.min(6)).unwrap_or(6), length)
}

fn number(bytes: &[u8]) -> i64 {
    bytes
        .iter()
        .fold(0, |value, byte| value * 10 + i64::from(byte - b'0'))
}

/// Reads a date with an optional time in any of MySQL's forms; `None` if it is none.
pub(crate) fn read_moment(text: &str) -> Option<Read> {
    let bytes = text.trim_ascii().as_bytes();
    let digits = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if digits == 0 {
        return None;
    }
    if digits >= 5 && (digits == bytes.len() || matches!(bytes[digits], b'.' | b'T')) {
        return read_packed(bytes, digits);
    }
    // Date and time with any punctuation between the parts.
    let mut values = [0_i64; 6];
    let mut widths = [0_usize; 6];
    let mut at = 0;
    let mut count = 0;
    while count < 6 {
        let width = bytes[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if width == 0 {
            break;
        }
        let width = width.min(if count == 0 { 4 } else { 2 });
        values[count] = number(&bytes[at..at + width]);
        widths[count] = width;
        count += 1;
        at += width;
        let Some(&next) = bytes.get(at) else { break };
        let separates = match count {
            3 => next == b'T' || next.is_ascii_whitespace() || next.is_ascii_punctuation(),
            6 => false,
            _ => next.is_ascii_punctuation(),
        };
        if !separates {
            break;
        }
        if count == 3 {
            let gap = bytes[at..]
                .iter()
                .take_while(|b| !b.is_ascii_digit())
                .count();
            let gap_is_fine = bytes[at..at + gap]
                .iter()
                .all(|b| *b == b'T' || b.is_ascii_whitespace() || b.is_ascii_punctuation());
            if !gap_is_fine || at + gap == bytes.len() {
                break;
            }
            at += gap;
        } else {
            let next_is_digit = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
            if !next_is_digit {
                break;
            }
            at += 1;
        }
    }
    if count < 3 {
        return None;
    }
    let (micro, fraction_digits, used) = match bytes.get(at) {
        Some(b'.') if count == 6 => {
            let (micro, digits, used) = fraction(&bytes[at + 1..]);
            (micro, digits, used + 1)
        }
        _ => (0, 0, 0),
    };
    let parts = Parts {
        year: full_year(values[0], widths[0]),
        month: values[1],
        day: values[2],
        hour: values[3],
        minute: values[4],
        second: values[5],
        micro: 0,
    };
    Some(Read {
        moment: parts.moment()? + micro,
        has_time: count > 3,
        digits: fraction_digits,
        has_rest: at + used < bytes.len(),
    })
}

/// Reads `20240131`, `240131`, `20240131120000`, `240131120000`, each with a fraction.
fn read_packed(bytes: &[u8], digits: usize) -> Option<Read> {
    let year_digits = match digits {
        5..=7 | 9..=13 => 2,
        _ => 4,
    };
    let mut at = 0;
    let mut next = |width: usize| {
        let end = (at + width).min(digits);
        let value = number(&bytes[at.min(end)..end]);
        at = end;
        value
    };
    let parts = Parts {
        year: full_year(next(year_digits), year_digits),
        month: next(2),
        day: next(2),
        hour: next(2),
        minute: next(2),
        second: next(2),
        micro: 0,
    };
    let mut end = digits.min(year_digits + 10);
    let (mut micro, mut fraction_digits) = (0, 0);
    let has_time = digits > year_digits + 4;
    let mut moment = parts.moment()?;
    match bytes.get(end) {
        Some(b'.') if digits >= year_digits + 10 => {
            let (value, count, used) = fraction(&bytes[end + 1..]);
            (micro, fraction_digits) = (value, count);
            end += 1 + used;
        }
        Some(b'T') => {
            let time = read_time(std::str::from_utf8(&bytes[end + 1..]).ok()?)?;
            moment += time.0;
            end = bytes.len();
        }
        _ => {}
    }
    Some(Read {
        moment: moment + micro,
        has_time,
        digits: fraction_digits,
        has_rest: end < bytes.len(),
    })
}

/// Reads a moment from a number such as 20240131 or 20240131120000.
pub(crate) fn moment_of_number(value: i64) -> Option<i64> {
    if value <= 0 {
        return None;
    }
    let (date, time) = if value > 99_991_231 {
        (value / 1_000_000, value % 1_000_000)
    } else {
        (value, 0)
    };
    let (year, rest) = (date / 10_000, date % 10_000);
    let year = if date < 1_000_000 {
        full_year(year, 2)
    } else {
        year
    };
    Parts {
        year,
        month: rest / 100,
        day: rest % 100,
        hour: time / 10_000,
        minute: time / 100 % 100,
        second: time % 100,
        micro: 0,
    }
    .moment()
}

/// 20240131120000.
pub(crate) fn number_of_moment(moment: i64) -> i64 {
    let parts = split(moment);
    number_of_day(moment.div_euclid(DAY_MICROS)) * 1_000_000
        + parts.hour * 10_000
        + parts.minute * 100
        + parts.second
}

/// 20240131.
pub(crate) fn number_of_day(day: i64) -> i64 {
    let (year, month, day) = date_of(day);
    year * 10_000 + month * 100 + day
}

/// 123000, with the sign of the time.
pub(crate) fn number_of_time(micros: i64) -> i64 {
    let seconds = micros.abs() / MICROS;
    let value = seconds / 3600 * 10_000 + seconds / 60 % 60 * 100 + seconds % 60;
    if micros < 0 { -value } else { value }
}

/// Reads a time from a number such as 123000.
pub(crate) fn time_of_number(value: i64) -> Option<i64> {
    let magnitude = value.checked_abs()?;
    let (minute, second) = (magnitude / 100 % 100, magnitude % 100);
    if minute > 59 || second > 59 {
        return None;
    }
    let seconds = (magnitude / 10_000).min(1_000_000) * 3600 + minute * 60 + second;
    Some(clip_time(
        if value < 0 { -seconds } else { seconds } * MICROS,
    ))
}

/// The nearest time that TIME can hold.
pub(crate) fn clip_time(micros: i64) -> i64 {
    micros.clamp(-TIME_MAX_MICROS, TIME_MAX_MICROS)
}

/// Reads a time in any of MySQL's forms: `[-][D ]hh:mm[:ss[.f]]`, `hhmmss`, `ss`, or the time of
/// a moment. Returns the microseconds and the digits of a second.
pub(crate) fn read_time(text: &str) -> Option<(i64, u8)> {
    let trimmed = text.trim_ascii();
    let (negative, rest) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, trimmed),
    };
    let bytes = rest.as_bytes();
    let digits = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if digits == 0 || digits > 14 {
        return None;
    }
    // A full moment.
    if !negative && (digits >= 8 || matches!(bytes.get(digits), Some(b'-' | b'/'))) {
        let read = read_moment(trimmed)?;
        return Some((read.moment.rem_euclid(DAY_MICROS), read.digits));
    }
    let mut at = digits;
    let first = number(&bytes[..digits]);
    let mut hours;
    let (mut minutes, mut seconds) = (0, 0);
    let part = |at: usize| {
        let width = bytes[at..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
            .min(2);
        (number(&bytes[at..at + width]), at + width, width)
    };
    match bytes.get(at) {
        Some(b':') => {
            hours = first;
            let (value, end, _) = part(at + 1);
            minutes = value;
            at = end;
            if bytes.get(at) == Some(&b':') {
                let (value, end, _) = part(at + 1);
                seconds = value;
                at = end;
            }
        }
        Some(b' ') if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => {
            let (value, end, _) = part(at + 1);
            hours = first * 24 + value;
            at = end;
            if bytes.get(at) == Some(&b':') {
                let (value, end, _) = part(at + 1);
                minutes = value;
                at = end;
                if bytes.get(at) == Some(&b':') {
                    let (value, end, _) = part(at + 1);
                    seconds = value;
                    at = end;
                }
            }
        }
        _ => {
            hours = first / 10_000;
            minutes = first / 100 % 100;
            seconds = first % 100;
        }
    }
    if minutes > 59 || seconds > 59 {
        return None;
    }
    hours = hours.min(1_000_000);
    let (mut micros, mut count) = (0, 0);
    if bytes.get(at) == Some(&b'.') {
        (micros, count, _) = fraction(&bytes[at + 1..]);
    }
    let total = ((hours * 60 + minutes) * 60 + seconds) * MICROS + micros;
    Some((clip_time(if negative { -total } else { total }), count))
}
