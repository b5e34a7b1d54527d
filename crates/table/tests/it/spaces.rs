//! Spaces for tests, and the check that a test leaves nothing in them.

use std::path::Path;
use std::sync::Arc;

use mayfly_space::{Faults, Space, SpaceOptions};
use mayfly_table::{Error, Table};

/// The budgets at which the tests run: the smallest holds the largest page twice.
pub(crate) const BUDGETS: [u64; 4] = [512 << 10, 1 << 20, 8 << 20, 64 << 20];

pub(crate) fn open(memory_bytes: u64, dir: &Path) -> Space {
    open_faulty(memory_bytes, dir, None)
}

pub(crate) fn open_faulty(memory_bytes: u64, dir: &Path, faults: Option<Arc<dyn Faults>>) -> Space {
    let options = SpaceOptions {
        memory_bytes,
        temp_dirs: vec![dir.to_owned()],
        faults,
        ..SpaceOptions::default()
    };
    Space::open(options).expect("a space of this size can be opened")
}

/// A table whose rows and keys agree, as far as they can be read.
pub(crate) trait Whole {
    fn assert_whole(&self);
}

impl Whole for Table {
    fn assert_whole(&self) {
        match self.verify() {
            // A fault may have been met on the way.
            Ok(()) | Err(Error::Space(_)) => {}
            Err(error) => panic!("{}: {error}", self.name()),
        }
    }
}

/// Asserts that nothing is left in the space.
pub(crate) fn assert_empty(space: &Space) {
    space.verify();
    let counters = space.counters();
    assert_eq!(counters.pinned_bytes, 0, "pinned");
    assert_eq!(counters.reserved_bytes, 0, "reserved");
    assert_eq!(counters.resident_bytes, 0, "resident");
    assert_eq!(counters.pages_live, 0, "live");
    assert_eq!(counters.disk_bytes_used, 0, "on disk");
}
