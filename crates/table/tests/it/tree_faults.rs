//! Trees while operations of the space fail: the error leaves the tree as it was.

use std::sync::Arc;

use mayfly_space::Operation;
use mayfly_table::tree::{Builder, KeyRange};
use mayfly_table::{Error, Result, Tree};
use mayfly_testkit::{FaultPlan, Random};

use crate::spaces::{assert_empty, open, open_faulty};
use crate::trees::{Model, SHAPES, Shape, assert_same, key};

/// The smallest budget there is: 16 nodes.
const BUDGET: u64 = 256 << 10;

/// Passes a result on unless it is a failure of the space; those are counted.
fn survived<T>(result: Result<T>, failures: &mut u64) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Space(_)) => {
            *failures += 1;
            None
        }
        Err(other) => panic!("not an error of the space: {other}"),
    }
}

/// Makes changes to tree and model, in both only when the tree takes them.
fn change(tree: &mut Tree, model: &mut Model, shape: Shape, seed: u64, failures: &mut u64) {
    let mut random = Random::new(seed);
    for step in 0..250u64 {
        // Runs of new keys, so that nodes are cut, then runs of removals, so that they go.
        let number = match step / 50 % 2 {
            0 => 1_000_000 + step * 7,
            _ => 1_000_000 + (step - 50) * 7,
        };
        let wanted = key(
            shape,
            if random.chance(0.3) {
                random.below(2000)
            } else {
                number
            },
        );
        let row = random.next_u64();
        let payload = row.to_le_bytes();
        let before = model.get(&wanted).copied();
        let failed_before = *failures;
        let found = match step / 50 % 2 {
            0 => tree.insert(&wanted, &payload),
            _ if random.chance(0.2) => tree.update(&wanted, &payload),
            _ => tree.remove(&wanted),
        };
        let is_removal = step / 50 % 2 == 1;
        match survived(found, failures) {
            Some(found) => {
                assert_eq!(found.and_then(|payload| payload.row_id()), before);
                let now = again(|| tree.get(&wanted), failures);
                match now.and_then(|payload| payload.row_id()) {
                    Some(now) => model.insert(wanted, now),
                    None => model.remove(&wanted),
                };
                assert!(is_removal || before.is_some() || model.len() as u64 == tree.len());
            }
            None => assert_eq!(*failures, failed_before + 1),
        }
        assert_eq!(tree.len(), model.len() as u64);
    }
}

/// Repeats a call until it passes, as it does unless failures last.
fn again<T>(mut call: impl FnMut() -> Result<T>, failures: &mut u64) -> T {
    for _ in 0..3 {
        if let Some(value) = survived(call(), failures) {
            return value;
        }
    }
    panic!("one fault fails one call");
}

fn run(operation: Operation, shape: Shape, n: u64) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let plan = FaultPlan::new(&[operation]);
    let space = open_faulty(BUDGET, dir.path(), Some(Arc::clone(&plan) as _));
    let count = if matches!(shape, Shape::Long) {
        300
    } else {
        2000
    };
    let mut model: Model = (0..count).map(|n| (key(shape, n), n)).collect();
    let entries = model.iter().map(|(key, row)| Ok((key, row.to_le_bytes())));
    let mut tree = Tree::build(space.root(), 8, 100, entries).unwrap();
    plan.fail_once(n);
    let mut failures = 0;
    change(&mut tree, &mut model, shape, n, &mut failures);
    let fired = plan.fired() > 0;
    plan.disarm();
    tree.verify().unwrap();
    assert_same(&tree, &model);
    drop(tree);
    assert_empty(&space);
    assert!(fired || failures == 0);
    fired
}

#[test]
fn one_failure_leaves_a_tree_as_it_was() {
    for operation in [
        Operation::Grant,
        Operation::Read,
        Operation::Write,
        Operation::Extend,
    ] {
        for shape in [Shape::Prefixed, Shape::Long, Shape::Number] {
            let mut n = 1;
            // Each of the first, then ever fewer: the later ones are like the earlier.
            while run(operation, shape, n) {
                n += 1 + n / 6;
            }
            eprintln!("{operation:?}, {shape:?}: up to {n}");
        }
    }
}

#[test]
fn failures_that_last_leave_a_tree_as_it_was() {
    for operation in [Operation::Grant, Operation::Read, Operation::Write] {
        for shape in SHAPES {
            let dir = tempfile::tempdir().unwrap();
            let plan = FaultPlan::new(&[operation]);
            let space = open_faulty(BUDGET, dir.path(), Some(Arc::clone(&plan) as _));
            let mut tree = Tree::new(space.root(), 8);
            let mut model = Model::new();
            let mut random = Random::new(11);
            for round in 0..30u64 {
                for _ in 0..60 {
                    let number = random.below(5000);
                    let (wanted, row) = (key(shape, number), random.next_u64());
                    let result = if round % 4 == 3 {
                        tree.remove(&wanted).map(|_| {
                            model.remove(&wanted);
                        })
                    } else {
                        tree.insert(&wanted, &row.to_le_bytes()).map(|_| {
                            model.entry(wanted).or_insert(row);
                        })
                    };
                    let _failed = survived(result, &mut 0);
                    assert_eq!(tree.len(), model.len() as u64);
                }
                plan.disarm();
                tree.verify().unwrap();
                assert_same(&tree, &model);
                plan.fail_from(1 + random.below(40));
            }
            drop(tree);
            plan.disarm();
            assert_empty(&space);
        }
    }
}

#[test]
fn cursors_and_builders_go_on_after_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let plan = FaultPlan::new(&[Operation::Grant, Operation::Read]);
    let space = open_faulty(BUDGET, dir.path(), Some(Arc::clone(&plan) as _));
    let model: Model = (0..4000).map(|n| (key(Shape::Prefixed, n), n)).collect();
    for n in (1..400).step_by(7) {
        plan.fail_once(n);
        let mut failures = 0;
        let mut builder = Builder::new(space.root(), 8, 100);
        for (key, row) in &model {
            again(|| builder.push(key, &row.to_le_bytes()), &mut failures);
        }
        let tree = builder.finish();
        plan.fail_once(n);
        let mut cursor = tree.cursor();
        for (key, row) in &model {
            assert!(again(|| cursor.seek(key), &mut failures));
            assert_eq!(cursor.payload(), row.to_le_bytes());
            while survived(cursor.next_entry(), &mut failures).is_none() {
                assert!(!cursor.is_at_entry());
                assert!(again(|| cursor.seek(key), &mut failures));
            }
        }
        drop(cursor);
        plan.disarm();
        tree.verify().unwrap();
        assert_same(&tree, &model);
    }
    assert_empty(&space);
}

/// Everything else of the budget is taken: reading one page at a time is all that is left.
#[test]
fn removal_needs_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(1 << 20, dir.path());
    let model: Model = (0..6_000)
        .map(|n| (key(Shape::Number, n * 37), n))
        .collect();
    let entries = model.iter().map(|(key, row)| Ok((key, row.to_le_bytes())));
    let mut tree = Tree::build(space.root(), 8, 70, entries).unwrap();
    let rest = space.memory_bytes() - space.memory_claimed_bytes() - (16 << 10);
    let taken = space.root().reserve(rest).unwrap();
    let mut keys: Vec<&Vec<u8>> = model.keys().collect();
    let mut random = Random::new(5);
    for n in (1..keys.len()).rev() {
        keys.swap(n, random.below(n as u64 + 1) as usize);
    }
    for (n, key) in keys.into_iter().enumerate() {
        assert!(tree.remove(key).unwrap().is_some());
        if n % 500 == 0 {
            let mut range = tree.range(KeyRange::ALL);
            assert!(
                matches!(range.next_entry(), Err(Error::Space(_))),
                "two pins do not fit"
            );
        }
    }
    assert!(tree.is_empty());
    tree.verify().unwrap();
    drop((tree, taken));
    assert_empty(&space);
}
