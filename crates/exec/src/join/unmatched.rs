//! Rows of tables that are returned for themselves when the other side has gone by.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use datafusion::common::Result;
use mayfly_table::rows::{JoinTables, RowCursor, RowRef};

use super::kinds::{Emit, Roles};
use super::run::Run;
use super::spec::ResultRows;
use crate::error::rows_error;

/// A walk over all tables.
pub(super) struct Unmatched {
    run: Arc<Run>,
    roles: Roles,
    partition: usize,
    cursor: RowCursor,
    rows: Vec<RowRef>,
}

impl Unmatched {
    pub(super) fn new(run: &Arc<Run>, roles: Roles) -> Unmatched {
        Unmatched {
            run: Arc::clone(run),
            roles,
            partition: 0,
            cursor: RowCursor::default(),
            rows: Vec::new(),
        }
    }

    /// The partition whose rows come next: those before it are not needed any more.
    pub(super) fn partition(&self) -> usize {
        self.partition
    }

    /// The next rows; `None` at the end.
    pub(super) fn next(&mut self, tables: &JoinTables) -> Result<Option<RecordBatch>> {
        let is_marked = match self.roles.of_table {
            Emit::Nothing | Emit::Matched => return Ok(None),
            Emit::Padded | Emit::Unmatched => Some(false),
            Emit::Marked => None,
        };
        if self.run.is_void() {
            return Ok(None);
        }
        while self.partition < tables.partition_count() {
            let (cursor, rows) = (&mut self.cursor, &mut self.rows);
            let has_more = tables
                .walk(self.partition, cursor, self.run.limits, is_marked, rows)
                .map_err(rows_error)?;
            if self.run.drops_null_keys() {
                rows.retain(|row| tables.is_matchable(*row));
            }
            if !has_more {
                self.partition += 1;
                self.cursor = RowCursor::default();
                continue;
            }
            if rows.is_empty() {
                continue;
            }
            let marks = (self.roles.of_table == Emit::Marked).then(|| {
                let marks = rows.iter().map(|row| Some(tables.is_marked(*row)));
                marks.collect::<BooleanArray>()
            });
            let results = self.run.spec.result(ResultRows {
                count: rows.len(),
                table: (self.roles.table, Some((tables, rows))),
                stream: None,
                marks,
            });
            return results.map(Some);
        }
        Ok(None)
    }
}
