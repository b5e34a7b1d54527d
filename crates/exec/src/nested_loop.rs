//! Joins without an equality that find too little memory for their left side.
//!
//! DataFusion 55's nested loop join writes its left side to the disk then, and reads it in parts.
//! For that it executes the input a second time, which exchanges below it do not allow (they
//! panic). And where it shows left rows for themselves, each of several partitions on the right
//! shows those that it has no partner for, although another one may
//! (`NestedLoopJoinExec::execute` says so).
//!
//! Owns: [`Again`], an input that can be executed again, which the rule of this crate puts below
//! such joins; where the answer would be wrong it ends the statement for want of memory instead. A
//! cross join, which holds its left side whatever it takes, becomes such a join unless that side
//! is known to be small.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, ReplaceChildrenOptions, reset_plan_states,
};
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
};

use crate::context::StatementContext;
use crate::error::space_error;
use crate::plan_node::{known_rows, same_rows};

/// A left side of so many rows is held.
const ROWS_FEW: usize = 8192;

/// Makes the left side of a nested loop join one that can be executed again.
pub(crate) fn replace(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let plan = match plan.downcast_ref::<CrossJoinExec>() {
        Some(join) if !has_few_rows(join.left()) => {
            let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
            let join = NestedLoopJoinExec::try_new(left, right, None, &JoinType::Inner, None)?;
            Arc::new(join)
        }
        _ => plan,
    };
    let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() else {
        return Ok(Transformed::no(plan));
    };
    if join.left().is::<Again>() {
        return Ok(Transformed::no(plan));
    }
    let shows_left = matches!(
        join.join_type(),
        JoinType::Left
            | JoinType::Full
            | JoinType::LeftSemi
            | JoinType::LeftAnti
            | JoinType::LeftMark
    );
    let partitions = join.right().output_partitioning().partition_count();
    let left: Arc<dyn ExecutionPlan> = Arc::new(Again {
        input: Arc::clone(join.left()),
        is_refused: shows_left && partitions > 1,
        was_executed: AtomicBool::new(false),
    });
    let children = vec![left, Arc::clone(join.right())];
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Ok(Transformed::yes(plan.replace_children(children, options)?))
}

fn has_few_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let rows = known_rows(plan.as_ref());
    rows.get_value().is_some_and(|rows| *rows <= ROWS_FEW)
}

/// The rows of its input, as often as they are asked for.
pub(crate) struct Again {
    input: Arc<dyn ExecutionPlan>,
    /// Whether what would be done with them is wrong.
    is_refused: bool,
    was_executed: AtomicBool,
}

impl Again {
    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _options: &ReplaceChildrenOptions,
    ) -> Result<Self> {
        Ok(Self {
            input,
            is_refused: self.is_refused,
            was_executed: AtomicBool::new(false),
        })
    }
}

impl fmt::Debug for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Again")
            .field("input", &self.input)
            .field("is_refused", &self.is_refused)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for Again {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Again")
    }
}

impl ExecutionPlan for Again {
    crate::plan_node::pass_through_node!("Again");
    same_rows!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if !self.was_executed.swap(true, Ordering::Relaxed) {
            return self.input.execute(partition, context);
        }
        if self.is_refused {
            let account = &StatementContext::of(&context)?.account;
            // More than all would have to be held.
            let bytes = account.space().memory_bytes() + 1;
            return Err(space_error(account.refusal(bytes)));
        }
        reset_plan_states(Arc::clone(&self.input))?.execute(partition, context)
    }
}
