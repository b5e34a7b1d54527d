//! Texts around the lengths at which their pages and views change form.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, Int64Array, RecordBatch};
use arrow_array::{StringArray, StringViewArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema};
use mayfly_space::NextUse;
use mayfly_table::{BatchRun, Table};

use crate::spaces::{Whole as _, assert_empty, open};
use crate::tables::columns;

/// Within a view, beside its data, with a prefix of their own, and far beyond.
const LENGTHS: [usize; 12] = [0, 1, 4, 11, 12, 13, 63, 64, 65, 66, 300, 3000];

/// A text whose first characters tell it from its neighbours.
fn text(row: usize) -> String {
    let len = LENGTHS[row % LENGTHS.len()];
    let mut text = format!("{:04}{}", row % 9973, "\u{e9}".repeat(len));
    while !text.is_char_boundary(len) {
        text.insert(4, 'x');
    }
    text.truncate(len);
    text
}

/// The values, and what Arrow has to say about the views.
fn read(array: &ArrayRef) -> Vec<Option<Vec<u8>>> {
    array
        .to_data()
        .validate_full()
        .expect("views show the first bytes of their values");
    match array.as_string_view_opt() {
        Some(array) => {
            let values = array.iter().map(|text| text.map(str::as_bytes));
            values.map(|text| text.map(<[u8]>::to_vec)).collect()
        }
        None => {
            let values = array.as_binary_view().iter();
            values.map(|bytes| bytes.map(<[u8]>::to_vec)).collect()
        }
    }
}

#[test]
fn a_view_shows_the_first_bytes_of_its_value() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(8 << 20, dir.path());
    let texts: Vec<String> = (0..5000).map(text).collect();
    let is_null = |row: usize| row % 7 == 3;
    let valid: NullBuffer = (0..texts.len()).map(|row| !is_null(row)).collect();
    // The slots of nulls have texts too, as filters leave them.
    let offsets = OffsetBuffer::from_lengths(texts.iter().map(String::len));
    let values = texts.concat().into_bytes().into();
    let flat = StringArray::new(offsets, values, Some(valid.clone()));
    let views = StringViewArray::from_iter_values(&texts);
    let (views, buffers, _) = views.into_parts();
    let views = StringViewArray::new(views, buffers, Some(valid));
    let bytes: BinaryViewArray = views.clone().to_binary_view();
    let expect: Vec<Option<Vec<u8>>> = texts
        .iter()
        .enumerate()
        .map(|(row, text)| (!is_null(row)).then(|| text.clone().into_bytes()))
        .collect();
    let cases: [(DataType, ArrayRef); 3] = [
        (DataType::Utf8View, Arc::new(flat)),
        (DataType::Utf8View, Arc::new(views)),
        (DataType::BinaryView, Arc::new(bytes)),
    ];
    for (data_type, array) in cases {
        let stored = Arc::new(Schema::new(vec![Field::new("a", data_type, true)]));
        let found = Schema::new(vec![Field::new("a", array.data_type().clone(), true)]);
        let batch = RecordBatch::try_new(Arc::new(found), vec![array]).unwrap();
        let mut run = BatchRun::new(space.root(), stored, NextUse::At(0));
        // In parts of many lengths, so that pages are made of several.
        let mut from = 0;
        while from < batch.num_rows() {
            let count = (1 + from / 3).min(batch.num_rows() - from);
            run.append(&batch.slice(from, count)).unwrap();
            from += count;
        }
        run.finish().unwrap();
        let mut all = Vec::new();
        for index in 0..run.batch_count() {
            let rows = read(run.read(index, None).unwrap().column(0));
            let copied = read(run.read_copied(index, None).unwrap().column(0));
            assert!(rows == copied);
            all.extend(rows);
        }
        assert!(all == expect);
    }
    assert_empty(&space);
}

#[test]
fn short_pages_of_long_texts_become_one() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(8 << 20, dir.path());
    let table = Arc::new(Table::new("t", columns(), space.root()));
    let texts: Vec<String> = (0..3000).map(text).collect();
    for (row, text) in texts.iter().enumerate() {
        let id = Int64Array::from(vec![row as i64]);
        let text = StringViewArray::from_iter([Some(text)]);
        let columns: Vec<ArrayRef> = vec![Arc::new(id), Arc::new(text)];
        let batch = RecordBatch::try_new(Arc::clone(table.schema()), columns).unwrap();
        table.append(&batch).unwrap();
        table.assert_whole();
    }
    let snapshot = table.snapshot();
    let mut all = Vec::new();
    for index in 0..snapshot.batch_count() {
        all.extend(read(snapshot.read(index, None).unwrap().column(1)));
    }
    let bytes = |text: String| Some(text.into_bytes());
    assert!(all == texts.into_iter().map(bytes).collect::<Vec<_>>());
    drop((snapshot, table));
    assert_empty(&space);
}
