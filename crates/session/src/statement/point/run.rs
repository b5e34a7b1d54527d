//! The work of a statement on rows: values into columns, a search of the index, a change.
//!
//! Nothing is changed before all is known to fit: what returns `None` has done nothing.

use std::ops::Bound;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt64Array};
use arrow::compute::kernels::boolean::or;
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{cast, filter};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use mayfly_exec::Searched;
use mayfly_sql::literal::{Literal, column_of};
use mayfly_table::{Change, Purpose, Search, Table, TableSnapshot, Turn};
use mayfly_types::MySqlError;

use super::key_condition::Choice;
use super::known::{Action, Cell, Chosen, NewValue, PointStatement, Target, Value};
use super::remainder::Remainder;
use super::upsert::upsert;
use super::{Done, Ran};
use crate::connection::Connection;
use crate::errors;
use crate::statement::apart::Given;
use crate::statement::batch::batch_of;
use crate::statement::counter::Counter;
use crate::statement::turns::{Busy, purpose_of_rows};

/// Most rows that are changed here, and most that are read: more are worth a plan.
const CHANGED_MAX: usize = 64;
const READ_MAX: usize = 1024;
/// Most rows that are read off a key, some hundred microseconds.
const COVERED_MAX: usize = 1 << 14;
/// About the most bytes that are read here.
const READ_BYTES_MAX: u64 = 1 << 20;
/// Most rows that are found here and fetched while they are sent; a scan with all threads is worth
/// a plan.
const FETCHED_MAX: usize = 1 << 16;

pub(super) type Found<T> = Result<Option<T>, MySqlError>;

impl PointStatement {
    /// Runs the statement; `None` where it must go the long way, and nothing was done.
    pub(super) fn run(
        &self,
        connection: &Connection,
        target: &Target,
        given: &Given<'_>,
    ) -> Found<Ran> {
        if self.may_be_refused(target) {
            return Ok(None);
        }
        let constants = &given.constants;
        let done = match &self.action {
            Action::Insert { columns, width } => insert(connection, target, columns, *width, given),
            Action::Upsert {
                columns,
                assignments,
                over,
            } => upsert(
                connection,
                target,
                (columns, assignments),
                over.as_ref(),
                given,
            ),
            Action::Update { rows, assignments } => {
                update(connection, target, rows, assignments, constants)
            }
            Action::Delete { rows, .. } => delete(connection, target, rows, constants),
            Action::Select { rows, columns } => {
                return select(connection, target, rows, columns, constants);
            }
            Action::Compute { rows, over, fixed } => {
                compute(connection, target, rows, over, fixed, constants)
            }
        };
        Ok(done?.map(Ran::Done))
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
    if rows * width != given.constants.len() || says_number(target) {
        return Ok(None);
    }
    let Some(arrays) = inserted(table, columns, width, given) else {
        return Ok(None);
    };
    let Some(_turn) = turn(target, purpose_of_rows(table)) else {
        return Ok(None);
    };
    append(connection, target, arrays, rows)
}

/// Whether `insert_id` says the number of a row.
pub(super) fn says_number(target: &Target) -> bool {
    target.settings.insert_id > 0 && target.table.definition().auto_increment().is_some()
}

/// The rows of VALUES, column by column, without their numbers; `None` where a value does not fit
/// as it stands.
pub(super) fn inserted(
    table: &Table,
    columns: &[Cell],
    width: usize,
    given: &Given<'_>,
) -> Option<Vec<ArrayRef>> {
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    let mut values = Vec::with_capacity(given.rows);
    for (cell, column) in columns.iter().zip(table.columns()) {
        cell.values(given, width, &mut values);
        let takes_null = column.is_nullable || column.is_auto_increment;
        if !takes_null && values.iter().any(Option::is_none) {
            return None;
        }
        arrays.push(column_of(&values, &column.column_type)?);
    }
    Some(arrays)
}

/// Appends rows, whose turn it is, and gives them numbers.
pub(super) fn append(
    connection: &Connection,
    target: &Target,
    mut arrays: Vec<ArrayRef>,
    rows: usize,
) -> Found<Done> {
    let table = &target.table;
    let mut counter = Counter::of(table, target.settings.numbering);
    if let Some(counter) = &mut counter {
        counter.expect(rows);
        let numbers = &mut arrays[counter.column];
        *numbers = counter.fill(table, numbers)?;
    }
    let batch = batch_of(table.schema(), arrays, rows)?;
    let mut appender = table.begin_append();
    appender.append(&batch).map_err(table_error)?;
    connection.before_change(table)?;
    match appender.commit() {
        Ok(_) => {}
        // It was altered or dropped before it was our turn.
        Err(mayfly_table::Error::Changed { .. }) => return Ok(None),
        Err(error) => return Err(table_error(error)),
    }
    if let Some(counter) = &mut counter {
        counter.written(table);
    }
    Ok(Some(Done::Inserted {
        rows: rows as u64,
        first_number: counter.as_ref().and_then(Counter::first),
        insert_id: counter.as_ref().map_or(0, Counter::insert_id),
    }))
}

fn update(
    connection: &Connection,
    target: &Target,
    rows: &Chosen,
    assignments: &[(usize, NewValue)],
    constants: &[Option<Literal<'_>>],
) -> Found<Done> {
    let Some((searches, _turn)) = begin(connection, target, rows, constants) else {
        return Ok(None);
    };
    let mut change = target.table.begin_change();
    let Some((snapshot, ids)) = find(target, &searches, CHANGED_MAX)? else {
        return Ok(None);
    };
    let Some((ids, computed)) = chosen(rows, &snapshot, ids, constants)? else {
        return Ok(None);
    };
    let matched = ids.len();
    if matched == 0 {
        return Ok(Some(Done::Updated {
            matched: 0,
            changed: 0,
        }));
    }
    let columns: Vec<usize> = assignments.iter().map(|(column, _)| *column).collect();
    let is_sum = |(_, value): &(usize, NewValue)| matches!(value, NewValue::Sum { .. });
    if let [id] = *ids
        && !assignments.iter().any(is_sum)
    {
        // As below.
        drop(snapshot);
        let Some(is_changed) = assign_one(
            connection,
            target,
            (change, id),
            assignments,
            &computed,
            constants,
        )?
        else {
            return Ok(None);
        };
        return Ok(Some(Done::Updated {
            matched: 1,
            changed: u64::from(is_changed),
        }));
    }
    let old = snapshot.rows(&ids, Some(&columns)).map_err(table_error)?;
    // It would hold on to the list of pages, which the change would have to copy then.
    drop(snapshot);
    let mut new = Vec::with_capacity(columns.len());
    let mut differs: Option<BooleanArray> = None;
    for ((column, value), before) in assignments.iter().zip(old.columns()) {
        let column_type = &target.table.columns()[*column].column_type;
        let after = match value {
            NewValue::Value(cell) => column_of(&vec![cell.value(constants); matched], column_type),
            NewValue::Sum { is_minus, other } => sums(before, *is_minus, other.value(constants))
                .and_then(|sums| {
                    let sums: Vec<Value<'_>> = sums.iter().map(Option::as_ref).collect();
                    column_of(&sums, column_type)
                }),
            NewValue::Computed(place) => computed.get(*place).cloned(),
        };
        let Some(after) = after else {
            return Ok(None);
        };
        let differing = distinct(&after, before).map_err(plan_error)?;
        differs = Some(match differs {
            Some(others) => or(&others, &differing).map_err(plan_error)?,
            None => differing,
        });
        new.push(after);
    }
    let differs = differs.unwrap_or_else(|| BooleanArray::from(vec![false; matched]));
    let changed = differs.true_count();
    if changed > 0 {
        let mut gone = ids;
        if changed < matched {
            for values in &mut new {
                *values = filter(values, &differs).map_err(plan_error)?;
            }
            keep(&mut gone, &differs);
        }
        let ids = UInt64Array::from(gone);
        let assigned = change.assign(&ids, &columns, &new);
        assigned.map_err(table_error)?;
        if !commit(connection, target, change)? {
            return Ok(None);
        }
    }
    Ok(Some(Done::Updated {
        matched: matched as u64,
        changed: changed as u64,
    }))
}

/// Gives one row values, constants and those that were computed, and tells whether it has others
/// now. For constants the old ones are not read.
pub(super) fn assign_one(
    connection: &Connection,
    target: &Target,
    (mut change, id): (Change, u64),
    assignments: &[(usize, NewValue)],
    computed: &[ArrayRef],
    constants: &[Option<Literal<'_>>],
) -> Found<bool> {
    let mut columns = Vec::with_capacity(assignments.len());
    let mut new = Vec::with_capacity(assignments.len());
    for (column, value) in assignments {
        let column_type = &target.table.columns()[*column].column_type;
        let value = match value {
            NewValue::Value(cell) => column_of(&[cell.value(constants)], column_type),
            NewValue::Computed(place) => computed.get(*place).cloned(),
            NewValue::Sum { .. } => None,
        };
        let Some(value) = value else {
            return Ok(None);
        };
        columns.push(*column);
        new.push(value);
    }
    let is_changed = change.assign_one(id, &columns, &new).map_err(table_error)?;
    if is_changed && !commit(connection, target, change)? {
        return Ok(None);
    }
    Ok(Some(is_changed))
}

/// Those of some rows that a statement changes, and the values that they get; `None` where that
/// takes the long way.
fn chosen(
    chosen: &Chosen,
    snapshot: &TableSnapshot,
    mut ids: Vec<u64>,
    constants: &[Option<Literal<'_>>],
) -> Found<(Vec<u64>, Vec<ArrayRef>)> {
    let mut values = Vec::new();
    if let Some(over) = &chosen.over
        && !ids.is_empty()
    {
        let rows = snapshot
            .rows(&ids, Some(&over.columns))
            .map_err(table_error)?;
        let Some(given) = over.given(rows.columns(), ids.len(), &[], constants) else {
            return Ok(None);
        };
        if let Some(stays) = &given.stays {
            keep(&mut ids, stays);
        }
        values = given.values;
    }
    if let Some(limit) = &chosen.limit {
        let limit = limit.value(constants).and_then(Literal::integer);
        if limit.is_none_or(|limit| ids.len() as i128 > limit) {
            return Ok(None);
        }
    }
    Ok(Some((ids, values)))
}

/// Keeps those ids that are told to stay.
fn keep(ids: &mut Vec<u64>, stays: &BooleanArray) {
    let mut row = 0;
    ids.retain(|_| {
        row += 1;
        stays.value(row - 1)
    });
}

fn delete(
    connection: &Connection,
    target: &Target,
    rows: &Chosen,
    constants: &[Option<Literal<'_>>],
) -> Found<Done> {
    let Some((searches, _turn)) = begin(connection, target, rows, constants) else {
        return Ok(None);
    };
    let mut change = target.table.begin_change();
    let Some((snapshot, ids)) = find(target, &searches, CHANGED_MAX)? else {
        return Ok(None);
    };
    let Some((ids, _)) = chosen(rows, &snapshot, ids, constants)? else {
        return Ok(None);
    };
    drop(snapshot);
    change.remove(&UInt64Array::from(ids));
    let removed = change.changed();
    if !commit(connection, target, change)? {
        return Ok(None);
    }
    Ok(Some(Done::Deleted(removed)))
}

fn select(
    connection: &Connection,
    target: &Target,
    rows: &Choice,
    columns: &[usize],
    constants: &[Option<Literal<'_>>],
) -> Found<Ran> {
    let Some(searches) = searches(target, rows, constants) else {
        return Ok(None);
    };
    let Some((snapshot, numbers)) = search(target, &searches, FETCHED_MAX)? else {
        return Ok(None);
    };
    if is_little(&target.table, numbers.len()) {
        let rows = rows_of(&snapshot, numbers, columns)?;
        return Ok(Some(Ran::Done(Done::Selected(rows, Vec::new()))));
    }
    // A limit of time is kept by tasks.
    let limit_ms = connection.local().variables.number("max_execution_time");
    if limit_ms > 0 {
        return Ok(None);
    }
    // Where memory is short, the long way waits for it.
    let places = snapshot.places(numbers);
    let reader = places.and_then(|places| places.read(columns.to_vec()));
    let Ok(mut reader) = reader else {
        return Ok(None);
    };
    Ok(match reader.next() {
        Some(Ok(first)) => Some(Ran::Fetching(first, reader)),
        _ => None,
    })
}

/// Some columns of the rows that a statement reads.
fn read(
    target: &Target,
    rows: &Choice,
    columns: &[usize],
    constants: &[Option<Literal<'_>>],
) -> Found<RecordBatch> {
    let table = &target.table;
    let Some(searches) = searches(target, rows, constants) else {
        return Ok(None);
    };
    let is_covered = table.covers(rows.key, columns);
    let most = if is_covered { COVERED_MAX } else { READ_MAX };
    if is_much(table, &searches, most)? {
        return Ok(None);
    }
    if is_covered {
        let values = table.search_values(&searches, columns, COVERED_MAX);
        let Some((values, count)) = values.map_err(table_error)? else {
            return Ok(None);
        };
        let searched = Searched::of(table, &searches);
        target.reads.set(searched.reads(count));
        let schema = table.schema().project(columns).map_err(plan_error)?;
        return batch_of(&Arc::new(schema), values, count).map(Some);
    }
    let Some((snapshot, numbers)) = search(target, &searches, READ_MAX)? else {
        return Ok(None);
    };
    match is_little(table, numbers.len()) {
        true => rows_of(&snapshot, numbers, columns).map(Some),
        false => Ok(None),
    }
}

/// The searches for the rows that a statement reads.
fn searches(
    target: &Target,
    rows: &Choice,
    constants: &[Option<Literal<'_>>],
) -> Option<Vec<Search>> {
    let reads_all = target.settings.selects_all;
    reads_all
        .then(|| rows.searches(&target.table, constants))
        .flatten()
}

/// Whether a range finds far more rows than may be read, so that nobody begins to read them: a plan
/// that wants a few of them may be kept. To ask for each of several ranges would take as long as to
/// read them.
fn is_much(table: &Table, searches: &[Search], most: usize) -> Result<bool, MySqlError> {
    let [search] = searches else {
        return Ok(false);
    };
    let is_range = !matches!(
        (&search.low, &search.high),
        (Bound::Unbounded, Bound::Unbounded)
    );
    Ok(is_range && table.estimate(search).map_err(table_error)? > 2 * most as u64)
}

/// Whether so many rows of a table may be read at once.
fn is_little(table: &Table, rows: usize) -> bool {
    if rows <= CHANGED_MAX {
        return true;
    }
    let row_bytes = table.bytes() / table.row_count().max(1);
    rows <= READ_MAX && row_bytes * rows as u64 <= READ_BYTES_MAX
}

fn rows_of(
    snapshot: &TableSnapshot,
    numbers: Vec<u64>,
    columns: &[usize],
) -> Result<RecordBatch, MySqlError> {
    let ids = snapshot.locate(numbers).map_err(table_error)?;
    snapshot.rows(&ids, Some(columns)).map_err(table_error)
}

/// What a plan makes of the rows that are found.
fn compute(
    connection: &Connection,
    target: &Target,
    rows: &Choice,
    over: &Remainder,
    fixed: &[(usize, Literal<'static>)],
    constants: &[Option<Literal<'_>>],
) -> Found<Done> {
    let is_same = |(place, value): &(usize, Literal<'_>)| constants[*place].as_ref() == Some(value);
    if !fixed.iter().all(is_same) || !over.is_of(connection) {
        return Ok(None);
    }
    let found = read(target, rows, over.columns(), constants)?;
    Ok(found
        .and_then(|rows| over.run(rows, connection))
        .map(|(rows, tables)| Done::Selected(rows, tables)))
}

/// The searches for the rows that a statement changes, and the right to change them.
fn begin(
    connection: &Connection,
    target: &Target,
    chosen: &Chosen,
    constants: &[Option<Literal<'_>>],
) -> Option<(Vec<Search>, Option<Turn>)> {
    if let Some(over) = &chosen.over
        && !over.are_of(connection, constants)
    {
        return None;
    }
    let searches = chosen.rows.searches(&target.table, constants)?;
    Some((searches, turn(target, Purpose::Change)?))
}

/// The numbers of the rows that searches find, which are counted as read; `None` when they are
/// many.
fn search(target: &Target, searches: &[Search], most: usize) -> Found<(TableSnapshot, Vec<u64>)> {
    let found = target.table.search(searches, most).map_err(table_error)?;
    if let Some((_, numbers)) = &found {
        let searched = Searched::of(&target.table, searches);
        target.reads.set(searched.reads(numbers.len()));
    }
    Ok(found)
}

/// The rows that searches find; `None` when they are many.
fn find(target: &Target, searches: &[Search], most: usize) -> Found<(TableSnapshot, Vec<u64>)> {
    let Some((snapshot, numbers)) = search(target, searches, most)? else {
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
pub(super) fn turn(target: &Target, purpose: Purpose) -> Option<Option<Turn>> {
    let Some(turns) = target.table.turns() else {
        return Some(None);
    };
    if let Some((of, turn)) = target.held.take()
        && of.turns.are(turns)
    {
        return Some(Some(turn));
    }
    let turn = turns.try_take(purpose);
    if turn.is_none() {
        let turns = turns.clone();
        target.busy.replace(Some(Busy { turns, purpose }));
    }
    turn.map(Some)
}

/// Makes a change part of its table; whether nobody else was faster.
pub(super) fn commit(
    connection: &Connection,
    target: &Target,
    change: Change,
) -> Result<bool, MySqlError> {
    connection.before_change(&target.table)?;
    match change.commit() {
        Ok(()) => Ok(true),
        Err(mayfly_table::Error::Changed { .. }) if !target.is_own => Ok(false),
        Err(error) => Err(table_error(error)),
    }
}

pub(super) fn table_error(error: mayfly_table::Error) -> MySqlError {
    errors::from_table(&error)
}

fn plan_error(error: ArrowError) -> MySqlError {
    errors::from_plan(&error.into())
}
