//! The left side of a join as long as its rows are few: batches as they came.
//!
//! A left side that turns out to be small is joined by DataFusion's operator, which is quicker
//! while all is in memory. How large it is shows only while it is read: batches are collected until
//! what that operator would need for them is more than a part of the budget, or is not granted.
//! Then all of them go into the pages of ours, and so do the rest.
//!
//! **Owns** what was collected, and the grant for it. **Never** reads the input.

use std::sync::{Mutex, MutexGuard};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::utils::memory::{RecordBatchMemoryCounter, estimate_memory_size};
use datafusion::config::ExecutionOptions;
use mayfly_space::{Account, Error as SpaceError, Reservation};

use crate::error::space_error;
use crate::lock::lock;

/// The stock join is chosen while it needs less than this part of the budget.
const STOCK_PER_MEMORY: u64 = 8;
/// Memory is asked for in steps, so that not every batch asks.
const STEP_BYTES: u64 = 64 << 10;

/// Where the tasks that read the left side bring its batches first.
#[derive(Debug)]
pub(super) struct Collector {
    bytes_max: u64,
    sizes: StockSizes,
    /// `None` once there were too many.
    state: Mutex<Option<Collected>>,
}

/// Batches, and the memory for a stock join with them as its left side.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) batches: Vec<RecordBatch>,
    rows: usize,
    counter: RecordBatchMemoryCounter,
    pub(super) grant: Reservation,
}

/// What the stock join reserves and holds beside the batches of its left side.
#[derive(Clone, Copy, Debug)]
struct StockSizes {
    array_rows_min: usize,
    array_density_min: f64,
}

impl StockSizes {
    fn new(options: &ExecutionOptions) -> StockSizes {
        StockSizes {
            array_rows_min: options.perfect_hash_join_small_build_threshold,
            array_density_min: options.perfect_hash_join_min_key_density,
        }
    }

    /// Bytes that a stock join takes at most for so many rows in batches of so many bytes: the
    /// batches, one copy of them in one piece, the larger one of its two kinds of tables, and a bit
    /// for each row.
    fn join_bytes(&self, rows: usize, batch_bytes: usize) -> Result<u64> {
        /// The table itself without its entries, at most.
        const FIXED_BYTES: usize = 256;
        let hash_table = estimate_memory_size::<(u32, u64)>(rows, FIXED_BYTES)?;
        let dense_rows = rows as f64 / self.array_density_min.max(f64::MIN_POSITIVE);
        let entries = (dense_rows as usize).max(self.array_rows_min);
        let array = entries
            .saturating_add(rows)
            .saturating_mul(size_of::<u32>());
        let links = rows.saturating_mul(size_of::<u32>());
        let table = hash_table.max(array).saturating_add(links);
        let all = table.saturating_add(batch_bytes.saturating_mul(2));
        Ok(all.saturating_add(rows / 8 + FIXED_BYTES) as u64)
    }
}

impl Collector {
    /// Without batches.
    ///
    /// # Errors
    /// As `Account::reserve`.
    pub(super) fn new(account: &Account, options: &ExecutionOptions) -> Result<Collector> {
        Ok(Collector {
            bytes_max: account.space().memory_bytes() / STOCK_PER_MEMORY,
            sizes: StockSizes::new(options),
            state: Mutex::new(Some(Collected {
                batches: Vec::new(),
                rows: 0,
                counter: RecordBatchMemoryCounter::new(),
                grant: account.reserve(0).map_err(space_error)?,
            })),
        })
    }

    /// Keeps a batch. Where it is one too many, all that was collected before comes back with it:
    /// from then on nothing is kept.
    ///
    /// # Errors
    /// What the temp space reports, but for shortage of memory.
    pub(super) fn keep(&self, batch: RecordBatch) -> Result<Vec<RecordBatch>> {
        let mut state = self.state();
        let Some(collected) = state.as_mut() else {
            return Ok(vec![batch]);
        };
        collected.rows += batch.num_rows();
        collected.counter.count_batch(&batch);
        collected.batches.push(batch);
        let bytes = { self.sizes }.join_bytes(collected.rows, collected.counter.memory_usage())?;
        if bytes <= self.bytes_max && collected.is_granted(bytes)? {
            return Ok(Vec::new());
        }
        // The grant goes with the state: what is written next takes pages for it.
        let collected = state.take().expect("it was there");
        Ok(collected.batches)
    }

    /// All batches, if none was too many.
    pub(super) fn finish(&self) -> Option<Collected> {
        self.state().take()
    }

    fn state(&self) -> MutexGuard<'_, Option<Collected>> {
        lock(&self.state)
    }
}

impl Collected {
    /// Makes the grant cover `bytes`; false where memory is short.
    fn is_granted(&mut self, bytes: u64) -> Result<bool> {
        if bytes <= self.grant.bytes() {
            return Ok(true);
        }
        let steps = bytes.next_multiple_of(STEP_BYTES);
        for wanted in [steps, bytes] {
            match self.grant.try_resize(wanted) {
                Ok(()) => return Ok(true),
                Err(SpaceError::BudgetExceeded { .. }) => {}
                Err(error) => return Err(space_error(error)),
            }
        }
        Ok(false)
    }
}
