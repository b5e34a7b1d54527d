//! Keys that are numbers close together, which are found without their hashes.

use arrow_array::types::Int64Type;
use arrow_array::{Int8Array, UInt32Array};

use super::*;

/// Numbers that look random, the same in each run.
fn scattered(n: i64) -> i64 {
    let n = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n >> 33) as i64
}

/// Counts and sums of groups by one number, with `keys` pushed in batches by one worker.
fn check(keys: &[Option<i64>], into: impl Fn(&[Option<i64>]) -> ArrayRef, is_direct: bool) {
    let space = space(64 << 20);
    let states = [
        (StateKind::Count, false),
        (StateKind::Sum(Number::Int), true),
    ];
    let data_type = into(&[]).data_type().clone();
    let layout = RowLayout::new(&[key(data_type)], &[], &states).expect("rows hold these types");
    let options = GroupOptions::for_budget(64 << 20, PageClass::K64, 1);
    let set = GroupSet::new(layout, space.root(), options).expect("the minimum is there");
    let mut worker = set.worker(0);
    let mut expected: HashMap<Option<i64>, (i64, i64)> = HashMap::new();
    for (number, batch) in keys.chunks(4096).enumerate() {
        let values: Vec<i64> = (0..batch.len() as i64)
            .map(|row| row + number as i64)
            .collect();
        for (key, value) in batch.iter().zip(&values) {
            let group = expected.entry(*key).or_default();
            *group = (group.0 + 1, group.1 + value);
        }
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        let sum = StateInput {
            values: Some(values),
            filter: None,
        };
        worker
            .push(&GroupInput {
                rows: batch.len(),
                key: &[into(batch)],
                payload: &[],
                states: &[StateInput::default(), sum],
            })
            .expect("rows go in");
    }
    assert_eq!(worker.is_direct(), is_direct);
    worker.finish().expect("the worker ends");
    let mut found = HashMap::new();
    let mut reader = GroupReader::new(Arc::clone(&set));
    while let Some(batch) = reader.next_batch(1000).expect("groups are read") {
        let wide = widened(&batch.key[0]);
        let counts = batch.states[0][0].as_primitive::<Int64Type>();
        let sums = batch.states[1][0].as_primitive::<Int64Type>();
        for (row, key) in wide.into_iter().enumerate() {
            let twice = found.insert(key, (counts.value(row), sums.value(row)));
            assert_eq!(twice, None, "group {key:?} came twice");
        }
    }
    assert_eq!(found, expected);
}

/// The numbers of an array, widened by their sign, as the tests write them.
fn widened(array: &ArrayRef) -> Vec<Option<i64>> {
    let number = |row| match array.data_type() {
        DataType::Int8 => i64::from(
            array
                .as_primitive::<arrow_array::types::Int8Type>()
                .value(row),
        ),
        DataType::UInt32 => i64::from(
            array
                .as_primitive::<arrow_array::types::UInt32Type>()
                .value(row),
        ),
        _ => array.as_primitive::<Int64Type>().value(row),
    };
    (0..array.len())
        .map(|row| array.is_valid(row).then(|| number(row)))
        .collect()
}

fn int64(keys: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(keys.to_vec()))
}

#[test]
fn numbers_close_together() {
    let keys: Vec<_> = (0..200_000).map(|n| Some(scattered(n) % 5000)).collect();
    check(&keys, int64, true);
}

#[test]
fn with_null_and_below_zero() {
    let number = |n: i64| (n % 7 != 0).then(|| scattered(n) % 900 - 450);
    let keys: Vec<_> = (0..200_000).map(number).collect();
    check(&keys, int64, true);
}

#[test]
fn at_the_ends_of_the_type() {
    for end in [i64::MIN, i64::MAX] {
        let key = |n: i64| Some(end.wrapping_add(-(scattered(n) % 3000) * end.signum()));
        let keys: Vec<_> = (0..200_000).map(key).collect();
        check(&keys, int64, true);
    }
}

#[test]
fn a_range_that_moves() {
    // Later keys lie outside of the range that was learned.
    let key = |n: i64| Some(n / 50_000 * 2000 + scattered(n) % 3000);
    let keys: Vec<_> = (0..400_000).map(key).collect();
    check(&keys, int64, true);
}

#[test]
fn short_and_unsigned_numbers() {
    let bytes = |keys: &[Option<i64>]| -> ArrayRef {
        Arc::new(
            keys.iter()
                .map(|key| key.map(|k| k as i8))
                .collect::<Int8Array>(),
        )
    };
    let keys: Vec<_> = (0..200_000)
        .map(|n| Some(scattered(n) % 256 - 128))
        .collect();
    check(&keys, bytes, true);
    let unsigned = |keys: &[Option<i64>]| -> ArrayRef {
        Arc::new(
            keys.iter()
                .map(|key| key.map(|k| k as u32))
                .collect::<UInt32Array>(),
        )
    };
    // On both sides of where the highest bit begins to be set.
    let keys: Vec<_> = (0..200_000)
        .map(|n| Some((1 << 31) - 1000 + scattered(n) % 2000))
        .collect();
    check(&keys, unsigned, false);
    let keys: Vec<_> = (0..200_000)
        .map(|n| Some(u32::MAX as i64 - scattered(n) % 2000))
        .collect();
    check(&keys, unsigned, true);
}

#[test]
fn numbers_far_apart_or_once() {
    let far: Vec<_> = (0..200_000)
        .map(|n| Some(scattered(n) % 5000 * 100_000_007))
        .collect();
    check(&far, int64, false);
    let once: Vec<_> = (0..200_000).map(Some).collect();
    check(&once, int64, false);
}
