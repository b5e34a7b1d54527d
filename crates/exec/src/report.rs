//! What the temporary tables of a statement cost, and what it read of other tables.
//!
//! Owns: [`Report`], a list of [`TempTable`] and sums of [`TableReads`]. Never: decides anything;
//! operators write it, the statement's owner reads it, also while they run.
//!
//! A temporary table is one pipeline breaker of the plan. Its partitions run on their own and
//! report on their own; the report adds them up under the table's id.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mayfly_space::Account;

use crate::lock::lock;
use crate::reads::TableReads;

/// Why a temporary table exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// `GROUP BY`.
    GroupBy,
    /// `SELECT DISTINCT`.
    Distinct,
    /// `UNION`.
    Union,
    /// `ORDER BY`.
    OrderBy,
    /// `ORDER BY` with `LIMIT`.
    OrderByLimit,
    /// A join's build side.
    Join,
    /// A window function.
    Window,
    /// A derived table or common table expression computed once.
    Derived,
    /// A common table expression that reads itself.
    Recursion,
}

impl Why {
    /// The words that EXPLAIN prints.
    pub fn text(self) -> &'static str {
        match self {
            Self::GroupBy => "GROUP BY",
            Self::Distinct => "DISTINCT",
            Self::Union => "UNION",
            Self::OrderBy => "ORDER BY",
            Self::OrderByLimit => "ORDER BY LIMIT",
            Self::Join => "JOIN",
            Self::Window => "WINDOW",
            Self::Derived => "DERIVED",
            Self::Recursion => "WITH RECURSIVE",
        }
    }
}

/// One temporary table of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TempTable {
    /// Identity of the operator, from [`next_temp_table_id`].
    pub id: u64,
    /// Why it exists.
    pub why: Why,
    /// Rows that it held.
    pub rows: u64,
    /// The most bytes that it held in memory.
    pub memory_bytes: u64,
    /// Bytes written to disk on its behalf.
    pub disk_bytes_written: u64,
    /// Bytes read back from disk on its behalf.
    pub disk_bytes_read: u64,
    /// Times that its rows were passed over: 1 when nothing had to be merged or replayed.
    pub passes: u64,
    /// Whether any page of it was written to disk.
    pub on_disk: bool,
    /// The most bytes that it could have in memory.
    pub limit_bytes: u64,
    /// The most bytes that it had in memory and on disk together: as much memory would have kept it
    /// there.
    pub live_bytes: u64,
    /// How long its threads waited for pages to be written, so that there was room.
    pub write_wait_nanos: u64,
    /// How long its threads waited for pages to be read.
    pub read_wait_nanos: u64,
}

impl TempTable {
    /// What its account says of one.
    pub(crate) fn of(id: u64, why: Why, account: &Account, rows: u64, passes: u64) -> TempTable {
        let counters = account.counters();
        TempTable {
            id,
            why,
            rows,
            memory_bytes: counters.peak_bytes,
            disk_bytes_written: counters.bytes_written,
            disk_bytes_read: counters.bytes_read,
            passes,
            on_disk: counters.bytes_written > counters.wasted_write_bytes,
            limit_bytes: account.memory_limit_bytes(),
            live_bytes: counters.live_peak_bytes,
            write_wait_nanos: counters.wait_nanos,
            read_wait_nanos: counters.read_wait_nanos,
        }
    }

    /// Adds another run of the same plan, which made the table anew.
    pub(crate) fn add_run(&mut self, run: &TempTable) {
        self.add(run, u64::max);
    }

    /// Adds another partition of the same table.
    fn add_part(&mut self, part: &TempTable) {
        self.add(part, u64::saturating_add);
    }

    /// Adds the counts of another; `held` says what both hold: together, or one after the other.
    fn add(&mut self, other: &TempTable, held: fn(u64, u64) -> u64) {
        self.rows += other.rows;
        self.memory_bytes = held(self.memory_bytes, other.memory_bytes);
        self.disk_bytes_written += other.disk_bytes_written;
        self.disk_bytes_read += other.disk_bytes_read;
        self.passes = self.passes.max(other.passes);
        self.on_disk |= other.on_disk;
        self.limit_bytes = held(self.limit_bytes, other.limit_bytes);
        self.live_bytes = held(self.live_bytes, other.live_bytes);
        self.write_wait_nanos += other.write_wait_nanos;
        self.read_wait_nanos += other.read_wait_nanos;
    }
}

/// A new identity for a temporary table, unique in this process.
pub fn next_temp_table_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// One partition of a temporary table while it is in use; what is known of it stays in the report
/// when this is dropped, and its account does not.
#[derive(Debug)]
pub struct LiveTempTable {
    counts: Arc<Counts>,
    parts: Parts,
    place: usize,
}

impl LiveTempTable {
    /// Counts rows that it took.
    pub fn add_rows(&self, rows: u64) {
        self.counts.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Says how often its rows are passed over.
    pub fn set_passes(&self, passes: u64) {
        self.counts.passes.store(passes, Ordering::Relaxed);
    }

    /// How often its rows are passed over, as far as it is known.
    pub fn passes(&self) -> u64 {
        self.counts.passes.load(Ordering::Relaxed)
    }
}

impl Drop for LiveTempTable {
    fn drop(&mut self) {
        lock(&self.parts)[self.place] = Part::Ended(self.counts.read());
    }
}

/// What is counted of a partition that is in use.
#[derive(Debug)]
struct Counts {
    id: u64,
    why: Why,
    account: Account,
    rows: AtomicU64,
    passes: AtomicU64,
}

impl Counts {
    /// What its account says at this moment.
    fn read(&self) -> TempTable {
        let rows = self.rows.load(Ordering::Relaxed);
        let passes = self.passes.load(Ordering::Relaxed);
        TempTable::of(self.id, self.why, &self.account, rows, passes)
    }
}

/// The temporary tables of one statement, and what it read of other tables.
#[derive(Debug, Default)]
pub struct Report {
    parts: Mutex<Parts>,
    reads: Mutex<TableReads>,
}

type Parts = Arc<Mutex<Vec<Part>>>;

#[derive(Debug)]
enum Part {
    Live(Arc<Counts>),
    Ended(TempTable),
}

impl Report {
    /// What it says so far, as one of its own; this one is empty then. Partitions that are in use
    /// stay with what was taken.
    pub(crate) fn take(&self) -> Report {
        Report {
            parts: Mutex::new(std::mem::take(&mut *lock(&self.parts))),
            reads: Mutex::new(std::mem::take(&mut *lock(&self.reads))),
        }
    }

    fn parts(&self) -> Parts {
        Arc::clone(&lock(&self.parts))
    }

    /// Adds a partition that has ended.
    pub fn add(&self, part: TempTable) {
        lock(&self.parts()).push(Part::Ended(part));
    }

    /// Adds rows that were read of tables.
    pub fn add_reads(&self, reads: TableReads) {
        *lock(&self.reads) += reads;
    }

    /// What was read of tables so far.
    pub fn reads(&self) -> TableReads {
        *lock(&self.reads)
    }

    /// Adds a partition that begins; what its account counts is read whenever the report is.
    pub fn begin(&self, id: u64, why: Why, account: Account) -> LiveTempTable {
        let counts = Arc::new(Counts {
            id,
            why,
            account,
            rows: AtomicU64::new(0),
            passes: AtomicU64::new(1),
        });
        let parts = self.parts();
        let place = {
            let mut parts = lock(&parts);
            parts.push(Part::Live(Arc::clone(&counts)));
            parts.len() - 1
        };
        LiveTempTable {
            counts,
            parts,
            place,
        }
    }

    /// The temporary tables so far, their partitions added up, in the order in which they came.
    pub fn tables(&self) -> Vec<TempTable> {
        let mut tables: Vec<TempTable> = Vec::new();
        for part in lock(&self.parts()).iter() {
            let part = match part {
                Part::Live(live) => live.read(),
                Part::Ended(part) => part.clone(),
            };
            match tables.iter_mut().find(|table| table.id == part.id) {
                None => tables.push(part),
                Some(table) => table.add_part(&part),
            }
        }
        tables
    }
}
