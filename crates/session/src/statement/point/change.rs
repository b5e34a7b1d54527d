//! Changes of rows: values into columns, and the columns into their table.
//!
//! Nothing is changed before all is known to fit: what returns `None` has done nothing.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt64Array};
use arrow::compute::kernels::boolean::or;
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{cast, filter};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use mayfly_sql::literal::{Literal, column_of};
use mayfly_table::{Change, Conflicts, Purpose, Repeats, Search, Table, TableSnapshot, Turn};
use mayfly_types::MySqlError;

use super::Done;
use super::known::{Cell, Chosen, NewValue, OnDuplicate, Value};
use super::search::{Found, plan_error, search, table_error};
use super::target::Target;
use crate::connection::Connection;
use crate::statement::apart::Given;
use crate::statement::batch::batch_of;
use crate::statement::counter::Counter;
use crate::statement::turns::{Busy, purpose_of_rows};
use crate::statement::write::replaced_by_equals;

/// Most rows that are changed here: more are worth a plan.
pub(super) const CHANGED_MAX: usize = 64;

pub(super) fn insert(
    connection: &Connection,
    target: &Target,
    (columns, width): (&[Cell], usize),
    on_duplicate: OnDuplicate,
    given: &Given<'_>,
) -> Found<Done> {
    let table = &target.table;
    let rows = given.rows;
    if rows * width != given.constants.len() || says_number(target) {
        return Ok(None);
    }
    let has_unique_key = || table.definition().keys.iter().any(|key| key.is_unique());
    let may_meet = on_duplicate != OnDuplicate::Fail && has_unique_key();
    // Several may meet each other.
    if may_meet && rows > 1 {
        return Ok(None);
    }
    let Some(arrays) = inserted(table, columns, width, given) else {
        return Ok(None);
    };
    let Some(_turn) = turn(target, purpose_of_rows(table)) else {
        return Ok(None);
    };
    if !may_meet {
        return append(connection, target, arrays, rows);
    }
    let (_, row) = foretold(target, &arrays)?;
    let change = table.begin_change();
    let met = table.conflicts(&row, Repeats::Stop).map_err(table_error)?;
    if met.found.is_empty() {
        drop(change);
        return append(connection, target, arrays, 1);
    }
    match on_duplicate {
        OnDuplicate::Replace => replace(connection, target, change, &met, arrays),
        // A warning tells which row is left out.
        _ => Ok(None),
    }
}

/// A row as it would be written, without taking a number for it.
pub(super) fn foretold(
    target: &Target,
    arrays: &[ArrayRef],
) -> Result<(Option<Counter>, RecordBatch), MySqlError> {
    let table = &target.table;
    let mut numbered = arrays.to_vec();
    let mut counter = Counter::of(table, target.settings.numbering);
    if let Some(counter) = &mut counter {
        counter.expect(1);
        let numbers = &mut numbered[counter.column];
        *numbers = counter.foretold(table, numbers)?;
    }
    Ok((counter, batch_of(table.schema(), numbered, 1)?))
}

/// Writes a row in the place of those that it meets.
fn replace(
    connection: &Connection,
    target: &Target,
    mut change: Change,
    met: &Conflicts,
    mut arrays: Vec<ArrayRef>,
) -> Found<Done> {
    let table = &target.table;
    let mut counter = Counter::of(table, target.settings.numbering);
    if let Some(counter) = &mut counter {
        counter.expect(1);
        let numbers = &mut arrays[counter.column];
        *numbers = counter.fill(table, numbers)?;
    }
    let row = batch_of(table.schema(), arrays, 1)?;
    let numbers = met.found.iter().filter_map(|found| found.number);
    let ids = change.snapshot().locate(numbers).map_err(table_error)?;
    let equal = replaced_by_equals(&change, met, &row)?;
    change.remove(&UInt64Array::from(ids));
    let deleted = change.changed() - equal;
    change.append(&row).map_err(table_error)?;
    if !commit(connection, target, change)? {
        return Ok(None);
    }
    if let Some(counter) = &mut counter {
        counter.written(table);
    }
    Ok(Some(Done::Replaced {
        deleted,
        first_number: counter.as_ref().and_then(Counter::first),
        insert_id: counter.as_ref().map_or(0, Counter::insert_id),
    }))
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

pub(super) fn update(
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

pub(super) fn delete(
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
fn commit(connection: &Connection, target: &Target, change: Change) -> Result<bool, MySqlError> {
    connection.before_change(&target.table)?;
    match change.commit() {
        Ok(()) => Ok(true),
        Err(mayfly_table::Error::Changed { .. }) if !target.is_own => Ok(false),
        Err(error) => Err(table_error(error)),
    }
}
