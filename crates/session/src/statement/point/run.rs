//! The work of a statement on rows, and the reading of them.

use std::ops::Bound;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use mayfly_exec::Searched;
use mayfly_sql::literal::Literal;
use mayfly_table::{Search, Table, TableSnapshot};
use mayfly_types::MySqlError;

use super::change::{CHANGED_MAX, delete, insert, update};
use super::known::{Action, Choice, PointStatement, Remainder};
use super::search::{Found, plan_error, search, table_error};
use super::target::Target;
use super::upsert::upsert;
use super::{Done, Ran};
use crate::connection::Connection;
use crate::statement::apart::Given;
use crate::statement::batch::batch_of;

/// Most rows that are read here: more are worth a plan.
const READ_MAX: usize = 1024;
/// Most rows that are read off a key, some hundred microseconds.
const COVERED_MAX: usize = 1 << 14;
/// Most of both where a few of the rows are wanted: a plan that walks along the key takes as long
/// as to read so many.
const WANTED_READ_MAX: usize = 1 << 8;
const WANTED_COVERED_MAX: usize = 1 << 10;
/// About the most bytes that are read here.
const READ_BYTES_MAX: u64 = 1 << 20;
/// Most rows that are found here and fetched while they are sent; a scan with all threads is worth
/// a plan.
const FETCHED_MAX: usize = 1 << 16;

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
            Action::Insert {
                columns,
                width,
                on_duplicate,
            } => insert(connection, target, (columns, *width), *on_duplicate, given),
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

/// The rows that a plan reads.
fn read(
    target: &Target,
    rows: &Choice,
    over: &Remainder,
    constants: &[Option<Literal<'_>>],
) -> Found<RecordBatch> {
    let (table, columns) = (&target.table, over.columns());
    let Some(searches) = searches(target, rows, constants) else {
        return Ok(None);
    };
    let is_covered = table.covers(rows.key, columns);
    let most = match (is_covered, over.wants_few()) {
        (true, false) => COVERED_MAX,
        (true, true) => WANTED_COVERED_MAX,
        (false, false) => READ_MAX,
        (false, true) => WANTED_READ_MAX,
    };
    if is_much(table, &searches, most, over.wants_few())? {
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

/// Whether a search finds far more rows than may be read, so that nobody begins to read them: a
/// plan that wants a few of them may be kept. A range is asked, and one value where few rows are
/// wanted. To ask for each of several searches would take as long as to read what they find.
fn is_much(
    table: &Table,
    searches: &[Search],
    most: usize,
    wants_few: bool,
) -> Result<bool, MySqlError> {
    let [search] = searches else {
        return Ok(false);
    };
    let is_range = !matches!(
        (&search.low, &search.high),
        (Bound::Unbounded, Bound::Unbounded)
    );
    let is_asked = is_range || wants_few;
    Ok(is_asked && table.estimate(search).map_err(table_error)? > 2 * most as u64)
}

/// Whether so many rows of a table may be read at once.
fn is_little(table: &Table, rows: usize) -> bool {
    if rows <= CHANGED_MAX {
        return true;
    }
    rows <= READ_MAX && table.row_bytes() * rows as u64 <= READ_BYTES_MAX
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
    let found = read(target, rows, over, constants)?;
    Ok(found
        .and_then(|rows| over.run(rows, connection))
        .map(|(rows, tables)| Done::Selected(rows, tables)))
}
