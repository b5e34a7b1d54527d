//! The session's clock, seconds since 1970, and time zones.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Decimal128Type, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use mayfly_types::{BlobSize, ColumnType, ErrorCode, MySqlError};

use super::digits::{day32, moment_of, most_digits};
use super::format;
use crate::functions::calendar::{DAY_MICROS, MICROS};
use crate::functions::call::Call;
use crate::functions::define::{Definition, Returns, stable, volatile};
use crate::functions::raise::raise;
use crate::functions::{cast, unify};

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
    stable(
        "convert_tz",
        &[],
        (3, 3),
        Returns::By(|f, c| moment_of(&f[..1], &c[..1])),
        convert_tz,
    ),
];

/// The last second since 1970 that MySQL counts: 3001-01-18 23:59:59.
const COUNTED_MAX_SECONDS: i64 = 32_536_771_199;

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

/// The session's time: when the statement began, in its time zone or in UTC.
fn now(call: &Call<'_>, local: bool) -> i64 {
    let Some(session) = call.session else {
        return 0;
    };
    let values = session.of_statement();
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

fn zone_micros(call: &Call<'_>) -> i64 {
    call.session.map_or(0, |session| {
        i64::from(session.lock().time_zone_seconds) * MICROS
    })
}

fn unix_type(fields: &[FieldRef], constants: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    Ok(match most_digits(fields, constants) {
        0 => ColumnType::BigInt { unsigned: false },
        digits => unify::decimal(12, digits),
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
                        .map(|moment| i128::from(counted_micros(moment - zone) / unit)),
                );
            }
            let array = builder
                .finish()
                .with_precision_and_scale(12 + scale, 0_i8)?;
            let array = array.with_precision_and_scale(12 + scale, scale.cast_signed())?;
            Ok(Arc::new(array))
        }
        _ => call.make_integers(|row| {
            Ok(moments
                .at(row)
                .map(|moment| counted_micros(moment - zone) / MICROS))
        }),
    }
}

/// Microseconds since 1970 as far as MySQL counts them; 0 for what lies before or behind.
fn counted_micros(micros: i64) -> i64 {
    match (0..=COUNTED_MAX_SECONDS).contains(&micros.div_euclid(MICROS)) {
        true => micros,
        false => 0,
    }
}

fn from_unix_type(fields: &[FieldRef], _: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    if fields.len() > 1 {
        return Ok(ColumnType::Text(BlobSize::Long));
    }
    moment_of(fields, &[])
}

fn from_unixtime(call: &Call<'_>) -> Result<ArrayRef> {
    let of = unify::decimal(20, 6);
    let from = call.column_type(0);
    let seconds = cast::convert_array(call.array(0), &from, &of, call.session)?;
    let seconds = seconds.as_primitive::<Decimal128Type>();
    let (constant, zone) = (call.is_constant(0), zone_micros(call));
    let moment = |row: usize| {
        let row = if constant { 0 } else { row };
        let micros = seconds.is_valid(row).then(|| seconds.value(row))?;
        let micros = i64::try_from(micros).ok().filter(|micros| *micros >= 0)?;
        (micros.div_euclid(MICROS) <= COUNTED_MAX_SECONDS).then_some(micros + zone)
    };
    if call.count() == 1 {
        return call.make_moments(|row| Ok(moment(row)));
    }
    let formats = call.texts(1)?;
    call.make_texts(|row, out| {
        let (Some(moment), Some(format)) = (moment(row), formats.at(row)) else {
            return Ok(false);
        };
        Ok(format::write(format, moment, out))
    })
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
        let offsets = zones.and_then(|(from, to)| offset(from, local).zip(offset(to, local)));
        Ok(moments.at(row).zip(offsets).map(|(moment, (from, to))| {
            let utc = moment - from * MICROS;
            // MySQL leaves alone what it cannot count in seconds of UTC.
            match (1..=COUNTED_MAX_SECONDS).contains(&utc.div_euclid(MICROS)) {
                true => utc + to * MICROS,
                false => moment,
            }
        }))
    })
}
