//! What accounts claim at most, and what they leave free.

use std::sync::atomic::{AtomicBool, Ordering};

use mayfly_space::{Account, AccountOptions, Error, PageClass, Reservation, Space};
use mayfly_testkit::Random;

use crate::{KIB, MIB, account, assert_empty, space};

fn limited(space: &Space, claim_max_bytes: Option<u64>, headroom_bytes: u64) -> Account {
    let options = AccountOptions {
        claim_max_bytes,
        headroom_bytes,
        ..AccountOptions::default()
    };
    account(space).child("limited", options)
}

fn child(account: &Account) -> Account {
    account.child("child", AccountOptions::default())
}

#[test]
fn the_most_that_an_account_claims_holds_for_its_descendants() {
    let space = space(8 * MIB);
    let join = limited(&space, Some(3 * MIB), 0);
    let (left, right) = (child(&join), child(&child(&join)));
    let before = space.memory_claimed_bytes();
    let first = left.reserve(2 * MIB).expect("there is room");
    let error = right.reserve(MIB + KIB).expect_err("the sides share it");
    assert!(matches!(error, Error::BudgetExceeded { .. }), "{error}");
    // What was refused left nothing behind.
    assert_eq!(space.memory_claimed_bytes(), before + 2 * MIB);
    let second = right.reserve(MIB).expect("this much is left");
    assert!(join.allocate(PageClass::K4).is_err());
    // Others have the rest.
    drop(account(&space).reserve(4 * MIB).expect("there is room"));
    drop(first);
    let pages: Vec<_> = (0..32).map(|_| left.allocate(PageClass::K64)).collect();
    assert!(pages.iter().all(Result::is_ok));
    assert!(left.allocate(PageClass::K4).is_err());
    drop((pages, second));
    assert_empty(&space);
}

#[test]
fn what_was_admitted_is_certain_beyond_a_limit() {
    let space = space(8 * MIB);
    let join = limited(&space, Some(MIB), 7 * MIB);
    let side = child(&join);
    let admission = side.admit(4 * MIB).expect("limits do not count");
    let other = account(&space).reserve(4 * MIB).expect("there is room");
    let most = side.reserve(4 * MIB).expect("inside the minimum");
    assert!(side.reserve(KIB).is_err());
    assert!(child(&join).reserve(KIB).is_err());
    assert!(side.admit_within_limits(KIB).is_err());
    drop((most, admission, other));
    drop(side.reserve(MIB).expect("as much as the limit"));
    assert!(side.reserve(MIB + KIB).is_err());
    assert_empty(&space);
}

#[test]
fn headroom_stays_free() {
    let space = space(8 * MIB);
    let join = limited(&space, None, MIB);
    let side = child(&join);
    let before = space.memory_claimed_bytes();
    let most = side.reserve(7 * MIB - before).expect("all but a MiB");
    assert!(side.reserve(KIB).is_err());
    assert!(child(&join).admit_within_limits(KIB).is_err());
    // It claims so much already.
    drop(
        side.admit_within_limits(KIB)
            .expect("nothing more is claimed"),
    );
    assert_eq!(space.memory_claimed_bytes(), 7 * MIB);
    // Others take it, and a join that holds more than it may now goes on with what it has.
    let small = account(&space).reserve(MIB / 2).expect("it is free");
    let mut most = most;
    most.shrink(6 * MIB - before);
    assert!(side.reserve(MIB / 2 + KIB).is_err());
    drop(side.reserve(MIB / 2).expect("half a MiB more may be taken"));
    drop((most, small));
    assert_empty(&space);
}

#[test]
fn more_is_admitted_as_far_as_limits_allow() {
    let space = space(8 * MIB);
    let join = limited(&space, Some(4 * MIB), MIB);
    let side = child(&join);
    let minimum = side.admit(MIB).expect("there is room");
    let table = side.admit_within_limits(3 * MIB).expect("up to the limit");
    assert!(side.admit_within_limits(KIB).is_err());
    let others = account(&space).reserve(4 * MIB).expect("all that is left");
    let pins: Vec<_> = (0..64).map(|_| side.allocate(PageClass::K64)).collect();
    assert!(pins.iter().all(Result::is_ok));
    assert!(side.allocate(PageClass::K4).is_err());
    drop((pins, table));
    // The memory of the table went back, and the minimum is still there.
    drop(account(&space).reserve(3 * MIB).expect("it is free"));
    drop(side.reserve(MIB).expect("inside the minimum"));
    drop((minimum, others));
    assert_empty(&space);
}

/// Threads below one limit, and others that no limit binds: sums never exceed a limit for longer
/// than a call, and come back to zero.
#[test]
fn threads_at_a_limit_leave_nothing_behind() {
    let space = space(8 * MIB);
    let join = limited(&space, Some(3 * MIB), 2 * MIB);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (join, is_over) = (&join, &is_over);
            scope.spawn(move || {
                let side = child(join);
                let mut random = Random::new(seed);
                let mut held: Vec<Reservation> = Vec::new();
                let mut admitted = Vec::new();
                for _ in 0..3_000 {
                    let bytes = (1 + random.below(600)) * KIB;
                    match random.below(4) {
                        0 => admitted.extend(side.admit_within_limits(bytes).ok()),
                        1 => held.clear(),
                        2 => admitted.clear(),
                        _ => held.extend(side.reserve(bytes)),
                    }
                    let sum: u64 = held.iter().map(Reservation::bytes).sum();
                    is_over.fetch_or(sum > 3 * MIB, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            let other = account(&space);
            let mut random = Random::new(9);
            for _ in 0..3_000 {
                // The join never has so much that this could fail.
                let bytes = (1 + random.below(2_000)) * KIB;
                drop(other.reserve(bytes).expect("others find the headroom"));
            }
        });
    });
    assert!(!is_over.load(Ordering::Relaxed));
    drop(join.reserve(3 * MIB).expect("all is free again"));
    space.verify();
    assert_empty(&space);
}

#[test]
fn what_is_shared_is_divided_among_those_that_are_there() {
    let space = space(8 * MIB);
    let first = space.share();
    assert_eq!(first.of(6 * MIB), 6 * MIB);
    let others = [space.share(), space.share()];
    assert_eq!(first.of(6 * MIB), 2 * MIB);
    assert_eq!(others[0].of(6 * MIB), 2 * MIB);
    drop(others);
    assert_eq!(first.of(6 * MIB), 6 * MIB);
    // Another space has nothing to do with it.
    assert_eq!(crate::space(8 * MIB).share().of(6 * MIB), 6 * MIB);
}
