//! Counters of clients that come and go, which no statement counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a server tells of its clients, for SHOW GLOBAL STATUS.
#[derive(Debug, Default)]
pub struct Clients {
    aborted: AtomicU64,
    aborted_logins: AtomicU64,
    refused_for_number: AtomicU64,
    most: AtomicU64,
}

impl Clients {
    /// A client went away without saying so, or was told to: `Aborted_clients`.
    pub fn aborted(&self) {
        self.aborted.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection ended before it had a user: `Aborted_connects`.
    pub fn aborted_login(&self) {
        self.aborted_logins.fetch_add(1, Ordering::Relaxed);
    }

    /// A client was refused by `max_connections`: `Connection_errors_max_connections`.
    pub fn refused_for_number(&self) {
        self.refused_for_number.fetch_add(1, Ordering::Relaxed);
    }

    /// So many are connected at a time: `Max_used_connections`.
    pub(crate) fn are(&self, count: u64) {
        self.most.fetch_max(count, Ordering::Relaxed);
    }

    /// Names and values for SHOW STATUS.
    pub(crate) fn list(&self) -> [(&'static str, u64); 4] {
        [
            ("Aborted_clients", &self.aborted),
            ("Aborted_connects", &self.aborted_logins),
            (
                "Connection_errors_max_connections",
                &self.refused_for_number,
            ),
            ("Max_used_connections", &self.most),
        ]
        .map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }
}
