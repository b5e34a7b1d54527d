//! One side of a join on its way into pages.
//!
//! **Small sides** stay together: a side begins as a single partition, takes a page at a time and
//! admits nothing. Once it is larger than a cache its rows are scattered over radix partitions, for
//! which the memory is admitted that a join cannot go on without; all later rows go straight there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mayfly_space::{Account, Admission, PageClass, Space};

use super::super::Error;
use super::super::directory::directory_bytes;
use super::super::encode::RowsView;
use super::super::hash::Level;
use super::super::layout::RowLayout;
use super::super::partition::{Mode, Partition};
use super::super::row_table::Scratch;
use super::super::scatter::Scatter;
use super::super::segment::Shape;
use super::super::split::open_or_make_room;
use super::super::stop::StopFlag;
use super::super::walked::Walked;
use super::filter::KeyFilter;
use super::part::{JoinPart, SPLIT_BITS};

/// A side stays together up to this part of the budget ...
const SINGLE_PER_MEMORY: u64 = 64;
/// ... and up to the size of a second-level cache.
const SINGLE_BYTES_MAX: u64 = 1 << 20;
/// The pages that partitions are filling take at most this part of the budget.
const TAILS_PER_MEMORY: u64 = 32;

/// What one side of a join is given to work with.
#[derive(Debug, Clone, Copy)]
pub struct SideOptions {
    /// Threads that fill it, and later read it.
    pub workers: usize,
    /// Class of its pages.
    pub page_class: PageClass,
    /// Radix partitions as a power of two.
    pub partition_bits: u32,
    /// Bytes of pages up to which rows stay in one partition.
    pub single_bytes_max: u64,
    /// Whether a filter over the keys is kept once there are partitions.
    pub keeps_filter: bool,
}

impl SideOptions {
    /// Options that suit a memory budget.
    pub fn for_budget(memory_bytes: u64, page_class: PageClass, workers: usize) -> SideOptions {
        let page_bytes = page_class.bytes() as u64;
        let tails = memory_bytes / TAILS_PER_MEMORY / page_bytes;
        let single_bytes = memory_bytes / SINGLE_PER_MEMORY;
        SideOptions {
            workers: workers.max(1),
            page_class,
            partition_bits: tails.max(1).ilog2().clamp(3, 6),
            single_bytes_max: single_bytes.clamp(2 * page_bytes, SINGLE_BYTES_MAX.max(page_bytes)),
            keeps_filter: false,
        }
    }

    /// Bytes without which a side in partitions cannot go on: a page for each partition that is
    /// being filled, or, later and for each worker, the pages of one split or of a table over one
    /// page.
    pub fn minimum_bytes(&self) -> u64 {
        let page = self.page_class.bytes() as u64;
        let split = page * ((1 << SPLIT_BITS) + 2);
        let table = 2 * directory_bytes(self.page_class.bytes() / 16) + page / 8;
        (page << self.partition_bits).max((split + table) * self.workers as u64)
    }
}

/// The rows of one side, shared by the workers that bring them.
pub struct SideRows {
    shape: Arc<Shape>,
    options: SideOptions,
    /// All rows, as long as they are few.
    single: Mutex<Option<Partition>>,
    radix: OnceLock<Radix>,
    rows: AtomicU64,
}

/// The partitions of rows that are many.
struct Radix {
    partitions: Vec<Mutex<Partition>>,
    filter: Option<KeyFilter>,
    _admission: Admission,
}

impl std::fmt::Debug for SideRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SideRows")
            .field("options", &self.options)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl SideRows {
    /// An empty side that begins as one partition.
    pub fn new(
        layout: RowLayout,
        account: &Account,
        options: SideOptions,
        stop: StopFlag,
    ) -> Arc<SideRows> {
        let shape = Shape::new(layout, account.clone(), options.page_class, stop);
        let single = Partition::new(&shape, 0, Level::first(0), 1);
        Arc::new(SideRows {
            shape,
            options,
            single: Mutex::new(Some(single)),
            radix: OnceLock::new(),
            rows: AtomicU64::new(0),
        })
    }

    /// An empty side in as many partitions as its partner, if that has partitions.
    ///
    /// # Errors
    /// `MinimumNotMet` where the budget cannot hold [`SideOptions::minimum_bytes`].
    pub fn partner_of(
        other: &SideRows,
        layout: RowLayout,
        account: &Account,
    ) -> Result<Arc<SideRows>, Error> {
        let options = SideOptions {
            keeps_filter: false,
            partition_bits: other.partition_bits(),
            ..other.options
        };
        let stop = other.shape.stop.clone();
        let side = SideRows::new(layout, account, options, stop);
        side.scatter(&mut Scatter::default(), &mut Scratch::default())?;
        Ok(side)
    }

    /// Admits the memory that its parts need when they are read, where none was admitted because it
    /// has no partitions.
    ///
    /// # Errors
    /// `MinimumNotMet` where the budget cannot hold [`SideOptions::minimum_bytes`].
    pub fn admit(&self) -> Result<Option<Admission>, Error> {
        match self.radix.get() {
            Some(_) => Ok(None),
            None => Ok(Some(
                { &self.shape.account }.admit(self.options.minimum_bytes())?,
            )),
        }
    }

    /// The bits of hashes that choose a partition.
    pub fn partition_bits(&self) -> u32 {
        match self.radix.get() {
            Some(radix) => radix.partitions.len().trailing_zeros(),
            None => 0,
        }
    }

    /// Rows that were pushed.
    pub fn row_count(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// The filter over its keys, if there is one that tells anything.
    pub fn filter(&self) -> Option<&KeyFilter> {
        let filter = self.radix.get()?.filter.as_ref();
        filter.filter(|filter| filter.is_useful())
    }

    /// The rows of one partition, once every writer has ended. They are gone from here.
    ///
    /// # Errors
    /// Whatever the temp space reports.
    pub fn take_part(&self, number: usize) -> Result<JoinPart, Error> {
        let mut scratch = Scratch::default();
        let mut take = |partition: &mut Partition| {
            partition.settle(&mut scratch)?;
            let (pages, _) = partition.take_pages();
            Ok(JoinPart::new(&self.shape, number, partition.level(), pages))
        };
        match self.radix.get() {
            Some(radix) => take(&mut lock(&radix.partitions[number])),
            None => {
                let mut single = lock(&self.single);
                take(single.as_mut().expect("rows are in it or in partitions"))
            }
        }
    }

    /// Asks for the pages of one partition, which will be read soon.
    pub fn prefetch(&self, number: usize, pages_max: usize) {
        let partition = { self.radix.get() }.and_then(|radix| radix.partitions.get(number));
        // One that is locked is being taken.
        if let Some(partition) = partition.and_then(|partition| partition.try_lock().ok()) {
            let absent = partition.cold().iter().filter(|s| !s.page.is_resident());
            absent.take(pages_max).for_each(|s| s.page.prefetch());
        }
    }

    pub(crate) fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// The space of its pages.
    pub fn space(&self) -> Space {
        self.shape.account.space()
    }

    pub(crate) fn workers(&self) -> usize {
        self.options.workers
    }

    /// Puts encoded rows where they belong.
    pub(crate) fn push(
        &self,
        rows: RowsView<'_>,
        first: usize,
        scatter: &mut Scatter,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let count = rows.offsets.len();
        self.rows.fetch_add(count as u64, Ordering::Relaxed);
        let taken = match self.radix.get() {
            Some(_) => 0,
            None => self.push_single(rows, scatter, scratch)?,
        };
        if taken == count {
            return Ok(());
        }
        let rest = RowsView {
            bytes: rows.bytes,
            offsets: &rows.offsets[taken..],
            hashes: &rows.hashes[taken..],
        };
        let radix = self.radix.get().expect("what is not together is scattered");
        radix.push(rest, first, scatter, scratch)
    }

    /// Puts rows to those that are still together, and scatters them when they are too many.
    /// Returns how many are cared for.
    fn push_single(
        &self,
        rows: RowsView<'_>,
        scatter: &mut Scatter,
        scratch: &mut Scratch,
    ) -> Result<usize, Error> {
        let mut guard = lock(&self.single);
        let Some(single) = guard.as_mut() else {
            // Another worker scattered them.
            return Ok(0);
        };
        let all: Vec<u32> = (0..rows.offsets.len() as u32).collect();
        let taken = single.accept(Mode::Append, rows, &all, scratch)?;
        let bytes = single.cold().iter().map(|s| s.page.len_bytes() as u64);
        if taken < all.len() || bytes.sum::<u64>() > self.options.single_bytes_max {
            drop(guard);
            self.scatter(scatter, scratch)?;
        }
        Ok(taken)
    }

    /// Scatters the rows that are together over partitions.
    fn scatter(&self, scatter: &mut Scatter, scratch: &mut Scratch) -> Result<(), Error> {
        let mut guard = lock(&self.single);
        let Some(single) = guard.as_mut() else {
            return Ok(());
        };
        let shape = &self.shape;
        let admission = shape.account.admit(self.options.minimum_bytes())?;
        let bits = self.options.partition_bits;
        let partition = |number| Partition::new(shape, number, Level::first(bits), 1 << bits);
        let filter = match self.options.keeps_filter {
            true => KeyFilter::new(&shape.account)?,
            false => None,
        };
        let radix = Radix {
            partitions: (0..1 << bits).map(|n| Mutex::new(partition(n))).collect(),
            filter,
            _admission: admission,
        };
        single.settle(scratch)?;
        let (pages, _) = single.take_pages();
        let mut walked = Walked::default();
        for page in pages {
            let mode = Mode::Append;
            let open = open_or_make_room(&page, &radix.partitions, mode, scratch)?;
            let rows = walked.rows(&shape.layout, &open);
            radix.push(rows, 0, scatter, scratch)?;
        }
        *guard = None;
        let is_first = self.radix.set(radix).is_ok();
        assert!(is_first, "the rows that are together are scattered once");
        Ok(())
    }
}

impl Radix {
    fn push(
        &self,
        rows: RowsView<'_>,
        first: usize,
        scatter: &mut Scatter,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        if let Some(filter) = &self.filter {
            filter.add(rows.hashes);
        }
        scatter.sort(rows.hashes, 0, self.partitions.len().trailing_zeros());
        scatter.distribute(&self.partitions, Mode::Append, rows, first, scratch)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
