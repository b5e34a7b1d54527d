//! Rows of tables: found, written, changed in their place, taken back, read.
//!
//! Limits: a row is found by four dependent loads, the last of them the row's; what is written is
//! copied once; an entry of a key that comes or goes takes 30 ns, if its leaf is in the cache; a
//! change in place with what takes it back 50 ns; a scan reads the bytes of the rows at the speed
//! of reading memory in the same round. What is only a matter of the list of pages has no limit.

use std::hint::black_box;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, RecordBatch, UInt64Array,
};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use mayfly_space::Space;
use mayfly_table::{
    ByKey, Column, Definition, Key, KeyKind, KeyPart, Result, Search, Table, TableSnapshot,
};
use mayfly_types::ColumnType;

use super::Bench;
use super::lines::{Goal, Line, Rounds};
use super::machine::Machine;
use crate::data::SplitMix64;

/// Dependent loads by which a row is found: an inner node, the leaf twice, the row.
const LOADS: f64 = 4.0;
/// A row that is changed in its place, with what takes it back.
const CHANGED_NS: f64 = 50.0;
/// The least for an entry of a key.
const CACHED_NS: f64 = 30.0;
/// BIGINT, INT, BIGINT, DOUBLE.
const ROW_BYTES: f64 = 28.0;
/// Rows that statements change one at a time.
const SINGLE: u64 = 20_000;
/// Values that are looked up at once.
const BATCH: u64 = 10_000;
/// Rows of a batch that is appended.
const PIECE: u64 = 8_192;
const SCANNED_BYTES: u64 = 256 << 20;

/// Four columns of fixed width, and any number of keys: the primary key first.
pub(super) fn definition(keys: usize) -> Definition {
    let key = |number: usize| {
        let (name, kind) = match number {
            0 => ("PRIMARY".to_owned(), KeyKind::Primary),
            _ => (format!("k{number}"), KeyKind::Plain),
        };
        Key::new(name, kind, vec![KeyPart::new(number % 4)])
    };
    let columns = vec![
        Column::new("id", ColumnType::BigInt { unsigned: false }, false),
        Column::new("kind", ColumnType::Int { unsigned: false }, false),
        Column::new("amount", ColumnType::BigInt { unsigned: false }, false),
        Column::new("price", ColumnType::DOUBLE, false),
    ];
    Definition {
        columns,
        keys: (0..keys).map(key).collect(),
        ..Definition::default()
    }
}

fn table(space: &Space, keys: usize) -> Arc<Table> {
    Arc::new(Table::new("t", definition(keys), space.root()))
}

fn batch(table: &Table, first: u64, count: u64) -> Result<RecordBatch> {
    let numbers = || first..first + count;
    let ids = Int64Array::from_iter_values(numbers().map(|n| n as i64));
    let kinds = Int32Array::from_iter_values(numbers().map(|n| (n * 7919 % 1009) as i32));
    let amounts = Int64Array::from_iter_values(numbers().map(|n| n as i64 * 3));
    let prices = Float64Array::from_iter_values(numbers().map(|n| n as f64));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(ids),
        Arc::new(kinds),
        Arc::new(amounts),
        Arc::new(prices),
    ];
    Ok(RecordBatch::try_new(Arc::clone(table.schema()), columns)?)
}

fn batches(table: &Table, rows: u64) -> Result<Vec<RecordBatch>> {
    let starts = (0..rows).step_by(PIECE as usize);
    starts
        .map(|first| batch(table, first, PIECE.min(rows - first)))
        .collect()
}

fn fill(table: &Arc<Table>, batches: &[RecordBatch]) -> Result<()> {
    let mut appender = table.begin_append();
    for batch in batches {
        appender.append(batch)?;
    }
    appender.commit().map(drop)
}

pub(super) fn run(bench: &mut Bench<'_>, rows: u64) -> Result<()> {
    let space = bench.space(2 << 30)?;
    for keys in [0, 1, 3] {
        let section = format!("table of {rows} rows, {keys} keys");
        if bench.wants(&section) {
            let mut rounds = Rounds {
                machine: &mut bench.machine,
                count: bench.rounds,
                space: None,
            };
            let mut lines = all_rows(&mut rounds, &space, keys, rows)?;
            if keys > 0 {
                lines.extend(single_rows(&mut rounds, &space, keys, rows)?);
            }
            bench.keep(&section, lines);
        }
    }
    let section = "scan of fixed columns";
    if bench.wants(section) {
        let lines = scans(bench, &space)?;
        bench.keep(section, lines);
    }
    Ok(())
}

/// Rows with one column that no key but the second has changed.
fn changed(rows: &RecordBatch, by: i64) -> Result<RecordBatch> {
    let amounts = rows.column(2).as_primitive::<Int64Type>();
    let amounts: Int64Array = amounts.unary(|amount| amount + by);
    let mut columns = rows.columns().to_vec();
    columns[2] = Arc::new(amounts);
    Ok(RecordBatch::try_new(rows.schema(), columns)?)
}

fn update_all(table: &Arc<Table>) -> Result<()> {
    let mut change = table.begin_change();
    let snapshot = change.snapshot().clone();
    for index in 0..snapshot.batch_count() {
        let rows = snapshot.read(index, None)?;
        change.replace(&snapshot.row_ids(index), &changed(&rows, 1)?)?;
    }
    drop(snapshot);
    change.commit()
}

fn delete_all(table: &Arc<Table>) -> Result<()> {
    let mut change = table.begin_change();
    let snapshot = change.snapshot().clone();
    for index in 0..snapshot.batch_count() {
        change.remove(&snapshot.row_ids(index));
    }
    drop(snapshot);
    change.commit()
}

/// Statements on all rows, by row.
fn all_rows(rounds: &mut Rounds<'_>, space: &Space, keys: usize, rows: u64) -> Result<Vec<Line>> {
    let batches = batches(&table(space, keys), rows)?;
    let filled = || {
        let table = table(space, keys);
        fill(&table, &batches)?;
        Ok::<_, mayfly_table::Error>(table)
    };
    let entries_ns = keys as f64 * CACHED_NS;
    let written = move |machine: &mut Machine| ROW_BYTES * machine.copy_ns() + entries_ns;
    let mut lines = Vec::new();
    let empty = || Ok(table(space, keys));
    lines.push(rounds.line_of("append all", rows, written, empty, |table| {
        fill(table, &batches)
    })?);
    // The changed column has an entry in the third key.
    let entries_ns = if keys > 2 { 2.0 * CACHED_NS } else { 0.0 };
    let replaced = move |machine: &mut Machine| {
        ROW_BYTES * (machine.read_ns() + machine.copy_ns()) + entries_ns
    };
    lines.push(
        rounds.line_of("update all, fixed width", rows, replaced, filled, |table| {
            update_all(table)
        })?,
    );
    let saved = || {
        let table = filled()?;
        let saved = table.save()?;
        update_all(&table)?;
        Ok(Some(saved))
    };
    // Both versions of the rows are compared to find what their entries were.
    let taken_back = move |machine: &mut Machine| match keys {
        0 => 0.0,
        _ => 2.0 * ROW_BYTES * machine.read_ns() + entries_ns,
    };
    lines.push(
        rounds.line_of("undo of update all", rows, taken_back, saved, |saved| {
            saved
                .take()
                .into_iter()
                .for_each(mayfly_table::Saved::restore);
            Ok::<_, mayfly_table::Error>(())
        })?,
    );
    let removed = move |_: &mut Machine| keys as f64 * CACHED_NS;
    lines.push(
        rounds.line_of("delete all", rows, removed, filled, |table| {
            delete_all(table)
        })?,
    );
    let saved = || {
        let table = filled()?;
        let saved = table.save()?;
        delete_all(&table)?;
        Ok(Some(saved))
    };
    lines.push(
        rounds.line_of("undo of delete all", rows, removed, saved, |saved| {
            saved
                .take()
                .into_iter()
                .for_each(mayfly_table::Saved::restore);
            Ok::<_, mayfly_table::Error>(())
        })?,
    );
    Ok(lines)
}

/// The row that has a key.
fn by_key(table: &Table, id: i64) -> Result<(TableSnapshot, Vec<u64>)> {
    let search = Search::equal(0, vec![Arc::new(Int64Array::from(vec![id]))]);
    let found = table.search(&[search], 2)?;
    let (snapshot, numbers) = found.expect("a primary key finds one row");
    let rows = snapshot.locate(numbers)?;
    Ok((snapshot, rows))
}

fn update_one(table: &Arc<Table>, id: i64) -> Result<()> {
    let mut change = table.begin_change();
    let (snapshot, row) = by_key(table, id)?;
    let rows = snapshot.rows(&row, None)?;
    drop(snapshot);
    change.replace(&UInt64Array::from(row), &changed(&rows, 1)?)?;
    change.commit()
}

/// Statements on one row each, by its primary key.
fn single_rows(
    rounds: &mut Rounds<'_>,
    space: &Space,
    keys: usize,
    rows: u64,
) -> Result<Vec<Line>> {
    let batches = batches(&table(space, keys), rows)?;
    let filled = || {
        let table = table(space, keys);
        fill(&table, &batches)?;
        Ok::<_, mayfly_table::Error>(table)
    };
    let single = SINGLE.min(rows / 2);
    let mut random = SplitMix64::new(5);
    let mut ids =
        |count: u64| -> Vec<i64> { (0..count).map(|_| (random.next() % rows) as i64).collect() };
    let order = ids(single);
    let found = |machine: &mut Machine| LOADS * machine.load_ns();
    let mut lines = Vec::new();
    let table = filled()?;
    lines.push(rounds.line("select one row by key", single, found, || {
        for id in &order {
            let (snapshot, row) = by_key(&table, *id)?;
            black_box(snapshot.rows(&row, None)?);
        }
        Ok::<_, mayfly_table::Error>(())
    })?);
    let at_once = BATCH.min(rows);
    let many: ArrayRef = Arc::new(Int64Array::from(ids(at_once)));
    let independent = |machine: &mut Machine| LOADS * machine.random_ns();
    lines.push(
        rounds.line("look 10,000 keys up at once", at_once, independent, || {
            let snapshot = table.snapshot();
            let values = std::slice::from_ref(&many);
            if let ByKey::Found(found) = table.lookup(&snapshot, 0, values, usize::MAX)? {
                black_box(snapshot.locate(found.numbers)?);
            }
            Ok::<_, mayfly_table::Error>(())
        })?,
    );
    drop(table);
    let updated = move |machine: &mut Machine| LOADS * machine.load_ns() + CHANGED_NS;
    lines.push(
        rounds.line_of("update one row by key", single, updated, filled, |table| {
            order.iter().try_for_each(|id| update_one(table, *id))
        })?,
    );
    let saved = || {
        let table = filled()?;
        let saved = table.save()?;
        for id in &order {
            update_one(&table, *id)?;
        }
        Ok(Some(saved))
    };
    let what = format!("undo of {single} such updates");
    // Of each key an entry goes and one comes.
    let taken_back = move |_: &mut Machine| 2.0 * keys as f64 * CACHED_NS;
    lines.push(rounds.line_of(&what, single, taken_back, saved, |saved| {
        saved
            .take()
            .into_iter()
            .for_each(mayfly_table::Saved::restore);
        Ok::<_, mayfly_table::Error>(())
    })?);
    lines.push(rounds.line_of(
        "update one row and undo",
        single,
        move |machine: &mut Machine| updated(machine) + taken_back(machine),
        filled,
        |table| {
            for id in &order {
                let saved = table.save()?;
                update_one(table, *id)?;
                saved.restore();
            }
            Ok::<_, mayfly_table::Error>(())
        },
    )?);
    Ok(lines)
}

/// All columns of a batch, summed up.
fn sum(batch: &RecordBatch) -> u64 {
    let mut sum = 0;
    for column in batch.columns() {
        if let Some(values) = column.as_primitive_opt::<Int64Type>() {
            sum ^= values.values().iter().fold(0, |sum, value| sum ^ value) as u64;
        } else if let Some(values) = column.as_primitive_opt::<Int32Type>() {
            sum ^= values.values().iter().fold(0, |sum, value| sum ^ value) as u64;
        } else if let Some(values) = column.as_primitive_opt::<Float64Type>() {
            let bits = values.values().iter().map(|value| value.to_bits());
            sum ^= bits.fold(0, |sum, value| sum ^ value);
        }
    }
    sum
}

fn scans(bench: &mut Bench<'_>, space: &Space) -> Result<Vec<Line>> {
    let mut rounds = Rounds {
        machine: &mut bench.machine,
        count: bench.rounds,
        space: None,
    };
    let rows = SCANNED_BYTES / ROW_BYTES as u64;
    let read = |machine: &mut Machine| ROW_BYTES * machine.read_ns();
    let mut lines = Vec::new();
    for keys in [0, 1] {
        let table = table(space, keys);
        for first in (0..rows).step_by(1 << 20) {
            let count = (rows - first).min(1 << 20);
            table.append(&batch(&table, first, count)?)?;
        }
        let what = format!("all columns, {keys} keys, a row");
        let line = rounds.line(&what, rows, read, || {
            let snapshot = table.snapshot();
            for rows in snapshot.scan(0..snapshot.batch_count(), None) {
                black_box(sum(&rows?));
            }
            Ok::<_, mayfly_table::Error>(())
        })?;
        lines.push(line.with_goal(Goal::Efficiency(0.8)));
    }
    Ok(lines)
}
