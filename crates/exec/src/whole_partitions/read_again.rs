//! The second reading of an input, of which nobody is told.
//!
//! Owns: [`ReadAgain`], the node above it, and [`is_read_again`], which tells functions that they
//! compute for it what they compute for the other reading too: a warning would be given twice.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, stream};

use crate::plan_node::{pass_through_node, same_rows};

thread_local! {
    static IS_READ_AGAIN: Cell<bool> = const { Cell::new(false) };
}

/// Whether what runs on this thread computes rows that another part of the plan computes as well.
pub fn is_read_again() -> bool {
    IS_READ_AGAIN.get()
}

/// Says so until it is dropped.
struct Again {
    was_read_again: bool,
}

impl Again {
    fn begin() -> Again {
        Again {
            was_read_again: IS_READ_AGAIN.replace(true),
        }
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        IS_READ_AGAIN.set(self.was_read_again);
    }
}

/// The rows of its input, which another part of the plan reads as well.
#[derive(Clone, Debug)]
pub struct ReadAgain {
    input: Arc<dyn ExecutionPlan>,
}

impl ReadAgain {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>) -> ReadAgain {
        ReadAgain { input }
    }

    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _options: &ReplaceChildrenOptions,
    ) -> Result<Self> {
        Ok(Self { input })
    }
}

impl DisplayAs for ReadAgain {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadAgain")
    }
}

impl ExecutionPlan for ReadAgain {
    pass_through_node!("ReadAgain");
    same_rows!();

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut rows = self.input.execute(partition, context)?;
        let schema = self.schema();
        let rows = stream::poll_fn(move |context| {
            let _again = Again::begin();
            rows.poll_next_unpin(context)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// Whether a node joins rows with the groups of their partitions, and is there for a window.
pub fn is_for_window(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let children = plan.children();
    let [groups, _] = children.as_slice() else {
        return false;
    };
    let mut node = *groups;
    loop {
        if node.is::<ReadAgain>() {
            return true;
        }
        match node.children().as_slice() {
            [input] => node = input,
            _ => return false,
        }
    }
}
