//! The n-th operation of the space fails, for each n until none is left: the error is typed, what
//! was there before is still there, a repeated call succeeds, and nothing is left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mayfly_space::{Account, Faults, NextUse, Operation};
use mayfly_table::{BatchRun, Error, Result, Table};

use crate::batches::Random;
use crate::spaces::{Whole as _, assert_empty, open_faulty};
use crate::tables::{Row, batch, columns, read, rows};

/// Fails one operation of a kind.
struct FailOnce {
    operation: Operation,
    index: u64,
    seen: AtomicU64,
}

impl FailOnce {
    fn has_failed(&self) -> bool {
        self.seen.load(Ordering::Relaxed) > self.index
    }
}

impl Faults for FailOnce {
    fn before(&self, operation: Operation) -> std::io::Result<()> {
        let is_ours = operation == self.operation;
        if is_ours && self.seen.fetch_add(1, Ordering::Relaxed) == self.index {
            return Err(std::io::Error::other("injected"));
        }
        Ok(())
    }
}

/// Tells which operation failed when a test does.
struct Telltale(Operation, u64);

impl Drop for Telltale {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("after {:?} number {}", self.0, self.1);
        }
    }
}

const BUDGET: u64 = 256 << 10;

/// Repeats a call that a fault has hit.
pub(crate) fn again<T>(mut call: impl FnMut() -> Result<T>, failures: &mut u32) -> T {
    loop {
        match call() {
            Ok(value) => return value,
            Err(Error::Space(_)) => *failures += 1,
            Err(other) => panic!("not an error of the space: {other}"),
        }
        assert!(*failures <= 3, "one fault fails few calls");
    }
}

fn run_scenario(account: &Account, failures: &mut u32) {
    let table = Table::new("t", columns(), account);
    let mut random = Random(7);
    let mut run = BatchRun::new(account, Arc::clone(table.schema()), NextUse::At(0));
    let mut expect: Vec<Row> = Vec::new();
    for _ in 0..9 {
        let rows = rows(&mut random, 500, 2000);
        let batch = batch(&table, &rows);
        again(|| run.append(&batch), failures);
        expect.extend(rows);
    }
    again(|| run.finish(), failures);
    let mut found = Vec::new();
    for index in 0..run.batch_count() {
        run.prefetch(index + 1);
        found.extend(read(&again(|| run.read(index, None), failures)));
    }
    assert!(found == expect);
}

fn table_scenario(account: &Account, failures: &mut u32) {
    let table = Arc::new(Table::new("t", columns(), account));
    let mut random = Random(8);
    let mut expect: Vec<Row> = Vec::new();
    for statement in 0..30 {
        let count = [1, 40, 400][statement % 3];
        let rows = rows(&mut random, count, 1000);
        let batch = batch(&table, &rows);
        let call = || {
            let mut appender = table.begin_append();
            appender.append(&batch)?;
            let before = table.row_count();
            let result = appender.commit();
            if result.is_err() {
                assert_eq!(table.row_count(), before);
            }
            result
        };
        again(call, failures);
        table.assert_whole();
        expect.extend(rows);
    }
    let snapshot = table.snapshot();
    let mut found = Vec::new();
    for index in 0..snapshot.batch_count() {
        found.extend(read(&again(|| snapshot.read(index, None), failures)));
    }
    assert!(found == expect);
}

pub(crate) fn fail_each(scenario: fn(&Account, &mut u32)) {
    for operation in [
        Operation::Grant,
        Operation::Read,
        Operation::Write,
        Operation::Extend,
    ] {
        for index in 0.. {
            let _telltale = Telltale(operation, index);
            let fault = Arc::new(FailOnce {
                operation,
                index,
                seen: AtomicU64::new(0),
            });
            let dir = tempfile::tempdir().unwrap();
            let faults: Arc<dyn Faults> = Arc::clone(&fault) as _;
            let space = open_faulty(BUDGET, dir.path(), Some(faults));
            let mut failures = 0;
            scenario(space.root(), &mut failures);
            assert_empty(&space);
            if !fault.has_failed() {
                assert_eq!(failures, 0);
                break;
            }
        }
    }
}

#[test]
fn a_run_survives_each_fault() {
    fail_each(run_scenario);
}

#[test]
fn a_table_survives_each_fault() {
    fail_each(table_scenario);
}
