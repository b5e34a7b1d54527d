//! The runs of a subquery, and the values that they have found.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow::datatypes::FieldRef;
use arrow::row::{RowConverter, SortField};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use futures::StreamExt;

use super::short_runs::ShortRuns;
use super::subquery::Subquery;
use crate::context::{StatementContext, with_extension};
use crate::report::{Report, TempTable};
use crate::time_slice::TimeSlice;

/// Values that are kept take at most so many bytes; then they begin anew.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// A batch that is handed on has at most so many bytes of values, or one value.
const VALUES_BYTES_MAX: usize = 4 << 20;
/// What a value takes beside its own bytes and those of its key, about.
const ENTRY_BYTES: usize = 64;

/// How often others have the thread while tasks of a run end.
const WAITS_MAX: u32 = 1 << 12;

/// A subquery that stands for a value had more rows than one.
#[derive(Debug)]
pub struct SeveralRows;

impl fmt::Display for SeveralRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the subquery of a value has several rows")
    }
}

impl std::error::Error for SeveralRows {}

/// The rows of a run.
pub(super) enum RunRows {
    /// They are there, in one batch.
    There(Option<RecordBatch>),
    /// They come while the plan runs.
    Coming(SendableRecordBatchStream),
}

impl RunRows {
    /// The next rows; `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            RunRows::There(rows) => Ok(rows.take()),
            RunRows::Coming(rows) => rows.next().await.transpose(),
        }
    }
}

/// A subquery while its operator runs.
pub(super) struct Runs {
    // Fixed.
    subquery: Subquery,
    field: FieldRef,
    /// What runs take goes to a report of their own.
    context: Arc<TaskContext>,
    statement: Arc<StatementContext>,
    /// Encodes the outer values; `None` where no value is kept, or there are none.
    encoder: Option<RowConverter>,
    /// That of the run of a plan around this one, which has not ended as long as this is held.
    _around: Arc<TaskContext>,
    // State.
    /// Its number among the owners of the outer row, once a run has begun.
    owner: Option<u64>,
    /// Runs without streams; `None` where there are none, or no more.
    short: Option<ShortRuns>,
    /// What the run that goes on takes.
    report: Arc<Report>,
    kept: HashMap<Box<[u8]>, ScalarValue>,
    kept_bytes: usize,
    memory: MemoryReservation,
    /// What the temporary tables of all runs so far cost.
    tables: Vec<TempTable>,
    slice: TimeSlice,
}

impl Runs {
    pub(super) fn of(subquery: Subquery, context: &Arc<TaskContext>) -> Result<Runs> {
        let field = Arc::new(subquery.plan.schema().field(0).clone());
        let fields = subquery.columns.iter().map(|(_, data_type)| data_type);
        let fields: Vec<SortField> = fields.cloned().map(SortField::new).collect();
        let is_kept = !subquery.varies && RowConverter::supports_fields(&fields);
        let encoder = match is_kept && !fields.is_empty() {
            true => Some(RowConverter::new(fields)?),
            false => None,
        };
        let statement = StatementContext::of(context)?;
        let report = Arc::new(Report::default());
        let of_runs = StatementContext {
            report: Arc::clone(&report),
            ..StatementContext::clone(&statement)
        };
        Ok(Runs {
            short: ShortRuns::of(&subquery, &statement, context),
            subquery,
            field,
            statement,
            context: with_extension(context, Arc::new(of_runs)),
            _around: Arc::clone(context),
            owner: None,
            encoder,
            report,
            kept: HashMap::new(),
            kept_bytes: 0,
            memory: MemoryConsumer::new("values of subqueries").register(context.memory_pool()),
            tables: Vec::new(),
            slice: TimeSlice::begin(),
        })
    }

    /// The value of the subquery for the first rows of a batch, as many as do not take too much.
    pub(super) async fn values(&mut self, batch: &RecordBatch) -> Result<ArrayRef> {
        if batch.num_rows() == 0 {
            return Ok(new_empty_array(self.field.data_type()));
        }
        let columns = self.outer_columns(batch);
        let keys = match &self.encoder {
            Some(encoder) => Some(encoder.convert_columns(&columns)?),
            None => None,
        };
        let mut values = Vec::with_capacity(batch.num_rows());
        let mut bytes = 0;
        for row in 0..batch.num_rows() {
            let key = keys.as_ref().map(|keys| keys.row(row));
            let known = key.as_ref().and_then(|key| self.kept.get(key.as_ref()));
            let value = match known {
                Some(known) => known.clone(),
                None => {
                    let found = self.run(&columns, row).await?;
                    if let Some(key) = key {
                        self.keep(key.as_ref(), &found);
                    }
                    found
                }
            };
            bytes += value.size();
            self.memory.try_resize(self.kept_bytes + bytes)?;
            values.push(value);
            if bytes >= VALUES_BYTES_MAX {
                break;
            }
        }
        let array = ScalarValue::iter_to_array(values)?;
        self.memory.try_resize(self.kept_bytes)?;
        match array.data_type() == self.field.data_type() {
            true => Ok(array),
            false => Ok(arrow::compute::cast(&array, self.field.data_type())?),
        }
    }

    fn keep(&mut self, key: &[u8], value: &ScalarValue) {
        let bytes = key.len() + value.size() + ENTRY_BYTES;
        if self.kept_bytes + bytes > KEPT_BYTES_MAX {
            self.kept.clear();
            self.kept_bytes = 0;
        }
        if bytes <= KEPT_BYTES_MAX {
            self.kept.insert(key.into(), value.clone());
            self.kept_bytes += bytes;
        }
    }

    /// The one value of the subquery for a row.
    async fn run(&mut self, columns: &[ArrayRef], row: usize) -> Result<ScalarValue> {
        let mut rows = self.begin_run(columns, row)?;
        let mut value = None;
        while let Some(batch) = rows.next().await? {
            if batch.num_rows() + usize::from(value.is_some()) > 1 {
                return Err(DataFusionError::External(Box::new(SeveralRows)));
            }
            if batch.num_rows() == 1 {
                value = Some(ScalarValue::try_from_array(batch.column(0), 0)?);
            }
        }
        self.end_run(rows).await;
        value.map_or_else(|| ScalarValue::try_new_null(self.field.data_type()), Ok)
    }

    /// The outer columns of a batch.
    pub(super) fn outer_columns(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        let columns = self.subquery.columns.iter();
        columns
            .map(|(column, _)| Arc::clone(batch.column(*column)))
            .collect()
    }

    /// Runs the subquery for a row, while no other run goes on.
    pub(super) fn begin_run(&mut self, columns: &[ArrayRef], row: usize) -> Result<RunRows> {
        let values = columns.iter();
        let values = values.map(|column| ScalarValue::try_from_array(column, row));
        let row = &self.subquery.row;
        let owner = *self.owner.get_or_insert_with(|| row.own());
        row.set(owner, values.collect::<Result<_>>()?)?;
        if let Some(short) = &mut self.short {
            if let Some(run) = short.run(&self.context) {
                self.statement.report.add_reads(run.reads);
                for table in &run.temp_tables {
                    add_run(&mut self.tables, table);
                }
                return Ok(RunRows::There(Some(run.rows)));
            }
            self.short.take_if(|short| short.is_given_up());
        }
        let plan = reset_plan_states(Arc::clone(&self.subquery.plan))?;
        let rows = execute_stream(plan, Arc::clone(&self.context))?;
        Ok(RunRows::Coming(rows))
    }

    /// Adds what a run took to the statement's, and lets others have the thread.
    pub(super) async fn end_run(&mut self, rows: RunRows) {
        if let RunRows::Coming(rows) = rows {
            drop(rows);
            self.wait_for_tasks().await;
            let run = self.report.take();
            self.statement.report.add_reads(run.reads());
            for table in run.tables() {
                add_run(&mut self.tables, &table);
            }
        }
        self.slice.share().await;
    }

    /// Lets tasks of a run that has ended end too: what they have learned lies in the plan, which
    /// the next run begins anew.
    async fn wait_for_tasks(&self) {
        for _ in 0..WAITS_MAX {
            if Arc::strong_count(&self.context) == 1 {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Adds a temporary table of one more run.
fn add_run(tables: &mut Vec<TempTable>, table: &TempTable) {
    match tables.iter_mut().find(|known| known.id == table.id) {
        Some(known) => known.add_run(table),
        None => tables.push(table.clone()),
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        for table in self.tables.drain(..) {
            self.statement.report.add(table);
        }
    }
}
