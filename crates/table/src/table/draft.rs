//! A table as one statement makes it, which nobody else sees until it is done.
//!
//! **Owns** a state of the table that is changed beside the one that everybody reads: the same
//! pages, and forks of the keys. Whatever changes is a copy, so the table itself stays as it is,
//! and a statement that fails has nothing to put back. [`publish_all`] puts the drafts of a
//! statement in the places of their tables, all of them or none, in one step that neither reads nor
//! writes a page.
//!
//! ```text
//!   table   pages  p1 p2 p3        keys  a b c            read by everybody
//!                  |  |                  | |
//!   draft   pages  p1 p2 p3' p4    keys  a b c' d         changed by one statement
//! ```
//!
//! **Never** is beside another one: a table that has a draft refuses every other change. In the
//! sessions whoever makes a draft has his turn (`crate::turn`), and nobody meets that.
//!
//! **Cost**: a copy of each page of a key that changes, and of the list of pages.

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, OnceLock};

use super::{State, Table};
use crate::error::Result;
use crate::keys::Indexes;

/// A table that its statement alone can see, until it is published. Dropping it forgets all that
/// the statement did.
pub struct Draft {
    of: Arc<Table>,
    table: Arc<Table>,
    /// The version that it begins with.
    version: u64,
    /// Keeps others from changing the table.
    _mark: Arc<()>,
}

impl Table {
    /// A draft of the table as it is now.
    ///
    /// # Errors
    /// [`Error::Changed`](crate::Error::Changed) if there is another one, or if another table has
    /// taken the place of this one; if there is no memory for the rows that are not in pages.
    pub fn draft(self: &Arc<Self>) -> Result<Draft> {
        let mut state = self.state();
        if state.is_closed() {
            return Err(self.changed());
        }
        let content = state.content.saved(&self.account)?;
        let indexes = state.indexes.as_ref().map(Indexes::fork);
        let mark = Arc::new(());
        state.draft = Arc::downgrade(&mark);
        let drafted = State {
            version: state.version,
            updated: state.updated,
            ..State::new(content, state.next_number, indexes)
        };
        let version = state.version;
        drop(state);
        let table = Table {
            name: self.name.clone(),
            definition: Arc::clone(&self.definition),
            layout: OnceLock::from(self.layout().clone()),
            created: self.created,
            journal: Arc::clone(&self.journal),
            turns: None,
            state: Mutex::new(drafted),
            mending: Mutex::default(),
            auto_increment: Arc::clone(&self.auto_increment),
            account: self.account.clone(),
        };
        Ok(Draft {
            of: Arc::clone(self),
            table: Arc::new(table),
            version,
            _mark: mark,
        })
    }
}

impl Draft {
    /// The draft, to be read and changed as a table of one's own.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The table that it is a draft of.
    pub fn of(&self) -> &Arc<Table> {
        &self.of
    }

    /// Makes the table what the draft is.
    ///
    /// # Errors
    /// As [`publish_all`].
    pub fn publish(self) -> Result<()> {
        publish_all(vec![self])
    }
}

/// Makes tables what their drafts are: all of them or none. Each is the only draft of its table.
///
/// # Errors
/// [`Error::Changed`](crate::Error::Changed) if a table was retired meanwhile.
pub fn publish_all(mut drafts: Vec<Draft>) -> Result<()> {
    // The order in which everybody locks several tables.
    drafts.sort_by_key(|draft| Arc::as_ptr(&draft.of).addr());
    let mut states = Vec::with_capacity(drafts.len());
    for draft in &drafts {
        let state = draft.of.state();
        if state.is_retired || state.version != draft.version {
            return Err(draft.of.changed());
        }
        states.push(state);
    }
    // What the tables were lies in the drafts then, and is freed with them, behind the locks.
    for (draft, state) in drafts.iter().zip(&mut states) {
        let mut drafted = draft.table.state();
        mem::swap(&mut state.content, &mut drafted.content);
        mem::swap(&mut state.indexes, &mut drafted.indexes);
        state.version = drafted.version;
        state.next_number = drafted.next_number;
        state.updated = drafted.updated;
        drafted.is_retired = true;
    }
    Ok(())
}

impl Drop for Draft {
    /// A draft that was not published: what its journal was told of it did not happen.
    fn drop(&mut self) {
        let mut drafted = self.table.state();
        let told = drafted.version;
        if !mem::replace(&mut drafted.is_retired, true) && told != self.version {
            let mut state = self.of.state();
            self.of.journal.undo(self.version, told + 1);
            state.version = told + 1;
        }
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}
