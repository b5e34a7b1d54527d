//! The rows of a recursion that were there before.

use arrow::array::BooleanArray;
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;

/// All rows that a recursion has returned, each once, in memory that is reserved.
pub(super) struct Seen {
    rows: Box<dyn GroupValues>,
    reservation: MemoryReservation,
    numbers: Vec<usize>,
}

impl Seen {
    pub(super) fn new(schema: SchemaRef, context: &TaskContext) -> Result<Seen> {
        Ok(Seen {
            rows: new_group_values(schema, &GroupOrdering::None)?,
            reservation: MemoryConsumer::new("Recursion").register(context.memory_pool()),
            numbers: Vec::new(),
        })
    }

    /// The rows of a batch that come for the first time.
    pub(super) fn new_rows(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let before = self.rows.len();
        self.numbers.clear();
        self.rows.intern(batch.columns(), &mut self.numbers)?;
        self.reservation.try_resize(self.rows.size())?;
        // Groups are not numbered in the order in which they come: one whose hash is that of
        // another comes last.
        let mut has_come = vec![false; self.rows.len() - before];
        let is_new = self.numbers.iter().map(|number| {
            let place = number.checked_sub(before)?;
            Some(!std::mem::replace(&mut has_come[place], true))
        });
        let is_new: BooleanArray = is_new.collect();
        Ok(filter_record_batch(batch, &is_new)?)
    }
}
