//! The budgets at which results have to be the same.

use mayfly_space::{Space, SpaceOptions};

/// From the smallest useful budget to one in which test data fits.
pub const BUDGETS: [u64; 4] = [1 << 20, 8 << 20, 64 << 20, 1 << 30];

/// A fresh space with a budget.
///
/// # Panics
/// If it cannot be opened.
pub fn space_of(memory_bytes: u64) -> Space {
    let options = SpaceOptions {
        memory_bytes,
        ..SpaceOptions::default()
    };
    Space::open(options).expect("a space with default options opens")
}

/// Runs `body` in a fresh space at each budget from `least_bytes` up, checks afterwards that
/// nothing is left in the space, and returns the results. The budget is printed first, so that a
/// failure names it.
///
/// # Panics
/// If a space does not end empty and consistent.
pub fn budgets<T>(least_bytes: u64, mut body: impl FnMut(&Space) -> T) -> Vec<T> {
    let mut results = Vec::new();
    for memory_bytes in BUDGETS.into_iter().filter(|&bytes| bytes >= least_bytes) {
        eprintln!("budget: {} KiB", memory_bytes >> 10);
        let space = space_of(memory_bytes);
        results.push(body(&space));
        space.verify();
        let counters = space.counters();
        assert_eq!(counters.pages_live, 0, "pages left");
        assert_eq!(space.memory_used_bytes(), 0, "memory left");
        assert_eq!(counters.disk_bytes_used, 0, "disk space left");
    }
    results
}
