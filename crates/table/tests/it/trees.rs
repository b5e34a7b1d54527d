//! Trees against a model, at budgets that keep everything and that keep next to nothing.

use std::collections::BTreeMap;
use std::ops::Bound;

use mayfly_table::tree::{
    Builder, KeyRange, MAX_KEY_BYTES, Payload, TreeStatistics, append_row_id, split_row_id,
};
use mayfly_table::{Error, Tree};
use mayfly_testkit::Random;
use proptest::prelude::*;

use crate::spaces::{assert_empty, open};

/// The smallest holds 16 nodes.
const BUDGETS: [u64; 3] = [256 << 10, 1 << 20, 64 << 20];

pub(crate) type Model = BTreeMap<Vec<u8>, u64>;

/// How the keys of a test look.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// A few letters, often none.
    Short,
    /// Numbers, big-endian.
    Number,
    /// A long common beginning.
    Prefixed,
    /// A long common beginning that a few keys do not have, or only a part of it.
    Outlying,
    /// Up to the longest.
    Long,
    /// As long as keys may be, and different from the first byte on.
    Longest,
    /// Bytes of zero and one, where padding and length decide.
    Zeros,
}

pub(crate) const SHAPES: [Shape; 7] = [
    Shape::Short,
    Shape::Number,
    Shape::Prefixed,
    Shape::Outlying,
    Shape::Long,
    Shape::Longest,
    Shape::Zeros,
];

/// The key that belongs to a number; equal numbers give equal keys.
pub(crate) fn key(shape: Shape, number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    match shape {
        Shape::Short => random.string(5).into_bytes(),
        Shape::Number => number.to_be_bytes().to_vec(),
        Shape::Prefixed => {
            let mut key = vec![b'p'; 200 + (number % 3) as usize];
            key.extend_from_slice(&random.next_u64().to_be_bytes()[..6]);
            key
        }
        Shape::Outlying => {
            let mut key = vec![b'p'; 1000];
            key.extend_from_slice(&random.next_u64().to_be_bytes()[..6]);
            if random.chance(0.02) {
                let at = random.below(key.len() as u64) as usize;
                key[at] = random.next_u64() as u8;
            }
            key
        }
        Shape::Long => {
            let len = match random.below(4) {
                0 => MAX_KEY_BYTES,
                1 => random.below(64) as usize,
                _ => random.below(MAX_KEY_BYTES as u64 + 1) as usize,
            };
            let mut key = vec![b'l'; len];
            let at = random.below(len as u64 + 1) as usize;
            let end = (at + 8).min(len);
            random.fill(&mut key[at..end]);
            key
        }
        Shape::Longest => {
            let mut key = random.next_u64().to_be_bytes().to_vec();
            key.resize(MAX_KEY_BYTES - random.below(4) as usize * 9, b'l');
            key
        }
        Shape::Zeros => {
            let len = random.below(14) as usize;
            (0..len).map(|_| u8::from(random.chance(0.2))).collect()
        }
    }
}

fn bound(kind: u64, key: &[u8]) -> Bound<&[u8]> {
    match kind % 3 {
        0 => Bound::Unbounded,
        1 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

/// Checks that the tree holds what the model holds, read in both directions.
pub(crate) fn assert_same(tree: &Tree, model: &Model) {
    assert_eq!(tree.len(), model.len() as u64);
    assert_range(tree, model, KeyRange::ALL);
}

fn assert_range(tree: &Tree, model: &Model, keys: KeyRange<'_>) {
    let is_empty = match (keys.low, keys.high) {
        (Bound::Excluded(low) | Bound::Included(low), Bound::Excluded(high)) => low >= high,
        (Bound::Excluded(low), Bound::Included(high)) => low >= high,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        _ => false,
    };
    let expect: Vec<(Vec<u8>, u64)> = if is_empty {
        Vec::new()
    } else {
        let bounds = (keys.low, keys.high);
        let entries = model.range::<[u8], _>(bounds);
        entries.map(|(key, row)| (key.clone(), *row)).collect()
    };
    let mut range = tree.range(keys);
    for (key, row) in &expect {
        let (found, payload) = range
            .next_entry()
            .unwrap()
            .expect("as many as in the model");
        assert_eq!((found, payload.row_id()), (&key[..], Some(*row)));
    }
    assert!(range.next_entry().unwrap().is_none());
    assert!(range.next_payload().unwrap().is_none());
    drop(range);
    let mut range = tree.range_reversed(keys);
    for (_, row) in expect.iter().rev() {
        let payload = range.next_payload().unwrap().expect("as many");
        assert_eq!(payload.row_id(), Some(*row));
    }
    assert!(range.next_entry().unwrap().is_none());
}

fn assert_seeks(tree: &Tree, model: &Model, shape: Shape, random: &mut Random, universe: u64) {
    let mut cursor = tree.cursor();
    for _ in 0..20 {
        let wanted = key(shape, random.below(universe));
        let here = model.range(wanted.clone()..).next();
        let is_equal = cursor.seek(&wanted).unwrap();
        assert_eq!(is_equal, model.contains_key(&wanted));
        assert_eq!(cursor.is_at_entry(), here.is_some());
        let payload = Payload::new(cursor.payload()).row_id();
        assert_eq!(payload, here.map(|(_, row)| *row));
        assert_eq!(cursor.key(), here.map_or(&[][..], |(key, _)| key));
        if random.chance(0.3) {
            let next = model.range(wanted.clone()..).nth(1);
            assert_eq!(cursor.next_entry().unwrap(), next.is_some());
            assert_eq!(cursor.key(), next.map_or(&[][..], |(key, _)| key));
        }
        if random.chance(0.3) {
            let before = model.range(..wanted.clone()).next_back();
            assert_eq!(cursor.seek_before(&wanted).unwrap(), before.is_some());
            assert_eq!(cursor.key(), before.map_or(&[][..], |(key, _)| key));
            let before = model.range(..wanted.clone()).nth_back(1);
            assert_eq!(cursor.previous_entry().unwrap(), before.is_some());
            assert_eq!(cursor.key(), before.map_or(&[][..], |(key, _)| key));
        }
    }
    assert_eq!(cursor.seek_first().unwrap(), !model.is_empty());
    let first = model.keys().next();
    assert_eq!(cursor.key(), first.map_or(&[][..], |key| key));
    assert_eq!(cursor.seek_last().unwrap(), !model.is_empty());
    let last = model.keys().next_back();
    assert_eq!(cursor.key(), last.map_or(&[][..], |key| key));
}

/// Removes some entries in the order of their keys, sometimes up to one that is not there.
fn remove_sorted(tree: &mut Tree, model: &mut Model, random: &mut Random) {
    let part = [0.01, 0.3, 0.9, 1.0][random.below(4) as usize];
    let mut keys: Vec<Vec<u8>> = model.keys().cloned().collect();
    keys.retain(|_| random.chance(part));
    let mut expect = keys.len();
    if random.chance(0.3) && !keys.is_empty() {
        expect = random.below(keys.len() as u64) as usize + 1;
        let missing = match random.chance(0.5) {
            true => keys[expect - 1].clone(),
            false => [&keys[expect - 1][..], &[0; 9]].concat(),
        };
        if missing.len() > MAX_KEY_BYTES {
            return;
        }
        let is_there = missing != keys[expect - 1] && model.contains_key(&missing);
        match is_there {
            true => expect = keys.len(),
            false => keys.insert(expect, missing),
        }
    }
    let mut done = 0;
    let sorted = keys.iter().map(Vec::as_slice);
    tree.writer().remove_sorted(sorted, &mut done).unwrap();
    assert_eq!(done, expect);
    keys[..done].iter().for_each(|key| {
        model.remove(key);
    });
    tree.verify().unwrap();
    assert_same(tree, model);
}

/// Forks of a tree, and what each holds.
type Forks = Vec<(Tree, Model)>;

/// Forks the tree, or goes on in one of its forks, each of which is as it was; or drops one.
fn fork(tree: &mut Tree, model: &mut Model, forks: &mut Forks, random: &mut Random) {
    for (fork, of_fork) in forks.iter() {
        fork.verify().unwrap();
        assert_same(fork, of_fork);
    }
    match random.below(4) {
        _ if forks.is_empty() => forks.push((tree.fork(), model.clone())),
        0 if forks.len() < 3 => forks.push((tree.fork(), model.clone())),
        1 => drop(forks.swap_remove(random.below(forks.len() as u64) as usize)),
        _ => {
            let other = random.below(forks.len() as u64) as usize;
            std::mem::swap(tree, &mut forks[other].0);
            std::mem::swap(model, &mut forks[other].1);
        }
    }
}

/// Changes tree and model alike, for a while.
fn run_model(memory_bytes: u64, shape: Shape, seed: u64, steps: u64) {
    eprintln!("budget {memory_bytes}, {shape:?}, seed {seed}");
    let dir = tempfile::tempdir().unwrap();
    let space = open(memory_bytes, dir.path());
    let mut tree = Tree::new(space.root(), 8);
    let mut model = Model::new();
    let mut random = Random::new(seed);
    let universe = 1 + random.below(4 * steps);
    // Phases in which the tree grows and shrinks, at random places and in runs.
    let (mut phase, mut next) = (0, 0);
    let mut forks = Forks::new();
    for step in 0..steps {
        if random.chance(40.0 / steps as f64) {
            fork(&mut tree, &mut model, &mut forks, &mut random);
        }
        if random.chance(20.0 / steps as f64) {
            phase = random.below(6);
            next = random.below(universe);
        }
        next = match phase {
            0 | 3 => random.below(universe),
            1 | 4 => (next + 1) % universe,
            _ => next.checked_sub(1).unwrap_or(universe - 1),
        };
        let (wanted, row) = (key(shape, next), random.next_u64());
        let payload = row.to_le_bytes();
        let before = model.get(&wanted).copied();
        let found = match (phase < 3, random.below(10)) {
            (true, 0..8) | (false, 0..2) => {
                model.entry(wanted.clone()).or_insert(row);
                tree.insert(&wanted, &payload)
            }
            (_, 8) => {
                if before.is_some() {
                    model.insert(wanted.clone(), row);
                }
                tree.update(&wanted, &payload)
            }
            _ => {
                model.remove(&wanted);
                tree.remove(&wanted)
            }
        };
        assert_eq!(found.unwrap().and_then(|payload| payload.row_id()), before);
        let now = tree.get(&wanted).unwrap().and_then(|p| p.row_id());
        assert_eq!(now, model.get(&wanted).copied());
        if step % (steps / 16 + 1) == 0 {
            tree.verify().unwrap();
            assert_seeks(&tree, &model, shape, &mut random, universe);
            let (low, high) = (random.below(universe), random.below(universe));
            let (low, high) = (key(shape, low), key(shape, high));
            let range = KeyRange {
                low: bound(random.next_u64(), &low),
                high: bound(random.next_u64(), &high),
            };
            assert_range(&tree, &model, range);
            let estimate = tree.estimate(range).unwrap();
            assert!(estimate <= tree.len());
            if random.chance(0.3) {
                remove_sorted(&mut tree, &mut model, &mut random);
            }
        }
    }
    tree.verify().unwrap();
    assert_same(&tree, &model);
    for (fork, of_fork) in forks {
        fork.verify().unwrap();
        assert_same(&fork, &of_fork);
    }
    // And through writers, to nothing.
    while random.chance(0.5) {
        remove_sorted(&mut tree, &mut model, &mut random);
    }
    let mut writer = tree.writer();
    for (key, row) in model {
        let payload = writer.remove(&key).unwrap();
        assert_eq!(payload.and_then(|payload| payload.row_id()), Some(row));
    }
    assert_eq!(writer.tree().statistics(), TreeStatistics::default());
    tree.verify().unwrap();
    drop(tree);
    assert_empty(&space);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_is_a_sorted_map(
        seed in any::<u64>(),
        shape in 0..SHAPES.len(),
        budget in 0..BUDGETS.len(),
        steps in 1..3000u64,
    ) {
        run_model(BUDGETS[budget], SHAPES[shape], seed, steps);
    }
}

#[test]
fn every_shape_at_every_budget() {
    for memory_bytes in BUDGETS {
        for (shape, seed) in SHAPES.into_iter().zip(1..) {
            run_model(memory_bytes, shape, seed, 2000);
        }
    }
}

/// Loads that are larger than the memory, in orders that have paths of their own.
#[test]
fn sequential_reverse_and_random_loads() {
    let count = 30_000u64;
    type Order = fn(u64, u64) -> u64;
    let orders: [(&str, Order, u64); 3] = [
        ("ascending", |n, _| n, 95),
        ("descending", |n, count| count - 1 - n, 95),
        ("random", |n, count| n * 7_919 % count, 60),
    ];
    for memory_bytes in [256 << 10, 64 << 20] {
        for (name, order, least_percent) in orders {
            let dir = tempfile::tempdir().unwrap();
            let space = open(memory_bytes, dir.path());
            let mut tree = Tree::new(space.root(), 8);
            let mut writer = tree.writer();
            for n in 0..count {
                let number = order(n, count);
                let found = writer.insert(&number.to_be_bytes(), &number.to_le_bytes());
                assert_eq!(found.unwrap(), None, "{name}");
            }
            drop(writer);
            tree.verify().unwrap();
            let statistics = tree.statistics();
            eprintln!("{name}: {statistics:?}");
            // 8 bytes of slot, 8 of payload, and none of the key, whose end is in the slot.
            let full = (count * 16).div_ceil((16 << 10) - 128);
            let percent = full * 100 / statistics.leaf_pages;
            assert!(percent >= least_percent, "{name}: {percent} % full");
            let mut range = tree.range(KeyRange::ALL);
            for n in 0..count {
                assert_eq!(range.next_payload().unwrap(), Some(Payload::from(n)));
            }
            drop(range);
            let (low, high) = (5_000u64.to_be_bytes(), 20_000u64.to_be_bytes());
            let range = KeyRange {
                low: Bound::Included(&low),
                high: Bound::Excluded(&high),
            };
            let estimate = tree.estimate(range).unwrap();
            assert!((12_000..18_000).contains(&estimate), "{name}: {estimate}");
            for n in (0..count).filter(|n| n % 100 != 0) {
                assert!(tree.remove(&n.to_be_bytes()).unwrap().is_some());
            }
            tree.verify().unwrap();
            assert_eq!(tree.len(), count / 100);
            drop(tree);
            assert_empty(&space);
        }
    }
}

#[test]
fn building_gives_what_inserting_gives() {
    for memory_bytes in BUDGETS {
        for shape in SHAPES {
            let dir = tempfile::tempdir().unwrap();
            let space = open(memory_bytes, dir.path());
            for (count, fill) in [(0, 100), (1, 100), (300, 70), (4000, 100)] {
                let model: Model = (0..count).map(|n| (key(shape, n), n)).collect();
                let entries = model.iter().map(|(key, row)| Ok((key, row.to_le_bytes())));
                let mut tree = Tree::build(space.root(), 8, fill, entries).unwrap();
                tree.verify().unwrap();
                assert_same(&tree, &model);
                // It is a tree like any other.
                for n in 0..200 {
                    let key = key(shape, n + count);
                    tree.insert(&key, &n.to_le_bytes()).unwrap();
                }
                tree.verify().unwrap();
                tree.clear();
                tree.verify().unwrap();
                assert!(tree.insert(b"again", &[0; 8]).unwrap().is_none());
                assert_eq!(tree.len(), 1);
            }
            assert_empty(&space);
        }
    }
}

#[test]
fn builders_refuse_what_is_not_sorted() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(1 << 20, dir.path());
    let mut builder = Builder::new(space.root(), 0, 100);
    builder.push(b"b", b"").unwrap();
    let duplicate = builder.push(b"b", b"");
    assert!(matches!(
        duplicate,
        Err(Error::DuplicateKey { entry_index: 1 })
    ));
    let order = builder.push(b"a", b"");
    assert!(matches!(order, Err(Error::KeyOrder { entry_index: 1 })));
    let width = builder.push(b"c", b"1");
    assert!(matches!(width, Err(Error::PayloadWidth { .. })));
    builder.push(b"c", b"").unwrap();
    let tree = builder.finish();
    tree.verify().unwrap();
    assert_eq!(tree.len(), 2);
    drop(tree);
    assert_empty(&space);
}

#[test]
fn small_trees_are_small() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(8 << 20, dir.path());
    let mut tree = Tree::new(space.root(), 8);
    assert_eq!(space.counters().pages_live, 0);
    assert!(tree.get(b"a").unwrap().is_none());
    assert!(tree.remove(b"a").unwrap().is_none());
    for n in 0..100u64 {
        tree.insert(&n.to_be_bytes(), &n.to_le_bytes()).unwrap();
    }
    assert_eq!(space.counters().resident_bytes, 4 << 10);
    let long = vec![b'x'; MAX_KEY_BYTES + 1];
    let too_long = tree.insert(&long, &[0; 8]);
    assert!(matches!(too_long, Err(Error::KeyTooLong { .. })));
    let too_wide = tree.insert(b"x", &[0; 9]);
    assert!(matches!(too_wide, Err(Error::PayloadWidth { .. })));
    assert!(tree.insert(&long[1..], &[0; 8]).unwrap().is_none());
    assert!(tree.insert(b"", &[1; 8]).unwrap().is_none());
    assert_eq!(tree.get(b"").unwrap(), Some(Payload::new(&[1; 8])));
    tree.verify().unwrap();
    drop(tree);
    assert_empty(&space);
}

/// Many short rests behind a long prefix are small, until a key takes the prefix from all of them.
#[test]
fn a_first_leaf_loses_its_prefix() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(8 << 20, dir.path());
    for outlier in [&b"a"[..], b"n", b"nnnn", b"z"] {
        let near = |n: u64| [&[b'n'; 1000][..], &n.to_be_bytes()].concat();
        let mut model: Model = (0..150).map(|n| (near(n), n)).collect();
        let mut tree = Tree::new(space.root(), 8);
        for (key, n) in &model {
            tree.insert(key, &n.to_le_bytes()).unwrap();
        }
        assert_eq!(space.counters().resident_bytes, 4 << 10);
        tree.insert(outlier, &[0; 8]).unwrap();
        model.insert(outlier.to_vec(), 0);
        assert_same(&tree, &model);
        let entries = model.iter().map(|(key, n)| Ok((key, n.to_le_bytes())));
        let built = Tree::build(space.root(), 8, 100, entries).unwrap();
        assert_same(&built, &model);
        drop((tree, built));
        assert_empty(&space);
    }
}

#[test]
fn an_index_with_equal_keys_holds_row_ids_in_its_keys() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(1 << 20, dir.path());
    let mut tree = Tree::new(space.root(), 0);
    for row in 0..20_000u64 {
        let mut key = format!("name {}\0", row % 7).into_bytes();
        append_row_id(&mut key, row);
        assert!(tree.insert(&key, &[]).unwrap().is_none());
    }
    tree.verify().unwrap();
    let (low, high) = (&b"name 3\0"[..], &b"name 3\x01"[..]);
    let range = KeyRange {
        low: Bound::Included(low),
        high: Bound::Excluded(high),
    };
    let mut entries = tree.range(range);
    let mut rows = Vec::new();
    while let Some((key, _)) = entries.next_entry().unwrap() {
        rows.push(split_row_id(key).unwrap().1);
    }
    drop(entries);
    assert!(rows.iter().copied().eq((3..20_000).step_by(7)));
    let estimate = tree.estimate(range).unwrap() as usize;
    assert!((rows.len() / 2..rows.len() * 2).contains(&estimate));
    drop(tree);
    assert_empty(&space);
}
