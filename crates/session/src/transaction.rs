//! What a transaction changed, to be undone.
//!
//! Private tables are saved before their first change, and before their first change behind each
//! savepoint; rolling back puts the states back, newest first. Shared tables cannot be rolled back,
//! as tables of a non-transactional engine: that is told by warning 1196.
//!
//! **Cost**: a saved state is a list of pages; pages that were removed since stay until the end of
//! the transaction.

use std::sync::Arc;

use mayfly_sql::statement::Access;
use mayfly_table::{Result, Saved, Table};

/// The transaction of a connection; there may be none.
#[derive(Default)]
pub(crate) struct Transaction {
    is_begun: bool,
    access: Option<Access>,
    has_changed_shared: bool,
    saved: Vec<Saved>,
    /// Names, with the number of states that were saved before.
    savepoints: Vec<(String, usize)>,
}

impl Transaction {
    /// BEGIN; what was open is committed.
    pub(crate) fn begin(&mut self, access: Option<Access>) {
        self.commit();
        self.is_begun = true;
        self.access = access;
    }

    /// What it said of itself.
    pub(crate) fn access(&self) -> Option<Access> {
        self.access
    }

    /// Whether BEGIN was given, or CHAIN.
    pub(crate) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Whether it was begun, or there is something to commit.
    pub(crate) fn is_open(&self) -> bool {
        self.is_begun || self.has_changed_shared || !self.saved.is_empty()
    }

    pub(crate) fn commit(&mut self) {
        *self = Transaction::default();
    }

    /// Undoes what can be undone; whether something cannot.
    pub(crate) fn rollback(&mut self) -> bool {
        let mut ended = std::mem::take(self);
        ended.restore(0);
        ended.has_changed_shared
    }

    pub(crate) fn savepoint(&mut self, name: &str) {
        // One of this name goes; those behind it stay.
        if let Some(place) = self.place(name) {
            self.savepoints.remove(place);
        }
        self.savepoints.push((name.to_owned(), self.saved.len()));
    }

    /// Undoes what was done behind a savepoint; `None` if there is none, else whether something
    /// cannot be undone.
    pub(crate) fn rollback_to(&mut self, name: &str) -> Option<bool> {
        let place = self.place(name)?;
        self.savepoints.truncate(place + 1);
        self.restore(self.savepoints[place].1);
        Some(self.has_changed_shared)
    }

    /// Forgets a savepoint and those behind it; whether there was one.
    pub(crate) fn release(&mut self, name: &str) -> bool {
        match self.place(name) {
            Some(place) => {
                self.savepoints.truncate(place);
                true
            }
            None => false,
        }
    }

    /// Saves a private table, once behind each savepoint.
    ///
    /// # Errors
    /// If there is no memory for its state.
    pub(crate) fn save(&mut self, table: &Arc<Table>) -> Result<()> {
        let since = self.savepoints.last().map_or(0, |(_, saved)| *saved);
        let mut newest = self.saved[since..].iter();
        if !newest.any(|saved| Arc::ptr_eq(saved.table(), table)) {
            self.saved.push(table.save()?);
        }
        Ok(())
    }

    pub(crate) fn has_changed_shared(&mut self) {
        self.has_changed_shared = true;
    }

    fn restore(&mut self, count: usize) {
        while self.saved.len() > count {
            if let Some(saved) = self.saved.pop() {
                saved.restore();
            }
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.savepoints
            .iter()
            .rposition(|(found, _)| found.eq_ignore_ascii_case(name))
    }
}
