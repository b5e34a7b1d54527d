use std::io::ErrorKind;
use std::sync::Arc;

use mayfly_space::{
    Account, Error, IoMode, NextUse, Operation, PageClass, Result, Space, SpaceOptions,
};
use mayfly_testkit::{FaultPlan, until_it_passes};

use crate::{MIB, account, assert_empty, contents, open, with_faults};

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
            assert!(mayfly_space::Faults::before(&*plan, operation).is_err());
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
