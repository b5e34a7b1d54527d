//! Values as days, moments and times.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DurationMicrosecondType, TimestampMicrosecondType};
use datafusion::error::Result;
use mayfly_types::{ColumnType, ErrorCode};

use super::Conversions;
use crate::functions::convert;

impl Conversions<'_> {
    /// Days, moments and times; moments and times rounded to the digits of a second.
    pub(super) fn temporal(&self, array: &ArrayRef, digits: u8) -> Result<ArrayRef> {
        let unit = 10_i64.pow(u32::from(6 - digits.min(6)));
        let round = |micros: i64| {
            if unit == 1 {
                return micros;
            }
            (micros + if micros < 0 { -(unit / 2) } else { unit / 2 }) / unit * unit
        };
        let round_moment = |micros: i64| (micros + unit / 2).div_euclid(unit) * unit;
        // Values that are no time warn in a cast and are an error in a strict assignment.
        let session = if self.is_cast() { self.session } else { None };
        let result: ArrayRef = match self.target {
            ColumnType::Date => Arc::new(convert::to_day(array, session)?),
            ColumnType::Time { .. } => Arc::new(
                convert::to_time(array, session)?.unary::<_, DurationMicrosecondType>(round),
            ),
            _ if unit == 1 => Arc::new(convert::to_moment(array, session)?),
            _ => Arc::new(
                convert::to_moment(array, session)?
                    .unary::<_, TimestampMicrosecondType>(round_moment),
            ),
        };
        if !self.is_cast() && result.null_count() > array.null_count() {
            let texts = convert::to_text(array, self.from)?;
            let what = match self.target {
                ColumnType::Date => "date",
                ColumnType::Time { .. } => "time",
                _ => "datetime",
            };
            for row in (0..array.len()).filter(|row| result.is_null(*row)) {
                if texts.is_valid(row) {
                    let value = texts.value(row);
                    self.misfit(ErrorCode::TruncatedValue, row, what, value)?;
                }
            }
        }
        Ok(result)
    }
}
