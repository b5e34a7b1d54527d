//! How what a statement did becomes part of its table: all or nothing.
//!
//! **Owns** the order of the steps. Everything that can fail comes first; what can be seen comes
//! last, in one step that cannot fail.
//!
//! ```text
//!   little     under the lock of the table: pages and entries are changed in place
//!   much       in a draft of the table (`super::draft`), which takes its place in one step
//! ```
//!
//! So no reader waits longer for the lock than a few entries take. A table that belongs to one
//! session has no other readers, and is always changed in place.

use std::sync::Arc;
use std::time::SystemTime;

use super::Table;
use crate::appender::Pending;
use crate::change::Removal;
use crate::error::Result;
use crate::journal::{Mutation, RowChange};
use crate::keys::{self, Indexes};
use crate::patch::Patches;
use crate::replace::ReplacedPages;
use crate::table_page::TablePage;

/// Entries of keys that are changed in place while readers wait: about half a millisecond.
const IN_PLACE_MAX: u64 = 512;

/// What a statement does to the rows of a table.
pub(crate) struct StatementRows {
    /// Those that come.
    pub(crate) pending: Pending,
    /// Those that go.
    pub(crate) removal: Removal,
    /// Pages that were written again.
    pub(crate) replaced: ReplacedPages,
    /// Values that are written over others.
    pub(crate) patches: Patches,
    /// The version that it saw.
    pub(crate) seen: Option<u64>,
}

impl StatementRows {
    /// Rows that come, and nothing else.
    pub(crate) fn of_pending(pending: Pending) -> StatementRows {
        StatementRows {
            pending,
            removal: Removal::default(),
            replaced: ReplacedPages::new(),
            patches: Patches::default(),
            seen: None,
        }
    }

    /// About how many entries come and go, where rows have so many keys and so many patched ones
    /// have to move. Rows that leave a page without keys count as well: the page is looked at.
    fn entry_count(&self, keys: u64, keyed: &[usize], moving: u64) -> u64 {
        let mut rows = self.removal.row_count + moving;
        for replaced in self.replaced.values() {
            let is_keyed = keyed.iter().any(|column| replaced.differing.has(*column));
            rows += if is_keyed { replaced.slots.count() } else { 1 };
        }
        rows += self.patches.row_count(|_, patch| patch.keyed.is_some());
        self.pending.writer.row_count * keys + rows * keys.max(1)
    }
}

impl Table {
    /// Makes what a statement did part of the table, all or nothing.
    pub(crate) fn commit(self: &Arc<Self>, rows: StatementRows) -> Result<()> {
        let keys = self.definition.keys.len() as u64;
        let is_little = |moving| {
            let keyed = &self.layout().keyed;
            rows.entry_count(keys, keyed, moving) <= IN_PLACE_MAX
        };
        let stays_short = || {
            let patched = rows.patches.row_count(|_, _| true);
            is_little(patched) || patched > 0 && is_little(self.moving_count(&rows.patches))
        };
        if self.turns.is_none() || stays_short() {
            return self.absorb(rows);
        }
        let draft = self.draft()?;
        draft.table().absorb(rows)?;
        draft.publish()
    }

    /// How many patched rows would move, because somebody else holds their pages.
    fn moving_count(&self, patches: &Patches) -> u64 {
        patches.moving_count(&mut self.state().content.pages)
    }

    /// Makes the rows of a writer part of the table, all or none.
    pub(super) fn absorb_rows(&self, pending: Pending) -> Result<()> {
        self.absorb(StatementRows::of_pending(pending))
    }

    /// Changes the table in place, all or nothing. Readers wait until it is done.
    pub(crate) fn absorb(&self, rows: StatementRows) -> Result<()> {
        let StatementRows {
            mut pending,
            mut removal,
            replaced,
            mut patches,
            seen,
        } = rows;
        let mut state = self.state();
        let is_other = |seen: u64| seen != state.version;
        if state.is_closed() || seen.or(pending.version()).is_some_and(is_other) {
            return Err(self.changed());
        }
        let state = &mut *state;
        let format = &*self.layout().format;
        let pages = &mut state.content.pages;
        let pinned = match patches.is_empty() {
            true => Vec::new(),
            false => patches.pin(format, pages, &mut removal, &mut pending)?,
        };
        let next_number = pending.next_number();
        let writer = pending.writer;
        let content = &mut state.content;
        let next = content.next(&self.account, &writer, &removal, &replaced, &patches)?;
        if !self.definition.keys.is_empty() {
            let indexes = self.indexes(&mut state.indexes, &state.content)?;
            let pages: Vec<TablePage> = writer.pages.iter().cloned().map(From::from).collect();
            let statement = keys::Statement {
                before: state.content.rows(),
                removal: &removal,
                replaced: &replaced,
                patches: &patches,
                written: keys::Rows {
                    pages: &pages,
                    tail: &writer.tail,
                },
            };
            indexes.begin_change();
            if let Err(error) = statement.apply(indexes, format) {
                indexes.end_change();
                return Err(error);
            }
        }

        let comes_or_goes = writer.row_count > 0 || removal.row_count > 0;
        let changes = comes_or_goes || !replaced.is_empty() || !patches.is_empty();
        if changes {
            let told = self.journal.record(&Mutation::Rows(RowChange {
                version: state.version + 1,
                auto_increment: self.auto_increment(),
                width: self.columns().len(),
                writer: &writer,
                removal: &removal,
                replaced: &replaced,
                patches: &patches,
                pages: &state.content.pages,
            }));
            if told.is_err() {
                // The entries of its rows are in the keys.
                state.indexes.iter_mut().for_each(Indexes::mark_stale);
                return told;
            }
        }

        // Nothing below can fail.
        state.content.replace(next);
        patches.write(pinned);
        if let Some(indexes) = &mut state.indexes {
            indexes.end_change();
        }
        if changes {
            state.next_number = next_number.unwrap_or_default();
            state.version += 1;
            state.updated = Some(SystemTime::now());
        }
        Ok(())
    }
}
