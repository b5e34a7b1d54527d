//! Keys that somebody chose because they share a hash.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BinaryViewArray, Int64Array};
use arrow_schema::DataType;
use mayfly_space::{PageClass, Space};
use mayfly_testkit::space_of;

use super::super::directory::PROBE_SLOTS_MAX;
use super::super::encode::RowBlock;
use super::super::hash::{KeyHasher, Level};
use super::super::layout::{KeyColumn, RowLayout};
use super::super::row_table::{RowTable, Scratch};
use super::super::segment::Shape;
use super::super::state::{StateInput, StateKind};
use super::super::{
    Error, GroupInput, GroupNumbering, GroupOptions, GroupReader, GroupSet, StopFlag,
};
use super::shape;

/// The published second secret of rapidhash: a word that is equal to it makes a factor of the last
/// product zero, and with it the hash the same whatever the other word is.
const PUBLISHED_SECRET: u64 = 0x8bb8_4b93_962e_acc9;

/// Keys as many as do not fit the least budget.
const KEYS: i64 = 60_000;

fn layout(types: &[DataType]) -> RowLayout {
    let column = |data_type: &DataType| KeyColumn {
        data_type: data_type.clone(),
        nullable: false,
    };
    let key: Vec<KeyColumn> = types.iter().map(column).collect();
    RowLayout::new(&key, &[], &[(StateKind::Count, false)]).expect("rows hold these types")
}

/// Pairs of BIGINTs that share a hash with this secret.
fn pairs(secret: u64, keys: i64) -> Vec<ArrayRef> {
    let first: ArrayRef = Arc::new(Int64Array::from_iter_values(
        (0..keys).map(|_| secret as i64),
    ));
    let second: ArrayRef = Arc::new(Int64Array::from_iter_values(0..keys));
    vec![first, second]
}

/// Strings of 24 bytes that do so. In front of them the key has their length.
fn strings(secret: u64, keys: i64) -> Vec<ArrayRef> {
    let key_len = 4 + 24u64;
    let text = |number: i64| {
        let mut text = [0; 24];
        text[8..16].copy_from_slice(&(secret ^ key_len).to_le_bytes());
        text[16..].copy_from_slice(&number.to_le_bytes());
        text
    };
    let texts = (0..keys).map(text);
    vec![Arc::new(BinaryViewArray::from_iter_values(texts))]
}

/// Groups the keys, each twice, and tells the last words of those that came out.
fn group(set: &Arc<GroupSet>, key: &[ArrayRef]) -> HashSet<i64> {
    let rows = key[0].len();
    let mut worker = set.worker(0);
    for start in (0..rows).step_by(8192).chain((0..rows).step_by(8192)) {
        let len = 8192.min(rows - start);
        let key: Vec<ArrayRef> = key.iter().map(|array| array.slice(start, len)).collect();
        let input = GroupInput {
            rows: len,
            key: &key,
            payload: &[],
            states: &[StateInput::default()],
        };
        worker.push(&input).expect("rows go in");
    }
    worker.finish().expect("the worker ends");
    let mut reader = GroupReader::new(Arc::clone(set));
    let mut found = HashSet::new();
    while let Some(batch) = reader.next_batch(8192).expect("groups are read") {
        let counts = batch.states[0][0].as_primitive::<Int64Type>();
        assert!(counts.values().iter().all(|count| *count == 2));
        let last = batch.key.last().expect("there is a key");
        for row in 0..batch.rows {
            let number = match last.as_primitive_opt::<Int64Type>() {
                Some(numbers) => numbers.value(row),
                None => {
                    let text = last.as_binary_view().value(row);
                    i64::from_le_bytes(text[16..].try_into().expect("8 bytes"))
                }
            };
            assert!(found.insert(number), "a group came twice");
        }
    }
    found
}

/// Keys of either kind, and the types of their columns.
fn kinds(secret: u64, keys: i64) -> [(Vec<DataType>, Vec<ArrayRef>); 2] {
    [
        (vec![DataType::Int64, DataType::Int64], pairs(secret, keys)),
        (vec![DataType::BinaryView], strings(secret, keys)),
    ]
}

/// A shape whose first hash has secrets that are known.
fn known_shape(layout: RowLayout, space: &Space) -> Arc<Shape> {
    let shape = Arc::into_inner(shape(layout, space.root(), PageClass::K4));
    Arc::new(Shape {
        hasher: KeyHasher::with_seed(SEED),
        ..shape.expect("nobody else has it")
    })
}

const SEED: u64 = 7;

fn known_secret() -> u64 {
    KeyHasher::with_seed(SEED).weak_word()
}

fn block(shape: &Shape, key: &[ArrayRef]) -> RowBlock {
    let mut block = RowBlock::default();
    let input = GroupInput {
        rows: key[0].len(),
        key,
        payload: &[],
        states: &[StateInput::default()],
    };
    block.encode(&shape.layout, &shape.hasher, &input);
    block
}

#[test]
fn keys_chosen_for_published_secrets_do_not_collide() {
    for (types, key) in kinds(PUBLISHED_SECRET, KEYS) {
        let space = space_of(1 << 20);
        let shape = shape(layout(&types), space.root(), PageClass::K4);
        let hashes: HashSet<u64> = block(&shape, &key).hashes.into_iter().collect();
        assert_eq!(hashes.len(), key[0].len(), "hashes are shared");
    }
}

#[test]
fn keys_chosen_for_published_secrets_are_grouped_beyond_memory() {
    for (types, key) in kinds(PUBLISHED_SECRET, KEYS) {
        let space = space_of(1 << 20);
        let options = GroupOptions::for_budget(1 << 20, PageClass::K4, 1);
        let set = GroupSet::new(layout(&types), space.root(), options).expect("there is memory");
        assert_eq!(group(&set, &key).len(), key[0].len());
    }
}

#[test]
fn keys_that_share_a_hash_are_grouped_beyond_memory() {
    for (types, key) in kinds(known_secret(), KEYS) {
        for front_groups in [0, 4096] {
            let space = space_of(1 << 20);
            let mut options = GroupOptions::for_budget(1 << 20, PageClass::K4, 1);
            options.front_groups = front_groups;
            let shape = known_shape(layout(&types), &space);
            let set = GroupSet::of_shape(shape, options).expect("there is memory");
            assert_eq!(group(&set, &key).len(), key[0].len());
        }
    }
}

#[test]
fn probes_are_bounded_where_keys_share_a_hash() {
    for (types, key) in kinds(known_secret(), 5_000) {
        let space = space_of(64 << 20);
        let shape = known_shape(layout(&types), &space);
        let block = block(&shape, &key);
        let rows = block.view();
        let hashes: HashSet<u64> = rows.hashes.iter().copied().collect();
        assert_eq!(hashes.len(), 1, "the keys were chosen for another hash");
        let selection: Vec<u32> = (0..rows.offsets.len() as u32).collect();
        let scratch = &mut Scratch::default();

        // Row by row, and as pages that are there already.
        let table = RowTable::new(&shape, Level::default(), 0, usize::MAX);
        let mut table = table.expect("no I/O").expect("there is memory");
        for _ in 0..2 {
            let taken = table.upsert(rows, &selection, scratch).expect("no I/O");
            assert_eq!(taken, selection.len());
        }
        assert_eq!(table.groups(), selection.len());
        assert!(table.longest_probe() <= PROBE_SLOTS_MAX);
        let pages: Vec<_> = table.withdraw(0).collect();
        let adopted = RowTable::adopt(&shape, Level::default(), pages, 0, scratch);
        let adopted = adopted.expect("no I/O").ok().expect("there is memory");
        assert_eq!(adopted.groups(), selection.len());
        assert!(adopted.longest_probe() <= PROBE_SLOTS_MAX);
    }
}

#[test]
fn kept_rows_that_share_a_hash_are_split() {
    let space = space_of(1 << 20);
    let mut options = GroupOptions::for_budget(1 << 20, PageClass::K4, 1);
    options.keep_rows = true;
    let types = [DataType::Int64, DataType::Int64];
    let layout = RowLayout::new(&types.clone().map(KeyColumn::nullable), &[], &[]);
    let shape = known_shape(layout.expect("rows hold numbers"), &space);
    let set = GroupSet::of_shape(shape, options).expect("there is memory");
    let mut worker = set.worker(0);
    // In front of the numbers of a key is a byte of NULL bits, so it has one more than 16.
    let secret = known_secret() ^ 17;
    for start in (0..KEYS).step_by(6_000) {
        let key: Vec<ArrayRef> = pairs(secret, KEYS)
            .iter()
            .map(|array| array.slice(start as usize, 6_000))
            .collect();
        let input = GroupInput {
            rows: 6_000,
            key: &key,
            payload: &[],
            states: &[],
        };
        worker.push(&input).expect("rows go in");
    }
    worker.finish().expect("the worker ends");
    let mut reader = GroupReader::new(Arc::clone(&set));
    let (mut groups, mut splits) = (0, 0);
    while let Some(part) = reader.next_kept_rows().expect("parts are read") {
        let columns = types.clone().map(KeyColumn::nullable);
        let account = space.root();
        let numbering = GroupNumbering::new(&columns, account, PageClass::K4, part.level());
        let mut numbering = numbering.expect("no I/O").expect("there is memory");
        let mut is_short = false;
        for page in 0..part.page_count() {
            let batch = part.read_page(page, &mut numbering).expect("no I/O");
            if batch.is_none() {
                is_short = true;
                break;
            }
        }
        if is_short {
            drop(numbering);
            splits += 1;
            reader.give_back(part.split().expect("a hash splits it"));
        } else {
            groups += numbering.groups();
        }
    }
    assert_eq!(groups, KEYS as usize);
    // One for the bits that all keys share, and those that the second hash makes.
    assert!((1..20).contains(&splits), "split {splits} times");
}

#[test]
fn a_step_ends_early_when_it_is_stopped() {
    let flag = Arc::new(AtomicBool::new(false));
    let space = space_of(8 << 20);
    let options = GroupOptions::for_budget(8 << 20, PageClass::K16, 1);
    let layout = layout(&[DataType::Int64, DataType::Int64]);
    let stop = StopFlag::from(Arc::clone(&flag));
    let set = GroupSet::stoppable(layout, space.root(), options, stop).expect("there is memory");
    let key = pairs(1, 8_192);
    let input = GroupInput {
        rows: 8_192,
        key: &key,
        payload: &[],
        states: &[StateInput::default()],
    };
    let mut worker = set.worker(0);
    worker.push(&input).expect("rows go in");
    flag.store(true, Ordering::Relaxed);
    assert!(matches!(worker.push(&input), Err(Error::Stopped)));
    flag.store(false, Ordering::Relaxed);
    worker.push(&input).expect("rows go in");
    worker.finish().expect("the worker ends");
    flag.store(true, Ordering::Relaxed);
    let mut reader = GroupReader::new(set);
    assert!(matches!(reader.next_batch(8_192), Err(Error::Stopped)));
}
