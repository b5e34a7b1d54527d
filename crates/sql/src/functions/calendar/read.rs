//! Texts that are read as moments and times.

use super::{
    DAY_MICROS, HOURS_MAX, MICROS, Parts, TIME_MAX_MICROS, clip_time, full_year, moment_of_number,
};

/// A text of fewer characters is a time and no moment.
const MOMENT_TEXT_LEAST: usize = 12;

/// What a text that should be a moment held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// Microseconds since 1970.
    pub(crate) moment: i64,
    /// Whether the text had a time.
    pub(crate) has_time: bool,
    /// The digits of a second that the text had.
    pub(crate) digits: u8,
    /// Whether something followed that does not belong there; an offset does only where it is
    /// asked for.
    pub(crate) has_rest: bool,
    /// The seconds by which the text says that its moment is ahead of UTC.
    pub(crate) offset_seconds: Option<i64>,
}

impl Read {
    /// The moment in a time zone: the text's own, unless it names another one.
    pub(crate) fn moment_in(&self, time_zone_seconds: i64) -> i64 {
        self.offset_seconds.map_or(self.moment, |offset| {
            self.moment + (time_zone_seconds - offset) * MICROS
        })
    }

    /// Whether something followed that is no offset either.
    pub(crate) fn has_garbage(&self) -> bool {
        self.has_rest && self.offset_seconds.is_none()
    }
}

/// The seconds of an offset from UTC such as `+02:00`: from `-13:59` to `+14:00`.
fn offset_seconds(text: &[u8]) -> Option<i64> {
    let [sign @ (b'+' | b'-'), hours @ .., b':', ten, one] = text else {
        return None;
    };
    let digits = [hours, &[*ten, *one]].concat();
    if digits.len() != 4 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (hours, minutes) = (number(&digits[..2]), number(&digits[2..]));
    let seconds = (hours * 60 + minutes) * 60;
    let most = if *sign == b'-' {
        14 * 3600 - 60
    } else {
        14 * 3600
    };
    // MySQL knows no `-00:00`.
    if minutes > 59 || seconds > most || *sign == b'-' && seconds == 0 {
        return None;
    }
    Some(if *sign == b'-' { -seconds } else { seconds })
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
    let is_packed = match bytes.get(digits) {
        None | Some(b'.' | b'T') => digits >= 5,
        // A date of eight digits is one with anything behind it.
        Some(next) => digits == 8 && next.is_ascii_alphabetic(),
    };
    if is_packed {
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
    let rest = &bytes[at + used..];
    Some(Read {
        moment: parts.moment()? + micro,
        has_time: count > 3,
        digits: fraction_digits,
        has_rest: !rest.is_empty(),
        offset_seconds: offset_seconds(rest).filter(|_| count > 3),
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
    let mut has_garbage = false;
    let mut moment = parts.moment()?;
    match bytes.get(end) {
        Some(b'.') if digits >= year_digits + 10 => {
            let (value, count, used) = fraction(&bytes[end + 1..]);
            (micro, fraction_digits) = (value, count);
            end += 1 + used;
        }
        Some(b'T') => {
            let time = read_whole_time(std::str::from_utf8(&bytes[end + 1..]).ok()?)?;
            moment += time.micros;
            has_garbage = time.has_rest || time.is_beyond;
            end = bytes.len();
        }
        _ => {}
    }
    let rest = &bytes[end..];
    Some(Read {
        moment: moment + micro,
        has_time,
        digits: fraction_digits,
        has_rest: has_garbage || !rest.is_empty(),
        offset_seconds: offset_seconds(rest).filter(|_| has_time),
    })
}

/// What a text that should be a time held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadTime {
    /// The time, or the nearest one that TIME can hold.
    pub(crate) micros: i64,
    /// The digits of a second that the text had.
    pub(crate) digits: u8,
    /// Whether something followed that does not belong there.
    pub(crate) has_rest: bool,
    /// Whether TIME cannot hold it. A fraction behind the greatest time is cut off silently.
    pub(crate) is_beyond: bool,
}

impl ReadTime {
    pub(super) fn of(micros: i64, digits: u8) -> Self {
        Self {
            micros: clip_time(micros),
            digits,
            has_rest: false,
            is_beyond: micros.abs() >= TIME_MAX_MICROS + MICROS,
        }
    }
}

/// Reads `[-][D ]hh:mm[:ss[.f]]`, `hhmmss`, `ss`, or the time of a moment.
///
/// Source: `str_to_time` of MySQL's `sql-common/my_time.cc`.
pub(crate) fn read_whole_time(text: &str) -> Option<ReadTime> {
    let trimmed = text.trim_ascii();
    let (negative, rest) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, trimmed),
    };
    let bytes = rest.as_bytes();
    let width = |at: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let digits = width(0);
    if digits == 0 || digits > 14 {
        return None;
    }
    // A full moment.
    if !negative && bytes.len() >= MOMENT_TEXT_LEAST {
        let is_packed = digits >= MOMENT_TEXT_LEAST;
        let has_gap = bytes.iter().any(|byte| matches!(byte, b' ' | b'T'));
        let read = read_moment(trimmed).filter(|read| read.has_time && (is_packed || has_gap));
        if let Some(read) = read {
            return Some(ReadTime {
                has_rest: read.has_rest,
                ..ReadTime::of(read.moment.rem_euclid(DAY_MICROS), read.digits)
            });
        }
        // So many digits are no time.
        if digits > 10 {
            return None;
        }
    }
    let first = number(&bytes[..digits]);
    let mut at = digits;
    // Days, hours, minutes, seconds.
    let mut parts = [0_i64; 4];
    let follows = |at: usize, mark: u8| bytes.get(at) == Some(&mark) && width(at + 1) > 0;
    let spaces = bytes[at..].iter().take_while(|byte| **byte == b' ').count();
    let mut part = if spaces > 0 && width(at + spaces) > 0 {
        parts[0] = first;
        at += spaces;
        Some(1)
    } else if follows(at, b':') {
        parts[1] = first;
        at += 1;
        Some(2)
    } else {
        parts = [0, first / 10_000, first / 100 % 100, first % 100];
        None
    };
    while let Some(place) = part {
        let end = at + width(at);
        // More digits than any part has are too many.
        parts[place] = number(&bytes[at..end.min(at + 9)]);
        at = end;
        part = (place < 3 && follows(at, b':')).then_some(place + 1);
        at += usize::from(part.is_some());
    }
    let [days, hours, minutes, seconds] = parts;
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let hours = (days.min(HOURS_MAX) * 24 + hours).min(HOURS_MAX);
    let (mut micros, mut count, mut used) = (0, 0, 0);
    if bytes.get(at) == Some(&b'.') {
        (micros, count, used) = fraction(&bytes[at + 1..]);
        used += 1;
    }
    let total = ((hours * 60 + minutes) * 60 + seconds) * MICROS + micros;
    Some(ReadTime {
        has_rest: at + used < bytes.len(),
        ..ReadTime::of(if negative { -total } else { total }, count)
    })
}

/// Reads a time from a number such as 123000; the nearest one if TIME cannot hold it. What is too
/// long for a time may be a moment.
pub(crate) fn time_of_number(value: i64) -> Option<i64> {
    Some(whole_time_of_number(value)?.micros)
}

/// As [`time_of_number`], and whether it is the nearest only.
pub(crate) fn whole_time_of_number(value: i64) -> Option<ReadTime> {
    const MOMENT_LEAST: i64 = 10_000_000_000;
    if value >= MOMENT_LEAST {
        let moment = moment_of_number(value)?;
        return Some(ReadTime::of(moment.rem_euclid(DAY_MICROS), 0));
    }
    let magnitude = value.checked_abs()?;
    let (minute, second) = (magnitude / 100 % 100, magnitude % 100);
    if minute > 59 || second > 59 {
        return None;
    }
    let seconds = (magnitude / 10_000).min(HOURS_MAX) * 3600 + minute * 60 + second;
    let micros = if value < 0 { -seconds } else { seconds } * MICROS;
    Some(ReadTime::of(micros, 0))
}
