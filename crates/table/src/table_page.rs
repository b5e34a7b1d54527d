//! A page of a table: its rows are written once, and from then on there can only be fewer of them.
//!
//! **Owns** which rows of a page are left. **Never** changes a page that somebody else may read: a
//! page with fewer rows is another value over the same bytes.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_select::filter::filter_record_batch;

use crate::column_page::{Format, Rows};
use crate::error::Result;
use crate::sealed::Sealed;

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

    /// Whether all rows that were written are there.
    pub(crate) fn is_whole(&self) -> bool {
        self.left.is_none()
    }

    /// The encoded bytes, those of removed rows included.
    pub(crate) fn bytes(&self) -> usize {
        self.sealed.bytes()
    }

    /// Bytes that reading the page pins.
    pub(crate) fn page_bytes(&self) -> usize {
        self.sealed.page_bytes()
    }

    pub(crate) fn prefetch(&self) {
        self.sealed.prefetch();
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

    /// The rows of a whole page as they are stored, pinning the page.
    pub(crate) fn rows(&self, format: &Format) -> Result<Rows> {
        debug_assert!(self.is_whole());
        self.sealed.rows(format)
    }

    fn only_left(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let Some(left) = &self.left else {
            return Ok(batch);
        };
        if batch.num_columns() == 0 {
            let options = RecordBatchOptions::new().with_row_count(Some(left.count));
            return Ok(RecordBatch::try_new_with_options(
                batch.schema(),
                Vec::new(),
                &options,
            )?);
        }
        let rows = BooleanArray::new(left.rows.clone(), None);
        debug_assert_eq!(left.rows.len(), batch.num_rows());
        Ok(filter_record_batch(&batch, &rows)?)
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
        for slot in slots {
            rows.set_bit(slot as usize, false);
        }
        let rows = rows.finish();
        let count = rows.count_set_bits();
        (count > 0).then(|| TablePage {
            sealed: self.sealed.clone(),
            left: Some(Arc::new(Left { rows, count })),
        })
    }
}
