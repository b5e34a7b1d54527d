//! Values as days, moments and times.
//!
//! A cast takes what a text or number begins with, and warns. An assignment is told more of each
//! value: whether something follows that does not belong there, and whether the column can hold it.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, DurationMicrosecondArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Date32Type, DurationMicrosecondType, TimestampMicrosecondType};
use datafusion::error::Result;
use mayfly_types::{ColumnType, ErrorCode};

use super::{Conversions, Purpose};
use crate::functions::calendar::{self, DAY_MICROS, MICROS};
use crate::functions::{convert, unify};

/// A value of a text or a number, in microseconds.
struct Found {
    micros: i64,
    /// Whether that is all of it.
    is_whole: bool,
    /// Whether it is only the nearest that a column can hold.
    is_beyond: bool,
}

/// Microseconds of an array of values that are days, moments or times already.
fn micros_of(array: &ArrayRef) -> Vec<Option<i64>> {
    match array.data_type() {
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().iter();
            days.map(|day| Some(i64::from(day?) * DAY_MICROS)).collect()
        }
        DataType::Duration(_) => array
            .as_primitive::<DurationMicrosecondType>()
            .iter()
            .collect(),
        _ => array
            .as_primitive::<TimestampMicrosecondType>()
            .iter()
            .collect(),
    }
}

/// Microseconds rounded to some digits of a second, halves away from zero.
fn rounded(micros: i64, digits: u8) -> i64 {
    let unit = 10_i64.pow(u32::from(6 - digits.min(6)));
    let half = if micros < 0 { -(unit / 2) } else { unit / 2 };
    if unit == 1 {
        return micros;
    }
    (micros + half) / unit * unit
}

/// As [`rounded`], halves always later.
fn rounded_moment(micros: i64, digits: u8) -> i64 {
    let unit = 10_i64.pow(u32::from(6 - digits.min(6)));
    (micros + unit / 2).div_euclid(unit) * unit
}

impl Conversions<'_> {
    /// Days, moments and times; moments and times rounded to the digits of a second.
    pub(super) fn temporal(&self, array: &ArrayRef, digits: u8) -> Result<ArrayRef> {
        let is_temporal = matches!(
            array.data_type(),
            DataType::Date32 | DataType::Timestamp(_, _) | DataType::Duration(_)
        );
        if self.is_cast() && is_temporal && digits >= 6 {
            // Nothing is rounded.
            return Ok(match self.target {
                ColumnType::Time { .. } => Arc::new(convert::to_time(array, self.session)?),
                _ => Arc::new(convert::to_moment(array, self.session)?),
            });
        }
        let values = match self.is_cast() {
            true => self.cast_micros(array, digits)?,
            false => self.assigned_micros(array, digits)?,
        };
        Ok(match self.target {
            ColumnType::Date => Arc::new(Date32Array::from_iter(values.into_iter().map(|value| {
                let day = value?.div_euclid(DAY_MICROS);
                Some(i32::try_from(day).expect("a moment has a day of 32 bits"))
            }))),
            ColumnType::Time { .. } => Arc::new(DurationMicrosecondArray::from(values)),
            _ => Arc::new(TimestampMicrosecondArray::from(values)),
        })
    }

    /// What CAST makes of the values, in microseconds.
    fn cast_micros(&self, array: &ArrayRef, digits: u8) -> Result<Vec<Option<i64>>> {
        let has_fraction = matches!(
            array.data_type(),
            DataType::Decimal128(..) | DataType::Float32 | DataType::Float64
        );
        if has_fraction && *self.target != ColumnType::Date {
            return self.assigned_micros(array, digits);
        }
        if matches!(self.target, ColumnType::Time { .. }) {
            let times = convert::to_time(array, self.session)?;
            let times = times.iter();
            return Ok(times
                .map(|time| Some(calendar::clip_time(rounded(time?, digits))))
                .collect());
        }
        let moments = convert::to_moment(array, self.session)?;
        if *self.target == ColumnType::Date {
            return Ok(moments.iter().collect());
        }
        let mut values = Vec::with_capacity(moments.len());
        for (row, moment) in moments.iter().enumerate() {
            let value = moment.map(|moment| rounded_moment(moment, digits));
            let fits = |value: &i64| calendar::is_moment(*value);
            let kept = value.filter(fits);
            if kept.is_none() && value.is_some() {
                let text = convert::to_readable(&array.slice(row, 1), self.from)?;
                self.misfit(ErrorCode::TruncatedValue, row, "datetime", text.value(0))?;
            }
            values.push(kept);
        }
        Ok(values)
    }

    /// What a column gets, in microseconds.
    fn assigned_micros(&self, array: &ArrayRef, digits: u8) -> Result<Vec<Option<i64>>> {
        let time_zone = convert::time_zone_seconds(self.session);
        let rows = array.len();
        let is_time = matches!(self.target, ColumnType::Time { .. });
        let found: Vec<Option<Found>> = match array.data_type() {
            DataType::Utf8View | DataType::BinaryView => {
                let texts = convert::to_readable(array, self.from)?;
                let read = |text: Option<&str>| match is_time {
                    true => time_of_text(text?),
                    false => moment_of_text(text?, time_zone),
                };
                texts.iter().map(read).collect()
            }
            DataType::Date32 | DataType::Timestamp(_, _) | DataType::Duration(_) => {
                let micros = match is_time {
                    true => micros_of(&(Arc::new(convert::to_time(array, None)?) as ArrayRef)),
                    false => {
                        micros_of(&(Arc::new(convert::to_moment(array, self.session)?) as ArrayRef))
                    }
                };
                let found = |micros: Option<i64>| Some(Found::whole(micros?));
                micros.into_iter().map(found).collect()
            }
            _ => self.found_of_numbers(array)?,
        };
        let mut values = Vec::with_capacity(rows);
        for (row, found) in found.into_iter().enumerate() {
            if array.is_null(row) {
                values.push(None);
                continue;
            }
            values.push(self.fitted(array, row, found, digits, time_zone)?);
        }
        Ok(values)
    }

    /// What a column holds of a value; reports one that it cannot hold as it is.
    fn fitted(
        &self,
        array: &ArrayRef,
        row: usize,
        found: Option<Found>,
        digits: u8,
        time_zone: i64,
    ) -> Result<Option<i64>> {
        let is_time = matches!(self.target, ColumnType::Time { .. });
        let (mut value, mut is_beyond) = (None, false);
        let is_whole = found.as_ref().is_some_and(|found| found.is_whole);
        if let Some(found) = found {
            is_beyond = found.is_beyond;
            value = match self.target {
                ColumnType::Date => (!is_beyond).then_some(found.micros),
                ColumnType::Time { .. } => Some(calendar::clip_time(rounded(found.micros, digits))),
                _ => {
                    let moment = rounded_moment(found.micros, digits);
                    is_beyond |= !self.holds(moment, time_zone);
                    (!is_beyond).then_some(moment)
                }
            };
        } else if is_time && !self.is_cast() {
            value = Some(0);
        }
        if is_beyond || !is_whole {
            let texts = convert::to_readable(&array.slice(row, 1), self.from)?;
            let what = match self.target {
                ColumnType::Date => "date",
                ColumnType::Time { .. } => "time",
                _ => "datetime",
            };
            let code = match self.purpose {
                Purpose::Assign { strict: false, .. } if is_beyond => ErrorCode::OutOfRange,
                _ => ErrorCode::TruncatedValue,
            };
            self.misfit(code, row, what, texts.value(0))?;
        } else if !self.is_cast() {
            let is_moment = matches!(
                array.data_type(),
                DataType::Date32 | DataType::Timestamp(_, _)
            );
            let is_cut = match self.target {
                ColumnType::Date => value.is_some_and(|value| value.rem_euclid(DAY_MICROS) != 0),
                ColumnType::Time { .. } => is_moment,
                _ => false,
            };
            if is_cut {
                self.note_cut(row);
            }
        }
        Ok(value)
    }

    /// Whether a column of moments holds this one: TIMESTAMP counts 31 bits of seconds of UTC.
    fn holds(&self, moment: i64, time_zone: i64) -> bool {
        match self.target {
            ColumnType::Timestamp { .. } => {
                let utc = moment - time_zone * MICROS;
                (1..=i64::from(i32::MAX)).contains(&utc.div_euclid(MICROS))
            }
            _ => calendar::is_moment(moment),
        }
    }

    /// What numbers such as 20240131 and 123000.5 stand for.
    fn found_of_numbers(&self, array: &ArrayRef) -> Result<Vec<Option<Found>>> {
        let is_time = matches!(self.target, ColumnType::Time { .. });
        let numbers = self.numbers_with_micros(array)?.into_iter();
        let read = |number: Option<(i64, i64)>| {
            let (whole, micros) = number?;
            match is_time {
                true => time_of_number(whole, micros),
                false => {
                    let moment = calendar::moment_of_number(whole)?;
                    Some(Found::whole(moment + micros))
                }
            }
        };
        Ok(numbers.map(read).collect())
    }

    /// Numbers as whole ones and millionths, both with the sign.
    fn numbers_with_micros(&self, array: &ArrayRef) -> Result<Vec<Option<(i64, i64)>>> {
        if array.data_type().is_integer() || array.data_type() == &DataType::Boolean {
            let whole = convert::to_integer(array, self.session)?;
            return Ok(whole.iter().map(|whole| Some((whole?, 0))).collect());
        }
        let of = unify::decimal(32, 6);
        let millionths = super::convert_array(array, self.from, &of, None)?;
        let millionths = millionths.as_primitive::<arrow::datatypes::Decimal128Type>();
        let million = i128::from(MICROS);
        let clip = |value: i128| {
            i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
        };
        let split = |value: Option<i128>| Some((clip(value? / million), clip(value? % million)));
        Ok(millionths.iter().map(split).collect())
    }
}

impl Found {
    fn whole(micros: i64) -> Found {
        Found {
            micros,
            is_whole: true,
            is_beyond: false,
        }
    }
}

fn time_of_text(text: &str) -> Option<Found> {
    let read = calendar::read_whole_time(text)?;
    Some(Found {
        micros: read.micros,
        is_whole: !read.has_rest,
        is_beyond: read.is_beyond,
    })
}

fn moment_of_text(text: &str, time_zone: i64) -> Option<Found> {
    let read = calendar::read_moment(text)?;
    let micros = read.moment_in(time_zone);
    Some(Found {
        micros,
        is_whole: !read.has_garbage(),
        is_beyond: !calendar::is_moment(micros),
    })
}

fn time_of_number(whole: i64, micros: i64) -> Option<Found> {
    let read = calendar::whole_time_of_number(whole)?;
    let is_beyond = read.is_beyond;
    Some(Found {
        micros: if is_beyond {
            read.micros
        } else {
            calendar::clip_time(read.micros + micros)
        },
        is_whole: true,
        is_beyond,
    })
}
