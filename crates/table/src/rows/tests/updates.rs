//! Groups brought up to date from columns against groups merged from rows: every kind of state.

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

/// Every group's key, carried text and states as text, sorted.
fn groups(rows: &[(i64, Option<i64>)], filtered: bool, front_groups: usize) -> Vec<String> {
    let carried = PayloadColumn {
        data_type: DataType::Utf8View,
        nullable: false,
        rule: PayloadRule::First,
    };
    let kinds = KINDS.map(|kind| (kind, true));
    let layout = RowLayout::new(&[key(DataType::Int64)], &[carried], &kinds);
    let space = space(16 << 20);
    let mut options = GroupOptions::for_budget(16 << 20, PageClass::K16, 1);
    options.front_groups = front_groups;
    let layout = layout.expect("rows hold these types");
    let set = GroupSet::new(layout, space.root(), options).expect("the minimum is there");
    let mut worker = set.worker(0);
    for chunk in rows.chunks(64) {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(chunk.iter().map(|r| r.0)));
        // The same for every row of a group: which of them comes first is not promised.
        let texts = chunk.iter().map(|r| format!("text of {}", r.0));
        let payload: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
        let values: Vec<Option<i64>> = chunk.iter().map(|r| r.1).collect();
        let counts = |row: &(i64, Option<i64>)| Some(row.1? % 3 != 0);
        let filter: Option<BooleanArray> = filtered.then(|| chunk.iter().map(counts).collect());
        let states = KINDS.map(|kind| argument(kind, &values, filter.as_ref()));
        let input = GroupInput {
            rows: chunk.len(),
            key: &[keys],
            payload: &[payload],
            states: &states,
        };
        worker.push(&input).expect("rows go in");
    }
    worker.finish().expect("workers end");
    let mut found = Vec::new();
    let mut reader = GroupReader::new(set);
    while let Some(batch) = reader.next_batch(100).expect("groups are read") {
        let key = batch.key[0].as_primitive::<Int64Type>();
        let texts = batch.payload[0].as_string_view();
        for row in 0..batch.rows {
            // A float that differs in its last bits only is the same: moments depend on order.
            let states = batch
                .states
                .iter()
                .flatten()
                .map(|state| match state.data_type() {
                    DataType::Float64 if state.is_valid(row) => {
                        format!("{:.6}", state.as_primitive::<Float64Type>().value(row))
                    }
                    _ => format!("{:?}", state.slice(row, 1)),
                });
            let states: Vec<String> = states.collect();
            found.push(format!(
                "{} {} {states:?}",
                key.value(row),
                texts.value(row)
            ));
        }
    }
    found.sort();
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

#[test]
fn groups_at_hand_are_updated_as_rows_are_merged() {
    for (keys, front_groups) in [(3, 1 << 10), (90, 1 << 10), (90, 16), (4_000, 256)] {
        for filtered in [false, true] {
            let mut rows = rows(keys, 9_000, keys);
            if front_groups == 16 {
                // Keys that come in runs.
                rows.sort_unstable();
            }
            let merged = groups(&rows, filtered, 0);
            assert!(merged.len() > 2);
            assert_eq!(groups(&rows, filtered, front_groups), merged);
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
