//! The rows of a window's partitions that somebody still needs.
//!
//! Owns: [`PartitionRows`], a queue of rows at positions that count from the first row of the
//! input, and [`Cursor`], which reads some of their columns at positions that only grow. Never:
//! knows where a partition begins or what is computed.
//!
//! ```text
//!   release ->  | page | page | page | batch | batch |  <- push
//!                 ^ begin of a frame     ^ its end
//! ```
//!
//! Rows stay in the batches that they came in while they are few. More become pages of the temp
//! space, which leave memory when it is short: the page that is read last leaves first. A cursor
//! pins a page while its owner computes and lets it go before the operator waits for anything.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;
use datafusion::common::{Result, ScalarValue};
use mayfly_space::{Account, NextUse, PageClass, Reservation};
use mayfly_table::BatchRun;
use mayfly_table::rows::StopFlag;

use crate::compact::{batch_bytes, detach};
use crate::error::{rows_error, space_error, table_error};

/// Pages that rows fill before they become pages: half a page of the last of them is wasted.
pub(super) const HELD_PAGES: usize = 8;
/// Bytes of the structures around a batch and each of its columns.
const COLUMN_OVERHEAD_BYTES: usize = 256;
/// Pages that are asked for before a cursor comes to them.
const PAGES_AHEAD: usize = 2;

/// A queue of rows.
pub(super) struct PartitionRows {
    // Fixed.
    account: Account,
    schema: SchemaRef,
    page_class: PageClass,
    stop: StopFlag,
    // State.
    /// Pages first, batches behind them.
    chunks: VecDeque<Chunk>,
    /// Rows that have arrived.
    end: u64,
    pages_written: u32,
    // Resources.
    held: Reservation,
}

/// Rows that follow each other.
struct Chunk {
    first: u64,
    rows: usize,
    content: Content,
}

enum Content {
    Batch { batch: RecordBatch, bytes: usize },
    Page { run: Arc<BatchRun>, index: usize },
}

impl Chunk {
    fn of_batch(first: u64, batch: RecordBatch) -> Chunk {
        let columns = batch.num_columns();
        Chunk {
            first,
            rows: batch.num_rows(),
            content: Content::Batch {
                bytes: batch_bytes(&batch) + (1 + columns) * COLUMN_OVERHEAD_BYTES,
                batch,
            },
        }
    }

    fn end(&self) -> u64 {
        self.first + self.rows as u64
    }

    fn is_page(&self) -> bool {
        matches!(self.content, Content::Page { .. })
    }
}

impl PartitionRows {
    /// No rows yet.
    pub(super) fn new(
        account: &Account,
        schema: SchemaRef,
        page_class: PageClass,
        stop: StopFlag,
    ) -> Result<Self> {
        Ok(Self {
            account: account.clone(),
            schema,
            page_class,
            stop,
            chunks: VecDeque::new(),
            end: 0,
            pages_written: 0,
            held: account.reserve(0).map_err(space_error)?,
        })
    }

    /// The position behind the last row that has arrived.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The position of the first row that is kept.
    pub(super) fn first(&self) -> u64 {
        self.chunks.front().map_or(self.end, |chunk| chunk.first)
    }

    /// Whether rows ever became pages.
    pub(super) fn has_pages(&self) -> bool {
        self.pages_written > 0
    }

    /// Adds the rows of a batch, which is not empty.
    pub(super) fn push(&mut self, batch: RecordBatch) {
        let rows = batch.num_rows() as u64;
        self.chunks.push_back(Chunk::of_batch(self.end, batch));
        self.end += rows;
    }

    /// Forgets the rows before a position.
    pub(super) fn release(&mut self, before: u64) -> Result<()> {
        while self
            .chunks
            .front()
            .is_some_and(|chunk| chunk.end() <= before)
        {
            self.chunks.pop_front();
        }
        if let Some(front) = self.chunks.front_mut()
            && front.first < before
            && let Content::Batch { batch, .. } = &front.content
        {
            let gone = (before - front.first) as usize;
            *front = Chunk::of_batch(before, rest_of(batch, gone)?);
        }
        Ok(())
    }

    /// Makes pages of the rows in batches unless they are few and memory is granted for them.
    pub(super) fn settle(&mut self) -> Result<()> {
        let bytes = |chunk: &Chunk| match chunk.content {
            Content::Batch { bytes, .. } => bytes,
            Content::Page { .. } => 0,
        };
        let held_bytes: usize = self.chunks.iter().map(bytes).sum();
        let is_few = held_bytes <= HELD_PAGES * self.page_class.bytes();
        if is_few && self.held.try_resize(held_bytes as u64).is_ok() {
            return Ok(());
        }
        self.write_pages()?;
        self.held.shrink(0);
        Ok(())
    }

    fn write_pages(&mut self) -> Result<()> {
        let pages = self.chunks.iter().take_while(|chunk| chunk.is_page());
        let from = pages.count();
        let next_use = NextUse::At(self.pages_written);
        let mut run = BatchRun::new(&self.account, Arc::clone(&self.schema), next_use)
            .with_page_class(self.page_class);
        let mut first = self.end;
        for chunk in self.chunks.range(from..) {
            if let Content::Batch { batch, .. } = &chunk.content {
                run.append(batch).map_err(table_error)?;
                first = first.min(chunk.first);
            }
        }
        run.finish().map_err(table_error)?;
        let run = Arc::new(run);
        self.chunks.truncate(from);
        for index in 0..run.batch_count() {
            let rows = run.rows_of(index);
            let run = Arc::clone(&run);
            self.chunks.push_back(Chunk {
                first,
                rows,
                content: Content::Page { run, index },
            });
            first += rows as u64;
        }
        let pages = u32::try_from(run.batch_count()).unwrap_or(u32::MAX);
        self.pages_written = self.pages_written.saturating_add(pages);
        Ok(())
    }

    /// The place of the chunk that holds a row.
    fn place(&self, position: u64) -> usize {
        let place = self.chunks.partition_point(|chunk| chunk.end() <= position);
        debug_assert!(self.chunks[place].first <= position, "the row was released");
        place
    }

    fn ask_ahead(&self, place: usize) {
        let ahead = self.chunks.iter().skip(place + 1).take(PAGES_AHEAD);
        for chunk in ahead {
            if let Content::Page { run, index } = &chunk.content {
                run.prefetch(*index);
            }
        }
    }

    /// The rows around a position, in memory of their own or that of the input.
    pub(super) fn around(&self, position: u64) -> Result<Rows> {
        self.stop.check().map_err(rows_error)?;
        let place = self.place(position);
        self.ask_ahead(place);
        let chunk = &self.chunks[place];
        let batch = match &chunk.content {
            Content::Batch { batch, .. } => batch.clone(),
            Content::Page { run, index } => run.read_copied(*index, None).map_err(table_error)?,
        };
        Ok(Rows {
            first: chunk.first,
            batch,
        })
    }

    fn load(&self, position: u64, columns: &[Source]) -> Result<Loaded> {
        self.stop.check().map_err(rows_error)?;
        let place = self.place(position);
        self.ask_ahead(place);
        let chunk = &self.chunks[place];
        let stored: Vec<usize> = columns.iter().filter_map(Source::column).collect();
        let stored = match &chunk.content {
            _ if stored.is_empty() => Vec::new(),
            Content::Batch { batch, .. } => batch.project(&stored)?.columns().to_vec(),
            Content::Page { run, index } => {
                let page = run.read(*index, Some(&stored)).map_err(table_error)?;
                page.columns().to_vec()
            }
        };
        let mut stored = stored.into_iter();
        let arrays = columns.iter().map(|source| match source {
            Source::Constant(value) => value.to_array_of_size(chunk.rows),
            Source::Column(_) => Ok(stored.next().expect("each was asked for")),
        });
        Ok(Loaded {
            first: chunk.first,
            rows: chunk.rows,
            arrays: arrays.collect::<Result<_>>()?,
            is_page: chunk.is_page(),
        })
    }
}

/// The rows of a batch behind some that are gone; a copy if it is the smaller part of them.
fn rest_of(batch: &RecordBatch, gone: usize) -> Result<RecordBatch> {
    let left = batch.num_rows() - gone;
    if left > gone {
        return Ok(batch.slice(gone, left));
    }
    let places = (gone..batch.num_rows()).map(|place| place as u32);
    let places = UInt32Array::from_iter_values(places);
    detach(take_record_batch(batch, &places)?)
}

/// Rows that follow each other, with all their columns.
pub(super) struct Rows {
    pub first: u64,
    pub batch: RecordBatch,
}

impl Rows {
    pub(super) fn end(&self) -> u64 {
        self.first + self.batch.num_rows() as u64
    }
}

/// Where the values of an argument come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Column(usize),
    Constant(ScalarValue),
}

impl Source {
    fn column(&self) -> Option<usize> {
        match self {
            Source::Column(column) => Some(*column),
            Source::Constant(_) => None,
        }
    }
}

/// Reads some columns at positions that only grow.
#[derive(Debug)]
pub(super) struct Cursor {
    columns: Vec<Source>,
    loaded: Option<Loaded>,
}

/// The columns of a chunk.
#[derive(Debug)]
pub(super) struct Loaded {
    first: u64,
    rows: usize,
    pub arrays: Vec<ArrayRef>,
    pub is_page: bool,
}

impl Loaded {
    fn holds(&self, position: u64) -> bool {
        self.positions().contains(&position)
    }

    /// The positions of the rows. Those of a chunk may have become part of a longer one since it
    /// was loaded, so the first one alone does not tell chunks apart.
    pub(super) fn positions(&self) -> Range<u64> {
        self.first..self.first + self.rows as u64
    }

    /// The row of a position among the rows.
    pub(super) fn row(&self, position: u64) -> usize {
        (position - self.first) as usize
    }

    /// Where in the rows the first of some positions are, as far as they are here.
    pub(super) fn part(&self, positions: &Range<u64>) -> Range<usize> {
        let end = positions.end.min(self.positions().end);
        self.row(positions.start)..self.row(end)
    }
}

impl Cursor {
    pub(super) fn new(columns: Vec<Source>) -> Self {
        Self {
            columns,
            loaded: None,
        }
    }

    pub(super) fn of_column(column: usize) -> Self {
        Self::new(vec![Source::Column(column)])
    }

    /// The rows around a position.
    pub(super) fn seek(&mut self, rows: &PartitionRows, position: u64) -> Result<&Loaded> {
        if !{ self.loaded.as_ref() }.is_some_and(|loaded| loaded.holds(position)) {
            // The page before is let go first: two would be pinned otherwise.
            self.loaded = None;
            self.loaded = Some(rows.load(position, &self.columns)?);
        }
        Ok(self.loaded.as_ref().expect("it was loaded above"))
    }

    /// Lets the page go that is pinned.
    pub(super) fn rest(&mut self) {
        if self.loaded.as_ref().is_some_and(|loaded| loaded.is_page) {
            self.loaded = None;
        }
    }
}
