//! A table that takes the place of another and keeps its pages.
//!
//! A change of words (a name, a default, a key) leaves the rows as they lie. The successor is made
//! beside the old table and shares its pages; keys that are new are built before anybody sees it,
//! keys that stay are handed over when the old table is retired.
//!
//! **Cost**: a copy of the list of pages, and the entries of new keys.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;

use super::{State, Table};
use crate::definition::{Definition, Key};
use crate::error::Result;
use crate::keys;
use crate::rows::StopFlag;
use crate::snapshot::TableSnapshot;

impl Table {
    /// A table of another definition with the rows of this one, and the rows as they are now;
    /// `None` where rows would have to be written again.
    ///
    /// Generated columns keep their values, and nobody looks whether rows obey checks.
    ///
    /// # Errors
    /// [`Error::DuplicateEntry`](crate::Error::DuplicateEntry) in a unique key that is new;
    /// [`Error::Stopped`](crate::Error::Stopped) where the flag is raised while new keys are built;
    /// if memory, disk or I/O fail.
    pub fn successor(
        &self,
        name: impl Into<String>,
        definition: &Definition,
        stop: &StopFlag,
    ) -> Result<Option<(Table, TableSnapshot)>> {
        if !lies_alike(&self.definition, definition) {
            return Ok(None);
        }
        let (content, next_number, seen) = {
            let state = self.state();
            let content = state.content.saved(&self.account)?;
            (content, state.next_number, self.snapshot_of(&state))
        };
        let mut indexes = keys::Indexes::new(definition, &self.account);
        let is_new = |key: &&(usize, Option<usize>)| key.1.is_none();
        let shared = shared_keys(&self.definition, definition);
        let new: Vec<usize> = shared.iter().filter(is_new).map(|(key, _)| *key).collect();
        let format = &self.layout().format;
        keys::build(&mut indexes, format, content.rows(), &new, stop)?;
        if new.len() < definition.keys.len() {
            // Until they are handed over.
            indexes.mark_stale();
        }
        let table = Table {
            name: name.into(),
            definition: Arc::new(definition.clone()),
            layout: OnceLock::new(),
            created: SystemTime::now(),
            journal: Arc::from(self.journal.successor()),
            turns: self.turns.clone(),
            state: Mutex::new(State {
                updated: self.updated(),
                ..State::new(content, next_number, Some(indexes))
            }),
            mending: Mutex::default(),
            auto_increment: Arc::new(AtomicU64::new(self.auto_increment())),
            account: self.account.clone(),
        };
        Ok(Some((table, seen)))
    }

    /// How many keys a successor of this definition would build.
    pub fn keys_to_build(&self, definition: &Definition) -> usize {
        let shared = shared_keys(&self.definition, definition);
        shared.iter().filter(|(_, old)| old.is_none()).count()
    }

    /// Hands the keys that both have over to a successor, before anybody else sees it. This table
    /// builds its own again should it be searched.
    pub fn hand_over_keys(&self, successor: &Table) {
        let (mut old, mut new) = (self.state(), successor.state());
        let shared = shared_keys(&self.definition, &successor.definition);
        let shared = shared
            .into_iter()
            .filter_map(|(new, old)| Some((new, old?)));
        let old = old.indexes.get_or_insert_with(|| self.empty_indexes());
        let new = new.indexes.get_or_insert_with(|| successor.empty_indexes());
        new.take_over(old, shared);
    }
}

/// Whether rows of one definition lie in pages as those of another.
fn lies_alike(old: &Definition, new: &Definition) -> bool {
    let schemas = (old.schema(), new.schema());
    let mut fields = schemas.0.fields().iter().zip(schemas.1.fields());
    old.columns.len() == new.columns.len()
        && old.is_compressed == new.is_compressed
        && old.keys.is_empty() == new.keys.is_empty()
        && fields.all(|(old, new)| {
            old.data_type() == new.data_type() && old.is_nullable() <= new.is_nullable()
        })
}

/// For each key of a definition, the one of another that has the same entries.
fn shared_keys(old: &Definition, new: &Definition) -> Vec<(usize, Option<usize>)> {
    let is_same_column = |column: usize| {
        let (old, new) = (&old.columns[column], &new.columns[column]);
        let types = (&old.column_type, old.collation, old.is_nullable);
        types == (&new.column_type, new.collation, new.is_nullable)
    };
    let is_same = |key: &Key, other: &Key| {
        key.parts == other.parts
            && key.is_unique() == other.is_unique()
            && key.parts.iter().all(|part| is_same_column(part.column))
    };
    let mut free: Vec<usize> = (0..old.keys.len()).collect();
    let mut shared = Vec::with_capacity(new.keys.len());
    for (place, key) in new.keys.iter().enumerate() {
        let found = free
            .iter()
            .position(|other| is_same(key, &old.keys[*other]));
        shared.push((place, found.map(|found| free.remove(found))));
    }
    shared
}
