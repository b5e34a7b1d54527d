//! The rows of a table that a part of a plan reads.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::logical_expr::Expr;
use mayfly_table::{Table, TableSnapshot};

use crate::error::table_error;
use crate::scan_columns::ScanColumns;

/// Which rows of its tables a plan reads that runs again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowsOf {
    /// Those of the moment of each run.
    Now,
    /// Those of one snapshot, each time.
    Snapshot,
}

/// The rows of a table that a plan reads.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) table: Arc<Table>,
    pub(crate) snapshot: Arc<TableSnapshot>,
    pub(crate) columns: ScanColumns,
    /// Conditions that are checked above; they may narrow a search.
    pub(crate) filters: Vec<Expr>,
    /// How many rows a key has found already, if one was asked.
    pub(crate) found: Option<usize>,
}

impl Source {
    /// What is shown of the rows.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.columns.schema)
    }

    /// Rows by their numbers, in the order of the numbers; all of them are there.
    pub(crate) fn rows(&self, numbers: &[u64]) -> Result<RecordBatch> {
        self.rows_by_id(&self.ids(numbers)?)
    }

    /// The ids of rows by their numbers, in the order of the numbers; all of them are there.
    pub(crate) fn ids(&self, numbers: &[u64]) -> Result<Vec<u64>> {
        let ids = self.snapshot.locate(numbers.iter().copied());
        let ids = ids.map_err(table_error)?;
        if ids.len() != numbers.len() {
            return Err(internal_datafusion_err!("a key without its row"));
        }
        Ok(ids)
    }

    /// How many of the first of these rows take so many bytes together, if rows are as long as
    /// others of their page; at least one.
    pub(crate) fn fitting(&self, ids: &[u64], bytes_max: u64) -> usize {
        let mut bytes = 0;
        let fits = ids.iter().take_while(|id| {
            let page = TableSnapshot::batch_of(**id);
            bytes += self.snapshot.row_bytes_of(page);
            bytes <= bytes_max
        });
        fits.count().max(1)
    }

    /// Rows by their ids, in the order of the ids.
    pub(crate) fn rows_by_id(&self, ids: &[u64]) -> Result<RecordBatch> {
        let rows = self.snapshot.rows(ids, self.columns.projection.as_deref());
        self.columns
            .show(rows.map_err(table_error)?, || ids.to_vec().into())
    }

    /// The rows of some batches.
    pub(crate) fn batches(&self, batches: Range<usize>) -> Result<RecordBatch> {
        let scan = self
            .snapshot
            .scan(batches.clone(), self.columns.projection.clone());
        let shown = scan.zip(batches).map(|(rows, batch)| {
            let rows = rows.map_err(table_error)?;
            self.columns.show(rows, || self.snapshot.row_ids(batch))
        });
        let shown = shown.collect::<Result<Vec<_>>>()?;
        match shown.as_slice() {
            [rows] => Ok(rows.clone()),
            shown => Ok(concat_batches(&self.columns.schema, shown)?),
        }
    }

    /// How many leading batches hold so many rows; all of them without a limit.
    pub(crate) fn batches_within(&self, limit: Option<usize>) -> usize {
        let count = self.snapshot.batch_count();
        let Some(limit) = limit else {
            return count;
        };
        let mut rows = 0;
        let batches = (0..count).take_while(|batch| {
            let is_wanted = rows < limit;
            rows += self.snapshot.rows_of(*batch);
            is_wanted
        });
        batches.count()
    }

    /// The rows of some batches, without those of others.
    pub(crate) fn row_count(&self, batches: Range<usize>) -> usize {
        batches.map(|batch| self.snapshot.rows_of(batch)).sum()
    }

    /// Bytes of a row, about.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.table.row_bytes() + 1
    }

    /// Bytes of the largest page.
    pub(crate) fn page_bytes_max(&self) -> u64 {
        self.snapshot.page_bytes_max(0..self.snapshot.batch_count())
    }
}
