//! A page of a table: its rows are written once, and from then on there can only be fewer of them;
//! values become others where they stand (`crate::patch`).
//!
//! **Owns** which rows of a page are left. **Never** changes a page that somebody else may read: a
//! page with fewer rows is another value over the same bytes.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use mayfly_space::ReadGuard;

use crate::column_page::{Format, Rows, Source, StoredRows};
use crate::error::Result;
use crate::open_batch::only_left;
use crate::removal::Slots;
use crate::sealed::{RowNumbers, Sealed};

/// A written page and the rows of it that are left.
#[derive(Clone)]
pub(crate) struct TablePage {
    sealed: Sealed,
    /// None while all rows are there.
    left: Option<Arc<Left>>,
}

struct Left {
    rows: BooleanBuffer,
    count: usize,
}

impl From<Sealed> for TablePage {
    fn from(sealed: Sealed) -> Self {
        Self { sealed, left: None }
    }
}

impl TablePage {
    pub(crate) fn row_count(&self) -> usize {
        match &self.left {
            Some(left) => left.count,
            None => self.sealed.row_count(),
        }
    }

    /// The rows that were written.
    pub(crate) fn written_count(&self) -> usize {
        self.sealed.row_count()
    }

    /// Whether all rows that were written are there.
    pub(crate) fn is_whole(&self) -> bool {
        self.left.is_none()
    }

    /// About what the rows that were written take with numbers as wide as their types and all their
    /// texts.
    pub(crate) fn wide_bytes(&self) -> usize {
        self.sealed.wide_bytes()
    }

    /// The encoded bytes, those of removed rows included.
    pub(crate) fn bytes(&self) -> usize {
        self.sealed.bytes()
    }

    /// Whether nobody else has a handle on the page.
    pub(crate) fn has_one_holder(&self) -> bool {
        self.sealed.has_one_holder()
    }

    /// Bytes that reading the page pins.
    pub(crate) fn page_bytes(&self) -> usize {
        self.sealed.page_bytes()
    }

    pub(crate) fn prefetch(&self) {
        self.sealed.prefetch();
    }

    /// The page with other rows in some slots: the same are left.
    pub(crate) fn over(&self, sealed: Sealed) -> TablePage {
        debug_assert_eq!(sealed.row_count(), self.sealed.row_count());
        TablePage {
            sealed,
            left: self.left.clone(),
        }
    }

    /// All rows that were written, whether they are left or not, pointing into the page.
    pub(crate) fn written(&self, format: &Format) -> Result<RecordBatch> {
        self.sealed.read(format, None)
    }

    /// Some columns of all rows that were written, whether they are left or not, pointing into the
    /// page.
    pub(crate) fn written_columns(
        &self,
        format: &Format,
        projection: Option<&[usize]>,
    ) -> Result<RecordBatch> {
        self.sealed.read(format, projection)
    }

    /// The rows that are left, pointing into the page where no row was removed.
    pub(crate) fn read(
        &self,
        format: &Format,
        projection: Option<&[usize]>,
    ) -> Result<RecordBatch> {
        self.only_left(self.sealed.read(format, projection)?)
    }

    /// The rows that are left, in memory of their own.
    pub(crate) fn read_copied(
        &self,
        format: &Format,
        projection: Option<&[usize]>,
    ) -> Result<RecordBatch> {
        self.only_left(self.sealed.read_copied(format, projection)?)
    }

    /// The rows in some slots, each of which has one, in memory of their own.
    pub(crate) fn read_slots(
        &self,
        format: &Format,
        projection: Option<&[usize]>,
        slots: &[u32],
    ) -> Result<RecordBatch> {
        debug_assert!(slots.iter().all(|slot| self.has(*slot as usize)));
        self.sealed.read_slots(format, projection, slots)
    }

    /// What arrays over the rows that were written can point into.
    pub(crate) fn source(&self) -> Result<Source<'static>> {
        self.sealed.pin()
    }

    /// The bytes of all rows that were written, pinned.
    pub(crate) fn bytes_pinned(&self) -> Result<ReadGuard> {
        self.sealed.bytes_pinned()
    }

    /// The rows of a whole page as they are stored, pinning the page.
    pub(crate) fn rows(&self, format: &Format) -> Result<Rows> {
        debug_assert!(self.is_whole());
        self.sealed.rows(format)
    }

    /// Which of the rows that were written are left; `None` where all are.
    pub(crate) fn left(&self) -> Option<&BooleanBuffer> {
        self.left.as_ref().map(|left| &left.rows)
    }

    fn only_left(&self, batch: RecordBatch) -> Result<RecordBatch> {
        match &self.left {
            Some(left) => only_left(batch, &left.rows),
            None => Ok(batch),
        }
    }

    /// A number that no other page has.
    pub(crate) fn number(&self) -> u32 {
        self.sealed.page_number()
    }

    /// The first and the last row number that were written, where rows have numbers.
    pub(crate) fn row_numbers(&self) -> Option<RowNumbers> {
        self.sealed.row_numbers()
    }

    /// Whether the same rows stand in the slots of another page, of a state that this page's
    /// comes from or leads to: a row that comes gets a number above all others, so between two
    /// numbers rows can only become fewer.
    pub(crate) fn has_the_slots_of(&self, other: &TablePage) -> bool {
        self.row_numbers() == other.row_numbers() && self.written_count() == other.written_count()
    }

    /// Whether the row of a slot is left.
    pub(crate) fn has(&self, slot: usize) -> bool {
        match &self.left {
            Some(left) => left.rows.value(slot),
            None => slot < self.sealed.row_count(),
        }
    }

    /// The slot of a row number that is among [`TablePage::row_numbers`], whether its row is left
    /// or not.
    pub(crate) fn slot_of(&self, format: &Format, number: u64) -> Result<Option<usize>> {
        let Some(RowNumbers { first, last }) = self.row_numbers() else {
            return Ok(None);
        };
        // Rows that were written together have consecutive numbers.
        if last - first + 1 == self.sealed.row_count() as u64 {
            return Ok(usize::try_from(number - first).ok());
        }
        let bytes = self.bytes_pinned()?;
        StoredRows::open(format, &bytes)?.place_of(number)
    }

    /// Whether this is the same view of the same page.
    pub(crate) fn is_same(&self, other: &TablePage) -> bool {
        let is_left_alike = match (&self.left, &other.left) {
            (Some(left), Some(other)) => Arc::ptr_eq(left, other),
            (left, other) => left.is_none() && other.is_none(),
        };
        is_left_alike && self.number() == other.number()
    }

    /// The slots that have a row here and not in another view of the page; `None` when there are
    /// none.
    pub(crate) fn slots_without(&self, other: &TablePage) -> Option<Slots> {
        let gone = !&other.left.as_ref()?.rows;
        let alone = match &self.left {
            Some(left) => &gone & &left.rows,
            None => gone,
        };
        let slots: Slots = alone.set_indices_u32().collect();
        (!slots.is_empty()).then_some(slots)
    }

    /// The slots of the rows that are left, in order.
    pub(crate) fn slots(&self) -> Vec<u32> {
        match &self.left {
            Some(left) => left.rows.set_indices_u32().collect(),
            None => (0..self.sealed.row_count() as u32).collect(),
        }
    }

    /// The page without the rows in some slots, each of which has a row; `None` when none is left.
    pub(crate) fn without(&self, slots: impl IntoIterator<Item = u32>) -> Option<TablePage> {
        let mut rows = BooleanBufferBuilder::new(self.sealed.row_count());
        match &self.left {
            Some(left) => rows.append_buffer(&left.rows),
            None => rows.append_n(self.sealed.row_count(), true),
        }
        let mut count = self.row_count();
        for slot in slots {
            rows.set_bit(slot as usize, false);
            count -= 1;
        }
        (count > 0).then(|| {
            let rows = rows.finish();
            debug_assert_eq!(rows.count_set_bits(), count);
            TablePage {
                sealed: self.sealed.clone(),
                left: Some(Arc::new(Left { rows, count })),
            }
        })
    }
}
