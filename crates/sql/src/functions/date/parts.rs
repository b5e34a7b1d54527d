//! Days and their parts: the year of a day, the day of a week, the day of a number.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use mayfly_types::{ErrorCode, MySqlError};

use super::digits::day32;
use super::interval::unit;
use crate::functions::calendar::{
    self, DAY_MICROS, DAY_SECONDS, EPOCH_DAYS, MICROS, MONTHS, Parts, WEEKDAYS,
};
use crate::functions::call::Call;
use crate::functions::define::{Definition, Returns, pure, stable};
use crate::functions::raise::raise;

pub(super) static FUNCTIONS: &[Definition] = &[
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
        call.make_dates(|row| {
            // The days of year 0 have no date.
            let days = days.at(row).map(|day| day.saturating_sub(EPOCH_DAYS));
            let days = days.filter(|day| *day >= calendar::day_of(1, 1, 1));
            Ok(days.and_then(day32))
        })
    }),
    pure("dayname", &[], (1, 1), Returns::Text, |call| {
        name(call, |_, day| WEEKDAYS[index(calendar::weekday(day))])
    }),
    pure("monthname", &[], (1, 1), Returns::Text, |call| {
        name(call, |p, _| MONTHS[index(p.month - 1)])
    }),
    pure("last_day", &[], (1, 1), Returns::Date, last_day),
    pure("makedate", &[], (2, 2), Returns::Date, makedate),
    pure("period_add", &[], (2, 2), Returns::Integer, |call| {
        let (periods, months) = (call.integers(0)?, call.integers(1)?);
        call.make_integers(|row| {
            let Some((period, add)) = periods.at(row).zip(months.at(row)) else {
                return Ok(None);
            };
            let month = months_of_period(call, period)?.saturating_add(add);
            Ok(Some(month.div_euclid(12) * 100 + month.rem_euclid(12) + 1))
        })
    }),
    pure("period_diff", &[], (2, 2), Returns::Integer, |call| {
        let (left, right) = (call.integers(0)?, call.integers(1)?);
        call.make_integers(|row| {
            let Some((left, right)) = left.at(row).zip(right.at(row)) else {
                return Ok(None);
            };
            let months = |period: i64| months_of_period(call, period);
            Ok(Some(months(left)? - months(right)?))
        })
    }),
    pure("extract", &[], (2, 2), Returns::Integer, extract),
];

/// A position in a table of names.
fn index(value: i64) -> usize {
    usize::try_from(value).expect("a weekday or month is not negative")
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
    call.make_parts(|row| {
        let moment = moments.at(row)?;
        Some(of(calendar::split(moment), moment.div_euclid(DAY_MICROS)))
    })
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
    let modes = call.optional_integers(1)?;
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
    let modes = call.optional_integers(1)?;
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

/// # Errors
/// 1210 if a number is no period: it has a month, and is not negative.
fn months_of_period(call: &Call<'_>, period: i64) -> Result<i64> {
    if period <= 0 || !(1..=12).contains(&(period % 100)) {
        let error = MySqlError::new(ErrorCode::WrongArguments, &[&call.name]);
        return Err(raise(error));
    }
    let year = match period / 100 {
        year @ 0..70 => year + 2000,
        year @ 70..100 => year + 1900,
        year => year,
    };
    Ok(year * 12 + period % 100 - 1)
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
