//! Times of day and signed times: made, taken from moments, added and subtracted.

use std::fmt::Display;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use mayfly_types::{BlobSize, ColumnType, ErrorCode, spelling};

use super::digits::{day32, moment_of, most_digits, time_of};
use super::interval::read_seconds;
use crate::functions::calendar::{self, DAY_MICROS, MICROS};
use crate::functions::call::Call;
use crate::functions::define::{Definition, Returns, pure};
use crate::functions::number;

pub(super) static FUNCTIONS: &[Definition] = &[
    pure(
        "maketime",
        &[],
        (3, 3),
        Returns::By(|fields, _| maketime_type(fields)),
        maketime,
    ),
    pure("date", &[], (1, 1), Returns::Date, |call| {
        let moments = call.moments(0)?;
        call.make_dates(|row| {
            Ok(moments
                .at(row)
                .and_then(|m| day32(m.div_euclid(DAY_MICROS))))
        })
    }),
    pure("time", &[], (1, 1), Returns::By(time_of), |call| {
        let times = call.times(0)?;
        call.make_times(|row| Ok(times.at(row)))
    }),
    pure("timestamp", &[], (1, 2), Returns::By(moment_of), |call| {
        let moments = call.moments(0)?;
        let times = if call.count() > 1 {
            Some(call.times(1)?)
        } else {
            None
        };
        call.make_moments(|row| {
            let time = times.as_ref().map_or(Some(0), |times| times.at(row));
            Ok(moments
                .at(row)
                .zip(time)
                .map(|(moment, time)| moment + time))
        })
    }),
    pure("time_to_sec", &[], (1, 1), Returns::Integer, |call| {
        let times = call.times(0)?;
        call.make_integers(|row| Ok(times.at(row).map(|micros| micros / MICROS)))
    }),
    pure(
        "sec_to_time",
        &[],
        (1, 1),
        Returns::By(|f, _| time_of(f, &[])),
        sec_to_time,
    ),
    pure("datediff", &[], (2, 2), Returns::Integer, |call| {
        let (left, right) = (call.moments(0)?, call.moments(1)?);
        call.make_integers(|row| {
            Ok(left
                .at(row)
                .zip(right.at(row))
                .map(|(l, r)| l.div_euclid(DAY_MICROS) - r.div_euclid(DAY_MICROS)))
        })
    }),
    pure("timediff", &[], (2, 2), Returns::By(time_of), timediff),
    pure(
        "addtime",
        &[],
        (2, 2),
        Returns::By(|f, _| addtime_type(f)),
        |call| addtime(call, 1),
    ),
    pure(
        "subtime",
        &[],
        (2, 2),
        Returns::By(|f, _| addtime_type(f)),
        |call| addtime(call, -1),
    ),
];

/// The nearest time that MySQL has, with a warning that shows what lies beyond. A fraction behind
/// the greatest time is cut off silently.
fn bounded(call: &Call<'_>, time: i64, shown: &dyn Display) -> i64 {
    let bounded = calendar::clip_time(time);
    if bounded.abs_diff(time) >= MICROS.unsigned_abs() {
        call.warn(ErrorCode::TruncatedValue, &[&"time", shown]);
    }
    bounded
}

/// As [`bounded`], for a time that is shown as such.
fn bounded_time(call: &Call<'_>, time: i64) -> i64 {
    bounded(call, time, &SpelledTime(time))
}

struct SpelledTime(i64);

impl Display for SpelledTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        let digits = if self.0 % MICROS == 0 { 0 } else { 6 };
        spelling::write_time(self.0, digits, &mut text);
        f.write_str(&text)
    }
}

/// The time that a text spells; what lies beyond MySQL's bounds warns.
fn read_bounded(call: &Call<'_>, text: &str) -> Option<i64> {
    let read = calendar::read_whole_time(text)?;
    if read.is_beyond {
        call.warn(ErrorCode::TruncatedValue, &[&"time", &text]);
    }
    Some(read.micros)
}

fn sec_to_time(call: &Call<'_>) -> Result<ArrayRef> {
    let of = call.column_type(0);
    if of.is_integer() || of.is_temporal() {
        let seconds = call.integers(0)?;
        return call.make_times(|row| {
            let seconds = seconds.at(row);
            let time = |seconds: i64| bounded(call, seconds.saturating_mul(MICROS), &seconds);
            Ok(seconds.map(time))
        });
    }
    let texts = call.texts(0)?;
    call.make_times(|row| {
        Ok(texts.at(row).map(|text| {
            let (time, is_whole) = read_seconds(text);
            if !is_whole {
                call.warn(ErrorCode::TruncatedValue, &[&"DECIMAL", &text]);
            }
            bounded(call, time, &text)
        }))
    })
}

fn maketime_type(fields: &[FieldRef]) -> Result<ColumnType> {
    time_of(&fields[2..], &[])
}

fn maketime(call: &Call<'_>) -> Result<ArrayRef> {
    let (hours, minutes, seconds) = (call.integers(0)?, call.integers(1)?, call.doubles(2)?);
    call.make_times(|row| {
        let (Some(hour), Some(minute), Some(second)) =
            (hours.at(row), minutes.at(row), seconds.at(row))
        else {
            return Ok(None);
        };
        if !(0..60).contains(&minute) || !(0.0..60.0).contains(&second) {
            return Ok(None);
        }
        let micros = number::round_to_integer(second * 1e6);
        let whole = hour.abs().min(1_000_000) * 3600 + minute * 60;
        let time = whole * MICROS + micros;
        let time = if hour < 0 { -time } else { time };
        let shown = format_args!("{hour:02}:{minute:02}:{second:02}");
        Ok(Some(bounded(call, time, &shown)))
    })
}

fn timediff(call: &Call<'_>) -> Result<ArrayRef> {
    let is_moment = |index: usize| {
        matches!(
            call.data_type(index),
            DataType::Timestamp(_, _) | DataType::Date32
        )
    };
    if is_moment(0) && is_moment(1) {
        let (left, right) = (call.moments(0)?, call.moments(1)?);
        return call.make_times(|row| {
            Ok(left
                .at(row)
                .zip(right.at(row))
                .map(|(l, r)| bounded_time(call, l - r)))
        });
    }
    let (texts_left, texts_right) = (call.texts(0)?, call.texts(1)?);
    call.make_times(|row| {
        let (Some(left), Some(right)) = (texts_left.at(row), texts_right.at(row)) else {
            return Ok(None);
        };
        // Two moments or two times, not one of each.
        let dated = |text: &str| text.get(1..).is_some_and(|rest| rest.contains(['-', '/']));
        Ok(match (dated(left), dated(right)) {
            (true, true) => calendar::read_moment(left)
                .zip(calendar::read_moment(right))
                .map(|(l, r)| bounded_time(call, l.moment - r.moment)),
            (false, false) => read_bounded(call, left)
                .zip(read_bounded(call, right))
                .map(|(l, r)| bounded_time(call, l - r)),
            _ => None,
        })
    })
}

fn addtime_type(fields: &[FieldRef]) -> Result<ColumnType> {
    let digits = most_digits(fields, &[]);
    Ok(match ColumnType::from_arrow(&fields[0]) {
        ColumnType::Time { .. } => ColumnType::Time { digits },
        of if of.is_temporal() => ColumnType::DateTime { digits },
        _ => ColumnType::Text(BlobSize::Long),
    })
}

fn addtime(call: &Call<'_>, sign: i64) -> Result<ArrayRef> {
    let times = call.times(1)?;
    match call.result_type() {
        ColumnType::Time { .. } => {
            let values = call.times(0)?;
            call.make_times(|row| {
                let pair = values.at(row).zip(times.at(row));
                Ok(pair.map(|(value, time)| bounded_time(call, value + sign * time)))
            })
        }
        ColumnType::DateTime { .. } => {
            let values = call.moments(0)?;
            call.make_moments(|row| {
                Ok(values
                    .at(row)
                    .zip(times.at(row))
                    .map(|(value, time)| value + sign * time))
            })
        }
        _ => {
            let texts = call.texts(0)?;
            call.make_texts(|row, out| {
                let (Some(text), Some(time)) = (texts.at(row), times.at(row)) else {
                    return Ok(false);
                };
                let dated = text.get(1..).is_some_and(|rest| rest.contains('-'));
                if dated {
                    let Some(read) = calendar::read_moment(text) else {
                        return Ok(false);
                    };
                    let moment = read.moment + sign * time;
                    if !calendar::is_moment(moment) {
                        return Ok(false);
                    }
                    let fraction = moment.rem_euclid(MICROS) != 0;
                    spelling::write_moment(moment, if fraction { 6 } else { 0 }, &mut **out);
                } else {
                    let Some(value) = read_bounded(call, text) else {
                        return Ok(false);
                    };
                    let sum = bounded_time(call, value + sign * time);
                    spelling::write_time(sum, if sum % MICROS != 0 { 6 } else { 0 }, &mut **out);
                }
                Ok(true)
            })
        }
    }
}
