//! Finished groups on their way out: pages are opened in order, read and freed.
//!
//! A batch is a copy of its rows that nobody accounts for, so it is bounded by their bytes and not
//! only by their number.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_schema::ArrowError;
use mayfly_space::Error;

use super::decode::{self, GroupColumns};
use super::layout::row_is_dead;
use super::segment::{OpenSegment, Segment, Shape};

/// Finished groups on their way out.
pub(crate) struct Drain {
    shape: Arc<Shape>,
    open: VecDeque<OpenSegment>,
    closed: VecDeque<Segment>,
    offset: usize,
    batch_bytes_max: usize,
}

/// Rows of a batch take at most this, or are a single one ...
const BATCH_BYTES_MAX: u64 = 4 << 20;
/// ... and at most one part in this many of the budget.
const BATCHES_PER_BUDGET: u64 = 16;
/// The same in a budget that is smaller than that: one page.
const BATCH_BYTES_MIN: u64 = 64 << 10;

/// Pages that are asked for while the one before them is read.
const READ_AHEAD_SEGMENTS: usize = 4;

impl Drain {
    /// Reads pages in which every living row is a group.
    pub(crate) fn new(shape: Arc<Shape>, open: Vec<OpenSegment>, closed: Vec<Segment>) -> Drain {
        let share = shape.account.space().memory_bytes() / BATCHES_PER_BUDGET;
        let batch_bytes_max = share.clamp(BATCH_BYTES_MIN, BATCH_BYTES_MAX) as usize;
        Drain {
            batch_bytes_max,
            shape,
            open: open.into(),
            closed: closed.into(),
            offset: 0,
        }
    }

    /// Opens pages that hold at least `rows_max` rows or what a batch may take, as far as memory
    /// goes; at least one, where there is one.
    fn open_pages(&mut self, rows_max: usize) -> Result<(), Error> {
        let mut rows: usize = self.open.iter().map(|s| s.rows as usize).sum();
        let mut bytes: usize = self.open.iter().map(|s| s.used as usize).sum();
        while rows < rows_max
            && bytes < self.batch_bytes_max.saturating_add(self.offset)
            && let Some(segment) = self.closed.front()
        {
            let open = match segment.open()? {
                Some(open) => open,
                // What is open makes a batch.
                None if !self.open.is_empty() => break,
                // Not a single page could be pinned. Memory may be back by now.
                None => segment.open_or_fail()?,
            };
            rows += open.rows as usize;
            bytes += open.used as usize;
            self.closed.pop_front();
            self.open.push_back(open);
            for next in self.closed.iter().take(READ_AHEAD_SEGMENTS) {
                next.page.prefetch();
            }
        }
        Ok(())
    }

    /// Up to `rows_max` groups; `None` at the end.
    pub(crate) fn next_batch(
        &mut self,
        rows_max: usize,
    ) -> Result<Option<GroupColumns>, super::Error> {
        let rows_max = rows_max.max(1);
        while !self.open.is_empty() || !self.closed.is_empty() {
            self.open_pages(rows_max)?;
            let batch = self.read_open(rows_max)?;
            if batch.is_some() {
                return Ok(batch);
            }
        }
        Ok(None)
    }

    fn read_open(&mut self, rows_max: usize) -> Result<Option<GroupColumns>, ArrowError> {
        let mut rows: Vec<&[u8]> = Vec::with_capacity(rows_max.min(8192));
        let (mut finished, mut bytes) = (0, 0);
        let mut offset = self.offset;
        for segment in &self.open {
            let has_room = |rows: usize, bytes: usize| {
                rows < rows_max && (rows == 0 || bytes < self.batch_bytes_max)
            };
            while offset < segment.used as usize && has_room(rows.len(), bytes) {
                let row = segment.row(offset);
                let len = self.shape.layout.row_len(row);
                offset += len;
                if !row_is_dead(row) {
                    rows.push(row);
                    bytes += len;
                }
            }
            if offset < segment.used as usize {
                break;
            }
            finished += 1;
            offset = 0;
        }
        let batch = if rows.is_empty() {
            None
        } else {
            Some(decode::decode(&self.shape.layout, &rows)?)
        };
        drop(rows);
        self.offset = offset;
        self.open.drain(..finished);
        Ok(batch)
    }
}
