//! A recursion while it runs.

use std::fmt;
use std::sync::Arc;

use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use futures::StreamExt;
use mayfly_space::AccountOptions;

use super::dedup::Seen;
use super::level::{Level, LevelWriter, Levels};
use crate::context::StatementContext;
use crate::report::{LiveTempTable, Why};
use crate::short_plan::{ShortPlan, Size};
use crate::time_slice::TimeSlice;

/// What a short level may have to do: its rows are few already.
const SHORT: Size = Size::of(u64::MAX, 0);
/// Batches, rows and bytes that may wait to be returned together.
const WAITING_MAX: usize = 1024;
const WAITING_ROWS: usize = 8192;
const WAITING_BYTES: usize = 1 << 20;

/// A recursion went deeper than its statement may.
#[derive(Debug)]
pub struct RecursionTooDeep {
    /// The runs of the recursive term, the one that was not begun included.
    pub runs: u64,
}

impl fmt::Display for RecursionTooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs } = self;
        write!(f, "a recursion has not ended after {runs} runs")
    }
}

impl std::error::Error for RecursionTooDeep {}

/// What a recursion consists of.
pub(super) struct Terms {
    /// The identity of its temporary table.
    pub(super) id: u64,
    pub(super) is_distinct: bool,
    pub(super) schema: SchemaRef,
    pub(super) first: Arc<dyn ExecutionPlan>,
    pub(super) recursive: Arc<dyn ExecutionPlan>,
    /// The recursive term over rows that are handed to it, where that has no tables.
    pub(super) short: Option<ShortPlan>,
    /// The columns of a level that it reads then.
    pub(super) columns: Vec<usize>,
    /// What the recursive term reads.
    pub(super) levels: Arc<Levels>,
}

pub(super) struct Run {
    // fixed
    context: Arc<TaskContext>,
    schema: SchemaRef,
    recursive: Arc<dyn ExecutionPlan>,
    short: Option<ShortPlan>,
    /// The columns that the recursive term reads.
    columns: Vec<usize>,
    levels: Arc<Levels>,
    depth_max: Option<u64>,
    table: LiveTempTable,
    // state
    /// The rows of a term that runs as a plan.
    running: Option<SendableRecordBatchStream>,
    writer: LevelWriter,
    seen: Option<Seen>,
    runs: u64,
    slice: TimeSlice,
    waiting: Waiting,
    /// What ended it, to be told when the rows before have been returned.
    failed: Option<DataFusionError>,
    has_ended: bool,
}

impl Run {
    pub(super) fn begin(terms: Terms, context: Arc<TaskContext>) -> Result<Run> {
        let statement = StatementContext::of(&context)?;
        let account = statement.table_account("recursion", 1, AccountOptions::default());
        let schema = terms.schema;
        let seen = match terms.is_distinct {
            true => Some(Seen::new(&schema, &account)?),
            false => None,
        };
        Ok(Run {
            recursive: terms.recursive,
            short: terms.short,
            columns: terms.columns,
            levels: terms.levels,
            depth_max: statement.recursion_depth_max,
            table: statement
                .report
                .begin(terms.id, Why::Recursion, account.clone()),
            running: Some(terms.first.execute(0, Arc::clone(&context))?),
            writer: LevelWriter::new(account, Arc::clone(&schema)),
            seen,
            runs: 0,
            slice: TimeSlice::begin(),
            waiting: Waiting::default(),
            failed: None,
            has_ended: false,
            schema,
            context,
        })
    }

    /// The next rows; `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Err(error) = self.wait_for_rows().await {
            self.failed = Some(error);
            self.has_ended = true;
        }
        match self.waiting.take(&self.schema)? {
            Some(rows) => Ok(Some(rows)),
            None => self.failed.take().map_or(Ok(None), Err),
        }
    }

    async fn wait_for_rows(&mut self) -> Result<()> {
        while !self.has_ended && !self.waiting.is_enough() {
            let Some(rows) = &mut self.running else {
                self.run_level()?;
                self.slice.share().await;
                continue;
            };
            match rows.next().await.transpose()? {
                Some(batch) => self.add(&batch)?,
                None => self.running = None,
            }
        }
        Ok(())
    }

    /// Runs the recursive term over the level that has ended, or begins to.
    fn run_level(&mut self) -> Result<()> {
        let level = self.writer.end_level()?;
        if level.is_empty() {
            self.has_ended = true;
            self.levels.put(None);
            return Ok(());
        }
        self.runs += 1;
        if self.depth_max.is_some_and(|most| self.runs > most) {
            let error = RecursionTooDeep { runs: self.runs };
            return Err(DataFusionError::External(Box::new(error)));
        }
        if let (Some(short), Level::Few(rows)) = (&self.short, &level) {
            let given = rows.project(&self.columns)?;
            if let Some(run) = short.run(Some(given), SHORT, &self.context)? {
                StatementContext::of(&self.context)?
                    .report
                    .add_reads(run.reads);
                return self.add(&run.rows);
            }
        }
        self.levels.put(Some(level));
        let term = reset_plan_states(Arc::clone(&self.recursive))?;
        self.running = Some(term.execute(0, Arc::clone(&self.context))?);
        Ok(())
    }

    /// Adds rows to the next level and to those that are returned.
    fn add(&mut self, rows: &RecordBatch) -> Result<()> {
        let mut batch = RecordBatch::try_new(Arc::clone(&self.schema), rows.columns().to_vec())?;
        if let Some(seen) = &mut self.seen {
            batch = seen.new_rows(&batch)?;
        }
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.table.add_rows(batch.num_rows() as u64);
        self.writer.append(&batch)?;
        self.waiting.push(batch);
        Ok(())
    }
}

/// Rows that are returned together: those of one level at first, since more may not be wanted, then
/// those of twice as many levels each time.
struct Waiting {
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
    enough: usize,
}

impl Default for Waiting {
    fn default() -> Self {
        Waiting {
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            enough: 1,
        }
    }
}

impl Waiting {
    fn push(&mut self, batch: RecordBatch) {
        self.rows += batch.num_rows();
        self.bytes += batch.get_array_memory_size();
        self.batches.push(batch);
    }

    fn is_enough(&self) -> bool {
        self.batches.len() >= self.enough
            || self.rows >= WAITING_ROWS
            || self.bytes >= WAITING_BYTES
    }

    fn take(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        self.enough = (2 * self.enough).min(WAITING_MAX);
        (self.rows, self.bytes) = (0, 0);
        let batches = std::mem::take(&mut self.batches);
        Ok(match batches.as_slice() {
            [] => None,
            [batch] => Some(batch.clone()),
            batches => Some(concat_batches(schema, batches)?),
        })
    }
}
