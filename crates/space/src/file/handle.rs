//! An open temp file.

use std::fs::File;
use std::sync::Arc;

use crate::Faults;

/// The alignment of everything in a temp file.
pub(crate) const SECTOR: u64 = 4096;

/// An open temp file.
pub(crate) struct Handle {
    pub(crate) file: File,
    /// Whether transfers go around the page cache.
    pub(crate) direct: bool,
    pub(crate) faults: Option<Arc<dyn Faults>>,
    #[cfg(miri)]
    pub(crate) heap: std::sync::Mutex<Vec<u8>>,
}
