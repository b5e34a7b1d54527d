//! AUTO_INCREMENT: numbers for rows that have none.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use arrow::error::ArrowError;
use mayfly_table::Table;
use mayfly_types::{ErrorCode, MySqlError};

use crate::errors;

/// Gives numbers to the rows of one statement, in their order.
pub(crate) struct Counter {
    /// The column that is counted up.
    pub(crate) column: usize,
    /// Whether 0 asks for a number as NULL does: not under NO_AUTO_VALUE_ON_ZERO.
    counts_zero: bool,
    /// The greatest number that the column holds.
    last: u64,
    /// The numbers that rows of the last batch were given.
    given: Vec<Option<u64>>,
    /// The first number of a row that is there.
    first: Option<u64>,
    /// The next number, where `insert_id` said the first.
    said: Option<u64>,
}

impl Counter {
    /// The counter of a table; `None` if no column is AUTO_INCREMENT.
    pub(crate) fn of(table: &Table, counts_zero: bool) -> Option<Counter> {
        let column = table.definition().auto_increment()?;
        let last = match table.columns()[column].column_type.data_type() {
            DataType::Int8 => i8::MAX.unsigned_abs().into(),
            DataType::UInt8 => u8::MAX.into(),
            DataType::Int16 => i16::MAX.unsigned_abs().into(),
            DataType::UInt16 => u16::MAX.into(),
            DataType::Int32 => i32::MAX.unsigned_abs().into(),
            DataType::UInt32 => u32::MAX.into(),
            DataType::UInt64 => u64::MAX - 1,
            _ => i64::MAX.unsigned_abs(),
        };
        Some(Counter {
            column,
            counts_zero,
            last,
            given: Vec::new(),
            first: None,
            said: None,
        })
    }

    /// Lets the first number be that of `insert_id`, unless that is 0.
    pub(crate) fn begin_with(&mut self, insert_id: u64) {
        self.said = Some(insert_id).filter(|id| *id > 0);
    }

    /// Whether the first number is still to be given that `insert_id` said.
    pub(crate) fn waits(&self) -> bool {
        self.said.is_some() && self.given.iter().all(Option::is_none)
    }

    /// Lets 0 stay 0.
    pub(crate) fn keep_zeros(&mut self) {
        self.counts_zero = false;
    }

    /// The first number that was given to a row that is there: what LAST_INSERT_ID() says.
    pub(crate) fn first(&self) -> Option<u64> {
        self.first
    }

    /// Some rows of the last batch were written.
    pub(crate) fn written(&mut self, rows: impl IntoIterator<Item = usize>) {
        if self.first.is_none() {
            let mut given = rows.into_iter().filter_map(|row| *self.given.get(row)?);
            self.first = given.next();
        }
    }

    /// Values that UPDATE gives push the counter up.
    pub(crate) fn raise(table: &Table, values: &ArrayRef) -> Result<(), ArrowError> {
        let (_, greatest) = look_at(values, false)?;
        table.raise_auto_increment(greatest.saturating_add(1));
        Ok(())
    }

    /// The values of the column with a number where there was none. Greater values that are given
    /// push the counter up.
    ///
    /// # Errors
    /// 1467 when the column cannot hold the next number.
    pub(crate) fn fill(
        &mut self,
        table: &Table,
        values: &ArrayRef,
    ) -> Result<ArrayRef, MySqlError> {
        let plan = |error: arrow::error::ArrowError| errors::from_plan(&error.into());
        let (missing, greatest) = look_at(values, self.counts_zero).map_err(plan)?;
        self.given.clear();
        if !missing.contains(&true) {
            table.raise_auto_increment(greatest.saturating_add(1));
            return Ok(ArrayRef::clone(values));
        }
        let is_unsigned = values.data_type() == &DataType::UInt64;
        let wide = match is_unsigned {
            true => cast(values, &DataType::UInt64),
            false => cast(values, &DataType::Int64),
        }
        .map_err(plan)?;
        let mut filled = Vec::with_capacity(values.len());
        for (row, is_missing) in missing.into_iter().enumerate() {
            if is_missing {
                let next = self.said.unwrap_or_else(|| table.auto_increment());
                if next > self.last {
                    return Err(MySqlError::new(ErrorCode::AutoIncrementFailed, &[]));
                }
                table.raise_auto_increment(next + 1);
                self.said = self.said.map(|said| said + 1);
                self.given.resize(row + 1, None);
                self.given[row] = Some(next);
                filled.push(next);
                continue;
            }
            let value = match is_unsigned {
                true => wide.as_primitive::<UInt64Type>().value(row),
                false => {
                    let value = wide.as_primitive::<Int64Type>().value(row);
                    table.raise_auto_increment(u64::try_from(value).map_or(0, |value| value + 1));
                    value.cast_unsigned()
                }
            };
            if is_unsigned {
                table.raise_auto_increment(value.saturating_add(1));
            }
            filled.push(value);
        }
        let filled: ArrayRef = match is_unsigned {
            true => Arc::new(UInt64Array::from(filled)),
            false => {
                let filled = filled.into_iter().map(u64::cast_signed);
                Arc::new(filled.collect::<Int64Array>())
            }
        };
        cast(&filled, values.data_type()).map_err(plan)
    }
}

/// For each row whether it needs a number, and the greatest value that is given.
fn look_at(values: &ArrayRef, counts_zero: bool) -> Result<(Vec<bool>, u64), ArrowError> {
    let mut greatest = 0;
    let needs = |value: Option<u64>| value.is_none() || value == Some(0) && counts_zero;
    let missing = match values.data_type() {
        DataType::UInt64 => {
            let values = values.as_primitive::<UInt64Type>().iter();
            let seen = values.inspect(|value| greatest = greatest.max(value.unwrap_or(0)));
            seen.map(needs).collect()
        }
        _ => {
            let wide = cast(values, &DataType::Int64)?;
            let values = wide.as_primitive::<Int64Type>().iter();
            let mut missing = Vec::with_capacity(wide.len());
            for value in values {
                greatest = greatest.max(value.and_then(|v| u64::try_from(v).ok()).unwrap_or(0));
                missing.push(needs(value.map(i64::cast_unsigned)));
            }
            missing
        }
    };
    Ok((missing, greatest))
}
