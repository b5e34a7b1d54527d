//! Functions that read, make and move days and times.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use mayfly_types::{BlobSize, ColumnType, ErrorCode, MySqlError};

use super::calendar::{self, DAY_MICROS, DAY_SECONDS, EPOCH_DAYS, MICROS, MONTHS, Parts, WEEKDAYS};
use super::define::{Call, Definition, Returns, pure, raise, stable, volatile};

pub(super) static FUNCTIONS: &[Definition] = &[
    stable(
        "now",
        &["current_timestamp", "localtime", "localtimestamp"],
        (0, 1),
        Returns::By(moment_digits),
        |call| clock(call, true),
    ),
    volatile("sysdate", &[], (0, 1), Returns::By(moment_digits), sysdate),
    stable(
        "utc_timestamp",
        &[],
        (0, 1),
        Returns::By(moment_digits),
        |call| clock(call, false),
    ),
    stable(
        "curdate",
        &["current_date"],
        (0, 0),
        Returns::Date,
        |call| today(call, true),
    ),
    stable("utc_date", &[], (0, 0), Returns::Date, |call| {
        today(call, false)
    }),
    stable(
        "curtime",
        &["current_time"],
        (0, 1),
        Returns::By(time_digits),
        |call| time_of_day(call, true),
    ),
    stable("utc_time", &[], (0, 1), Returns::By(time_digits), |call| {
        time_of_day(call, false)
    }),
    pure("year", &[], (1, 1), Returns::Integer, |call| {
        part(call, |p, _| p.year)
    }),
    pure("month", &[], (1, 1), Returns::Integer, |call| {
        part(call, |p, _| p.month)
    }),
    pure("day", &["dayofmonth"], (1, 1), Returns::Integer, |call| {
        part(call, |p, _| p.day)
    }),
    pure("quarter", &[], (1, 1), Returns::Integer, |call| {
        part(call, |p, _| (p.month + 2) / 3)
    }),
    pure("hour", &[], (1, 1), Returns::Integer, |call| {
        time_part(call, |s, _| s / 3600)
    }),
    pure("minute", &[], (1, 1), Returns::Integer, |call| {
        time_part(call, |s, _| s / 60 % 60)
    }),
    pure("second", &[], (1, 1), Returns::Integer, |call| {
        time_part(call, |s, _| s % 60)
    }),
    pure("microsecond", &[], (1, 1), Returns::Integer, |call| {
        time_part(call, |_, m| m)
    }),
    pure("dayofweek", &[], (1, 1), Returns::Integer, |call| {
        part(call, |_, day| (calendar::weekday(day) + 1) % 7 + 1)
    }),
    pure("weekday", &[], (1, 1), Returns::Integer, |call| {
        part(call, |_, day| calendar::weekday(day))
    }),
    pure("dayofyear", &[], (1, 1), Returns::Integer, |call| {
        part(call, |_, day| calendar::day_of_year(day))
    }),
    stable("week", &[], (1, 2), Returns::Integer, week),
    pure("weekofyear", &[], (1, 1), Returns::Integer, |call| {
        part(call, |_, day| calendar::week(day, 3).0)
    }),
    stable("yearweek", &[], (1, 2), Returns::Integer, yearweek),
    pure("to_days", &[], (1, 1), Returns::Integer, |call| {
        part(call, |_, day| calendar::to_days(day))
    }),
    pure("to_seconds", &[], (1, 1), Returns::Integer, |call| {
        let moments = call.moments(0)?;
        call.make_integers(|row| {
            Ok(moments
                .at(row)
                .map(|m| m.div_euclid(MICROS) + EPOCH_DAYS * DAY_SECONDS))
        })
    }),
    pure("from_days", &[], (1, 1), Returns::Date, |call| {
        let days = call.integers(0)?;
        call.make_dates(|row| Ok(days.at(row).and_then(|day| day32(day - EPOCH_DAYS))))
    }),
    pure("dayname", &[], (1, 1), Returns::Text, |call| {
        name(call, |_, day| WEEKDAYS[index(calendar::weekday(day))])
    }),
    pure("monthname", &[], (1, 1), Returns::Text, |call| {
        name(call, |p, _| MONTHS[index(p.month - 1)])
    }),
    pure("last_day", &[], (1, 1), Returns::Date, last_day),
    pure("makedate", &[], (2, 2), Returns::Date, makedate),
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
    pure("sec_to_time", &[], (1, 1), Returns::Time(0), |call| {
        let seconds = call.integers(0)?;
        call.make_times(|row| {
            Ok(seconds
                .at(row)
                .map(|s| calendar::clip_time(s.saturating_mul(MICROS))))
        })
    }),
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
        "timestampdiff",
        &[],
        (3, 3),
        Returns::Integer,
        timestampdiff,
    ),
    pure(
        "timestampadd",
        &[],
        (3, 3),
        Returns::By(|f, c| moved(&f[2], c[0])),
        |call| shift(call, 2, 1, 0, 1),
    ),
    pure(
        "date_add",
        &["adddate"],
        (2, 3),
        Returns::By(date_add_type),
        |call| shift(call, 0, 1, 2, 1),
    ),
    pure(
        "date_sub",
        &["subdate"],
        (2, 3),
        Returns::By(date_add_type),
        |call| shift(call, 0, 1, 2, -1),
    ),
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
    pure("period_add", &[], (2, 2), Returns::Integer, |call| {
        let (periods, months) = (call.integers(0)?, call.integers(1)?);
        call.make_integers(|row| {
            Ok(periods.at(row).zip(months.at(row)).map(|(period, add)| {
                let month = months_of_period(period) + add;
                month.div_euclid(12) * 100 + month.rem_euclid(12) + 1
            }))
        })
    }),
    pure("period_diff", &[], (2, 2), Returns::Integer, |call| {
        let (left, right) = (call.integers(0)?, call.integers(1)?);
        call.make_integers(|row| {
            let pair = left.at(row).zip(right.at(row));
            Ok(pair.map(|(l, r)| months_of_period(l) - months_of_period(r)))
        })
    }),
    stable(
        "unix_timestamp",
        &[],
        (0, 1),
        Returns::By(unix_type),
        unix_timestamp,
    ),
    stable(
        "from_unixtime",
        &[],
        (1, 2),
        Returns::By(from_unix_type),
        from_unixtime,
    ),
    pure("extract", &[], (2, 2), Returns::Integer, extract),
    stable(
        "convert_tz",
        &[],
        (3, 3),
        Returns::By(|f, c| moment_of(&f[..1], &c[..1])),
        convert_tz,
    ),
];

/// A position in a table of names.
fn index(value: i64) -> usize {
    usize::try_from(value).expect("a weekday or month is not negative")
}

/// The day as an array holds it, if MySQL has it.
fn day32(day: i64) -> Option<i32> {
    i32::try_from(day)
        .ok()
        .filter(|day| calendar::in_range(i64::from(*day)))
}

fn constant_digits(constants: &[Option<&ScalarValue>]) -> Result<u8> {
    let digits = match constants.first().copied().flatten() {
        Some(ScalarValue::Int64(Some(digits))) => *digits,
        _ => 0,
    };
    u8::try_from(digits)
        .ok()
        .filter(|digits| *digits <= 6)
        .ok_or_else(|| {
            raise(MySqlError::new(
                ErrorCode::TooBigPrecision,
                &[&digits, &"now", &6],
            ))
        })
}

fn moment_digits(_: &[FieldRef], constants: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    Ok(ColumnType::DateTime {
        digits: constant_digits(constants)?,
    })
}

fn time_digits(_: &[FieldRef], constants: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    Ok(ColumnType::Time {
        digits: constant_digits(constants)?,
    })
}

/// The digits of a second that a value of a field may have; a constant text shows its own.
fn digits_of(field: &FieldRef, constant: Option<&ScalarValue>) -> u8 {
    if let Some(text) = constant_text(constant) {
        let fraction = text.rsplit_once('.').map_or("", |(_, fraction)| fraction);
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        return u8::try_from(digits.min(6)).unwrap_or(6);
    }
    match ColumnType::from_arrow(field) {
        of if of.is_temporal() => of.second_digits(),
        ColumnType::Decimal { scale, .. } => scale.min(6),
        of if of.is_integer() || of == ColumnType::Null => 0,
        _ => 6,
    }
}

/// The most digits of a second among the arguments.
fn most_digits(fields: &[FieldRef], constants: &[Option<&ScalarValue>]) -> u8 {
    let constants = constants.iter().copied().chain(std::iter::repeat(None));
    fields
        .iter()
        .zip(constants)
        .map(|(f, c)| digits_of(f, c))
        .max()
        .unwrap_or(0)
}

fn time_of(fields: &[FieldRef], constants: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    Ok(ColumnType::Time {
        digits: most_digits(fields, constants),
    })
}

fn moment_of(fields: &[FieldRef], constants: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    Ok(ColumnType::DateTime {
        digits: most_digits(fields, constants),
    })
}

fn maketime_type(fields: &[FieldRef]) -> Result<ColumnType> {
    time_of(&fields[2..], &[])
}

/// The session's time: when the statement began, in its time zone or in UTC.
fn now(call: &Call<'_>, local: bool) -> i64 {
    let Some(session) = call.session else {
        return 0;
    };
    let values = session.lock();
    values.now_micros
        + if local {
            i64::from(values.time_zone_seconds) * MICROS
        } else {
            0
        }
}

/// Cuts what lies beyond the digits of a second.
fn cut(micros: i64, digits: u8) -> i64 {
    let unit = 10_i64.pow(u32::from(6 - digits.min(6)));
    micros.div_euclid(unit) * unit
}

fn clock(call: &Call<'_>, local: bool) -> Result<ArrayRef> {
    let moment = cut(now(call, local), call.result_type().second_digits());
    call.make_moments(|_| Ok(Some(moment)))
}

/// The time of the call itself, which NOW() is not.
fn sysdate(call: &Call<'_>) -> Result<ArrayRef> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let micros = since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    });
    let zone = call
        .session
        .map_or(0, |session| session.lock().time_zone_seconds);
    let digits = call.result_type().second_digits();
    let moment = cut(micros + i64::from(zone) * MICROS, digits);
    call.make_moments(|_| Ok(Some(moment)))
}

fn today(call: &Call<'_>, local: bool) -> Result<ArrayRef> {
    let day = day32(now(call, local).div_euclid(DAY_MICROS));
    call.make_dates(|_| Ok(day))
}

fn time_of_day(call: &Call<'_>, local: bool) -> Result<ArrayRef> {
    let digits = call.result_type().second_digits();
    let time = cut(now(call, local), digits).rem_euclid(DAY_MICROS);
    call.make_times(|_| Ok(Some(time)))
}

/// A number from the parts of a moment and its day.
fn part(call: &Call<'_>, of: fn(Parts, i64) -> i64) -> Result<ArrayRef> {
    let moments = call.moments(0)?;
    call.make_integers(|row| {
        Ok(moments
            .at(row)
            .map(|m| of(calendar::split(m), m.div_euclid(DAY_MICROS))))
    })
}

fn name(call: &Call<'_>, of: fn(Parts, i64) -> &'static str) -> Result<ArrayRef> {
    let moments = call.moments(0)?;
    Ok(call.make_parts(|row| {
        let moment = moments.at(row)?;
        Some(of(calendar::split(moment), moment.div_euclid(DAY_MICROS)))
    }))
}

/// A number from the seconds and microseconds of a time, without its sign.
fn time_part(call: &Call<'_>, of: fn(i64, i64) -> i64) -> Result<ArrayRef> {
    let times = call.times(0)?;
    call.make_integers(|row| {
        Ok(times
            .at(row)
            .map(|time| of(time.abs() / MICROS, time.abs() % MICROS)))
    })
}

fn week_mode(call: &Call<'_>, modes: Option<i64>) -> u8 {
    let default = || {
        call.session
            .map_or(0, |session| i64::from(session.lock().default_week_format))
    };
    u8::try_from(modes.unwrap_or_else(default).rem_euclid(8)).expect("below eight")
}

fn week(call: &Call<'_>) -> Result<ArrayRef> {
    let moments = call.moments(0)?;
    let modes = if call.count() > 1 {
        Some(call.integers(1)?)
    } else {
        None
    };
    call.make_integers(|row| {
        let mode = week_mode(call, modes.as_ref().and_then(|modes| modes.at(row)));
        Ok(moments
            .at(row)
            .map(|m| calendar::week(m.div_euclid(DAY_MICROS), mode).0))
    })
}

/// The week with its year: the last week of a year before rather than week 0.
fn yearweek(call: &Call<'_>) -> Result<ArrayRef> {
    let moments = call.moments(0)?;
    let modes = if call.count() > 1 {
        Some(call.integers(1)?)
    } else {
        None
    };
    call.make_integers(|row| {
        let mode = modes
            .as_ref()
            .map_or(0, |modes| week_mode(call, modes.at(row)));
        Ok(moments.at(row).map(|m| {
            let (week, year) = calendar::week(m.div_euclid(DAY_MICROS), mode | 2);
            year * 100 + week
        }))
    })
}

fn last_day(call: &Call<'_>) -> Result<ArrayRef> {
    let moments = call.moments(0)?;
    call.make_dates(|row| {
        Ok(moments.at(row).and_then(|moment| {
            let (year, month, _) = calendar::date_of(moment.div_euclid(DAY_MICROS));
            day32(calendar::day_of(
                year,
                month,
                calendar::days_in_month(year, month),
            ))
        }))
    })
}

fn makedate(call: &Call<'_>) -> Result<ArrayRef> {
    let (years, days) = (call.integers(0)?, call.integers(1)?);
    call.make_dates(|row| {
        Ok(years.at(row).zip(days.at(row)).and_then(|(year, day)| {
            let year = match year {
                0..70 => year + 2000,
                70..100 => year + 1900,
                other => other,
            };
            if day < 1 || !(0..=9999).contains(&year) {
                return None;
            }
            day32(calendar::day_of(year, 1, 1).checked_add(day - 1)?)
        }))
    })
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
        let micros = super::number::round_to_integer(second * 1e6);
        let whole = hour.abs().min(1_000_000) * 3600 + minute * 60;
        let time = whole * MICROS + micros;
        Ok(Some(calendar::clip_time(if hour < 0 {
            -time
        } else {
            time
        })))
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
                .map(|(l, r)| calendar::clip_time(l - r)))
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
                .map(|(l, r)| calendar::clip_time(l.moment - r.moment)),
            (false, false) => calendar::read_time(left)
                .zip(calendar::read_time(right))
                .map(|(l, r)| calendar::clip_time(l.0 - r.0)),
            _ => None,
        })
    })
}

fn months_of_period(period: i64) -> i64 {
    let year = match period / 100 {
        year @ 0..70 => year + 2000,
        year @ 70..100 => year + 1900,
        year => year,
    };
    year * 12 + period % 100 - 1
}

/// Whole months from one moment to a later one.
fn months_between(from: i64, to: i64) -> i64 {
    if to < from {
        return -months_between(to, from);
    }
    let (a, b) = (calendar::split(from), calendar::split(to));
    let months = (b.year - a.year) * 12 + b.month - a.month;
    let rest = |p: &Parts, moment: i64| (p.day, moment.rem_euclid(DAY_MICROS));
    months - i64::from(rest(&b, to) < rest(&a, from))
}

/// An interval of months and microseconds, from a unit's name and a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Interval {
    months: i64,
    micros: i64,
}

/// A unit of an interval: its parts, the last of them the smallest.
struct Unit {
    name: &'static str,
    /// The parts that a value has, each as months or microseconds.
    parts: &'static [Interval],
}

const fn months(months: i64) -> Interval {
    Interval { months, micros: 0 }
}

const fn micros(micros: i64) -> Interval {
    Interval { months: 0, micros }
}

const HOUR: Interval = micros(3600 * MICROS);
const MINUTE: Interval = micros(60 * MICROS);
const SECOND: Interval = micros(MICROS);
const MICROSECOND: Interval = micros(1);
const DAY: Interval = micros(DAY_MICROS);

static UNITS: &[Unit] = &[
    Unit {
        name: "YEAR",
        parts: &[months(12)],
    },
    Unit {
        name: "QUARTER",
        parts: &[months(3)],
    },
    Unit {
        name: "MONTH",
        parts: &[months(1)],
    },
    Unit {
        name: "WEEK",
        parts: &[micros(7 * DAY_MICROS)],
    },
    Unit {
        name: "DAY",
        parts: &[DAY],
    },
    Unit {
        name: "HOUR",
        parts: &[HOUR],
    },
    Unit {
        name: "MINUTE",
        parts: &[MINUTE],
    },
    Unit {
        name: "SECOND",
        parts: &[SECOND],
    },
    Unit {
        name: "MICROSECOND",
        parts: &[MICROSECOND],
    },
    Unit {
        name: "YEAR_MONTH",
        parts: &[months(12), months(1)],
    },
    Unit {
        name: "DAY_HOUR",
        parts: &[DAY, HOUR],
    },
    Unit {
        name: "DAY_MINUTE",
        parts: &[DAY, HOUR, MINUTE],
    },
    Unit {
        name: "DAY_SECOND",
        parts: &[DAY, HOUR, MINUTE, SECOND],
    },
    Unit {
        name: "DAY_MICROSECOND",
        parts: &[DAY, HOUR, MINUTE, SECOND, MICROSECOND],
    },
    Unit {
        name: "HOUR_MINUTE",
        parts: &[HOUR, MINUTE],
    },
    Unit {
        name: "HOUR_SECOND",
        parts: &[HOUR, MINUTE, SECOND],
    },
    Unit {
        name: "HOUR_MICROSECOND",
        parts: &[HOUR, MINUTE, SECOND, MICROSECOND],
    },
    Unit {
        name: "MINUTE_SECOND",
        parts: &[MINUTE, SECOND],
    },
    Unit {
        name: "MINUTE_MICROSECOND",
        parts: &[MINUTE, SECOND, MICROSECOND],
    },
    Unit {
        name: "SECOND_MICROSECOND",
        parts: &[SECOND, MICROSECOND],
    },
];

fn unit(name: &str) -> Result<&'static Unit> {
    let bare = name.trim();
    let bare = bare.strip_prefix("SQL_TSI_").unwrap_or(bare);
    UNITS
        .iter()
        .find(|unit| unit.name.eq_ignore_ascii_case(bare))
        .ok_or_else(|| raise(MySqlError::new(ErrorCode::Syntax, &[&name, &1])))
}

impl Unit {
    /// Whether the unit leaves the time of day alone.
    fn is_date(&self) -> bool {
        self.parts
            .iter()
            .all(|part| part.months > 0 || part.micros % DAY_MICROS == 0)
    }

    fn has_micros(&self) -> bool {
        self.parts.last() == Some(&MICROSECOND)
    }

    /// The interval of a value: a number, or numbers with anything between them.
    fn interval(&self, value: &str) -> Option<Interval> {
        if let [part] = self.parts {
            if *part == SECOND {
                let (seconds, _) = super::number::read_decimal(value, 6);
                return Some(micros(i64::try_from(seconds?.to_i128()?).ok()?));
            }
            let (decimal, _) = super::number::read_decimal(value, 0);
            let count = i64::try_from(decimal?.to_i128()?).ok()?;
            return Some(Interval {
                months: part.months.checked_mul(count)?,
                micros: part.micros.checked_mul(count)?,
            });
        }
        let negative = value.trim_start().starts_with('-');
        let numbers: Vec<&str> = value
            .split(|c: char| !c.is_ascii_digit())
            .filter(|part| !part.is_empty())
            .collect();
        if numbers.len() > self.parts.len() {
            return None;
        }
        // Missing numbers are the leading ones.
        let parts = &self.parts[self.parts.len() - numbers.len()..];
        let mut sum = Interval::default();
        for (part, text) in parts.iter().zip(numbers) {
            let mut count: i64 = text.parse().ok()?;
            if *part == MICROSECOND {
                // The digits of a fraction.
                let missing = u32::try_from(6_usize.saturating_sub(text.len())).unwrap_or(0);
                count = count.checked_mul(10_i64.pow(missing))?;
            }
            sum.months = sum.months.checked_add(part.months.checked_mul(count)?)?;
            sum.micros = sum.micros.checked_add(part.micros.checked_mul(count)?)?;
        }
        let sign = if negative { -1 } else { 1 };
        Some(Interval {
            months: sum.months * sign,
            micros: sum.micros * sign,
        })
    }
}

/// A moment moved by an interval; the last day of a shorter month rather than the next month.
fn add(moment: i64, interval: Interval) -> Option<i64> {
    let mut moved = moment;
    if interval.months != 0 {
        let mut parts = calendar::split(moment);
        let month = (parts.year * 12 + parts.month - 1).checked_add(interval.months)?;
        parts.year = month.div_euclid(12);
        parts.month = month.rem_euclid(12) + 1;
        if !(0..=9999).contains(&parts.year) {
            return None;
        }
        parts.day = parts
            .day
            .min(calendar::days_in_month(parts.year, parts.month));
        moved = parts.moment()?;
    }
    let moved = moved.checked_add(interval.micros)?;
    calendar::in_range(moved.div_euclid(DAY_MICROS)).then_some(moved)
}

fn constant_text(value: Option<&ScalarValue>) -> Option<&str> {
    value.and_then(|value| value.try_as_str().flatten())
}

/// The type of a moved value.
fn moved(field: &FieldRef, unit_name: Option<&ScalarValue>) -> Result<ColumnType> {
    let unit = constant_text(unit_name).map(unit).transpose()?;
    let is_date = unit.is_none_or(Unit::is_date);
    let micros = unit.is_some_and(Unit::has_micros);
    Ok(match ColumnType::from_arrow(field) {
        ColumnType::Date if is_date => ColumnType::Date,
        ColumnType::Date => ColumnType::DateTime {
            digits: if micros { 6 } else { 0 },
        },
        ColumnType::Time { digits } => ColumnType::Time {
            digits: if micros { 6 } else { digits },
        },
        ColumnType::DateTime { digits } | ColumnType::Timestamp { digits } => {
            ColumnType::DateTime {
                digits: if micros { 6 } else { digits },
            }
        }
        _ => ColumnType::Text(BlobSize::Long),
    })
}

fn date_add_type(fields: &[FieldRef], constants: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    if let DataType::Interval(_) = fields[1].data_type() {
        let is_date = match constants[1] {
            Some(ScalarValue::IntervalMonthDayNano(Some(value))) => value.nanoseconds == 0,
            Some(ScalarValue::IntervalYearMonth(_)) => true,
            Some(ScalarValue::IntervalDayTime(Some(value))) => value.milliseconds == 0,
            _ => false,
        };
        return Ok(match (ColumnType::from_arrow(&fields[0]), is_date) {
            (ColumnType::Date, false) => ColumnType::DateTime { digits: 0 },
            (of, _) if of.is_temporal() => of,
            _ => ColumnType::Text(BlobSize::Long),
        });
    }
    moved(&fields[0], constants.get(2).copied().flatten())
}

/// Moves the value of one argument by the interval of two others.
fn shift(
    call: &Call<'_>,
    value: usize,
    amount: usize,
    unit_name: usize,
    sign: i64,
) -> Result<ArrayRef> {
    let signed = |interval: Interval| Interval {
        months: interval.months * sign,
        micros: interval.micros * sign,
    };
    let (interval, is_date): (Box<dyn Fn(usize) -> Option<Interval> + '_>, bool) =
        if let DataType::Interval(kind) = call.data_type(amount) {
            let wide = DataType::Interval(IntervalUnit::MonthDayNano);
            let array = match kind {
                IntervalUnit::MonthDayNano => std::sync::Arc::clone(call.array(amount)),
                _ => arrow::compute::cast(call.array(amount), &wide)?,
            };
            let constant = call.is_constant(amount);
            let is_date = array
                .as_primitive::<IntervalMonthDayNanoType>()
                .iter()
                .flatten()
                .all(|value| value.nanoseconds == 0);
            let read = move |row: usize| {
                let values = array.as_primitive::<IntervalMonthDayNanoType>();
                let row = if constant { 0 } else { row };
                values.is_valid(row).then(|| {
                    let value = values.value(row);
                    signed(Interval {
                        months: value.months.into(),
                        micros: i64::from(value.days) * DAY_MICROS + value.nanoseconds / 1000,
                    })
                })
            };
            (Box::new(read), is_date)
        } else {
            let texts = call.texts(amount)?;
            let unit = if call.count() > 2 {
                let names = call.texts(unit_name)?;
                unit(names.constant().flatten().unwrap_or_default())?
            } else {
                unit("DAY")?
            };
            let read = move |row: usize| texts.at(row).and_then(|t| unit.interval(t)).map(signed);
            (Box::new(read), unit.is_date())
        };
    let overflow = || call.warn(ErrorCode::DatetimeOverflow, &[&"datetime"]);
    let moved = |moment: i64, row: usize| -> Option<i64> {
        let moved = add(moment, interval(row)?);
        if moved.is_none() {
            overflow();
        }
        moved
    };
    match call.result_type() {
        ColumnType::Date => {
            let moments = call.moments(value)?;
            call.make_dates(|row| {
                let moment = moments.at(row).and_then(|moment| moved(moment, row));
                Ok(moment.and_then(|moment| day32(moment.div_euclid(DAY_MICROS))))
            })
        }
        ColumnType::Time { .. } => {
            let times = call.times(value)?;
            call.make_times(|row| {
                let pair = times.at(row).zip(interval(row));
                Ok(pair.map(|(time, by)| calendar::clip_time(time + by.micros)))
            })
        }
        ColumnType::DateTime { .. } => {
            let moments = call.moments(value)?;
            call.make_moments(|row| Ok(moments.at(row).and_then(|moment| moved(moment, row))))
        }
        _ => {
            let texts = call.texts(value)?;
            call.make_texts(|row, out| {
                let Some(text) = texts.at(row) else {
                    return Ok(false);
                };
                let Some(read) = calendar::read_moment(text) else {
                    call.warn(ErrorCode::TruncatedValue, &[&"datetime", &text]);
                    return Ok(false);
                };
                let Some(moment) = moved(read.moment, row) else {
                    return Ok(false);
                };
                if is_date && !read.has_time {
                    calendar::write_date(moment.div_euclid(DAY_MICROS), out);
                } else {
                    let fraction = moment.rem_euclid(MICROS) != 0;
                    calendar::write_moment(moment, if fraction { 6 } else { 0 }, out);
                }
                Ok(true)
            })
        }
    }
}

fn timestampdiff(call: &Call<'_>) -> Result<ArrayRef> {
    let (names, from, to) = (call.texts(0)?, call.moments(1)?, call.moments(2)?);
    let unit = unit(names.constant().flatten().unwrap_or_default())?;
    let one = unit.parts[0];
    call.make_integers(|row| {
        Ok(from.at(row).zip(to.at(row)).map(|(from, to)| {
            if one.months > 0 {
                months_between(from, to) / one.months
            } else {
                (to - from) / one.micros
            }
        }))
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
                Ok(pair.map(|(value, time)| calendar::clip_time(value + sign * time)))
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
                    let fraction = moment.rem_euclid(MICROS) != 0;
                    calendar::write_moment(moment, if fraction { 6 } else { 0 }, out);
                } else {
                    let Some((value, _)) = calendar::read_time(text) else {
                        return Ok(false);
                    };
                    let sum = calendar::clip_time(value + sign * time);
                    calendar::write_time(sum, if sum % MICROS != 0 { 6 } else { 0 }, out);
                }
                Ok(true)
            })
        }
    }
}

fn zone_micros(call: &Call<'_>) -> i64 {
    call.session.map_or(0, |session| {
        i64::from(session.lock().time_zone_seconds) * MICROS
    })
}

fn unix_type(fields: &[FieldRef], constants: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    Ok(match most_digits(fields, constants) {
        0 => ColumnType::BigInt { unsigned: false },
        digits => super::unify::decimal(12, digits),
    })
}

fn unix_timestamp(call: &Call<'_>) -> Result<ArrayRef> {
    if call.count() == 0 {
        let seconds = now(call, false).div_euclid(MICROS);
        return call.make_integers(|_| Ok(Some(seconds)));
    }
    let moments = call.moments(0)?;
    let zone = zone_micros(call);
    match call.result_type() {
        ColumnType::Decimal { scale, .. } => {
            let unit = 10_i64.pow(u32::from(6 - scale.min(6)));
            let mut builder = arrow::array::Decimal128Builder::with_capacity(call.rows);
            for row in 0..call.rows {
                builder.append_option(
                    moments
                        .at(row)
                        .map(|m| i128::from(((m - zone).max(0)) / unit)),
                );
            }
            let array = builder
                .finish()
                .with_precision_and_scale(12 + scale, 0_i8)?;
            let array = array.with_precision_and_scale(12 + scale, scale.cast_signed())?;
            Ok(std::sync::Arc::new(array))
        }
        _ => call.make_integers(|row| {
            Ok(moments
                .at(row)
                .map(|moment| (moment - zone).div_euclid(MICROS).max(0)))
        }),
    }
}

fn from_unix_type(fields: &[FieldRef], constants: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    if fields.len() > 1 {
        return Ok(ColumnType::Text(BlobSize::Long));
    }
    moment_of(fields, constants)
}

fn from_unixtime(call: &Call<'_>) -> Result<ArrayRef> {
    let of = super::unify::decimal(20, 6);
    let from = call.column_type(0);
    let seconds = super::cast::convert_array(call.array(0), &from, &of, call.session)?;
    let seconds = seconds.as_primitive::<arrow::datatypes::Decimal128Type>();
    let (constant, zone) = (call.is_constant(0), zone_micros(call));
    let moment = |row: usize| {
        let row = if constant { 0 } else { row };
        let micros = seconds.is_valid(row).then(|| seconds.value(row))?;
        let micros = i64::try_from(micros).ok().filter(|micros| *micros >= 0)?;
        // MySQL ends at the end of the year 3001.
        (micros < 32_536_771_200 * MICROS).then_some(micros + zone)
    };
    if call.count() == 1 {
        return call.make_moments(|row| Ok(moment(row)));
    }
    let formats = call.texts(1)?;
    call.make_texts(|row, out| {
        let (Some(moment), Some(format)) = (moment(row), formats.at(row)) else {
            return Ok(false);
        };
        Ok(super::date_format::write(format, moment, out))
    })
}

/// EXTRACT(unit FROM value): the unit's parts as one number.
fn extract(call: &Call<'_>) -> Result<ArrayRef> {
    let names = call.texts(0)?;
    let name = names
        .constant()
        .flatten()
        .unwrap_or_default()
        .to_ascii_uppercase();
    let unit = unit(&name)?;
    let is_time = !unit.is_date() && !name.starts_with("DAY");
    if is_time {
        let times = call.times(1)?;
        return call.make_integers(|row| {
            Ok(times.at(row).map(|time| {
                let value = packed(&name, 0, time.abs());
                if time < 0 { -value } else { value }
            }))
        });
    }
    let moments = call.moments(1)?;
    call.make_integers(|row| {
        Ok(moments.at(row).map(|moment| {
            let parts = calendar::split(moment);
            match name.as_str() {
                "YEAR" => parts.year,
                "QUARTER" => (parts.month + 2) / 3,
                "MONTH" => parts.month,
                "YEAR_MONTH" => parts.year * 100 + parts.month,
                "WEEK" => {
                    let mode = week_mode(call, None);
                    calendar::week(moment.div_euclid(DAY_MICROS), mode).0
                }
                "DAY" => parts.day,
                _ => packed(&name, parts.day, moment.rem_euclid(DAY_MICROS)),
            }
        }))
    })
}

/// The digits of a unit that ends in a part of the day.
fn packed(name: &str, day: i64, time: i64) -> i64 {
    let seconds = time / MICROS;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let (first, last) = name.split_once('_').unwrap_or((name, name));
    let mut value = 0;
    let mut started = false;
    for (part, number, width) in [
        ("DAY", day, 1),
        ("HOUR", hour, 100),
        ("MINUTE", minute, 100),
        ("SECOND", second, 100),
        ("MICROSECOND", time % MICROS, MICROS),
    ] {
        started |= part == first;
        if started {
            value = value * width + number;
        }
        if part == last {
            break;
        }
    }
    value
}

/// Seconds of an offset such as `+02:00`; names of zones are not known.
fn offset(zone: &str, session_seconds: i32) -> Option<i64> {
    if zone.eq_ignore_ascii_case("SYSTEM") {
        return Some(i64::from(session_seconds));
    }
    if zone.eq_ignore_ascii_case("UTC") || zone.eq_ignore_ascii_case("GMT") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

fn convert_tz(call: &Call<'_>) -> Result<ArrayRef> {
    let (moments, from, to) = (call.moments(0)?, call.texts(1)?, call.texts(2)?);
    let local = call
        .session
        .map_or(0, |session| session.lock().time_zone_seconds);
    call.make_moments(|row| {
        let zones = from.at(row).zip(to.at(row));
        let shift = zones
            .and_then(|(from, to)| offset(from, local).zip(offset(to, local)))
            .map(|(from, to)| (to - from) * MICROS);
        Ok(moments
            .at(row)
            .zip(shift)
            .map(|(moment, shift)| moment + shift))
    })
}
