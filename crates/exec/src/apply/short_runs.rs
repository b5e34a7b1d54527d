//! Runs of a subquery that has little to do.
//!
//! Owns: whether a run goes through the steps of a [`ShortPlan`] or is begun as a plan. Never: lets
//! anybody notice: a run that ended in the midst of its steps is begun anew, so plans that may warn
//! have no steps.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::ExecutionPlan;

use super::subquery::Subquery;
use crate::context::StatementContext;
use crate::filter::{aggregates_warn, expression_warns};
use crate::report::{TempTable, Why, next_temp_table_id};
use crate::short_plan::{Filtered, ShortPlan, ShortRun, Size};

/// What a run may have to do.
const RUN_MAX: Size = Size {
    rows: 4096,
    bytes_read: 512 << 10,
    filtered: Filtered {
        rows: 64 << 10,
        bytes: 8 << 20,
    },
};
/// What its rows may take at once: those of a table, and what becomes of them.
const RUN_BYTES: usize = 1 << 20;
/// The runs of one subquery take at most this part of the budget.
const RUNS_PER_MEMORY: u64 = 64;
/// So many runs after each other that had more to do are enough.
const REFUSED_MAX: u32 = 8;

/// The steps of a subquery, in a statement.
pub(super) struct ShortRuns {
    plan: Arc<ShortPlan>,
    _memory: MemoryReservation,
    /// The runs since the last one that had little to do.
    refused: u32,
    /// The ids of the temporary tables of a kind, in the order of the plan.
    tables: HashMap<Why, Vec<u64>>,
}

impl ShortRuns {
    /// Those of a subquery; `None` where it has no steps, or there is little memory.
    pub(super) fn of(
        subquery: &Subquery,
        statement: &StatementContext,
        context: &TaskContext,
    ) -> Option<ShortRuns> {
        let plan = subquery.short.as_ref()?;
        let memory_bytes = statement.account.memory_limit_bytes();
        if memory_bytes / RUNS_PER_MEMORY < RUN_BYTES as u64 {
            return None;
        }
        let memory = MemoryConsumer::new("runs of subqueries").register(context.memory_pool());
        memory.try_grow(RUN_BYTES).ok()?;
        Some(ShortRuns {
            plan: Arc::clone(plan),
            _memory: memory,
            refused: 0,
            tables: HashMap::new(),
        })
    }

    /// Runs the steps; `None` where they have too much to do or fail, as the plan does then.
    pub(super) fn run(&mut self, context: &Arc<TaskContext>) -> Option<ShortRun> {
        let Ok(Some(mut run)) = self.plan.run(None, RUN_MAX, context) else {
            self.refused += 1;
            return None;
        };
        self.refused = 0;
        self.name_tables(&mut run.temp_tables);
        Some(run)
    }

    /// Whether there is no use in trying again.
    pub(super) fn is_given_up(&self) -> bool {
        self.refused >= REFUSED_MAX
    }

    /// Gives the temporary tables of a run the ids of those of the runs before.
    fn name_tables(&mut self, tables: &mut [TempTable]) {
        let mut seen: HashMap<Why, usize> = HashMap::new();
        for table in tables {
            let place = seen.entry(table.why).or_default();
            let known = self.tables.entry(table.why).or_default();
            if known.len() == *place {
                known.push(next_temp_table_id());
            }
            table.id = known[*place];
            *place += 1;
        }
    }
}

/// The steps of a plan that does not warn.
///
/// # Errors
/// If an index cannot be read.
pub(super) fn steps(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<ShortPlan>>> {
    if may_warn(plan)? {
        return Ok(None);
    }
    Ok(ShortPlan::of_snapshots(plan)?.map(Arc::new))
}

/// Whether anything that a plan computes may warn.
fn may_warn(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| {
        // What the columns of a join's condition are is not known here.
        let schema: SchemaRef = match node.children().as_slice() {
            [input] => input.schema(),
            _ => Arc::new(Schema::empty()),
        };
        let mut warns = aggregates_warn(node);
        node.apply_expressions(&mut |expr| {
            warns |= expression_warns(expr, &schema);
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(warns)
    })
}
