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

use arrow_buffer::ArrowNativeType;
use mayfly_space::{Account, Admission, GivesMemory, Page, PageClass};

use super::Error;
use super::directory::directory_bytes;
use super::encode::RowsView;
use super::estimate::DistinctEstimate;
use super::hash::Level;
use super::layout::RowLayout;
use super::partition::{Mode, Partition};
use super::read_ahead::ReadAhead;
use super::row_table::Scratch;
use super::scatter::Scatter;
use super::segment::Shape;
use super::stop::StopFlag;

/// Rows a group at which merging pays for its directory look-ups.
const MERGE_REDUCTION_MIN: f64 = 1.5;

/// Most groups of a worker's own table, whatever the budget: beyond, partitions are quicker, whose
/// tables stay in cache while a batch's worth of their rows is merged.
const FRONT_GROUPS_MAX: u64 = 1 << 19;

/// The same where keys are numbers that lie close together, which take no more than one miss.
const FRONT_NUMBERS_MAX: u64 = 1 << 20;

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
    /// The same where the keys are numbers that lie close together.
    pub front_numbers_max: usize,
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
        let front_bytes = memory_bytes / 16 / workers.max(1) as u64;
        let front_pages = (front_bytes / page_class.bytes() as u64).max(2) as usize;
        // A row of a front table takes about 100 bytes with its slots.
        let front_rows = |most| (front_bytes / 128).clamp(256, most) as usize;
        let front_groups_max = front_rows(FRONT_GROUPS_MAX);
        let front_numbers_max = front_rows(FRONT_NUMBERS_MAX);
        let front_groups = front_groups_max.min(1 << 15);
        GroupOptions {
            workers,
            page_class,
            partition_bits,
            front_groups,
            front_groups_max,
            front_numbers_max,
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
    ahead: Mutex<ReadAhead>,
    _admission: Admission,
}

impl GivesMemory for GroupSet {
    fn spare_bytes(&self) -> u64 {
        self.shape.account.beyond_minimum_bytes()
    }

    fn give(&self, bytes: u64) -> u64 {
        // Its minimum stays its own.
        let spare_bytes = self.spare_bytes();
        match bytes.min(spare_bytes) {
            0 => 0,
            bytes => self.shed(bytes).min(spare_bytes),
        }
    }
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
    ) -> Result<Arc<GroupSet>, mayfly_space::Error> {
        GroupSet::stoppable(layout, account, options, StopFlag::default())
    }

    /// An empty set whose steps end early when the flag is raised.
    ///
    /// # Errors
    /// As [`GroupSet::new`].
    pub fn stoppable(
        layout: RowLayout,
        account: &Account,
        options: GroupOptions,
        stop: StopFlag,
    ) -> Result<Arc<GroupSet>, mayfly_space::Error> {
        let shape = Shape::new(layout, account.clone(), options.page_class, stop);
        GroupSet::of_shape(shape, options)
    }

    pub(crate) fn of_shape(
        shape: Arc<Shape>,
        options: GroupOptions,
    ) -> Result<Arc<GroupSet>, mayfly_space::Error> {
        let admission = shape.account.admit(options.minimum_bytes())?;
        let bits = options.partition_bits;
        let partitions = (0..1u32 << bits)
            .map(|number| {
                Mutex::new(Partition::new(
                    &shape,
                    number,
                    Level::first(bits),
                    1 << bits,
                ))
            })
            .collect();
        let account = shape.account.clone();
        let set = Arc::new(GroupSet {
            shape,
            options,
            partitions,
            merging: AtomicBool::new(false),
            front_groups: AtomicUsize::new(options.front_groups),
            estimate: Mutex::default(),
            unsettled: AtomicU32::new(0),
            next: AtomicU32::new(0),
            ahead: Mutex::default(),
            _admission: admission,
        });
        account.may_take_from(Arc::downgrade(&set) as _);
        Ok(set)
    }

    /// Withdraws tables until `bytes` of pages and directories are released, the partition that is
    /// read last first. Returns how many were: 0 where there is nothing left to give at this
    /// moment.
    pub fn shed(&self, bytes: u64) -> u64 {
        let mut released = 0;
        for partition in self.partitions.iter().rev() {
            if released >= bytes {
                break;
            }
            // One that is locked is being filled.
            if let Ok(mut partition) = partition.try_lock() {
                released += partition.give_up();
            }
        }
        released
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

    /// Starts reading pages of partitions behind `number`, whose turn has come.
    pub(crate) fn read_ahead(&self, number: usize) {
        let space = self.shape.account.space();
        let memory_bytes = space.memory_bytes();
        let free_bytes = memory_bytes.saturating_sub(space.memory_used_bytes());
        let near = number + self.options.workers;
        let absent = |number: usize| {
            // One that is locked is being settled.
            let partition = self.partitions.get(number)?.try_lock().ok()?;
            let pages = partition.cold().iter().map(|segment| &segment.page);
            Some(pages.filter(|page| !page.is_resident()).cloned().collect())
        };
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = ahead.pages(number, near, memory_bytes, free_bytes, absent);
        drop(ahead);
        pages.iter().for_each(Page::prefetch);
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

    /// Takes a worker's sketch in and chooses the mode for all. `range` is the difference between
    /// the least and the greatest key, where keys are numbers.
    pub(crate) fn learn(&self, estimate: &DistinctEstimate, rows: u64, range: Option<u64>) {
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
        // No more groups than numbers, NULL and the neighbours of those that were seen.
        let numbers = range.map(|range| range.saturating_add(range / 8 + 2).as_usize());
        let fit = |numbers: &usize| *numbers <= self.options.front_numbers_max;
        if let Some(numbers) = numbers.filter(fit)
            && repeats
        {
            self.front_groups.fetch_max(numbers, Ordering::Relaxed);
        }
    }

    pub(crate) fn front_groups(&self) -> usize {
        self.front_groups.load(Ordering::Relaxed)
    }

    /// Sends rows to their partitions.
    pub(crate) fn distribute(
        &self,
        rows: RowsView<'_>,
        first: usize,
        scatter: &mut Scatter,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        scatter.sort(rows.hashes, 0, self.options.partition_bits);
        scatter.distribute(&self.partitions, self.mode(), rows, first, scratch)
    }
}
