//! The slow query log, in MariaDB's format.
//!
//! Owns the file, and whether anything is written to it: `slow_query_log`, `long_query_time`,
//! `log_slow_verbosity`, `log_slow_rate_limit`. An entry is written in one piece, when its
//! statement has ended.
//!
//! ```text
//! # Time: 261122 13:05:09
//! # User@Host: root[root] @ localhost []
//! # Thread_id: 17  Schema: test  QC_hit: No
//! # Query_time: 1.003679  Lock_time: 0.000000  Rows_sent: 1  Rows_examined: 2001
//! # Rows_affected: 0  Bytes_sent: 58
//! # Tmp_tables: 1  Tmp_disk_tables: 1  Tmp_table_sizes: 32768      query_plan, with temp tables
//! # Full_scan: Yes  Full_join: No  Tmp_table: Yes  Tmp_table_on_disk: Yes          query_plan
//! # Filesort: No  Filesort_on_disk: No  Merge_passes: 0  Priority_queue: No        query_plan
//! # Spill_bytes: 32768  Mem_peak: 65536                                            query_plan
//! #                                                                              explain
//! # explain: id  select_type  table  type  possible_keys  ...                    (tabs)
//! # explain: 1   SIMPLE       t      ALL   NULL           ...
//! #
//! # Warnings                                                                       warnings
//! # Warning 1292 Truncated incorrect INTEGER value: 'abc'
//! use `test`;
//! SET timestamp=1795187744;
//! SELECT ...;
//! ```
//!
//! **Never** fails a statement: what cannot be written is lost.
//!
//! **Source**: MariaDB's `sql/log.cc`, `MYSQL_QUERY_LOG::write`, whose spacing tools depend on.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mayfly_exec::{TempTable, Why};
use mayfly_types::spelling::date_of;
use mayfly_types::{Level, Warning};

use crate::stats::Ended;
use crate::version::VERSION;

/// What `log_slow_verbosity` may name; `full` and `all` are everything.
const PLAN: &str = "query_plan";
const EXPLAIN: &str = "explain";
const WARNINGS: &str = "warnings";
const EVERYTHING: [&str; 2] = ["full", "all"];
/// Most warnings of an entry, as MariaDB's `log_slow_max_warnings`.
const WARNINGS_MAX: usize = 10;

/// The log of an engine.
pub(crate) struct SlowLog {
    path: PathBuf,
    /// `slow_query_log`.
    is_on: AtomicBool,
    /// Statements that were slow.
    slow: AtomicU64,
    writer: Mutex<Writer>,
}

struct Writer {
    file: File,
    /// The second of the last entry, and its database: they are said again when they change.
    second: Option<u64>,
    database: Option<String>,
}

/// When a statement is slow, and what is said of it, for one session.
#[derive(Clone, Copy, Default)]
pub(crate) struct SlowSettings {
    pub(crate) long: Duration,
    pub(crate) tells_plan: bool,
    pub(crate) tells_explain: bool,
    pub(crate) tells_warnings: bool,
    pub(crate) rate_limit: u64,
}

/// A statement that has ended.
pub(crate) struct Entry<'a> {
    pub(crate) ended: &'a Ended<'a>,
    pub(crate) user: &'a str,
    pub(crate) connection_id: u64,
    pub(crate) database: Option<&'a str>,
    pub(crate) warnings: &'a [Warning],
    /// How long it waited for others that wrote its tables.
    pub(crate) waited: Duration,
    /// What EXPLAIN says of it.
    pub(crate) explained: Option<&'a str>,
}

/// An entry that waits until the answer to its statement is sent: it tells how many bytes that was.
pub(crate) struct Unlogged {
    second: u64,
    database: Option<String>,
    /// Before the bytes that were sent, behind them, and behind the database.
    head: String,
    figures: String,
    statement: String,
}

impl Unlogged {
    pub(crate) fn new(entry: &Entry<'_>, settings: &SlowSettings) -> Unlogged {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let second = now.unwrap_or_default().as_secs();
        let mut figures = String::new();
        if settings.tells_plan {
            figures += &plan(entry);
        }
        if let Some(explained) = entry.explained.filter(|_| settings.tells_explain) {
            figures += "#\n";
            figures += explained;
            figures += "#\n";
        }
        if settings.tells_warnings && !entry.warnings.is_empty() {
            figures += &warnings(entry.warnings);
        }
        let text = entry.ended.text;
        let statement = text.trim_end_matches(['\0', ';', ' ', '\n', '\t', '\r']);
        Unlogged {
            second,
            database: entry.database.map(str::to_owned),
            head: head(entry),
            figures,
            statement: format!("SET timestamp={second};\n{statement};\n"),
        }
    }
}

impl SlowSettings {
    pub(crate) fn new(long_seconds: &str, verbosity: &str, rate_limit: u64) -> SlowSettings {
        let named = |word: &str| {
            let mut words = verbosity.split(',').map(str::trim);
            words.any(|other| other == word || EVERYTHING.contains(&other))
        };
        let seconds: f64 = long_seconds.parse().unwrap_or(f64::MAX);
        SlowSettings {
            long: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            tells_plan: named(PLAN),
            tells_explain: named(EXPLAIN),
            tells_warnings: named(WARNINGS),
            rate_limit,
        }
    }
}

impl SlowLog {
    /// Opens the log, behind what it has already.
    ///
    /// # Errors
    /// When the file cannot be opened or written.
    pub(crate) fn open(path: &Path) -> io::Result<SlowLog> {
        Ok(SlowLog {
            path: path.to_owned(),
            is_on: AtomicBool::new(true),
            slow: AtomicU64::new(0),
            writer: Mutex::new(Writer::open(path)?),
        })
    }

    /// Begins a new file, if the old one was moved away: FLUSH SLOW LOGS.
    ///
    /// # Errors
    /// When the file cannot be opened or written; the old one is written on then.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        *self.writer() = Writer::open(&self.path)?;
        Ok(())
    }

    /// `slow_query_log`.
    pub(crate) fn turn(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Whether the next slow statement is written.
    pub(crate) fn takes(&self, settings: &SlowSettings) -> bool {
        if !self.is_on.load(Ordering::Relaxed) {
            return false;
        }
        let number = self.slow.fetch_add(1, Ordering::Relaxed);
        number.is_multiple_of(settings.rate_limit.max(1))
    }

    /// Writes an entry; the bytes of the answer are left out where nobody knows them.
    pub(crate) fn write(&self, entry: Unlogged, bytes_sent: Option<u64>) {
        let Unlogged {
            second,
            database,
            head,
            figures,
            statement,
        } = entry;
        let mut writer = self.writer();
        let mut text = String::with_capacity(128 + head.len() + figures.len() + statement.len());
        if writer.second != Some(second) {
            text += &time_line(second);
            writer.second = Some(second);
        }
        text += &head;
        if let Some(bytes) = bytes_sent {
            text += &format!("  Bytes_sent: {bytes}");
        }
        text.push('\n');
        text += &figures;
        if database.is_some() && writer.database != database {
            let name = database.as_deref().unwrap_or_default().replace('`', "``");
            text += &format!("use `{name}`;\n");
            writer.database = database;
        }
        text += &statement;
        let _lost = writer.file.write_all(text.as_bytes());
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn open(path: &Path) -> io::Result<Writer> {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        let head = format!(
            "mayfly, Version: {} (Mayfly). started with:\nTcp port: 0  Unix socket: \n\
             Time\t\t    Id Command\tArgument\n",
            VERSION
        );
        file.write_all(head.as_bytes())?;
        Ok(Writer {
            file,
            second: None,
            database: None,
        })
    }
}

/// The moment, in UTC: `261122 13:05:09`, the hour padded with a blank.
fn time_line(second: u64) -> String {
    let (day, rest) = (second / 86_400, second % 86_400);
    let (year, month, day) = date_of(i64::try_from(day).unwrap_or_default());
    let (hour, minute) = (rest / 3600, rest / 60 % 60);
    format!(
        "# Time: {:02}{month:02}{day:02} {hour:2}:{minute:02}:{:02}\n",
        year % 100,
        rest % 60
    )
}

fn head(entry: &Entry<'_>) -> String {
    let (user, host) = entry.user.split_once('@').unwrap_or((entry.user, ""));
    // A name of a machine, or its address.
    let (name, address) = match host {
        "localhost" => (host, ""),
        address => ("", address),
    };
    let stats = &entry.ended.stats;
    let seconds = stats.elapsed_ms / 1000.0;
    let (sent, affected) = match entry.ended.is_query {
        true => (stats.rows, 0),
        false => (0, stats.rows),
    };
    format!(
        "# User@Host: {user}[{user}] @ {name} [{address}]\n\
         # Thread_id: {}  Schema: {}  QC_hit: No\n\
         # Query_time: {seconds:.6}  Lock_time: {:.6}  Rows_sent: {sent}  Rows_examined: {}\n\
         # Rows_affected: {affected}",
        entry.connection_id,
        entry.database.unwrap_or_default(),
        entry.waited.as_secs_f64(),
        entry.ended.reads.examined(),
    )
}

fn plan(entry: &Entry<'_>) -> String {
    let Ended {
        stats,
        tables,
        reads,
        ..
    } = entry.ended;
    let is_sort = |table: &&TempTable| matches!(table.why, Why::OrderBy | Why::OrderByLimit);
    let sorts: Vec<&TempTable> = tables.iter().filter(is_sort).collect();
    let yes = |is: bool| if is { "Yes" } else { "No" };
    let mut text = String::new();
    if !tables.is_empty() {
        let bytes = |table: &TempTable| table.memory_bytes.max(table.disk_bytes_written);
        // Writing to a string does not fail.
        let _ok = writeln!(
            text,
            "# Tmp_tables: {}  Tmp_disk_tables: {}  Tmp_table_sizes: {}",
            tables.len(),
            stats.temp_disk_tables,
            tables.iter().map(bytes).sum::<u64>(),
        );
    }
    let _ok = writeln!(
        text,
        "# Full_scan: {}  Full_join: {}  Tmp_table: {}  Tmp_table_on_disk: {}\n\
         # Filesort: {}  Filesort_on_disk: {}  Merge_passes: {}  Priority_queue: {}\n\
         # Spill_bytes: {}  Mem_peak: {}",
        yes(reads.has_full_scan),
        yes(reads.has_full_join),
        yes(sorts.len() < tables.len()),
        yes(tables.iter().any(|table| table.on_disk && !is_sort(&table))),
        yes(!sorts.is_empty()),
        yes(sorts.iter().any(|table| table.on_disk)),
        { sorts.iter().map(|table| table.passes.saturating_sub(1)) }.sum::<u64>(),
        yes(sorts.iter().any(|table| table.why == Why::OrderByLimit)),
        stats.temp_bytes_written,
        stats.peak_memory_bytes,
    );
    text
}

fn warnings(warnings: &[Warning]) -> String {
    let mut text = "# Warnings\n".to_owned();
    for warning in warnings.iter().take(WARNINGS_MAX) {
        let level = match warning.level {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        };
        let message = warning.error.message.replace('\n', " ");
        let _ok = writeln!(text, "# {level} {} {message}", warning.error.code);
    }
    text
}
