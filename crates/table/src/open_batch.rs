//! One batch of a snapshot, open to be read column by column.
//!
//! **Owns** a pin of its page. **Never** reads a column that nobody asks for: a condition that one
//! column answers leaves the others where they are ("late materialization": Abadi et al.,
//! "Materialization Strategies in a Column-Oriented DBMS", ICDE 2007).

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::{filter, filter_record_batch};

use crate::column_page::{DistinctTexts, Format, Source};
use crate::error::Result;

/// One batch of a snapshot, whose page is pinned.
pub struct OpenBatch {
    format: Arc<Format>,
    source: Source<'static>,
    /// Which of the rows that were written are left; `None` where all are.
    left: Option<BooleanBuffer>,
    row_count: usize,
}

impl OpenBatch {
    /// The rows of a page, or of a tail, of which those are left whose bits are set, or all.
    pub(crate) fn new(
        format: &Arc<Format>,
        source: Source<'static>,
        left: Option<BooleanBuffer>,
        row_count: usize,
    ) -> OpenBatch {
        OpenBatch {
            format: Arc::clone(format),
            source,
            left,
            row_count,
        }
    }

    /// The number of rows.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// A column of all rows, pointing into the page but for numbers that are narrow there.
    /// **Cost**: a copy of these; a view for each text.
    ///
    /// # Errors
    /// If the page was not written by the format.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn column(&self, column: usize) -> Result<ArrayRef> {
        let all = self.format.decode_column(&self.source, column)?;
        match &self.left {
            Some(left) => Ok(filter(&all, &BooleanArray::new(left.clone(), None))?),
            None => Ok(all),
        }
    }

    /// A bit for each row whose integer in a column lies in a range, none for NULL; `None` where
    /// the page has those integers as wide as their type, and [`OpenBatch::column`] costs nothing.
    /// Decimals are the integers of their digits, dates and times those of their arrays.
    /// **Cost**: a comparison of a few bytes a row; the integers are not made.
    ///
    /// # Errors
    /// As [`OpenBatch::column`].
    ///
    /// # Panics
    /// If there is no such column.
    pub fn rows_within(
        &self,
        column: usize,
        range: &RangeInclusive<i128>,
    ) -> Result<Option<BooleanBuffer>> {
        let within = self.format.rows_within(&self.source, column, range)?;
        within.map(|all| self.of_left(all)).transpose()
    }

    /// A bit for each row whose integer in a column passes a test, which is told its lower 64 bits
    /// with its sign; that of NULL is given. `None` as for [`OpenBatch::rows_within`].
    /// **Cost**: that of the test.
    ///
    /// # Errors
    /// As [`OpenBatch::column`].
    ///
    /// # Panics
    /// If there is no such column.
    pub fn rows_passing(
        &self,
        column: usize,
        null_passes: bool,
        test: impl Fn(i64) -> bool,
    ) -> Result<Option<BooleanBuffer>> {
        let format = &self.format;
        let passing = format.rows_passing(&self.source, column, null_passes, test)?;
        passing.map(|all| self.of_left(all)).transpose()
    }

    /// The different texts of a column, where the page has each of them once; `None` where it does
    /// not. Some may be those of rows that were removed. **Cost**: that of the texts.
    ///
    /// # Errors
    /// As [`OpenBatch::column`].
    ///
    /// # Panics
    /// If there is no such column.
    pub fn distinct_texts(&self, column: usize) -> Result<Option<DistinctTexts>> {
        self.format.distinct_texts(&self.source, column)
    }

    /// A bit for each row: that of its text.
    ///
    /// # Errors
    /// If the texts are those of another page.
    ///
    /// # Panics
    /// If there are fewer bits than texts.
    pub fn rows_of_texts(
        &self,
        texts: &DistinctTexts,
        bits: &BooleanBuffer,
    ) -> Result<BooleanBuffer> {
        self.of_left(texts.rows(bits))
    }

    /// The bits of the rows that are left, from those of all that were written.
    fn of_left(&self, all: BooleanBuffer) -> Result<BooleanBuffer> {
        let Some(left) = &self.left else {
            return Ok(all);
        };
        let all = BooleanArray::new(all, None);
        let bits = filter(&all, &BooleanArray::new(left.clone(), None))?;
        Ok(bits.as_boolean().values().clone())
    }

    /// A column of the rows in some slots, in memory of its own. **Cost**: that of these rows, a
    /// few times that of [`OpenBatch::column`] for each.
    ///
    /// # Errors
    /// As [`OpenBatch::column`].
    ///
    /// # Panics
    /// If there is no such column, or no such slot.
    pub fn column_of(&self, slots: &[u32], column: usize) -> Result<ArrayRef> {
        self.format.decode_column_slots(&self.source, column, slots)
    }

    /// The slots of the rows whose bits are set.
    ///
    /// # Panics
    /// If there are more bits than rows.
    pub fn slots(&self, rows: &BooleanBuffer) -> Vec<u32> {
        match &self.left {
            None => set_indices(rows),
            Some(left) => {
                let slots = set_indices(left);
                let mut picked = Vec::with_capacity(rows.count_set_bits());
                picked.extend(rows.set_indices().map(|row| slots[row]));
                picked
            }
        }
    }
}

/// The places of the bits that are set. They are counted first: a list that grows as it is filled
/// asks the heap a dozen times a page, and workers wait for each other there. It was a third of the
/// time of TPC-H 6.
fn set_indices(bits: &BooleanBuffer) -> Vec<u32> {
    let mut indices = Vec::with_capacity(bits.count_set_bits());
    indices.extend(bits.set_indices_u32());
    indices
}

/// The rows of a batch whose bits are set.
pub(crate) fn only_left(batch: RecordBatch, left: &BooleanBuffer) -> Result<RecordBatch> {
    debug_assert_eq!(left.len(), batch.num_rows());
    if batch.num_columns() == 0 {
        let options = RecordBatchOptions::new().with_row_count(Some(left.count_set_bits()));
        return Ok(RecordBatch::try_new_with_options(
            batch.schema(),
            Vec::new(),
            &options,
        )?);
    }
    let rows = BooleanArray::new(left.clone(), None);
    Ok(filter_record_batch(&batch, &rows)?)
}
