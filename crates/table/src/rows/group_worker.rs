//! One thread's way into a [`GroupSet`]: its own table first, then the partitions.
//!
//! Keys are looked up before rows are written: what is known already is brought up to date straight
//! from the columns, and repeats of the row before cost one comparison. Only rows with new keys are
//! encoded.

use std::sync::Arc;

use super::Error;
use super::encode::{GroupInput, RowBlock, RowsView};
use super::estimate::DistinctEstimate;
use super::group_runs::RunBuffers;
use super::group_set::GroupSet;
use super::hash::Level;
use super::row_table::{Found, RowTable, Scratch};
use super::scatter::Scatter;
use super::slices::{Slice, cut};
use super::walked::Walked;

/// Rows that pass before a worker tries its own table again.
const DIRECT_ROWS: u64 = 1 << 20;

/// Rows between two looks at the number of distinct keys.
const ESTIMATE_ROWS: u64 = 1 << 17;

/// The same for rows larger than a page, in bytes: a look costs less than copying as many.
const PASSED_BYTES: usize = 4 << 20;

/// A worker's own table keeps working while it merges at least this many rows into one.
const FRONT_REDUCTION_MIN: u64 = 2;

/// Looking keys up before rows are written pays while at most one row in this many is new.
const UPDATE_SHARE_MIN: usize = 2;

/// Rows without a number that is known are copied out of their batch while at most one in this many
/// is such.
const PICKED_SHARE_MIN: usize = 4;

/// Batches after which that is tried again.
const ENCODED_BATCHES: u32 = 4;

/// What a worker looks the keys of a batch up with; kept between batches.
#[derive(Default)]
struct Lookup {
    keys: RowBlock,
    rows: Vec<u32>,
    found: Found,
    runs: RunBuffers,
}

/// One thread's way into a [`GroupSet`].
pub struct GroupWorker {
    set: Arc<GroupSet>,
    first_partition: usize,
    front: Option<RowTable>,
    /// Groups that it holds at most.
    front_groups: usize,
    front_rows: u64,
    /// Rows that still bypass the worker's own table.
    direct_rows_left: u64,
    /// The difference between the least and the greatest key, where keys are numbers.
    range: Option<u64>,
    estimate: DistinctEstimate,
    estimated_rows: u64,
    /// Bytes of large rows since the last look at the number of distinct keys.
    passed_bytes: usize,
    block: RowBlock,
    scatter: Scatter,
    scratch: Scratch,
    lookup: Lookup,
    /// Batches that are not looked up first: the last one that was had too many new keys.
    batches_to_encode: u32,
}

impl GroupSet {
    /// A worker that fills the set; one for each input stream.
    pub fn worker(self: &Arc<Self>, number: usize) -> GroupWorker {
        GroupWorker::new(self, number)
    }
}

impl GroupWorker {
    fn new(set: &Arc<GroupSet>, number: usize) -> GroupWorker {
        let front = !set.options.keep_rows && set.options.front_groups > 0;
        GroupWorker {
            set: Arc::clone(set),
            first_partition: number * set.partitions.len() / set.options.workers.max(1),
            front: None,
            front_groups: set.options.front_groups,
            front_rows: 0,
            direct_rows_left: if front { 0 } else { u64::MAX },
            range: None,
            estimate: DistinctEstimate::default(),
            estimated_rows: 0,
            passed_bytes: 0,
            block: RowBlock::default(),
            scatter: Scatter::default(),
            scratch: Scratch::default(),
            lookup: Lookup::default(),
            batches_to_encode: 0,
        }
    }

    /// Takes one batch in. Does not wait for anything but disk when memory is short.
    ///
    /// # Errors
    /// Whatever the temp space reports: quota, disk full, I/O; then the set is to be dropped.
    pub fn push(&mut self, input: &GroupInput<'_>) -> Result<(), Error> {
        let cuts = cut(&self.set.shape.layout, input)
            .map_err(|row_bytes| self.set.shape.short_of(row_bytes))?;
        let mut block = std::mem::take(&mut self.block);
        let pushed = if cuts.len() == 1 {
            self.push_block(&mut block, input)
        } else {
            cuts.into_iter().try_for_each(|rows| {
                let slice = Slice::of(input, rows);
                self.push_block(&mut block, &slice.input())
            })
        };
        block.shrink();
        self.lookup.keys.shrink();
        self.block = block;
        pushed
    }

    /// Brings groups that the worker's own table has up to date and writes rows for the others.
    fn push_block(&mut self, block: &mut RowBlock, input: &GroupInput<'_>) -> Result<(), Error> {
        let set = Arc::clone(&self.set);
        set.shape.stop.check()?;
        let layout = &set.shape.layout;
        if self.batches_to_encode > 0 || !layout.payload_is_first || self.front().is_none() {
            self.batches_to_encode = self.batches_to_encode.saturating_sub(1);
            block.encode(layout, &set.shape.hasher, input);
            return self.push_rows(block.view());
        }
        let mut lookup = std::mem::take(&mut self.lookup);
        let pushed = self.push_looked_up(&mut lookup, block, input);
        self.lookup = lookup;
        pushed
    }

    fn push_looked_up(
        &mut self,
        lookup: &mut Lookup,
        block: &mut RowBlock,
        input: &GroupInput<'_>,
    ) -> Result<(), Error> {
        let front = self.front.as_mut().expect("the caller looked");
        let Lookup {
            found, rows, runs, ..
        } = lookup;
        if !front.find_direct(input, &mut found.known, rows) {
            rows.extend(0..input.rows as u32);
            return self.push_by_hash(lookup, block, input, input.rows);
        }
        front.update(input.states, &found.known, runs);
        self.front_rows += found.known.len() as u64;
        if rows.is_empty() {
            return Ok(());
        }
        if rows.len() * PICKED_SHARE_MIN > input.rows {
            return self.push_by_hash(lookup, block, input, input.rows);
        }
        let rest = Slice::picked(input, rows);
        rows.clear();
        rows.extend(0..rest.input().rows as u32);
        self.push_by_hash(lookup, block, &rest.input(), input.rows)
    }

    /// Looks `lookup.rows` up by their hashes; the input is what is left of so many rows.
    fn push_by_hash(
        &mut self,
        lookup: &mut Lookup,
        block: &mut RowBlock,
        input: &GroupInput<'_>,
        batch_rows: usize,
    ) -> Result<(), Error> {
        let Lookup {
            keys,
            rows,
            found,
            runs,
        } = lookup;
        let set = Arc::clone(&self.set);
        let layout = &set.shape.layout;
        let keys = keys.encode_keys(layout, &set.shape.hasher, input);
        loop {
            let (Some(front), false) = (&mut self.front, self.direct_rows_left > 0) else {
                // It was given up for the rows before these.
                return self.push_some(rows, block, input);
            };
            front.find(keys, rows, found, &mut self.scratch);
            front.update(input.states, &found.known, runs);
            front.learn(input, rows.len(), &found.known)?;
            self.front_rows += found.known.len() as u64;
            if found.unknown.is_empty() {
                return Ok(());
            }
            if found.unknown.len() * UPDATE_SHARE_MIN > batch_rows {
                self.batches_to_encode = ENCODED_BATCHES;
            }
            self.push_some(&found.unknown, block, input)?;
            if layout.states.is_empty() {
                // The group is known, and there is nothing else to know of it.
                self.front_rows += found.repeats.len() as u64;
                return Ok(());
            }
            std::mem::swap(rows, &mut found.repeats);
        }
    }

    /// Writes and pushes some rows of the input.
    fn push_some(
        &mut self,
        rows: &[u32],
        block: &mut RowBlock,
        input: &GroupInput<'_>,
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let rest = Slice::picked(input, rows);
        let shape = &self.set.shape;
        block.encode(&shape.layout, &shape.hasher, &rest.input());
        self.push_rows(block.view())
    }

    /// The worker's own table, while it is in use.
    fn front(&mut self) -> Option<&mut RowTable> {
        self.front.as_mut().filter(|_| self.direct_rows_left == 0)
    }

    fn push_rows(&mut self, rows: RowsView<'_>) -> Result<(), Error> {
        let mut from = 0;
        while from < rows.offsets.len() {
            if self.direct_rows_left > 0 {
                let rest = RowsView {
                    bytes: rows.bytes,
                    offsets: &rows.offsets[from..],
                    hashes: &rows.hashes[from..],
                };
                self.push_direct(rest)?;
                return Ok(());
            }
            from = self.push_front(rows, from)?;
        }
        Ok(())
    }

    fn push_direct(&mut self, rows: RowsView<'_>) -> Result<(), Error> {
        let count = rows.offsets.len() as u64;
        self.direct_rows_left = self.direct_rows_left.saturating_sub(count);
        if !self.set.options.keep_rows {
            self.estimate.add(rows.hashes);
            self.estimated_rows += count;
            if self.estimated_rows >= ESTIMATE_ROWS {
                self.learn();
            }
        }
        self.set.distribute(
            rows,
            self.first_partition,
            &mut self.scatter,
            &mut self.scratch,
        )
    }

    fn learn(&mut self) {
        let rows = std::mem::take(&mut self.estimated_rows);
        self.set.learn(&self.estimate, rows, self.range);
        if self.set.front_groups() > self.front_groups {
            // It was too small for the keys and may now hold them all.
            self.front_groups = self.set.front_groups();
            self.front = None;
            self.direct_rows_left = 0;
        }
    }

    /// Merges rows from `from` on into the worker's own table; returns where it stopped.
    fn push_front(&mut self, rows: RowsView<'_>, from: usize) -> Result<usize, Error> {
        let count = rows.offsets.len();
        if self.front.is_none() {
            let groups = self.front_groups;
            let front = RowTable::new(&self.set.shape, Level::default(), 1024.min(groups), groups)?;
            let page_bytes = self.set.shape.page_class.bytes();
            let bytes = self.set.options.front_pages.saturating_mul(page_bytes);
            self.front = front.map(|table| table.for_worker(bytes)).transpose()?;
        }
        let Some(front) = &mut self.front else {
            self.direct_rows_left = DIRECT_ROWS;
            return Ok(from);
        };
        let selection: Vec<u32> = (from as u32..count as u32).collect();
        let taken = front.upsert(rows, &selection, &mut self.scratch)?;
        self.front_rows += taken as u64;
        if from + taken < count {
            if self.pass_large(rows, from + taken)? {
                return Ok(from + taken + 1);
            }
            let front = self.front.as_ref().expect("it took rows above");
            let reduces = self.front_rows >= FRONT_REDUCTION_MIN * front.groups() as u64;
            self.flush_front(reduces && taken > 0)?;
        }
        Ok(from + taken)
    }

    /// Sends a row that is larger than a page past the worker's own table, which keeps its groups:
    /// few such rows would fill it. False where the row is not.
    fn pass_large(&mut self, rows: RowsView<'_>, row: usize) -> Result<bool, Error> {
        let set = Arc::clone(&self.set);
        let row_len = {
            let bytes = &rows.bytes[rows.offsets[row] as usize..];
            set.shape.layout.row_len(bytes)
        };
        if row_len <= set.shape.page_class.bytes() {
            return Ok(false);
        }
        let one = RowsView {
            bytes: rows.bytes,
            offsets: &rows.offsets[row..=row],
            hashes: &rows.hashes[row..=row],
        };
        self.estimate.add(one.hashes);
        self.estimated_rows += 1;
        self.passed_bytes += row_len;
        if self.passed_bytes >= PASSED_BYTES {
            // Not `self.learn`: the own table is in use.
            self.passed_bytes = 0;
            let rows = std::mem::take(&mut self.estimated_rows);
            set.learn(&self.estimate, rows, None);
        }
        let first = self.first_partition;
        set.distribute(one, first, &mut self.scatter, &mut self.scratch)?;
        Ok(true)
    }

    /// Empties the worker's own table into the partitions.
    fn flush_front(&mut self, keep: bool) -> Result<(), Error> {
        let Some(mut front) = self.front.take() else {
            return Ok(());
        };
        let mut walked = Walked::default();
        self.range = front.range().or(self.range);
        // What counts is how often the rows repeat that this table lets through.
        self.estimated_rows += front.groups() as u64;
        self.front_rows = 0;
        for segment in front.segments() {
            let rows = walked.rows(&self.set.shape.layout, segment);
            self.estimate.add(rows.hashes);
            self.set.distribute(
                rows,
                self.first_partition,
                &mut self.scatter,
                &mut self.scratch,
            )?;
        }
        if keep {
            front.clear();
            self.front = Some(front);
        } else {
            self.direct_rows_left = DIRECT_ROWS;
        }
        self.learn();
        Ok(())
    }

    /// Whether the numbers that are its keys are found without their hashes.
    #[cfg(test)]
    pub(crate) fn is_direct(&self) -> bool {
        self.front.as_ref().is_some_and(RowTable::is_direct)
    }

    /// Whether short keys are found without their hashes.
    #[cfg(test)]
    pub(crate) fn knows_short_keys(&self) -> bool {
        self.front.as_ref().is_some_and(RowTable::knows_short_keys)
    }

    /// Ends this worker's input.
    ///
    /// # Errors
    /// As [`GroupWorker::push`].
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush_front(false)
    }
}
