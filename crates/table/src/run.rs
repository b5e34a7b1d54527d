//! Runs of record batches in the temp space.
//!
//! **Owns** the pages of one append-only sequence of rows: a sorted run, a spilled batch, the rows
//! of a common table expression.
//!
//! **Never** shares its pages with a writer, and holds no pin between calls.
//!
//! Small batches wait in a tail on the heap, which is reserved from the account, until they fill a
//! page; large batches are cut into pages and copied once. Pages are read in the order in which
//! they were written, so page n is used n steps later than the first one: eviction takes the
//! farthest first.
//!
//! **Cost**: fixed-width columns are written at the speed of memcpy and read without a copy.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use mayfly_space::{Account, NextUse, PageClass};

use crate::column_page::Format;
use crate::error::Result;
use crate::sealed::{Ahead, Sealed, Writer};

/// An append-only sequence of rows, read back as batches.
pub struct BatchRun {
    writer: Writer,
    bytes: u64,
    is_finished: bool,
}

impl BatchRun {
    /// Pages that an append may take at a time, for rows that are shorter than one: the tail and
    /// the page that takes it.
    pub const APPEND_PAGES: usize = 3;

    /// An empty run of rows of this schema. With [`NextUse::At`] the first page is used at that
    /// time, each following page one later.
    ///
    /// Batches are read with exactly this schema.
    pub fn new(account: &Account, schema: SchemaRef, next_use: NextUse) -> Self {
        Self::with_format(account, Arc::new(Format::new(schema)), next_use)
    }

    /// As [`BatchRun::new`], for many runs of one schema.
    pub fn with_format(account: &Account, format: Arc<Format>, next_use: NextUse) -> Self {
        Self {
            writer: Writer::new(account.clone(), format, next_use),
            bytes: 0,
            is_finished: false,
        }
    }

    /// Fills pages of this class instead of the one that suits the memory.
    #[must_use]
    pub fn with_page_class(mut self, class: PageClass) -> Self {
        self.writer.page_bytes = class.bytes();
        self
    }

    /// The bytes of [`BatchRun::APPEND_PAGES`], for the minimum of an admission.
    pub fn append_bytes(&self) -> u64 {
        (Self::APPEND_PAGES * self.writer.page_bytes) as u64
    }

    /// Appends all rows of the batch.
    ///
    /// # Errors
    /// If the batch does not have the schema, or memory, disk or I/O fail;
    /// the run is then as it was before, and the call can be repeated.
    ///
    /// # Panics
    /// If the run is finished.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        assert!(!self.is_finished, "a finished run takes no more rows");
        let page_count = self.writer.pages.len();
        self.writer.append(batch)?;
        self.count(page_count);
        Ok(())
    }

    /// Writes what waits in the tail; all rows can be read from here on. Repeating it does nothing.
    ///
    /// # Errors
    /// If memory, disk or I/O fail; the call can be repeated.
    pub fn finish(&mut self) -> Result<()> {
        let page_count = self.writer.pages.len();
        self.writer.seal(None)?;
        self.writer.heap.shrink(0);
        self.count(page_count);
        self.is_finished = true;
        Ok(())
    }

    fn count(&mut self, from: usize) {
        let pages = &self.writer.pages[from..];
        self.bytes += pages.iter().map(|page| page.bytes() as u64).sum::<u64>();
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        self.writer.format.schema()
    }

    /// The number of batches that can be read: all once the run is finished.
    pub fn batch_count(&self) -> usize {
        self.writer.pages.len()
    }

    /// The number of rows that were appended.
    pub fn row_count(&self) -> u64 {
        self.writer.row_count
    }

    /// Whether no row was appended.
    pub fn is_empty(&self) -> bool {
        self.writer.row_count == 0
    }

    /// The number of rows of one batch.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn rows_of(&self, index: usize) -> usize {
        self.writer.pages[index].row_count()
    }

    /// The encoded bytes of the batches that can be read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The memory of the longest page that can be read, in bytes: what reading pins at a time.
    pub fn longest_page_bytes(&self) -> usize {
        let pages = self.writer.pages.iter();
        pages.map(Sealed::page_bytes).max().unwrap_or_default()
    }

    /// One batch, pointing into its page, which stays pinned as long as an array of the batch
    /// lives. It is never empty.
    ///
    /// # Panics
    /// If there is no such batch or column.
    pub fn read(&self, index: usize, projection: Option<&[usize]>) -> Result<RecordBatch> {
        self.writer.pages[index].read(&self.writer.format, projection)
    }

    /// One batch in memory of its own, for those who keep it long.
    ///
    /// # Panics
    /// If there is no such batch or column.
    pub fn read_copied(&self, index: usize, projection: Option<&[usize]>) -> Result<RecordBatch> {
        self.writer.pages[index].read_copied(&self.writer.format, projection)
    }

    /// Asks for a batch that will be read soon; returns at once. A batch that does not exist is
    /// ignored.
    pub fn prefetch(&self, index: usize) {
        if let Some(page) = self.writer.pages.get(index) {
            page.prefetch();
        }
    }

    /// Finishes the run and reads it from the first row on, freeing each page as soon as its batch
    /// is dropped.
    ///
    /// # Errors
    /// As [`BatchRun::finish`].
    pub fn drain(mut self) -> Result<Drain> {
        self.finish()?;
        let pages: Vec<Sealed> = std::mem::take(&mut self.writer.pages);
        let writer = &self.writer;
        let mut drain = Drain {
            format: Arc::clone(&writer.format),
            ahead: Ahead::new(&writer.account, writer.page_bytes, 0),
            pages: pages.into(),
            taken: 0,
        };
        drain.ask_ahead();
        Ok(drain)
    }
}

impl fmt::Debug for BatchRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchRun")
            .field("batch_count", &self.batch_count())
            .field("row_count", &self.row_count())
            .field("bytes", &self.bytes)
            .field("is_finished", &self.is_finished)
            .finish_non_exhaustive()
    }
}

/// The batches of a run that is used up by reading it.
pub struct Drain {
    format: Arc<Format>,
    ahead: Ahead,
    pages: VecDeque<Sealed>,
    taken: usize,
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain")
            .field("batch_count", &self.pages.len())
            .finish_non_exhaustive()
    }
}

impl Drain {
    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        self.format.schema()
    }

    /// The next batch in memory of its own, for those who keep it or hand it on; its page is free.
    /// After an error, the same batch is tried again.
    pub fn next_copied(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.pages.front()?.read_copied(&self.format, None);
        self.step(batch.is_ok());
        Some(batch)
    }

    /// Goes on to the next page.
    fn step(&mut self, is_read: bool) {
        if is_read {
            self.pages.pop_front();
            self.taken += 1;
            self.ask_ahead();
        }
    }

    fn ask_ahead(&mut self) {
        let end = self.taken + self.pages.len();
        for index in self.ahead.pages(self.taken, end) {
            self.pages[index - self.taken].prefetch();
        }
    }
}

impl Iterator for Drain {
    type Item = Result<RecordBatch>;

    /// The next batch. After an error, the same batch is tried again.
    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.pages.front()?.read(&self.format, None);
        self.step(batch.is_ok());
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.pages.len(), Some(self.pages.len()))
    }
}
