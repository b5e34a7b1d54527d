//! What a statement gives to the operators that run it.
//!
//! Owns: [`StatementContext`], an extension of DataFusion's `SessionConfig`. Never: outlives the
//! statement by itself; operators hold clones of what they use.
//!
//! Operators look for the extension in the task context. In a program that sets none, they use
//! the account behind the memory pool, so [`install`](crate::install) alone is enough.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Result, plan_datafusion_err};
use datafusion::execution::TaskContext;
use mayfly_space::{Account, AccountOptions};
use mayfly_table::rows::StopFlag;

use crate::memory::SpacePool;
use crate::report::Report;

/// The account that pays for a statement, and the report that its operators fill.
#[derive(Clone)]
pub struct StatementContext {
    /// The parent of the accounts of the statement's operators.
    pub account: Account,
    /// What the operators used, filled as they end.
    pub report: Arc<Report>,
    /// The most bytes of one temporary table that stay in memory while nobody needs them; `None`
    /// for as many as there is room for.
    pub table_resident_max_bytes: Option<u64>,
    /// How often the recursive term of a recursion may run; `None` for as often as it returns rows.
    pub recursion_depth_max: Option<u64>,
    /// Raised when nobody wants the rows any more: long steps look at it on their way.
    pub stop: StopFlag,
}

impl StatementContext {
    /// A context with an empty report.
    pub fn new(account: Account) -> Self {
        Self {
            account,
            report: Arc::new(Report::default()),
            table_resident_max_bytes: None,
            recursion_depth_max: None,
            stop: StopFlag::default(),
        }
    }

    /// The account of a temporary table, or of one of the `parts` that make it up.
    pub(crate) fn table_account(
        &self,
        name: &str,
        parts: usize,
        options: AccountOptions,
    ) -> Account {
        let most = self.table_resident_max_bytes;
        let options = AccountOptions {
            resident_max_bytes: most.map(|bytes| bytes / parts.max(1) as u64),
            ..options
        };
        self.account.child(name, options)
    }

    /// The report of a running task, if there is one.
    pub(crate) fn report_of(context: &TaskContext) -> Option<Arc<Report>> {
        let found = context.session_config().get_extension::<Self>()?;
        Some(Arc::clone(&found.report))
    }

    /// The context of a running task.
    ///
    /// # Errors
    /// A plan error when the task has neither the extension nor a [`SpacePool`].
    pub fn of(context: &TaskContext) -> Result<Arc<Self>> {
        if let Some(found) = context.session_config().get_extension::<Self>() {
            return Ok(found);
        }
        let pool = context
            .memory_pool()
            .downcast_ref::<SpacePool>()
            .ok_or_else(|| {
                plan_datafusion_err!("no temp space: the session was built without install()")
            })?;
        Ok(Arc::new(Self::new(pool.account().clone())))
    }
}

/// The context of a task with one more extension. It knows no functions by their names: those of a
/// plan are in the plan.
pub(crate) fn with_extension<T: Send + Sync + 'static>(
    context: &TaskContext,
    extension: Arc<T>,
) -> Arc<TaskContext> {
    let config = context.session_config().clone();
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        config.with_extension(extension),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        context.runtime_env(),
    ))
}
