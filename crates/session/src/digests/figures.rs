//! The figures of a row: what all statements of a digest have cost.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mayfly_exec::Why;
use mayfly_sql::digest::without_passwords;

use super::latency::Latency;
use crate::stats::Ended;

/// Bytes of the statement that is kept: MySQL's `performance_schema_max_sql_text_length`.
const SAMPLE_BYTES_MAX: usize = 1024;
/// After so long another statement is kept: `performance_schema_max_digest_sample_age`.
const SAMPLE_AGE_MAX_MICROS: u64 = 60_000_000;

/// What is added up over statements.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    lock_nanos: u64,
    errors: u64,
    warnings: u64,
    rows_affected: u64,
    rows_sent: u64,
    rows_examined: u64,
    tmp_tables: u64,
    tmp_disk_tables: u64,
    full_joins: u64,
    full_scans: u64,
    sorts: u64,
    sort_rows: u64,
    sort_merge_passes: u64,
    bytes_written: u64,
    bytes_read: u64,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.lock_nanos = self.lock_nanos.saturating_add(other.lock_nanos);
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.rows_affected += other.rows_affected;
        self.rows_sent += other.rows_sent;
        self.rows_examined += other.rows_examined;
        self.tmp_tables += other.tmp_tables;
        self.tmp_disk_tables += other.tmp_disk_tables;
        self.full_joins += other.full_joins;
        self.full_scans += other.full_scans;
        self.sorts += other.sorts;
        self.sort_rows += other.sort_rows;
        self.sort_merge_passes += other.sort_merge_passes;
        self.bytes_written += other.bytes_written;
        self.bytes_read += other.bytes_read;
    }
}

/// What one statement has cost.
#[derive(Default)]
pub(crate) struct Once<'a> {
    text: &'a str,
    /// When it ended, in microseconds since 1970.
    at_micros: u64,
    nanos: u64,
    peak_memory_bytes: u64,
    sums: Sums,
}

impl<'a> Once<'a> {
    /// Of a statement that has ended with so many warnings, and waited for others that wrote its
    /// tables.
    pub(crate) fn new(ended: &Ended<'a>, warnings: u64, waited: Duration) -> Once<'a> {
        let stats = &ended.stats;
        let (rows_sent, rows_affected) = match ended.is_query {
            true => (stats.rows, 0),
            false => (0, stats.rows),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut sums = Sums {
            lock_nanos: number(waited.as_nanos()),
            errors: u64::from(ended.is_failed),
            // The error is one of the warnings, and not meant.
            warnings: if ended.is_failed { 0 } else { warnings },
            rows_affected,
            rows_sent,
            rows_examined: ended.reads.examined(),
            tmp_tables: stats.temp_tables,
            tmp_disk_tables: stats.temp_disk_tables,
            full_joins: u64::from(ended.reads.has_full_join),
            full_scans: u64::from(ended.reads.has_full_scan),
            bytes_written: stats.temp_bytes_written,
            bytes_read: stats.temp_bytes_read,
            ..Sums::default()
        };
        for table in ended.tables {
            if matches!(table.why, Why::OrderBy | Why::OrderByLimit) {
                sums.sorts += 1;
                sums.sort_rows += table.rows;
                sums.sort_merge_passes += table.passes.saturating_sub(1);
            }
        }
        Once {
            text: ended.text,
            at_micros: number(now.unwrap_or_default().as_micros()),
            nanos: (stats.elapsed_ms * 1e6) as u64,
            peak_memory_bytes: stats.peak_memory_bytes,
            sums,
        }
    }
}

fn number(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// The statement that is shown for its digest.
#[derive(Debug, Clone, Default)]
struct Sample {
    text: String,
    at_micros: u64,
    nanos: u64,
}

/// What all statements of a digest have cost. Times are in nanoseconds, moments in microseconds
/// since 1970.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    pub(crate) count: u64,
    sum_nanos: u64,
    min_nanos: u64,
    max_nanos: u64,
    peak_memory_bytes: u64,
    sums: Sums,
    first_micros: u64,
    last_micros: u64,
    latency: Latency,
    sample: Sample,
}

impl Figures {
    pub(super) fn add(&mut self, once: &Once<'_>) {
        if self.count == 0 {
            self.first_micros = once.at_micros;
            self.min_nanos = once.nanos;
        }
        let is_longer = once.nanos > self.sample.nanos;
        let oldest = once.at_micros.saturating_sub(SAMPLE_AGE_MAX_MICROS);
        if self.count == 0 || is_longer || self.sample.at_micros < oldest {
            self.sample.take(once);
        }
        self.count += 1;
        self.sum_nanos = self.sum_nanos.saturating_add(once.nanos);
        self.min_nanos = self.min_nanos.min(once.nanos);
        self.max_nanos = self.max_nanos.max(once.nanos);
        self.peak_memory_bytes = self.peak_memory_bytes.max(once.peak_memory_bytes);
        self.sums.add(&once.sums);
        self.last_micros = self.last_micros.max(once.at_micros);
        self.latency.add(once.nanos);
    }

    /// A figure by the name of its column, which has no such figure where it is 0 here; times are
    /// in picoseconds.
    pub(crate) fn number(&self, column: &str) -> u64 {
        let sums = &self.sums;
        let pico = |nanos: u64| nanos.saturating_mul(1000);
        match column {
            "COUNT_STAR" => self.count,
            "SUM_TIMER_WAIT" => pico(self.sum_nanos),
            "MIN_TIMER_WAIT" => pico(self.min_nanos),
            "AVG_TIMER_WAIT" => pico(self.sum_nanos) / self.count.max(1),
            "MAX_TIMER_WAIT" => pico(self.max_nanos),
            "SUM_LOCK_TIME" => pico(sums.lock_nanos),
            "SUM_ERRORS" => sums.errors,
            "SUM_WARNINGS" => sums.warnings,
            "SUM_ROWS_AFFECTED" => sums.rows_affected,
            "SUM_ROWS_SENT" => sums.rows_sent,
            "SUM_ROWS_EXAMINED" => sums.rows_examined,
            "SUM_CREATED_TMP_DISK_TABLES" => sums.tmp_disk_tables,
            "SUM_CREATED_TMP_TABLES" => sums.tmp_tables,
            "SUM_SELECT_FULL_JOIN" => sums.full_joins,
            "SUM_SELECT_SCAN" | "SUM_NO_INDEX_USED" => sums.full_scans,
            "SUM_SORT_MERGE_PASSES" => sums.sort_merge_passes,
            "SUM_SORT_ROWS" => sums.sort_rows,
            "SUM_SORT_SCAN" => sums.sorts,
            "MAX_CONTROLLED_MEMORY" | "MAX_TOTAL_MEMORY" | "MAYFLY_PEAK_MEMORY_BYTES" => {
                self.peak_memory_bytes
            }
            "QUANTILE_95" => pico(self.latency.quantile(950)),
            "QUANTILE_99" => pico(self.latency.quantile(990)),
            "QUANTILE_999" => pico(self.latency.quantile(999)),
            "QUERY_SAMPLE_TIMER_WAIT" => pico(self.sample.nanos),
            "MAYFLY_TEMP_BYTES_READ" => sums.bytes_read,
            "MAYFLY_TEMP_BYTES_WRITTEN" => sums.bytes_written,
            _ => 0,
        }
    }

    /// A moment by the name of its column, in microseconds since 1970.
    pub(crate) fn micros(&self, column: &str) -> u64 {
        match column {
            "FIRST_SEEN" => self.first_micros,
            "QUERY_SAMPLE_SEEN" => self.sample.at_micros,
            _ => self.last_micros,
        }
    }

    /// One of the statements, which may be cut.
    pub(crate) fn sample(&self) -> &str {
        &self.sample.text
    }
}

impl Sample {
    fn take(&mut self, once: &Once<'_>) {
        self.at_micros = once.at_micros;
        self.nanos = once.nanos;
        self.text.clear();
        if once.text.len() <= SAMPLE_BYTES_MAX {
            self.text.push_str(&without_passwords(once.text));
            return;
        }
        let end = once.text.floor_char_boundary(SAMPLE_BYTES_MAX - 3);
        let start = once.text.get(..end).unwrap_or_default();
        self.text.push_str(&without_passwords(start));
        self.text.push_str("...");
    }
}
