//! The runs of a subquery, and the values that they found.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::FieldRef;
use arrow::row::{RowConverter, SortField};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;

use super::operator::Subquery;
use crate::context::StatementContext;
use crate::report::{Report, TempTable};
use crate::time_slice::TimeSlice;

/// Values that are kept take at most so many bytes; then they begin anew.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// What a value takes beside its own bytes and those of its key, about.
const ENTRY_BYTES: usize = 64;

/// A subquery that stands for a value had more rows than one.
#[derive(Debug)]
pub struct SeveralRows;

impl fmt::Display for SeveralRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the subquery of a value has several rows")
    }
}

impl std::error::Error for SeveralRows {}

/// A subquery while its operator runs.
pub(super) struct Runs {
    // Fixed.
    subquery: Subquery,
    field: FieldRef,
    context: Arc<TaskContext>,
    statement: Arc<StatementContext>,
    /// Encodes the outer values; `None` where no value is kept.
    encoder: Option<RowConverter>,
    // State.
    kept: HashMap<Box<[u8]>, ScalarValue>,
    kept_bytes: usize,
    memory: MemoryReservation,
    /// What the temporary tables of all runs so far cost.
    tables: Vec<TempTable>,
    slice: TimeSlice,
}

impl Runs {
    pub(super) fn begin(subquery: Subquery, context: &Arc<TaskContext>) -> Result<Runs> {
        let field = Arc::new(subquery.plan.schema().field(0).clone());
        let fields = subquery.columns.iter().map(|(_, data_type)| data_type);
        let fields: Vec<SortField> = fields.cloned().map(SortField::new).collect();
        let encoder = match subquery.varies || !RowConverter::supports_fields(&fields) {
            true => None,
            false => Some(RowConverter::new(fields)?),
        };
        Ok(Runs {
            subquery,
            field,
            statement: StatementContext::of(context)?,
            context: Arc::clone(context),
            encoder,
            kept: HashMap::new(),
            kept_bytes: 0,
            memory: MemoryConsumer::new("values of subqueries").register(context.memory_pool()),
            tables: Vec::new(),
            slice: TimeSlice::begin(),
        })
    }

    /// The value of the subquery for each row of a batch.
    pub(super) async fn values(&mut self, batch: &RecordBatch) -> Result<ArrayRef> {
        let columns = { self.subquery.columns.iter() }.map(|(column, _)| batch.column(*column));
        let columns: Vec<ArrayRef> = columns.cloned().collect();
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
                        self.keep(key.as_ref(), &found)?;
                    }
                    found
                }
            };
            bytes += value.size();
            self.memory.try_resize(self.kept_bytes + bytes)?;
            values.push(value);
        }
        let array = ScalarValue::iter_to_array(values)?;
        self.memory.try_resize(self.kept_bytes)?;
        match array.data_type() == self.field.data_type() {
            true => Ok(array),
            false => Ok(arrow::compute::cast(&array, self.field.data_type())?),
        }
    }

    fn keep(&mut self, key: &[u8], value: &ScalarValue) -> Result<()> {
        let bytes = key.len() + value.size() + ENTRY_BYTES;
        if self.kept_bytes + bytes > KEPT_BYTES_MAX {
            self.kept.clear();
            self.kept_bytes = 0;
        }
        if bytes <= KEPT_BYTES_MAX {
            self.kept.insert(key.into(), value.clone());
            self.kept_bytes += bytes;
        }
        Ok(())
    }

    /// Runs the subquery for a row.
    async fn run(&mut self, columns: &[ArrayRef], row: usize) -> Result<ScalarValue> {
        let values = columns.iter();
        let values = values.map(|column| ScalarValue::try_from_array(column, row));
        self.subquery.row.set(values.collect::<Result<_>>()?);
        let report = Arc::new(Report::default());
        let context = self.reporting_to(&report);
        let plan = reset_plan_states(Arc::clone(&self.subquery.plan))?;
        let mut rows = execute_stream(plan, context)?;
        let mut value = None;
        while let Some(batch) = rows.next().await.transpose()? {
            if batch.num_rows() + usize::from(value.is_some()) > 1 {
                return Err(DataFusionError::External(Box::new(SeveralRows)));
            }
            if batch.num_rows() == 1 {
                value = Some(ScalarValue::try_from_array(batch.column(0), 0)?);
            }
        }
        drop(rows);
        self.add(&report);
        self.slice.share().await;
        value.map_or_else(|| ScalarValue::try_new_null(self.field.data_type()), Ok)
    }

    /// The context of a run, with a report of its own. Functions are in the plan already.
    fn reporting_to(&self, report: &Arc<Report>) -> Arc<TaskContext> {
        let statement = StatementContext {
            report: Arc::clone(report),
            ..StatementContext::clone(&self.statement)
        };
        let config = self.context.session_config().clone();
        Arc::new(TaskContext::new(
            self.context.task_id(),
            self.context.session_id(),
            config.with_extension(Arc::new(statement)),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            self.context.runtime_env(),
        ))
    }

    fn add(&mut self, report: &Report) {
        self.statement.report.add_reads(report.reads());
        for table in report.tables() {
            match self.tables.iter_mut().find(|known| known.id == table.id) {
                Some(known) => known.add_run(&table),
                None => self.tables.push(table),
            }
        }
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        for table in self.tables.drain(..) {
            self.statement.report.add(table);
        }
    }
}
