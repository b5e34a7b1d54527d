//! A table of one batch that changes between two runs of a plan: a statement plans once what it
//! computes of each part of its rows.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::sql::sqlparser::ast;
use mayfly_sql::bindings::BoundTable;
use mayfly_sql::change::{self, TARGETS, target_name};
use mayfly_sql::plan::Planned;
use mayfly_sql::references::References;
use mayfly_sql::statement::RowChoice;
use mayfly_types::MySqlError;

use super::Job;
use crate::errors;
use crate::lowered;

/// The table, of no rows at first.
pub(super) struct ChangingBatch {
    schema: SchemaRef,
    batch: Mutex<Option<RecordBatch>>,
}

impl ChangingBatch {
    /// A table whose batches have this schema.
    pub(super) fn new(schema: SchemaRef) -> ChangingBatch {
        ChangingBatch {
            schema,
            batch: Mutex::new(None),
        }
    }

    /// What its batches have.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The table as a plan reads it.
    ///
    /// # Errors
    /// 1060 when two names of columns differ in case only.
    fn bind(self: &Arc<Self>) -> Result<BoundTable, MySqlError> {
        let schema = Arc::clone(&self.schema);
        let provider = StreamingTable::try_new(schema, vec![Arc::clone(self) as _]);
        lowered::bind(Arc::new(
            provider.map_err(|error| errors::from_plan(&error))?,
        ))
    }

    /// The rows of the next run.
    pub(super) fn put(&self, batch: RecordBatch) {
        *self.batch.lock().unwrap_or_else(PoisonError::into_inner) = Some(batch);
    }

    /// Forgets the rows of a run that is done.
    pub(super) fn clear(&self) {
        *self.batch.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Job {
    /// The plan of what is computed of each batch of a table, which goes by `alias`.
    pub(super) async fn planned_over(
        &self,
        rows: &Arc<ChangingBatch>,
        alias: &str,
        list: Vec<ast::Expr>,
    ) -> Result<Planned, MySqlError> {
        let choice = RowChoice {
            from: vec![change::target_table(alias, 0)?],
            condition: None,
            order_by: Vec::new(),
            limit: None,
        };
        let query = change::query(choice, list)?;
        let mut bindings = self.bindings(&References::of_query(&query)).await?;
        let name = (TARGETS.to_owned(), target_name(0));
        bindings.tables.insert(name, rows.bind()?);
        self.planned(query, &bindings).await
    }
}

impl fmt::Debug for ChangingBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangingBatch").finish_non_exhaustive()
    }
}

impl PartitionStream for ChangingBatch {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        let batches = futures::stream::iter(batch.clone().map(Ok));
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches,
        ))
    }
}
