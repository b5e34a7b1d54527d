//! The rows of one level of a recursion, and the scan that reads them.
//!
//! Owns: [`LevelWriter`] and [`Level`], rows that are few and stay as they are, or many and lie in
//! pages of the temp space; [`Levels`], which hands the level before to the recursive term.

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use mayfly_space::{Account, NextUse};
use mayfly_table::BatchRun;

use crate::error::table_error;
use crate::lock::lock;
use crate::plan_node::{leaf_node, leaf_properties, stream_of};

/// The bytes and the rows of a level that stays outside of the temp space: what one page holds.
const FEW_BYTES: usize = 64 << 10;
const FEW_ROWS: usize = 4096;

/// The rows of a level.
pub(super) enum Level {
    /// A batch; of no rows if there are none.
    Few(RecordBatch),
    Many(BatchRun),
}

impl Level {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Level::Few(rows) => rows.num_rows() == 0,
            Level::Many(rows) => rows.is_empty(),
        }
    }
}

/// A level that rows are added to.
pub(super) struct LevelWriter {
    account: Account,
    schema: SchemaRef,
    few: Vec<RecordBatch>,
    few_bytes: usize,
    few_rows: usize,
    many: Option<BatchRun>,
}

impl LevelWriter {
    pub(super) fn new(account: Account, schema: SchemaRef) -> LevelWriter {
        LevelWriter {
            account,
            schema,
            few: Vec::new(),
            few_bytes: 0,
            few_rows: 0,
            many: None,
        }
    }

    pub(super) fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        if let Some(many) = &mut self.many {
            return many.append(batch).map_err(table_error);
        }
        self.few.push(batch.clone());
        self.few_bytes += batch.get_array_memory_size();
        self.few_rows += batch.num_rows();
        if self.few_bytes <= FEW_BYTES && self.few_rows <= FEW_ROWS {
            return Ok(());
        }
        let schema = Arc::clone(&self.schema);
        let mut many = BatchRun::new(&self.account, schema, NextUse::SecondChance);
        for batch in self.take_few() {
            many.append(&batch).map_err(table_error)?;
        }
        self.many = Some(many);
        Ok(())
    }

    fn take_few(&mut self) -> Vec<RecordBatch> {
        (self.few_bytes, self.few_rows) = (0, 0);
        std::mem::take(&mut self.few)
    }

    /// The rows that were added since the last call.
    pub(super) fn end_level(&mut self) -> Result<Level> {
        if let Some(mut many) = self.many.take() {
            many.finish().map_err(table_error)?;
            return Ok(Level::Many(many));
        }
        let mut few = self.take_few();
        Ok(Level::Few(match few.len() {
            1 => few.remove(0),
            _ => concat_batches(&self.schema, &few)?,
        }))
    }
}

/// The level that the recursive term reads.
#[derive(Default)]
pub(super) struct Levels(Mutex<Option<Arc<Level>>>);

impl Levels {
    /// Puts the next level in the place of the one before.
    pub(super) fn put(&self, level: Option<Level>) {
        let mut place = lock(&self.0);
        *place = level.map(Arc::new);
    }

    fn get(&self) -> Result<Arc<Level>> {
        let place = lock(&self.0);
        place
            .clone()
            .ok_or_else(|| internal_datafusion_err!("a recursion has no level yet"))
    }
}

/// Reads the rows of the level before, as often as it is executed.
pub(super) struct WorkRowsScan {
    columns: Vec<usize>,
    levels: Arc<Levels>,
    properties: Arc<PlanProperties>,
}

impl WorkRowsScan {
    /// A scan of some columns; `schema` has them only.
    pub(super) fn new(schema: SchemaRef, columns: Vec<usize>, levels: Arc<Levels>) -> Self {
        let properties = leaf_properties(schema, 1);
        WorkRowsScan {
            columns,
            levels,
            properties,
        }
    }

    /// The same scan of other levels.
    pub(super) fn over(&self, levels: &Arc<Levels>) -> WorkRowsScan {
        WorkRowsScan {
            columns: self.columns.clone(),
            levels: Arc::clone(levels),
            properties: Arc::clone(&self.properties),
        }
    }

    /// Whether it reads these levels.
    pub(super) fn reads(&self, levels: &Arc<Levels>) -> bool {
        Arc::ptr_eq(&self.levels, levels)
    }

    /// The columns that it reads, by their place in a level.
    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }
}

impl fmt::Debug for WorkRowsScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkRowsScan")
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for WorkRowsScan {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkRowsScan: columns={:?}", self.columns)
    }
}

impl ExecutionPlan for WorkRowsScan {
    leaf_node!("WorkRowsScan");

    fn execute(
        &self,
        _partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let level = self.levels.get()?;
        let columns = self.columns.clone();
        let count = match level.as_ref() {
            Level::Few(_) => 1,
            Level::Many(run) => run.batch_count(),
        };
        let batches = (0..count).map(move |index| match level.as_ref() {
            Level::Few(rows) => Ok(rows.project(&columns)?),
            Level::Many(run) => {
                run.prefetch(index + 1);
                run.read(index, Some(&columns)).map_err(table_error)
            }
        });
        Ok(stream_of(self, batches))
    }
}
