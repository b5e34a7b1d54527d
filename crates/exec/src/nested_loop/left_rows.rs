//! The left side: pages of rows, and which of them have found a partner.

use std::sync::{Arc, Mutex};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use mayfly_space::{Account, Admission, NextUse, Reservation};
use mayfly_table::BatchRun;

use super::partners::Partners;
use crate::error::{space_error, table_error};
use crate::lock::lock;
use crate::provider::admit_scan;
use crate::time_slice::TimeSlice;

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
        let mut run = BatchRun::new(&account, input.schema(), NextUse::SecondChance);
        let admission = account.admit(run.append_bytes()).map_err(space_error)?;
        let mut batches = input.execute(0, context)?;
        let mut slice = TimeSlice::begin();
        while let Some(batch) = batches.next().await {
            run.append(&batch?).map_err(table_error)?;
            slice.share().await;
        }
        run.finish().map_err(table_error)?;
        drop((batches, admission));
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

    pub(super) fn row_count(&self) -> u64 {
        self.run.row_count()
    }

    /// Memory for the rows of a page.
    pub(super) fn reserve_page(&self) -> Result<Reservation> {
        let bytes = self.run.longest_page_bytes() as u64;
        self.account.reserve(bytes).map_err(space_error)
    }

    /// The rows of a page in memory of their own: results keep them, and no page.
    pub(super) fn page(&self, page: usize) -> Result<RecordBatch> {
        self.run.prefetch(page + 1);
        self.run.read_copied(page, None).map_err(table_error)
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
