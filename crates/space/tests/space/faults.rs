use std::io::ErrorKind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};

use mayfly_space::{
    Account, Error, Faults, IoMode, NextUse, Operation, PageClass, Result, Space, SpaceOptions,
};
use mayfly_testkit::{FaultPlan, until_it_passes};
use rustix::io::Errno;

use crate::{MIB, account, assert_empty, check, contents, open, page, with_faults};

/// Work that allocates, spills, reserves, prefetches, reads back and changes pages.
fn work(account: &Account) -> Result<()> {
    let mut pages = Vec::new();
    for n in 0..100u32 {
        let mut guard = account.allocate(PageClass::K16)?;
        let len = guard.len();
        guard.copy_from_slice(&contents(u64::from(n), len));
        guard.page().set_next_use(NextUse::At(n));
        pages.push(guard.page().clone());
    }
    let reservation = account.reserve(MIB / 2)?;
    for page in &pages[..8] {
        page.prefetch();
    }
    for (n, page) in pages.iter().enumerate() {
        let guard = page.read()?;
        assert!(guard[..] == contents(n as u64, guard.len())[..], "page {n}");
    }
    drop(reservation);
    for page in &pages[20..40] {
        page.write()?[0] ^= 1;
    }
    for (n, page) in pages.iter().enumerate() {
        let guard = page.read()?;
        let flipped = u8::from((20..40).contains(&n));
        assert_eq!(guard[0], contents(n as u64, 1)[0] ^ flipped);
    }
    Ok(())
}

fn loop_over(operation: Operation, lasting: bool) -> u64 {
    let plan = FaultPlan::new(&[operation]);
    let mut errors = 0;
    let runs = until_it_passes(&plan, 500, |n| {
        let space = open(with_faults(MIB, Arc::clone(&plan) as _));
        if lasting {
            plan.fail_from(n)
        } else {
            plan.fail_once(n)
        }
        if let Err(error) = work(&account(&space)) {
            errors += 1;
            let expected = match operation {
                Operation::Grant => matches!(error, Error::BudgetExceeded { .. }),
                _ => matches!(error, Error::Io { .. }),
            };
            assert!(expected, "fault {n}: {error}");
        }
        assert_empty(&space);
        // The space works as before.
        let fired = plan.fired();
        plan.disarm();
        work(&account(&space)).expect("nothing fails any more");
        assert_empty(&space);
        if fired > 0 {
            plan.fail_from(1);
            assert!(plan.before(operation).is_err());
            plan.disarm();
        } else {
            plan.fail_once(u64::MAX >> 2);
            plan.disarm();
        }
    });
    assert!(runs > 0, "the plan never fired");
    errors
}

#[test]
fn any_grant_may_fail() {
    assert!(loop_over(Operation::Grant, false) > 100);
}

#[test]
fn any_read_may_fail() {
    assert!(loop_over(Operation::Read, false) > 5);
    assert!(loop_over(Operation::Read, true) > 5);
}

#[test]
fn any_write_may_fail() {
    // A single failure is made up for at another place of the file.
    assert_eq!(loop_over(Operation::Write, false), 0);
    assert!(loop_over(Operation::Write, true) > 0);
}

#[test]
fn any_extension_may_fail() {
    assert!(loop_over(Operation::Extend, true) > 0);
}

#[test]
fn a_full_disk_is_met_before_data_is_lost() {
    let plan = FaultPlan::failing_with(&[Operation::Extend], ErrorKind::StorageFull);
    let space = open(with_faults(MIB, Arc::clone(&plan) as _));
    let account = account(&space);
    plan.fail_from(1);
    let mut pages = Vec::new();
    let error = loop {
        match account.allocate(PageClass::K16) {
            Ok(mut guard) => {
                let len = guard.len();
                guard.copy_from_slice(&contents(pages.len() as u64, len));
                pages.push(guard.page().clone());
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    for (n, page) in pages.iter().enumerate() {
        crate::check(page, n as u64);
    }
    space.verify();
    // Space on the disk is enough to go on.
    plan.disarm();
    for _ in 0..200 {
        pages.push(crate::page(&account, PageClass::K16, pages.len() as u64));
    }
    for (n, page) in pages.iter().enumerate() {
        crate::check(page, n as u64);
    }
    drop(pages);
    assert_empty(&space);
}

/// Without io_uring, helper threads move pages. With none to be had, the writer and the reader move
/// them alone.
#[test]
fn pages_come_and_go_without_helper_threads() {
    // The writer has four helpers, and the reader as many.
    for started in 1..=4 {
        for io in [IoMode::Direct, IoMode::Mmap] {
            let plan = FaultPlan::failing_with(&[Operation::Thread], ErrorKind::WouldBlock);
            let space = open(SpaceOptions {
                io,
                io_uring: false,
                ..with_faults(MIB, Arc::clone(&plan) as _)
            });
            plan.fail_from(started + 1);
            work(&account(&space)).expect("the writer is enough");
            assert!(plan.fired() > 0);
            assert_empty(&space);
        }
    }
}

/// A space that cannot start its writer says so, and starts it as soon as it can.
#[test]
fn the_writer_starts_later_if_it_cannot_now() {
    let plan = FaultPlan::failing_with(&[Operation::Thread], ErrorKind::WouldBlock);
    let space = open(with_faults(MIB, Arc::clone(&plan) as _));
    plan.fail_from(1);
    let error = work(&account(&space)).expect_err("there are more pages than memory");
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert_empty(&space);
    plan.disarm();
    work(&account(&space)).expect("nothing fails any more");
    assert_empty(&space);
}

#[test]
fn a_failing_space_can_be_closed() {
    let plan = FaultPlan::new(&[Operation::Write]);
    let space: Space = open(with_faults(MIB, Arc::clone(&plan) as _));
    plan.fail_from(1);
    let failed = work(&account(&space));
    assert!(failed.is_err());
    drop(space);
}

/// A disk that holds the next write until it is told to, and then fails it.
#[derive(Default)]
struct HeldDisk {
    state: Mutex<Held>,
    changed: Condvar,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Held {
    /// The next write is held.
    #[default]
    Next,
    /// A write waits.
    Waits,
    /// It fails, at another place of the file too.
    Fails,
    /// Writes pass.
    Passes,
}

impl HeldDisk {
    fn until(&self, wanted: Held) -> MutexGuard<'_, Held> {
        let state = self.state.lock().unwrap();
        let state = self.changed.wait_while(state, |state| *state != wanted);
        state.unwrap()
    }
}

impl Faults for HeldDisk {
    fn before(&self, operation: Operation) -> std::io::Result<()> {
        if operation != Operation::Write {
            return Ok(());
        }
        let mut state = self.state.lock().unwrap();
        match *state {
            Held::Passes => return Ok(()),
            Held::Fails => *state = Held::Passes,
            Held::Next | Held::Waits => {
                *state = Held::Waits;
                self.changed.notify_all();
                drop(state);
                drop(self.until(Held::Fails));
            }
        }
        Err(std::io::Error::other("the disk was away"))
    }
}

/// The number of this thread.
fn own_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Whether a thread of this process sleeps. One that has ended does not: it may end while it is
/// looked at.
fn sleeps(thread_id: i32) -> bool {
    match std::fs::read_to_string(format!("/proc/self/task/{thread_id}/stat")) {
        Ok(stat) => {
            let (_, state) = stat.rsplit_once(") ").unwrap();
            state.starts_with('S')
        }
        // A file that was open when the thread ended has no such process.
        Err(error) => {
            let is_gone = error.kind() == ErrorKind::NotFound
                || error.raw_os_error() == Some(Errno::SRCH.raw_os_error());
            assert!(is_gone, "{error}");
            false
        }
    }
}

/// A write that was on its way fails while a thread waits that came later. The disk is well again:
/// the thread gets its room.
#[test]
fn a_failure_from_before_fails_nobody_who_came_later() {
    let disk = Arc::new(HeldDisk::default());
    let space = open(with_faults(32 * MIB, Arc::clone(&disk) as _));
    let account = account(&space);
    let mut pages: Vec<_> = (0..112)
        .map(|n| page(&account, PageClass::K256, n))
        .collect();
    drop(disk.until(Held::Waits));
    let (sender, thread_id) = mpsc::channel();
    std::thread::scope(|scope| {
        let late = scope.spawn(|| {
            sender.send(own_id()).unwrap();
            for n in 112..160 {
                pages.push(page(&account, PageClass::K256, n));
            }
        });
        let thread_id = thread_id.recv().unwrap();
        while !late.is_finished() && !sleeps(thread_id) {
            std::thread::yield_now();
        }
        *disk.state.lock().unwrap() = Held::Fails;
        disk.changed.notify_all();
        late.join().expect("it gets its room");
    });
    for (n, page) in pages.iter().enumerate() {
        check(page, n as u64);
    }
    assert!(space.root().counters().write_failures > 0);
    drop(pages);
    assert_empty(&space);
}

/// A disk whose writes all fail on their way, each when the test says so.
#[derive(Default)]
struct DyingDisk {
    /// Writes that came, and those of them that may go on.
    writes: Mutex<(u64, u64)>,
    changed: Condvar,
    /// The thread of the writer, which tries each once more, at another place of the file.
    writer: Mutex<Option<i32>>,
}

impl DyingDisk {
    fn allow(&self, writes: u64) {
        let mut state = self.writes.lock().unwrap();
        state.1 = state.1.saturating_add(writes);
        self.changed.notify_all();
    }

    /// Whether writes are held, and the writer has nothing more to do.
    fn is_waited_for(&self) -> bool {
        let (came, allowed) = *self.writes.lock().unwrap();
        came > allowed && self.writer.lock().unwrap().is_none_or(sleeps)
    }
}

impl Faults for DyingDisk {
    fn before(&self, _: Operation) -> std::io::Result<()> {
        Ok(())
    }

    fn bytes_moved_max(&self, operation: Operation) -> usize {
        if operation != Operation::Write {
            return usize::MAX;
        }
        let is_helper = std::thread::current().name() == Some("mayfly-io");
        if !is_helper {
            *self.writer.lock().unwrap() = Some(own_id());
        } else {
            let mut state = self.writes.lock().unwrap();
            let own = state.0;
            state.0 += 1;
            let allowed = self.changed.wait_while(state, |state| state.1 <= own);
            drop(allowed);
        }
        let (_, allowed) = *self.writes.lock().unwrap();
        if allowed == u64::MAX { usize::MAX } else { 0 }
    }
}

/// At any moment some writes are on their way that began before somebody waited for the last time.
/// When a disk fails them all, he is told nevertheless.
#[test]
fn a_disk_that_fails_every_write_is_not_waited_for() {
    let disk = Arc::new(DyingDisk::default());
    let space = open(SpaceOptions {
        io_uring: false,
        ..with_faults(16 * MIB, Arc::clone(&disk) as _)
    });
    let account = account(&space);
    let mut pages: Vec<_> = (0..224)
        .map(|n| page(&account, PageClass::K64, n))
        .collect();
    while !disk.is_waited_for() {
        std::thread::yield_now();
    }
    let (sender, thread_id) = mpsc::channel();
    let error = std::thread::scope(|scope| {
        let filling = scope.spawn(|| {
            sender.send(own_id()).unwrap();
            (0..256).find_map(|_| match account.allocate(PageClass::K64) {
                Ok(guard) => {
                    pages.push(guard.page().clone());
                    None
                }
                Err(error) => Some(error),
            })
        });
        let thread_id = thread_id.recv().unwrap();
        let is_waiting = || disk.is_waited_for() && sleeps(thread_id);
        // Many more than are ever on their way at once, and each while he waits for it.
        for failures in 0..32 {
            let has_failed = || space.counters().write_failures >= failures;
            while !filling.is_finished() && (!has_failed() || !is_waiting()) {
                std::thread::yield_now();
            }
            disk.allow(1);
        }
        disk.allow(u64::MAX);
        filling.join().unwrap()
    });
    let error = error.expect("there are more pages than memory");
    assert!(matches!(error, Error::Io { .. }), "{error}");
    drop(pages);
    assert_empty(&space);
}
