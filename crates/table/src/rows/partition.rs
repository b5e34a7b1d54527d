//! One radix partition: a table while memory lasts, closed pages of rows when it does not.
//!
//! Rows to be merged are gathered first: 64 partitions take turns with every batch, and a table
//! that is visited for a hundred rows is out of cache again at the next visit (measured: 88 ns a
//! row against 50 for a million groups).

use std::sync::{Arc, Mutex};

use super::Error;
use super::encode::RowsView;
use super::hash::Level;
use super::row_table::{RowTable, Scratch};
use super::segment::{OpenSegment, Segment, Shape};
use super::walked::Walked;

/// What happens to a row that reaches its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It is merged into the partition's table: memory grows with the groups.
    Merge,
    /// It is appended; doubles are found when the partition is finished.
    Append,
}

/// Rows that wait for a merge are at most as many as the table has groups, within these bounds: one
/// pass over the table serves many of them while it is in cache, and memory stays within twice the
/// groups.
const PENDING_ROWS_MIN: usize = 1 << 10;
const PENDING_ROWS_MAX: usize = 1 << 15;

/// Waiting rows of all partitions take at most this part of the budget.
const PENDING_BUDGET_SHARE: u64 = 8;

pub(crate) struct Partition {
    shape: Arc<Shape>,
    /// Its place in the processing order, which is its pages' next use.
    number: u32,
    level: Level,
    /// Bytes of pages that may wait for a merge.
    pending_bytes_max: usize,
    /// Rows merged so far, while memory lasts.
    hot: Option<RowTable>,
    /// Pinned pages of rows that wait for their merge; the last one is being filled.
    pending: Vec<OpenSegment>,
    pending_rows: usize,
    pending_bytes: usize,
    /// Rows that are merged when the partition is finished.
    cold: Vec<Segment>,
    /// The closed pages hold every group once: they are the result.
    unique: bool,
    /// It gave its memory up: later rows are appended, whatever the others do.
    withdrawn: bool,
}

impl Partition {
    pub(crate) fn new(shape: &Arc<Shape>, number: u32, level: Level, siblings: usize) -> Partition {
        let budget = shape.account.space().memory_bytes() / PENDING_BUDGET_SHARE;
        let share = usize::try_from(budget / siblings as u64).unwrap_or(usize::MAX);
        Partition {
            pending_bytes_max: share.max(2 * shape.page_class.bytes()),
            shape: Arc::clone(shape),
            number,
            level,
            hot: None,
            pending: Vec::new(),
            pending_rows: 0,
            pending_bytes: 0,
            cold: Vec::new(),
            unique: false,
            withdrawn: false,
        }
    }

    /// Its closed pages.
    pub(crate) fn cold(&self) -> &[Segment] {
        &self.cold
    }

    /// The length of the row at the head of `row`.
    pub(crate) fn row_len(&self, row: &[u8]) -> usize {
        self.shape.layout.row_len(row)
    }

    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// The error of a caller that found no memory for its rows.
    pub(crate) fn short_of(&self, asked_bytes: u64) -> Error {
        self.shape.short_of(asked_bytes).into()
    }

    /// Takes the selected rows; fewer than asked where memory is short.
    pub(crate) fn accept(
        &mut self,
        mode: Mode,
        rows: RowsView<'_>,
        selection: &[u32],
        scratch: &mut Scratch,
    ) -> Result<usize, Error> {
        let mode = if self.withdrawn { Mode::Append } else { mode };
        for (taken, index) in selection.iter().enumerate() {
            let row = &rows.bytes[rows.offsets[*index as usize] as usize..];
            if !self.append(mode, &row[..self.shape.layout.row_len(row)])? {
                return Ok(taken);
            }
        }
        let groups = self.hot.as_ref().map_or(0, RowTable::groups);
        let due = groups.clamp(PENDING_ROWS_MIN, PENDING_ROWS_MAX);
        let full = self.pending_rows >= due || self.pending_bytes > self.pending_bytes_max;
        if mode == Mode::Merge && full {
            // Where memory is too short for that, the rows go on waiting.
            self.merge_pending(scratch)?;
        }
        Ok(selection.len())
    }

    fn append(&mut self, mode: Mode, row: &[u8]) -> Result<bool, Error> {
        if row.len() > self.shape.page_class.bytes() {
            return self.append_large(mode, row);
        }
        if self
            .pending
            .last()
            .is_none_or(|tail| !tail.has_room(row.len()))
        {
            if mode == Mode::Append {
                self.close_pending();
            }
            let Some(segment) = self.shape.open(row.len())? else {
                return Ok(false);
            };
            self.pending_bytes += segment.guard.len();
            self.pending.push(segment);
        }
        let tail = self.pending.last_mut().expect("a page was opened above");
        tail.push(row);
        self.pending_rows += 1;
        Ok(true)
    }

    /// Puts a row into a page of its own, beside the one being filled. The minimum of the set does
    /// not have it, so it is unpinned at once unless the row waits for a merge.
    fn append_large(&mut self, mode: Mode, row: &[u8]) -> Result<bool, Error> {
        let Some(mut segment) = self.shape.open(row.len())? else {
            return Ok(false);
        };
        segment.push(row);
        if mode == Mode::Append {
            self.cold.push(segment.close(self.number));
        } else {
            self.pending_rows += 1;
            self.pending_bytes += segment.guard.len();
            let tail = self.pending.len().saturating_sub(1);
            self.pending.insert(tail, segment);
        }
        Ok(true)
    }

    fn close_pending(&mut self) {
        self.pending_rows = 0;
        self.pending_bytes = 0;
        for tail in self.pending.drain(..) {
            if tail.rows > 0 {
                self.cold.push(tail.close(self.number));
            }
        }
    }

    /// Merges the waiting rows into the table, freeing their pages. Returns whether that freed
    /// any.
    pub(crate) fn merge_pending(&mut self, scratch: &mut Scratch) -> Result<bool, Error> {
        if self.hot.is_none() {
            self.hot = RowTable::new(&self.shape, self.level, 0, usize::MAX)?;
        }
        let Some(table) = &mut self.hot else {
            return Ok(false);
        };
        let mut walked = Walked::default();
        let mut freed = false;
        while let Some(mut segment) = self.pending.pop() {
            let (taken, is_all) = table.merge_page(&mut segment, &mut walked, scratch)?;
            self.pending_rows = self.pending_rows.saturating_sub(taken);
            if !is_all {
                self.pending.push(segment);
                return Ok(freed);
            }
            self.pending_bytes -= segment.guard.len();
            freed = true;
        }
        self.pending_rows = 0;
        Ok(freed)
    }

    /// Bytes of rows in its open pages.
    fn pending_fill(&self) -> u64 {
        self.pending.iter().map(|page| u64::from(page.used)).sum()
    }

    /// Whether merging its waiting rows may free pages.
    fn can_merge(&self) -> bool {
        !self.withdrawn && self.pending.len() > 1
    }

    /// Unpins the table and the waiting rows for good. Returns how many bytes of pages and
    /// directory that released.
    fn withdraw(&mut self) -> u64 {
        let table = self.hot.as_ref().map_or(0, RowTable::held_bytes);
        let released = table + self.pending_bytes as u64;
        self.close_pending();
        if let Some(table) = self.hot.take() {
            self.cold.extend(table.withdraw(self.number));
        }
        self.withdrawn = true;
        released
    }

    /// Withdraws for somebody else, and returns how many bytes that released. One that has
    /// withdrawn before keeps a page that is less than half full: closing it again and again would
    /// write little else than empty pages.
    pub(crate) fn give_up(&mut self) -> u64 {
        if self.withdrawn && self.pending_fill() * 2 < self.pending_bytes as u64 {
            return 0;
        }
        self.withdraw()
    }

    /// Ends the input: what waits is merged, and every page is unpinned. Pages of a partition that
    /// was merged all along are the result as they are; whoever reads them needs no directory. One
    /// of which pages were written is left as it is: to merge it here would read those pages, only
    /// to write all of them again before the partition's turn.
    pub(crate) fn settle(&mut self, scratch: &mut Scratch) -> Result<(), Error> {
        if self.hot.is_some() {
            self.merge_pending(scratch)?;
            let in_memory = self.cold.iter().all(|page| page.page.is_resident());
            self.unique = self.pending.is_empty() && in_memory && self.merge_cold(scratch)?;
        }
        self.close_pending();
        if let Some(table) = self.hot.take() {
            self.cold.extend(table.withdraw(self.number));
        }
        Ok(())
    }

    /// Merges closed pages into the table, freeing them; false where memory ran short.
    fn merge_cold(&mut self, scratch: &mut Scratch) -> Result<bool, Error> {
        match &mut self.hot {
            Some(table) => table.merge_pages(&mut self.cold, scratch),
            None => Ok(false),
        }
    }

    /// The settled pages, and whether they hold every group once.
    pub(crate) fn take_pages(&mut self) -> (Vec<Segment>, bool) {
        (std::mem::take(&mut self.cold), self.unique)
    }
}

/// Frees memory for partition `own` (locked by the caller). First waiting rows are merged; then the
/// partition that is read last gives up its table, for good, so that the others go on merging; own
/// pages are the last resort. False where nothing is left to give.
pub(crate) fn make_room(
    partitions: &[Mutex<Partition>],
    own: &mut Partition,
    mode: Mode,
    scratch: &mut Scratch,
) -> Result<bool, Error> {
    if mode == Mode::Merge {
        if own.can_merge() && own.merge_pending(scratch)? {
            return Ok(true);
        }
        // A partition that is locked is in use, or is our own.
        for other in partitions.iter().rev() {
            if let Ok(mut other) = other.try_lock()
                && other.can_merge()
                && other.merge_pending(scratch)?
            {
                return Ok(true);
            }
        }
    }
    for other in partitions.iter().rev() {
        if let Ok(mut other) = other.try_lock()
            && !other.withdrawn
            && other.number >= own.number
            && other.withdraw() > 0
        {
            return Ok(true);
        }
    }
    if !own.withdrawn && own.withdraw() > 0 {
        return Ok(true);
    }
    // Only partitions that are read earlier still hold memory: the latest of them gives.
    for other in partitions.iter().rev() {
        if let Ok(mut other) = other.try_lock()
            && !other.withdrawn
            && other.withdraw() > 0
        {
            return Ok(true);
        }
    }
    // All have given their tables up, and what is left are the pages that they fill. Those are part
    // of the admitted minimum, so this is for rows larger than a page: the fullest goes.
    let others = partitions.iter().filter_map(|other| other.try_lock().ok());
    let released = match others.max_by_key(|other| other.pending_fill()) {
        Some(mut other) if other.pending_fill() > own.pending_fill() => other.withdraw(),
        _ => own.withdraw(),
    };
    Ok(released > 0)
}
