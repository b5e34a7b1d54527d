//! Drafts: what a statement makes of a table beside the one that everybody reads, and how that
//! becomes the table.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use arrow_array::{Int64Array, UInt64Array};
use mayfly_space::{Account, Faults, Operation, Space};
use mayfly_table::{Error, Result, Search, Table, publish_all};

use crate::batches::Random;
use crate::kept_numbers::update_all;
use crate::keyed::{
    PRIMARY, Row, batch, change, definition, ignore, read_all, replace, thin_out, update,
};
use crate::spaces::{BUDGETS, assert_empty, open, open_faulty};

/// Changes a draft of a table for a while, and publishes or forgets it.
pub(crate) fn draft(random: &mut Random, table: &Arc<Table>, expect: &mut Vec<Row>) {
    let draft = table.draft().unwrap();
    let mut drafted = expect.clone();
    for _ in 0..1 + random.below(4) {
        let step = [change, update, ignore, replace][random.below(4)];
        step(random, draft.table(), &mut drafted);
        draft.table().verify();
        assert!(read_all(&table.snapshot()) == *expect);
        table.verify();
    }
    // Nobody else changes the table meanwhile.
    let refused = table.append(&batch(table, &[(-1, None, 0)]));
    assert!(matches!(refused, Err(Error::Changed { .. })));
    if random.chance(50) {
        draft.publish().unwrap();
        *expect = drafted;
    }
}

fn shared(account: &Account) -> Arc<Table> {
    Arc::new(Table::new("t", definition(), account).shared())
}

fn many(rows: i64) -> Vec<Row> {
    let row = |id| (id, Some(format!("code {}", id * 7919 % rows)), 1);
    (0..rows).map(row).collect()
}

fn append(table: &Arc<Table>, rows: &[Row]) -> Result<u64> {
    let mut appender = table.begin_append();
    appender.append(&batch(table, rows))?;
    appender.commit()
}

/// Asks another thread to read a table while memory is granted to the one that changes it.
struct Reader {
    table: Mutex<Option<Arc<Table>>>,
    asks: AtomicBool,
    answers: AtomicU64,
}

impl Faults for Reader {
    fn before(&self, operation: Operation) -> std::io::Result<()> {
        if operation != Operation::Grant || !self.asks.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let table = self.table.lock().unwrap().clone().expect("a table");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let one = Search::equal(PRIMARY, vec![Arc::new(Int64Array::from(vec![7]))]);
            let found = table.search(&[one], 1).unwrap().unwrap().1;
            let _ = sender.send((found.len(), table.row_count()));
        });
        // Who changes the table waits here, so only a lock that it holds keeps the reader waiting.
        let answer = receiver.recv_timeout(Duration::from_secs(20));
        let answer = answer.expect("a reader waits for a statement that changes the table");
        assert_eq!(answer, (1, 10_000));
        self.answers.fetch_add(1, Ordering::SeqCst);
        self.asks.store(true, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn readers_go_on_while_many_rows_are_committed() {
    let dir = tempfile::tempdir().unwrap();
    let reader = Arc::new(Reader {
        table: Mutex::default(),
        asks: AtomicBool::new(false),
        answers: AtomicU64::new(0),
    });
    let faults = Arc::clone(&reader) as Arc<dyn Faults>;
    let space = open_faulty(64 << 20, dir.path(), Some(faults));
    let table = shared(space.root());
    append(&table, &many(10_000)).unwrap();
    *reader.table.lock().unwrap() = Some(Arc::clone(&table));
    let during = |change: &dyn Fn()| {
        reader.asks.store(true, Ordering::SeqCst);
        change();
        reader.asks.store(false, Ordering::SeqCst);
        assert!(reader.answers.swap(0, Ordering::SeqCst) > 0);
    };
    during(&|| update_all(&table, |row| (row.0, row.1.clone(), row.2 + 1)).unwrap());
    during(&|| {
        let new: Vec<Row> = (10_000..20_000).map(|id| (id, None, 0)).collect();
        append(&table, &new).unwrap();
    });
    assert_eq!(table.row_count(), 20_000);
    table.verify();
    *reader.table.lock().unwrap() = None;
    drop(table);
    assert_empty(&space);
}

#[test]
fn tables_are_published_together_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(8 << 20, dir.path());
    let tables = [shared(space.root()), shared(space.root())];
    for table in &tables {
        append(table, &many(2000)).unwrap();
    }
    let drafted = || {
        let drafts: Vec<_> = tables.iter().map(|table| table.draft().unwrap()).collect();
        for draft in &drafts {
            thin_out(draft.table(), 2).unwrap();
        }
        drafts
    };
    // One of them does not take part any more.
    let drafts = drafted();
    assert!(tables[1].retire(&tables[1].snapshot()));
    assert!(matches!(publish_all(drafts), Err(Error::Changed { .. })));
    tables[1].return_to_use();
    for table in &tables {
        assert_eq!(table.row_count(), 2000);
        table.verify();
    }
    let readers: Vec<_> = tables.iter().map(|table| table.snapshot()).collect();
    publish_all(drafted()).unwrap();
    for (table, reader) in tables.iter().zip(&readers) {
        assert_eq!((table.row_count(), reader.row_count()), (1000, 2000));
        assert_eq!(read_all(reader).len(), 2000);
        table.verify();
        append(table, &[(5001, None, 0)]).unwrap();
    }
    drop((tables, readers));
    assert_empty(&space);
}

#[test]
fn a_table_has_one_draft() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(8 << 20, dir.path());
    let table = shared(space.root());
    let first = table.draft().unwrap();
    assert!(matches!(table.draft(), Err(Error::Changed { .. })));
    assert!(matches!(table.truncate(), Err(Error::Changed { .. })));
    drop(first);
    let second = table.draft().unwrap();
    second.table().append(&batch(&table, &many(3))).unwrap();
    assert_eq!(table.row_count(), 0);
    second.publish().unwrap();
    assert_eq!(table.row_count(), 3);
    let mut change = table.begin_change();
    let ids = change.snapshot().row_ids(0);
    change.remove(&UInt64Array::from(vec![ids.value(1)]));
    change.commit().unwrap();
    assert_eq!(table.row_count(), 2);
    table.verify();
}

/// Fails the n-th operation of a kind.
struct FailOnce(Operation, u64, AtomicU64);

impl Faults for FailOnce {
    fn before(&self, operation: Operation) -> std::io::Result<()> {
        let is_it = operation == self.0 && self.2.fetch_add(1, Ordering::Relaxed) == self.1;
        match is_it {
            true => Err(std::io::Error::other("injected")),
            false => Ok(()),
        }
    }
}

fn change_much(space: &Space) -> std::result::Result<(), (Arc<Table>, Vec<Row>)> {
    let table = shared(space.root());
    let rows = many(4000);
    let failed = |rows: &[Row]| (Arc::clone(&table), rows.to_vec());
    append(&table, &rows).map_err(|_| failed(&[]))?;
    update_all(&table, |row| (row.0 + 10_000, row.1.clone(), 2)).map_err(|_| failed(&rows))
}

#[test]
fn a_change_that_fails_leaves_the_table_as_it_was() {
    for operation in [Operation::Read, Operation::Write, Operation::Grant] {
        let (mut failures, mut index) = (0, 0);
        loop {
            let dir = tempfile::tempdir().unwrap();
            let faults = Arc::new(FailOnce(operation, index, AtomicU64::new(0)));
            let space = open_faulty(BUDGETS[0], dir.path(), Some(Arc::clone(&faults) as _));
            if let Err((table, rows)) = change_much(&space) {
                failures += 1;
                assert!(read_all(&table.snapshot()) == rows, "{operation:?} {index}");
                table.verify();
                drop(table);
            }
            assert_empty(&space);
            if faults.2.load(Ordering::Relaxed) <= index {
                break;
            }
            // All of the first ones, and some of those that follow.
            index += 1 + index / 8;
        }
        assert!(
            failures > 0 || operation == Operation::Write,
            "{operation:?}"
        );
    }
}
