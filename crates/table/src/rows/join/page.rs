//! One page of rows that stream past a table.

use std::sync::Arc;

use arrow_array::ArrayRef;

use super::super::Error;
use super::super::encode::KeysView;
use super::super::layout::{DEAD_BIT, mark_dead, row_hash, row_is_dead};
use super::super::segment::{OpenSegment, Shape};
use super::stored::{Stored, decode_stored};

/// The rows of a pinned page, with their keys as they were encoded.
///
/// A row that has found a partner can be marked; the mark stays in the page, for a join that reads
/// it once for each chunk of the other side.
pub struct JoinPage {
    shape: Arc<Shape>,
    open: OpenSegment,
    starts: Vec<u32>,
    key_starts: Vec<u32>,
    key_lens: Vec<u32>,
    hashes: Vec<u64>,
}

impl JoinPage {
    pub(crate) fn new(shape: &Arc<Shape>, open: OpenSegment) -> JoinPage {
        let layout = &shape.layout;
        let key_start = layout.key_start() as u32;
        let rows = open.rows as usize;
        let mut page = JoinPage {
            shape: Arc::clone(shape),
            starts: Vec::with_capacity(rows),
            key_starts: Vec::with_capacity(rows),
            key_lens: Vec::with_capacity(rows),
            hashes: Vec::with_capacity(rows),
            open,
        };
        let mut at = 0;
        while at < page.open.used {
            let row = page.open.row(at as usize);
            page.starts.push(at);
            page.key_starts.push(at + key_start);
            page.key_lens.push(layout.key_of(row).len() as u32);
            page.hashes.push(row_hash(row) & !DEAD_BIT);
            at += layout.row_len(row) as u32;
        }
        page
    }

    /// The number of its rows.
    pub fn row_count(&self) -> usize {
        self.starts.len()
    }

    /// Columns of all its rows.
    ///
    /// # Errors
    /// Where Arrow refuses the values, which it cannot.
    pub fn decode(&self, columns: &[Stored]) -> Result<Vec<ArrayRef>, Error> {
        let row_at = |start: &u32| self.open.row(*start as usize);
        let rows: Vec<&[u8]> = self.starts.iter().map(row_at).collect();
        Ok(decode_stored(&self.shape.layout, &rows, None, columns)?)
    }

    /// Whether a row was marked.
    pub fn is_marked(&self, row: usize) -> bool {
        row_is_dead(self.open.row(self.starts[row] as usize))
    }

    /// Marks a row.
    pub fn mark(&mut self, row: usize) {
        mark_dead(&mut self.open.guard[self.starts[row] as usize..]);
    }

    /// Whether the key of a row may have an equal.
    pub fn is_matchable(&self, row: usize) -> bool {
        let layout = &self.shape.layout;
        layout.is_matchable(layout.key_of(self.open.row(self.starts[row] as usize)))
    }

    pub(crate) fn view(&self) -> KeysView<'_> {
        KeysView {
            bytes: &self.open.guard,
            offsets: &self.key_starts,
            lens: &self.key_lens,
            hashes: &self.hashes,
        }
    }
}
