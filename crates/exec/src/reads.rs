//! How a statement reads the rows of tables.
//!
//! Owns: [`TableReads`], what MySQL counts as `Handler_read_*` and `Rows_read`. Rows of temporary
//! tables that operators build are not among them.

use std::ops::AddAssign;

use mayfly_table::{Search, Table};

/// What was read of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableReads {
    /// Rows that scans read.
    pub scanned_rows: u64,
    /// Searches of keys: for a value, for a range, or for the values of one outer row of a join.
    pub searches: u64,
    /// Rows that were found by a whole unique key, which finds one at most.
    pub unique_rows: u64,
    /// Rows of other searches, and those that were read in the order of a key.
    pub next_rows: u64,
    /// Rows that were read against the order of a key.
    pub previous_rows: u64,
    /// Keys that were read from their beginning on.
    pub firsts: u64,
    /// Keys that were read from their end on.
    pub lasts: u64,
}

impl TableReads {
    /// Rows of a scan.
    pub fn of_scan(rows: usize) -> TableReads {
        TableReads {
            scanned_rows: rows as u64,
            ..TableReads::default()
        }
    }

    /// All rows.
    pub fn rows(&self) -> u64 {
        self.scanned_rows + self.unique_rows + self.next_rows + self.previous_rows
    }
}

impl AddAssign for TableReads {
    fn add_assign(&mut self, other: TableReads) {
        self.scanned_rows += other.scanned_rows;
        self.searches += other.searches;
        self.unique_rows += other.unique_rows;
        self.next_rows += other.next_rows;
        self.previous_rows += other.previous_rows;
        self.firsts += other.firsts;
        self.lasts += other.lasts;
    }
}

/// Searches of one key.
#[derive(Clone, Copy, Debug)]
pub struct Searched {
    count: u64,
    /// Whether each finds one row at most.
    is_unique: bool,
}

impl Searched {
    /// Searches of a table.
    pub fn of(table: &Table, searches: &[Search]) -> Searched {
        let finds_one = |search: &Search| {
            let key = &table.definition().keys[search.key];
            key.is_unique() && search.equal.len() == key.parts.len()
        };
        Searched {
            count: searches.len() as u64,
            is_unique: searches.iter().all(finds_one),
        }
    }

    /// Searches for the first parts of a key, as many as are given.
    pub(crate) fn for_each(rows: usize, is_unique: bool) -> Searched {
        Searched {
            count: rows as u64,
            is_unique,
        }
    }

    /// What is read by them when they find so many rows.
    pub fn reads(self, rows: usize) -> TableReads {
        let mut reads = self.rows(rows);
        reads.searches = self.count;
        reads
    }

    /// The same of some of the rows, without the searches themselves.
    pub(crate) fn rows(self, rows: usize) -> TableReads {
        let rows = rows as u64;
        let (unique_rows, next_rows) = match self.is_unique {
            true => (rows, 0),
            false => (0, rows),
        };
        TableReads {
            unique_rows,
            next_rows,
            ..TableReads::default()
        }
    }
}
