//! The temp space from outside: one binary, one subject per file.

mod basics;
mod budget;
mod faults;
mod faulty_disk;
mod fuzz;
mod givers;
mod io;
mod limits;
mod model;
mod quota;
mod reclaim;
mod stress;

use std::sync::Arc;

use mayfly_space::{Account, AccountOptions, Faults, Page, PageClass, Space, SpaceOptions};
use mayfly_testkit::Random;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A space with a budget and otherwise default options.
fn space(memory_bytes: u64) -> Space {
    open(SpaceOptions {
        memory_bytes,
        ..SpaceOptions::default()
    })
}

fn open(options: SpaceOptions) -> Space {
    Space::open(options).expect("the options are valid")
}

fn with_faults(memory_bytes: u64, faults: Arc<dyn Faults>) -> SpaceOptions {
    SpaceOptions {
        memory_bytes,
        faults: Some(faults),
        ..SpaceOptions::default()
    }
}

fn account(space: &Space) -> Account {
    space.root().child("test", AccountOptions::default())
}

/// What page `n` of a test holds.
fn contents(n: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::new(n).fill(&mut bytes);
    bytes
}

/// Allocates a page with the contents of page `n`.
fn page(account: &Account, class: PageClass, n: u64) -> Page {
    let mut guard = account.allocate(class).expect("there is room");
    let len = guard.len();
    guard.copy_from_slice(&contents(n, len));
    guard.page().clone()
}

fn check(page: &Page, n: u64) {
    let guard = page.read().expect("the page can be read");
    assert!(
        guard[..] == contents(n, guard.len())[..],
        "page {n} has other contents"
    );
}

/// Checks that a space holds nothing.
fn assert_empty(space: &Space) {
    space.verify();
    let counters = space.counters();
    assert_eq!(counters.pages_live, 0, "pages left");
    assert_eq!(counters.resident_bytes, 0, "frames left");
    assert_eq!(counters.away_bytes, 0, "pages left on disk");
    assert_eq!(counters.pinned_bytes, 0, "pins left");
    assert_eq!(counters.reserved_bytes, 0, "reservations left");
    assert_eq!(counters.disk_bytes_used, 0, "slots left");
    assert_eq!(space.memory_claimed_bytes(), 0, "claims left");
}
