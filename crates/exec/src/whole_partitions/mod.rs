//! Aggregates over whole partitions as joins: `SUM(v) OVER (PARTITION BY g)` is one value for each
//! `g`, which a join with the groups of `g` finds without sorting a row or keeping one.
//!
//! ```text
//!   Window: sum(v) by g <- input      Join: g is g
//!                                       |-- Aggregate: sum(v) by g <- what it needs of the input
//!                                       `-- input
//! ```
//!
//! The input is read twice, so it must be cheap to read: a table or a Parquet file, and what drops
//! rows of it or computes columns, without functions (`repeatable`). Where it is more than that,
//! where groups are nearly as many as rows, and where a window below has the same partitions
//! sorted, rows are sorted as they were. Without PARTITION BY there is one group, and nothing to
//! decide. EXPLAIN shows a table once (`read_again`).
//!
//! **Never** changes rows. A guess that is wrong costs time.
//!
//! The rule runs when the sides of joins are chosen, and before anything is sorted: the groups are
//! the side that becomes a table. DuckDB does the same in its logical plan, and calls it a self
//! join of a window.

mod groups;
mod read_again;
mod repeatable;
mod stack;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use self::groups::WholePartitions;
pub use self::read_again::{ReadAgain, is_for_window};
use self::repeatable::is_cheap_to_repeat;
use self::stack::{InputColumns, Stack, window_of};
use crate::estimate::Estimates;
use crate::plan_node::{chosen_columns, over_input};

/// Fewer rows are sorted before another plan is made, and come in the order of their partitions.
const ROWS_MIN: f64 = 10_000.0;
/// With more groups than this part of the rows, a sort costs less than groups and a join ...
const GROUPS_MAX_PER_ROW: f64 = 0.25;
/// ... if they do not fit into this part of the budget.
const GROUPS_PER_MEMORY: f64 = 4.0;
/// What a group takes, about: a row of the aggregate, one of the join, and their directories.
const GROUP_BYTES: f64 = 128.0;

/// Joins rows with the groups of their partitions instead of sorting them.
#[derive(Debug)]
pub(crate) struct JoinWholePartitions {
    memory_bytes: u64,
}

impl JoinWholePartitions {
    /// The rule for plans that run in a budget.
    pub(crate) fn for_budget(memory_bytes: u64) -> Self {
        Self { memory_bytes }
    }
}

impl PhysicalOptimizerRule for JoinWholePartitions {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let groups_max = self.memory_bytes as f64 / GROUPS_PER_MEMORY / GROUP_BYTES;
        plan.transform_down(|node| joined(node, groups_max, config))
            .data()
    }

    fn name(&self) -> &str {
        "join_whole_partitions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A plan with joins in the place of windows that it begins with. Of `groups_max` groups there may
/// be as many as of rows.
fn joined(
    plan: Arc<dyn ExecutionPlan>,
    groups_max: f64,
    config: &ConfigOptions,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let stack = Stack::of(&plan);
    let Some(windows) = windows_of(&stack, groups_max)? else {
        return Ok(Transformed::no(plan));
    };
    // Where rows are sorted for one of them, those above find them sorted.
    let mut sorted = Vec::new();
    let mut result = Arc::clone(&stack.input);
    let mut is_changed = false;
    for (node, window) in stack.nodes.iter().zip(windows) {
        let groups = window.groups.filter(|groups| !groups.find_sorted(&sorted));
        if groups.is_none() {
            sorted.extend(window.keys);
        }
        let join = match groups {
            Some(groups) => groups.join(&stack.input, &result, config)?,
            None => None,
        };
        // A function of other programs may describe its result in another way when it groups.
        let join = join.filter(|join| join.schema() == node.schema());
        is_changed |= join.is_some();
        result = match join {
            Some(join) => join,
            None => over_input(node, result)?,
        };
    }
    // All windows of the stack are decided upon, and there are no others below.
    let plan = if is_changed { result } else { plan };
    Ok(Transformed::new(plan, is_changed, TreeNodeRecursion::Jump))
}

/// What is known of a node of a stack; nothing of one that chooses columns.
#[derive(Default)]
struct Window {
    /// The keys of its partitions, over the input of the stack; `None` if they are more than that.
    keys: Option<Vec<PhysicalExprRef>>,
    /// What takes its place, if rows may be joined with that.
    groups: Option<WholePartitions>,
}

/// The nodes of a stack; `None` if its input is not read twice.
fn windows_of(stack: &Stack, groups_max: f64) -> Result<Option<Vec<Window>>> {
    if stack.nodes.is_empty() {
        return Ok(None);
    }
    let (input, estimates) = (&stack.input, Estimates::default());
    let rows = match estimates.rows(input.as_ref())? {
        Some(rows) if rows >= ROWS_MIN && is_cheap_to_repeat(input, rows, &estimates)? => rows,
        _ => return Ok(None),
    };
    let mut columns = InputColumns::of(input);
    let mut windows = Vec::with_capacity(stack.nodes.len());
    for node in &stack.nodes {
        windows.push(match window_of(node) {
            Some((functions, _)) => {
                let keys = functions.first().map_or(&[][..], |one| one.partition_by());
                let keys = columns.all(keys)?;
                let groups = match &keys {
                    Some(keys) => WholePartitions::of(node, keys, &columns)?,
                    None => None,
                };
                columns.add_results(functions.len());
                Window { keys, groups }
            }
            None => {
                let chosen = node.downcast_ref().and_then(chosen_columns);
                columns.choose(&chosen.map_or(Vec::new(), |(_, chosen)| chosen));
                Window::default()
            }
        });
    }
    // The groups of all of them are in memory at a time.
    let tables = windows.iter().filter(|window| window.groups.is_some());
    let groups_max = groups_max / tables.count().max(1) as f64;
    let groups_max = groups_max.max(GROUPS_MAX_PER_ROW * rows);
    for window in &mut windows {
        let count = match &window.groups {
            Some(groups) => estimates.groups(groups.input_keys(), input)?,
            None => None,
        };
        if count.is_some_and(|count| count > groups_max) {
            window.groups = None;
        }
    }
    Ok(Some(windows))
}
