//! DATE_ADD, DATE_SUB, TIMESTAMPADD and TIMESTAMPDIFF: values moved by intervals.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use mayfly_types::{BlobSize, ColumnType, ErrorCode, spelling};

use super::digits::{constant_text, day32, digits_of};
use super::interval::{Interval, Unit, add, months_between, unit};
use crate::functions::calendar::{self, DAY_MICROS, MICROS};
use crate::functions::call::Call;
use crate::functions::define::{Definition, Returns, pure};

pub(super) static FUNCTIONS: &[Definition] = &[
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
        Returns::By(|f, c| moved(&f[2], &f[1], c[0])),
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
];

/// The type of a moved value. A number of seconds has as many digits as its type, which the value
/// has afterwards.
fn moved(
    field: &FieldRef,
    amount: &FieldRef,
    unit_name: Option<&ScalarValue>,
) -> Result<ColumnType> {
    let unit = constant_text(unit_name).map(unit).transpose()?;
    let is_date = unit.is_none_or(Unit::is_date);
    let of_interval = match unit {
        Some(unit) if unit.has_micros() => 6,
        Some(unit) if unit.is_second() => digits_of(amount, None),
        _ => 0,
    };
    Ok(match ColumnType::from_arrow(field) {
        ColumnType::Date if is_date => ColumnType::Date,
        ColumnType::Date => ColumnType::DateTime {
            digits: of_interval,
        },
        ColumnType::Time { digits } => ColumnType::Time {
            digits: digits.max(of_interval),
        },
        ColumnType::DateTime { digits } | ColumnType::Timestamp { digits } => {
            ColumnType::DateTime {
                digits: digits.max(of_interval),
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
    moved(&fields[0], &fields[1], constants.get(2).copied().flatten())
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
                IntervalUnit::MonthDayNano => Arc::clone(call.array(amount)),
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
            let unit = if call.count() > 2 {
                let names = call.texts(unit_name)?;
                unit(names.constant().flatten().unwrap_or_default())?
            } else {
                unit("DAY")?
            };
            if unit.is_whole() && call.column_type(amount).is_numeric() {
                let counts = call.integers(amount)?;
                let read = move |row: usize| counts.at(row).and_then(|n| unit.times(n)).map(signed);
                (Box::new(read), unit.is_date())
            } else {
                let texts = call.digits(amount)?;
                let read = move |row: usize| {
                    let text = texts.at(row)?;
                    let (interval, is_whole) = unit.interval(text);
                    if !is_whole {
                        call.warn(ErrorCode::TruncatedValue, &[&unit.kind_of_number(), &text]);
                    }
                    interval.map(signed)
                };
                (Box::new(read), unit.is_date())
            }
        };
    let overflow = |of: &str| call.warn(ErrorCode::DatetimeOverflow, &[&of]);
    let moved = |moment: i64, row: usize| -> Option<i64> {
        let moved = add(moment, interval(row)?);
        if moved.is_none() {
            overflow("datetime");
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
                let Some((time, by)) = times.at(row).zip(interval(row)) else {
                    return Ok(None);
                };
                let moved = time.saturating_add(by.micros);
                let is_time = by.months == 0 && calendar::clip_time(moved) == moved;
                if !is_time {
                    overflow("time");
                }
                Ok(is_time.then_some(moved))
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
                    spelling::write_date(moment.div_euclid(DAY_MICROS), &mut **out);
                } else {
                    let fraction = moment.rem_euclid(MICROS) != 0;
                    spelling::write_moment(moment, if fraction { 6 } else { 0 }, &mut **out);
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
