use std::collections::VecDeque;

use mayfly_space::{AccountOptions, Error, NextUse, Page, PageClass};
use mayfly_testkit::Random;

use crate::{KIB, MIB, account, assert_empty, check, page, space};

#[test]
fn pins_stop_at_the_budget() {
    let space = space(8 * MIB);
    let account = account(&space);
    let mut guards = Vec::new();
    let error = loop {
        match account.allocate(PageClass::K64) {
            Ok(guard) => guards.push(guard),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::BudgetExceeded { .. }), "{error}");
    assert_eq!(guards.len(), 128);
    // Unpinning something is enough to go on.
    guards.pop();
    guards.push(account.allocate(PageClass::K64).expect("one was unpinned"));
    drop(guards);
    assert_empty(&space);
}

/// A pin that moves on takes its claim with it, and only then.
#[test]
fn pins_move_with_their_claims() {
    let space = space(8 * MIB);
    let (first, second) = (account(&space), account(&space));
    let pages: Vec<_> = (0..4).map(|n| page(&first, PageClass::K16, n)).collect();
    let (small, other) = (
        page(&first, PageClass::K4, 4),
        page(&second, PageClass::K16, 5),
    );
    // No more than one claim is free.
    let rest = 8 * MIB - space.memory_claimed_bytes() - 16 * KIB;
    let reservation = first.reserve(rest).expect("there is room");
    let mut guard = pages[0].read().expect("one page fits");
    for (to, claimed) in [(&pages[1], 16), (&small, 4), (&other, 16), (&pages[2], 16)] {
        guard = guard.move_to(to).expect("one page fits");
        assert_eq!(space.memory_claimed_bytes(), rest + claimed * KIB);
        assert_eq!(space.counters().pinned_bytes, claimed * KIB);
    }
    // A pin of a page that is pinned already has no claim to take.
    let twice = guard.clone();
    assert!(guard.move_to(&pages[3]).is_err());
    assert_eq!(space.memory_claimed_bytes(), rest + 16 * KIB);
    let same = twice.move_to(&pages[2]).expect("it may be the same page");
    let mut writer = same.move_to_write(&pages[3]).expect("one page fits");
    writer.fill(3);
    drop(writer);
    assert_eq!(space.memory_claimed_bytes(), rest);
    assert_eq!(pages[3].read().expect("one page fits")[9], 3);
    space.verify();
    drop((pages, small, other, reservation));
    assert_empty(&space);
}

#[test]
fn a_minimum_is_certain() {
    let space = space(8 * MIB);
    let (first, second) = (account(&space), account(&space));
    let admission = first.admit(4 * MIB).expect("half of it is free");
    assert!(matches!(
        second.admit(5 * MIB),
        Err(Error::MinimumNotMet { .. })
    ));
    let mut greedy = Vec::new();
    while let Ok(guard) = second.allocate(PageClass::K64) {
        greedy.push(guard);
    }
    assert_eq!(greedy.len(), 64);
    // The other half was kept.
    let guards: Vec<_> = (0..64)
        .map(|_| first.allocate(PageClass::K64).expect("inside the minimum"))
        .collect();
    assert!(first.allocate(PageClass::K4).is_err());
    drop((guards, greedy, admission));
    assert_empty(&space);
}

#[test]
fn a_minimum_covers_descendants() {
    let space = space(8 * MIB);
    let statement = account(&space);
    let admission = statement.admit(2 * MIB).expect("there is room");
    let operator = statement.child("operator", AccountOptions::default());
    let guards: Vec<_> = (0..32).map(|_| operator.allocate(PageClass::K64)).collect();
    assert_eq!(space.memory_claimed_bytes(), 2 * MIB);
    let more = operator.allocate(PageClass::K64).expect("there is room");
    assert_eq!(space.memory_claimed_bytes(), 2 * MIB + 64 * KIB);
    drop((guards, more));
    assert_eq!(space.memory_claimed_bytes(), 2 * MIB);
    drop(admission);
    assert_empty(&space);
}

#[test]
fn reservations_push_pages_out() {
    for memory_bytes in [8 * MIB, 64 * MIB] {
        let space = space(memory_bytes);
        let account = account(&space);
        let count = memory_bytes / (64 * KIB);
        let pages: Vec<_> = (0..count)
            .map(|n| page(&account, PageClass::K64, n))
            .collect();
        let mut reservation = account.reserve(memory_bytes / 2).expect("pages give way");
        assert!(space.memory_used_bytes() <= memory_bytes);
        space.verify();
        assert!(reservation.try_resize(memory_bytes + KIB).is_err());
        assert_eq!(reservation.bytes(), memory_bytes / 2);
        reservation
            .try_resize(memory_bytes)
            .expect("everything gives way");
        assert!(matches!(pages[0].read(), Err(Error::BudgetExceeded { .. })));
        reservation.shrink(memory_bytes / 4);
        for (n, page) in pages.iter().enumerate() {
            check(page, n as u64);
        }
        drop((pages, reservation));
        assert_empty(&space);
    }
}

#[test]
fn small_reservations_add_up() {
    let space = space(MIB);
    let account = account(&space);
    let mut reservation = account.reserve(0).expect("nothing was asked");
    for bytes in 1..5000 {
        reservation.try_resize(bytes).expect("there is room");
    }
    assert_eq!(account.counters().reserved_bytes, 5 * KIB);
    drop(reservation);
    assert_empty(&space);
}

#[test]
fn a_quota_names_its_account() {
    let space = space(8 * MIB);
    let options = AccountOptions {
        disk_quota_bytes: Some(4 * MIB),
        ..Default::default()
    };
    let session = space.root().child("session 7", options);
    let operator = session.child("operator", AccountOptions::default());
    let mut pages = Vec::new();
    let error = loop {
        match operator.allocate(PageClass::K64) {
            Ok(guard) => pages.push(guard.page().clone()),
            Err(error) => break error,
        }
        assert!(pages.len() < 1000, "the quota was not kept");
    };
    match error {
        Error::QuotaReached {
            account,
            limit_bytes,
            used_bytes,
        } => {
            assert_eq!((account.as_str(), limit_bytes), ("session 7", 4 * MIB));
            assert!(used_bytes <= 4 * MIB);
        }
        other => panic!("{other}"),
    }
    assert!(pages.len() >= 128 + 32, "{}", pages.len());
    space.verify();
    // Another account is not touched by it once the room is there.
    drop(pages);
    let other = account(&space);
    let pages: Vec<_> = (0..300).map(|n| page(&other, PageClass::K64, n)).collect();
    for (n, page) in pages.iter().enumerate() {
        check(page, n as u64);
    }
    drop(pages);
    assert_empty(&space);
}

#[test]
fn the_temp_limit_is_a_quota_of_the_server() {
    let options = mayfly_space::SpaceOptions {
        memory_bytes: MIB,
        temp_limit_bytes: Some(2 * MIB),
        ..Default::default()
    };
    let space = crate::open(options);
    let account = account(&space);
    let mut pages = Vec::new();
    let error = loop {
        match account.allocate(PageClass::K16) {
            Ok(guard) => pages.push(guard.page().clone()),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::QuotaReached { .. }), "{error}");
    assert!(space.file_bytes() <= 2 * MIB);
    drop(pages);
    assert_empty(&space);
}

#[test]
fn a_resident_limit_moves_own_pages_to_disk() {
    let space = space(64 * MIB);
    let options = AccountOptions {
        resident_max_bytes: Some(2 * MIB),
        ..Default::default()
    };
    let table = space.root().child("table", options);
    let other = account(&space);
    let others: Vec<_> = (0..50).map(|n| page(&other, PageClass::K64, n)).collect();
    let pages: Vec<_> = (0..400).map(|n| page(&table, PageClass::K64, n)).collect();
    space.settle();
    let counters = table.counters();
    // The last ones were pinned when others were asked to go.
    assert!(counters.resident_bytes <= 2 * MIB + MIB / 2, "{counters:?}");
    assert!(others.iter().all(|page| page.is_resident()));
    for (n, page) in pages.iter().enumerate() {
        check(page, n as u64);
    }
    drop((pages, others));
    assert_empty(&space);
}

/// Threads take and return memory at the limit: none of them is refused what others are about to
/// return, and at no moment is more counted than there is.
#[test]
fn threads_at_the_limit_stay_within_it() {
    const THREADS: u64 = 6;
    for memory_bytes in [MIB, 20 * MIB] {
        let space = space(memory_bytes);
        let body = |thread: u64| {
            let mut random = Random::new(thread);
            let account = account(&space);
            let mut pages: VecDeque<Page> = VecDeque::new();
            let mut reservation = account.reserve(0).expect("nothing was asked");
            for _ in 0..20_000 {
                let bytes = random.below(memory_bytes / THREADS / 2);
                reservation.try_resize(bytes).expect("a share of the half");
                let guard = account.allocate(PageClass::K16).expect("the other half");
                if random.chance(0.5) {
                    guard.page().set_next_use(NextUse::At(thread as u32));
                }
                // Some pages go with their guards.
                if random.chance(0.8) {
                    pages.push_back(guard.page().clone());
                }
                drop(guard);
                if pages.len() as u64 > 2 * memory_bytes / THREADS / (16 * KIB) {
                    pages.pop_front();
                }
                if let Some(page) = pages.get(random.below(pages.len().max(1) as u64) as usize) {
                    let guard = page.read().expect("the other half");
                    let other = pages.front().expect("there is one");
                    drop(guard.move_to(other).expect("the other half"));
                }
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || body(thread));
            }
        });
        let peak = space.counters().peak_bytes;
        assert!(peak <= memory_bytes, "{peak} bytes of {memory_bytes}");
        assert_empty(&space);
    }
}
