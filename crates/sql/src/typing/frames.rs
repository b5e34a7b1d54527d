//! Frames of windows: what the ends of a RANGE are measured in.
//!
//! The planner has the text of a distance. A number stays one, for the stock coercion to give it
//! the type of the key; months and microseconds, as `rewrite/windows.rs` writes an interval, become
//! one of months, days and nanoseconds. A key that a distance cannot be added to as it stands is
//! converted:
//!
//! ```text
//!   ORDER BY a_date RANGE INTERVAL 36 HOUR PRECEDING     CAST(a_date AS DATETIME(6))
//!   ORDER BY a_time RANGE INTERVAL 90 MINUTE PRECEDING   CAST(a_time AS DATETIME(6)), some day
//!   ORDER BY an_int RANGE 1.5 PRECEDING                  CAST(an_int AS DECIMAL(21, 1))
//! ```
//!
//! Rows are in the same order by what is converted, and equal by it if they are equal.
//!
//! **Source**: "Window Function Frame Specification" of the MySQL manual. MariaDB has no intervals
//! here.

use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::WindowFunctionParams;
use datafusion::logical_expr::{Expr, WindowFrameBound, WindowFrameUnits};
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::kind::{Kind, kind};
use super::nameless::{data_type_of, type_of};
use crate::functions::calendar::DAY_MICROS;
use crate::functions::date::interval::Interval;
use crate::functions::unify::{self, DECIMAL_SCALE};
use crate::functions::{cast, raise};

/// What a window without a name is called in errors.
const UNNAMED: &str = "<unnamed window>";

/// Looks at the key of a frame of values as it is written.
///
/// # Errors
/// 3587 if a frame of values is to be made of texts: MySQL takes a list for one.
pub(super) fn check(params: &WindowFunctionParams, schema: &DFSchema) -> Result<()> {
    if !is_of_values(params) {
        return Ok(());
    }
    for key in &params.order_by {
        if matches!(kind(&key.expr, schema)?, Kind::Text | Kind::Bytes) {
            return Err(wrong(ErrorCode::WindowRangeKey));
        }
    }
    Ok(())
}

/// Gives the ends of a frame, and its key, types that go together.
///
/// # Errors
/// 3586 for a distance that is too long; 3588 and 3589 for a number beside a moment, and
/// an interval beside a number.
pub(super) fn write(params: &mut WindowFunctionParams, schema: &DFSchema) -> Result<()> {
    if params.window_frame.units != WindowFrameUnits::Range {
        return Ok(());
    }
    let Some(key) = params.order_by.first_mut() else {
        return Ok(());
    };
    let data_type = data_type_of(&key.expr, schema)?;
    let frame = &mut params.window_frame;
    let mut bounds = [&mut frame.start_bound, &mut frame.end_bound].map(distance);
    if bounds.iter().all(Option::is_none) {
        if !counts_ranges(&data_type) {
            frame.units = WindowFrameUnits::Groups;
        }
        return Ok(());
    }
    let written: Vec<&mut ScalarValue> = bounds.iter_mut().filter_map(Option::take).collect();
    match data_type {
        DataType::Date32 | DataType::Timestamp(..) | DataType::Duration(_) => {
            let mut needs_moment = matches!(data_type, DataType::Duration(_));
            for distance in written {
                if let Some(interval) = interval_of(distance)? {
                    needs_moment |=
                        data_type == DataType::Date32 && interval.micros % DAY_MICROS != 0;
                    *distance = scalar_of(interval)?;
                }
            }
            if needs_moment {
                convert(&mut key.expr, ColumnType::DateTime { digits: 6 });
            }
        }
        _ => {
            let mut digits = 0;
            for distance in written {
                digits = digits.max(digits_of(distance)?);
            }
            if let Some(wider) = wider(&type_of(&key.expr, schema)?, digits) {
                convert(&mut key.expr, wider);
            }
        }
    }
    Ok(())
}

/// The distance of an end that has one.
fn distance(bound: &mut WindowFrameBound) -> Option<&mut ScalarValue> {
    match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => {
            (!distance.is_null()).then_some(distance)
        }
        WindowFrameBound::CurrentRow => None,
    }
}

fn is_of_values(params: &WindowFunctionParams) -> bool {
    let frame = &params.window_frame;
    let has_distance = |bound: &WindowFrameBound| distance(&mut bound.clone()).is_some();
    frame.units == WindowFrameUnits::Range
        && (has_distance(&frame.start_bound) || has_distance(&frame.end_bound))
}

/// Whether the engine makes frames of the values of a type. Where they end at no distance they are
/// those of the groups of equal rows, of any type.
fn counts_ranges(of: &DataType) -> bool {
    let is_time = matches!(of, DataType::Duration(_));
    !is_time && !of.is_binary()
}

/// The months and microseconds of a text; `None` if the distance has its type already.
fn interval_of(distance: &ScalarValue) -> Result<Option<Interval>> {
    let Some(Some(text)) = distance.try_as_str() else {
        return Ok(None);
    };
    let Some((months, micros)) = text.split_once(' ') else {
        return Err(wrong(ErrorCode::WindowRangeTemporal));
    };
    let number = |text: &str| text.parse().map_err(|_| wrong(ErrorCode::WindowFrame));
    Ok(Some(Interval {
        months: number(months)?,
        micros: number(micros)?,
    }))
}

/// Whole days are kept apart: a DATE has no time of day to add to.
fn scalar_of(interval: Interval) -> Result<ScalarValue> {
    let too_long = |_| wrong(ErrorCode::WindowFrame);
    let months = i32::try_from(interval.months).map_err(too_long)?;
    let days = i32::try_from(interval.micros / DAY_MICROS).map_err(too_long)?;
    let nanos = interval.micros % DAY_MICROS * 1000;
    let interval = IntervalMonthDayNano::new(months, days, nanos);
    Ok(ScalarValue::IntervalMonthDayNano(Some(interval)))
}

/// How many digits a number has behind its point.
fn digits_of(distance: &ScalarValue) -> Result<u8> {
    let Some(Some(text)) = distance.try_as_str() else {
        return Ok(0);
    };
    if text.contains(' ') {
        return Err(wrong(ErrorCode::WindowRangeNumeric));
    }
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = u8::try_from(fraction.len()).ok();
    digits
        .filter(|digits| *digits <= DECIMAL_SCALE)
        .ok_or_else(|| wrong(ErrorCode::WindowFrame))
}

/// The type of exact numbers with so many digits behind the point, if one has less.
fn wider(of: &ColumnType, digits: u8) -> Option<ColumnType> {
    const LONGEST_INTEGER: u8 = 20;
    let (before, scale) = match of {
        ColumnType::Decimal {
            precision, scale, ..
        } => (precision - scale, *scale),
        of if of.is_integer() => (LONGEST_INTEGER, 0),
        _ => return None,
    };
    (digits > scale).then(|| unify::decimal(before, digits))
}

fn convert(key: &mut Expr, to: ColumnType) {
    *key = cast::conversion(to).call(vec![std::mem::take(key)]);
}

fn wrong(code: ErrorCode) -> datafusion::error::DataFusionError {
    raise(MySqlError::new(code, &[&UNNAMED]))
}
