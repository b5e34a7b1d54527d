//! One execution of a join: the left side that is read once, and a stream for each partition of the
//! right side.

use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use mayfly_space::{Account, AccountOptions};

use super::gathered::Gathered;
use super::left_rows::LeftRows;
use super::pair::Limits;
use super::spec::Spec;
use crate::context::StatementContext;
use crate::join::result_bytes;
use crate::report::{TempTable, Why};
use crate::shared_run::Unfinished;

type Reading = Shared<BoxFuture<'static, Result<Arc<LeftRows>, Arc<DataFusionError>>>>;

/// What the streams of one execution share.
pub(super) struct Run {
    pub(super) spec: Arc<Spec>,
    right: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    reading: Reading,
    /// Streams that have not seen the end of their partition of the right side.
    pub(super) unfinished: Unfinished,
    id: u64,
    account: Account,
    statement: Arc<StatementContext>,
}

impl Run {
    pub(super) fn start(
        id: u64,
        spec: &Arc<Spec>,
        [left, right]: [&Arc<dyn ExecutionPlan>; 2],
        context: &Arc<TaskContext>,
    ) -> Result<Arc<Run>> {
        let statement = StatementContext::of(context)?;
        let account = statement.table_account(Why::Join.text(), 1, AccountOptions::default());
        let rows = LeftRows::read(
            Arc::clone(left),
            account.clone(),
            spec.roles.marks_table(),
            Arc::clone(context),
        );
        let reading = async move { rows.await.map(Arc::new).map_err(Arc::new) };
        Ok(Arc::new(Run {
            spec: Arc::clone(spec),
            right: Arc::clone(right),
            context: Arc::clone(context),
            reading: reading.boxed().shared(),
            unfinished: Unfinished::new(right.output_partitioning().partition_count()),
            id,
            account,
            statement,
        }))
    }

    /// The left side, read when it is asked for the first time.
    pub(super) async fn left(&self) -> Result<Arc<LeftRows>> {
        let rows = self.reading.clone().await;
        rows.map_err(DataFusionError::Shared)
    }

    /// The rows of a partition of the right side.
    pub(super) fn right(&self, partition: usize) -> Result<Gathered> {
        let rows = self.right.execute(partition, Arc::clone(&self.context))?;
        Ok(Gathered::new(rows, self.limits()))
    }

    pub(super) fn limits(&self) -> Limits {
        let space = self.statement.account.space();
        Limits {
            rows: self.context.session_config().batch_size(),
            bytes: result_bytes(space.memory_bytes()),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let counters = self.account.counters();
        // A join whose rows stay in memory is no more a temporary table than a join buffer is.
        if counters.bytes_written == counters.wasted_write_bytes {
            return;
        }
        let rows = self.reading.peek().and_then(|rows| rows.as_ref().ok());
        let rows = rows.map_or(0, |rows| rows.row_count());
        let table = TempTable::of(self.id, Why::Join, &self.account, rows, 1);
        self.statement.report.add(table);
    }
}
