//! Plans over few rows: stock operators on the thread that asks, and no temp space.
//!
//! Owns how such a plan is made and run, and what is told of its temporary tables.

use std::sync::Arc;

use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use datafusion::execution::TaskContext;
use datafusion::execution::session_state::SessionState;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use futures::{FutureExt, TryStreamExt};
use mayfly_exec::{StatementContext, SwapOperators, TempTable, Why, next_temp_table_id};

use super::Job;
use super::query::in_one_partition;
use crate::connection::Connection;

impl Job {
    /// What plans over few rows are made with: stock operators on one thread.
    pub(super) fn few_rows_state(&self) -> Option<SessionState> {
        let state = self.connection.state().ok()?;
        let ours = SwapOperators.name();
        let rules = state.physical_optimizers().iter();
        let rules = rules.filter(|rule| rule.name() != ours).cloned().collect();
        let builder = in_one_partition(state);
        Some(builder.with_physical_optimizer_rules(rules).build())
    }

    /// What a plan is made into, unless it warned: a constant that warns is folded once, and would
    /// never warn again.
    pub(super) async fn without_warning<T>(
        &self,
        plan: impl Future<Output = Option<T>>,
    ) -> Option<T> {
        let raised = || {
            let values = self.connection.values.lock();
            (values.warnings.len(), values.warning_count)
        };
        let before = raised();
        let made = plan.await;
        if raised() == before {
            return made;
        }
        let mut values = self.connection.values.lock();
        values.warnings.truncate(before.0);
        values.warning_count = before.1;
        None
    }
}

impl Connection {
    /// What plans over few rows run in: the memory of the connection.
    pub(super) fn few_rows_context(&self) -> Option<Arc<TaskContext>> {
        let version = {
            let local = self.local();
            let version = local.variables.version();
            if let Some((of_version, context)) = &local.few_rows
                && *of_version == version
            {
                return Some(Arc::clone(context));
            }
            version
        };
        let context = StatementContext::new(self.account.clone());
        let context = self.task_context_of(context).ok()?;
        self.local().few_rows = Some((version, Arc::clone(&context)));
        Some(context)
    }
}

/// The rows of a plan; `None` where it fails or would have to wait.
pub(super) fn rows_at_once(
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> Option<RecordBatch> {
    let stream = plan.execute(0, Arc::clone(context)).ok()?;
    // Operators that yield now and then count the steps of the task that they think they are in.
    let batches = tokio::task::unconstrained(stream.try_collect());
    let batches: Vec<RecordBatch> = batches.now_or_never()?.ok()?;
    concat_batches(&plan.schema(), &batches).ok()
}

/// The temporary tables of a plan of stock operators, in the order of the plan, with the rows that
/// went through them when it ran.
pub(super) fn temp_tables(plan: &Arc<dyn ExecutionPlan>) -> Vec<TempTable> {
    let mut tables = Vec::new();
    add_temp_tables(plan, &mut tables);
    tables
}

fn add_temp_tables(plan: &Arc<dyn ExecutionPlan>, tables: &mut Vec<TempTable>) {
    let rows_of = |node: &Arc<dyn ExecutionPlan>| {
        let rows = node.metrics().and_then(|metrics| metrics.output_rows());
        rows.unwrap_or_default() as u64
    };
    let mut add = |why, rows| {
        tables.push(TempTable {
            id: next_temp_table_id(),
            why,
            rows,
            memory_bytes: 0,
            disk_bytes_written: 0,
            disk_bytes_read: 0,
            passes: 1,
            on_disk: false,
        });
    };
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let why = match sort.fetch() {
            Some(_) => Why::OrderByLimit,
            None => Why::OrderBy,
        };
        add(why, rows_of(sort.input()));
    } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>()
        && !aggregate.group_expr().is_empty()
    {
        let why = match aggregate.aggr_expr().is_empty() {
            true => Why::Distinct,
            false => Why::GroupBy,
        };
        add(why, rows_of(plan));
    }
    for child in plan.children() {
        add_temp_tables(child, tables);
    }
}
