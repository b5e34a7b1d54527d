//! Statements that are stopped on their way into a table: before they begin, and at any grant of
//! memory while their entries are written. The table is as it was then.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mayfly_space::{Account, Faults, Operation};
use mayfly_table::rows::StopFlag;
use mayfly_table::{Error, Result, Table};

use crate::drafts::append;
use crate::kept_numbers::rows_in_disorder;
use crate::keyed::{Row, batch, definition, read, read_all};
use crate::spaces::{assert_empty, open_faulty};

/// So little that rows lie in short pages: there is a look at the flag before each.
const MEMORY: u64 = 8 << 20;
/// Rows whose entries, three each, are written in a fork of the keys.
const MANY: i64 = 15_000;
/// Rows whose entries are written in place.
const FEW: i64 = 2_000;

/// Raises a flag at the n-th grant of memory; nothing fails.
#[derive(Default)]
struct Raise {
    flag: Arc<AtomicBool>,
    /// Grants still to pass; 0 when it is not armed.
    left: AtomicU64,
}

impl Raise {
    fn at(&self, grant: u64) {
        self.flag.store(false, Ordering::SeqCst);
        self.left.store(grant, Ordering::SeqCst);
    }

    /// Takes the flag down; whether it was raised.
    fn was_raised(&self) -> bool {
        self.left.store(0, Ordering::SeqCst);
        self.flag.swap(false, Ordering::SeqCst)
    }

    fn stop(&self) -> StopFlag {
        StopFlag::from(Arc::clone(&self.flag))
    }
}

impl Faults for Raise {
    fn before(&self, operation: Operation) -> io::Result<()> {
        if operation == Operation::Grant {
            let take = |left: u64| left.checked_sub(1);
            let before = self
                .left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
            if before == Ok(1) {
                self.flag.store(true, Ordering::SeqCst);
            }
        }
        Ok(())
    }
}

/// What a statement does to a table, up to its commit.
type Statement = fn(&Arc<Table>, &[Row], &Raise, u64) -> Result<()>;

/// Adds as many rows as there are.
fn add(table: &Arc<Table>, rows: &[Row], raise: &Raise, grant: u64) -> Result<()> {
    let first = rows.len() as i64;
    let new =
        { rows.iter() }.map(|row| (first + row.0, row.1.as_ref().map(|c| format!("n{c}")), 2));
    let new: Vec<Row> = new.collect();
    let mut appender = table.begin_append().stopped_by(raise.stop());
    appender.append(&batch(table, &new))?;
    raise.at(grant);
    appender.commit().map(drop)
}

/// Gives all rows another code and another kind.
fn update(table: &Arc<Table>, _: &[Row], raise: &Raise, grant: u64) -> Result<()> {
    let mut change = table.begin_change().stopped_by(raise.stop());
    for index in 0..change.snapshot().batch_count() {
        let rows = read(&change.snapshot().read(index, None)?);
        let rows = rows.into_iter();
        let rows: Vec<Row> = rows
            .map(|(id, code, kind)| (id, code.map(|code| format!("of all {code}")), kind + 1))
            .collect();
        let ids = change.snapshot().row_ids(index);
        change.replace(&ids, &batch(table, &rows))?;
    }
    raise.at(grant);
    change.commit()
}

/// Takes out the first half of the pages.
fn remove(table: &Arc<Table>, _: &[Row], raise: &Raise, grant: u64) -> Result<()> {
    let mut change = table.begin_change().stopped_by(raise.stop());
    for index in 0..change.snapshot().batch_count().div_ceil(2) {
        let ids = change.snapshot().row_ids(index);
        change.remove(&ids);
    }
    raise.at(grant);
    change.commit()
}

fn table(account: &Account, is_shared: bool, rows: &[Row]) -> Arc<Table> {
    let table = Table::new("t", definition(), account);
    let table = Arc::new(if is_shared { table.shared() } else { table });
    append(&table, rows).unwrap();
    table
}

/// Stops a statement at growing grants, until it is not met; how often it was stopped.
fn stop_at_each(rows: i64, is_shared: bool, statement: Statement) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let raise = Arc::new(Raise::default());
    let space = open_faulty(MEMORY, dir.path(), Some(Arc::clone(&raise) as _));
    let rows = rows_in_disorder(rows);
    let mut stopped = 0;
    for grant in (0..).map(|step: u32| (1_u64 << step) + u64::from(step)) {
        let table = table(space.root(), is_shared, &rows);
        let ended = statement(&table, &rows, &raise, grant);
        let was_raised = raise.was_raised();
        table.verify().unwrap();
        match ended {
            // The flag may be raised when nobody looks any more.
            Ok(()) => assert!(read_all(&table.snapshot()) != rows),
            Err(Error::Stopped) => {
                assert!(was_raised);
                stopped += 1;
                assert!(read_all(&table.snapshot()) == rows);
                // It can be done again.
                statement(&table, &rows, &raise, 0).unwrap();
                table.verify().unwrap();
                assert!(read_all(&table.snapshot()) != rows);
            }
            Err(error) => panic!("{error}"),
        }
        drop(table);
        assert_empty(&space);
        if !was_raised {
            break;
        }
    }
    stopped
}

#[test]
fn rows_that_are_stopped_on_their_way_in_leave_nothing() {
    for is_shared in [false, true] {
        for rows in [FEW, MANY] {
            assert!(stop_at_each(rows, is_shared, add) > 0, "{rows} {is_shared}");
        }
    }
}

#[test]
fn an_update_that_is_stopped_leaves_the_rows_as_they_were() {
    for is_shared in [false, true] {
        for rows in [FEW, MANY] {
            let stopped = stop_at_each(rows, is_shared, update);
            assert!(stopped > 0, "{rows} {is_shared}");
        }
    }
}

/// Taking rows out asks for memory only where pages are copied.
#[test]
fn a_removal_that_is_stopped_leaves_the_rows_as_they_were() {
    for is_shared in [false, true] {
        let stopped = stop_at_each(2 * MANY, is_shared, remove);
        assert!(stopped > 0, "{is_shared}");
    }
}

#[test]
fn nothing_begins_behind_a_raised_flag() {
    let dir = tempfile::tempdir().unwrap();
    let raise = Arc::new(Raise::default());
    let space = open_faulty(MEMORY, dir.path(), Some(Arc::clone(&raise) as _));
    let rows = rows_in_disorder(FEW);
    let table = table(space.root(), false, &rows);
    let raised = || StopFlag::from(Arc::new(AtomicBool::new(true)));
    let mut appender = table.begin_append().stopped_by(raised());
    let refused = appender.append(&batch(&table, &[(-1, None, 0)]));
    assert!(matches!(refused, Err(Error::Stopped)));
    assert_eq!(appender.row_count(), 0);
    let mut change = table.begin_change().stopped_by(raised());
    change.remove(&change.snapshot().row_ids(0));
    assert!(matches!(change.commit(), Err(Error::Stopped)));
    assert!(read_all(&table.snapshot()) == rows);
    table.verify().unwrap();
    drop((appender, table));
    assert_empty(&space);
}
