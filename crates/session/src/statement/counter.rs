//! AUTO_INCREMENT: numbers for rows that have none.
//!
//! Numbers are taken from the table as InnoDB takes them: an INSERT ... VALUES takes as many as it
//! has rows when the first is needed, any other statement takes them one by one. What was taken
//! does not come back, but within a statement a row that is left out, or that changes another one
//! instead, leaves its number to the next. (MyISAM takes no more than it needs; InnoDB takes 1, 2,
//! 4, ... for a statement whose rows it does not know, and so leaves gaps that are not made here.)

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, Schema, SchemaRef, UInt64Type};
use arrow::error::ArrowError;
use mayfly_table::Table;
use mayfly_types::{ErrorCode, MySqlError};

use crate::errors;

/// Which numbers are given.
#[derive(Clone, Copy)]
pub(crate) struct Numbering {
    /// Whether 0 asks for a number as NULL does: not under NO_AUTO_VALUE_ON_ZERO.
    pub(crate) counts_zero: bool,
    /// From one number to the next: `auto_increment_increment`.
    pub(crate) increment: u64,
    /// The first number, if it is not beyond the increment: `auto_increment_offset`.
    pub(crate) offset: u64,
}

impl Default for Numbering {
    fn default() -> Self {
        Numbering {
            counts_zero: true,
            increment: 1,
            offset: 1,
        }
    }
}

impl Numbering {
    /// The first number from `start` on.
    fn at(self, start: u64) -> u64 {
        let offset = match self.offset > self.increment {
            true => 0,
            false => self.offset,
        };
        let steps = start.saturating_sub(offset).div_ceil(self.increment);
        offset.saturating_add(steps.saturating_mul(self.increment))
    }

    fn behind(self, number: u64) -> u64 {
        number.saturating_add(self.increment)
    }
}

/// Gives numbers to the rows of one statement, in their order.
#[derive(Clone)]
pub(crate) struct Counter {
    /// The column that is counted up.
    pub(crate) column: usize,
    numbering: Numbering,
    /// The greatest number that the column holds.
    last: u64,
    /// The first number, where `insert_id` says it; else 0.
    said: u64,
    /// The rows of the statement, as far as they are known.
    rows: u64,
    /// The number that is given next; `None` before the first is needed.
    next: Option<u64>,
    /// Where the numbers end that were taken from the table.
    taken: u64,
    /// What follows the greatest number that a row brought itself.
    behind_given: u64,
    /// The numbers that rows of the last batch were given.
    numbered: Vec<Option<u64>>,
    /// The first number of a row that is there.
    first: Option<u64>,
    /// What the last row of the last batch has in the column, and the last row that is there.
    of_batch: u64,
    of_last_row: u64,
    /// Whether nothing that is given counts.
    is_trial: bool,
}

impl Counter {
    /// The counter of a table; `None` if no column is AUTO_INCREMENT.
    pub(crate) fn of(table: &Table, numbering: Numbering) -> Option<Counter> {
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
            numbering,
            last,
            said: 0,
            rows: 1,
            next: None,
            taken: 0,
            behind_given: 0,
            numbered: Vec::new(),
            first: None,
            of_batch: 0,
            of_last_row: 0,
            is_trial: false,
        })
    }

    /// Lets the first number be that of `insert_id`, unless that is 0.
    pub(crate) fn begin_with(&mut self, insert_id: u64) {
        self.said = insert_id;
    }

    /// Says how many rows will come.
    pub(crate) fn expect(&mut self, rows: usize) {
        self.rows = rows.max(1) as u64;
    }

    /// Lets 0 stay 0.
    pub(crate) fn keep_zeros(&mut self) {
        self.numbering.counts_zero = false;
    }

    /// Whether the first number is still to be given that `insert_id` said.
    pub(crate) fn waits(&self) -> bool {
        self.said > 0 && self.next.is_none()
    }

    /// The first number that was given to a row that is there: what LAST_INSERT_ID() says.
    pub(crate) fn first(&self) -> Option<u64> {
        self.first
    }

    /// What a client gets as the number of the insert: the first that was given, or else what the
    /// last row brought itself, as in MariaDB.
    pub(crate) fn insert_id(&self) -> u64 {
        self.first.unwrap_or(self.of_last_row)
    }

    /// The rows of the last batch will be there if the statement does not fail.
    pub(crate) fn remember_first(&mut self) {
        if self.first.is_none() {
            self.first = self.numbered.iter().flatten().next().copied();
        }
        self.of_last_row = self.of_batch;
    }

    /// The rows of the last batch, and those before, are written.
    pub(crate) fn written(&mut self, table: &Table) {
        self.remember_first();
        table.raise_auto_increment(self.behind_given);
    }

    /// Values that UPDATE gives push the counter up.
    pub(crate) fn raise(table: &Table, values: &ArrayRef) -> Result<(), ArrowError> {
        let (_, greatest) = look_at(values, false)?;
        table.raise_auto_increment(greatest.saturating_add(1));
        Ok(())
    }

    /// The values as [`Counter::fill`] would make them if all rows were written, and whether rows
    /// with a number of their own stand among those without. Numbers are taken, but none is given.
    ///
    /// # Errors
    /// As [`Counter::fill`].
    pub(crate) fn tried(
        &mut self,
        table: &Table,
        values: &ArrayRef,
    ) -> Result<(ArrayRef, bool), MySqlError> {
        let (missing, _) = look_at(values, self.numbering.counts_zero)
            .map_err(|error| errors::from_plan(&error.into()))?;
        let missing = missing.into_iter().filter(|missing| *missing).count();
        if missing > 0 {
            self.begin(table);
        }
        let filled = self.foretold(table, values)?;
        Ok((filled, missing > 0 && missing < values.len()))
    }

    /// The values of the column with a number where there was none.
    ///
    /// # Errors
    /// 1467 when the column cannot hold the next number.
    pub(crate) fn fill(
        &mut self,
        table: &Table,
        values: &ArrayRef,
    ) -> Result<ArrayRef, MySqlError> {
        let plan = |error: ArrowError| errors::from_plan(&error.into());
        let (missing, greatest) = look_at(values, self.numbering.counts_zero).map_err(plan)?;
        self.numbered.clear();
        if !missing.contains(&true) {
            self.pass(greatest);
            self.of_batch = last_of(values).map_err(plan)?;
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
                let next = self.begin(table);
                if next > self.last {
                    return Err(MySqlError::new(ErrorCode::AutoIncrementFailed, &[]));
                }
                let behind = self.numbering.behind(next);
                self.next = Some(behind);
                self.take(table, behind);
                self.numbered.resize(row + 1, None);
                self.numbered[row] = Some(next);
                filled.push(next);
                continue;
            }
            let value = match is_unsigned {
                true => wide.as_primitive::<UInt64Type>().value(row),
                false => {
                    let value = wide.as_primitive::<Int64Type>().value(row);
                    self.pass(u64::try_from(value).unwrap_or(0));
                    value.cast_unsigned()
                }
            };
            if is_unsigned {
                self.pass(value);
            }
            filled.push(value);
        }
        self.of_batch = filled.last().copied().unwrap_or(0);
        let filled: ArrayRef = match is_unsigned {
            true => Arc::new(UInt64Array::from(filled)),
            false => {
                let filled = filled.into_iter().map(u64::cast_signed);
                Arc::new(filled.collect::<Int64Array>())
            }
        };
        cast(&filled, values.data_type()).map_err(plan)
    }

    /// The values as [`Counter::fill`] would make them now, without taking numbers.
    ///
    /// # Errors
    /// As [`Counter::fill`].
    pub(crate) fn foretold(
        &self,
        table: &Table,
        values: &ArrayRef,
    ) -> Result<ArrayRef, MySqlError> {
        let mut trial = Counter {
            is_trial: true,
            ..self.clone()
        };
        trial.fill(table, values)
    }

    /// The number that is given next; those for all rows are taken with the first.
    fn begin(&mut self, table: &Table) -> u64 {
        if let Some(next) = self.next {
            return next;
        }
        let next = match self.said {
            0 => {
                let start = table.auto_increment().max(self.behind_given);
                self.numbering.at(start)
            }
            said => said,
        };
        self.next = Some(next);
        self.take(
            table,
            next.saturating_add(self.rows.saturating_mul(self.numbering.increment))
                .min(self.last.saturating_add(1)),
        );
        next
    }

    fn take(&mut self, table: &Table, end: u64) {
        if end > self.taken && !self.is_trial {
            self.taken = end;
            table.raise_auto_increment(end);
        }
    }

    /// A row brings a number itself.
    fn pass(&mut self, number: u64) {
        let behind = number.saturating_add(1);
        self.behind_given = self.behind_given.max(behind);
        let numbering = self.numbering;
        self.next = self.next.map(|next| match next < behind {
            true => numbering.at(behind),
            false => next,
        });
    }
}

/// The last of some values, 0 for none and for less.
pub(crate) fn last_of(values: &ArrayRef) -> Result<u64, ArrowError> {
    let last = values.slice(values.len().saturating_sub(1), values.len().min(1));
    Ok(match last.data_type() {
        DataType::UInt64 => last.as_primitive::<UInt64Type>().iter().flatten().next(),
        _ => {
            let wide = cast(&last, &DataType::Int64)?;
            let value = wide.as_primitive::<Int64Type>().iter().flatten().next();
            value.and_then(|value| u64::try_from(value).ok())
        }
    }
    .unwrap_or(0))
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

/// The schema of rows that have no numbers yet.
pub(crate) fn unnumbered(table: &Table) -> SchemaRef {
    let Some(counted) = table.definition().auto_increment() else {
        return Arc::clone(table.schema());
    };
    let fields = table.schema().fields().iter().enumerate();
    let fields = fields.map(|(place, field)| match place == counted {
        true => Arc::new(field.as_ref().clone().with_nullable(true)),
        false => Arc::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
