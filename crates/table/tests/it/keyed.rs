//! Tables with keys against a vector of rows: what is unique stays so, every row has its entries
//! after each step, and searches find what a filter finds.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringViewArray, UInt64Array};
use mayfly_space::Account;
use mayfly_table::{
    Column, Definition, Error, Key, KeyKind, KeyPart, Repeats, Result, Saved, Search, Table,
    TableSnapshot,
};
use mayfly_types::ColumnType;
use proptest::prelude::*;

use crate::batches::Random;
use crate::drafts::draft;
use crate::faults::{again, fail_each};
use crate::kept_numbers::{succeeded, update_all};
use crate::spaces::{BUDGETS, Whole as _, assert_empty, open};

/// An id that is the primary key, a code that is unique where it is not NULL, and a kind that is
/// searched together with the id.
pub(crate) type Row = (i64, Option<String>, i32);

pub(crate) const PRIMARY: usize = 0;
pub(crate) const CODE: usize = 1;
pub(crate) const KIND: usize = 2;

pub(crate) fn definition() -> Definition {
    let part = |column, is_descending| KeyPart {
        is_descending,
        ..KeyPart::new(column)
    };
    Definition {
        columns: vec![
            Column::new("id", ColumnType::BigInt { unsigned: false }, false),
            Column::new("code", ColumnType::VarChar { length: 200 }, true),
            Column::new("kind", ColumnType::Int { unsigned: false }, false),
        ],
        keys: vec![
            Key::new("PRIMARY", KeyKind::Primary, vec![part(0, false)]),
            Key::new("code", KeyKind::Unique, vec![part(1, false)]),
            Key::new("kind", KeyKind::Plain, vec![part(2, true), part(0, false)]),
        ],
        ..Definition::default()
    }
}

pub(crate) fn table(account: &Account) -> Arc<Table> {
    Arc::new(Table::new("t", definition(), account))
}

pub(crate) fn rows(random: &mut Random, count: usize, ids: usize) -> Vec<Row> {
    let row = |random: &mut Random| {
        let id = random.below(ids) as i64;
        let code = random.chance(80).then(|| {
            let filler = "c".repeat(random.below(150));
            format!("{}{filler}", random.below(ids * 2))
        });
        (id, code, random.below(7) as i32)
    };
    (0..count).map(|_| row(random)).collect()
}

pub(crate) fn batch(table: &Table, rows: &[Row]) -> RecordBatch {
    let ids: Int64Array = rows.iter().map(|row| row.0).collect::<Vec<_>>().into();
    let codes: StringViewArray = rows.iter().map(|row| row.1.as_deref()).collect();
    let kinds: Int32Array = rows.iter().map(|row| row.2).collect::<Vec<_>>().into();
    let columns: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(codes), Arc::new(kinds)];
    RecordBatch::try_new(Arc::clone(table.schema()), columns).unwrap()
}

pub(crate) fn read(batch: &RecordBatch) -> Vec<Row> {
    let ids = batch.column(0).as_primitive::<Int64Type>().values();
    let codes = batch.column(1).as_string_view().iter();
    let kinds = batch.column(2).as_primitive::<Int32Type>().values();
    let rows = ids.iter().zip(codes).zip(kinds);
    rows.map(|((id, code), kind)| (*id, code.map(str::to_owned), *kind))
        .collect()
}

pub(crate) fn read_all(snapshot: &TableSnapshot) -> Vec<Row> {
    let batches = 0..snapshot.batch_count();
    batches
        .flat_map(|index| read(&snapshot.read(index, None).unwrap()))
        .collect()
}

/// The rows that have an equal in a unique key, among rows and those that are there: what the
/// first one that is written meets.
fn first_duplicate(there: &[Row], new: &[Row]) -> Option<(&'static str, usize)> {
    let mut ids: BTreeSet<i64> = there.iter().map(|row| row.0).collect();
    let codes = there.iter().filter_map(|row| row.1.clone());
    let mut codes: BTreeSet<String> = codes.collect();
    for (index, row) in new.iter().enumerate() {
        if !ids.insert(row.0) {
            return Some(("PRIMARY", index));
        }
        if let Some(code) = &row.1
            && !codes.insert(code.clone())
        {
            return Some(("code", index));
        }
    }
    None
}

/// Checks the outcome of writing `new` behind `there`; whether it was written.
fn expect_written(result: Result<()>, there: &[Row], new: &[Row]) -> bool {
    match (result, first_duplicate(there, new)) {
        (Ok(()), None) => true,
        (Err(Error::DuplicateEntry { key, entry }), Some((expected, index))) => {
            assert_eq!(key, expected);
            assert_eq!(entry.num_rows(), 1);
            match expected {
                "PRIMARY" => {
                    let id = entry.column(0).as_primitive::<Int64Type>().value(0);
                    assert_eq!(id, new[index].0);
                }
                _ => {
                    let code = entry.column(0).as_string_view().value(0);
                    assert_eq!(Some(code), new[index].1.as_deref());
                }
            }
            false
        }
        (result, expected) => panic!("{result:?} where {expected:?} was expected"),
    }
}

/// Rows of which the kept ones meet nobody.
fn without_duplicates(there: &[Row], mut rows: Vec<Row>) -> Vec<Row> {
    let mut ids: BTreeSet<i64> = there.iter().map(|row| row.0).collect();
    let codes = there.iter().filter_map(|row| row.1.clone());
    let mut codes: BTreeSet<String> = codes.collect();
    rows.retain(|(id, code, _)| {
        let is_new = !ids.contains(id) && code.as_ref().is_none_or(|code| !codes.contains(code));
        if is_new {
            ids.insert(*id);
            codes.extend(code.clone());
        }
        is_new
    });
    rows
}

pub(crate) fn change(random: &mut Random, table: &Arc<Table>, expect: &mut Vec<Row>) {
    let mut change = table.begin_change();
    let percent = [1, 30, 100][random.below(3)];
    let mut left = Vec::new();
    for index in 0..change.snapshot().batch_count() {
        let rows = read(&change.snapshot().read(index, None).unwrap());
        let ids = change.snapshot().row_ids(index);
        for (row, id) in rows.into_iter().zip(ids.values()) {
            match random.chance(percent) {
                true => change.remove(&UInt64Array::from(vec![*id])),
                false => left.push(row),
            }
        }
    }
    let count = random.below(40);
    let mut new = rows(random, count, 3000);
    if random.chance(80) {
        new = without_duplicates(&left, new);
    }
    change.append(&batch(table, &new)).unwrap();
    if random.chance(10) {
        return;
    }
    if expect_written(change.commit(), &left, &new) {
        left.extend(new);
        *expect = left;
    }
}

/// Rows that get other values, which some of them keep; a few batches of a page each, or of rows
/// all over the table.
pub(crate) fn update(random: &mut Random, table: &Arc<Table>, expect: &mut Vec<Row>) {
    let mut change = table.begin_change();
    let percent = [1, 10, 60, 100][random.below(4)];
    let (changes_id, changes_code) = (random.chance(30), random.chance(40));
    let (mut left, mut ids, mut new) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..change.snapshot().batch_count() {
        let rows = read(&change.snapshot().read(index, None).unwrap());
        let row_ids = change.snapshot().row_ids(index);
        for (mut row, id) in rows.into_iter().zip(row_ids.values()) {
            match random.below(100) {
                0 => change.remove(&UInt64Array::from(vec![*id])),
                chance if chance < percent => {
                    if changes_id {
                        row.0 += 1000 * random.below(3) as i64;
                    }
                    if changes_code && random.chance(50) {
                        let filler = "d".repeat(random.below(300));
                        row.1 = Some(format!("{}{filler}", random.below(100_000)));
                    }
                    row.2 = random.below(7) as i32;
                    ids.push(*id);
                    new.push(row);
                }
                _ => left.push(row),
            }
        }
    }
    if random.chance(20) {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_cached_key(|_| random.below(1000));
        ids = order.iter().map(|place| ids[*place]).collect();
        new = order.iter().map(|place| new[*place].clone()).collect();
    }
    let length = [1, 7, 100, 10_000][random.below(4)];
    for (ids, new) in ids.chunks(length).zip(new.chunks(length)) {
        let ids = UInt64Array::from(ids.to_vec());
        let count = change.replace(&ids, &batch(table, new)).unwrap();
        assert_eq!(count, ids.len() as u64);
        let again = change.replace(&ids, &batch(table, new)).unwrap();
        assert_eq!(again, 0, "a row changes once");
        change.remove(&ids);
    }
    left.extend(new);
    match (change.commit(), first_duplicate(&[], &left)) {
        (Ok(()), None) => {}
        (Err(Error::DuplicateEntry { .. }), Some(_)) => {
            assert!(read_all(&table.snapshot()) == *expect);
            return;
        }
        (result, expected) => panic!("{result:?} where {expected:?} was expected"),
    }
    let now = read_all(&table.snapshot());
    let (mut found, mut model) = (now.clone(), left);
    found.sort();
    model.sort();
    assert!(found == model);
    *expect = now;
}

/// A batch that leaves out what meets others, as INSERT IGNORE does.
pub(crate) fn ignore(random: &mut Random, table: &Arc<Table>, expect: &mut Vec<Row>) {
    let count = random.below(60);
    let new = rows(random, count, 500);
    let conflicts = table
        .conflicts(&batch(table, &new), Repeats::Count)
        .unwrap();
    assert_eq!(conflicts.rows, new.len());
    let refused: BTreeSet<usize> = conflicts.found.iter().map(|found| found.row).collect();
    let kept = without_duplicates(expect, new.clone());
    let rows = new.into_iter().enumerate();
    let written: Vec<Row> = rows
        .filter(|(index, _)| !refused.contains(index))
        .map(|(_, row)| row)
        .collect();
    assert!(written == kept);
    table.append(&batch(table, &written)).unwrap();
    expect.extend(written);
}

/// A batch whose rows take the places of others, as REPLACE does.
pub(crate) fn replace(random: &mut Random, table: &Arc<Table>, expect: &mut Vec<Row>) {
    let count = random.below(60);
    let mut new = rows(random, count, 500);
    while !new.is_empty() {
        let conflicts = table.conflicts(&batch(table, &new), Repeats::Stop).unwrap();
        assert!(conflicts.rows > 0);
        let mut change = table.begin_change();
        let numbers = conflicts.found.iter().filter_map(|found| found.number);
        let ids = change.snapshot().locate(numbers).unwrap();
        assert_eq!(ids.len(), conflicts.found.len());
        change.remove(&UInt64Array::from(ids));
        let rest = new.split_off(conflicts.rows);
        change.append(&batch(table, &new)).unwrap();
        change.commit().unwrap();
        for row in std::mem::replace(&mut new, rest) {
            expect.retain(|old| old.0 != row.0 && (row.1.is_none() || old.1 != row.1));
            expect.push(row);
        }
    }
    // The model appends row by row, the table a part at a time behind those that stay.
    let (mut found, mut model) = (read_all(&table.snapshot()), expect.clone());
    found.sort();
    model.sort();
    assert!(found == model);
    *expect = read_all(&table.snapshot());
}

/// The rows that a search finds, sorted.
fn found(table: &Table, searches: &[Search]) -> Vec<Row> {
    let (snapshot, numbers) = table.search(searches, usize::MAX).unwrap().unwrap();
    let ids = snapshot.locate(numbers.iter().copied()).unwrap();
    assert_eq!(ids.len(), numbers.len());
    let mut batches: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for id in ids {
        batches.entry((id >> 32) as usize).or_default().push(id);
    }
    let mut rows: Vec<Row> = Vec::new();
    for (index, ids) in batches {
        rows.extend(read(&snapshot.fetch(index, &ids, None).unwrap()));
    }
    rows.sort();
    rows
}

fn search(random: &mut Random, table: &Table, expect: &[Row]) {
    let check = |searches: &[Search], filter: &dyn Fn(&Row) -> bool| {
        let mut rows: Vec<Row> = expect.iter().filter(|row| filter(row)).cloned().collect();
        rows.sort();
        assert!(found(table, searches) == rows);
        assert!(rows.is_empty() || table.search(searches, rows.len() - 1).unwrap().is_none());
    };
    let id = |id: i64| Arc::new(Int64Array::from(vec![id])) as ArrayRef;
    let kind = |kind: i32| Arc::new(Int32Array::from(vec![kind])) as ArrayRef;
    let (low, high) = (random.below(500) as i64, random.below(3000) as i64);
    let one = Search::equal(PRIMARY, vec![id(low)]);
    check(std::slice::from_ref(&one), &|row| row.0 == low);
    let other = Search::equal(PRIMARY, vec![id(high)]);
    check(&[one.clone(), other, one], &|row| {
        row.0 == low || row.0 == high
    });
    let range = |low, high| Search {
        key: PRIMARY,
        equal: Vec::new(),
        low,
        high,
    };
    check(
        &[range(Bound::Included(id(low)), Bound::Excluded(id(high)))],
        &|row| row.0 >= low && row.0 < high,
    );
    check(
        &[range(Bound::Excluded(id(low)), Bound::Included(id(high)))],
        &|row| row.0 > low && row.0 <= high,
    );
    // Ranges that meet, lie within one another or are empty; each row is found once.
    let ends: Vec<(i64, i64)> = (0..2 + random.below(6))
        .map(|_| (random.below(500) as i64, random.below(600) as i64))
        .collect();
    let between = |(low, high)| range(Bound::Included(id(low)), Bound::Excluded(id(high)));
    let mut several: Vec<Search> = ends.iter().copied().map(between).collect();
    several.push(Search::equal(PRIMARY, vec![id(low)]));
    several.push(range(Bound::Excluded(id(high)), Bound::Unbounded));
    check(&several, &|row| {
        let lies_in = |(low, high): &(i64, i64)| row.0 >= *low && row.0 < *high;
        ends.iter().any(lies_in) || row.0 == low || row.0 > high
    });
    let of = random.below(7) as i32;
    check(&[Search::equal(KIND, vec![kind(of)])], &|row| row.2 == of);
    let kinds = [of, 2, 5].map(|of| Search::equal(KIND, vec![kind(of)]));
    check(&kinds, &|row| [of, 2, 5].contains(&row.2));
    let descending = Search {
        key: KIND,
        equal: Vec::new(),
        low: Bound::Excluded(kind(of)),
        high: Bound::Unbounded,
    };
    check(&[descending], &|row| row.2 > of);
    let both = Search {
        key: KIND,
        equal: vec![kind(of)],
        low: Bound::Unbounded,
        high: Bound::Excluded(id(high)),
    };
    check(&[both], &|row| row.2 == of && row.0 < high);
    let no_code: ArrayRef = Arc::new(StringViewArray::from(vec![None::<&str>]));
    check(&[Search::equal(CODE, vec![no_code])], &|row| {
        row.1.is_none()
    });
    if let Some((_, Some(code), _)) = expect.last() {
        let value: ArrayRef = Arc::new(StringViewArray::from(vec![code.as_str()]));
        let below = Search {
            key: CODE,
            equal: Vec::new(),
            low: Bound::Unbounded,
            high: Bound::Excluded(Arc::clone(&value)),
        };
        check(&[below], &|row| {
            row.1.as_ref().is_some_and(|found| found < code)
        });
        check(&[Search::equal(CODE, vec![value])], &|row| {
            row.1.as_ref() == Some(code)
        });
    }
}

fn model(seed: u64, budget: u64) {
    let mut random = Random(seed);
    let dir = tempfile::tempdir().unwrap();
    let space = open(budget, dir.path());
    let mut table = Table::new("t", definition(), space.root());
    if random.chance(50) {
        table = table.shared();
    }
    let table = Arc::new(table);
    let mut expect: Vec<Row> = Vec::new();
    let mut saved: Vec<(Saved, Vec<Row>)> = Vec::new();
    for _ in 0..60 {
        match random.below(10) {
            0..3 => {
                let count = [1, random.below(5), random.below(400)][random.below(3)];
                let mut new = rows(&mut random, count, 3000);
                if random.chance(70) {
                    new = without_duplicates(&expect, new);
                }
                let result = table.append(&batch(&table, &new));
                if expect_written(result, &expect, &new) {
                    expect.extend(new);
                }
            }
            3 => change(&mut random, &table, &mut expect),
            4 => update(&mut random, &table, &mut expect),
            5 => ignore(&mut random, &table, &mut expect),
            6 => replace(&mut random, &table, &mut expect),
            7 if random.chance(50) => saved.push((table.save().unwrap(), expect.clone())),
            7 => {
                if let Some((state, rows)) = saved.pop() {
                    state.restore();
                    expect = rows;
                }
            }
            8 if random.chance(10) => {
                table.truncate().unwrap();
                expect.clear();
            }
            8 if random.chance(70) => draft(&mut random, &table, &mut expect),
            _ => search(&mut random, &table, &expect),
        }
        assert_eq!(table.row_count(), expect.len() as u64);
        table.assert_whole();
    }
    assert!(read_all(&table.snapshot()) == expect);
    drop((table, saved));
    assert_empty(&space);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_table_with_keys_is_a_vector_of_different_rows(
        seed in any::<u64>(),
        budget in 0..BUDGETS.len(),
    ) {
        model(seed, BUDGETS[budget]);
    }
}

/// Removes all rows whose id is not a multiple of `left`.
pub(crate) fn thin_out(table: &Arc<Table>, left: i64) -> Result<()> {
    let mut change = table.begin_change();
    let snapshot = change.snapshot().clone();
    for index in 0..snapshot.batch_count() {
        let rows = snapshot.read(index, Some(&[0]))?;
        let rows = rows.column(0).as_primitive::<Int64Type>().values().iter();
        let ids = snapshot.row_ids(index);
        let ids = rows.zip(ids.values()).filter(|(row, _)| **row % left != 0);
        let ids: UInt64Array = ids.map(|(_, id)| *id).collect::<Vec<_>>().into();
        change.remove(&ids);
    }
    change.commit()
}

#[test]
fn pages_that_are_mostly_removed_rows_are_written_again() {
    const ROWS: i64 = 30_000;
    for budget in [1 << 20, 64 << 20] {
        let dir = tempfile::tempdir().unwrap();
        let space = open(budget, dir.path());
        let table = table(space.root());
        let rows: Vec<Row> = (0..ROWS)
            .map(|id| {
                (
                    id,
                    Some(format!("code {}", id * 7919 % ROWS)),
                    (id % 7) as i32,
                )
            })
            .collect();
        table.append(&batch(&table, &rows)).unwrap();
        let (before, bytes) = (table.save().unwrap(), table.bytes());
        let reader = table.snapshot();
        let mut expect = rows.clone();
        // Three quarters stay where they are, the rest of what is sparse moves, several times.
        for (left, part) in [(2, 1), (10, 5), (100, 20), (1000, 20)] {
            thin_out(&table, left).unwrap();
            expect.retain(|row| row.0 % left == 0);
            table.assert_whole();
            assert!(
                table.bytes() <= bytes / part,
                "{} of {bytes}",
                table.bytes()
            );
            assert!(read_all(&table.snapshot()) == expect);
        }
        assert!(read_all(&reader) == rows);
        let search = Search::equal(PRIMARY, vec![Arc::new(Int64Array::from(vec![29_000]))]);
        let (snapshot, numbers) = table.search(&[search], 2).unwrap().unwrap();
        let found = snapshot.locate(numbers).unwrap();
        assert_eq!(
            read(&snapshot.rows(&found, None).unwrap()),
            [rows[29_000].clone()]
        );
        before.restore();
        table.assert_whole();
        assert!(read_all(&table.snapshot()) == rows);
        drop((table, reader, snapshot));
        assert_empty(&space);
    }
}

fn fault_scenario(account: &Account, failures: &mut u32) {
    let table = table(account);
    let mut expect: Vec<Row> = Vec::new();
    for statement in 0..8 {
        let count = [1, 40, 300][statement % 3];
        let first = expect.len() as i64;
        let new: Vec<Row> = (first..first + count)
            .map(|id| {
                (
                    id * 7919 % 10_007,
                    Some(format!("code {id}")),
                    (id % 7) as i32,
                )
            })
            .collect();
        let new_batch = batch(&table, &new);
        again(|| table.append(&new_batch), failures);
        table.assert_whole();
        expect.extend(new);
        if statement % 4 == 3 {
            let state = again(|| table.save(), failures);
            let remove = || {
                let mut change = table.begin_change();
                let ids = change.snapshot().row_ids(0);
                change.remove(&ids);
                change.commit()
            };
            again(remove, failures);
            table.assert_whole();
            // Going back does not fail, and the keys work behind it.
            state.restore();
            let again_there = || table.search(&[Search::equal(KIND, Vec::new())], usize::MAX);
            let (_, numbers) = again(again_there, failures).unwrap();
            assert_eq!(numbers.len(), expect.len());
            table.assert_whole();
        }
    }
    for code in [None, Some("d".repeat(40))] {
        let update = |row: &Row| {
            (
                row.0,
                code.clone().map(|d| format!("{} {d}", row.0)),
                8 - row.2,
            )
        };
        let state = again(|| table.save(), failures);
        again(|| update_all(&table, update), failures);
        table.assert_whole();
        state.restore();
        again(
            || table.search(&[Search::equal(CODE, Vec::new())], usize::MAX),
            failures,
        );
        table.assert_whole();
        again(|| update_all(&table, update), failures);
        expect = expect.iter().map(update).collect();
        table.assert_whole();
    }
    again(|| thin_out(&table, 9), failures);
    let table = again(|| succeeded(&table), failures);
    expect.retain(|row| row.0 % 9 == 0);
    table.assert_whole();
    assert_eq!(table.row_count(), expect.len() as u64);
    let refused = batch(&table, &expect[..1]);
    let result = loop {
        match table.append(&refused) {
            Err(Error::Space(_)) => *failures += 1,
            result => break result,
        }
    };
    assert!(matches!(result, Err(Error::DuplicateEntry { .. })));
    table.assert_whole();
}

#[test]
fn a_table_with_keys_survives_each_fault() {
    fail_each(fault_scenario);
}

#[test]
fn threads_insert_different_rows_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(8 << 20, dir.path());
    let table = table(space.root());
    let written: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let table = &table;
                scope.spawn(move || {
                    let mut random = Random(thread);
                    let mut written = 0;
                    for _ in 0..200 {
                        let rows = rows(&mut random, 3, 2000);
                        match table.append(&batch(table, &rows)) {
                            Ok(()) => written += rows.len(),
                            Err(Error::DuplicateEntry { .. }) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                    written
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(table.row_count(), written as u64);
    table.assert_whole();
}
