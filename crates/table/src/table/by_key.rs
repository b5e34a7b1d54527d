//! Ways to rows by their keys, for operators that read while they run.
//!
//! A key leads to the rows as they are now; an operator wants those of its snapshot. Each call says
//! which snapshot it means and is refused when the table has changed since, so that nobody takes
//! the one for the other.
//!
//! What takes little is asked under the lock of the table. Anything else is asked of a fork of the
//! keys, so that nobody waits for it.

use std::sync::MutexGuard;

use crate::error::Result;
use crate::keys::{Indexes, Lookup, Place, Search, Step};
use crate::snapshot::TableSnapshot;
use crate::table::{State, Table};

use arrow_array::ArrayRef;

/// Values that are looked up under the lock of a shared table, and rows that they may find: about
/// a tenth of a millisecond.
pub(super) const ASKED_MAX: usize = 64;
pub(super) const FOUND_MAX: usize = 256;

/// Whether a batch of values is looked up in no time.
fn is_little(values: &[ArrayRef]) -> bool {
    values
        .first()
        .is_none_or(|values| values.len() <= ASKED_MAX)
}

/// What comes of asking a key for the rows of a snapshot.
#[derive(Debug)]
pub enum ByKey<T> {
    /// The answer.
    Found(T),
    /// There are more rows than was allowed.
    TooMany,
    /// The table has changed since the snapshot: only a scan finds its rows.
    Changed,
}

impl Table {
    /// The rows of a snapshot that have certain values in the first parts of a key, for each row
    /// of a batch of such values; they are of the types of the columns. NULL finds nothing. A part
    /// that is kept to a prefix finds too many rows; who asks filters them.
    ///
    /// # Errors
    /// If memory or I/O fail.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn lookup(
        &self,
        seen: &TableSnapshot,
        key: usize,
        values: &[ArrayRef],
        limit: usize,
    ) -> Result<ByKey<Lookup>> {
        let is_little = is_little(values) && limit <= FOUND_MAX;
        self.of_snapshot(seen, is_little, |indexes| {
            indexes.lookup(key, values, limit)
        })
    }

    /// The numbers of the rows of a snapshot that any row of such a batch finds, each of them once.
    ///
    /// # Errors
    /// If memory or I/O fail.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn lookup_any(
        &self,
        seen: &TableSnapshot,
        key: usize,
        values: &[ArrayRef],
        limit: usize,
    ) -> Result<ByKey<Vec<u64>>> {
        let is_little = is_little(values) && limit <= FOUND_MAX;
        self.of_snapshot(seen, is_little, |indexes| {
            indexes.lookup_any(key, values, limit)
        })
    }

    /// The numbers of the rows of a snapshot that searches of one key find, each of them once.
    ///
    /// # Errors
    /// If memory or I/O fail.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn search_seen(
        &self,
        seen: &TableSnapshot,
        searches: &[Search],
        limit: usize,
    ) -> Result<ByKey<Vec<u64>>> {
        let is_little = searches.len() <= ASKED_MAX && limit <= FOUND_MAX;
        self.of_snapshot(seen, is_little, |indexes| indexes.search(searches, limit))
    }

    /// The next rows of a snapshot that a search finds, in the order of the key or against it; from
    /// the beginning without a place.
    ///
    /// # Errors
    /// If memory or I/O fail.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn walk(
        &self,
        seen: &TableSnapshot,
        search: &Search,
        is_reversed: bool,
        from: Option<&Place>,
        count: usize,
    ) -> Result<ByKey<Step>> {
        self.of_snapshot(seen, count <= FOUND_MAX, |indexes| {
            indexes.walk(search, is_reversed, from, count).map(Some)
        })
    }

    /// What the indexes answer about a snapshot; `None` are too many rows.
    fn of_snapshot<T>(
        &self,
        seen: &TableSnapshot,
        is_little: bool,
        ask: impl FnOnce(&Indexes) -> Result<Option<T>>,
    ) -> Result<ByKey<T>> {
        let state = self.mended()?;
        if state.version != seen.version() {
            return Ok(ByKey::Changed);
        }
        let found = self.ask(state, is_little, ask)?;
        Ok(found.map_or(ByKey::TooMany, ByKey::Found))
    }

    /// What the indexes answer as they are now.
    pub(super) fn ask<T>(
        &self,
        mut state: MutexGuard<'_, State>,
        is_little: bool,
        ask: impl FnOnce(&Indexes) -> Result<T>,
    ) -> Result<T> {
        let indexes = self.indexes_of(&mut state)?;
        if is_little || self.turns.is_none() {
            return ask(indexes);
        }
        let fork = indexes.fork();
        drop(state);
        ask(&fork)
    }

    /// Whether a key holds some columns in full.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn covers(&self, key: usize, columns: &[usize]) -> bool {
        let of_table = &self.definition.keys[key];
        let mut state = self.state();
        let indexes = state.indexes.get_or_insert_with(|| self.empty_indexes());
        indexes.covering(of_table, key, columns).is_some()
    }

    /// The values of some columns in the rows that searches of one key find, read off the key, and
    /// how many rows those are; `None` when they are more than `limit`, or the key does not hold
    /// the columns in full.
    ///
    /// # Errors
    /// If memory or I/O fail.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn search_values(
        &self,
        searches: &[Search],
        columns: &[usize],
        limit: usize,
    ) -> Result<Option<(Vec<ArrayRef>, usize)>> {
        let mut state = self.mended()?;
        let Some(key) = searches.first().map(|search| search.key) else {
            return Ok(None);
        };
        let of_table = &self.definition.keys[key];
        let indexes = self.indexes_of(&mut state)?;
        match indexes.covering(of_table, key, columns) {
            Some(parts) => {
                let is_little = searches.len() <= ASKED_MAX && limit <= FOUND_MAX;
                self.ask(state, is_little, |indexes| {
                    indexes.values(searches, &parts, limit)
                })
            }
            None => Ok(None),
        }
    }

    /// About how many different values the first `parts` columns of a key have, NULL among them:
    /// exact for few values and for a unique key without NULL.
    ///
    /// # Errors
    /// If memory or I/O fail.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn distinct(&self, key: usize, parts: usize) -> Result<u64> {
        self.ask(self.mended()?, false, |indexes| {
            indexes.distinct(key, parts)
        })
    }

    /// Bytes of all keys, in memory and on disk.
    pub fn index_bytes(&self) -> u64 {
        self.state().indexes.as_ref().map_or(0, Indexes::bytes)
    }
}
