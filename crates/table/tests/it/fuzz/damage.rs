//! A table, a tree, rows of groups or a run leaves memory, its file is damaged behind its back, and
//! it goes on: what it gives is right, or an error that says where it was lost. What fails to
//! change it leaves it as it was.
//!
//! ```text
//! codec, mode | structure | entries | seed | changes, as of `DamagedSpace`
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray, UInt64Array};
use arrow_schema::DataType;
use mayfly_space::{NextUse, PageClass, Space};
use mayfly_table::rows::{
    self, GroupInput, GroupOptions, GroupReader, GroupSet, KeyColumn, Number, RowLayout,
    StateInput, StateKind,
};
use mayfly_table::tree::KeyRange;
use mayfly_table::{
    BatchRun, Column, Definition, Error, Key, KeyKind, KeyPart, Search, Table, Tree,
};
use mayfly_testkit::{Damage, DamagedSpace, Random, plausible_damage};
use mayfly_types::ColumnType;

const MEMORY_BYTES: u64 = 512 << 10;
/// Rows of a batch.
const BATCH_ROWS: usize = 64;

/// How many kinds of structures there are.
pub const STRUCTURES: u8 = 4;

/// Runs one input.
pub fn check(input: &[u8]) {
    failures(input);
}

/// Runs one input; returns how many calls failed.
pub fn failures(input: &[u8]) -> usize {
    let mut input = input.iter().copied();
    let mut next = || input.next().unwrap_or(0);
    let damaged = DamagedSpace::open(MEMORY_BYTES, next(), next());
    let structure = next() % STRUCTURES;
    let case = Case {
        rows: rows_of(16 * (1 + usize::from(next())), u64::from(next())),
        damaged: &damaged,
    };
    let failures = match structure {
        0 => case.tree(&mut next),
        1 => case.groups(&mut next),
        2 => case.table(&mut next),
        _ => case.run(&mut next),
    };
    // What was lost is lost, and everything else goes on.
    let space = damaged.space();
    space.verify();
    let counters = space.counters();
    assert_eq!((counters.pages_live, counters.pinned_bytes), (0, 0));
    drop(space.root().reserve(MEMORY_BYTES / 2).expect("it is free"));
    failures
}

/// A number that no other row has, and a word.
type Row = (i64, String);

/// Rows with different numbers, in no order, some of them long.
fn rows_of(count: usize, seed: u64) -> Vec<Row> {
    let mut random = Random::new(seed);
    let mut numbers = BTreeSet::new();
    let row = |_| {
        let mut number = random.next_u64() as i64 >> 20;
        while !numbers.insert(number) {
            number += 1;
        }
        let longest = if random.chance(0.05) { 600 } else { 60 };
        (number, random.string(longest))
    };
    (0..count).map(row).collect()
}

/// What goes into a structure, and where it lies.
struct Case<'a> {
    rows: Vec<Row>,
    damaged: &'a DamagedSpace,
}

/// Counts the calls that failed, each of which the damage must explain.
struct Failures {
    damage: Damage,
    count: usize,
}

impl Failures {
    /// What a call gave, if it did.
    fn survived<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(Error::Space(error)) => {
                assert!(self.damage.explains(&error), "{error}");
                self.count += 1;
                None
            }
            Err(other) => panic!("not an error of the space: {other}"),
        }
    }
}

impl Case<'_> {
    fn space(&self) -> &Space {
        self.damaged.space()
    }

    fn damage(&self, next: &mut dyn FnMut() -> u8) -> Failures {
        self.damaged.push_out();
        Failures {
            damage: self.damaged.damage(next),
            count: 0,
        }
    }

    fn tree(&self, next: &mut dyn FnMut() -> u8) -> usize {
        let key = |(number, word): &Row| [word.as_bytes(), &number.to_be_bytes()].concat();
        let mut model: BTreeMap<Vec<u8>, u64> = (0u64..)
            .zip(&self.rows)
            .map(|(n, row)| (key(row), n))
            .filter(|(key, _)| key.len() <= mayfly_table::tree::MAX_KEY_BYTES)
            .collect();
        let entries = model.iter().map(|(key, row)| Ok((key, row.to_le_bytes())));
        let tree = Tree::build(self.space().root(), 8, 100, entries);
        let mut tree = tree.expect("there is room for it");
        let mut failures = self.damage(next);
        look_up(&tree, &model, &mut failures);
        let mut expected = model.iter();
        let mut range = tree.range(KeyRange::ALL);
        while let Some(entry) = failures.survived(range.next_entry()) {
            let entry = entry.map(|(key, payload)| (key.to_vec(), payload.row_id()));
            let wanted = expected.next().map(|(key, row)| (key.clone(), Some(*row)));
            assert_eq!(entry, wanted);
            if entry.is_none() {
                break;
            }
        }
        drop(range);
        // Some go, some come, some stay.
        let keys: Vec<Vec<u8>> = model.keys().step_by(5).cloned().collect();
        for (n, key) in keys.into_iter().enumerate() {
            let new = [&key[..key.len().min(100)], b"new"].concat();
            let row = (n as u64).to_le_bytes();
            if failures.survived(tree.remove(&key)).is_some() {
                model.remove(&key);
            }
            if let Some(before) = failures.survived(tree.insert(&new, &row)) {
                assert_eq!(before.is_some(), model.contains_key(&new));
                model.entry(new).or_insert(n as u64);
            }
            assert_eq!(tree.len(), model.len() as u64);
        }
        look_up(&tree, &model, &mut failures);
        failures.survived(tree.verify());
        failures.count
    }

    fn groups(&self, next: &mut dyn FnMut() -> u8) -> usize {
        let key = |data_type| KeyColumn {
            data_type,
            nullable: false,
        };
        let layout = RowLayout::new(
            &[key(DataType::Utf8View), key(DataType::Int64)],
            &[],
            &[
                (StateKind::Count, false),
                (StateKind::Max(Number::Int), true),
            ],
        );
        let options = GroupOptions::for_budget(MEMORY_BYTES, PageClass::K4, 1);
        let layout = layout.expect("rows hold these types");
        let set = GroupSet::new(layout, self.space().root(), options);
        let set = set.expect("the minimum is there");
        let mut worker = set.worker(0);
        // Each group comes twice.
        for rows in self
            .rows
            .chunks(BATCH_ROWS)
            .chain(self.rows.chunks(BATCH_ROWS))
        {
            let [numbers, words] = columns(rows);
            let argument = StateInput {
                values: Some(Arc::clone(&numbers)),
                filter: None,
            };
            let pushed = worker.push(&GroupInput {
                rows: rows.len(),
                key: &[words, numbers],
                payload: &[],
                states: &[StateInput::default(), argument],
            });
            pushed.expect("there is room for them");
        }
        worker.finish().expect("there is room for them");
        set.shed(u64::MAX);
        let mut failures = self.damage(next);
        let mut left: BTreeSet<&Row> = self.rows.iter().collect();
        let mut reader = GroupReader::new(set);
        loop {
            let batch = reader.next_batch(100).map_err(|error| match error {
                rows::Error::Space(error) => Error::Space(error),
                other => panic!("not an error of the space: {other}"),
            });
            let batch = match failures.survived(batch) {
                Some(Some(batch)) => batch,
                Some(None) => {
                    assert!(left.is_empty(), "groups are missing");
                    break;
                }
                // A reader that failed is not asked again.
                None => break,
            };
            let numbers = batch.key[1].as_primitive::<Int64Type>().values();
            for (row, number) in numbers.iter().enumerate() {
                let word = batch.key[0].as_string_view().value(row).to_owned();
                assert!(left.remove(&(*number, word)), "a group that was not pushed");
                let of = |state: usize| {
                    let values = batch.states[state][0].as_primitive::<Int64Type>();
                    values.value(row)
                };
                assert_eq!((of(0), of(1)), (2, *number));
            }
        }
        failures.count
    }

    fn table(&self, next: &mut dyn FnMut() -> u8) -> usize {
        let table = Arc::new(Table::new("t", definition(), self.space().root()));
        for rows in self.rows.chunks(BATCH_ROWS) {
            let written = table.append(&batch(&table, rows));
            written.expect("there is room for them");
        }
        let mut failures = self.damage(next);
        let new: Vec<Row> = (1..10).map(|n| (n << 50, format!("new {n}"))).collect();
        let mut there: BTreeMap<i64, &str> = BTreeMap::new();
        there.extend(self.rows.iter().map(|(number, word)| (*number, &**word)));
        find_all(&table, &there, &mut failures);
        for (number, _) in self.rows.iter().step_by(7) {
            let Some(found) = failures.survived(find(&table, *number)) else {
                continue;
            };
            assert_eq!(found.len(), 1);
            let mut change = table.begin_change();
            change.remove(&UInt64Array::from(found));
            if failures.survived(change.commit()).is_some() {
                there.remove(number);
            }
        }
        if failures
            .survived(table.append(&batch(&table, &new)))
            .is_some()
        {
            there.extend(new.iter().map(|(number, word)| (*number, &**word)));
        }
        assert_eq!(table.row_count(), there.len() as u64);
        find_all(&table, &there, &mut failures);
        failures.count
    }

    fn run(&self, next: &mut dyn FnMut() -> u8) -> usize {
        let definition = definition();
        let table = Table::new("t", definition, self.space().root());
        let schema = Arc::clone(table.schema());
        let mut run = BatchRun::new(self.space().root(), schema, NextUse::At(0));
        let rows = self.rows.chunks(BATCH_ROWS);
        for rows in rows.clone() {
            let written = run.append(&batch(&table, rows));
            written.expect("there is room for them");
        }
        run.finish().expect("there is room for them");
        let mut failures = self.damage(next);
        let mut first = 0;
        for index in 0..run.batch_count() {
            run.prefetch(index + 1);
            let end = first + run.rows_of(index);
            if let Some(found) = failures.survived(run.read(index, None)) {
                assert!(read(&found) == self.rows[first..end]);
            }
            first = end;
        }
        assert_eq!(first, self.rows.len());
        failures.count
    }
}

/// Looks up what is there, and what is not.
fn look_up(tree: &Tree, model: &BTreeMap<Vec<u8>, u64>, failures: &mut Failures) {
    for (key, row) in model {
        if let Some(found) = failures.survived(tree.get(key)) {
            assert_eq!(found.and_then(|payload| payload.row_id()), Some(*row));
        }
        let other = [&key[..], b"!"].concat();
        if other.len() <= mayfly_table::tree::MAX_KEY_BYTES
            && let Some(found) = failures.survived(tree.get(&other))
        {
            assert_eq!(found.is_some(), model.contains_key(&other));
        }
    }
}

/// Reads all rows, and finds some by their numbers.
fn find_all(table: &Arc<Table>, there: &BTreeMap<i64, &str>, failures: &mut Failures) {
    let snapshot = table.snapshot();
    let mut is_whole = true;
    let mut seen = BTreeSet::new();
    for index in 0..snapshot.batch_count() {
        let Some(batch) = failures.survived(snapshot.read(index, None)) else {
            is_whole = false;
            continue;
        };
        for (number, word) in read(&batch) {
            assert_eq!(there.get(&number), Some(&&*word));
            assert!(seen.insert(number), "a row came twice");
        }
    }
    assert!(!is_whole || seen.len() == there.len());
    for number in there.keys().step_by(3) {
        if let Some(found) = failures.survived(find(table, *number)) {
            assert_eq!(found.len(), 1);
        }
    }
}

/// The rows with this number, by their key.
fn find(table: &Arc<Table>, number: i64) -> Result<Vec<u64>, Error> {
    let value: ArrayRef = Arc::new(Int64Array::from(vec![number]));
    let found = table.search(&[Search::equal(0, vec![value])], 10)?;
    let (snapshot, numbers) = found.expect("they are few");
    snapshot.locate(numbers)
}

fn definition() -> Definition {
    let key = |name, kind, column| Key::new(name, kind, vec![KeyPart::new(column)]);
    Definition {
        columns: vec![
            Column::new("id", ColumnType::BigInt { unsigned: false }, false),
            Column::new("word", ColumnType::VarChar { length: 600 }, false),
        ],
        keys: vec![
            key("PRIMARY", KeyKind::Primary, 0),
            key("word", KeyKind::Plain, 1),
        ],
        ..Definition::default()
    }
}

fn columns(rows: &[Row]) -> [ArrayRef; 2] {
    let numbers: Int64Array = rows
        .iter()
        .map(|(number, _)| *number)
        .collect::<Vec<_>>()
        .into();
    let words: StringViewArray = rows.iter().map(|(_, word)| Some(word)).collect();
    [Arc::new(numbers), Arc::new(words)]
}

fn batch(table: &Table, rows: &[Row]) -> RecordBatch {
    let columns = columns(rows).to_vec();
    RecordBatch::try_new(Arc::clone(table.schema()), columns).expect("they fit")
}

fn read(batch: &RecordBatch) -> Vec<Row> {
    let numbers = batch.column(0).as_primitive::<Int64Type>().values();
    let words = batch.column(1).as_string_view();
    let words = words.iter().map(|word| word.unwrap_or_default().to_owned());
    numbers.iter().copied().zip(words).collect()
}

/// A structure of some rows, and a few changes among what they take.
pub fn plausible(random: &mut Random) -> Vec<u8> {
    let mut input = vec![
        random.below(4) as u8,
        random.below(3) as u8,
        random.below(u64::from(STRUCTURES)) as u8,
        random.next_u64() as u8,
        random.next_u64() as u8,
    ];
    plausible_damage(random, 512 << 10, &mut input);
    input
}
