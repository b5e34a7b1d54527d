//! Memory that moves from those who hold it for speed to those who need it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use mayfly_space::{
    Account, AccountOptions, GivesMemory, PageClass, ReadGuard, Reservation, Space,
};

use crate::{KIB, MIB, account, assert_empty, space};

/// An operator that holds a reservation and gives of it what it is asked for.
struct Operator {
    held: Mutex<Reservation>,
    /// What it claims while it gives.
    claims_of: Option<Account>,
    /// What is given up is free only when it is asked again.
    is_slow: AtomicBool,
    leaving: Mutex<Option<Reservation>>,
}

impl Operator {
    fn new(account: &Account, bytes: u64, claims_of: Option<Account>) -> Arc<Operator> {
        let operator = Arc::new(Operator {
            held: Mutex::new(account.reserve(bytes).expect("there is room")),
            claims_of,
            is_slow: AtomicBool::new(false),
            leaving: Mutex::default(),
        });
        account.may_take_from(Arc::downgrade(&operator) as _);
        operator
    }

    fn held(&self) -> MutexGuard<'_, Reservation> {
        self.held.lock().unwrap()
    }

    fn held_bytes(&self) -> u64 {
        self.held().bytes()
    }
}

impl GivesMemory for Operator {
    fn spare_bytes(&self) -> u64 {
        { self.held.try_lock() }.map_or(0, |held| held.bytes())
    }

    fn give(&self, bytes: u64) -> u64 {
        let Ok(mut held) = self.held.try_lock() else {
            return 0;
        };
        if let Some(account) = &self.claims_of {
            // Twice: the first one must not make the second one ask.
            for _ in 0..2 {
                let claimed = account.reserve(claimed_of_nobody(&account.space()) + MIB);
                assert!(claimed.is_err(), "there is not as much");
            }
        }
        if let Some(leaving) = self.leaving.lock().unwrap().take() {
            return leaving.bytes();
        }
        let left = held.bytes().saturating_sub(bytes);
        let given = held.bytes() - left;
        held.shrink(left);
        if self.is_slow.load(Relaxed) {
            let leaving = held.account().reserve(given).expect("it was its own");
            *self.leaving.lock().unwrap() = Some(leaving);
        }
        given
    }
}

fn child(account: &Account) -> Account {
    account.child("operator", AccountOptions::default())
}

/// One that cannot do with less.
fn needy(account: &Account) -> Account {
    let options = AccountOptions {
        takes_memory: true,
        ..AccountOptions::default()
    };
    account.child("needy", options)
}

fn claimed_of_nobody(space: &Space) -> u64 {
    space.memory_bytes() - space.memory_claimed_bytes()
}

#[test]
fn who_has_little_takes_from_who_has_much() {
    let space = space(8 * MIB);
    let (large, small) = (account(&space), needy(&account(&space)));
    let join = Operator::new(&child(&large), 7 * MIB, None);
    let free = claimed_of_nobody(&space);
    let first = small.reserve(free + MIB).expect("the join gives a MiB up");
    assert_eq!(join.held_bytes(), 6 * MIB);
    // Up to half of what the other has, and no further: the two would take from each other.
    let second = small.reserve(MIB).expect("it has less than half");
    let third = small.reserve(MIB);
    assert!(
        third.is_err(),
        "{} has {} of it",
        join.held_bytes(),
        first.bytes()
    );
    assert_eq!(join.held_bytes(), 5 * MIB);
    // The join itself takes from nobody, and nothing of its own.
    let more = join.held().account().clone().reserve(MIB);
    assert!(more.is_err());
    assert_eq!(join.held_bytes(), 5 * MIB);
    drop((first, second, join, large, small));
    assert_empty(&space);
}

#[test]
fn ones_own_statement_is_asked_first_and_then_who_has_most() {
    let space = space(8 * MIB);
    let (own, other, largest) = (account(&space), account(&space), account(&space));
    let operators = [
        Operator::new(&child(&largest), 3 * MIB, None),
        Operator::new(&child(&other), 2 * MIB, None),
        Operator::new(&child(&own), MIB, None),
    ];
    let rest = child(&account(&space)).reserve(claimed_of_nobody(&space));
    let held = || operators.each_ref().map(|operator| operator.held_bytes());
    let sort = child(&needy(&own));
    let first = sort.reserve(256 * KIB).expect("its own statement gives");
    assert_eq!(held(), [3 * MIB, 2 * MIB, MIB - 256 * KIB]);
    let second = sort.reserve(256 * KIB).expect("it still has more");
    assert_eq!(held(), [3 * MIB, 2 * MIB, 512 * KIB]);
    // Both have as much now, and their statement less than others.
    let third = sort.reserve(256 * KIB).expect("the largest gives");
    assert_eq!(held(), [3 * MIB - 256 * KIB, 2 * MIB, 512 * KIB]);
    drop(third);
    drop((first, second, rest, operators, sort));
    drop((own, other, largest));
    assert_empty(&space);
}

#[test]
fn what_nobody_can_begin_without_is_given_by_equals_too() {
    let space = space(8 * MIB);
    let one = Operator::new(&child(&account(&space)), 4 * MIB, None);
    let options = AccountOptions {
        headroom_bytes: 4 * MIB,
        ..AccountOptions::default()
    };
    let limited = account(&space).child("limited", options);
    let other = account(&space);
    let most = limited
        .admit(claimed_of_nobody(&space))
        .expect("it is free");
    // It can do with less, so it takes nothing.
    assert!(limited.reserve(most.bytes() + KIB).is_err());
    assert_eq!(one.held_bytes(), 4 * MIB);
    let admission = limited.admit(MIB).expect("somebody gives it up");
    assert_eq!(one.held_bytes(), 3 * MIB);
    // Nobody gives what would not do.
    assert!(limited.admit(7 * MIB).is_err());
    assert_eq!(one.held_bytes(), 3 * MIB);
    // An account that can do with less takes nothing either.
    assert!(
        child(&other)
            .reserve(claimed_of_nobody(&space) + KIB)
            .is_err()
    );
    assert_eq!(one.held_bytes(), 3 * MIB);
    drop((most, admission, one, limited));
    assert_empty(&space);
}

#[test]
fn who_claims_while_it_gives_asks_nobody() {
    let space = space(8 * MIB);
    let (first, second) = (account(&space), account(&space));
    let one = Operator::new(&child(&first), 4 * MIB, Some(needy(&second)));
    let other = Operator::new(&child(&second), 3 * MIB, Some(needy(&first)));
    let rest = account(&space).reserve(claimed_of_nobody(&space));
    let small = needy(&account(&space)).reserve(MIB).expect("one gives");
    assert_eq!((one.held_bytes(), other.held_bytes()), (3 * MIB, 3 * MIB));
    drop((small, rest, one, other, first, second));
    assert_empty(&space);
}

#[test]
fn what_is_given_up_is_waited_for() {
    let space = space(8 * MIB);
    let large = account(&space);
    let join = Operator::new(&child(&large), 7 * MIB, None);
    join.is_slow.store(true, Relaxed);
    let free = claimed_of_nobody(&space);
    let small = needy(&account(&space)).reserve(free + MIB);
    drop(small.expect("it is free once nobody looks at it"));
    // Once, and not again while that was on its way.
    assert_eq!(join.held_bytes(), 6 * MIB);
    drop((join, large));
    assert_empty(&space);
}

/// An operator that pins pages here and there.
struct Scattered(Mutex<Vec<ReadGuard>>);

impl GivesMemory for Scattered {
    fn spare_bytes(&self) -> u64 {
        let pinned = self.0.lock().unwrap();
        pinned.iter().map(|page| page.len() as u64).sum()
    }

    fn give(&self, bytes: u64) -> u64 {
        let mut pinned = self.0.lock().unwrap();
        let mut given = 0;
        while given < bytes
            && let Some(page) = pinned.pop()
        {
            given += page.len() as u64;
        }
        given
    }
}

#[test]
fn what_is_pinned_here_and_there_is_given_up_for_a_page_of_another_size() {
    const PIECES: usize = 200;
    let space = space(4 * MIB);
    let account = account(&space);
    let pages: Vec<_> = (0..PIECES)
        .map(|_| {
            let mut page = account.allocate(PageClass::K16).expect("there is room");
            page.fill(7);
            page.page().clone()
        })
        .collect();
    // Two of the sixteen pages of each block stay where they are.
    let pinned = pages.iter().step_by(8).map(|page| page.read().unwrap());
    let operator = Arc::new(Scattered(Mutex::new(pinned.collect())));
    let holder = child(&account);
    holder.may_take_from(Arc::downgrade(&operator) as _);
    let before = operator.spare_bytes();
    let other = self::account(&space);
    // As much as blocks and slack leave.
    let mut rest = other.reserve(0).unwrap();
    while operator.spare_bytes() == before {
        let more = rest.bytes() + 64 * KIB;
        rest.try_resize(more).expect("what is claimed fits");
    }
    let pages_of_others: Vec<_> = (0..16)
        .map(|_| other.allocate(PageClass::K4).expect("a block is freed"))
        .collect();
    drop((pages_of_others, rest, operator, pages));
    drop((holder, account, other));
    assert_empty(&space);
}
