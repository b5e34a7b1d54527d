//! Few groups whose keys are short, which are found without encoding them.

use std::collections::BTreeMap;

use arrow_array::{BooleanArray, Decimal128Array, StringArray};

use super::*;

/// Numbers that look random, the same in each run.
fn scattered(n: usize) -> usize {
    (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 40
}

/// Keys as batches bring them, and whether they are to be found as short ones.
fn check(batches: &[Vec<ArrayRef>], is_short: bool) {
    let states = [
        (StateKind::Count, false),
        (StateKind::Sum(Number::Int), false),
        (StateKind::Min(Number::Int), false),
        (StateKind::Max(Number::Int), false),
    ];
    let types = batches[0]
        .iter()
        .map(|array| key(array.data_type().clone()));
    let layout = RowLayout::new(&types.collect::<Vec<_>>(), &[], &states);
    let space = space(16 << 20);
    let options = GroupOptions::for_budget(16 << 20, PageClass::K16, 1);
    let layout = layout.expect("rows hold these types");
    let set = GroupSet::new(layout, space.root(), options).expect("the minimum is there");
    let mut worker = set.worker(0);
    let mut expected: BTreeMap<String, [i64; 4]> = BTreeMap::new();
    for (number, key) in batches.iter().enumerate() {
        let rows = key[0].len();
        let values: Vec<i64> = (0..rows).map(|row| (row * 7 + number) as i64).collect();
        for (row, value) in values.iter().enumerate() {
            let [count, sum, min, max] =
                expected
                    .entry(text_of(key, row))
                    .or_insert([0, 0, i64::MAX, i64::MIN]);
            (*count, *sum) = (*count + 1, *sum + value);
            (*min, *max) = ((*min).min(*value), (*max).max(*value));
        }
        let value = StateInput {
            values: Some(Arc::new(Int64Array::from(values))),
            filter: None,
        };
        let states = [StateInput::default(), value.clone(), value.clone(), value];
        let input = GroupInput {
            rows,
            key,
            payload: &[],
            states: &states,
        };
        worker.push(&input).expect("rows go in");
    }
    assert_eq!(worker.knows_short_keys(), is_short);
    worker.finish().expect("the worker ends");
    let mut found = BTreeMap::new();
    let mut reader = GroupReader::new(set);
    while let Some(batch) = reader.next_batch(1000).expect("groups are read") {
        for row in 0..batch.rows {
            let state = |state: usize| {
                batch.states[state][0]
                    .as_primitive::<Int64Type>()
                    .value(row)
            };
            let twice = found.insert(text_of(&batch.key, row), [0, 1, 2, 3].map(state));
            assert_eq!(twice, None, "a group came twice");
        }
    }
    assert_eq!(found, expected);
}

fn text_of(key: &[ArrayRef], row: usize) -> String {
    let parts = key.iter().map(|array| format!("{:?}", array.slice(row, 1)));
    parts.collect()
}

/// A column, which is told the numbers of its rows.
type Column<'a> = &'a dyn Fn(&[usize]) -> ArrayRef;

/// Batches of `columns`.
fn batches(columns: &[Column<'_>]) -> Vec<Vec<ArrayRef>> {
    let batch = |number: usize| {
        let rows: Vec<usize> = (0..3000)
            .map(|row| scattered(number * 3000 + row))
            .collect();
        columns.iter().map(|column| column(&rows)).collect()
    };
    (0..12).map(batch).collect()
}

/// Every combination of texts of no, one and seven bytes, and NULL, that ends with zeros or not.
fn text(n: usize) -> Option<&'static str> {
    [
        Some(""),
        Some("a"),
        Some("a\0"),
        Some("7 bytes"),
        None,
        Some("b"),
    ][n % 6]
}

fn views(rows: &[usize]) -> ArrayRef {
    Arc::new(rows.iter().map(|n| text(*n)).collect::<StringViewArray>())
}

fn strings(rows: &[usize]) -> ArrayRef {
    Arc::new(rows.iter().map(|n| text(n / 6)).collect::<StringArray>())
}

#[test]
fn texts_of_both_kinds() {
    check(&batches(&[&views]), true);
    check(&batches(&[&views, &strings]), true);
}

#[test]
fn four_columns() {
    let flags = |rows: &[usize]| -> ArrayRef {
        let flag = |n: &usize| (!n.is_multiple_of(5)).then_some(n.is_multiple_of(3));
        Arc::new(rows.iter().map(flag).collect::<BooleanArray>())
    };
    let numbers = |rows: &[usize]| -> ArrayRef {
        let number = |n: &usize| (!n.is_multiple_of(7)).then_some(-((n % 3) as i32));
        Arc::new(rows.iter().map(number).collect::<Int32Array>())
    };
    let decimals = |rows: &[usize]| -> ArrayRef {
        let digits: Decimal128Array = rows.iter().map(|n| Some(*n as i128 % 2 - 1)).collect();
        let digits = digits.with_precision_and_scale(15, 2);
        Arc::new(digits.expect("15 digits are few"))
    };
    let few = |rows: &[usize]| views(&rows.iter().map(|n| n % 2).collect::<Vec<_>>());
    check(&batches(&[&few, &flags, &numbers, &decimals]), true);
}

#[test]
fn long_texts_among_short_ones() {
    let mixed = |rows: &[usize]| -> ArrayRef {
        let text = |n: &usize| match n % 9 {
            0 => "a text of more than seven bytes",
            1 => "8 bytes!",
            2 => "8 bytes?",
            _ => ["a", "b", "c"][n % 3],
        };
        Arc::new(
            rows.iter()
                .map(|n| Some(text(n)))
                .collect::<StringViewArray>(),
        )
    };
    check(&batches(&[&mixed]), true);
}

#[test]
fn keys_that_are_long_or_many_are_not_looked_for() {
    let long = |rows: &[usize]| -> ArrayRef {
        let text = |n: &usize| Some(format!("a text of some length: {}", n % 5));
        Arc::new(rows.iter().map(text).collect::<StringViewArray>())
    };
    check(&batches(&[&long]), false);
    // Groups beyond those that the cache is asked for: it stays as it was.
    let many = |rows: &[usize]| -> ArrayRef {
        let text = |n: &usize| Some(format!("{:x}", n % 2000));
        Arc::new(rows.iter().map(text).collect::<StringViewArray>())
    };
    check(&batches(&[&many]), false);
}
