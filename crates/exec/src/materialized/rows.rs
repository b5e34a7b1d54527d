//! The rows of tables that are computed once, for one run of a plan.
//!
//! Owns: [`MaterializedRows`], which has the rows or the tasks that write them. Tasks see it
//! without owning it: it is dropped with the run, and they end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use mayfly_space::{Account, AccountOptions};
use mayfly_table::BatchRun;

use super::table::Materialized;
use crate::collect::collect_run;
use crate::context::{StatementContext, with_extension};
use crate::lock::lock;
use crate::report::Why;
use crate::tasks::join_all;

/// Finished rows, the runs of all partitions.
pub(super) struct Rows {
    pub(super) runs: Vec<BatchRun>,
    pub(super) account: Account,
}

/// Rows that are finished or on their way.
pub(super) type Coming =
    Shared<BoxFuture<'static, std::result::Result<Arc<Rows>, Arc<DataFusionError>>>>;

type Tables = Mutex<HashMap<u64, Coming>>;

/// The tables that one run of a plan has computed, or computes: an extension of DataFusion's
/// `SessionConfig`, of which each run needs one of its own.
pub struct MaterializedRows(Place);

enum Place {
    Owned(Arc<Tables>),
    /// To the tasks that write rows, which may read other tables.
    Lent(Weak<Tables>),
}

impl Default for MaterializedRows {
    fn default() -> Self {
        MaterializedRows(Place::Owned(Arc::default()))
    }
}

impl MaterializedRows {
    /// Those of a running task; where nobody has given any, each scan computes its own.
    pub(super) fn of(context: &TaskContext) -> Arc<MaterializedRows> {
        let given = context.session_config().get_extension::<Self>();
        given.unwrap_or_default()
    }

    /// The rows of a table; the first call starts its plan.
    pub(super) fn rows_of(
        &self,
        table: &Materialized,
        context: &Arc<TaskContext>,
    ) -> Result<Coming> {
        let tables = match &self.0 {
            Place::Owned(tables) => Arc::clone(tables),
            // The run is over, and nobody waits for these rows any more.
            Place::Lent(tables) => tables.upgrade().unwrap_or_default(),
        };
        let mut known = lock(&tables);
        if let Some(rows) = known.get(&table.id()) {
            return Ok(rows.clone());
        }
        let plan = table.plan()?;
        let context = lent(context, &tables);
        let (id, name) = (table.id(), table.name().to_owned());
        let rows = async move {
            let rows = compute(id, &name, plan, context).await;
            rows.map(Arc::new).map_err(Arc::new)
        };
        let rows = rows.boxed().shared();
        known.insert(table.id(), rows.clone());
        Ok(rows)
    }
}

/// The context of tasks that do not own the rows which they write.
fn lent(context: &Arc<TaskContext>, tables: &Arc<Tables>) -> Arc<TaskContext> {
    let lent = MaterializedRows(Place::Lent(Arc::downgrade(tables)));
    with_extension(context, Arc::new(lent))
}

/// Runs the plan of a table into pages.
async fn compute(
    id: u64,
    name: &str,
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<Rows> {
    let statement = StatementContext::of(&context)?;
    let account = statement.table_account(name, 1, AccountOptions::default());
    let live = statement.report.begin(id, Why::Derived, account.clone());
    let partitions = plan.output_partitioning().partition_count();
    let tasks = (0..partitions).map(|partition| {
        let (plan, context) = (Arc::clone(&plan), Arc::clone(&context));
        let account = account.clone();
        SpawnedTask::spawn(async move { collect_run(&account, plan, partition, context).await })
    });
    let runs = join_all(tasks.collect()).await?;
    live.add_rows(runs.iter().map(BatchRun::row_count).sum());
    Ok(Rows { runs, account })
}
