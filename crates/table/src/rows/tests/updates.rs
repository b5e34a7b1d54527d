//! Groups brought up to date from columns, merged from rows and read back, against a plain
//! computation: every kind of state.

use arrow_array::types::{Decimal256Type, UInt64Type};
use arrow_array::{BooleanArray, Decimal128Array, Decimal256Array, UInt64Array};
use arrow_buffer::i256;

use super::*;

const KINDS: [StateKind; 17] = [
    StateKind::Count,
    StateKind::Sum(Number::Int),
    StateKind::Sum(Number::UInt),
    StateKind::Sum(Number::Float),
    StateKind::Sum(Number::Decimal),
    StateKind::Sum(Number::Wide),
    StateKind::Min(Number::Int),
    StateKind::Max(Number::UInt),
    StateKind::Min(Number::Float),
    StateKind::Max(Number::Float),
    StateKind::Max(Number::Decimal),
    StateKind::Min(Number::Wide),
    StateKind::Max(Number::Wide),
    StateKind::BitAnd,
    StateKind::BitOr,
    StateKind::BitXor,
    StateKind::Moments,
];

/// The argument of a state from small whole numbers: their sums are exact in floats as well.
fn argument(kind: StateKind, values: &[Option<i64>], filter: Option<&BooleanArray>) -> StateInput {
    let number = match kind {
        StateKind::Sum(n) | StateKind::Min(n) | StateKind::Max(n) => n,
        StateKind::Moments => Number::Float,
        _ => Number::UInt,
    };
    let array: ArrayRef = match number {
        Number::Int => Arc::new(values.iter().copied().collect::<Int64Array>()),
        Number::UInt => Arc::new(
            values
                .iter()
                .map(|v| v.map(|v| v as u64))
                .collect::<UInt64Array>(),
        ),
        Number::Float => Arc::new(
            values
                .iter()
                .map(|v| v.map(|v| v as f64))
                .collect::<Float64Array>(),
        ),
        Number::Decimal => {
            let digits: Decimal128Array = values.iter().map(|v| v.map(i128::from)).collect();
            let digits = digits.with_precision_and_scale(38, 0);
            Arc::new(digits.expect("38 digits are the most"))
        }
        Number::Wide => {
            let digits: Decimal256Array = values.iter().map(|v| v.map(i256::from)).collect();
            let digits = digits.with_precision_and_scale(76, 0);
            Arc::new(digits.expect("76 digits are the most"))
        }
    };
    StateInput {
        values: Some(array),
        filter: filter.cloned(),
    }
}

/// A group's key, carried text and states as text, and its count, mean and squares, whose last
/// digits depend on the order of its rows.
type Group = (String, [f64; 3]);

fn assert_same(found: &[Group], expected: &[Group], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for ((found, moments), (expected, plain)) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
        for (found, plain) in moments.iter().zip(plain) {
            let is_same = (found - plain).abs() <= 1e-9 * plain.abs().max(1.0);
            assert!(
                is_same,
                "{what}: {moments:?} and not {plain:?} in {expected}"
            );
        }
    }
}

/// What groups are made with.
#[derive(Debug, Clone, Copy)]
struct Setup {
    memory_bytes: u64,
    page_class: PageClass,
    workers: usize,
    /// Groups of a worker's own table; 0 for none.
    front_groups: usize,
}

/// One worker and more memory than is needed.
const ROOMY: Setup = Setup {
    memory_bytes: 16 << 20,
    page_class: PageClass::K16,
    workers: 1,
    front_groups: 0,
};

/// Whether the filter of a test lets a row count.
fn passes(value: i64) -> bool {
    value % 3 != 0
}

/// Every group, sorted, as it is computed from a list of its values.
fn plain_groups(rows: &[(i64, Option<i64>)], filtered: bool) -> Vec<Group> {
    let mut values: HashMap<i64, Vec<i64>> = HashMap::new();
    for (key, value) in rows {
        let seen = value.filter(|value| !filtered || passes(*value));
        values.entry(*key).or_default().extend(seen);
    }
    let group = |(key, values): (&i64, &Vec<i64>)| {
        let kinds = KINDS.into_iter().filter(|kind| *kind != StateKind::Moments);
        let states: Vec<_> = kinds.map(|kind| plain_state(kind, values)).collect();
        (
            format!("{key} text of {key} {states:?}"),
            plain_moments(values),
        )
    };
    let mut groups: Vec<Group> = values.iter().map(group).collect();
    groups.sort_by(|a, b| a.0.cmp(&b.0));
    groups
}

fn plain_moments(values: &[i64]) -> [f64; 3] {
    let count = values.len() as f64;
    let mean = values.iter().sum::<i64>() as f64 / count.max(1.0);
    let squares = values.iter().map(|value| (*value as f64 - mean).powi(2));
    [count, mean, squares.sum()]
}

/// A state over a list of values, as [`shown`] shows it.
fn plain_state(kind: StateKind, values: &[i64]) -> String {
    let shown_as = |value: Option<i64>, number: Number| match (value, number) {
        (None, _) => "NULL".to_owned(),
        (Some(value), Number::Float) => format!("{value}.000000"),
        (Some(value), _) => value.to_string(),
    };
    let some = |value: i64| (!values.is_empty()).then_some(value);
    let bits = |fold: fn(u64, u64) -> u64| {
        let bits = values.iter().map(|value| *value as u64).reduce(fold);
        bits.map_or("NULL".to_owned(), |bits| bits.to_string())
    };
    match kind {
        StateKind::Count => values.len().to_string(),
        StateKind::Sum(number) => shown_as(some(values.iter().sum()), number),
        StateKind::Min(number) => shown_as(values.iter().min().copied(), number),
        StateKind::Max(number) => shown_as(values.iter().max().copied(), number),
        StateKind::BitAnd => bits(|a, b| a & b),
        StateKind::BitOr => bits(|a, b| a | b),
        StateKind::BitXor => bits(|a, b| a ^ b),
        StateKind::Moments => unreachable!("these are compared as numbers"),
    }
}

/// A value of a state as text.
fn shown(state: &ArrayRef, row: usize) -> String {
    if state.is_null(row) {
        return "NULL".to_owned();
    }
    match state.data_type() {
        DataType::Float64 => format!("{:.6}", state.as_primitive::<Float64Type>().value(row)),
        DataType::Int64 => state.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::UInt64 => state.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Decimal128(_, _) => {
            let state = state.as_primitive::<Decimal128Type>();
            state.value(row).to_string()
        }
        _ => state
            .as_primitive::<Decimal256Type>()
            .value(row)
            .to_string(),
    }
}

/// Every group, sorted.
fn groups(rows: &[(i64, Option<i64>)], filtered: bool, setup: Setup) -> Vec<Group> {
    let carried = PayloadColumn {
        data_type: DataType::Utf8View,
        nullable: false,
        rule: PayloadRule::First,
    };
    let kinds = KINDS.map(|kind| (kind, true));
    let layout = RowLayout::new(&[key(DataType::Int64)], &[carried], &kinds);
    let space = space(setup.memory_bytes);
    let mut options = GroupOptions::for_budget(setup.memory_bytes, setup.page_class, setup.workers);
    options.front_groups = setup.front_groups;
    let layout = layout.expect("rows hold these types");
    let set = GroupSet::new(layout, space.root(), options).expect("the minimum is there");
    let mut workers: Vec<_> = (0..setup.workers)
        .map(|number| set.worker(number))
        .collect();
    for (number, chunk) in rows.chunks(BATCH_ROWS).enumerate() {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(chunk.iter().map(|r| r.0)));
        // The same for every row of a group: which of them comes first is not promised.
        let texts = chunk.iter().map(|r| format!("text of {}", r.0));
        let payload: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
        let values: Vec<Option<i64>> = chunk.iter().map(|r| r.1).collect();
        let counts = |row: &(i64, Option<i64>)| Some(passes(row.1?));
        let filter: Option<BooleanArray> = filtered.then(|| chunk.iter().map(counts).collect());
        let states = KINDS.map(|kind| argument(kind, &values, filter.as_ref()));
        let input = GroupInput {
            rows: chunk.len(),
            key: &[keys],
            payload: &[payload],
            states: &states,
        };
        let worker = &mut workers[number % setup.workers];
        worker.push(&input).expect("rows go in");
    }
    for worker in workers {
        worker.finish().expect("workers end");
    }
    let mut found = Vec::new();
    let mut reader = GroupReader::new(set);
    while let Some(batch) = reader.next_batch(100).expect("groups are read") {
        let key = batch.key[0].as_primitive::<Int64Type>();
        let texts = batch.payload[0].as_string_view();
        for row in 0..batch.rows {
            let (moments, states) = batch.states.split_last().expect("there are states");
            let states: Vec<_> = states.iter().flatten().map(|s| shown(s, row)).collect();
            let moment = |part: usize| moments[part].as_primitive::<Float64Type>().value(row);
            let shown = format!("{} {} {states:?}", key.value(row), texts.value(row));
            found.push((shown, [0, 1, 2].map(moment)));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn rows(seed: u64, count: usize, keys: u64) -> Vec<(i64, Option<i64>)> {
    let random = random_rows(seed, count, u64::MAX, 0);
    let keys = keys as i64;
    random
        .into_iter()
        .map(|row| {
            let value = row.2.map(|v| v.rem_euclid(1000));
            (row.2.unwrap_or(17).rem_euclid(keys), value)
        })
        .collect()
}

/// Rows of a batch: enough for runs of few groups.
const BATCH_ROWS: usize = 96;

#[test]
fn partial_states_are_merged_in_all_ways() {
    let small = Setup {
        memory_bytes: 4 << 20,
        page_class: PageClass::K4,
        ..ROOMY
    };
    for keys in [1, 4, 700, 20_000] {
        for filtered in [false, true] {
            let rows = rows(keys, 30_000, keys);
            let expected = plain_groups(&rows, filtered);
            for front_groups in [0, 8, 1 << 12] {
                for (budget, workers) in [(ROOMY, 1), (ROOMY, 3), (small, 1), (small, 3)] {
                    let setup = Setup {
                        front_groups,
                        workers,
                        ..budget
                    };
                    let found = groups(&rows, filtered, setup);
                    assert_same(&found, &expected, &format!("{setup:?}"));
                }
            }
        }
    }
}

/// The sum of `values` over `batches` batches of them, in as many groups as there are ways to find
/// a group: own table, runs, or none.
fn wide_sums(values: &ArrayRef, batches: usize) -> Vec<i256> {
    let mut sums = Vec::new();
    for front_groups in [0, 64] {
        let kinds = [(StateKind::Sum(Number::Wide), false); 3];
        let layout = RowLayout::new(&[key(DataType::Int64)], &[], &kinds);
        let space = space(16 << 20);
        let mut options = GroupOptions::for_budget(16 << 20, PageClass::K16, 1);
        options.front_groups = front_groups;
        let layout = layout.expect("rows hold these types");
        let set = GroupSet::new(layout, space.root(), options).expect("the minimum is there");
        let mut worker = set.worker(0);
        for _ in 0..batches {
            let keys: ArrayRef = Arc::new(Int64Array::from(vec![7; values.len()]));
            let state = StateInput {
                values: Some(Arc::clone(values)),
                filter: None,
            };
            let input = GroupInput {
                rows: values.len(),
                key: &[keys],
                payload: &[],
                states: &[state.clone(), state.clone(), state],
            };
            worker.push(&input).expect("rows go in");
        }
        worker.finish().expect("the worker ends");
        let batch = GroupReader::new(set)
            .next_batch(10)
            .expect("groups are read");
        let batch = batch.expect("there is a group");
        let states = batch.states.iter().flatten();
        sums.extend(states.map(|state| state.as_primitive::<Decimal256Type>().value(0)));
    }
    sums
}

#[test]
fn sums_beyond_128_bits_are_exact() {
    let greatest = 10_i128.pow(38) - 1;
    for value in [greatest, -greatest] {
        let values: ArrayRef = Arc::new(Decimal128Array::from(vec![value; 200]));
        let expected = i256::from_i128(value).wrapping_mul(i256::from(20 * 200));
        assert_eq!(wide_sums(&values, 20), [expected; 6]);
    }
    // Values of both widths that go up and down.
    let wide = i256::from_i128(greatest).wrapping_mul(i256::from_i128(10_i128.pow(30)));
    let one = i256::from(1);
    let mixed = [wide, one, wide.wrapping_neg(), i256::from(-7), wide];
    let values = Decimal256Array::from(mixed.repeat(40));
    let sum = wide.wrapping_sub(i256::from(6));
    let expected = sum.wrapping_mul(i256::from(40));
    assert_eq!(wide_sums(&(Arc::new(values) as ArrayRef), 1), [expected; 6]);
}

#[test]
fn a_sum_that_leaves_256_bits_has_too_many_digits() {
    let wide = i256::from_i128(10).wrapping_pow(75);
    for value in [wide, wide.wrapping_neg()] {
        // It stays so, whatever comes behind.
        let mut values = vec![value; 60];
        values.extend(vec![value.wrapping_neg(); 60]);
        let values: ArrayRef = Arc::new(Decimal256Array::from(values));
        assert_eq!(wide_sums(&values, 1), [i256::MAX; 6]);
    }
}

#[test]
fn groups_at_hand_are_updated_as_rows_are_merged() {
    for (keys, front_groups) in [(3, 1 << 10), (90, 1 << 10), (90, 16), (4_000, 256)] {
        for filtered in [false, true] {
            let mut rows = rows(keys, 9_000, keys);
            if front_groups == 16 {
                // Keys that come in runs.
                rows.sort_unstable();
            }
            let merged = groups(&rows, filtered, ROOMY);
            assert!(merged.len() > 2);
            let setup = Setup {
                front_groups,
                ..ROOMY
            };
            assert_same(&groups(&rows, filtered, setup), &merged, "keys at hand");
        }
    }
}

#[test]
fn distinct_keys_in_runs() {
    let layout = RowLayout::new(&[key(DataType::Utf8View)], &[], &[]);
    let space = space(2 << 20);
    let options = GroupOptions::for_budget(2 << 20, PageClass::K4, 1);
    let set = GroupSet::new(layout.expect("rows hold text"), space.root(), options);
    let set = set.expect("the minimum is there");
    let mut worker = set.worker(0);
    let texts = |batch: u32| (0..700u32).map(move |row| format!("key {}", (batch * 700 + row) / 5));
    for batch in 0..200 {
        let column: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts(batch)));
        let input = GroupInput {
            rows: 700,
            key: &[column],
            payload: &[],
            states: &[],
        };
        worker.push(&input).expect("rows go in");
    }
    worker.finish().expect("workers end");
    let mut found = std::collections::HashSet::new();
    let mut reader = GroupReader::new(set);
    while let Some(batch) = reader.next_batch(100).expect("groups are read") {
        for text in batch.key[0].as_string_view().iter().flatten() {
            assert!(found.insert(text.to_owned()), "{text} came twice");
        }
    }
    let expected: std::collections::HashSet<String> = (0..200).flat_map(texts).collect();
    assert_eq!(found, expected);
}
