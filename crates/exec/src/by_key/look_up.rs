//! A join by key of rows that are there, at once.
//!
//! Owns: what such a join keeps between its runs, which is neither a page nor the table. Never:
//! goes over to a hash join; it says that there are too many rows for it.

use std::sync::{Arc, Weak};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use datafusion::common::{JoinSide, Result};
use mayfly_table::{ByKey, Table, TableSnapshot};

use super::choice::Access;
use super::chunk::{Chunk, Spec};
use super::join_key::JoinKey;
use super::limits::rows_by_key;
use crate::error::table_error;
use crate::reads::{Searched, TableReads};
use crate::scan_columns::ScanColumns;
use crate::source::Source;

/// A join whose one side is looked up.
pub(crate) struct LookUp {
    spec: Spec,
    table: Weak<Table>,
    /// The rows that are looked up; those of the moment without one.
    seen: Option<Arc<TableSnapshot>>,
    /// What is read of the table.
    columns: ScanColumns,
    /// How many rows of the table one outer row finds, about.
    rows_each: u64,
    /// Whether it finds one row at most.
    is_unique: bool,
    fetch: Option<usize>,
}

impl LookUp {
    pub(super) fn new(
        spec: Spec,
        source: &Source,
        seen: Option<Arc<TableSnapshot>>,
        key: &JoinKey,
        fetch: Option<usize>,
    ) -> Self {
        Self {
            spec,
            table: Arc::downgrade(&source.table),
            seen,
            columns: source.columns.clone(),
            rows_each: key.rows_each,
            is_unique: key.found().access == Access::EqRef,
            fetch,
        }
    }

    /// The side whose rows are asked for first.
    pub(crate) fn outer(&self) -> JoinSide {
        self.spec.outer
    }

    /// The rows of the join; `None` if they are more than a key is worth, or the table is gone.
    ///
    /// # Errors
    /// If a page cannot be read or an expression fails.
    pub(crate) fn rows(&self, outer: &RecordBatch) -> Result<Option<(RecordBatch, TableReads)>> {
        let Some(table) = self.table.upgrade() else {
            return Ok(None);
        };
        let snapshot = match &self.seen {
            Some(seen) => Arc::clone(seen),
            None => Arc::new(table.snapshot()),
        };
        let limit = rows_by_key(snapshot.row_count());
        if (outer.num_rows() as u64).saturating_mul(self.rows_each) > limit {
            return Ok(None);
        }
        let source = Source {
            table,
            snapshot,
            columns: self.columns.clone(),
            filters: Vec::new(),
            found: None,
        };
        let values = self.spec.values.evaluate(outer)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let found = source
            .table
            .lookup(&source.snapshot, self.spec.key, &values, limit);
        let ByKey::Found(found) = found.map_err(table_error)? else {
            return Ok(None);
        };
        let looked_up = found.numbers.len();
        let mut chunk = Chunk::new(&self.spec, outer.clone(), found)?;
        let mut parts = Vec::new();
        while let Some(rows) = chunk.next(&self.spec, &source, looked_up.max(1))? {
            if rows.num_rows() > 0 {
                parts.push(rows);
            }
        }
        let rows = match parts.as_slice() {
            [rows] => rows.clone(),
            parts => concat_batches(&self.spec.schema, parts)?,
        };
        let kept = self.fetch.unwrap_or(usize::MAX).min(rows.num_rows());
        let reads = Searched::for_each(outer.num_rows(), self.is_unique).reads(looked_up);
        Ok(Some((rows.slice(0, kept), reads)))
    }
}
