//! Batches of results, put together until they are worth handing on.

use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;

/// Gathers results into batches of about `batch_rows`.
pub(crate) struct Output {
    coalescer: BatchCoalescer,
    /// Rows that are still wanted.
    left: usize,
    /// A batch without columns, which is nothing but its number of rows.
    bare: Option<RecordBatch>,
}

impl Output {
    /// For a stream of which at most `fetch` rows are wanted.
    pub(crate) fn new(schema: &SchemaRef, batch_rows: usize, fetch: Option<usize>) -> Output {
        let coalescer = BatchCoalescer::new(SchemaRef::clone(schema), batch_rows);
        Output {
            coalescer: coalescer.with_biggest_coalesce_batch_size(Some(batch_rows / 2)),
            left: fetch.unwrap_or(usize::MAX),
            bare: None,
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
            self.bare = Some(batch);
            return Ok(());
        }
        Ok(self.coalescer.push_batch(batch)?)
    }

    /// A batch that is complete; it is to be taken after each push.
    pub(crate) fn next(&mut self) -> Option<RecordBatch> {
        { self.bare.take() }.or_else(|| self.coalescer.next_completed_batch())
    }

    /// Completes what was gathered.
    pub(crate) fn finish(&mut self) -> Result<()> {
        Ok(self.coalescer.finish_buffered_batch()?)
    }

    /// Whether no more rows are wanted.
    pub(crate) fn is_full(&self) -> bool {
        self.left == 0
    }
}
