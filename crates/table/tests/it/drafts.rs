//! Drafts: what a statement makes of a table beside the one that everybody reads, and how that
//! becomes the table.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, StringViewArray, UInt64Array};
use mayfly_space::{Account, Faults, Operation, Space};
use mayfly_table::{ByKey, Error, Result, Search, Table, publish_all};

use crate::batches::Random;
use crate::kept_numbers::update_all;
use crate::keyed::{
    CODE, PRIMARY, Row, batch, change, definition, ignore, read_all, replace, thin_out, update,
};
use crate::spaces::{BUDGETS, Whole as _, assert_empty, open, open_faulty};

/// Changes a draft of a table for a while, and publishes or forgets it.
pub(crate) fn draft(random: &mut Random, table: &Arc<Table>, expect: &mut Vec<Row>) {
    let draft = table.draft().unwrap();
    let mut drafted = expect.clone();
    for _ in 0..1 + random.below(4) {
        let step = [change, update, ignore, replace][random.below(4)];
        step(random, draft.table(), &mut drafted);
        draft.table().assert_whole();
        assert!(read_all(&table.snapshot()) == *expect);
        table.assert_whole();
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

pub(crate) fn append(table: &Arc<Table>, rows: &[Row]) -> Result<u64> {
    let mut appender = table.begin_append();
    appender.append(&batch(table, rows))?;
    appender.commit()
}

type Action = Arc<dyn Fn() + Send + Sync>;

/// Does something on another thread while an operation of a statement is under way, and waits for
/// it: only a lock that the statement has can keep it from ending.
struct Beside {
    operation: Operation,
    action: Mutex<Option<Action>>,
    times: AtomicU64,
}

impl Beside {
    fn new(operation: Operation) -> Arc<Beside> {
        Arc::new(Beside {
            operation,
            action: Mutex::default(),
            times: AtomicU64::new(0),
        })
    }

    /// Runs a statement beside which the action is done, at least once.
    fn during<T>(&self, action: Action, statement: impl FnOnce() -> T) -> T {
        *self.action.lock().unwrap() = Some(action);
        let ended = statement();
        *self.action.lock().unwrap() = None;
        assert!(
            self.times.swap(0, Ordering::SeqCst) > 0,
            "nothing was done beside"
        );
        ended
    }
}

impl Faults for Beside {
    fn before(&self, operation: Operation) -> std::io::Result<()> {
        if operation != self.operation {
            return Ok(());
        }
        let Some(action) = self.action.lock().unwrap().take() else {
            return Ok(());
        };
        let (sender, receiver) = mpsc::channel();
        let acting = Arc::clone(&action);
        thread::spawn(move || {
            acting();
            // Before the statement goes on: the table that it holds may be the last one.
            drop(acting);
            let _ = sender.send(());
        });
        let ended = receiver.recv_timeout(Duration::from_secs(120));
        ended.expect("who acts beside the statement waits for it");
        self.times.fetch_add(1, Ordering::SeqCst);
        *self.action.lock().unwrap() = Some(action);
        Ok(())
    }
}

fn ids(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

#[test]
fn readers_go_on_while_many_rows_are_committed() {
    let dir = tempfile::tempdir().unwrap();
    let beside = Beside::new(Operation::Grant);
    let space = open_faulty(64 << 20, dir.path(), Some(Arc::clone(&beside) as _));
    let table = shared(space.root());
    append(&table, &many(10_000)).unwrap();
    let reader = Arc::clone(&table);
    let read: Action = Arc::new(move || {
        let one = Search::equal(PRIMARY, vec![ids([7])]);
        let found = reader.search(&[one], 1).unwrap().unwrap().1;
        assert_eq!((found.len(), reader.row_count()), (1, 10_000));
    });
    beside.during(Arc::clone(&read), || {
        update_all(&table, |row| (row.0, row.1.clone(), row.2 + 1)).unwrap();
    });
    beside.during(Arc::clone(&read), || {
        let new: Vec<Row> = (10_000..20_000).map(|id| (id, None, 0)).collect();
        append(&table, &new).unwrap();
    });
    assert_eq!(table.row_count(), 20_000);
    table.assert_whole();
    drop((table, read));
    assert_empty(&space);
}

/// Values that fit where the old ones stand are not written there while somebody reads the page:
/// the rows move, with all of their entries.
#[test]
fn readers_go_on_while_rows_move_that_they_hold() {
    let dir = tempfile::tempdir().unwrap();
    let beside = Beside::new(Operation::Grant);
    let space = open_faulty(64 << 20, dir.path(), Some(Arc::clone(&beside) as _));
    let mut definition = definition();
    definition.keys.truncate(1);
    let table = Arc::new(Table::new("t", definition, space.root()).shared());
    append(&table, &many(10_000)).unwrap();
    let seen = table.snapshot();
    let reader = Arc::clone(&table);
    let read: Action = Arc::new(move || {
        let one = Search::equal(PRIMARY, vec![ids([7])]);
        let found = reader.search(&[one], 1).unwrap().unwrap().1;
        assert_eq!((found.len(), reader.row_count()), (1, 10_000));
    });
    let mut updated = 0;
    beside.during(Arc::clone(&read), || {
        let mut change = table.begin_change();
        for index in 0..change.snapshot().batch_count() {
            // Too few of a page to write it again.
            let ids = change.snapshot().row_ids(index);
            let ids: UInt64Array = ids.values().iter().copied().step_by(9).collect();
            let kinds: ArrayRef = Arc::new(Int32Array::from(vec![2; ids.len()]));
            updated += change.assign(&ids, &[2], &[kinds]).unwrap();
        }
        change.commit().unwrap();
    });
    assert!(updated > 1000);
    table.assert_whole();
    let kinds = read_all(&table.snapshot()).into_iter().map(|row| row.2);
    assert_eq!(kinds.filter(|kind| *kind == 2).count() as u64, updated);
    assert!(read_all(&seen).iter().all(|row| row.2 == 1));
    drop((table, read, seen));
    assert_empty(&space);
}

#[test]
fn rows_are_committed_while_others_look_many_rows_up() {
    const ROWS: i64 = 60_000;
    let dir = tempfile::tempdir().unwrap();
    let beside = Beside::new(Operation::Read);
    // Most pages of the keys are on disk.
    let space = open_faulty(1 << 20, dir.path(), Some(Arc::clone(&beside) as _));
    let table = shared(space.root());
    append(&table, &many(ROWS)).unwrap();
    let (writer, next) = (Arc::clone(&table), AtomicI64::new(ROWS));
    let write: Action = Arc::new(move || {
        let id = next.fetch_add(1, Ordering::SeqCst);
        append(&writer, &[(id, None, 0)]).unwrap();
    });
    let codes = (0..ROWS).step_by(7).map(|number| format!("code {number}"));
    let codes: StringViewArray = codes.map(Some).collect();
    let count = codes.len();
    let codes: ArrayRef = Arc::new(codes);
    // A page that is being read here would never come if the writer needed that very page: what it
    // needs is brought into memory first.
    write();
    let seen = table.snapshot();
    let found = beside.during(Arc::clone(&write), || {
        table.lookup(&seen, CODE, std::slice::from_ref(&codes), usize::MAX)
    });
    // Those of the snapshot, since the table was that when it was asked.
    let ByKey::Found(found) = found.unwrap() else {
        panic!("the table had not changed");
    };
    assert_eq!(found.numbers.len(), count);
    assert_eq!(seen.locate(found.numbers).unwrap().len(), count);
    write();
    let now = table.snapshot();
    let found = beside.during(Arc::clone(&write), || {
        table.lookup_any(&now, CODE, std::slice::from_ref(&codes), usize::MAX)
    });
    let ByKey::Found(numbers) = found.unwrap() else {
        panic!("the table had not changed");
    };
    assert_eq!(now.locate(numbers).unwrap().len(), count);
    assert!(table.row_count() > now.row_count());
    table.assert_whole();
    drop((table, write, seen, now));
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
        table.assert_whole();
    }
    let readers: Vec<_> = tables.iter().map(|table| table.snapshot()).collect();
    publish_all(drafted()).unwrap();
    for (table, reader) in tables.iter().zip(&readers) {
        assert_eq!((table.row_count(), reader.row_count()), (1000, 2000));
        assert_eq!(read_all(reader).len(), 2000);
        table.assert_whole();
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
    table.assert_whole();
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
                table.assert_whole();
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
