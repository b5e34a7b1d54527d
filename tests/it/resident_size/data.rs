//! The files of the suite: narrow and wide rows as Parquet, CSV and JSON lines.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use mayfly_testkit::Random;

use crate::parquet_file::write_parquet;

/// Rows with six columns, about 40 bytes each.
pub const NARROW_ROWS: i64 = 400_000;
/// Rows with eight columns, about 900 bytes each.
pub const WIDE_ROWS: i64 = 60_000;
/// Rows with one text of `LONG_BYTES`.
pub const LONG_ROWS: i64 = 300;
const LONG_BYTES: usize = 200_000;
/// Rows of a row group, which takes some MiB.
const WIDE_GROUP_ROWS: usize = 6_000;
const LONG_GROUP_ROWS: usize = 30;
/// Rows that are written together.
const BATCH_ROWS: i64 = 10_000;
/// Bytes of a page that is one for a whole column: as large as the format allows.
const PAGE_BYTES_MAX: usize = i32::MAX as usize;

/// Writes all files to a directory.
pub fn write(directory: &Path) {
    let path = |name: &str| directory.join(name);
    let usual = || WriterProperties::builder().set_compression(Compression::SNAPPY);
    let groups = |rows| usual().set_max_row_group_row_count(Some(rows));
    let rows = batches(NARROW_ROWS, narrow);
    write_parquet(&path("narrow.parquet"), usual().build(), &rows);
    write_csv(&path("narrow.csv"), &rows);
    write_json(&path("narrow.json"), &rows);
    let rows = batches(LONG_ROWS, long);
    write_parquet(
        &path("long.parquet"),
        groups(LONG_GROUP_ROWS).build(),
        &rows,
    );
    write_csv(&path("long.csv"), &rows);
    write_json(&path("long.json"), &rows);
    let rows = batches(WIDE_ROWS, wide);
    write_parquet(
        &path("wide.parquet"),
        groups(WIDE_GROUP_ROWS).build(),
        &rows,
    );
    write_csv(&path("wide.csv"), &rows);
    write_json(&path("wide.json"), &rows);
    // As DuckDB writes them: one page for a column of a row group, without an index of pages.
    let one_page = usual()
        .set_data_page_size_limit(PAGE_BYTES_MAX)
        .set_data_page_row_count_limit(PAGE_BYTES_MAX)
        .set_dictionary_enabled(false)
        .set_offset_index_disabled(true);
    write_parquet(&path("one_page.parquet"), one_page.build(), &rows);
}

fn batches(rows: i64, batch: fn(i64, i64) -> RecordBatch) -> Vec<RecordBatch> {
    let starts = (0..rows).step_by(BATCH_ROWS as usize);
    starts
        .map(|start| batch(start, (start + BATCH_ROWS).min(rows)))
        .collect()
}

fn write_csv(path: &Path, rows: &[RecordBatch]) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let mut writer = arrow::csv::Writer::new(&mut file);
    for batch in rows {
        writer.write(batch).unwrap();
    }
    drop(writer);
    file.flush().unwrap();
}

fn write_json(path: &Path, rows: &[RecordBatch]) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let mut writer = arrow::json::LineDelimitedWriter::new(&mut file);
    for batch in rows {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
    file.flush().unwrap();
}

/// A number for a row that is the same whoever asks.
fn mixed(row: i64) -> i64 {
    (Random::new(row as u64).next_u64() >> 33) as i64
}

fn record(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

/// A column of so many values, in no order.
fn groups_of(rows: Range<i64>, groups: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(
        rows.map(|row| mixed(row) % groups),
    ))
}

/// A column of ten values that take turns.
fn ten_values(rows: Range<i64>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(
        rows.map(|row| (row % 10) as i32),
    ))
}

/// `id` is unique, `k` has a value for four rows, `few` has ten values.
fn narrow(from: i64, to: i64) -> RecordBatch {
    let groups = NARROW_ROWS / 4;
    let decimals = (from..to).map(|row| Some(i128::from(mixed(row)) * 1_000_003));
    let decimals: Decimal128Array = decimals.collect();
    let texts = (from..to).map(|row| format!("s{:x}", mixed(row)));
    record(vec![
        ("id", Arc::new(Int64Array::from_iter_values(from..to))),
        ("k", groups_of(from..to, groups)),
        ("few", ten_values(from..to)),
        (
            "v",
            Arc::new(Int64Array::from_iter_values((from..to).map(mixed))),
        ),
        (
            "d",
            Arc::new(decimals.with_precision_and_scale(30, 6).unwrap()),
        ),
        ("s", Arc::new(StringArray::from_iter_values(texts))),
    ])
}

/// Texts `a` and `b` of 350 and 450 characters that no dictionary shortens.
fn wide(from: i64, to: i64) -> RecordBatch {
    let text = |row: i64, len: usize| {
        let mut random = Random::new((row as u64) << 8 | len as u64 & 0xFF);
        let mut text = String::with_capacity(len + 16);
        while text.len() < len {
            let _ = write!(text, "{:016x}", random.next_u64());
        }
        text.truncate(len);
        text
    };
    let numbers = |factor: i64| {
        let values = (from..to).map(move |row| mixed(row * factor));
        Arc::new(Int64Array::from_iter_values(values)) as ArrayRef
    };
    let groups = WIDE_ROWS / 4;
    record(vec![
        ("id", Arc::new(Int64Array::from_iter_values(from..to))),
        ("k", groups_of(from..to, groups)),
        ("few", ten_values(from..to)),
        ("n1", numbers(3)),
        ("n2", numbers(5)),
        ("n3", numbers(7)),
        (
            "a",
            Arc::new(StringArray::from_iter_values(
                (from..to).map(|row| text(row, 350)),
            )),
        ),
        (
            "b",
            Arc::new(StringArray::from_iter_values(
                (from..to).map(|row| text(row / 2, 450)),
            )),
        ),
    ])
}

/// A text `t` that is much longer than a row should be.
fn long(from: i64, to: i64) -> RecordBatch {
    let texts = (from..to).map(|row| format!("{row:06}").repeat(LONG_BYTES / 6));
    record(vec![
        ("id", Arc::new(Int64Array::from_iter_values(from..to))),
        ("t", Arc::new(StringArray::from_iter_values(texts))),
    ])
}
