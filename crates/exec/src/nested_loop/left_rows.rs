//! The left side: pages of rows, and which of them have found a partner.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use mayfly_space::{Account, Admission, Reservation};
use mayfly_table::BatchRun;

use super::partners::Partners;
use crate::collect::collect_run;
use crate::error::{space_error, table_error};
use crate::lock::lock;
use crate::table_scan::admit_scan;

/// What a row is sorted with, beside the row: its key, of up to 128 bits and in two places for a
/// while, and where it came from.
const SORTED_ROW_BYTES: usize = size_of::<(i128, u32)>() + size_of::<i128>() + size_of::<u32>();
/// The candidates of a row of the right side, and a value that bounds them.
const CANDIDATES_BYTES: usize = size_of::<Range<usize>>() + size_of::<i128>();

/// Memory for a page whose rows are sorted.
pub(super) struct SortedMemory {
    _granted: Reservation,
    _admission: Admission,
}

/// The rows of the left side.
pub(super) struct LeftRows {
    run: BatchRun,
    /// Of each page; none where nobody asks.
    partners: Vec<Mutex<Partners>>,
    account: Account,
    _bits: Reservation,
    /// For the pages that are read.
    _admission: Admission,
}

impl LeftRows {
    /// Reads the only partition of an input.
    pub(super) async fn read(
        input: Arc<dyn ExecutionPlan>,
        account: Account,
        keeps_partners: bool,
        context: Arc<TaskContext>,
    ) -> Result<LeftRows> {
        let run = collect_run(&account, input, 0, context).await?;
        let pages = match keeps_partners {
            true => run.batch_count(),
            false => 0,
        };
        let bits = account.reserve(run.row_count() / 8 * u64::from(keeps_partners));
        let partners = (0..pages).map(|page| Mutex::new(Partners::none(run.rows_of(page))));
        Ok(LeftRows {
            _bits: bits.map_err(space_error)?,
            partners: partners.collect(),
            _admission: admit_scan(&account, run.longest_page_bytes() as u64)?,
            account,
            run,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    pub(super) fn pages(&self) -> usize {
        self.run.batch_count()
    }

    pub(super) fn rows_of(&self, page: usize) -> usize {
        self.run.rows_of(page)
    }

    pub(super) fn row_count(&self) -> u64 {
        self.run.row_count()
    }

    /// Memory for the rows of a page.
    pub(super) fn reserve_page(&self) -> Result<Reservation> {
        let bytes = self.run.longest_page_bytes() as u64;
        self.account.reserve(bytes).map_err(space_error)
    }

    /// Memory for the rows of a page in the order of a key, with the candidates of so many rows of
    /// the right side. It adds to the minimum, which is promised to pages that are read.
    pub(super) fn reserve_sorted(&self, right_rows: usize) -> Result<SortedMemory> {
        let rows = (0..self.run.batch_count()).map(|page| self.run.rows_of(page));
        let bytes = self.run.longest_page_bytes()
            + rows.max().unwrap_or(0) * SORTED_ROW_BYTES
            + right_rows * CANDIDATES_BYTES;
        let admission = self.account.admit_within_limits(bytes as u64);
        Ok(SortedMemory {
            _admission: admission.map_err(space_error)?,
            _granted: self.account.reserve(bytes as u64).map_err(space_error)?,
        })
    }

    /// Some columns of a page in memory of their own: results keep them, and no page.
    pub(super) fn page(&self, page: usize, columns: &[usize]) -> Result<RecordBatch> {
        self.run.prefetch(page + 1);
        let rows = self.run.read_copied(page, Some(columns));
        rows.map_err(table_error)
    }

    /// Whether all rows have a partner.
    pub(super) fn all_have_partners(&self) -> bool {
        (0..self.pages()).all(|page| self.have_partners(page))
    }

    /// Whether all rows of a page have a partner.
    pub(super) fn have_partners(&self, page: usize) -> bool {
        let partners = self.partners.get(page);
        partners.is_some_and(|partners| lock(partners).have_all())
    }

    /// The rows of a page that have found one so far.
    pub(super) fn partners(&self, page: usize) -> Partners {
        let mut found = Partners::none(self.run.rows_of(page));
        if let Some(partners) = self.partners.get(page) {
            found.add_those_of(&lock(partners));
        }
        found
    }

    /// Adds those that have found one.
    pub(super) fn add_partners(&self, page: usize, found: &Partners) {
        if let Some(partners) = self.partners.get(page) {
            lock(partners).add_those_of(found);
        }
    }
}
