//! Equal shares of memory that operators hold only because it makes them faster.
//!
//! An operator that keeps what it could also read again would take all memory it may have, and the
//! next one of its kind would find none. Each says while it has something of the kind, and asks on
//! its way how much is its own: what all of them may have, divided by their number. Who has more
//! gives it up.
//!
//! **Never** takes memory away by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Space;

/// One of those that share; leaves when it is dropped.
#[derive(Debug)]
pub struct Share {
    sharers: Arc<AtomicU64>,
}

impl Space {
    /// One more that shares from now on.
    pub fn share(&self) -> Share {
        let sharers = Arc::clone(&self.core().sharers);
        sharers.fetch_add(1, Relaxed);
        Share { sharers }
    }
}

impl Share {
    /// This one's part of what all may have, at this moment. **Cost**: a load and a division.
    pub fn of(&self, bytes: u64) -> u64 {
        bytes / self.sharers.load(Relaxed).max(1)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.sharers.fetch_sub(1, Relaxed);
    }
}
