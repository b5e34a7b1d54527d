//! Runs and column pages: what is read is what was appended.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal256Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Decimal256Array, DictionaryArray, Int32Array, Int64Array, RecordBatch,
    StringArray, StringViewArray, StructArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;
use mayfly_space::{Error as SpaceError, NextUse};
use mayfly_table::{BatchRun, Error};
use proptest::prelude::*;

use crate::batches::{Random, batch, schema, wide};
use crate::spaces::{BUDGETS, assert_empty, open};

/// Compares column by column, so that a failure tells the type and not all values.
fn assert_same(found: &RecordBatch, expect: &RecordBatch) {
    assert_eq!(found.num_rows(), expect.num_rows());
    assert_eq!(found.schema(), expect.schema());
    for (found, expect) in found.columns().iter().zip(expect.columns()) {
        assert_eq!(found.data_type(), expect.data_type());
        let is_same = unpacked(found) == unpacked(expect);
        assert!(is_same, "a column of {} differs", expect.data_type());
    }
}

/// The values of a dictionary: a null key and the key of a null value are the same.
fn unpacked(array: &ArrayRef) -> ArrayRef {
    match array.as_any_dictionary_opt() {
        Some(dictionary) => take(dictionary.values(), dictionary.keys(), None).unwrap(),
        None => Arc::clone(array),
    }
}

/// The batches that were appended, compared from a row on.
struct Expected<'a> {
    batches: &'a [RecordBatch],
    projection: Option<&'a [usize]>,
}

impl Expected<'_> {
    /// Compares some rows; they may be parts of several batches.
    fn check(&self, found: &RecordBatch, from: usize) {
        let mut first = 0;
        let mut checked = 0;
        for batch in self.batches {
            let start = (from + checked).max(first);
            let end = (from + found.num_rows()).min(first + batch.num_rows());
            if start < end {
                let mut rows = batch.slice(start - first, end - start);
                if let Some(columns) = self.projection {
                    rows = rows.project(columns).unwrap();
                }
                assert_same(&found.slice(start - from, end - start), &rows);
                checked += end - start;
            }
            first += batch.num_rows();
        }
        assert_eq!(checked, found.num_rows());
    }
}

/// Reads a run in each way and compares it with the batches that were appended.
fn check(run: BatchRun, batches: &[RecordBatch]) {
    let row_count: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(run.row_count(), row_count as u64);
    let last = run.schema().fields().len().checked_sub(1);
    let columns: Vec<usize> = last.into_iter().chain(last.map(|_| 0)).collect();
    let all = Expected {
        batches,
        projection: None,
    };
    let some = Expected {
        batches,
        projection: Some(&columns),
    };
    let mut row = 0;
    for index in 0..run.batch_count() {
        run.prefetch(index + 1);
        assert!(run.rows_of(index) > 0);
        all.check(&run.read(index, None).unwrap(), row);
        all.check(&run.read_copied(index, None).unwrap(), row);
        some.check(&run.read(index, Some(&columns)).unwrap(), row);
        row += run.rows_of(index);
    }
    assert_eq!(row, row_count);
    let mut row = 0;
    for rows in run.drain().unwrap() {
        let rows = rows.unwrap();
        all.check(&rows, row);
        row += rows.num_rows();
    }
    assert_eq!(row, row_count);
}

fn round_trip(seed: u64, budget: u64) {
    let mut random = Random(seed);
    let dir = tempfile::tempdir().unwrap();
    let space = open(budget, dir.path());
    let schema = schema(&mut random, 7);
    let longest = (budget / 64).min(3 << 20) as usize;
    let mut run = BatchRun::new(space.root(), Arc::clone(&schema), NextUse::At(1));
    let mut batches = Vec::new();
    for _ in 0..random.below(12) {
        let rows = [0, 1, random.below(20), random.below(2000)][random.below(4)];
        let batch = batch(&mut random, &schema, rows, longest);
        run.append(&batch).unwrap();
        batches.push(batch);
    }
    run.finish().unwrap();
    run.finish().unwrap();
    check(run, &batches);
    assert_empty(&space);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_rows_survive(seed in any::<u64>(), budget in 0..BUDGETS.len()) {
        round_trip(seed, BUDGETS[budget]);
    }
}

fn one_column(array: ArrayRef) -> RecordBatch {
    let field = Field::new("c", array.data_type().clone(), true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap()
}

fn run_of(space: &mayfly_space::Space, schema: SchemaRef) -> BatchRun {
    BatchRun::new(space.root(), schema, NextUse::SecondChance)
}

#[test]
fn a_run_of_sixteen_times_the_memory_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(1 << 20, dir.path());
    let batch_of = |part: i64| {
        let numbers: Int64Array = (part * 8192..(part + 1) * 8192).collect();
        one_column(Arc::new(numbers))
    };
    let mut run = run_of(&space, batch_of(0).schema());
    let batches: Vec<RecordBatch> = (0..256).map(batch_of).collect();
    for batch in &batches {
        run.append(batch).unwrap();
    }
    run.finish().unwrap();
    assert!(space.counters().bytes_written >= 14 << 20);
    check(run, &batches);
    assert!(space.counters().bytes_read >= 14 << 20);
    assert_empty(&space);
}

#[test]
fn values_over_a_mebibyte_get_pages_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let long = "x".repeat(5_000_000);
    let values = [
        Some("a"),
        None,
        Some(&long),
        Some(""),
        Some(&long[..1 << 20]),
        Some("z"),
    ];
    let batch = one_column(Arc::new(StringViewArray::from_iter(values)));
    let mut run = run_of(&space, batch.schema());
    run.append(&batch).unwrap();
    run.finish().unwrap();
    assert!(run.batch_count() >= 4, "{}", run.batch_count());
    check(run, &[batch]);
    assert_empty(&space);
}

#[test]
fn a_value_longer_than_the_memory_is_refused_and_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(1 << 20, dir.path());
    let good = one_column(Arc::new(StringArray::from(vec!["a", "b"])));
    let long = "x".repeat(16 << 20);
    let bad = one_column(Arc::new(StringArray::from(vec!["c", &long])));
    let mut run = run_of(&space, good.schema());
    run.append(&good).unwrap();
    let error = run.append(&bad).unwrap_err();
    assert!(
        matches!(error, Error::Space(SpaceError::BudgetExceeded { .. })),
        "{error}"
    );
    run.append(&good).unwrap();
    run.finish().unwrap();
    check(run, &[good.clone(), good]);
    assert_empty(&space);
}

#[test]
fn reading_fixed_width_columns_and_text_copies_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let numbers: Int64Array = (0..5000).collect();
    let words = StringArray::from_iter_values((0..5000).map(|n| format!("a word of row {n}")));
    let fields = vec![
        Field::new("n", DataType::Int64, true),
        Field::new("w", DataType::Utf8, true),
    ];
    let columns: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(words)];
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let mut run = run_of(&space, batch.schema());
    run.append(&batch).unwrap();
    run.finish().unwrap();
    let address = |batch: &RecordBatch| {
        let numbers = batch.column(0).as_primitive::<Int64Type>().values();
        let words = batch.column(1).as_string::<i32>();
        (numbers.as_ptr(), words.values().as_ptr())
    };
    let (first, second) = (run.read(0, None).unwrap(), run.read(0, None).unwrap());
    assert_eq!(
        address(&first),
        address(&second),
        "both reads point into the page"
    );
    assert_ne!(address(&first), address(&run.read_copied(0, None).unwrap()));
    // The arrays keep the page although the run is gone.
    drop(run);
    assert_eq!(
        first.column(1).as_string::<i32>().value(0),
        "a word of row 0"
    );
    drop((first, second));
    assert_empty(&space);
}

/// An array of views keeps the texts of all its rows, of which a page has few.
#[test]
fn pages_of_nested_texts_hold_those_of_their_rows() {
    const ROWS: usize = 2000;
    const TEXT_BYTES: usize = 500;
    let texts = (0..ROWS).map(|row| format!("{row:0TEXT_BYTES$}"));
    let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
    let field = Field::new("text", DataType::Utf8View, true);
    let structs = StructArray::new(vec![field].into(), vec![texts], None);
    let batch = one_column(Arc::new(structs));
    let dir = tempfile::tempdir().unwrap();
    let space = open(1 << 20, dir.path());
    let mut run = run_of(&space, batch.schema());
    for from in (0..ROWS).step_by(100) {
        run.append(&batch.slice(from, 100)).unwrap();
    }
    run.finish().unwrap();
    assert!(run.bytes() < (2 * ROWS * TEXT_BYTES) as u64, "{run:?}");
    assert!(run.longest_page_bytes() <= 16 << 10, "{run:?}");
    check(run, &[batch]);
    assert_empty(&space);
}

#[test]
fn small_batches_are_put_together_and_large_ones_cut() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let one = one_column(Arc::new(Int32Array::from(vec![1])));
    let mut run = run_of(&space, one.schema());
    for _ in 0..10_000 {
        run.append(&one).unwrap();
    }
    run.finish().unwrap();
    assert_eq!(run.batch_count(), 1);
    drop(run);

    let many = one_column(Arc::new((0..1_000_000).collect::<Int32Array>()));
    let mut run = run_of(&space, many.schema());
    run.append(&many).unwrap();
    run.finish().unwrap();
    assert!(
        (60..70).contains(&run.batch_count()),
        "{}",
        run.batch_count()
    );
    check(run, &[many]);
    assert_empty(&space);
}

#[test]
fn text_takes_any_text_type_and_other_types_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(8 << 20, dir.path());
    let schema = Arc::new(Schema::new(vec![Field::new(
        "c",
        DataType::Utf8View,
        false,
    )]));
    let mut run = run_of(&space, schema);
    run.append(&one_column(Arc::new(StringArray::from(vec!["plain"]))))
        .unwrap();
    let dictionary: DictionaryArray<Int32Type> = ["dictionary"].into_iter().collect();
    run.append(&one_column(Arc::new(dictionary))).unwrap();

    let numbers = one_column(Arc::new(Int32Array::from(vec![1])));
    let error = run.append(&numbers).unwrap_err();
    assert!(matches!(error, Error::TypeMismatch { .. }), "{error}");
    let null = one_column(Arc::new(StringArray::from(vec![None::<&str>])));
    let error = run.append(&null).unwrap_err();
    assert!(matches!(error, Error::NullValue { .. }), "{error}");
    let none = RecordBatch::new_empty(Arc::new(Schema::empty()));
    let error = run.append(&none).unwrap_err();
    assert!(
        matches!(
            error,
            Error::ColumnCount {
                expected: 1,
                found: 0
            }
        ),
        "{error}"
    );

    run.finish().unwrap();
    let read = run.read(0, None).unwrap();
    let words: Vec<_> = read.column(0).as_string_view().iter().flatten().collect();
    assert_eq!(words, ["plain", "dictionary"]);
}

#[test]
fn a_dictionary_of_short_keys_outgrows_them() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(8 << 20, dir.path());
    let key = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let schema = Arc::new(Schema::new(vec![Field::new("c", key, true)]));
    let mut run = run_of(&space, Arc::clone(&schema));
    let mut batches = Vec::new();
    for part in 0..10 {
        let words: Vec<String> = (0..100).map(|n| format!("{part}-{n}")).collect();
        let array: DictionaryArray<arrow_array::types::Int8Type> =
            words.iter().map(String::as_str).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(array)]).unwrap();
        run.append(&batch).unwrap();
        batches.push(batch);
    }
    let words = run.drain().unwrap().flat_map(|batch| {
        let batch = batch.unwrap();
        let array = batch
            .column(0)
            .as_dictionary::<arrow_array::types::Int8Type>()
            .clone();
        let array = array.downcast_dict::<StringArray>().unwrap();
        array
            .into_iter()
            .flatten()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    let expect: Vec<String> = (0..10)
        .flat_map(|part| (0..100).map(move |n| format!("{part}-{n}")))
        .collect();
    assert_eq!(words.collect::<Vec<_>>(), expect);
}

#[test]
fn the_widest_numbers_keep_their_sign() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(1 << 20, dir.path());
    let values = Decimal256Array::from_iter_values([wide(-3), wide(4)]);
    let batch = one_column(Arc::new(values));
    let mut run = run_of(&space, batch.schema());
    run.append(&batch).unwrap();
    run.finish().unwrap();
    let read = run.read(0, None).unwrap();
    assert_eq!(
        read.column(0).as_primitive::<Decimal256Type>().value(0),
        wide(-3)
    );
}
