//! Plans over few rows: they run on the thread that asks, and without the temp space.
//!
//! Owns how such a plan is made, and what it runs in.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::execution::TaskContext;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use mayfly_exec::{OnlyGoverned, ShortPlan, ShortRun, Size, StatementContext, SwapOperators};
use mayfly_sql::functions::SessionValues;
use mayfly_sql::long_values::without_long_values;
use mayfly_sql::planning::{in_one_partition, optimized, physical};

use super::Job;
use crate::connection::Connection;
use crate::planning;

/// What a plan gives that warns in the session of `values`; `None` where it warned in another one
/// than that of the connection: its user is to see the warnings, which only the long way tells.
pub(super) fn unless_warned_elsewhere<T>(
    values: &SessionValues,
    connection: &Connection,
    run: impl FnOnce() -> Option<T>,
) -> Option<T> {
    if values.is(&connection.values) {
        return run();
    }
    // Others may run it now, and their warnings are taken for those of this run, which costs it
    // nothing but time.
    let before = values.lock().warned;
    let ran = run();
    (values.lock().warned == before).then_some(ran).flatten()
}

/// Runs a plan over few rows, in which no function makes a long value; `None` where it fails or
/// cannot run here.
pub(super) fn run_short(
    plan: &ShortPlan,
    given: Option<RecordBatch>,
    most: Size,
    context: &Arc<TaskContext>,
) -> Option<ShortRun> {
    without_long_values(|| plan.run(given, most, context)).ok()?
}

impl Job {
    /// The stock operators of a plan over few rows; `None` where they cannot be made. On this
    /// thread, which plans, as all that follow.
    pub(super) fn few_rows_plan_here(&self, plan: LogicalPlan) -> Option<Arc<dyn ExecutionPlan>> {
        self.few_rows_operators_here(&self.few_rows_optimized_here(plan)?)
    }

    /// A plan over few rows behind all rules but those for operators.
    pub(super) fn few_rows_optimized_here(&self, plan: LogicalPlan) -> Option<LogicalPlan> {
        optimized(&self.few_rows_state()?, plan).ok()
    }

    /// The operators of such a plan.
    pub(super) fn few_rows_operators_here(
        &self,
        plan: &LogicalPlan,
    ) -> Option<Arc<dyn ExecutionPlan>> {
        let state = self.few_rows_state()?;
        planning::wait(physical(&state, plan)).ok()
    }

    /// What plans over few rows are made with: stock operators on one thread.
    pub(super) fn few_rows_state(&self) -> Option<SessionState> {
        let state = self.connection.state().ok()?;
        // How many rows the stock operators hold is known before they run.
        let left_out = [SwapOperators::NAME, OnlyGoverned::NAME];
        let rules = state.physical_optimizers().iter();
        let rules = rules.filter(|rule| !left_out.contains(&rule.name()));
        let rules = rules.cloned().collect();
        // Names that rules make up are numbered from the first in each plan, so that two plans of
        // one query have the same ones.
        let mut props = state.execution_props().clone();
        props.alias_generator = Arc::default();
        let builder = in_one_partition(state).with_execution_props(props);
        Some(builder.with_physical_optimizer_rules(rules).build())
    }

    /// How many warnings there are so far: those that are kept, and all.
    pub(super) fn warned(&self) -> (usize, u64) {
        let values = self.connection.values.lock();
        (values.warnings.len(), values.warning_count)
    }

    /// What a plan is made into, unless it warned: a constant that warns is folded once, and would
    /// never warn again.
    pub(super) async fn without_warning<T>(
        &self,
        plan: impl Future<Output = Option<T>>,
    ) -> Option<T> {
        let before = self.warned();
        let made = plan.await;
        if self.warned() == before {
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
