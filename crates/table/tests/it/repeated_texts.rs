//! Texts that repeat in pages: what pages take, whoever writes them, and that none outgrows its
//! limit where texts repeat less than before.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray, UInt64Array};
use mayfly_space::Account;
use mayfly_table::{Column, Definition, Key, KeyKind, KeyPart, Table, TableSnapshot};
use mayfly_types::ColumnType;

use crate::spaces::{Whole as _, assert_empty, open};

/// The largest page of many rows.
const PAGE_BYTES_MAX: u64 = 256 << 10;

fn table(account: &Account) -> Arc<Table> {
    let definition = Definition {
        columns: vec![
            Column::new("id", ColumnType::BigInt { unsigned: false }, false),
            Column::new("t", ColumnType::VarChar { length: 4000 }, true),
        ],
        keys: vec![Key::new("PRIMARY", KeyKind::Primary, vec![KeyPart::new(0)])],
        ..Definition::default()
    };
    Arc::new(Table::new("t", definition, account))
}

fn batch(table: &Table, ids: std::ops::Range<i64>, text: impl Fn(i64) -> String) -> RecordBatch {
    let texts = StringViewArray::from_iter_values(ids.clone().map(text));
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(ids)), Arc::new(texts)];
    RecordBatch::try_new(Arc::clone(table.schema()), columns).unwrap()
}

fn long(number: i64) -> String {
    format!("{number:>5}").repeat(60)
}

fn largest_page(snapshot: &TableSnapshot) -> u64 {
    snapshot.page_bytes_max(0..snapshot.batch_count())
}

/// Reads all rows, by their ids.
fn texts(snapshot: &TableSnapshot) -> Vec<(i64, String)> {
    let mut rows = Vec::new();
    for index in 0..snapshot.batch_count() {
        let batch = snapshot.read(index, None).unwrap();
        let ids = batch
            .column(0)
            .as_primitive::<arrow_array::types::Int64Type>();
        let texts = batch.column(1).as_string_view();
        rows.extend(
            ids.values()
                .iter()
                .copied()
                .zip(texts.iter().map(|t| t.unwrap().to_owned())),
        );
    }
    rows.sort();
    rows
}

#[test]
fn rows_that_come_one_by_one_leave_pages_short() {
    let dir = tempfile::tempdir().unwrap();
    for budget in [8 << 20, 64 << 20] {
        let space = open(budget, dir.path());
        let table = table(space.root());
        table
            .append(&batch(&table, 0..3000, |id| long(id % 5)))
            .unwrap();
        assert!(
            table.bytes() < 100 << 10,
            "{} bytes of 3,000 rows",
            table.bytes()
        );
        for id in 3000..4000 {
            table
                .append(&batch(&table, id..id + 1, |id| long(id % 5)))
                .unwrap();
        }
        assert!(
            table.bytes() < 200 << 10,
            "{} bytes of 4,000 rows",
            table.bytes()
        );
        // Texts of which each page has some, and all pages many.
        for id in 4000..9000 {
            table.append(&batch(&table, id..id + 1, long)).unwrap();
        }
        assert!(largest_page(&table.snapshot()) <= PAGE_BYTES_MAX);
        let expected = (0..9000).map(|id| (id, long(if id < 4000 { id % 5 } else { id })));
        assert!(texts(&table.snapshot()).into_iter().eq(expected));
        table.assert_whole();
        drop(table);
        assert_empty(&space);
    }
}

#[test]
fn pages_of_texts_that_repeat_less_than_before_are_several() {
    let dir = tempfile::tempdir().unwrap();
    for budget in [8 << 20, 64 << 20] {
        let space = open(budget, dir.path());
        let table = table(space.root());
        // Turns of texts that repeat and of others, a batch and a fraction long.
        let text = |id: i64| match id / 3000 % 2 {
            0 => long(id % 3),
            _ => long(id),
        };
        let mut appender = table.begin_append();
        for from in (0..40_000).step_by(1000) {
            appender
                .append(&batch(&table, from..from + 1000, text))
                .unwrap();
        }
        assert_eq!(appender.commit().unwrap(), 40_000);
        let snapshot = table.snapshot();
        assert!(largest_page(&snapshot) <= PAGE_BYTES_MAX);
        assert!(
            texts(&snapshot)
                .into_iter()
                .eq((0..40_000).map(|id| (id, text(id))))
        );
        table.assert_whole();
        drop((snapshot, table));
        assert_empty(&space);
    }
}

#[test]
fn what_is_left_of_pages_becomes_no_longer_page() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let table = table(space.root());
    for from in (0..40_000).step_by(8000) {
        table
            .append(&batch(&table, from..from + 8000, |id| long(id / 8)))
            .unwrap();
    }
    let mut change = table.begin_change();
    let mut gone = Vec::new();
    for index in 0..change.snapshot().batch_count() {
        let rows = change.snapshot().read(index, None).unwrap();
        let ids = rows
            .column(0)
            .as_primitive::<arrow_array::types::Int64Type>();
        let places = change.snapshot().row_ids(index);
        let rows = ids.values().iter().zip(places.values());
        gone.extend(rows.filter(|(id, _)| *id % 8 != 0).map(|(_, place)| *place));
    }
    change.remove(&UInt64Array::from(gone));
    change.commit().unwrap();
    let snapshot = table.snapshot();
    assert!(largest_page(&snapshot) <= PAGE_BYTES_MAX);
    let expected = (0..40_000).step_by(8).map(|id| (id, long(id / 8)));
    assert!(texts(&snapshot).into_iter().eq(expected));
    table.assert_whole();
}
