//! User tables: rows come at the end and go anywhere.
//!
//! **Owns** the rows of one table: full column pages, and a tail on the heap. A tiny table is all
//! tail: it has no page and takes no lock but its own mutex (and that of the arena, for a moment,
//! when its heap is reserved: 330 instructions).
//!
//! **Never** shows a part of a statement's rows: an [`Appender`] fills pages that nobody else can
//! see, and hands them over at once when it commits. A snapshot holds on to the pages it saw, so a
//! statement may read the table that it fills, and TRUNCATE or DROP do not disturb a reader; the
//! pages are freed when the last snapshot that can see them goes.
//!
//! ```text
//! pages: [ full | full | full | small | smaller ]   tail: [ segment | segment | row ]
//!          evictable, second chance                         heap, at most 16 KiB, reserved
//! ```
//!
//! When the tail outgrows its limit it becomes a page. Small pages at the end are rewritten with
//! their successors as long as they are at most twice as long, so a table that grows row by row
//! consists of full pages but for the last few, and each row is copied a few times only.
//!
//! A row that is removed leaves its bit; a page goes with its last row, and one that is mostly
//! removed rows is written again without them. An updated row is removed and appended, unless its
//! values fit where the old ones stand and nobody else can see its page. Since nothing changes that
//! anybody else holds, going back is free: a [`Saved`] state is a list of pages, and putting it
//! back undoes whatever happened since.
//!
//! **Cost**: an append of one row is one encoded segment (about a microsecond for few columns).

mod by_key;
mod commit;
mod draft;
mod mend;
mod successor;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::SystemTime;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use mayfly_space::{Account, AccountOptions, Compression, Counters, NextUse};

use crate::appender::{Appender, Numbers, Pending};
use crate::change::Change;
use crate::column_page::Format;
use crate::content::Content;
use crate::definition::{Column, Definition};
use crate::error::{Error, Result};
use crate::journal::{Journal, Mutation, Unlogged};
use crate::keys::{self, Conflicts, Indexes, Repeats, Search};
use crate::patch;
use crate::rows::StopFlag;
use crate::sealed::Writer;
use crate::snapshot::{SnapshotParts, TableSnapshot};
use crate::turn::Turns;

pub use by_key::ByKey;
pub(crate) use commit::StatementRows;
pub use draft::{Draft, publish_all};

/// A table, shared by all who can name it.
pub struct Table {
    // Fixed.
    name: String,
    definition: Arc<Definition>,
    /// Made when rows come: many a table is created and dropped without one.
    layout: OnceLock<Layout>,
    created: SystemTime,
    /// Shared with drafts.
    journal: Arc<dyn Journal>,
    /// Where those wait who want to change it, if several sessions may.
    turns: Option<Turns>,
    // State.
    state: Mutex<State>,
    /// Held by who builds keys that lost an entry; before the state.
    mending: Mutex<()>,
    /// The AUTO_INCREMENT value that comes next; shared with drafts.
    auto_increment: Arc<AtomicU64>,
    // Resources.
    account: Account,
}

/// How the rows lie in pages.
#[derive(Clone)]
struct Layout {
    schema: SchemaRef,
    format: Arc<Format>,
    /// The columns of keys.
    keyed: Vec<usize>,
}

struct State {
    /// Another number after each change.
    version: u64,
    content: Content,
    /// The number of the row that comes next, where rows have numbers.
    next_number: u64,
    /// Made when somebody asks, as the layout.
    indexes: Option<Indexes>,
    updated: Option<SystemTime>,
    /// Whether another table has taken its place: nobody would see what is written.
    is_retired: bool,
    /// As long as it lives, somebody changes a draft of the table, and nobody else the table.
    draft: Weak<()>,
}

impl State {
    /// A state that nobody has seen.
    fn new(content: Content, next_number: u64, indexes: Option<Indexes>) -> State {
        State {
            version: 0,
            content,
            next_number,
            indexes,
            updated: None,
            is_retired: false,
            draft: Weak::new(),
        }
    }

    /// Whether somebody else has the table, or has taken its place.
    fn is_closed(&self) -> bool {
        self.is_retired || self.draft.strong_count() > 0
    }
}

impl Table {
    /// An empty table whose pages belong to a child of this account.
    pub fn new(
        name: impl Into<String>,
        definition: impl Into<Definition>,
        account: &Account,
    ) -> Self {
        Self::with_limits(name, definition, account, AccountOptions::default())
    }

    /// As [`Table::new`], with limits of the bytes that this table alone may take in memory and on
    /// disk.
    pub fn with_limits(
        name: impl Into<String>,
        definition: impl Into<Definition>,
        account: &Account,
        limits: AccountOptions,
    ) -> Self {
        Self::of(name, Arc::new(definition.into()), account, limits)
    }

    /// As [`Table::with_limits`], with a definition that other tables may have too.
    pub fn of(
        name: impl Into<String>,
        definition: Arc<Definition>,
        account: &Account,
        limits: AccountOptions,
    ) -> Self {
        let name = name.into();
        let limits = AccountOptions {
            compression: definition.is_compressed.then_some(Compression::Zstd),
            ..limits
        };
        let account = account.child(&name, limits);
        Self {
            name,
            layout: OnceLock::new(),
            definition,
            created: SystemTime::now(),
            journal: unlogged(),
            turns: None,
            state: Mutex::new(State::new(Content::default(), 0, None)),
            mending: Mutex::default(),
            auto_increment: Arc::new(AtomicU64::new(1)),
            account,
        }
    }

    /// The same table, whose mutations are told to a journal from now on.
    pub fn with_journal(mut self, journal: Box<dyn Journal>) -> Self {
        self.journal = Arc::from(journal);
        self
    }

    /// The same table, which several sessions may change, each in its turn.
    #[must_use]
    pub fn shared(self) -> Self {
        Self {
            turns: Some(Turns::default()),
            ..self
        }
    }

    /// The same table, which is to take the place of another: those who wait for that one wait for
    /// this one then.
    #[must_use]
    pub fn with_turns_of(self, other: &Table) -> Self {
        Self {
            turns: other.turns.clone(),
            ..self
        }
    }

    /// Where those wait who want to change the table; `None` if it belongs to one session.
    pub fn turns(&self) -> Option<&Turns> {
        self.turns.as_ref()
    }

    /// The name, without its database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What CREATE TABLE said of it.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The same, to be told from others: a table that is made again as one before may have its
    /// definition ([`Table::of`]).
    pub fn definition_handle(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// The columns as they were declared.
    pub fn columns(&self) -> &[Column] {
        &self.definition.columns
    }

    /// The schema of the batches: one field a column.
    pub fn schema(&self) -> &SchemaRef {
        &self.layout().schema
    }

    fn layout(&self) -> &Layout {
        self.layout.get_or_init(|| {
            let schema = Arc::new(self.definition.schema());
            let format = match self.definition.keys.is_empty() {
                true => Format::new(Arc::clone(&schema)),
                false => Format::with_row_numbers(&schema),
            };
            let format = Arc::new(format.narrow());
            let parts = self.definition.keys.iter().flat_map(|key| &key.parts);
            Layout {
                schema,
                format,
                keyed: parts.map(|part| part.column).collect(),
            }
        })
    }

    /// What patches of its pages have to know.
    pub(crate) fn patched(&self) -> patch::Layout<'_> {
        let layout = self.layout();
        patch::Layout {
            format: &layout.format,
            account: &self.account,
            keyed: &layout.keyed,
        }
    }

    /// When the table was created.
    pub fn created(&self) -> SystemTime {
        self.created
    }

    /// When rows were last added or removed.
    pub fn updated(&self) -> Option<SystemTime> {
        self.state().updated
    }

    /// The number of rows.
    pub fn row_count(&self) -> u64 {
        self.state().content.row_count
    }

    /// The encoded bytes of all rows, wherever they are.
    pub fn bytes(&self) -> u64 {
        self.state().content.bytes()
    }

    /// The bytes of a row as it is read, with numbers as wide as their types and all its texts:
    /// about.
    pub fn row_bytes(&self) -> u64 {
        let state = self.state();
        state.content.wide_bytes() / state.content.row_count.max(1)
    }

    /// The account of the table: its counters tell the bytes in memory and on disk, those of older
    /// rows that a snapshot still holds included.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// What the table takes and has moved, live.
    pub fn counters(&self) -> Counters {
        self.account.counters()
    }

    /// The AUTO_INCREMENT value that comes next.
    pub fn auto_increment(&self) -> u64 {
        self.auto_increment.load(Ordering::Relaxed)
    }

    /// Sees to it that AUTO_INCREMENT values are greater than those before `next`. Values that were
    /// handed out do not come back, whatever is rolled back.
    pub fn raise_auto_increment(&self, next: u64) {
        self.auto_increment.fetch_max(next, Ordering::Relaxed);
    }

    /// Says which AUTO_INCREMENT value comes next.
    pub fn set_auto_increment(&self, next: u64) {
        self.auto_increment.store(next, Ordering::Relaxed);
    }

    /// The version of the rows of this moment ([`TableSnapshot::version`]).
    pub fn version(&self) -> u64 {
        self.state().version
    }

    /// The rows as they are at this moment.
    pub fn snapshot(&self) -> TableSnapshot {
        self.snapshot_of(&self.state())
    }

    fn snapshot_of(&self, state: &State) -> TableSnapshot {
        TableSnapshot::new(SnapshotParts {
            version: state.version,
            account: self.account.clone(),
            schema: Arc::clone(self.schema()),
            format: Arc::clone(&self.layout().format),
            pages: Arc::clone(&state.content.pages),
            segments: state.content.tail.segments().to_vec(),
            row_count: state.content.row_count,
        })
    }

    /// Begins to append the rows of one statement.
    pub fn begin_append(self: &Arc<Self>) -> Appender {
        Appender::new(self, self.pending())
    }

    /// Begins to change the rows of the table as they are now.
    pub fn begin_change(self: &Arc<Self>) -> Change {
        let state = self.state();
        let pending = self.pending_after(&state);
        Change::new(self, self.snapshot_of(&state), pending)
    }

    /// Rows that will come behind those that are there now.
    fn pending(&self) -> Pending {
        self.pending_after(&self.state())
    }

    fn pending_after(&self, state: &State) -> Pending {
        let format = Arc::clone(&self.layout().format);
        let numbers = format.has_row_numbers().then_some(Numbers {
            version: state.version,
            next: state.next_number,
        });
        let writer = Writer::new(self.account.clone(), format, NextUse::SecondChance);
        Pending::new(writer, numbers)
    }

    /// Appends the rows of one batch, all or none.
    ///
    /// # Errors
    /// If the batch does not have the schema (see `Format::admit`), or memory, disk or I/O fail;
    /// [`Error::DuplicateEntry`].
    pub fn append(&self, batch: &RecordBatch) -> Result<()> {
        loop {
            let mut pending = self.pending();
            pending.append(batch)?;
            match self.absorb_rows(pending) {
                Err(Error::Changed { .. }) if !self.state().is_closed() => {}
                result => return result,
            }
        }
    }

    /// Refuses changes from now on, because another table takes the place of this one; whether its
    /// rows are still those of a snapshot, of which the other one is a copy. Nothing happens if
    /// they are not.
    pub fn retire(&self, seen: &TableSnapshot) -> bool {
        let mut state = self.state();
        let is_seen = !state.is_retired && state.version == seen.version();
        state.is_retired |= is_seen;
        is_seen
    }

    /// Refuses changes from now on, because the table has lost its name.
    pub(crate) fn retire_for_good(&self) {
        self.state().is_retired = true;
    }

    /// Takes back [`Table::retire`].
    pub fn return_to_use(&self) {
        self.state().is_retired = false;
    }

    /// Removes all rows. Snapshots keep theirs. Gives what held them: to drop it takes its time if
    /// there were many.
    ///
    /// # Errors
    /// [`Error::Changed`] if another table has taken its place, or somebody else changes it; those
    /// of the journal: a temporary table has none.
    pub fn truncate(&self) -> Result<TruncatedRows> {
        let mut state = self.state();
        if state.is_closed() {
            return Err(self.changed());
        }
        let version = state.version + 1;
        self.journal.record(&Mutation::Truncate { version })?;
        state.version = version;
        state.updated = Some(SystemTime::now());
        self.set_auto_increment(1);
        Ok(TruncatedRows {
            _rows: std::mem::take(&mut state.content),
            _indexes: state.indexes.replace(self.empty_indexes()),
        })
    }

    /// The error of a statement that does not find the table as it left it.
    fn changed(&self) -> Error {
        Error::Changed {
            table: self.name.clone(),
        }
    }

    /// The state of the table, to go back to. It keeps the pages that it needs.
    ///
    /// # Errors
    /// If there is no memory for the rows that are not in pages: going back needs none.
    pub fn save(self: &Arc<Self>) -> Result<Saved> {
        let state = self.state();
        Ok(Saved {
            table: Arc::clone(self),
            version: state.version,
            updated: state.updated,
            content: state.content.saved(&self.account)?,
        })
    }

    /// The numbers of the rows that searches find, without repeats, and the rows as they are at
    /// this moment; `None` when they are more than `limit`. They come in the order of the key if
    /// there is one search, else in the order of their numbers.
    ///
    /// # Errors
    /// If memory or I/O fail.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn search(
        &self,
        searches: &[Search],
        limit: usize,
    ) -> Result<Option<(TableSnapshot, Vec<u64>)>> {
        let mut state = self.mended()?;
        if self.turns.is_none() || searches.len() <= by_key::ASKED_MAX {
            let few = match &self.turns {
                Some(_) => limit.min(by_key::FOUND_MAX),
                None => limit,
            };
            let found = self.indexes_of(&mut state)?.search(searches, few)?;
            if found.is_some() || few == limit {
                return Ok(found.map(|numbers| (self.snapshot_of(&state), numbers)));
            }
        }
        let snapshot = self.snapshot_of(&state);
        let found = self.ask(state, false, |indexes| indexes.search(searches, limit))?;
        Ok(found.map(|numbers| (snapshot, numbers)))
    }

    /// About how many rows a search finds; exact when they are few.
    ///
    /// # Errors
    /// If memory or I/O fail.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn estimate(&self, search: &Search) -> Result<u64> {
        let mut state = self.mended()?;
        self.indexes_of(&mut state)?.estimate(search)
    }

    /// Which rows of a batch would meet a row of the table in a unique key. Nothing is changed.
    ///
    /// # Errors
    /// If memory or I/O fail.
    pub fn conflicts(&self, batch: &RecordBatch, repeats: Repeats) -> Result<Conflicts> {
        let is_little = batch.num_rows() <= by_key::ASKED_MAX;
        self.ask(self.mended()?, is_little, |indexes| {
            indexes.conflicts(batch, repeats)
        })
    }

    fn indexes_of<'s>(&self, state: &'s mut State) -> Result<&'s mut Indexes> {
        self.indexes(&mut state.indexes, &state.content, None)
    }

    /// The indexes, built anew if they lost an entry when something failed.
    fn indexes<'s>(
        &self,
        indexes: &'s mut Option<Indexes>,
        content: &Content,
        stop: Option<&StopFlag>,
    ) -> Result<&'s mut Indexes> {
        let indexes = indexes.get_or_insert_with(|| self.empty_indexes());
        if indexes.is_stale() {
            keys::rebuild(indexes, &self.layout().format, content.rows(), stop)?;
        }
        Ok(indexes)
    }

    fn empty_indexes(&self) -> Indexes {
        Indexes::new(&self.definition, &self.account)
    }

    /// The state stays whole when a panic passes through: changes are made at the very end.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all rows and all entries of keys, and checks that they agree: counts and bytes with
    /// the pages, each row with one entry in each key, each entry with its row, and the order of
    /// the keys. Keys that lost an entry when something failed are built again first, as for any
    /// other who asks them. Nobody else sees the table meanwhile: this is for tests.
    ///
    /// # Errors
    /// [`Error::CorruptPage`] says what does not hold, [`Error::DuplicateEntry`] that rows do not
    /// obey a key; others if memory or I/O fail.
    pub fn verify(&self) -> Result<()> {
        let mut state = self.state();
        let state = &mut *state;
        let (content, format) = (&state.content, &*self.layout().format);
        content.verify(format)?;
        if self.definition.keys.is_empty() {
            return Ok(());
        }
        let indexes = self.indexes(&mut state.indexes, content, None)?;
        keys::verify(indexes, format, content.rows(), state.next_number)
    }
}

/// The journal of tables that nobody writes down.
fn unlogged() -> Arc<dyn Journal> {
    Arc::new(Unlogged)
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("name", &self.name)
            .field("columns", &self.definition.columns)
            .field("row_count", &self.row_count())
            .finish_non_exhaustive()
    }
}

/// What held the rows of a table before it was truncated, and their keys. Pages that no snapshot
/// has are freed with it.
pub struct TruncatedRows {
    _rows: Content,
    _indexes: Option<Indexes>,
}

impl fmt::Debug for TruncatedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TruncatedRows").finish_non_exhaustive()
    }
}

/// A state of a table to go back to.
pub struct Saved {
    table: Arc<Table>,
    version: u64,
    content: Content,
    updated: Option<SystemTime>,
}

impl Saved {
    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Puts the state back. Needs no memory, but for the pages of keys that it looks at; when there
    /// is none the indexes are built again before they are used next.
    pub fn restore(self) {
        let mut state = self.table.state();
        let state = &mut *state;
        self.table.journal.undo(self.version, state.version + 1);
        let (now, then) = (state.content.rows(), self.content.rows());
        if let Some(indexes) = &mut state.indexes {
            keys::restore(indexes, &self.table.layout().format, now, then);
        }
        state.content = self.content;
        if let Some(indexes) = &mut state.indexes {
            indexes.end_change();
        }
        state.version += 1;
        state.updated = self.updated;
    }
}

impl fmt::Debug for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saved")
            .field("table", &self.table.name)
            .field("row_count", &self.content.row_count)
            .finish_non_exhaustive()
    }
}
