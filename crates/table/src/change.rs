//! The changes of one statement: rows that go and rows that come.
//!
//! **Owns** the row ids of one snapshot and the rows that replace them. **Never** shows a part of
//! them: what a statement removes and appends becomes part of the table at once, or not at all.
//!
//! A statement reads the snapshot that it changes, so it never meets a row that it has written
//! itself (the Halloween problem). Nothing is locked in between: should somebody else have changed
//! the table before the commit, [`Error::Changed`] says so, and the statement starts again.
//!
//! **Cost**: a bit of each removed row and a copy of the list of pages; updated rows are written
//! to the end.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};

use crate::appender::Pending;
use crate::error::Result;
use crate::snapshot::TableSnapshot;
use crate::table::Table;

/// A row of a snapshot: which batch, and which slot of it.
pub(crate) fn row_id(batch: usize, slot: u32) -> u64 {
    (batch as u64) << 32 | u64::from(slot)
}

/// The batch and the slot of a row.
pub(crate) fn split_row_id(id: u64) -> (usize, u32) {
    ((id >> 32) as usize, id as u32)
}

/// Slots of a batch, one bit each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots(Vec<u64>);

impl Slots {
    /// Adds a slot; whether it was not there.
    fn insert(&mut self, slot: u32) -> bool {
        let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(crate) fn contains(&self, slot: u32) -> bool {
        let word = self.0.get(slot as usize / 64);
        word.is_some_and(|word| word & (1 << (slot % 64)) != 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let words = self.0.iter().enumerate().filter(|(_, word)| **word != 0);
        words.flat_map(|(index, word)| {
            let bits = (0..64).filter(move |bit| word & (1 << bit) != 0);
            bits.map(move |bit| index as u32 * 64 + bit)
        })
    }
}

impl FromIterator<u32> for Slots {
    fn from_iter<I: IntoIterator<Item = u32>>(slots: I) -> Self {
        let mut all = Slots::default();
        for slot in slots {
            all.insert(slot);
        }
        all
    }
}

/// Rows that leave a table, by the batches of the snapshot that they were seen in.
#[derive(Debug, Default)]
pub(crate) struct Removal {
    pub(crate) slots: BTreeMap<usize, Slots>,
    pub(crate) row_count: u64,
}

/// What one statement changes: seen by nobody until [`Change::commit`], gone when it is dropped
/// before.
pub struct Change {
    table: Arc<Table>,
    snapshot: TableSnapshot,
    removal: Removal,
    pending: Pending,
}

impl Change {
    pub(crate) fn new(table: &Arc<Table>, snapshot: TableSnapshot, pending: Pending) -> Change {
        Change {
            pending,
            table: Arc::clone(table),
            snapshot,
            removal: Removal::default(),
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The rows before the change, whose ids [`Change::remove`] takes.
    pub fn snapshot(&self) -> &TableSnapshot {
        &self.snapshot
    }

    /// Removes rows by their ids, and tells for each whether it was there: a row that is named
    /// twice is removed once.
    pub fn remove(&mut self, ids: &UInt64Array) -> Vec<bool> {
        ids.values()
            .iter()
            .map(|id| {
                let (batch, slot) = split_row_id(*id);
                let is_new = self.removal.slots.entry(batch).or_default().insert(slot);
                self.removal.row_count += u64::from(is_new);
                is_new
            })
            .collect()
    }

    /// The rows that were removed so far.
    pub fn removed(&self) -> u64 {
        self.removal.row_count
    }

    /// Appends all rows of a batch or, on an error, none of them.
    ///
    /// # Errors
    /// If the batch does not have the schema of the table, or memory, disk or I/O fail.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        self.pending.append(batch)
    }

    /// Makes the change part of the table.
    ///
    /// # Errors
    /// [`Error::Changed`](crate::Error::Changed) if the table is no longer what the snapshot shows;
    /// if memory, disk or I/O fail. The table is as it was then.
    pub fn commit(self) -> Result<()> {
        if self.removal.row_count == 0 && self.pending.writer.row_count == 0 {
            return Ok(());
        }
        let version = self.snapshot.version();
        // It would hold on to the list of pages, which the change would have to copy then.
        drop(self.snapshot);
        self.table
            .absorb(self.pending, &self.removal, Some(version))
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change")
            .field("table", &self.table.name())
            .field("removed", &self.removal.row_count)
            .field("appended", &self.pending.writer.row_count)
            .finish_non_exhaustive()
    }
}
