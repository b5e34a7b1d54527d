//! How statements reach a system, and what it used meanwhile.

use std::time::Duration;

use crate::child::Watch;

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(super) peak_bytes: u64,
    pub(super) anonymous_bytes: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
}

impl Usage {
    pub(super) fn of(watch: &Watch) -> Self {
        Self {
            peak_bytes: watch.peak_bytes,
            anonymous_bytes: watch.anonymous_bytes,
            read_bytes: watch.read_bytes,
            written_bytes: watch.written_bytes,
        }
    }
}

/// An open connection with its temporary tables.
pub(crate) trait Connection {
    /// Runs statements in order; the time that they took.
    fn run(&mut self, statements: &[String]) -> Result<Duration, String>;
    /// Runs a query; its row as tab-separated text.
    fn ask(&mut self, query: &str) -> Result<String, String>;
    /// What the process behind it has used so far.
    fn usage(&mut self) -> Usage;
}
