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
use crate::error::{Error, Result};
use crate::journal::{Mutation, RowChange};
use crate::keys::{self, Indexes};
use crate::patch::Patches;
use crate::removal::Removal;
use crate::replace::ReplacedPages;
use crate::rows::StopFlag;
use crate::table_page::TablePage;

/// Entries of keys that are changed in place while readers wait: about half a millisecond.
const IN_PLACE_MAX: u64 = 512;
/// Entries that come and go in a fork of the keys. A statement that fails or is stopped then drops
/// the fork, where it would have to undo as much as it has done. Where there is no room for the
/// fork they are changed in place.
const FORKED_MIN: u64 = 32 << 10;

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
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) where the flag of the statement is raised, among
    /// all others; nothing has happened then.
    pub(crate) fn absorb(&self, rows: StatementRows) -> Result<()> {
        let (keys, keyed) = (self.definition.keys.len() as u64, &self.layout().keyed);
        let is_much = keys > 0 && rows.entry_count(keys, keyed, 0) >= FORKED_MIN;
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
        let (writer, stop) = (pending.writer, pending.stop);
        let stop = stop.as_ref();
        StopFlag::check_any(stop)?;
        let (content, account) = (&mut state.content, &self.account);
        let next = content.next(account, &writer, &removal, &replaced, &patches, stop)?;
        let mut forked = None;
        if !self.definition.keys.is_empty() {
            let indexes = self.indexes(&mut state.indexes, &state.content, stop)?;
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
            if is_much {
                let mut fork = indexes.fork();
                match statement.apply_to_fork(&mut fork, format, stop) {
                    Ok(()) => forked = Some(fork),
                    // It has a second copy of each page that it changes; there is room for one.
                    Err(Error::Space(_)) => drop(fork),
                    Err(error) => return Err(error),
                }
            }
            if forked.is_none() {
                indexes.begin_change();
                if let Err(error) = statement.apply(indexes, format, stop) {
                    indexes.end_change();
                    return Err(error);
                }
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
                if forked.is_none() {
                    // The entries of its rows are in the keys.
                    state.indexes.iter_mut().for_each(Indexes::mark_stale);
                }
                return told;
            }
        }

        // Nothing below can fail, nor is it stopped.
        state.content.replace(next);
        patches.write(pinned);
        if forked.is_some() {
            state.indexes = forked;
        }
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
