//! The groups of random batches against a plain map, at several budgets.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, Int64Array, StringViewArray};
use arrow_schema::DataType;
use mayfly_space::{Account, PageClass, Space, SpaceOptions};
use proptest::prelude::*;

use super::segment::Shape;
use super::*;

mod collisions;
mod growing;
mod numbers;
mod short_keys;
mod shortage;
mod updates;

/// Rows of a test: a key of text and number, a number to aggregate, a text to carry.
type Row = (Option<String>, Option<i32>, Option<i64>, Option<String>);

/// Count, sum, least and greatest number, least and greatest text of a group.
#[derive(Debug, Clone, PartialEq, Default)]
struct Expected {
    count: i64,
    sum: Option<i64>,
    min: Option<i64>,
    max: Option<i64>,
    least: Option<String>,
    greatest: Option<String>,
}

fn space(memory_bytes: u64) -> Space {
    Space::open(SpaceOptions {
        memory_bytes,
        ..SpaceOptions::default()
    })
    .expect("a space opens")
}

/// What all parts of an aggregate share that nobody stops.
fn shape(layout: RowLayout, account: &Account, page_class: PageClass) -> Arc<Shape> {
    Shape::new(layout, account.clone(), page_class, StopFlag::default())
}

fn key(data_type: DataType) -> KeyColumn {
    KeyColumn {
        data_type,
        nullable: true,
    }
}

fn layout() -> RowLayout {
    let text = |rule| PayloadColumn {
        data_type: DataType::Utf8View,
        nullable: true,
        rule,
    };
    RowLayout::new(
        &[key(DataType::Utf8View), key(DataType::Int32)],
        &[text(PayloadRule::Min), text(PayloadRule::Max)],
        &[
            (StateKind::Count, false),
            (StateKind::Sum(Number::Int), true),
            (StateKind::Min(Number::Int), true),
            (StateKind::Max(Number::Int), true),
        ],
    )
    .expect("rows hold these types")
}

fn expected(rows: &[Row]) -> HashMap<(Option<String>, Option<i32>), Expected> {
    let mut groups = HashMap::new();
    for (text, number, value, carried) in rows {
        let group: &mut Expected = groups.entry((text.clone(), *number)).or_default();
        group.count += 1;
        if let Some(value) = value {
            group.sum = Some(group.sum.unwrap_or(0).wrapping_add(*value));
            group.min = Some(group.min.map_or(*value, |m| m.min(*value)));
            group.max = Some(group.max.map_or(*value, |m| m.max(*value)));
        }
        if let Some(carried) = carried {
            let least = group.least.get_or_insert_with(|| carried.clone());
            *least = least.clone().min(carried.clone());
            let greatest = group.greatest.get_or_insert_with(|| carried.clone());
            *greatest = greatest.clone().max(carried.clone());
        }
    }
    groups
}

fn push(worker: &mut GroupWorker, rows: &[Row]) -> Result<(), Error> {
    let key: [ArrayRef; 2] = [
        Arc::new(
            rows.iter()
                .map(|r| r.0.as_deref())
                .collect::<StringViewArray>(),
        ),
        Arc::new(rows.iter().map(|r| r.1).collect::<Int32Array>()),
    ];
    let value: ArrayRef = Arc::new(rows.iter().map(|r| r.2).collect::<Int64Array>());
    let carried: ArrayRef = Arc::new(
        rows.iter()
            .map(|r| r.3.as_deref())
            .collect::<StringViewArray>(),
    );
    let argument = || StateInput {
        values: Some(Arc::clone(&value)),
        filter: None,
    };
    worker.push(&GroupInput {
        rows: rows.len(),
        key: &key,
        payload: &[Arc::clone(&carried), carried],
        states: &[StateInput::default(), argument(), argument(), argument()],
    })
}

fn read(set: &Arc<GroupSet>) -> HashMap<(Option<String>, Option<i32>), Expected> {
    let mut groups = HashMap::new();
    let mut reader = GroupReader::new(Arc::clone(set));
    while let Some(batch) = reader.next_batch(100).expect("groups are read") {
        let texts = batch.key[0].as_string_view();
        let numbers = batch.key[1].as_primitive::<Int32Type>();
        let of = |state: usize, row: usize| {
            let array = batch.states[state][0].as_primitive::<Int64Type>();
            array.is_valid(row).then(|| array.value(row))
        };
        let carried = |column: usize, row: usize| {
            let array = batch.payload[column].as_string_view();
            array.is_valid(row).then(|| array.value(row).to_owned())
        };
        for row in 0..batch.rows {
            let text = texts.is_valid(row).then(|| texts.value(row).to_owned());
            let number = numbers.is_valid(row).then(|| numbers.value(row));
            let found = Expected {
                count: of(0, row).expect("a count is never NULL"),
                sum: of(1, row),
                min: of(2, row),
                max: of(3, row),
                least: carried(0, row),
                greatest: carried(1, row),
            };
            assert!(
                groups.insert((text, number), found).is_none(),
                "a group came twice"
            );
        }
    }
    groups
}

fn check(rows: &[Row], memory_bytes: u64, front_groups: usize) -> u64 {
    let space = space(memory_bytes);
    let account = space.root().clone();
    let mut options = GroupOptions::for_budget(memory_bytes, PageClass::K4, 2);
    options.front_groups = front_groups;
    let set = GroupSet::new(layout(), &account, options).expect("the minimum is there");
    let mut workers = [set.worker(0), set.worker(1)];
    for (number, chunk) in rows.chunks(97).enumerate() {
        push(&mut workers[number % 2], chunk).expect("rows go in");
    }
    for worker in workers {
        worker.finish().expect("workers end");
    }
    assert_eq!(read(&set), expected(rows));
    drop(set);
    let counters = space.counters();
    assert_eq!(counters.pinned_bytes, 0, "a pin outlived the set");
    counters.bytes_written
}

fn random_rows(seed: u64, count: usize, keys: u64, text_len: usize) -> Vec<Row> {
    let mut state = seed | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count)
        .map(|_| {
            let key = next() % keys;
            let text = (!key.is_multiple_of(11)).then(|| {
                let len = (key as usize * 7) % (text_len + 1);
                format!("{key}").repeat(len / 4 + 1)
            });
            let number = (!key.is_multiple_of(7)).then_some((key % 1000) as i32);
            let value = (!next().is_multiple_of(5)).then(|| next() as i64 >> 20);
            let carried = (!next().is_multiple_of(6)).then(|| {
                let draw = next();
                format!("{draw:x}").repeat((draw % 3) as usize)
            });
            (text, number, value, carried)
        })
        .collect()
}

#[test]
fn groups_in_memory() {
    check(&random_rows(1, 20_000, 50, 20), 64 << 20, 1 << 12);
    check(&random_rows(2, 20_000, 1 << 40, 20), 64 << 20, 1 << 12);
}

#[test]
fn groups_beyond_memory() {
    let written = check(&random_rows(3, 60_000, 1 << 40, 60), 1 << 20, 64);
    assert!(
        written > 0,
        "six megabytes of groups went through one without a write"
    );
    let written = check(&random_rows(4, 60_000, 20_000, 60), 1 << 20, 64);
    assert!(written > 0);
}

#[test]
fn one_group_and_all_unique() {
    check(&random_rows(5, 5_000, 1, 8), 1 << 20, 0);
    check(&random_rows(6, 5_000, u64::MAX, 8), 1 << 20, 0);
}

#[test]
fn a_row_larger_than_a_page() {
    let mut rows = random_rows(7, 500, 40, 10);
    rows[3].0 = Some("long".repeat(30_000));
    rows[400].0 = Some("long".repeat(30_000));
    rows[401].3 = Some("z".repeat(50_000));
    check(&rows, 8 << 20, 16);
}

#[test]
fn decimals_and_moments() {
    let layout = RowLayout::new(
        &[key(DataType::Int64)],
        &[],
        &[
            (StateKind::Sum(Number::Decimal), false),
            (StateKind::Moments, true),
        ],
    )
    .expect("rows hold these types");
    let space = space(8 << 20);
    let options = GroupOptions::for_budget(8 << 20, PageClass::K16, 1);
    let set = GroupSet::new(layout, space.root(), options).expect("the minimum is there");
    let mut worker = set.worker(0);
    let key: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 2, 1]));
    let digits = arrow_array::Decimal128Array::from(vec![5i128, 7, 9, 1 << 90]);
    let digits: ArrayRef = Arc::new(
        digits
            .with_precision_and_scale(38, 0)
            .expect("38 digits are the most"),
    );
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![
        Some(2.0),
        Some(4.0),
        None,
        Some(9.0),
    ]));
    let states = [digits, floats].map(|values| StateInput {
        values: Some(values),
        filter: None,
    });
    let input = GroupInput {
        rows: 4,
        key: &[key],
        payload: &[],
        states: &states,
    };
    worker.push(&input).expect("rows go in");
    worker.finish().expect("workers end");
    let mut reader = GroupReader::new(set);
    let mut found = Vec::new();
    while let Some(batch) = reader.next_batch(10).expect("groups are read") {
        for row in 0..batch.rows {
            let sum = batch.states[0][0]
                .as_primitive::<Decimal128Type>()
                .value(row);
            let parts = [0, 1, 2].map(|part: usize| {
                batch.states[1][part]
                    .as_primitive::<Float64Type>()
                    .value(row)
            });
            found.push((
                batch.key[0].as_primitive::<Int64Type>().value(row),
                sum,
                parts,
            ));
        }
    }
    found.sort_by_key(|group| group.0);
    assert_eq!(found[0], (1, 12 + (1 << 90), [3.0, 5.0, 26.0]));
    assert_eq!(found[1], (2, 9, [0.0, 0.0, 0.0]));
}

#[test]
fn numbers_follow_first_appearance() {
    let space = space(8 << 20);
    let mut numbering = GroupNumbering::new(
        &[key(DataType::Utf8View)],
        space.root(),
        PageClass::K16,
        Level::default(),
    )
    .expect("no I/O is needed")
    .expect("there is memory");
    let mut numbers = Vec::new();
    for texts in [["b", "a", "b"], ["c", "a", "b"]] {
        let key: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
        assert!(
            numbering
                .assign(3, &[key], &mut numbers)
                .expect("rows go in")
        );
    }
    assert_eq!(numbers, [0, 1, 0, 2, 1, 0]);
    let mut keys = numbering.into_keys();
    let batch = keys
        .next_batch(10)
        .expect("keys are read")
        .expect("there are keys");
    let texts: Vec<&str> = batch.key[0].as_string_view().iter().flatten().collect();
    assert_eq!(texts, ["b", "a", "c"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_rows_group_alike(
        seed in any::<u64>(),
        count in 0usize..6_000,
        keys in prop_oneof![Just(1u64), Just(40), Just(3_000), Just(u64::MAX)],
        text_len in 0usize..200,
        memory in prop_oneof![Just(1u64 << 20), Just(2 << 20), Just(64 << 20)],
        front in prop_oneof![Just(0usize), Just(8), Just(4096)],
    ) {
        check(&random_rows(seed, count, keys, text_len), memory, front);
    }
}
