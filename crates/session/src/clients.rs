//! Counters of clients that come and go, which no statement counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a server tells of its clients, for SHOW GLOBAL STATUS.
#[derive(Debug, Default)]
pub struct Clients {
    aborted: AtomicU64,
    aborted_logins: AtomicU64,
    refused_for_number: AtomicU64,
    not_accepted: AtomicU64,
    most: AtomicU64,
    /// Bytes that came and went, of all connections.
    received: AtomicU64,
    sent: AtomicU64,
    /// Executions of prepared statements: too many to be counted under a lock of all.
    executed: AtomicU64,
    /// Prepared statements that are open.
    prepared: Arc<AtomicU64>,
}

/// A place among `max_prepared_stmt_count`.
#[derive(Debug)]
pub(crate) struct PreparedPlace(Arc<AtomicU64>);

impl Drop for PreparedPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
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

    /// The operating system handed out no connection: `Connection_errors_accept`.
    pub fn not_accepted(&self) {
        self.not_accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// So many are connected at a time: `Max_used_connections`.
    pub(crate) fn are(&self, count: u64) {
        self.most.fetch_max(count, Ordering::Relaxed);
    }

    /// Bytes that came and went: `Bytes_received`, `Bytes_sent`.
    pub(crate) fn exchanged(&self, received: u64, sent: u64) {
        for (all, more) in [(&self.received, received), (&self.sent, sent)] {
            if more > 0 {
                all.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    /// A prepared statement is executed: `Com_stmt_execute`.
    pub(crate) fn executes(&self) {
        self.executed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn executed(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
    }

    pub(crate) fn traffic(&self) -> (u64, u64) {
        (
            self.received.load(Ordering::Relaxed),
            self.sent.load(Ordering::Relaxed),
        )
    }

    /// A place for a prepared statement; `None` if all of them are taken.
    pub(crate) fn prepare(&self, most: u64) -> Option<PreparedPlace> {
        let place = PreparedPlace(Arc::clone(&self.prepared));
        let before = self.prepared.fetch_add(1, Ordering::Relaxed);
        (before < most).then_some(place)
    }

    /// Names and values for SHOW STATUS.
    pub(crate) fn list(&self) -> [(&'static str, u64); 6] {
        [
            ("Aborted_clients", &self.aborted),
            ("Aborted_connects", &self.aborted_logins),
            ("Connection_errors_accept", &self.not_accepted),
            (
                "Connection_errors_max_connections",
                &self.refused_for_number,
            ),
            ("Max_used_connections", &self.most),
            ("Prepared_stmt_count", self.prepared.as_ref()),
        ]
        .map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }
}
