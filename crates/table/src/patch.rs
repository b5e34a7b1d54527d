//! Values that are written where the old ones stand.
//!
//! **Owns** the new values of rows that stay in their place, until their statement commits.
//! **Never** changes a page that anybody else can see.
//!
//! An update of few rows of a long page, whose values fit where the old ones stand (numbers, dates
//! and the like, texts of one length), writes those bytes and nothing else: the row keeps its
//! number, and only keys of columns that change lose and get an entry.
//!
//! ```text
//!   Change::assign --> edits, made from the page as it is           anybody may read it
//!         |
//!      commit, under the lock of the table:
//!         the list of pages and the page have one holder --> pinned, written at the very end
//!         a scan, a batch or a saved state holds it      --> the row is removed, and appended
//! ```
//!
//! Who can read a page holds a handle on it, or the list of pages that has it, and gets either
//! under the lock of the table. So where both have one holder when the lock is held, nobody reads
//! the page, nobody has an array that points into it, and nobody goes back to it: a statement that
//! fails has not written yet, and a transaction that may roll back holds the list.
//!
//! Everything that can fail happens before: a page is pinned for reading first, so that the keys
//! can be changed by what stands in it, and upgraded when nothing else is left to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_select::take::take;
use mayfly_space::{Account, ReadGuard};

use crate::appender::Pending;
use crate::column_page::{Columns, Edits, Format, StoredRows};
use crate::error::{Error, Result};
use crate::owned::owned;
use crate::removal::Removal;
use crate::sealed::Heap;
use crate::table_page::TablePage;
use crate::tail::Segment;

/// The memory that may be pinned by the pages that a statement writes to: beyond this part of all
/// memory, rows move.
const PINNED_PER_MEMORY: u64 = 16;
/// The values of a statement that wait on the heap for its commit; beyond this, rows move.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// What is known of a table that rows are changed of.
#[derive(Clone, Copy)]
pub(crate) struct Layout<'a> {
    pub(crate) format: &'a Format,
    pub(crate) account: &'a Account,
    /// The columns of keys.
    pub(crate) keyed: &'a [usize],
}

/// New values of some rows of one page, which fit where the old ones stand.
pub(crate) struct Patch {
    pub(crate) slots: Vec<u32>,
    /// The columns that change, and their values, in memory of their own.
    columns: Vec<(usize, ArrayRef)>,
    edits: Edits,
    pub(crate) keyed: Option<Keyed>,
}

/// What keys have to know of a patch: the rows as they will be, with their numbers, and which
/// columns change.
pub(crate) struct Keyed {
    pub(crate) rows: Segment,
    pub(crate) columns: Columns,
}

/// The patches of a statement, by the page of the snapshot.
#[derive(Default)]
pub(crate) struct Patches {
    pages: BTreeMap<usize, Vec<Patch>>,
    pinned_bytes: usize,
    waiting_bytes: usize,
    heap: Heap,
}

impl Patch {
    /// What gives rows of a page other values in some columns; `None` if those do not fit. The
    /// values must be of the slots, in their order.
    ///
    /// # Errors
    /// If the page cannot be read, or rows are so long that no page takes them.
    pub(crate) fn new(
        layout: Layout<'_>,
        stored: &StoredRows<'_>,
        slots: &[u32],
        values: impl Iterator<Item = (usize, ArrayRef)>,
    ) -> Result<Option<Patch>> {
        let mut columns = Vec::new();
        let mut edits = Edits::default();
        for (column, values) in values {
            let before = edits.len();
            if stored.edit(column, slots, &values, &mut edits)?.is_none() {
                return Ok(None);
            }
            if edits.len() > before {
                columns.push((column, copied(values.as_ref())?));
            }
        }
        let mut patch = Patch {
            slots: slots.to_vec(),
            columns,
            edits,
            keyed: None,
        };
        let is_keyed = |(column, _): &(usize, _)| layout.keyed.contains(column);
        if patch.columns.iter().any(is_keyed) {
            patch.keyed = Some(patch.keyed(layout.format, stored)?);
        }
        Ok(Some(patch))
    }

    fn keyed(&self, format: &Format, stored: &StoredRows<'_>) -> Result<Keyed> {
        let width = format.schema().fields().len();
        let all: Vec<usize> = (0..width).collect();
        let rows = self.rows(stored, &all)?;
        let rows = format.admit(rows.columns(), rows.num_rows())?;
        let size = format.size(&rows, 0, rows.row_count());
        Ok(Keyed {
            rows: Segment::encode(format, &[rows], size)?,
            columns: self.changing(width),
        })
    }

    /// The columns that change.
    pub(crate) fn changing(&self, width: usize) -> Columns {
        Columns::of(self.columns.iter().map(|(column, _)| *column), width)
    }

    /// The rows as they will be.
    ///
    /// # Errors
    /// If the page was not written by this format.
    pub(crate) fn rows(&self, stored: &StoredRows<'_>, columns: &[usize]) -> Result<RecordBatch> {
        let old = stored.decode(columns, &self.slots)?;
        let mut arrays = old.columns().to_vec();
        for (column, values) in &self.columns {
            arrays[*column] = Arc::clone(values);
        }
        Ok(RecordBatch::try_new(old.schema(), arrays)?)
    }

    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Writes the values.
    pub(crate) fn write(&self, page: &mut [u8]) {
        self.edits.write(page);
    }

    fn heap_bytes(&self) -> usize {
        let values = self.columns.iter();
        let values: usize = values.map(|(_, v)| v.get_array_memory_size()).sum();
        let keyed = self
            .keyed
            .as_ref()
            .map_or(0, |keyed| keyed.rows.bytes().len());
        values + keyed + self.edits.heap_bytes() + self.slots.len() * size_of::<u32>()
    }
}

/// Values in memory of their own: those of a plan may point into pages, which they would hold.
fn copied(values: &dyn Array) -> Result<ArrayRef> {
    let all = UInt32Array::from_iter_values(0..values.len() as u32);
    Ok(owned(&take(values, &all, None)?))
}

impl Patches {
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    pub(crate) fn has(&self, batch: usize) -> bool {
        self.pages.contains_key(&batch)
    }

    pub(crate) fn batches(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.pages.keys().copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Patch)> {
        let pages = self.pages.iter();
        pages.flat_map(|(batch, patches)| patches.iter().map(|patch| (*batch, patch)))
    }

    /// The rows that some of the patches are for; some count several times.
    pub(crate) fn row_count(&self, of: impl Fn(usize, &Patch) -> bool) -> u64 {
        let found = self.iter().filter(|(batch, patch)| of(*batch, patch));
        found.map(|(_, patch)| patch.slots.len() as u64).sum()
    }

    /// The rows that lie in pages that somebody else holds.
    pub(crate) fn moving_count(&self, pages: &mut Arc<Vec<TablePage>>) -> u64 {
        let moving = self.moving(pages);
        self.row_count(|batch, _| moving.binary_search(&batch).is_ok())
    }

    /// The pages that somebody else can see, in their order: their rows move.
    fn moving(&self, pages: &mut Arc<Vec<TablePage>>) -> Vec<usize> {
        let is_held = Arc::get_mut(pages).is_none();
        // Where the table has changed since, the commit finds out.
        let is_own = |batch: usize| pages.get(batch).is_some_and(TablePage::has_one_holder);
        let batches = self.batches();
        batches.filter(|batch| is_held || !is_own(*batch)).collect()
    }

    /// Takes a patch of a page; not if there are too many.
    pub(crate) fn add(
        &mut self,
        layout: Layout<'_>,
        batch: usize,
        page: &TablePage,
        patch: Patch,
    ) -> bool {
        let is_new = !self.has(batch);
        let pinned = self.pinned_bytes + if is_new { page.page_bytes() } else { 0 };
        let waiting = self.waiting_bytes + patch.heap_bytes();
        let pinned_max = layout.account.space().memory_bytes() / PINNED_PER_MEMORY;
        if pinned as u64 > pinned_max
            || waiting > WAITING_BYTES_MAX
            || self.heap.reserve(layout.account, waiting).is_err()
        {
            return false;
        }
        (self.pinned_bytes, self.waiting_bytes) = (pinned, waiting);
        self.pages.entry(batch).or_default().push(patch);
        true
    }

    /// Pins the pages that nobody else can see; the rows of all others are removed, and appended.
    ///
    /// # Errors
    /// If memory, disk or I/O fail for rows that are appended.
    pub(crate) fn pin(
        &mut self,
        format: &Format,
        pages: &mut Arc<Vec<TablePage>>,
        removal: &mut Removal,
        pending: &mut Pending,
    ) -> Result<Vec<ReadGuard>> {
        let mut pinned = Vec::with_capacity(self.pages.len());
        let mut moving = self.moving(pages);
        for batch in self.pages.keys() {
            if moving.binary_search(batch).is_ok() {
                continue;
            }
            match pages[*batch].bytes_pinned() {
                Ok(guard) => pinned.push(guard),
                // Rows that move are read from one page at a time.
                Err(Error::Space(_)) => {
                    pinned.clear();
                    moving = self.pages.keys().copied().collect();
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let width = format.schema().fields().len() - usize::from(format.has_row_numbers());
        let columns: Vec<usize> = (0..width).collect();
        for batch in moving {
            let bytes = pages[batch].bytes_pinned()?;
            let stored = StoredRows::open(format, &bytes)?;
            for patch in self.pages.remove(&batch).into_iter().flatten() {
                let rows = patch.rows(&stored, &columns)?;
                let removed = removal.slots.entry(batch).or_default();
                for slot in &patch.slots {
                    removal.row_count += u64::from(removed.insert(*slot));
                }
                pending.append(&rows)?;
            }
        }
        Ok(pinned)
    }

    /// Writes all patches to the pages that were pinned for them.
    pub(crate) fn write(self, pinned: Vec<ReadGuard>) {
        for (patches, guard) in self.pages.into_values().zip(pinned) {
            let mut page = guard.upgrade();
            patches.iter().for_each(|patch| patch.write(&mut page));
        }
    }
}
