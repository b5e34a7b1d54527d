//! Parquet files in small budgets: as many readers as there is memory for, and errors that say what
//! a file needs.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{
    ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use mayfly_space::{Space, SpaceOptions};
use mayfly_testkit::Random;

use mayfly_exec::{RowGroupRefused, find_space_error, install};

const MIB: u64 = 1 << 20;
const TEXT_BYTES: usize = 1000;

/// Writes rows whose texts do not compress, `group_rows` of them to a row group that is read as a
/// whole: nothing says where its pages begin.
fn write(path: &Path, rows: usize, group_rows: usize, compression: Compression) {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(false)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(group_rows))
        .build();
    let batch = |from: usize, to: usize| {
        let texts = (from..to).map(|row| {
            let mut random = Random::new(row as u64);
            let letters = (0..TEXT_BYTES).map(|_| (b'!' + random.below(90) as u8) as char);
            letters.collect::<String>()
        });
        let numbers = (from..to).map(|row| row as i64);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(numbers))),
            ("t", Arc::new(StringArray::from_iter_values(texts))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let file = File::create(path).unwrap();
    let schema = batch(0, 0).schema();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).unwrap();
    for from in (0..rows).step_by(group_rows) {
        writer
            .write(&batch(from, rows.min(from + group_rows)))
            .unwrap();
    }
    writer.close().unwrap();
}

async fn session(space: &Space, path: &Path) -> SessionContext {
    session_that(space, path, false).await
}

/// One that may leave rows out while it decodes them.
async fn session_that(space: &Space, path: &Path, filters: bool) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(4);
    config.options_mut().execution.parquet.pushdown_filters = filters;
    config.options_mut().optimizer.repartition_file_min_size = 1;
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config);
    let state = install(builder, space).unwrap().build();
    let context = SessionContext::new_with_state(state);
    let path = path.to_str().unwrap();
    let read = context.register_parquet("t", path, ParquetReadOptions::default());
    read.await.unwrap();
    context
}

fn open(memory_bytes: u64) -> Space {
    let options = SpaceOptions {
        memory_bytes,
        ..SpaceOptions::default()
    };
    Space::open(options).unwrap()
}

/// The number of rows with a text that is no shorter than expected.
async fn count(context: &SessionContext) -> Result<i64> {
    let sql = format!("SELECT COUNT(*) FROM t WHERE length(t) >= {TEXT_BYTES} AND id >= 0");
    let batches = context.sql(&sql).await?.collect().await?;
    Ok(batches[0].column(0).as_primitive::<Int64Type>().value(0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_read_at_a_time_as_there_is_memory_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("groups.parquet");
    // Eight row groups of 4 MiB: four at a time are more than there is.
    for compression in [Compression::SNAPPY, Compression::UNCOMPRESSED] {
        write(&path, 32_000, 4_000, compression);
        let space = open(16 * MIB);
        let context = session(&space, &path).await;
        assert_eq!(count(&context).await.unwrap(), 32_000);
        let counters = space.counters();
        assert_eq!(counters.reserved_bytes, 0);
        assert!(space.memory_bytes() >= counters.pinned_bytes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_that_reads_file_after_file_gives_its_turn_back() {
    let directory = tempfile::tempdir().unwrap();
    for file in 0..6 {
        let path = directory.path().join(format!("{file}.parquet"));
        write(&path, 10_000, 5_000, Compression::SNAPPY);
    }
    let space = open(12 * MIB);
    let context = session(&space, directory.path()).await;
    assert_eq!(count(&context).await.unwrap(), 60_000);
    assert_eq!(space.counters().reserved_bytes, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_group_beyond_all_memory_is_an_error_that_names_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large.parquet");
    write(&path, 40_000, 40_000, Compression::SNAPPY);
    let space = open(16 * MIB);
    let context = session(&space, &path).await;
    let error = count(&context).await.unwrap_err();
    let found = find_space_error(&error).unwrap_or_else(|| panic!("untyped: {error}"));
    assert!(
        matches!(*found, mayfly_space::Error::BudgetExceeded { .. }),
        "{error}"
    );
    let mut cause: &(dyn std::error::Error + 'static) = &error;
    let refused = loop {
        match cause.downcast_ref::<RowGroupRefused>() {
            Some(refused) => break refused,
            None => cause = cause.source().unwrap_or_else(|| panic!("untyped: {error}")),
        }
    };
    assert!(refused.file.ends_with("large.parquet"), "{refused}");
    assert!(refused.needed_bytes > 35 * MIB, "{refused}");
    drop(found);
    assert_eq!(space.counters().reserved_bytes, 0);
    // What is small is read, also of this file.
    let sum = context.sql("SELECT SUM(id) FROM t").await.unwrap();
    assert_eq!(sum.collect().await.unwrap()[0].num_rows(), 1);
}

/// Rows whose row groups are read in pieces: numbers in order, numbers and texts with NULLs, few
/// texts that become a dictionary, and lists.
fn varied(rows: Range<u64>) -> RecordBatch {
    let random = |row: u64| Random::new(row).next_u64() >> 2;
    let text = |row: u64| {
        let mut random = Random::new(row);
        let letters = (0..random.below(1_000)).map(|_| (b'!' + random.below(90) as u8) as char);
        letters.collect::<String>()
    };
    let is_there = |row: u64| !row.is_multiple_of(7);
    let ids = rows.clone().map(|row| row as i64);
    let numbers = rows.clone();
    let numbers = numbers.map(|row| is_there(row).then(|| random(row) as i64 % 1_000_000));
    let texts = rows.clone().map(|row| is_there(row + 3).then(|| text(row)));
    let few = rows
        .clone()
        .map(|row| format!("one of few {}", random(row) % 10));
    let lists = rows.map(|row| {
        let items = 0..random(row) % 4;
        is_there(row).then(|| items.map(|item| Some(item as i64)).collect::<Vec<_>>())
    });
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(ids)), true),
        ("n", Arc::new(Int64Array::from_iter(numbers)), true),
        ("t", Arc::new(StringArray::from_iter(texts)), true),
        ("few", Arc::new(StringArray::from_iter_values(few)), true),
        ("l", Arc::new(lists), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Writes row groups in pages of 1,000 rows.
fn write_paged(path: &Path, batch: &RecordBatch, group_rows: usize) {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(1_000)
        .set_write_batch_size(500)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_groups_beyond_all_memory_are_read_in_pieces() {
    let directory = tempfile::tempdir().unwrap();
    // A row group of some 20 MiB; one of 13 MiB with a small one; one that lacks columns.
    let path = |name: &str| directory.path().join(name);
    write_paged(&path("a.parquet"), &varied(0..40_000), 100_000);
    write_paged(&path("b.parquet"), &varied(40_000..67_000), 26_000);
    let lacking = varied(67_000..90_000).project(&[2, 0]).unwrap();
    write_paged(&path("c.parquet"), &lacking, 100_000);
    let statements = [
        "SELECT COUNT(*), SUM(id), SUM(n), COUNT(n), COUNT(t), SUM(length(t)), MIN(t), MAX(t) FROM t",
        "SELECT few, COUNT(*), SUM(id), SUM(length(t)) FROM t GROUP BY few ORDER BY few",
        "SELECT COUNT(*), SUM(length(t)) FROM t WHERE id BETWEEN 12345 AND 23456",
        "SELECT COUNT(*), SUM(id), MIN(t) FROM t WHERE id IN (0, 999, 1000, 20000, 39999, 66999, 80000)",
        "SELECT id, t FROM t WHERE t > 'x' ORDER BY id DESC LIMIT 20",
        "SELECT id, length(t) FROM t WHERE n IS NULL AND id > 60000 ORDER BY id LIMIT 30 OFFSET 100",
        "SELECT id, l, length(t) FROM t WHERE id % 100 = 1 ORDER BY id",
        "SELECT id, n, length(t), l FROM t WHERE n < 5000 ORDER BY id",
        "SELECT id, t FROM t ORDER BY n, id LIMIT 10",
        "SELECT COUNT(*) FROM (SELECT t FROM t LIMIT 7777) x",
    ];
    let mut expected: Vec<String> = Vec::new();
    for (mib, filters) in [
        (1024, false),
        (64, true),
        (12, false),
        (12, true),
        (8, false),
    ] {
        let space = open(mib * MIB);
        let context = session_that(&space, directory.path(), filters).await;
        for (number, sql) in statements.iter().enumerate() {
            let rows = context.sql(sql).await.unwrap().collect().await;
            let rows = rows.unwrap_or_else(|error| panic!("{mib} MiB: {sql}: {error}"));
            let rows = pretty_format_batches(&rows).unwrap().to_string();
            match expected.get(number) {
                Some(expected) => assert_eq!(*expected, rows, "{mib} MiB: {sql}"),
                None => expected.push(rows),
            }
        }
        // Readers behind a LIMIT are told to end, and end a little later.
        for _ in 0..1_000 {
            if space.counters().reserved_bytes > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        assert_eq!(space.counters().reserved_bytes, 0, "{mib} MiB");
    }
}
