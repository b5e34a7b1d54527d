//! The groups of one aggregate: what its workers fill together and then read partition by
//! partition.
//!
//! **Input.** A worker encodes a batch into rows and tries a cache-sized table of its own first
//! (*hit*). When that table fills up without having merged much, rows go straight to their radix
//! partition for the next 2^20 rows: *merge*d into the partition's table where keys repeat,
//! appended unseen where they hardly do (*bypass*). A HyperLogLog over all rows decides between
//! the two. Partitions are fixed from the first row.
//!
//! **Short of memory** the partitions that will be read last give up their tables: their pages
//! become evictable and later rows start a new generation. Nothing is sorted and no other code
//! runs.
//!
//! **Output.** Partitions are read in order. One that is a complete table is read as it is; the
//! others index their pages in place, or, where they do not fit, are split by the next hash bits.
//!
//! **Source.** Hybrid hashing with late withdrawal after Kuiper, Boncz, Muehleisen, "Robust
//! External Hash Aggregation in the Solid State Age" (ICDE 2024), but merging eagerly, so that
//! memory follows the number of groups and not of rows (Mueller et al., "Cache-Efficient
//! Aggregation", SIGMOD 2015).

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, UInt32Array};
use arrow_select::take::take;
use mayfly_space::{Account, Admission, Error, PageClass};

use super::directory::directory_bytes;
use super::encode::{GroupInput, RowBlock, RowsView};
use super::estimate::DistinctEstimate;
use super::layout::RowLayout;
use super::partition::{Mode, Partition, Scatter, make_room};
use super::row_table::{RowTable, Scratch};
use super::segment::{Shape, walk};
use super::state::StateInput;

/// Rows that pass before a worker tries its own table again.
const DIRECT_ROWS: u64 = 1 << 20;

/// Rows between two looks at the number of distinct keys.
const ESTIMATE_ROWS: u64 = 1 << 17;

/// A worker's own table keeps working while it merges at least this many rows into one.
const FRONT_REDUCTION_MIN: u64 = 2;

/// Rows a group at which merging pays for its directory look-ups.
const MERGE_REDUCTION_MIN: f64 = 1.5;

/// Looking keys up before rows are written pays while at most one row in this many is new.
const UPDATE_SHARE_MIN: usize = 2;

/// Batches after which that is tried again.
const ENCODED_BATCHES: u32 = 4;

/// Most groups of a worker's own table, whatever the budget: beyond, partitions are quicker, whose
/// tables stay in cache while a batch's worth of their rows is merged.
const FRONT_GROUPS_MAX: u64 = 1 << 19;

/// What an aggregate is given to work with.
#[derive(Debug, Clone, Copy)]
pub struct GroupOptions {
    /// Threads that fill it, and later read it.
    pub workers: usize,
    /// Class of its pages.
    pub page_class: PageClass,
    /// Radix partitions as a power of two.
    pub partition_bits: u32,
    /// Groups that a worker's own table holds at first; 0 for none.
    pub front_groups: usize,
    /// Groups that it may hold where all keys there are seem to fit.
    pub front_groups_max: usize,
    /// Pages that a worker's own table has at most.
    pub front_pages: usize,
    /// Keep every input row: its payload holds arguments that are aggregated partition by
    /// partition.
    pub keep_rows: bool,
}

impl GroupOptions {
    /// Options that suit a memory budget.
    pub fn for_budget(memory_bytes: u64, page_class: PageClass, workers: usize) -> GroupOptions {
        // A quarter of the budget may be tails; 64 partitions are enough for 64 times the budget.
        let tails = memory_bytes / 8 / page_class.bytes() as u64;
        let partition_bits = tails.max(1).ilog2().clamp(3, 6);
        // A row of a front table takes about 100 bytes with its slots.
        let front_bytes = memory_bytes / 16 / workers.max(1) as u64;
        let front_pages = (front_bytes / page_class.bytes() as u64).max(2) as usize;
        let front_groups_max = (front_bytes / 128).clamp(256, FRONT_GROUPS_MAX) as usize;
        let front_groups = front_groups_max.min(1 << 15);
        GroupOptions {
            workers,
            page_class,
            partition_bits,
            front_groups,
            front_groups_max,
            front_pages,
            keep_rows: false,
        }
    }

    /// Bytes without which the aggregate cannot go on: a page for each partition, and for each
    /// worker the pages of one split and of its own table.
    pub fn minimum_bytes(&self) -> u64 {
        let page = self.page_class.bytes() as u64;
        let split = page * ((1 << SPLIT_BITS) + 2);
        // Its pages, and its directory twice: it grows by copying.
        let front = page * 2 + 2 * directory_bytes(self.front_groups.min(1 << 10));
        (page << self.partition_bits) + (split + front) * self.workers as u64
    }
}

/// Hash bits by which a partition that does not fit is split.
pub(crate) const SPLIT_BITS: u32 = 4;

/// The groups of one aggregate, shared by its workers.
pub struct GroupSet {
    pub(crate) shape: Arc<Shape>,
    pub(crate) options: GroupOptions,
    pub(crate) partitions: Vec<Mutex<Partition>>,
    merging: AtomicBool,
    /// Groups that a worker's own table may hold now.
    front_groups: AtomicUsize,
    estimate: Mutex<(DistinctEstimate, u64)>,
    unsettled: AtomicU32,
    next: AtomicU32,
    _admission: Admission,
}

impl std::fmt::Debug for GroupSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupSet")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl GroupSet {
    /// An empty set.
    ///
    /// # Errors
    /// `MinimumNotMet` where the budget cannot hold [`GroupOptions::minimum_bytes`].
    pub fn new(
        layout: RowLayout,
        account: &Account,
        options: GroupOptions,
    ) -> Result<Arc<GroupSet>, Error> {
        let admission = account.admit(options.minimum_bytes())?;
        let shape = Shape::new(layout, account.clone(), options.page_class);
        let bits = options.partition_bits;
        let partitions = (0..1u32 << bits)
            .map(|number| Mutex::new(Partition::new(&shape, number, bits, 1 << bits)))
            .collect();
        Ok(Arc::new(GroupSet {
            shape,
            options,
            partitions,
            merging: AtomicBool::new(false),
            front_groups: AtomicUsize::new(options.front_groups),
            estimate: Mutex::default(),
            unsettled: AtomicU32::new(0),
            next: AtomicU32::new(0),
            _admission: admission,
        }))
    }

    /// A worker that fills the set; one for each input stream.
    pub fn worker(self: &Arc<Self>, number: usize) -> GroupWorker {
        let front = !self.options.keep_rows && self.options.front_groups > 0;
        GroupWorker {
            set: Arc::clone(self),
            first_partition: number * self.partitions.len() / self.options.workers.max(1),
            front: None,
            front_groups: self.options.front_groups,
            front_rows: 0,
            direct_rows_left: if front { 0 } else { u64::MAX },
            estimate: DistinctEstimate::default(),
            estimated_rows: 0,
            block: RowBlock::default(),
            scatter: Scatter::default(),
            scratch: Scratch::default(),
            known: Vec::new(),
            unknown: Vec::new(),
            batches_to_encode: 0,
        }
    }

    /// Withdraws tables until `bytes` are unpinned, the partition that is read last first. Returns
    /// how many were: 0 where there is nothing left to give at this moment.
    pub fn shed(&self, bytes: u64) -> u64 {
        let pinned = || self.shape.account.counters().pinned_bytes;
        let before = pinned();
        let mut after = before;
        for partition in self.partitions.iter().rev() {
            if before.saturating_sub(after) >= bytes {
                break;
            }
            // One that is locked is being filled.
            if let Ok(mut partition) = partition.try_lock()
                && partition.give_up()
            {
                after = pinned();
            }
        }
        before.saturating_sub(after)
    }

    /// The next partition to settle, once every worker has finished.
    pub(crate) fn take_unsettled(&self) -> Option<u32> {
        let number = self.unsettled.fetch_add(1, Ordering::Relaxed);
        ((number as usize) < self.partitions.len()).then_some(number)
    }

    /// The next partition to read, once every worker has finished; `None` when all are handed out.
    pub(crate) fn take_partition(&self) -> Option<u32> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        ((number as usize) < self.partitions.len()).then_some(number)
    }

    pub(crate) fn lock(&self, partition: usize) -> MutexGuard<'_, Partition> {
        self.partitions[partition]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether keys repeat enough for rows to be merged on arrival.
    pub(crate) fn merges(&self) -> bool {
        self.merging.load(Ordering::Relaxed)
    }

    fn mode(&self) -> Mode {
        if self.merges() {
            Mode::Merge
        } else {
            Mode::Append
        }
    }

    /// Takes a worker's sketch in and chooses the mode for all.
    fn learn(&self, estimate: &DistinctEstimate, rows: u64) {
        let mut shared = self.estimate.lock().unwrap_or_else(PoisonError::into_inner);
        shared.0.merge(estimate);
        shared.1 += rows;
        let distinct = shared.0.distinct();
        let repeats = shared.1 as f64 >= MERGE_REDUCTION_MIN * distinct;
        self.merging
            .store(repeats && !self.options.keep_rows, Ordering::Relaxed);
        // Some more keys will come; twice as many as have been seen must fit.
        let groups_max = self.options.front_groups_max;
        let groups = (distinct * 2.0) as usize;
        if repeats && groups <= groups_max && groups > self.front_groups() {
            let groups = (groups * 2).min(groups_max);
            self.front_groups.store(groups, Ordering::Relaxed);
        }
    }

    fn front_groups(&self) -> usize {
        self.front_groups.load(Ordering::Relaxed)
    }

    /// Sends rows to their partitions.
    fn distribute(
        &self,
        rows: RowsView<'_>,
        first: usize,
        scatter: &mut Scatter,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        scatter.sort(rows.hashes, 0, self.options.partition_bits);
        let mode = self.mode();
        let count = self.partitions.len();
        for step in 0..count {
            let number = (first + step) % count;
            let selection = scatter.rows_of(number);
            if !selection.is_empty() {
                let mut partition = self.lock(number);
                fill(
                    &self.partitions,
                    &mut partition,
                    mode,
                    rows,
                    selection,
                    scratch,
                )?;
            }
        }
        Ok(())
    }
}

/// Puts all selected rows into a partition, withdrawing tables where memory is short.
pub(crate) fn fill(
    partitions: &[Mutex<Partition>],
    partition: &mut Partition,
    mode: Mode,
    rows: RowsView<'_>,
    mut selection: &[u32],
    scratch: &mut Scratch,
) -> Result<(), Error> {
    loop {
        let taken = partition.accept(mode, rows, selection, scratch)?;
        selection = &selection[taken..];
        if selection.is_empty() {
            return Ok(());
        }
        if !make_room(partitions, partition, mode, scratch)? {
            // Others hold the memory. Ask once more: the error says how much there is.
            let taken = partition.accept(Mode::Append, rows, &selection[..1], scratch)?;
            if taken == 0 {
                let row = &rows.bytes[rows.offsets[selection[0] as usize] as usize..];
                return Err(partition.short_of(partition.row_len(row) as u64));
            }
            selection = &selection[taken..];
        }
    }
}

/// Those rows of a batch that are left to be written.
struct Rest {
    rows: Vec<u32>,
    key: Vec<ArrayRef>,
    payload: Vec<ArrayRef>,
    states: Vec<StateInput>,
}

impl Rest {
    fn of(input: &GroupInput<'_>, rows: Vec<u32>) -> Rest {
        let indices = UInt32Array::from(rows);
        let pick = |array: &ArrayRef| {
            take(array, &indices, None).expect("indices of rows of types that a row can hold")
        };
        let key = input.key.iter().map(pick).collect();
        let payload = input.payload.iter().map(pick).collect();
        let states = input
            .states
            .iter()
            .map(|state| StateInput {
                values: state.values.as_ref().map(pick),
                filter: state.filter.as_ref().map(|filter| {
                    let filter: ArrayRef = Arc::new(filter.clone());
                    pick(&filter).as_boolean().clone()
                }),
            })
            .collect();
        let (_, rows, _) = indices.into_parts();
        Rest {
            rows: Vec::from(rows),
            key,
            payload,
            states,
        }
    }

    fn input(&self) -> GroupInput<'_> {
        GroupInput {
            rows: self.rows.len(),
            key: &self.key,
            payload: &self.payload,
            states: &self.states,
        }
    }
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
    estimate: DistinctEstimate,
    estimated_rows: u64,
    block: RowBlock,
    scatter: Scatter,
    scratch: Scratch,
    /// Rows of the batch at hand whose group the worker's own table has, and all others.
    known: Vec<(u32, u32)>,
    unknown: Vec<u32>,
    /// Batches that are not looked up first: the last one that was had too many new keys.
    batches_to_encode: u32,
}

impl GroupWorker {
    /// Takes one batch in. Does not wait for anything but disk when memory is short.
    ///
    /// # Errors
    /// Whatever the temp space reports: quota, disk full, I/O; then the set is to be dropped.
    pub fn push(&mut self, input: &GroupInput<'_>) -> Result<(), Error> {
        let mut block = std::mem::take(&mut self.block);
        let pushed = self.push_block(&mut block, input);
        self.block = block;
        pushed
    }

    fn push_block(&mut self, block: &mut RowBlock, input: &GroupInput<'_>) -> Result<(), Error> {
        let set = Arc::clone(&self.set);
        let layout = &set.shape.layout;
        let may_update = layout.payload_is_first && self.direct_rows_left == 0;
        if self.batches_to_encode > 0 || !may_update {
            self.batches_to_encode = self.batches_to_encode.saturating_sub(1);
            block.encode(layout, input);
            return self.push_rows(block.view());
        }
        let Some(front) = &mut self.front else {
            block.encode(layout, input);
            return self.push_rows(block.view());
        };
        let keys = block.encode_keys(layout, input);
        front.find(keys, &mut self.known, &mut self.unknown, &mut self.scratch);
        front.update(input.states, &self.known);
        self.front_rows += self.known.len() as u64;
        if self.unknown.is_empty() {
            return Ok(());
        }
        if self.unknown.len() * UPDATE_SHARE_MIN > input.rows {
            self.batches_to_encode = ENCODED_BATCHES;
        }
        let rest = Rest::of(input, std::mem::take(&mut self.unknown));
        block.encode(layout, &rest.input());
        let pushed = self.push_rows(block.view());
        self.unknown = rest.rows;
        pushed
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
        self.set.learn(&self.estimate, self.estimated_rows);
        self.estimated_rows = 0;
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
            let front = RowTable::new(&self.set.shape, 0, 1024.min(groups), groups)?;
            let pages = self.set.options.front_pages;
            self.front = front.map(|table| table.with_segments_max(pages));
        }
        let Some(front) = &mut self.front else {
            self.direct_rows_left = DIRECT_ROWS;
            return Ok(from);
        };
        let selection: Vec<u32> = (from as u32..count as u32).collect();
        let taken = front.upsert(rows, &selection, &mut self.scratch)?;
        self.front_rows += taken as u64;
        if from + taken < count {
            let reduces = self.front_rows >= FRONT_REDUCTION_MIN * front.groups() as u64;
            self.flush_front(reduces && taken > 0)?;
        }
        Ok(from + taken)
    }

    /// Empties the worker's own table into the partitions.
    fn flush_front(&mut self, keep: bool) -> Result<(), Error> {
        let Some(mut front) = self.front.take() else {
            return Ok(());
        };
        let (mut offsets, mut hashes) = (Vec::new(), Vec::new());
        self.estimated_rows += self.front_rows;
        self.front_rows = 0;
        for segment in front.segments() {
            walk(
                &self.set.shape.layout,
                &segment.guard,
                segment.used,
                &mut offsets,
                &mut hashes,
            );
            self.estimate.add(&hashes);
            let rows = RowsView {
                bytes: &segment.guard,
                offsets: &offsets,
                hashes: &hashes,
            };
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

    /// Ends this worker's input.
    ///
    /// # Errors
    /// As [`GroupWorker::push`].
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush_front(false)
    }
}
