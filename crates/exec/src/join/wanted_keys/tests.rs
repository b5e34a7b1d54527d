use std::sync::Barrier;

use arrow::array::{AsArray, BooleanArray, Int64Array, StringArray, StringViewArray};
use arrow::compute::{cast, concat};
use arrow::datatypes::{Field, TimeUnit};
use datafusion::physical_expr::expressions::Column;
use mayfly_space::Space;

use super::*;
use crate::tests::{check_nothing_left, open};

/// As many as a `TINYINT` has that are not negative.
const VALUES: i64 = 120;

/// One type of each kind that `is_hashed_by_value` names.
fn types() -> Vec<DataType> {
    use DataType::*;
    vec![
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Microsecond),
        Time64(TimeUnit::Nanosecond),
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Microsecond, None),
        Timestamp(TimeUnit::Nanosecond, Some("+00:00".into())),
        Decimal128(10, 2),
        Decimal128(38, 0),
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
    ]
}

/// A value of each number; NULL of none. Each third text is long.
fn column(numbers: &[Option<i64>], data_type: &DataType) -> ArrayRef {
    use DataType::*;
    let wide: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
    let from: ArrayRef = match data_type {
        Boolean => {
            let is_odd = numbers.iter().map(|number| number.map(|n| n % 2 == 1));
            Arc::new(is_odd.collect::<BooleanArray>())
        }
        Date32 | Time32(_) => cast(&wide, &Int32).unwrap(),
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => {
            let text = |n: i64| match n % 3 {
                0 => format!("a text that no view has room for: {n}"),
                _ => n.to_string(),
            };
            let texts = numbers.iter().map(|number| number.map(text));
            Arc::new(texts.collect::<StringArray>())
        }
        _ => wide,
    };
    cast(&from, data_type).unwrap()
}

/// The same values behind one that is sliced off.
fn behind_another(column: &ArrayRef, other: &ArrayRef) -> ArrayRef {
    let both = concat(&[other.as_ref(), column.as_ref()]).unwrap();
    both.slice(other.len(), column.len())
}

/// The keys of a left side, some rows of which are taken in at the same time.
async fn told_of(
    space: &Space,
    batches: &[Vec<ArrayRef>],
    keys_max: usize,
    nulls_match: bool,
) -> Option<WantedKeys> {
    let keys = (0..batches[0].len())
        .map(|place| Arc::new(Column::new(&format!("c{place}"), place)) as PhysicalExprRef);
    let promise = Arc::new(KeysPromise::new(keys.collect(), keys_max, nulls_match));
    let columns = batches[0].iter().enumerate();
    let fields = columns
        .map(|(place, column)| Field::new(format!("c{place}"), column.data_type().clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let keys = LeftKeys::new(&promise, &schema, space.root()).await;
    let keys = keys.unwrap()?;
    let begin = Barrier::new(batches.len());
    std::thread::scope(|scope| {
        for columns in batches {
            let columns = columns.iter().cloned().enumerate();
            let columns = columns.map(|(place, column)| (format!("c{place}"), column, true));
            let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
            let (keys, begin) = (&keys, &begin);
            scope.spawn(move || {
                begin.wait();
                keys.add(&batch).unwrap();
            });
        }
    });
    keys.finish().await
}

/// Compares what is told of rows with what is so: that a number is even, or for a NULL
/// `nulls_match`. At most a tenth of the others may pass by their hash.
fn check(told: &WantedKeys, numbers: &[Option<i64>], keys: &[ArrayRef], label: &str) {
    let found = told.wanted(keys, numbers.len()).unwrap();
    let mut passed = 0;
    for (number, is_found) in numbers.iter().zip(&found) {
        match number {
            None => assert_eq!(is_found, told.nulls_match, "{label}: NULL"),
            Some(number) if number % 2 == 0 => assert!(is_found, "{label}: {number}"),
            Some(_) => passed += usize::from(is_found),
        }
    }
    let most = VALUES as usize / 2 / 10;
    assert!(passed <= most, "{label}: {passed} are told that are not");
}

fn is_even(number: &Option<i64>) -> bool {
    number.is_none_or(|number| number % 2 == 0)
}

#[tokio::test]
async fn keys_of_every_type_are_told() {
    let space = open(64 << 20);
    let all: Vec<Option<i64>> = { (0..VALUES).map(Some) }.chain([None]).collect();
    let wanted: Vec<_> = all.iter().copied().filter(is_even).collect();
    let number = DataType::Int64;
    for data_type in types() {
        assert!(is_hashed_by_value(&data_type), "{data_type}");
        let (left, right) = (column(&wanted, &data_type), column(&all, &data_type));
        let numbers = (column(&wanted, &number), column(&all, &number));
        for nulls_match in [false, true] {
            let label = format!("{data_type}, {nulls_match}");
            // All keys come twice.
            let batches = [vec![Arc::clone(&left)], vec![behind_another(&left, &right)]];
            let told = told_of(&space, &batches, 100, nulls_match).await.unwrap();
            assert!(!told.is_empty());
            for keys in [Arc::clone(&right), behind_another(&right, &left)] {
                check(&told, &all, &[keys], &label);
            }
            // Two keys, in either order: the one says little where it is true or false.
            for is_first in [true, false] {
                let pair = |one: &ArrayRef, other: &ArrayRef| match is_first {
                    true => vec![Arc::clone(one), Arc::clone(other)],
                    false => vec![Arc::clone(other), Arc::clone(one)],
                };
                let batches = [pair(&left, &numbers.0)];
                let told = told_of(&space, &batches, 100, nulls_match).await.unwrap();
                check(&told, &all, &pair(&right, &numbers.1), &label);
            }
        }
    }
    for data_type in [DataType::Float32, DataType::Float64, DataType::Null] {
        assert!(!is_hashed_by_value(&data_type), "{data_type}");
    }
    check_nothing_left(&space, "keys of every type").await;
}

#[tokio::test]
async fn a_null_among_two_keys_is_one() {
    let space = open(64 << 20);
    let numbers = |numbers: &[Option<i64>]| column(numbers, &DataType::Int64);
    let left = [vec![
        numbers(&[Some(1), None]),
        numbers(&[Some(2), Some(3)]),
    ]];
    let right = [
        numbers(&[Some(1), None, None, Some(1)]),
        numbers(&[Some(2), Some(3), Some(2), None]),
    ];
    for nulls_match in [false, true] {
        let told = told_of(&space, &left, 10, nulls_match).await.unwrap();
        let found = told.wanted(&right, 4).unwrap();
        let expected = [true, nulls_match, nulls_match, nulls_match];
        assert!(found.iter().eq(expected), "{nulls_match}");
    }
}

#[tokio::test]
async fn short_texts_are_the_same_with_and_without_data_buffers() {
    let space = open(64 << 20);
    let all: Vec<_> = (0..VALUES).map(Some).collect();
    let texts = |wanted: i64| -> ArrayRef {
        let numbers = (0..VALUES).filter(|number| number % wanted == 0);
        let texts = numbers.map(|number| number.to_string());
        Arc::new(StringViewArray::from_iter_values(texts))
    };
    let long: ArrayRef = Arc::new(StringViewArray::from(vec![
        "a text that no view has room for",
    ]));
    for data_type in [DataType::Utf8View, DataType::BinaryView] {
        let with_buffers = |texts: &ArrayRef| cast(&behind_another(texts, &long), &data_type);
        let sides = [texts(2), texts(1)].map(|texts| {
            let without = cast(&texts, &data_type).unwrap();
            [without, with_buffers(&texts).unwrap()]
        });
        let buffers = |column: &ArrayRef| match data_type {
            DataType::Utf8View => column.as_string_view().data_buffers().len(),
            _ => column.as_binary_view().data_buffers().len(),
        };
        let [left, right] = sides;
        assert_eq!([buffers(&left[0]), buffers(&right[0])], [0, 0]);
        assert!(buffers(&left[1]) > 0 && buffers(&right[1]) > 0);
        for left in left {
            let told = told_of(&space, &[vec![left]], 100, false).await.unwrap();
            for right in &right {
                check(&told, &all, &[Arc::clone(right)], "short texts");
            }
        }
    }
}

#[tokio::test]
async fn too_many_keys_are_not_told_and_those_of_many_rows_are() {
    let space = open(16 << 20);
    let batches = |values: i64| {
        [0, 7].map(|from| {
            let numbers = (from..from + 50_000).map(|row| Some(2 * (row % values)));
            vec![column(&numbers.collect::<Vec<_>>(), &DataType::Int64)]
        })
    };
    // One key for a KiB of the budget, or as many as are promised.
    for (values, keys_max, is_told) in [
        (60, 60, true),
        (2_000, 2_000, true),
        (2_200, 2_000, false),
        (10_000, 1 << 20, true),
        (18_000, 1 << 20, false),
    ] {
        let told = told_of(&space, &batches(values), keys_max, false).await;
        assert_eq!(told.is_some(), is_told, "{values} of {keys_max}");
        let Some(told) = told else {
            continue;
        };
        let needed = Bloom::bytes(Bloom::word_bits(values as usize));
        assert!(space.counters().reserved_bytes <= needed.next_multiple_of(1024));
        let numbers: Vec<_> = (0..VALUES).map(Some).collect();
        let keys = [column(&numbers, &DataType::Int64)];
        check(&told, &numbers, &keys, &format!("{values} of {keys_max}"));
    }
    check_nothing_left(&space, "many keys").await;
}

#[tokio::test]
async fn without_rows_or_memory_there_is_little_to_tell() {
    let space = open(16 << 20);
    let empty = column(&[], &DataType::Int64);
    let told = told_of(&space, &[vec![empty]], 100, true).await.unwrap();
    assert!(told.is_empty());
    drop(told);
    let nulls = column(&[None, None], &DataType::Int64);
    let told = told_of(&space, &[vec![Arc::clone(&nulls)]], 100, false).await;
    let told = told.unwrap();
    assert!(!told.is_empty());
    assert!(told.wanted(&[nulls], 2).unwrap().iter().eq([false, false]));
    drop(told);
    // All that there is.
    let mut grants = Vec::new();
    let mut bytes = space.memory_bytes();
    while bytes >= 1024 {
        match space.root().reserve(bytes) {
            Ok(grant) => grants.push(grant),
            Err(_) => bytes /= 2,
        }
    }
    let one = column(&[Some(1)], &DataType::Int64);
    assert!(
        told_of(&space, &[vec![one]], 100_000, false)
            .await
            .is_none()
    );
    drop(grants);
    check_nothing_left(&space, "little to tell").await;
}
