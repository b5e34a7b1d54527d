//! The keys of a table: one B+tree each, from values to row numbers.
//!
//! **Owns** the trees and which entries they have. **Never** knows which rows a snapshot sees: a
//! row has a number for its whole life, and the pages say where it is.
//!
//! ```text
//!   rows of a batch --encoder--> keys --tree--> numbers --pages--> rows
//! ```
//!
//! The trees change when a statement commits, all of them or none (`Statement`). A statement that
//! changes much forks them (`Indexes::fork`), so that searches go on in those that are there.
//!
//! Going back to a
//! saved state takes out the entries of rows that came since and puts back those of rows that went.
//! That must not fail; should memory or I/O fail in it nevertheless, the indexes are marked stale
//! and built again from the rows before they are used next.
//!
//! **Cost**: an entry is found in about a microsecond when its page is in memory; the entries of a
//! batch are sorted first, so that neighbours meet the same page.

mod apply;
mod byte_string;
mod conflict;
mod decoder;
mod encoder;
mod entry;
mod lookup;
mod search;

pub(crate) use apply::{Rows, Statement, build, rebuild, restore, verify};
pub use conflict::{Conflict, Conflicts, Repeats};
pub use entry::entry;
pub use lookup::{Lookup, Place, Step};
pub use search::Search;

use std::ops::Deref;
use std::sync::Arc;

use mayfly_space::{Account, AccountOptions};

use crate::column_page::{Columns, StoredRows};
use crate::definition::{Definition, Key};
use crate::error::{Error, Result, ensure};
use crate::tree::{Payload, Tree};
use encoder::{EncodedKeys, KeyEncoder};

/// Bytes of a row number as a payload.
const NUMBER_BYTES: usize = size_of::<u64>();
/// Memory that is kept from one statement to the next; it is not accounted for.
const KEPT_BYTES_MAX: usize = 16 << 10;

/// All indexes of a table.
#[derive(Default)]
pub(crate) struct Indexes {
    indexes: Vec<Index>,
    /// Memory for the entries of a statement.
    encoded: Vec<EncodedKeys>,
    /// Whether entries are missing or left over.
    is_stale: bool,
    /// Whether entries are being changed: a panic in between leaves it so.
    is_changing: bool,
}

struct Index {
    tree: Tree,
    layout: Arc<IndexLayout>,
}

/// What does not change of an index, nor does it differ in its forks.
struct IndexLayout {
    name: String,
    encoder: KeyEncoder,
    /// The columns of the key.
    columns: Vec<usize>,
    /// How much of them the key keeps.
    prefixes: Vec<Option<u32>>,
}

impl Deref for Index {
    type Target = IndexLayout;

    fn deref(&self) -> &IndexLayout {
        &self.layout
    }
}

/// Rows of a page whose entries come or go.
pub(crate) struct KeyedRows<'a> {
    pub(crate) page: StoredRows<'a>,
    pub(crate) slots: Vec<u32>,
    /// The indexes whose entries these are; `None` for all.
    pub(crate) only: Option<&'a [usize]>,
}

impl Indexes {
    /// The indexes of an empty table, which have one account below the table's.
    pub(crate) fn new(definition: &Definition, account: &Account) -> Self {
        let index = |key: &Key, account: &Account| {
            let payload_bytes = if key.is_unique() { NUMBER_BYTES } else { 0 };
            let layout = IndexLayout {
                name: key.name.clone(),
                encoder: KeyEncoder::new(key, &definition.columns),
                columns: key.parts.iter().map(|part| part.column).collect(),
                prefixes: key.parts.iter().map(|part| part.prefix).collect(),
            };
            Index {
                tree: Tree::new(account, payload_bytes),
                layout: Arc::new(layout),
            }
        };
        let mut indexes = Vec::with_capacity(definition.keys.len());
        if !definition.keys.is_empty() {
            let account = account.child("keys", AccountOptions::default());
            indexes.extend(definition.keys.iter().map(|key| index(key, &account)));
        }
        Self {
            indexes,
            is_stale: false,
            is_changing: false,
            encoded: Vec::new(),
        }
    }

    /// Indexes with the same entries; see [`Tree::fork`].
    pub(crate) fn fork(&self) -> Self {
        let index = |index: &Index| Index {
            tree: index.tree.fork(),
            layout: Arc::clone(&index.layout),
        };
        Self {
            indexes: self.indexes.iter().map(index).collect(),
            is_stale: self.is_stale(),
            is_changing: false,
            encoded: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale || self.is_changing
    }

    /// Entries and rows go apart until [`Indexes::end_change`].
    pub(crate) fn begin_change(&mut self) {
        self.is_changing = true;
    }

    /// Entries and rows belong together again.
    pub(crate) fn end_change(&mut self) {
        self.is_changing = false;
    }

    pub(crate) fn mark_stale(&mut self) {
        self.is_stale = true;
    }

    fn mark_whole(&mut self) {
        self.is_stale = false;
        self.is_changing = false;
    }

    /// Takes the entries of indexes of another table with the same rows, which loses them. All
    /// others are there.
    pub(crate) fn take_over(
        &mut self,
        other: &mut Indexes,
        shared: impl Iterator<Item = (usize, usize)>,
    ) {
        let was_stale = other.is_stale();
        for (own, others) in shared {
            std::mem::swap(&mut self.indexes[own].tree, &mut other.indexes[others].tree);
            other.is_stale = true;
            self.is_stale = was_stale;
        }
    }

    /// Takes out all entries; the indexes are those of an empty table.
    pub(crate) fn clear(&mut self) {
        for index in &mut self.indexes {
            index.tree.clear();
        }
        self.mark_whole();
    }

    /// Adds the entries of some rows, all or none.
    ///
    /// # Errors
    /// [`Error::DuplicateEntry`] for the first row, and its first key, that another row has; if
    /// memory, disk or I/O fail.
    pub(crate) fn insert(&mut self, rows: &KeyedRows<'_>) -> Result<()> {
        let all = self.encoded(rows)?;
        let result = self.insert_encoded(rows, &all);
        self.keep(all);
        result
    }

    fn insert_encoded(&mut self, rows: &KeyedRows<'_>, all: &[EncodedKeys]) -> Result<()> {
        for (at, keys) in all.iter().enumerate() {
            let Err((done, stop)) = self.indexes[at].insert_all(keys, keys.order()) else {
                continue;
            };
            self.take_back(at, keys, &keys.order()[..done]);
            for (earlier, keys) in all[..at].iter().enumerate() {
                self.take_back(earlier, keys, keys.order());
            }
            return Err(match stop {
                Stop::Duplicate => self.first_duplicate(rows, all)?,
                Stop::Failed(error) => error,
            });
        }
        Ok(())
    }

    /// The error of the first row that meets another one, in the order of the rows.
    fn first_duplicate(&mut self, rows: &KeyedRows<'_>, all: &[EncodedKeys]) -> Result<Error> {
        let mut done = Vec::new();
        let mut found = None;
        'rows: for row in 0..rows.slots.len() {
            for (at, keys) in all.iter().enumerate().filter(|(_, keys)| keys.len() > 0) {
                match self.indexes[at].insert_all(keys, &[row as u32]) {
                    Ok(()) => done.push((at, row as u32)),
                    Err((_, Stop::Duplicate)) => {
                        found = Some(self.duplicate(at, rows, row));
                        break 'rows;
                    }
                    Err((_, Stop::Failed(error))) => {
                        found = Some(Err(error));
                        break 'rows;
                    }
                }
            }
        }
        for (at, row) in done {
            self.take_back(at, &all[at], &[row]);
        }
        found.unwrap_or(Err(Error::CorruptPage {
            what: "a duplicate key that no row has",
        }))
    }

    fn duplicate(&self, index: usize, rows: &KeyedRows<'_>, row: usize) -> Result<Error> {
        let index = &self.indexes[index];
        let row = rows.page.decode(&index.columns, &[rows.slots[row]])?;
        let entry = entry(&row, index.prefixes.iter().copied())?;
        Ok(Error::DuplicateEntry {
            key: index.name.clone(),
            entry: Box::new(entry),
        })
    }

    /// Takes out the entries of some rows, all or none. Needs no memory but for pages that are
    /// read.
    pub(crate) fn remove(&mut self, rows: &KeyedRows<'_>) -> Result<()> {
        let all = self.encoded(rows)?;
        let result = self.remove_encoded(&all);
        self.keep(all);
        result
    }

    fn remove_encoded(&mut self, all: &[EncodedKeys]) -> Result<()> {
        for (at, keys) in all.iter().enumerate() {
            let Err((done, error)) = self.indexes[at].remove_all(keys, keys.order()) else {
                continue;
            };
            self.put_back(at, keys, &keys.order()[..done]);
            for (earlier, keys) in all[..at].iter().enumerate() {
                self.put_back(earlier, keys, keys.order());
            }
            return Err(error);
        }
        Ok(())
    }

    /// The indexes on some of these columns.
    fn of_columns(&self, columns: &Columns) -> Vec<usize> {
        let indexes = self.indexes.iter().enumerate();
        let are_of = |index: &Index| index.columns.iter().any(|column| columns.has(*column));
        let those = indexes.filter(|(_, index)| are_of(index));
        those.map(|(at, _)| at).collect()
    }

    /// Checks that rows have their entries.
    fn verify_rows(&mut self, rows: &KeyedRows<'_>) -> Result<()> {
        let all = self.encoded(rows)?;
        for (index, keys) in self.indexes.iter().zip(&all) {
            ensure(keys.len() == rows.slots.len(), "rows without a key")?;
            for row in 0..keys.len() {
                let found = index.tree.get(keys.key(row))?;
                let found = found.map(|payload| payload.row_id());
                let number = (index.tree.payload_bytes() > 0).then(|| keys.number(row));
                ensure(found == Some(number), "a row without its entry in an index")?;
            }
        }
        self.keep(all);
        Ok(())
    }

    /// Checks that the trees are whole and have so many entries.
    fn verify_trees(&self, row_count: u64) -> Result<()> {
        for index in &self.indexes {
            index.tree.verify()?;
            ensure(
                index.tree.len() == row_count,
                "an index with other entries than those of the rows",
            )?;
        }
        Ok(())
    }

    fn take_back(&mut self, at: usize, keys: &EncodedKeys, order: &[u32]) {
        if self.indexes[at].remove_all(keys, order).is_err() {
            self.is_stale = true;
        }
    }

    fn put_back(&mut self, at: usize, keys: &EncodedKeys, order: &[u32]) {
        if self.indexes[at].insert_all(keys, order).is_err() {
            self.is_stale = true;
        }
    }

    /// The entries of some rows in each index.
    fn encoded(&mut self, rows: &KeyedRows<'_>) -> Result<Vec<EncodedKeys>> {
        let mut all = std::mem::take(&mut self.encoded);
        all.resize_with(self.indexes.len(), EncodedKeys::default);
        let numbers = rows.page.numbers()?;
        let number = |slot: usize| numbers.number(slot);
        let mut columns = Vec::new();
        for (at, (index, keys)) in self.indexes.iter().zip(&mut all).enumerate() {
            if rows.only.is_some_and(|only| !only.contains(&at)) {
                keys.clear();
                continue;
            }
            columns.clear();
            for column in &index.columns {
                columns.push(rows.page.column(*column)?);
            }
            let slots = rows.slots.iter().map(|slot| *slot as usize);
            index.encoder.encode(&columns, slots, number, keys);
        }
        Ok(all)
    }

    /// Keeps memory for the next rows, unless it is much.
    fn keep(&mut self, all: Vec<EncodedKeys>) {
        let bytes: usize = all.iter().map(EncodedKeys::heap_bytes).sum();
        if bytes <= KEPT_BYTES_MAX {
            self.encoded = all;
        }
    }
}

impl Index {
    /// Adds entries in some order; if it stops, how many were added before.
    fn insert_all(&mut self, keys: &EncodedKeys, order: &[u32]) -> Result<(), (usize, Stop)> {
        let has_payload = self.tree.payload_bytes() > 0;
        let mut writer = self.tree.writer();
        for (done, row) in order.iter().enumerate() {
            let row = *row as usize;
            let payload = match has_payload {
                true => Payload::from(keys.number(row)),
                false => Payload::default(),
            };
            match writer.insert(keys.key(row), &payload) {
                Ok(None) => {}
                Ok(Some(_)) => return Err((done, Stop::Duplicate)),
                Err(error) => return Err((done, Stop::Failed(error))),
            }
        }
        Ok(())
    }

    /// Takes out entries in some order; on an error, how many were taken out before.
    fn remove_all(&mut self, keys: &EncodedKeys, order: &[u32]) -> Result<(), (usize, Error)> {
        let sorted = order.iter().map(|row| keys.key(*row as usize));
        let mut done = 0;
        match self.tree.writer().remove_sorted(sorted, &mut done) {
            Ok(()) if done == order.len() => Ok(()),
            Ok(()) => {
                let what = "an index without the entry of a row";
                Err((done, Error::CorruptPage { what }))
            }
            Err(error) => Err((done, error)),
        }
    }
}

/// Why entries cannot be added.
enum Stop {
    /// There is one of this key.
    Duplicate,
    Failed(Error),
}
