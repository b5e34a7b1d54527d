//! Statistics of one statement.

use std::time::Duration;

use mayfly_exec::TempTable;
use mayfly_space::Counters;

use crate::digests::DigestCell;
use crate::profile::Cost;
use crate::reads::Reads;

/// What one statement cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StatementStats {
    /// Time from the arrival of the statement to its last row, in milliseconds.
    pub elapsed_ms: f64,
    /// Rows returned, or affected.
    pub rows: u64,
    /// Temporary tables that the statement built.
    pub temp_tables: u64,
    /// Those of them that had a page written to disk.
    pub temp_disk_tables: u64,
    /// Bytes written to the temp file.
    pub temp_bytes_written: u64,
    /// Bytes read back from the temp file.
    pub temp_bytes_read: u64,
    /// Most bytes of the budget that the statement held at one time.
    pub peak_memory_bytes: u64,
}

/// All that is known of a statement when it has ended.
pub(crate) struct Ended<'a> {
    pub(crate) text: &'a str,
    /// The digest of the text; empty where nobody has asked for it.
    pub(crate) digest: &'a DigestCell,
    pub(crate) is_failed: bool,
    pub(crate) stats: StatementStats,
    /// Whether it returned its rows, and did not change them.
    pub(crate) is_query: bool,
    pub(crate) reads: Reads,
    pub(crate) tables: &'a [TempTable],
    pub(crate) counters: &'a Counters,
    /// The stages it was in; none where it ended at once.
    pub(crate) stages: &'a [Cost],
}

impl StatementStats {
    pub(crate) fn new(
        elapsed: Duration,
        rows: u64,
        tables: &[TempTable],
        counters: &Counters,
    ) -> StatementStats {
        StatementStats {
            elapsed_ms: elapsed.as_secs_f64() * 1000.0,
            rows,
            temp_tables: tables.len() as u64,
            temp_disk_tables: tables.iter().filter(|table| table.on_disk).count() as u64,
            temp_bytes_written: counters.bytes_written,
            temp_bytes_read: counters.bytes_read,
            peak_memory_bytes: counters.peak_bytes,
        }
    }
}
