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

/// Pages that a queue pins at a time: those of an append, and two while the run that was popped
/// before is finished and read.
pub(super) const PAGES_PER_QUEUE: usize = BatchRun::APPEND_PAGES + 2;

/// Rows in the order in which they came.
pub(super) struct Queue {
    // Fixed.
    pages: Account,
    schema: SchemaRef,
    page_class: PageClass,
    // State.
    chunks: VecDeque<Chunk>,
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
            held: rows.reserve(0).map_err(space_error)?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Adds a batch behind all others.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let held_bytes = self.held.bytes() + batch_bytes(&batch) as u64;
        if self.held.try_resize(held_bytes).is_ok() {
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
            let left_bytes = self.held.bytes() - batch_bytes(batch) as u64;
            self.held.shrink(left_bytes);
        }
        Some(chunk)
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.held.shrink(0);
    }
}
