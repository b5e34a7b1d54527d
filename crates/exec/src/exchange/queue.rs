//! The rows that an output of an exchange has not taken yet.
//!
//! Owns: [`Queue`]. Never: waits for anything but its pages.
//!
//! ```text
//!   push ->  | batch | pages | batch | batch |  -> pop
//! ```
//!
//! A batch waits in memory if that is granted. Those for which it is not become pages of one run as
//! long as no batch stands behind them. Rows leave in the order in which they came.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use mayfly_space::{Account, NextUse, PageClass, Reservation};
use mayfly_table::BatchRun;

use crate::compact::batch_bytes;
use crate::error::{space_error, table_error};

/// Pages that a queue pins at a time: three while rows are appended, and two while the run that was
/// popped before is finished and read.
pub(super) const PAGES_PER_QUEUE: u64 = 5;

/// Rows in the order in which they came.
pub(super) struct Queue {
    // Fixed.
    pages: Account,
    schema: SchemaRef,
    page_class: PageClass,
    // State.
    chunks: VecDeque<Chunk>,
    held_bytes: usize,
    // Resources.
    held: Reservation,
}

/// Rows that leave together.
pub(super) enum Chunk {
    /// A batch in memory.
    Batch(RecordBatch),
    /// Batches in pages.
    Pages(BatchRun),
}

impl Queue {
    /// No rows. What waits in memory is of one account, and pages are of another, whose minimum
    /// nothing else must use up.
    pub(super) fn new(
        [rows, pages]: [&Account; 2],
        schema: SchemaRef,
        page_class: PageClass,
    ) -> Result<Self> {
        Ok(Self {
            pages: pages.clone(),
            schema,
            page_class,
            chunks: VecDeque::new(),
            held_bytes: 0,
            held: rows.reserve(0).map_err(space_error)?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Adds a batch behind all others.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let bytes = batch_bytes(&batch);
        let held_bytes = self.held_bytes + bytes;
        if self.held.try_resize(held_bytes as u64).is_ok() {
            self.held_bytes = held_bytes;
            if let Some(Chunk::Pages(run)) = self.chunks.back_mut() {
                // Nothing is appended to it any more.
                run.finish().map_err(table_error)?;
            }
            self.chunks.push_back(Chunk::Batch(batch));
            return Ok(());
        }
        if let Some(Chunk::Pages(run)) = self.chunks.back_mut() {
            return run.append(&batch).map_err(table_error);
        }
        let mut run = BatchRun::new(&self.pages, Arc::clone(&self.schema), NextUse::At(0))
            .with_page_class(self.page_class);
        run.append(&batch).map_err(table_error)?;
        self.chunks.push_back(Chunk::Pages(run));
        Ok(())
    }

    /// Takes what came first.
    pub(super) fn pop(&mut self) -> Option<Chunk> {
        let chunk = self.chunks.pop_front()?;
        if let Chunk::Batch(batch) = &chunk {
            self.held_bytes -= batch_bytes(batch);
            self.held.shrink(self.held_bytes as u64);
        }
        Some(chunk)
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.held_bytes = 0;
        self.held.shrink(0);
    }
}
