//! One batch of a snapshot, open to be read column by column.
//!
//! **Owns** a pin of its page. **Never** reads a column that nobody asks for: a condition that one
//! column answers leaves the others where they are ("late materialization": Abadi et al.,
//! "Materialization Strategies in a Column-Oriented DBMS", ICDE 2007).

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter_record_batch;

use crate::column_page::{Format, Source};
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

    /// Some columns of all rows, pointing into the page. **Cost**: none for numbers; a view for each
    /// text.
    ///
    /// # Errors
    /// If the page was not written by the format.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn columns(&self, columns: &[usize]) -> Result<RecordBatch> {
        let batch = self.format.decode(&self.source, Some(columns))?;
        match &self.left {
            Some(left) => only_left(batch, left),
            None => Ok(batch),
        }
    }

    /// Some columns of the rows whose bits are set, in memory of their own. **Cost**: that of these
    /// rows, some times that of [`OpenBatch::columns`] for each.
    ///
    /// # Errors
    /// As [`OpenBatch::columns`].
    ///
    /// # Panics
    /// If there is no such column, or there are more bits than rows.
    pub fn columns_of(&self, rows: &BooleanBuffer, columns: &[usize]) -> Result<RecordBatch> {
        let slots: Vec<u32> = match &self.left {
            None => rows.set_indices_u32().collect(),
            Some(left) => {
                let slots: Vec<u32> = left.set_indices_u32().collect();
                rows.set_indices().map(|row| slots[row]).collect()
            }
        };
        self.format
            .decode_slots(&self.source, Some(columns), &slots)
    }
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
