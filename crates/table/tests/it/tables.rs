//! Tables against a vector of rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringViewArray, UInt64Array};
use mayfly_table::{Appender, Column, Definition, Saved, Table, TableSnapshot};
use mayfly_types::{BlobSize, ColumnType};
use proptest::prelude::*;

use crate::batches::Random;
use crate::spaces::{BUDGETS, Whole as _, assert_empty, open};

pub(crate) type Row = (i64, Option<String>);

pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::new("id", ColumnType::BigInt { unsigned: false }, false),
        Column::new("word", ColumnType::Text(BlobSize::Long), true),
    ]
}

pub(crate) fn rows(random: &mut Random, count: usize, longest: usize) -> Vec<Row> {
    (0..count)
        .map(|_| {
            let len = [random.below(12), random.below(longest)][usize::from(random.chance(10))];
            let word = random.chance(90).then(|| "w".repeat(len));
            (random.below(1000) as i64, word)
        })
        .collect()
}

pub(crate) fn batch(table: &Table, rows: &[Row]) -> RecordBatch {
    let ids: Int64Array = rows.iter().map(|(id, _)| *id).collect::<Vec<_>>().into();
    let words: StringViewArray = rows.iter().map(|(_, word)| word.as_deref()).collect();
    let columns: Vec<arrow_array::ArrayRef> = vec![Arc::new(ids), Arc::new(words)];
    RecordBatch::try_new(Arc::clone(table.schema()), columns).unwrap()
}

pub(crate) fn read(batch: &RecordBatch) -> Vec<Row> {
    let ids = batch.column(0).as_primitive::<Int64Type>().values();
    let words = batch.column(1).as_string_view();
    let words = words.iter().map(|word| word.map(str::to_owned));
    ids.iter().copied().zip(words).collect()
}

pub(crate) fn read_all(snapshot: &TableSnapshot) -> Vec<Row> {
    let mut all = Vec::new();
    for index in 0..snapshot.batch_count() {
        let rows = read(&snapshot.read(index, None).unwrap());
        assert_eq!(rows.len(), snapshot.rows_of(index));
        all.extend(rows);
    }
    assert_eq!(all.len() as u64, snapshot.row_count());
    all
}

/// Removes some rows and writes others in their place, behind the rows that stay.
fn change(random: &mut Random, table: &Arc<Table>, expect: &mut Vec<Row>, longest: usize) {
    let mut change = table.begin_change();
    let percent = [1, 50, 100][random.below(3)];
    let (mut left, mut removed) = (Vec::new(), 0);
    for index in 0..change.snapshot().batch_count() {
        let rows = read(&change.snapshot().read(index, None).unwrap());
        let ids = change.snapshot().row_ids(index);
        assert_eq!(ids.len(), rows.len());
        for (row, id) in rows.into_iter().zip(ids.values()) {
            if random.chance(percent) {
                let id = UInt64Array::from(vec![*id]);
                change.remove(&id);
                change.remove(&id);
                removed += 1;
            } else {
                left.push(row);
            }
        }
    }
    assert_eq!(change.changed(), removed, "a row goes once");
    let count = random.below(300);
    let new = rows(random, count, longest);
    change.append(&batch(table, &new)).unwrap();
    if random.chance(20) {
        drop(change);
    } else if random.chance(20) && removed > 0 {
        // Somebody else is first.
        let row = rows(random, 1, longest);
        table.append(&batch(table, &row)).unwrap();
        expect.extend(row);
        let refused = change.commit().unwrap_err();
        assert!(matches!(refused, mayfly_table::Error::Changed { .. }));
    } else {
        change.commit().unwrap();
        left.extend(new);
        *expect = left;
    }
}

/// Does random things to a table and to a vector, and compares them.
fn model(seed: u64, budget: u64) {
    let mut random = Random(seed);
    let dir = tempfile::tempdir().unwrap();
    let space = open(budget, dir.path());
    let longest = (budget / 64).min(100_000) as usize;
    let table = Arc::new(Table::new("t", columns(), space.root()));
    let mut expect: Vec<Row> = Vec::new();
    let mut snapshots: Vec<(TableSnapshot, Vec<Row>)> = Vec::new();
    let mut open_statement: Option<(Appender, Vec<Row>)> = None;
    let mut saved: Option<(Saved, Vec<Row>)> = None;
    for _ in 0..80 {
        match random.below(14) {
            0..4 => {
                let count = [1, random.below(5), random.below(500)][random.below(3)];
                let rows = rows(&mut random, count, longest);
                table.append(&batch(&table, &rows)).unwrap();
                expect.extend(rows);
            }
            4 | 5 => {
                let (appender, appended) =
                    open_statement.get_or_insert_with(|| (table.begin_append(), Vec::new()));
                let count = random.below(800);
                let rows = rows(&mut random, count, longest);
                appender.append(&batch(&table, &rows)).unwrap();
                appended.extend(rows);
            }
            6 => {
                if let Some((appender, appended)) = open_statement.take() {
                    // Some statements fail.
                    if random.chance(70) {
                        assert_eq!(appender.commit().unwrap(), appended.len() as u64);
                        expect.extend(appended);
                    }
                }
            }
            7 => snapshots.push((table.snapshot(), expect.clone())),
            8 => {
                if let Some((snapshot, rows)) = snapshots.pop() {
                    assert!(read_all(&snapshot) == rows);
                }
            }
            9 | 10 => change(&mut random, &table, &mut expect, longest),
            11 => match saved.take() {
                Some((state, rows)) if random.chance(50) => {
                    let state: Saved = state;
                    state.restore();
                    expect = rows;
                }
                _ => saved = Some((table.save().unwrap(), expect.clone())),
            },
            12 if random.chance(20) => {
                table.truncate().unwrap();
                expect.clear();
            }
            _ => {
                // The table appended to itself.
                let snapshot = table.snapshot();
                let mut appender = table.begin_append();
                if expect.len() < 5000 {
                    for rows in snapshot.scan(0..snapshot.batch_count(), None) {
                        appender.append(&rows.unwrap()).unwrap();
                    }
                    appender.commit().unwrap();
                    expect.extend_from_within(..);
                }
            }
        }
        assert_eq!(table.row_count(), expect.len() as u64);
        table.assert_whole();
    }
    assert!(read_all(&table.snapshot()) == expect);
    drop(table);
    drop(open_statement);
    drop(saved);
    for (snapshot, rows) in snapshots {
        assert!(read_all(&snapshot) == rows, "a snapshot outlives its table");
    }
    assert_empty(&space);
}

/// A test for each of [`BUDGETS`]: they run side by side.
macro_rules! at_every_budget {
    ($($name:ident: $budget:literal;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig {
                cases: cases(),
                failure_persistence: None,
                ..ProptestConfig::default()
            })]

            $(#[test]
            fn $name(seed in any::<u64>()) {
                model(seed, BUDGETS[$budget]);
            })*
        }
    };
}

/// `MAYFLY_FULL` takes more of them.
fn cases() -> u32 {
    match std::env::var_os("MAYFLY_FULL") {
        Some(_) => 48,
        None => 6,
    }
}

mod a_table_is_a_vector_of_rows {
    use super::*;

    at_every_budget! {
        at_the_minimum: 0;
        at_1_mib: 1;
        at_8_mib: 2;
        at_64_mib: 3;
    }
}

#[test]
fn a_tiny_table_has_no_page() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let table = Table::new("t", columns(), space.root());
    assert_eq!(table.snapshot().batch_count(), 0);
    for id in 0..100 {
        table
            .append(&batch(&table, &[(id, Some("word".to_owned()))]))
            .unwrap();
    }
    assert_eq!(table.counters().pages_allocated, 0);
    assert!(table.snapshot().batch_count() <= 16, "segments are merged");
    assert!(table.bytes() <= 16 << 10);
}

#[test]
fn a_table_that_grows_row_by_row_has_full_pages() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let table = Table::new("t", columns(), space.root());
    for id in 0..20_000 {
        table
            .append(&batch(
                &table,
                &[(id, Some("a word of forty bytes, more or less".into()))],
            ))
            .unwrap();
    }
    table.assert_whole();
    let snapshot = table.snapshot();
    assert!(snapshot.batch_count() < 32, "{}", snapshot.batch_count());
    let ids = read_all(&snapshot).into_iter().map(|(id, _)| id);
    assert!(ids.eq(0..20_000));
    drop((table, snapshot));
    assert_empty(&space);
}

#[test]
fn threads_append_and_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(8 << 20, dir.path());
    let table = Arc::new(Table::new("t", columns(), space.root()));
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let table = &table;
            scope.spawn(move || {
                for statement in 0..50 {
                    let rows: Vec<Row> =
                        (0..100).map(|_| (writer * 50 + statement, None)).collect();
                    table.append(&batch(table, &rows)).unwrap();
                }
            });
        }
        scope.spawn(|| {
            while table.row_count() < 20_000 {
                let all = read_all(&table.snapshot());
                let mut counts = std::collections::HashMap::new();
                all.iter()
                    .for_each(|(id, _)| *counts.entry(id).or_insert(0) += 1);
                assert!(
                    counts.values().all(|count| *count == 100),
                    "statements are atomic"
                );
            }
        });
    });
    assert_eq!(table.row_count(), 20_000);
    drop(table);
    assert_empty(&space);
}

#[test]
fn a_compressed_table_takes_less_of_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(8 << 20, dir.path());
    let of = |is_compressed| {
        let definition = Definition {
            columns: columns(),
            is_compressed,
            ..Definition::default()
        };
        Arc::new(Table::new("t", definition, space.root()))
    };
    let tables = [of(false), of(true)];
    let rows: Vec<Row> = (0..1000)
        .map(|id| (id, Some(format!("compress me {id} ").repeat(20))))
        .collect();
    for _ in 0..60 {
        for table in &tables {
            table.append(&batch(table, &rows)).unwrap();
        }
    }
    let [plain, compressed] = tables.each_ref().map(|table| {
        assert!(read_all(&table.snapshot()) == vec![rows.clone(); 60].concat());
        let counters = table.account().counters();
        assert!(counters.bytes_written > 4 << 20);
        counters.device_bytes_written as f64 / counters.bytes_written as f64
    });
    assert!(compressed < 0.5, "{compressed}, while {plain}");
    drop(tables);
    assert_empty(&space);
}
