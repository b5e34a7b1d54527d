//! Finished groups on their way out: pages are opened in order, read and freed.

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
}

/// Pages that are asked for while the one before them is read.
const READ_AHEAD_SEGMENTS: usize = 4;

impl Drain {
    /// Reads pages in which every living row is a group.
    pub(crate) fn new(shape: Arc<Shape>, open: Vec<OpenSegment>, closed: Vec<Segment>) -> Drain {
        Drain {
            shape,
            open: open.into(),
            closed: closed.into(),
            offset: 0,
        }
    }

    /// Opens pages that hold at least `rows_max` rows, as far as memory goes; at least one, where
    /// there is one.
    fn open_pages(&mut self, rows_max: usize) -> Result<(), Error> {
        let mut rows: usize = self.open.iter().map(|s| s.rows as usize).sum();
        while rows < rows_max
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
        let mut finished = 0;
        let mut offset = self.offset;
        for segment in &self.open {
            while offset < segment.used as usize && rows.len() < rows_max {
                let row = segment.row(offset);
                offset += self.shape.layout.row_len(row);
                if !row_is_dead(row) {
                    rows.push(row);
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
