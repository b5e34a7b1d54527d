//! User tables: rows come at the end and go anywhere.
//!
//! **Owns** the rows of one table: full column pages, and a tail on the heap. A tiny table is all
//! tail: it has no page and takes no lock but its own mutex.
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
//! A row that is removed leaves its bit; a page goes with its last row. An updated row is removed
//! and appended. Since nothing that was written ever changes, going back is free: a [`Saved`] state
//! is a list of pages, and putting it back undoes whatever happened since.
//!
//! **Cost**: an append of one row is one encoded segment (about a microsecond for few columns).

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arrow_array::{BooleanArray, RecordBatch, UInt64Array};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use mayfly_space::{Account, AccountOptions, Counters, NextUse};

use crate::change::{Change, Removal, row_id};
use crate::column_page::{Format, Rows, Size};
use crate::definition::{Column, Definition};
use crate::error::{Error, Result};
use crate::sealed::{Ahead, Heap, Sealed, Writer, page_class};
use crate::table_page::TablePage;
use crate::tail::{Segment, Tail};

/// The rows that wait on the heap, where they cannot be evicted, before they become a page.
const TAIL_BYTES_MAX: usize = 16 << 10;

/// A table, shared by all who can name it.
pub struct Table {
    // Fixed.
    name: String,
    definition: Definition,
    format: Arc<Format>,
    created: SystemTime,
    // State.
    state: Mutex<State>,
    // Resources.
    account: Account,
}

struct State {
    /// Another number after each change.
    version: u64,
    pages: Arc<Vec<TablePage>>,
    tail: Tail,
    heap: Heap,
    row_count: u64,
    page_bytes: u64,
    updated: Option<SystemTime>,
}

impl State {
    const fn new(version: u64, pages: Arc<Vec<TablePage>>, tail: Tail) -> Self {
        Self {
            version,
            pages,
            tail,
            heap: Heap::new(),
            row_count: 0,
            page_bytes: 0,
            updated: None,
        }
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
        let name = name.into();
        let definition = definition.into();
        let account = account.child(&name, limits);
        Self {
            name,
            format: Arc::new(Format::new(Arc::new(definition.schema()))),
            definition,
            created: SystemTime::now(),
            state: Mutex::new(State::new(0, Arc::default(), Tail::default())),
            account,
        }
    }

    /// The name, without its database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What CREATE TABLE said of it.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The columns as they were declared.
    pub fn columns(&self) -> &[Column] {
        &self.definition.columns
    }

    /// The schema of the batches: one field a column.
    pub fn schema(&self) -> &SchemaRef {
        self.format.schema()
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
        self.state().row_count
    }

    /// The encoded bytes of all rows, wherever they are.
    pub fn bytes(&self) -> u64 {
        let state = self.state();
        state.page_bytes + state.tail.heap_bytes() as u64
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

    /// The rows as they are at this moment.
    pub fn snapshot(&self) -> TableSnapshot {
        let state = self.state();
        TableSnapshot {
            version: state.version,
            account: self.account.clone(),
            page_bytes: page_class(&self.account).bytes(),
            format: Arc::clone(&self.format),
            pages: Arc::clone(&state.pages),
            segments: state.tail.segments().to_vec(),
            row_count: state.row_count,
        }
    }

    /// Begins to append the rows of one statement.
    pub fn begin_append(self: &Arc<Self>) -> Appender {
        Appender {
            table: Arc::clone(self),
            writer: self.writer(),
        }
    }

    /// Begins to change the rows of the table as they are now.
    pub fn begin_change(self: &Arc<Self>) -> Change {
        Change::new(self, self.snapshot())
    }

    pub(crate) fn writer(&self) -> Writer {
        let format = Arc::clone(&self.format);
        Writer::new(self.account.clone(), format, NextUse::SecondChance)
    }

    /// Appends the rows of one batch, all or none.
    ///
    /// # Errors
    /// If the batch does not have the schema (see [`Format::admit`]), or memory, disk or I/O fail.
    pub fn append(&self, batch: &RecordBatch) -> Result<()> {
        let mut writer = self.writer();
        writer.append(batch)?;
        self.absorb(writer, &Removal::default(), None)
    }

    /// Removes all rows. Snapshots keep theirs.
    pub fn truncate(&self) {
        let mut state = self.state();
        let updated = Some(SystemTime::now());
        *state = State {
            updated,
            ..State::new(state.version + 1, Arc::default(), Tail::default())
        };
    }

    /// The state of the table, to go back to. It keeps the pages that it needs.
    ///
    /// # Errors
    /// If there is no memory for the rows that are not in pages: going back needs none.
    pub fn save(self: &Arc<Self>) -> Result<Saved> {
        let state = self.state();
        let mut heap = Heap::new();
        heap.reserve(&self.account, state.tail.heap_bytes())?;
        Ok(Saved {
            table: Arc::clone(self),
            state: State {
                version: state.version,
                pages: Arc::clone(&state.pages),
                tail: state.tail.clone(),
                heap,
                row_count: state.row_count,
                page_bytes: state.page_bytes,
                updated: state.updated,
            },
        })
    }

    /// Makes removals and the rows of a writer part of the table, all or none.
    pub(crate) fn absorb(
        &self,
        writer: Writer,
        removal: &Removal,
        seen: Option<&TableSnapshot>,
    ) -> Result<()> {
        let mut state = self.state();
        if seen.is_some_and(|snapshot| snapshot.version != state.version) {
            return Err(Error::Changed {
                table: self.name.clone(),
            });
        }
        let left = match removal.row_count {
            0 => None,
            _ => Some(left_after(removal, &state.pages)),
        };
        let pages = left.as_ref().unwrap_or(&state.pages);
        let mut tail = self.tail_after(removal, state.pages.len(), &state.tail)?;
        let mut end = End {
            account: &self.account,
            format: &self.format,
            page_bytes: writer.page_bytes,
            pages,
            kept: pages.len(),
            added: Vec::new(),
        };
        if writer.pages.is_empty() {
            tail.append(&self.format, &writer.tail)?;
        } else {
            end.seal(std::mem::take(&mut tail))?;
            end.added.extend(writer.pages.iter().cloned());
            tail = writer.tail.clone();
        }
        if tail.heap_bytes() > TAIL_BYTES_MAX {
            end.seal(std::mem::take(&mut tail))?;
        }
        let (kept, added) = (end.kept, end.added);
        let heap_bytes = tail.heap_bytes();
        state.heap.reserve(&self.account, heap_bytes)?;

        // Nothing below can fail.
        state.heap.shrink(heap_bytes);
        state.tail = tail;
        if let Some(left) = left {
            state.page_bytes = left.iter().map(|page| page.bytes() as u64).sum();
            state.pages = left;
        }
        if kept < state.pages.len() || !added.is_empty() {
            let gone = state.pages[kept..].iter().map(|p| p.bytes() as u64);
            let gone: u64 = gone.sum();
            state.page_bytes += added.iter().map(|p| p.bytes() as u64).sum::<u64>();
            state.page_bytes -= gone;
            let pages = Arc::make_mut(&mut state.pages);
            pages.truncate(kept);
            pages.extend(added.into_iter().map(TablePage::from));
        }
        if writer.row_count > 0 || removal.row_count > 0 {
            state.row_count += writer.row_count;
            state.row_count -= removal.row_count;
            state.version += 1;
            state.updated = Some(SystemTime::now());
        }
        Ok(())
    }

    /// The tail without the rows that leave it.
    fn tail_after(&self, removal: &Removal, pages: usize, tail: &Tail) -> Result<Tail> {
        if removal.slots.range(pages..).next().is_none() {
            return Ok(tail.clone());
        }
        let mut left = Tail::default();
        for (index, segment) in tail.segments().iter().enumerate() {
            let batch = self.format.decode(&segment.source(), None)?;
            let batch = match removal.slots.get(&(pages + index)) {
                Some(slots) => {
                    let is_left = |slot: usize| !slots.contains(slot as u32);
                    let left: BooleanArray = (0..batch.num_rows())
                        .map(|slot| Some(is_left(slot)))
                        .collect();
                    filter_record_batch(&batch, &left)?
                }
                None => batch,
            };
            if batch.num_rows() > 0 {
                let rows = self.format.admit(&batch)?;
                let size = self.format.size(&rows, 0, rows.row_count());
                left.push(&self.format, &rows, size)?;
            }
        }
        Ok(left)
    }

    /// The state stays whole when a panic passes through: changes are made at the very end.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that counts and bytes agree with the pages; for tests.
    ///
    /// # Panics
    /// If they do not.
    pub fn verify(&self) {
        let state = self.state();
        let rows: usize = state.pages.iter().map(TablePage::row_count).sum();
        assert_eq!(state.row_count, (rows + state.tail.size().rows) as u64);
        let bytes: usize = state.pages.iter().map(TablePage::bytes).sum();
        assert_eq!(state.page_bytes, bytes as u64);
        assert!(state.tail.heap_bytes() <= TAIL_BYTES_MAX);
    }
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

/// The pages without the rows that leave them.
fn left_after(removal: &Removal, pages: &[TablePage]) -> Arc<Vec<TablePage>> {
    let left =
        pages
            .iter()
            .enumerate()
            .filter_map(|(index, page)| match removal.slots.get(&index) {
                Some(slots) => page.without(slots.iter()),
                None => Some(page.clone()),
            });
    Arc::new(left.collect())
}

/// A state of a table to go back to.
pub struct Saved {
    table: Arc<Table>,
    state: State,
}

impl Saved {
    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Puts the state back. Needs no memory.
    pub fn restore(self) {
        let mut state = self.table.state();
        *state = State {
            version: state.version + 1,
            ..self.state
        };
    }
}

impl fmt::Debug for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saved")
            .field("table", &self.table.name)
            .field("row_count", &self.state.row_count)
            .finish_non_exhaustive()
    }
}

/// The end of a table while rows are being added to it.
struct End<'a> {
    account: &'a Account,
    format: &'a Format,
    page_bytes: usize,
    /// The pages of the table, of which the first `kept` stay.
    pages: &'a [TablePage],
    kept: usize,
    added: Vec<Sealed>,
}

impl End<'_> {
    /// Writes a tail to a page, together with the small pages before it.
    fn seal(&mut self, tail: Tail) -> Result<()> {
        if tail.is_empty() {
            return Ok(());
        }
        let mut size = tail.size();
        let mut bytes = tail.heap_bytes();
        let mut small: Vec<Rows> = Vec::new();
        // The pages of an appender are full and stay; only the table's own may be small.
        let own = if self.added.is_empty() { self.kept } else { 0 };
        for page in self.pages[..own].iter().rev() {
            let fits = page.bytes() <= 2 * bytes && page.bytes() + bytes <= self.page_bytes;
            if !fits || !page.is_whole() {
                break;
            }
            let rows = page.rows(self.format)?;
            let sum = size.plus(Size {
                rows: rows.row_count(),
                data_bytes: 0,
            });
            if !self.format.takes(sum.rows) {
                break;
            }
            size = sum;
            bytes += page.bytes();
            small.push(rows);
        }
        let kept = self.kept - small.len();
        let mut segments: Vec<Rows> = small.into_iter().rev().collect();
        segments.extend(tail.rows(self.format)?);
        let next_use = NextUse::SecondChance;
        let page = Sealed::write(self.account, self.format, &segments, next_use)?;
        self.kept = kept;
        self.added.push(page);
        Ok(())
    }
}

/// The rows that one statement appends: seen by nobody until [`Appender::commit`], gone when the
/// appender is dropped before.
pub struct Appender {
    table: Arc<Table>,
    writer: Writer,
}

impl Appender {
    /// The table that gets the rows.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The rows that were appended so far.
    pub fn row_count(&self) -> u64 {
        self.writer.row_count
    }

    /// Appends all rows of a batch or, on an error, none of them.
    ///
    /// # Errors
    /// If the batch does not have the schema (see [`Format::admit`]), or memory, disk or I/O fail.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.append(batch)
    }

    /// Shows the rows to everybody, and tells how many they are.
    ///
    /// # Errors
    /// If memory, disk or I/O fail; the rows are gone then, and the table is as it was.
    pub fn commit(self) -> Result<u64> {
        let row_count = self.writer.row_count;
        self.table.absorb(self.writer, &Removal::default(), None)?;
        Ok(row_count)
    }
}

impl fmt::Debug for Appender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appender")
            .field("table", &self.table.name)
            .field("row_count", &self.row_count())
            .finish_non_exhaustive()
    }
}

/// The rows of a table at one moment.
#[derive(Clone)]
pub struct TableSnapshot {
    version: u64,
    account: Account,
    page_bytes: usize,
    format: Arc<Format>,
    pages: Arc<Vec<TablePage>>,
    segments: Vec<Segment>,
    row_count: u64,
}

impl fmt::Debug for TableSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSnapshot")
            .field("batch_count", &self.batch_count())
            .field("row_count", &self.row_count)
            .finish_non_exhaustive()
    }
}

impl TableSnapshot {
    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        self.format.schema()
    }

    /// The number of rows.
    pub fn row_count(&self) -> u64 {
        self.row_count
    }

    /// The number of batches.
    pub fn batch_count(&self) -> usize {
        self.pages.len() + self.segments.len()
    }

    /// The number of rows of one batch.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn rows_of(&self, index: usize) -> usize {
        match self.pages.get(index) {
            Some(page) => page.row_count(),
            None => self.segments[index - self.pages.len()].row_count(),
        }
    }

    /// The account that pins its pages.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Bytes of the largest page among these batches, 0 where none of them lies in a page.
    pub fn page_bytes_max(&self, batches: Range<usize>) -> u64 {
        let end = batches.end.min(self.pages.len());
        let pages = self.pages.get(batches.start..end).unwrap_or_default();
        pages.iter().map(TablePage::page_bytes).max().unwrap_or(0) as u64
    }

    /// One batch, pointing into its page, which stays pinned as long as an array of the batch
    /// lives. It is never empty.
    ///
    /// # Panics
    /// If there is no such batch or column.
    pub fn read(&self, index: usize, projection: Option<&[usize]>) -> Result<RecordBatch> {
        match self.pages.get(index) {
            Some(page) => page.read(&self.format, projection),
            None => self.read_segment(index, projection),
        }
    }

    /// One batch in memory of its own, for those who keep it long.
    ///
    /// # Panics
    /// If there is no such batch or column.
    pub fn read_copied(&self, index: usize, projection: Option<&[usize]>) -> Result<RecordBatch> {
        match self.pages.get(index) {
            Some(page) => page.read_copied(&self.format, projection),
            None => self.read_segment(index, projection),
        }
    }

    /// A batch of the tail, which lives on the heap and pins nothing.
    fn read_segment(&self, index: usize, projection: Option<&[usize]>) -> Result<RecordBatch> {
        let segment = &self.segments[index - self.pages.len()];
        self.format.decode(&segment.source(), projection)
    }

    /// The ids of the rows of one batch, in the order in which they are read: what
    /// [`Change::remove`] takes.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn row_ids(&self, index: usize) -> UInt64Array {
        let slots = match self.pages.get(index) {
            Some(page) => page.slots(),
            None => (0..self.rows_of(index) as u32).collect(),
        };
        slots
            .into_iter()
            .map(|slot| row_id(index, slot))
            .collect::<Vec<_>>()
            .into()
    }

    /// Asks for a batch that will be read soon; returns at once. A batch that does not exist is
    /// ignored.
    pub fn prefetch(&self, index: usize) {
        if let Some(page) = self.pages.get(index) {
            page.prefetch();
        }
    }

    /// Some batches in the order of their rows, read ahead of their use.
    ///
    /// # Panics
    /// If a column does not exist.
    pub fn scan(&self, range: Range<usize>, projection: Option<Vec<usize>>) -> Scan {
        Scan {
            ahead: Ahead::new(&self.account, self.page_bytes, range.start),
            snapshot: self.clone(),
            range,
            projection,
        }
    }
}

/// The batches of a snapshot, one after the other.
#[derive(Debug)]
pub struct Scan {
    snapshot: TableSnapshot,
    ahead: Ahead,
    range: Range<usize>,
    projection: Option<Vec<usize>>,
}

impl Iterator for Scan {
    type Item = Result<RecordBatch>;

    /// The next batch, as [`TableSnapshot::read`]. After an error, the one that follows.
    fn next(&mut self) -> Option<Self::Item> {
        for index in self.ahead.pages(self.range.start, self.range.end) {
            self.snapshot.prefetch(index);
        }
        let index = self.range.next()?;
        Some(self.snapshot.read(index, self.projection.as_deref()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}
