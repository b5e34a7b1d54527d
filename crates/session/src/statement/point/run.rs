//! The work of a statement on rows: values into columns, a search of the index, a change.
//!
//! Nothing is changed before all is known to fit: what returns `None` has done nothing.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt64Array};
use arrow::compute::kernels::boolean::or;
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use mayfly_sql::literal::{Literal, column_of};
use mayfly_table::{Change, Search, Table, TableSnapshot};
use mayfly_types::MySqlError;

use tokio::sync::OwnedMutexGuard;

use super::Done;
use super::known::{Action, Cell, Choice, Given, NewValue, PointStatement, Target, Value};
use crate::connection::Connection;
use crate::errors;
use crate::statement::Turn;
use crate::statement::counter::Counter;

/// Most rows that are found here: more are worth a plan.
const ROWS_MAX: usize = 64;

type Found<T> = Result<Option<T>, MySqlError>;

impl PointStatement {
    /// Runs the statement; `None` where it must go the long way, and nothing was done.
    pub(super) fn run(
        &self,
        connection: &Connection,
        target: &Target,
        given: &Given<'_>,
    ) -> Found<Done> {
        let constants = &given.constants;
        match &self.action {
            Action::Insert { columns, width } => insert(connection, target, columns, *width, given),
            Action::Update { rows, assignments } => {
                update(connection, target, rows, assignments, constants)
            }
            Action::Delete(rows) => delete(connection, target, rows, constants),
            Action::Select { rows, columns } => select(target, rows, columns, constants),
        }
    }
}

fn insert(
    connection: &Connection,
    target: &Target,
    columns: &[Cell],
    width: usize,
    given: &Given<'_>,
) -> Found<Done> {
    let table = &target.table;
    let rows = given.rows;
    if rows * width != given.constants.len() {
        return Ok(None);
    }
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    let mut values = Vec::with_capacity(rows);
    for (cell, column) in columns.iter().zip(table.columns()) {
        cell.values(given, width, &mut values);
        let takes_null = column.is_nullable || column.is_auto_increment;
        if !takes_null && values.iter().any(Option::is_none) {
            return Ok(None);
        }
        match column_of(&values, &column.column_type) {
            Some(array) => arrays.push(array),
            None => return Ok(None),
        }
    }
    let Some(_turn) = turn(connection, target) else {
        return Ok(None);
    };
    let mut counter = Counter::of(table, target.settings.counts_zero);
    if let Some(counter) = &mut counter {
        let numbers = &mut arrays[counter.column];
        *numbers = counter.fill(table, numbers)?;
    }
    let batch = batch_of(table, arrays, rows)?;
    let mut appender = table.begin_append();
    appender.append(&batch).map_err(table_error)?;
    if let Some(counter) = &mut counter {
        counter.written(0..rows);
    }
    connection.before_change(table)?;
    appender.commit().map_err(table_error)?;
    Ok(Some(Done::Inserted {
        rows: rows as u64,
        first_number: counter.as_ref().and_then(Counter::first),
    }))
}

fn update(
    connection: &Connection,
    target: &Target,
    rows: &Choice,
    assignments: &[(usize, NewValue)],
    constants: &[Option<Literal<'_>>],
) -> Found<Done> {
    let Some((search, _turn)) = begin(connection, target, rows, constants) else {
        return Ok(None);
    };
    let mut change = target.table.begin_change();
    let Some((snapshot, ids)) = find(&target.table, &search)? else {
        return Ok(None);
    };
    let matched = ids.len();
    if matched == 0 {
        return Ok(Some(Done::Updated {
            matched: 0,
            changed: 0,
        }));
    }
    let old = snapshot.rows(&ids, None).map_err(table_error)?;
    let mut arrays = old.columns().to_vec();
    let mut differs: Option<BooleanArray> = None;
    for (column, value) in assignments {
        let column_type = &target.table.columns()[*column].column_type;
        let before = old.column(*column);
        let summed;
        let values: Vec<Value<'_>> = match value {
            NewValue::Value(cell) => vec![cell.value(constants); matched],
            NewValue::Sum { is_minus, other } => {
                match sums(before, *is_minus, other.value(constants)) {
                    Some(sums) => summed = sums,
                    None => return Ok(None),
                }
                summed.iter().map(Option::as_ref).collect()
            }
        };
        let Some(after) = column_of(&values, column_type) else {
            return Ok(None);
        };
        let differing = distinct(&after, before).map_err(plan_error)?;
        differs = Some(match differs {
            Some(others) => or(&others, &differing).map_err(plan_error)?,
            None => differing,
        });
        arrays[*column] = after;
    }
    let differs = differs.unwrap_or_else(|| BooleanArray::from(vec![false; matched]));
    let changed = differs.true_count();
    if changed > 0 {
        let mut new = batch_of(&target.table, arrays, matched)?;
        let mut gone = ids;
        if changed < matched {
            new = filter_record_batch(&new, &differs).map_err(plan_error)?;
            let mut row = 0;
            gone.retain(|_| {
                row += 1;
                differs.value(row - 1)
            });
        }
        let ids = UInt64Array::from(gone);
        change.replace(&ids, &new).map_err(table_error)?;
        if !commit(connection, target, change)? {
            return Ok(None);
        }
    }
    Ok(Some(Done::Updated {
        matched: matched as u64,
        changed: changed as u64,
    }))
}

fn delete(
    connection: &Connection,
    target: &Target,
    rows: &Choice,
    constants: &[Option<Literal<'_>>],
) -> Found<Done> {
    let Some((search, _turn)) = begin(connection, target, rows, constants) else {
        return Ok(None);
    };
    let mut change = target.table.begin_change();
    let Some((_, ids)) = find(&target.table, &search)? else {
        return Ok(None);
    };
    change.remove(&UInt64Array::from(ids));
    let removed = change.changed();
    if !commit(connection, target, change)? {
        return Ok(None);
    }
    Ok(Some(Done::Deleted(removed)))
}

fn select(
    target: &Target,
    rows: &Choice,
    columns: &[usize],
    constants: &[Option<Literal<'_>>],
) -> Found<Done> {
    if !target.settings.selects_all {
        return Ok(None);
    }
    let Some(search) = rows.search(&target.table, constants) else {
        return Ok(None);
    };
    let Some((snapshot, ids)) = find(&target.table, &search)? else {
        return Ok(None);
    };
    let rows = snapshot.rows(&ids, Some(columns)).map_err(table_error)?;
    Ok(Some(Done::Selected(rows)))
}

impl Choice {
    /// The search for some constants; `None` where one of them is not a value of its column.
    fn search(&self, table: &Table, constants: &[Option<Literal<'_>>]) -> Option<Search> {
        let mut values = Vec::with_capacity(self.parts.len());
        for (column, cell) in &self.parts {
            let value = cell.value(constants)?;
            // How spaces at the end compare is not the business of a search.
            if value.is_text && value.spelled.ends_with(' ') {
                return None;
            }
            let column = &table.columns()[*column];
            values.push(column_of(&[Some(value)], &column.column_type)?);
        }
        Some(Search::equal(self.key, values))
    }
}

/// The search for the rows that a statement changes, and the right to change them.
fn begin(
    connection: &Connection,
    target: &Target,
    rows: &Choice,
    constants: &[Option<Literal<'_>>],
) -> Option<(Search, Option<Turn>)> {
    let search = rows.search(&target.table, constants)?;
    Some((search, turn(connection, target)?))
}

/// The rows that a search finds; `None` when they are many.
fn find(table: &Arc<Table>, search: &Search) -> Found<(TableSnapshot, Vec<u64>)> {
    let searches = std::slice::from_ref(search);
    let found = table.search(searches, ROWS_MAX).map_err(table_error)?;
    let Some((snapshot, numbers)) = found else {
        return Ok(None);
    };
    let ids = snapshot.locate(numbers).map_err(table_error)?;
    Ok(Some((snapshot, ids)))
}

/// The old values of a column and a constant, added up; `None` where that is no whole number.
fn sums(old: &ArrayRef, is_minus: bool, other: Value<'_>) -> Option<Vec<Option<Literal<'static>>>> {
    let Some(other) = other else {
        return Some(vec![None; old.len()]);
    };
    let other = match is_minus {
        true => -other.integer()?,
        false => other.integer()?,
    };
    let sum = |value: Option<i128>| value.map(|value| Literal::integral(value + other));
    Some(match old.data_type() {
        DataType::UInt64 => {
            let values = old.as_primitive::<UInt64Type>().iter();
            values.map(|value| sum(value.map(i128::from))).collect()
        }
        _ => {
            let wide = cast(old, &DataType::Int64).ok()?;
            let values = wide.as_primitive::<Int64Type>().iter();
            values.map(|value| sum(value.map(i128::from))).collect()
        }
    })
}

/// The right to write, as long as nobody else has it: `Some(None)` where none is needed.
fn turn(connection: &Connection, target: &Target) -> Option<Option<Turn>> {
    let Some(turns) = connection.turns_of(&target.table, target.is_own) else {
        return Some(None);
    };
    if let Some(held) = target.held.take()
        && Arc::ptr_eq(OwnedMutexGuard::mutex(&held), &turns)
    {
        return Some(Some(held));
    }
    match Arc::clone(&turns).try_lock_owned() {
        Ok(turn) => Some(Some(turn)),
        Err(_) => {
            target.busy.replace(Some(turns));
            None
        }
    }
}

/// Makes a change part of its table; whether nobody else was faster.
fn commit(connection: &Connection, target: &Target, change: Change) -> Result<bool, MySqlError> {
    connection.before_change(&target.table)?;
    match change.commit() {
        Ok(()) => Ok(true),
        Err(mayfly_table::Error::Changed { .. }) if !target.is_own => Ok(false),
        Err(error) => Err(table_error(error)),
    }
}

fn batch_of(table: &Table, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, MySqlError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(table.schema()), arrays, &options)
        .map_err(plan_error)
}

fn table_error(error: mayfly_table::Error) -> MySqlError {
    errors::from_table(&error)
}

fn plan_error(error: ArrowError) -> MySqlError {
    errors::from_plan(&error.into())
}
