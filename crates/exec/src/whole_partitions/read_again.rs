//! The second reading of an input, which is no table of the statement's.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use crate::plan_node::{pass_through_node, same_rows};

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

    crate::plan_node::runs_input!();
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
