//! DATE_FORMAT, TIME_FORMAT and STR_TO_DATE: times by a pattern.

use arrow::array::ArrayRef;
use arrow::datatypes::FieldRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use mayfly_types::spelling::{self, write_padded, write_two};
use mayfly_types::{ColumnType, ErrorCode};

use crate::functions::calendar::{self, DAY_MICROS, MICROS, MONTHS, Parts, WEEKDAYS};
use crate::functions::call::Call;
use crate::functions::define::{Definition, Returns, pure};

pub(super) static FUNCTIONS: &[Definition] = &[
    pure("date_format", &[], (2, 2), Returns::Text, |call| {
        let (moments, formats) = (call.moments(0)?, call.texts(1)?);
        call.make_texts(|row, out| {
            let (Some(moment), Some(format)) = (moments.at(row), formats.at(row)) else {
                return Ok(false);
            };
            Ok(write(format, moment, out))
        })
    }),
    pure("time_format", &[], (2, 2), Returns::Text, |call| {
        let (times, formats) = (call.times(0)?, call.texts(1)?);
        call.make_texts(|row, out| {
            let (Some(time), Some(format)) = (times.at(row), formats.at(row)) else {
                return Ok(false);
            };
            if time < 0 {
                out.push('-');
            }
            Ok(write_time(format, time.abs(), out))
        })
    }),
    pure(
        "str_to_date",
        &[],
        (2, 2),
        Returns::By(str_to_date_type),
        str_to_date,
    ),
];

/// A name as an index into a table that is not negative.
fn index(value: i64) -> usize {
    usize::try_from(value).expect("a weekday or month is not negative")
}

/// Appends a pattern, whose parts behind a percent sign `write` appends. Ends where `write` does;
/// an empty pattern has no value.
fn fill(pattern: &str, out: &mut String, mut write: impl FnMut(char, &mut String) -> bool) -> bool {
    if pattern.is_empty() {
        return false;
    }
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
        } else if let Some(part) = characters.next() {
            if !write(part, out) {
                return false;
            }
        } else {
            out.push(character);
        }
    }
    true
}

fn write_time(format: &str, time: i64, out: &mut String) -> bool {
    fill(format, out, |part, out| write_part_of_time(part, time, out))
}

fn write_part_of_time(part: char, time: i64, out: &mut String) -> bool {
    let seconds = time / MICROS;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let half = (hour % 24 + 11) % 12 + 1;
    let noon = if hour % 24 < 12 { "AM" } else { "PM" };
    match part {
        'H' => write_two(hour, out),
        'k' => write_padded(hour, 1, out),
        'h' | 'I' => write_two(half, out),
        'l' => write_padded(half, 1, out),
        'i' => write_two(minute, out),
        's' | 'S' => write_two(second, out),
        'f' => write_padded(time % MICROS, 6, out),
        'p' => out.push_str(noon),
        'r' => {
            write_two(half, out);
            out.push(':');
            write_two(minute, out);
            out.push(':');
            write_two(second, out);
            out.push(' ');
            out.push_str(noon);
        }
        'T' => spelling::write_time(time, 0, out),
        'd' | 'm' | 'y' => out.push_str("00"),
        'c' | 'e' => out.push('0'),
        'Y' => out.push_str("0000"),
        'a' | 'b' | 'D' | 'j' | 'M' | 'U' | 'u' | 'V' | 'v' | 'W' | 'w' | 'X' | 'x' => {
            return false;
        }
        other => out.push(other),
    }
    true
}

/// Appends a moment by a pattern.
pub(super) fn write(format: &str, moment: i64, out: &mut String) -> bool {
    let parts = calendar::split(moment);
    let day = moment.div_euclid(DAY_MICROS);
    let time = moment.rem_euclid(DAY_MICROS);
    fill(format, out, |part, out| {
        match part {
            'a' => out.push_str(&WEEKDAYS[index(calendar::weekday(day))][..3]),
            'b' => out.push_str(&MONTHS[index(parts.month - 1)][..3]),
            'c' => write_padded(parts.month, 1, out),
            'D' => {
                write_padded(parts.day, 1, out);
                out.push_str(match (parts.day, parts.day % 10) {
                    (11..=13, _) => "th",
                    (_, 1) => "st",
                    (_, 2) => "nd",
                    (_, 3) => "rd",
                    _ => "th",
                });
            }
            'd' => write_two(parts.day, out),
            'e' => write_padded(parts.day, 1, out),
            'j' => write_padded(calendar::day_of_year(day), 3, out),
            'M' => out.push_str(MONTHS[index(parts.month - 1)]),
            'm' => write_two(parts.month, out),
            'U' => write_two(calendar::week(day, 0).0, out),
            'u' => write_two(calendar::week(day, 1).0, out),
            'V' => write_two(calendar::week(day, 2).0, out),
            'v' => write_two(calendar::week(day, 3).0, out),
            'W' => out.push_str(WEEKDAYS[index(calendar::weekday(day))]),
            'w' => write_padded((calendar::weekday(day) + 1) % 7, 1, out),
            'X' => write_padded(calendar::week(day, 2).1, 4, out),
            'x' => write_padded(calendar::week(day, 3).1, 4, out),
            'Y' => write_padded(parts.year, 4, out),
            'y' => write_two(parts.year % 100, out),
            other => return write_part_of_time(other, time, out),
        }
        true
    })
}

/// DATE, TIME or DATETIME, by what a constant pattern holds.
fn str_to_date_type(_: &[FieldRef], constants: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    let format = constants
        .get(1)
        .copied()
        .flatten()
        .and_then(|value| value.try_as_str().flatten());
    let Some(format) = format else {
        return Ok(ColumnType::DateTime { digits: 6 });
    };
    let mut specifiers = format
        .split('%')
        .skip(1)
        .filter_map(|rest| rest.chars().next());
    let is_time = |c: char| {
        matches!(
            c,
            'f' | 'S' | 's' | 'H' | 'h' | 'I' | 'i' | 'k' | 'l' | 'p' | 'r' | 'T'
        )
    };
    let digits = if format.contains("%f") { 6 } else { 0 };
    let has_time = specifiers.clone().any(is_time);
    let has_date = specifiers.any(|c| !is_time(c) && c.is_ascii_alphabetic());
    Ok(match (has_date, has_time) {
        (_, false) => ColumnType::Date,
        (false, true) => ColumnType::Time { digits },
        (true, true) => ColumnType::DateTime { digits },
    })
}

fn str_to_date(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, formats) = (call.texts(0)?, call.texts(1)?);
    let is_time = matches!(call.result_type(), ColumnType::Time { .. });
    let read = |row: usize| {
        let (text, format) = texts.at(row).zip(formats.at(row))?;
        // There is no day in month 0.
        let is_whole = |parts: &Parts| is_time || parts.moment().is_some();
        let parsed = parse(text, format).filter(is_whole);
        if parsed.is_none() {
            call.warn(
                ErrorCode::WrongValueForType,
                &[&"datetime", &text, &"str_to_date"],
            );
        }
        parsed
    };
    match call.result_type() {
        ColumnType::Date => call.make_dates(|row| {
            let day = read(row)
                .and_then(Parts::moment)
                .map(|moment| moment.div_euclid(DAY_MICROS));
            Ok(day.and_then(|day| i32::try_from(day).ok()))
        }),
        ColumnType::Time { .. } => call.make_times(|row| {
            Ok(read(row).map(|p| ((p.hour * 60 + p.minute) * 60 + p.second) * MICROS + p.micro))
        }),
        _ => call.make_moments(|row| Ok(read(row).and_then(Parts::moment))),
    }
}

/// Takes up to `width` digits from the front of a text.
fn digits(text: &mut &str, width: usize) -> Option<i64> {
    let count = text
        .bytes()
        .take(width)
        .take_while(u8::is_ascii_digit)
        .count();
    let value = text[..count].parse().ok()?;
    *text = &text[count..];
    Some(value)
}

/// Takes a word that starts one of the names, in any case; returns its index.
fn word(text: &mut &str, names: &[&str], length: Option<usize>) -> Option<i64> {
    names.iter().enumerate().find_map(|(at, name)| {
        let name = length.map_or(*name, |length| &name[..length]);
        let head = text.get(..name.len())?;
        head.eq_ignore_ascii_case(name).then(|| {
            *text = &text[name.len()..];
            i64::try_from(at).expect("few names")
        })
    })
}

/// Reads a text by a pattern.
fn parse(text: &str, format: &str) -> Option<Parts> {
    let mut parts = Parts {
        year: 0,
        month: 0,
        day: 0,
        hour: 0,
        minute: 0,
        second: 0,
        micro: 0,
    };
    let mut rest = text;
    let (mut afternoon, mut half_day, mut day_of_year) = (false, false, None);
    let mut week = Week::default();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character.is_whitespace() {
            rest = rest.trim_start();
            continue;
        }
        if character != '%' {
            rest = rest.trim_start().strip_prefix(character)?;
            continue;
        }
        let specifier = characters.next()?;
        if specifier != '%' {
            rest = rest.trim_start();
        }
        match specifier {
            'Y' => {
                let before = rest.len();
                let year = digits(&mut rest, 4)?;
                parts.year = if before - rest.len() <= 2 {
                    century(year)
                } else {
                    year
                };
            }
            'y' => parts.year = century(digits(&mut rest, 2)?),
            'm' | 'c' => parts.month = digits(&mut rest, 2)?,
            'd' | 'e' => parts.day = digits(&mut rest, 2)?,
            'D' => {
                parts.day = digits(&mut rest, 2)?;
                rest = rest.get(2..)?;
            }
            'b' => parts.month = word(&mut rest, &MONTHS, Some(3))? + 1,
            'M' => parts.month = word(&mut rest, &MONTHS, None)? + 1,
            'a' => week.day = Some(word(&mut rest, &WEEKDAYS, Some(3))?),
            'W' => week.day = Some(word(&mut rest, &WEEKDAYS, None)?),
            'w' => {
                let from_sunday = digits(&mut rest, 1).filter(|day| *day < 7)?;
                week.day = Some((from_sunday + 6) % 7);
            }
            'U' | 'u' | 'V' | 'v' => {
                week.is_strict = specifier.eq_ignore_ascii_case(&'v');
                week.begins_on_sunday = specifier.is_ascii_uppercase();
                let least = i64::from(week.is_strict);
                let number = digits(&mut rest, 2).filter(|week| (least..=53).contains(week))?;
                week.number = Some(number);
            }
            'X' | 'x' => {
                week.year = Some((digits(&mut rest, 4)?, specifier.is_ascii_uppercase()));
            }
            'j' => day_of_year = Some(digits(&mut rest, 3)?),
            'H' | 'k' => parts.hour = digits(&mut rest, 2)?,
            'h' | 'I' | 'l' => {
                parts.hour = digits(&mut rest, 2).filter(|hour| (1..=12).contains(hour))?;
                half_day = true;
            }
            'i' => parts.minute = digits(&mut rest, 2)?,
            's' | 'S' => parts.second = digits(&mut rest, 2)?,
            'f' => {
                let before = rest.len();
                let value = digits(&mut rest, 6)?;
                let width = u32::try_from(before - rest.len()).expect("at most six");
                parts.micro = value * 10_i64.pow(6 - width);
            }
            'p' => {
                afternoon = word(&mut rest, &["AM", "PM"], None)? == 1;
                half_day = true;
            }
            'T' | 'r' => {
                parts.hour = digits(&mut rest, 2)?;
                rest = rest.strip_prefix(':')?;
                parts.minute = digits(&mut rest, 2)?;
                rest = rest.strip_prefix(':')?;
                parts.second = digits(&mut rest, 2)?;
                if specifier == 'r' {
                    rest = rest.trim_start();
                    afternoon = word(&mut rest, &["AM", "PM"], None)? == 1;
                    half_day = true;
                }
            }
            '%' => rest = rest.strip_prefix('%')?,
            _ => return None,
        }
        if rest.is_empty() && characters.as_str().is_empty() {
            break;
        }
    }
    if half_day {
        parts.hour = parts.hour % 12 + if afternoon { 12 } else { 0 };
    }
    if let Some(day) = day_of_year {
        let (year, month, day) = calendar::date_of(calendar::day_of(parts.year, 1, 1) + day - 1);
        (parts.year, parts.month, parts.day) = (year, month, day);
    }
    if let Some(day) = week.day_of(parts.year)? {
        (parts.year, parts.month, parts.day) = calendar::date_of(day);
    }
    let valid = parts.hour < 24 && parts.minute < 60 && parts.second < 60;
    valid.then_some(parts)
}

/// What a text says of a week, and of a day in it.
#[derive(Default)]
struct Week {
    number: Option<i64>,
    /// Counted from Monday, which is 0.
    day: Option<i64>,
    begins_on_sunday: bool,
    /// Whether the first week of a year is not 0, so that the year of a week is one of its own.
    is_strict: bool,
    /// That year, and whether it is one of weeks that begin on Sunday.
    year: Option<(i64, bool)>,
}

impl Week {
    /// The day that is meant, if week and day are told; `None` where they do not fit together.
    ///
    /// **Source**: `extract_date_time` of MySQL's `sql/item_timefunc.cc`.
    #[expect(clippy::option_option, reason = "nothing said is no mistake")]
    fn day_of(&self, year: i64) -> Option<Option<i64>> {
        let (Some(number), Some(day)) = (self.number, self.day) else {
            return Some(None);
        };
        let year = match (self.is_strict, self.year) {
            (true, Some((year, from_sunday))) if from_sunday == self.begins_on_sunday => year,
            (false, None) => year,
            _ => return None,
        };
        let new_year = calendar::day_of(year, 1, 1);
        let first = calendar::weekday(new_year);
        let days = if self.begins_on_sunday {
            let first = (first + 1) % 7;
            (if first == 0 { 0 } else { 7 }) - first + (number - 1) * 7 + (day + 1) % 7
        } else {
            (if first <= 3 { 0 } else { 7 }) - first + (number - 1) * 7 + day
        };
        let day = new_year + days;
        calendar::in_range(day).then_some(Some(day))
    }
}

fn century(year: i64) -> i64 {
    if year < 70 { year + 2000 } else { year + 1900 }
}
