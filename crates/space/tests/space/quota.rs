//! What a disk quota does to its account, and that it does nothing to others.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use mayfly_space::{Account, AccountOptions, Error, Page, PageClass, Space};

use crate::{MIB, account, assert_empty, check, page, space};

const PAGE_BYTES: u64 = 64 << 10;

fn limited(space: &Space, quota_bytes: u64) -> Account {
    let options = AccountOptions {
        disk_quota_bytes: Some(quota_bytes),
        ..AccountOptions::default()
    };
    space.root().child("limited", options)
}

/// Allocates pages until the quota refuses one.
fn fill(account: &Account) -> (Vec<Page>, Error) {
    let mut pages = Vec::new();
    loop {
        let n = pages.len() as u64;
        match account.allocate(PageClass::K64) {
            Ok(mut guard) => {
                let len = guard.len();
                guard.copy_from_slice(&crate::contents(n, len));
                pages.push(guard.page().clone());
            }
            Err(error) => return (pages, error),
        }
        assert!(pages.len() < 2000, "the quota was not kept");
    }
}

fn check_all(pages: &[Page]) {
    for (n, page) in pages.iter().enumerate() {
        check(page, n as u64);
    }
}

/// Accounts without a quota go on allocating, and so pushing pages out, while another one fails of
/// its own again and again.
#[test]
fn a_quota_fails_its_own_account_only() {
    let space = space(4 * MIB);
    let limited = limited(&space, MIB);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                let (pages, error) = fill(&limited);
                assert!(matches!(error, Error::QuotaReached { .. }), "{error}");
                drop(pages);
            }
        });
        let others: Vec<_> = (0..2)
            .map(|_| {
                let other = account(&space);
                scope.spawn(move || {
                    for _ in 0..4 {
                        let pages: Vec<_> =
                            (0..150).map(|n| page(&other, PageClass::K64, n)).collect();
                        check_all(&pages);
                    }
                })
            })
            .collect();
        for other in others {
            let result = other.join();
            is_over.store(true, SeqCst);
            result.expect("no page is refused");
        }
    });
    assert_empty(&space);
}

/// An account that has used its quota up and holds the rest of memory with pages that may not be
/// written does not keep others from what was admitted to them.
#[test]
fn pages_beyond_a_quota_make_room_for_others() {
    let space = space(4 * MIB);
    let limited = limited(&space, MIB);
    let (mut pages, error) = fill(&limited);
    assert!(matches!(error, Error::QuotaReached { .. }), "{error}");
    let other = account(&space);
    let admission = other.admit(3 * MIB).expect("nothing is pinned");
    let guards: Vec<_> = (0..3 * MIB / PAGE_BYTES)
        .map(|_| other.allocate(PageClass::K64).expect("it was admitted"))
        .collect();
    // What was written beyond the quota is no more than was in memory, and nothing joins it.
    let used_bytes = limited.counters().disk_bytes_used;
    assert!(used_bytes > MIB, "{used_bytes}");
    assert!(used_bytes <= MIB + 4 * MIB, "{used_bytes}");
    drop((guards, admission));
    assert!(matches!(
        limited.allocate(PageClass::K64),
        Err(Error::QuotaReached {
            limit_bytes: MIB,
            ..
        })
    ));
    check_all(&pages);
    // Once it is within its quota again, it goes on.
    pages.truncate(4);
    assert!(limited.counters().disk_bytes_used <= MIB);
    pages.push(page(&limited, PageClass::K64, 4));
    check_all(&pages);
    drop(pages);
    assert_empty(&space);
}
