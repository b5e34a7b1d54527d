//! Many values of a key at once, walks in its order, and values read off it, against a vector.

use std::ops::Bound;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, Int32Array, UInt64Array};
use mayfly_space::Account;
use mayfly_table::{ByKey, Error, Search, Table, TableSnapshot};

use crate::batches::Random;
use crate::faults::{again, fail_each};
use crate::keyed::{CODE, KIND, PRIMARY, Row, batch, read, rows, table};
use crate::spaces::{BUDGETS, assert_empty, open};

/// Rows that meet no other one, and a table of them that was filled in several steps.
fn filled(account: &Account, count: usize, failures: &mut u32) -> (Arc<Table>, Vec<Row>) {
    let table = table(account);
    let mut random = Random(count as u64);
    let mut all = rows(&mut random, count, count);
    for (id, row) in all.iter_mut().enumerate() {
        row.0 = id as i64 * 3;
        row.1 = row.1.take().map(|code| format!("{id}-{code}"));
    }
    for part in all.chunks(count.div_ceil(4).max(1)) {
        let batch = batch(&table, part);
        again(|| table.append(&batch), failures);
    }
    (table, all)
}

fn found<T>(answer: ByKey<T>) -> T {
    match answer {
        ByKey::Found(found) => found,
        ByKey::TooMany => panic!("too many rows"),
        ByKey::Changed => panic!("the table did not change"),
    }
}

/// The rows with some numbers, in their order.
fn rows_of(snapshot: &TableSnapshot, numbers: &[u64], failures: &mut u32) -> Vec<Row> {
    let ids = again(|| snapshot.locate(numbers.iter().copied()), failures);
    read(&again(|| snapshot.rows(&ids, None), failures))
}

fn check(account: &Account, count: usize, failures: &mut u32) {
    let (table, all) = filled(account, count, failures);
    let snapshot = table.snapshot();

    // Kinds that are there, that are not, NULL, and some twice.
    let kinds: Vec<Option<i32>> = vec![Some(3), None, Some(99), Some(0), Some(3), Some(6)];
    let values: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(kinds.clone()))];
    let looked = again(
        || table.lookup(&snapshot, KIND, &values, usize::MAX),
        failures,
    );
    let looked = found(looked);
    let mut pairs: Vec<(u32, Row)> = looked
        .places
        .iter()
        .copied()
        .zip(rows_of(&snapshot, &looked.numbers, failures))
        .collect();
    pairs.sort();
    let mut expected: Vec<(u32, Row)> = Vec::new();
    for (place, kind) in (0..).zip(&kinds) {
        let rows = all.iter().filter(|row| Some(row.2) == *kind);
        expected.extend(rows.map(|row| (place, row.clone())));
    }
    expected.sort();
    assert!(pairs == expected, "pairs of a lookup");
    if !expected.is_empty() {
        let few = again(|| table.lookup(&snapshot, KIND, &values, 0), failures);
        assert!(matches!(few, ByKey::TooMany));
    }

    // The whole key in both directions: kinds descend, ids ascend.
    let mut in_order = all.clone();
    in_order.sort_by_key(|row| (-row.2, row.0));
    let of_kind = |kind: i32| -> ArrayRef { Arc::new(Int32Array::from(vec![kind])) };
    for is_reversed in [false, true] {
        for equal in [None, Some(4), Some(99)] {
            let search = Search::equal(KIND, equal.into_iter().map(of_kind).collect());
            let mut numbers = Vec::new();
            let mut place = None;
            loop {
                let walk = || table.walk(&snapshot, &search, is_reversed, place.as_ref(), 7);
                let step = found(again(walk, failures));
                numbers.extend(step.numbers);
                place = step.next;
                if place.is_none() {
                    break;
                }
            }
            let mut expected: Vec<Row> = in_order.clone();
            expected.retain(|row| equal.is_none_or(|kind| row.2 == kind));
            if is_reversed {
                expected.reverse();
            }
            let walked = rows_of(&snapshot, &numbers, failures);
            assert!(walked == expected, "reversed {is_reversed}, {equal:?}");
        }
    }

    // Values off the keys: of a search that is asked twice, and of texts with NULL among them.
    let searches = [4, 1, 4].map(|kind| Search::equal(KIND, vec![of_kind(kind)]));
    let values = || table.search_values(&searches, &[0, 2], usize::MAX);
    let (values, rows) = again(values, failures).expect("the key holds ids and kinds");
    let ids = values[0].as_primitive::<Int64Type>().values().iter();
    let kinds = values[1].as_primitive::<Int32Type>().values().iter();
    let mut read: Vec<(i64, i32)> = ids.copied().zip(kinds.copied()).collect();
    assert_eq!(read.len(), rows);
    read.sort_unstable();
    let of_kinds = all.iter().filter(|row| [4, 1].contains(&row.2));
    let expected: Vec<(i64, i32)> = of_kinds.map(|row| (row.0, row.2)).collect();
    assert!(read == expected, "values of two kinds");
    // Ranges that meet are read once.
    let from_2 = Search {
        low: Bound::Included(of_kind(2)),
        ..Search::equal(KIND, Vec::new())
    };
    let meeting = [from_2, Search::equal(KIND, vec![of_kind(4)])];
    let values = || table.search_values(&meeting, &[2], usize::MAX);
    let (_, rows) = again(values, failures).expect("the key holds kinds");
    assert_eq!(rows, all.iter().filter(|row| row.2 >= 2).count());
    assert!(!table.covers(KIND, &[0, 1]));
    let everything = [Search::equal(CODE, Vec::new())];
    let codes = || table.search_values(&everything, &[1], usize::MAX);
    let (codes, _) = again(codes, failures).expect("the key holds its codes");
    let codes = codes[0].as_string_view().iter();
    let codes: Vec<Option<String>> = codes.map(|code| code.map(str::to_owned)).collect();
    let mut expected: Vec<Option<String>> = all.iter().map(|row| row.1.clone()).collect();
    expected.sort();
    assert!(codes == expected, "codes of all rows");

    let mut kinds: Vec<i32> = all.iter().map(|row| row.2).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let distinct = again(|| table.distinct(KIND, 1), failures);
    assert_eq!(distinct, kinds.len() as u64);
    let whole = again(|| table.distinct(KIND, 2), failures) as f64;
    assert!(all.len() <= 1024 && whole == all.len() as f64 || whole > all.len() as f64 / 2.0);

    // A table that changed is not asked for what it was.
    let next = (i64::MAX, None, 4);
    let next = batch(&table, &[next]);
    again(|| table.append(&next), failures);
    let walk = || table.walk(&snapshot, &everything[0], false, None, 1);
    assert!(matches!(again(walk, failures), ByKey::Changed));
    let lookup = || table.lookup(&snapshot, KIND, &[of_kind(4)], usize::MAX);
    assert!(matches!(again(lookup, failures), ByKey::Changed));
}

/// Rows by their numbers, page by page, from a table that lost some of them and changed others.
fn check_places(account: &Account, count: usize, failures: &mut u32) {
    let (table, _) = filled(account, count, failures);
    let everything = [Search::equal(PRIMARY, Vec::new())];
    let mut random = Random(count as u64 + 1);
    let search = || table.search(&everything, usize::MAX);
    let (_, numbers) = again(search, failures).expect("no limit");
    let change = || {
        let mut change = table.begin_change();
        let snapshot = table.snapshot();
        let mut random = Random(7);
        let mut some = |part| {
            let some = numbers.iter().copied();
            let some: Vec<u64> = some.filter(|_| random.chance(part)).collect();
            snapshot.locate(some)
        };
        let (gone, other) = (some(20)?, some(10)?);
        let other: Vec<u64> = other.into_iter().filter(|id| !gone.contains(id)).collect();
        change.remove(&UInt64Array::from(gone));
        let rows = snapshot.rows(&other, None)?;
        change.replace(&UInt64Array::from(other), &rows)?;
        change.commit()
    };
    again(change, failures);
    let more: Vec<Row> = (0..9).map(|id| (-1 - id, None, 1)).collect();
    let more = batch(&table, &more);
    again(|| table.append(&more), failures);

    let (snapshot, found) = again(search, failures).expect("no limit");
    for part in [100, 90, 50, 3, 0] {
        // Those that are gone too.
        let asked = numbers.iter().chain(&found).copied();
        let mut asked: Vec<u64> = asked.filter(|_| random.chance(part)).collect();
        asked.sort_unstable();
        asked.dedup();
        let expected = rows_of(&snapshot, &asked, failures);
        asked.reverse();
        let read_all = || -> Result<Vec<Row>, Error> {
            let mut rows = Vec::new();
            for batch in snapshot.places(asked.clone())?.read(vec![0, 1, 2])? {
                rows.extend(read(&batch?));
            }
            Ok(rows)
        };
        assert!(
            again(read_all, failures) == expected,
            "{part} % of the rows"
        );
    }
}

#[test]
fn rows_are_read_from_their_places() {
    for budget in BUDGETS {
        for count in [0, 1, 40, 5000] {
            let dir = tempfile::tempdir().unwrap();
            let space = open(budget, dir.path());
            check_places(space.root(), count, &mut 0);
            assert_empty(&space);
        }
    }
}

#[test]
fn faults_leave_rows_in_their_places() {
    fail_each(|account, failures| check_places(account, 600, failures));
}

#[test]
fn keys_find_what_a_filter_finds() {
    for budget in BUDGETS {
        for count in [0, 1, 40, 5000] {
            let dir = tempfile::tempdir().unwrap();
            let space = open(budget, dir.path());
            check(space.root(), count, &mut 0);
            assert_empty(&space);
        }
    }
}

#[test]
fn faults_leave_keys_that_answer() {
    fail_each(|account, failures| check(account, 600, failures));
}
