//! What a run of a short plan is given, may do and tells.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::TaskContext;

use super::size::{Filtered, Size};
use crate::provider::RowsNow;
use crate::reads::TableReads;
use crate::report::{TempTable, Why, next_temp_table_id};

pub(super) struct Run<'a> {
    pub(super) given: Option<RecordBatch>,
    pub(super) context: &'a Arc<TaskContext>,
    /// What may still be done.
    pub(super) most: Size,
    temp_tables: Vec<TempTable>,
    reads: TableReads,
    rows_given: u64,
    has_full_scan: bool,
    has_full_join: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        given: Option<RecordBatch>,
        most: Size,
        context: &'a Arc<TaskContext>,
    ) -> Self {
        Self {
            given,
            context,
            most,
            temp_tables: Vec::new(),
            reads: TableReads::default(),
            rows_given: 0,
            has_full_scan: false,
            has_full_join: false,
        }
    }

    /// Reads rows of a table, and counts them.
    pub(super) fn read(&mut self, read: RowsNow) -> Result<RecordBatch> {
        self.reads += read.reads;
        self.most.bytes_read = self.most.bytes_read.saturating_sub(read.bytes_read);
        self.has_full_scan |= !read.is_by_key;
        read.read()
    }

    /// How much of a table a filter may look through.
    pub(super) fn most_filtered(&self) -> Size {
        let Filtered { rows, bytes } = self.most.filtered;
        Size {
            rows,
            bytes_read: bytes,
            ..self.most
        }
    }

    /// Counts rows that a filter looks through.
    pub(super) fn filters(&mut self, read: &RowsNow) {
        self.reads += read.reads;
        let left = &mut self.most.filtered;
        left.bytes = left.bytes.saturating_sub(read.bytes_read);
        self.has_full_scan |= !read.is_by_key;
    }

    /// Counts rows of a table that were read along a key.
    pub(super) fn has_walked(&mut self, reads: TableReads, bytes: u64) {
        self.reads += reads;
        self.most.bytes_read = self.most.bytes_read.saturating_sub(bytes);
    }

    /// Counts rows that were handed over.
    pub(super) fn was_given(&mut self, rows: &RecordBatch) {
        self.rows_given += rows.num_rows() as u64;
    }

    /// Counts the rows that a join looked up.
    pub(super) fn has_looked_up(&mut self, reads: TableReads) {
        self.reads += reads;
    }

    pub(super) fn joins_without_key(&mut self) {
        self.has_full_join = true;
    }

    /// Begins a temporary table; those of its inputs come behind it.
    pub(super) fn begin_temp_table(&mut self, why: Why) -> usize {
        self.temp_tables.push(TempTable {
            id: next_temp_table_id(),
            why,
            rows: 0,
            memory_bytes: 0,
            disk_bytes_written: 0,
            disk_bytes_read: 0,
            passes: 1,
            on_disk: false,
            limit_bytes: 0,
            live_bytes: 0,
            write_wait_nanos: 0,
            read_wait_nanos: 0,
        });
        self.temp_tables.len() - 1
    }

    /// Tells how many rows went through it.
    pub(super) fn end_temp_table(&mut self, table: usize, rows: &RecordBatch) {
        self.temp_tables[table].rows = rows.num_rows() as u64;
    }

    pub(super) fn ended(self, rows: RecordBatch) -> ShortRun {
        ShortRun {
            rows,
            temp_tables: self.temp_tables,
            reads: self.reads,
            rows_given: self.rows_given,
            has_full_scan: self.has_full_scan,
            has_full_join: self.has_full_join,
        }
    }
}

/// The rows of a run, and what it took.
#[derive(Debug)]
pub struct ShortRun {
    /// The rows of the plan.
    pub rows: RecordBatch,
    /// Its temporary tables, in the order of the plan.
    pub temp_tables: Vec<TempTable>,
    /// What was read of its tables.
    pub reads: TableReads,
    /// The rows that were given to it.
    pub rows_given: u64,
    /// Whether all rows of a table were read.
    pub has_full_scan: bool,
    /// Whether rows were joined without a key.
    pub has_full_join: bool,
}
