//! Values that are written where the old ones stand: against a map of rows, with snapshots, batches
//! and saved states that hold pages, at several budgets.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch,
    StringViewArray, UInt64Array,
};
use mayfly_space::{Account, Counters};
use mayfly_table::{
    Column, Definition, Error, Key, KeyKind, KeyPart, Result, Saved, Search, Table, TableSnapshot,
};
use mayfly_types::ColumnType;
use proptest::prelude::*;

use crate::batches::Random;
use crate::faults::{again, fail_each};
use crate::spaces::{BUDGETS, Whole as _, assert_empty, open};

/// What a row has besides its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Values {
    /// In a key, if the table has any.
    kind: i32,
    count: Option<i32>,
    day: i32,
    price: Option<i128>,
    word: Option<String>,
}

type Model = BTreeMap<i64, Values>;

const COLUMNS: usize = 6;

fn definition(has_keys: bool) -> Definition {
    let key = |name, kind, column| Key::new(name, kind, vec![KeyPart::new(column)]);
    let price = ColumnType::Decimal {
        precision: 12,
        scale: 2,
        unsigned: false,
    };
    let mut definition = Definition {
        columns: vec![
            Column::new("id", ColumnType::BigInt { unsigned: false }, false),
            Column::new("kind", ColumnType::Int { unsigned: false }, false),
            Column::new("count", ColumnType::Int { unsigned: false }, true),
            Column::new("day", ColumnType::Date, false),
            Column::new("price", price, true),
            Column::new("word", ColumnType::VarChar { length: 200 }, true),
        ],
        ..Definition::default()
    };
    if has_keys {
        definition.keys = vec![
            key("PRIMARY", KeyKind::Primary, 0),
            key("kind", KeyKind::Plain, 1),
        ];
    }
    definition
}

fn table(account: &Account, has_keys: bool) -> Arc<Table> {
    Arc::new(Table::new("t", definition(has_keys), account))
}

/// A text of one of few lengths, so that many fit where others stand.
fn word(random: &mut Random) -> Option<String> {
    let len = [0, 5, 5, 70, 70, 150][random.below(6)];
    let letter = char::from(b'a' + random.below(26) as u8);
    random.chance(80).then(|| letter.to_string().repeat(len))
}

fn values(random: &mut Random) -> Values {
    let number = random.below(1000) as i32;
    Values {
        kind: random.below(50) as i32,
        count: random.chance(70).then_some(number),
        day: number,
        price: random.chance(70).then_some(i128::from(number) * 99),
        word: word(random),
    }
}

/// The columns of rows.
fn arrays<'a>(rows: impl Iterator<Item = (i64, &'a Values)> + Clone) -> Vec<ArrayRef> {
    let ids = rows.clone().map(|(id, _)| id);
    let values = || rows.clone().map(|(_, values)| values);
    let prices: Decimal128Array = values().map(|values| values.price).collect();
    let prices = prices.with_precision_and_scale(12, 2).unwrap();
    let words: StringViewArray = values().map(|values| values.word.as_deref()).collect();
    vec![
        Arc::new(ids.collect::<Int64Array>()),
        Arc::new(Int32Array::from_iter_values(
            values().map(|values| values.kind),
        )),
        Arc::new(values().map(|values| values.count).collect::<Int32Array>()),
        Arc::new(Date32Array::from_iter_values(
            values().map(|values| values.day),
        )),
        Arc::new(prices),
        Arc::new(words),
    ]
}

fn batch<'a>(table: &Table, rows: impl Iterator<Item = (i64, &'a Values)> + Clone) -> RecordBatch {
    RecordBatch::try_new(Arc::clone(table.schema()), arrays(rows)).unwrap()
}

fn read(batch: &RecordBatch) -> Vec<(i64, Values)> {
    let ids = batch.column(0).as_primitive::<Int64Type>().values();
    let kinds = batch.column(1).as_primitive::<Int32Type>();
    let counts = batch.column(2).as_primitive::<Int32Type>();
    let days = batch.column(3).as_primitive::<Date32Type>();
    let prices = batch.column(4).as_primitive::<Decimal128Type>();
    let words = batch.column(5).as_string_view();
    let values = |row: usize| Values {
        kind: kinds.value(row),
        count: counts.is_valid(row).then(|| counts.value(row)),
        day: days.value(row),
        price: prices.is_valid(row).then(|| prices.value(row)),
        word: words.is_valid(row).then(|| words.value(row).to_owned()),
    };
    ids.iter()
        .enumerate()
        .map(|(row, id)| (*id, values(row)))
        .collect()
}

fn read_all(snapshot: &TableSnapshot) -> Vec<(i64, Values)> {
    let batches = 0..snapshot.batch_count();
    let rows = batches.map(|index| read(&snapshot.read(index, None).unwrap()));
    rows.flatten().collect()
}

fn rows_of(snapshot: &TableSnapshot) -> Model {
    let rows = read_all(snapshot);
    let count = rows.len();
    let model: Model = rows.into_iter().collect();
    assert_eq!(model.len(), count, "a row is there once");
    model
}

/// The ids of the rows of a snapshot, by what they are called in the table.
fn places(snapshot: &TableSnapshot) -> BTreeMap<i64, u64> {
    let mut places = BTreeMap::new();
    for index in 0..snapshot.batch_count() {
        let rows = snapshot.read(index, Some(&[0])).unwrap();
        let ids = rows.column(0).as_primitive::<Int64Type>().values();
        places.extend(
            ids.iter()
                .copied()
                .zip(snapshot.row_ids(index).values().iter().copied()),
        );
    }
    places
}

fn append(table: &Table, rows: &Model) -> Result<()> {
    table.append(&batch(table, rows.iter().map(|(id, values)| (*id, values))))
}

/// Gives some rows other values in some columns.
fn assign(table: &Arc<Table>, columns: &[usize], rows: &[(i64, Values)]) -> Result<()> {
    let mut change = table.begin_change();
    let places = places(change.snapshot());
    let ids: Vec<u64> = rows.iter().map(|(id, _)| places[id]).collect();
    let all = arrays(rows.iter().map(|(id, values)| (*id, values)));
    let new: Vec<ArrayRef> = columns
        .iter()
        .map(|column| Arc::clone(&all[*column]))
        .collect();
    if let ([id], [(_, new_values)]) = (ids.as_slice(), rows) {
        let (_, old) = &read(&change.snapshot().rows(&[*id], None)?)[0];
        let differs = assigned(old, new_values, columns) != *old;
        assert_eq!(change.assign_one(*id, columns, &new)?, differs);
        return match differs {
            true => change.commit(),
            false => Ok(()),
        };
    }
    let ids = UInt64Array::from(ids);
    assert_eq!(change.assign(&ids, columns, &new)?, rows.len() as u64);
    assert_eq!(change.assign(&ids, columns, &new)?, 0, "a row changes once");
    change.commit()
}

/// What rows become that get some columns of others.
fn assigned(old: &Values, new: &Values, columns: &[usize]) -> Values {
    let mut values = old.clone();
    for column in columns {
        match column {
            1 => values.kind = new.kind,
            2 => values.count = new.count,
            3 => values.day = new.day,
            4 => values.price = new.price,
            _ => values.word.clone_from(&new.word),
        }
    }
    values
}

/// Some different rows of a model.
fn some(random: &mut Random, model: &Model, count: usize) -> BTreeSet<i64> {
    let ids: Vec<i64> = model.keys().copied().collect();
    let count = count.min(ids.len());
    (0..count).map(|_| ids[random.below(ids.len())]).collect()
}

fn update(random: &mut Random, table: &Arc<Table>, model: &mut Model) {
    let count = [1, 1, 3, 30, 300][random.below(5)];
    let ids = some(random, model, count);
    let columns: Vec<usize> = (1..COLUMNS).filter(|_| random.chance(40)).collect();
    let mut rows: Vec<(i64, Values)> = Vec::new();
    for id in ids {
        let new = assigned(&model[&id], &values(random), &columns);
        rows.push((id, new));
    }
    let is_kept = random.chance(90);
    match random.below(3) {
        0 | 1 if is_kept => assign(table, &columns, &rows).unwrap(),
        _ => {
            let mut change = table.begin_change();
            let places = places(change.snapshot());
            // Rows go in the same statement, and rows come.
            let count = [0, 0, 2][random.below(3)];
            let gone = some(random, model, count);
            let gone: Vec<i64> = gone
                .into_iter()
                .filter(|id| rows.iter().all(|(row, _)| row != id))
                .collect();
            let length = [1, 100][random.below(2)];
            for rows in rows.chunks(length) {
                let ids: Vec<u64> = rows.iter().map(|(id, _)| places[id]).collect();
                let new = batch(table, rows.iter().map(|(id, values)| (*id, values)));
                change.replace(&UInt64Array::from(ids), &new).unwrap();
            }
            let ids: Vec<u64> = gone.iter().map(|id| places[id]).collect();
            change.remove(&UInt64Array::from(ids));
            let come: Model = match random.below(3) {
                0 => fresh(random, model, 40),
                _ => Model::new(),
            };
            let new = batch(table, come.iter().map(|(id, values)| (*id, values)));
            change.append(&new).unwrap();
            if !is_kept {
                return;
            }
            change.commit().unwrap();
            gone.iter().for_each(|id| _ = model.remove(id));
            model.extend(come);
        }
    }
    model.extend(rows);
}

/// Rows whose ids nobody has.
fn fresh(random: &mut Random, model: &Model, count: usize) -> Model {
    let first = model.keys().next_back().map_or(0, |id| id + 1);
    let ids = first..first + count as i64;
    ids.map(|id| (id, values(random))).collect()
}

/// The rows that a key leads to.
fn found(table: &Table, kind: i32) -> Model {
    let kind: ArrayRef = Arc::new(Int32Array::from(vec![kind]));
    let search = Search::equal(1, vec![kind]);
    let (snapshot, numbers) = table.search(&[search], usize::MAX).unwrap().unwrap();
    let ids = snapshot.locate(numbers).unwrap();
    let rows = ids.chunk_by(|left, right| left >> 32 == right >> 32);
    rows.flat_map(|ids| read(&snapshot.rows(ids, None).unwrap()))
        .collect()
}

fn model(seed: u64, budget: u64, has_keys: bool) {
    let mut random = Random(seed);
    let dir = tempfile::tempdir().unwrap();
    let space = open(budget, dir.path());
    let table = table(space.root(), has_keys);
    let mut model = Model::new();
    let mut saved: Vec<(Saved, Model)> = Vec::new();
    let mut snapshots: Vec<(TableSnapshot, Model)> = Vec::new();
    // Batches of pages that nobody else may hold any more.
    let mut batches: Vec<(RecordBatch, Vec<(i64, Values)>)> = Vec::new();
    for step in 0..60 {
        match random.below(20) {
            0 | 1 => {
                let count = [1, 50, 2000][random.below(3)];
                let rows = fresh(&mut random, &model, count);
                append(&table, &rows).unwrap();
                model.extend(rows);
            }
            2..13 => update(&mut random, &table, &mut model),
            13 => snapshots.push((table.snapshot(), model.clone())),
            14 => snapshots.clear(),
            15 if batches.len() < 3 && table.row_count() > 0 => {
                let snapshot = table.snapshot();
                let index = random.below(snapshot.batch_count());
                let rows = snapshot.read(index, None).unwrap();
                let seen = read(&rows);
                batches.push((rows, seen));
            }
            15 => batches.clear(),
            16 => saved.push((table.save().unwrap(), model.clone())),
            17 => {
                if let Some((state, rows)) = saved.pop() {
                    state.restore();
                    model = rows;
                }
            }
            18 => saved.clear(),
            _ if has_keys => {
                let kind = random.below(50) as i32;
                let expect = model.iter().filter(|(_, values)| values.kind == kind);
                let expect: Model = expect.map(|(id, values)| (*id, values.clone())).collect();
                assert!(found(&table, kind) == expect);
            }
            _ => {}
        }
        table.assert_whole();
        for (snapshot, rows) in &snapshots {
            assert!(
                step % 4 > 0 || rows_of(snapshot) == *rows,
                "a snapshot stays"
            );
        }
        for (rows, seen) in &batches {
            assert!(read(rows) == *seen, "a batch stays");
        }
    }
    assert!(rows_of(&table.snapshot()) == model);
    while let Some((state, rows)) = saved.pop() {
        state.restore();
        table.assert_whole();
        assert!(rows_of(&table.snapshot()) == rows);
    }
    for (snapshot, rows) in snapshots {
        assert!(rows_of(&snapshot) == rows);
    }
    drop((table, batches));
    assert_empty(&space);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_table_is_a_map_of_rows_whose_values_change(
        seed in any::<u64>(),
        budget in 0..BUDGETS.len(),
        has_keys in any::<bool>(),
    ) {
        model(seed, BUDGETS[budget], has_keys);
    }
}

/// Rows that fill several pages.
fn many(ids: Range<i64>) -> Model {
    let values = |id: i64| Values {
        kind: (id % 50) as i32,
        count: (id % 3 > 0).then_some(1),
        day: 1,
        price: Some(100),
        word: Some(format!("{:0>100}", id)),
    };
    ids.map(|id| (id, values(id))).collect()
}

/// The ids of a table's rows in their order, and what its pages and keys have cost so far.
fn order(table: &Table) -> (Vec<i64>, Counters) {
    let rows = read_all(&table.snapshot());
    (
        rows.into_iter().map(|(id, _)| id).collect(),
        table.counters(),
    )
}

#[test]
fn values_that_fit_take_no_page_and_no_entry() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let table = table(space.root(), true);
    let mut model = many(0..20_000);
    append(&table, &model).unwrap();
    let (rows, before) = order(&table);
    assert!(
        table.snapshot().page_bytes_max(0..1) > 64 << 10,
        "pages are long"
    );
    for id in [0, 777, 19_000] {
        let old = model[&id].clone();
        let new = Values {
            kind: 49 - old.kind,
            count: if id == 777 { None } else { Some(7) },
            day: 8,
            price: Some(5),
            word: Some("z".repeat(100)),
        };
        assign(&table, &[1, 2, 3, 4, 5], &[(id, new.clone())]).unwrap();
        assert!(found(&table, new.kind).contains_key(&id));
        assert!(!found(&table, old.kind).contains_key(&id));
        model.insert(id, new);
    }
    table.assert_whole();
    let (now, after) = order(&table);
    assert!(now == rows, "rows keep their places");
    assert_eq!(after.pages_allocated, before.pages_allocated);
    assert!(rows_of(&table.snapshot()) == model);

    // What does not fit moves: a longer text, NULL where the page has no bits for it, a number
    // below those of its page.
    let longer = Values {
        word: Some("z".repeat(101)),
        ..model[&5].clone()
    };
    let nothing = Values {
        price: None,
        ..model[&6].clone()
    };
    let far = Values {
        price: Some(-5),
        ..model[&7].clone()
    };
    for (id, column, new) in [(5, 5, longer), (6, 4, nothing), (7, 4, far)] {
        assign(&table, &[column], &[(id, new.clone())]).unwrap();
        model.insert(id, new);
        assert_eq!(order(&table).0.last(), Some(&id));
    }
    table.assert_whole();
    assert!(rows_of(&table.snapshot()) == model);
    drop(table);
    assert_empty(&space);
}

#[test]
fn whoever_holds_a_page_sees_it_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let table = table(space.root(), true);
    let model = many(0..20_000);
    append(&table, &model).unwrap();
    let set_day = |id: i64, day| {
        let new = Values {
            day,
            ..model[&id].clone()
        };
        assign(&table, &[3], &[(id, new)]).unwrap();
    };
    let snapshot = table.snapshot();
    let rows = snapshot.read(0, None).unwrap();
    set_day(3, 2);
    assert_eq!(order(&table).0.last(), Some(&3), "it moves");
    assert!(rows_of(&snapshot) == model);
    drop(snapshot);
    // The list is the table's alone again, its first page is not.
    set_day(4, 9);
    assert_eq!(order(&table).0.last(), Some(&4), "it moves");
    assert_eq!(read(&rows)[4], (4, model[&4].clone()));
    drop(rows);
    let before = order(&table).0;
    set_day(5, 9);
    assert!(order(&table).0 == before, "it stays");
    // A transaction that may go back holds all pages.
    let saved = table.save().unwrap();
    set_day(6, 9);
    assert_eq!(order(&table).0.last(), Some(&6), "it moves");
    saved.restore();
    table.assert_whole();
    assert!(order(&table).0 == before);
    assert_eq!(rows_of(&table.snapshot())[&6], model[&6]);
    drop(table);
    assert_empty(&space);
}

#[test]
fn values_that_were_written_over_others_outlive_memory() {
    for has_keys in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let space = open(1 << 20, dir.path());
        let table = table(space.root(), has_keys);
        let mut model = many(0..10_000);
        append(&table, &model).unwrap();
        let mut random = Random(9);
        for round in 0..8 {
            // All pages leave memory, as they are or changed.
            let rows = rows_of(&table.snapshot());
            assert!(rows == model, "round {round}");
            for _ in 0..10 {
                let id = random.below(10_000) as i64;
                let new = Values {
                    kind: random.below(50) as i32,
                    day: round,
                    word: Some(format!("{round:0>100}")),
                    ..model[&id].clone()
                };
                assign(&table, &[1, 3, 5], &[(id, new.clone())]).unwrap();
                model.insert(id, new);
            }
        }
        table.assert_whole();
        assert!(space.counters().bytes_written > 0);
        drop(table);
        assert_empty(&space);
    }
}

#[test]
fn readers_never_see_a_part_of_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(8 << 20, dir.path());
    let table = table(space.root(), true);
    let model = many(0..5000);
    append(&table, &model).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (table, is_over) = (&table, &is_over);
            scope.spawn(move || {
                let mut random = Random(reader);
                while !is_over.load(Ordering::Relaxed) {
                    let snapshot = table.snapshot();
                    let rows = snapshot.read(random.below(snapshot.batch_count()), None);
                    for (id, values) in read(&rows.unwrap()) {
                        if values.day > 1 {
                            assert_eq!(values.count, Some(values.day), "row {id}");
                            let word = format!("{:0>100}", values.day);
                            assert_eq!(values.word, Some(word), "row {id}");
                        }
                    }
                }
            });
        }
        for day in 2..400 {
            let id = i64::from(day) * 7919 % 5000;
            let new = Values {
                day,
                count: Some(day),
                word: Some(format!("{day:0>100}")),
                ..model[&id].clone()
            };
            assign(&table, &[2, 3, 5], &[(id, new)]).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    table.assert_whole();
    drop(table);
    assert_empty(&space);
}

fn fault_scenario(account: &Account, failures: &mut u32) {
    let table = table(account, true);
    let mut expect = many(0..800);
    again(|| append(&table, &expect), failures);
    let update = |ids: &[i64], day: i32| -> Vec<(i64, Values)> {
        let row = |id: &i64| {
            let kind = (*id as i32 + day) % 50;
            (
                *id,
                Values {
                    kind,
                    day,
                    ..many(*id..id + 1)[id].clone()
                },
            )
        };
        ids.iter().map(row).collect()
    };
    for day in 2..4 {
        let state = again(|| table.save(), failures);
        let rows = update(&[7, 400, 401, 790], day);
        // Some of them while a saved state holds the pages, some not.
        let call = || {
            let mut change = table.begin_change();
            let ids = rows.iter().map(|(id, _)| {
                let search = Search::equal(0, vec![Arc::new(Int64Array::from(vec![*id]))]);
                let found = table.search(&[search], 2)?;
                Ok(change
                    .snapshot()
                    .locate(found.map_or(Vec::new(), |found| found.1))?[0])
            });
            let ids = UInt64Array::from(ids.collect::<Result<Vec<u64>>>()?);
            let all = arrays(rows.iter().map(|(id, values)| (*id, values)));
            change.assign(&ids, &[1, 3], &[Arc::clone(&all[1]), Arc::clone(&all[3])])?;
            change.commit()
        };
        again(call, failures);
        table.assert_whole();
        state.restore();
        again(call, failures);
        table.assert_whole();
        expect.extend(rows.clone());
    }
    let snapshot = table.snapshot();
    let mut rows = Model::new();
    for index in 0..snapshot.batch_count() {
        let read_one = || snapshot.read(index, None).map(|rows| read(&rows));
        rows.extend(again(read_one, failures));
    }
    assert!(rows == expect);
}

#[test]
fn a_table_whose_values_change_survives_each_fault() {
    fail_each(fault_scenario);
}

#[test]
fn a_duplicate_leaves_all_values_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let table = table(space.root(), true);
    let model = many(0..20_000);
    append(&table, &model).unwrap();
    let mut change = table.begin_change();
    let places = places(change.snapshot());
    let ids = UInt64Array::from(vec![places[&5], places[&19_000]]);
    let new: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![20_005, 7]))];
    assert_eq!(change.assign(&ids, &[0], &new).unwrap(), 2);
    let refused = change.commit().unwrap_err();
    assert!(matches!(refused, Error::DuplicateEntry { .. }));
    table.assert_whole();
    assert!(rows_of(&table.snapshot()) == model);
    drop(table);
    assert_empty(&space);
}
