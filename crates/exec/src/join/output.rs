//! Batches of results, put together until they are worth handing on.

use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;

use crate::batches::batch_of;

/// Gathers results into batches of about `batch_rows`.
pub(crate) struct Output {
    coalescer: BatchCoalescer,
    /// Rows that are still wanted.
    left: usize,
    batch_rows: usize,
    /// Batches without columns are nothing but their number of rows: those that wait for others,
    /// and those that are complete.
    bare: usize,
    bare_complete: usize,
}

impl Output {
    /// For a stream of which at most `fetch` rows are wanted.
    pub(crate) fn new(schema: &SchemaRef, batch_rows: usize, fetch: Option<usize>) -> Output {
        let coalescer = BatchCoalescer::new(SchemaRef::clone(schema), batch_rows);
        Output {
            coalescer: coalescer.with_biggest_coalesce_batch_size(Some(batch_rows / 2)),
            left: fetch.unwrap_or(usize::MAX),
            batch_rows,
            bare: 0,
            bare_complete: 0,
        }
    }

    /// Takes results.
    pub(crate) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let batch = match batch.num_rows() > self.left {
            true => batch.slice(0, self.left),
            false => batch,
        };
        self.left -= batch.num_rows();
        if batch.num_columns() == 0 {
            self.bare += batch.num_rows();
            if self.bare >= self.batch_rows {
                self.complete_bare();
            }
            return Ok(());
        }
        Ok(self.coalescer.push_batch(batch)?)
    }

    /// A batch that is complete; it is to be taken after each push.
    ///
    /// # Errors
    /// If the schema has columns that batches do not.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        match std::mem::take(&mut self.bare_complete) {
            0 => Ok(self.coalescer.next_completed_batch()),
            rows => batch_of(&self.coalescer.schema(), Vec::new(), rows).map(Some),
        }
    }

    /// Completes what was gathered.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.complete_bare();
        Ok(self.coalescer.finish_buffered_batch()?)
    }

    fn complete_bare(&mut self) {
        self.bare_complete += std::mem::take(&mut self.bare);
    }

    /// Whether no more rows are wanted.
    pub(crate) fn is_full(&self) -> bool {
        self.left == 0
    }
}
