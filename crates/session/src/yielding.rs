//! Lets statements be stopped inside joins.
//!
//! A task is stopped where it yields. A join that multiplies rows answers with batch after batch
//! without ever waiting, so its consumer never yields; this rule puts DataFusion's cooperative
//! node above every such operator.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

/// Operators that may produce many batches from one.
const MULTIPLIERS: [&str; 6] = [
    "CrossJoinExec",
    "HashJoinExec",
    "NestedLoopJoinExec",
    "PiecewiseMergeJoinExec",
    "SortMergeJoinExec",
    "UnnestExec",
];

#[derive(Debug)]
pub(crate) struct YieldInJoins;

impl PhysicalOptimizerRule for YieldInJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wrapped = plan.transform_up(|node| {
            if MULTIPLIERS.contains(&node.name()) {
                let node: Arc<dyn ExecutionPlan> = Arc::new(CooperativeExec::new(node));
                Ok(Transformed::yes(node))
            } else {
                Ok(Transformed::no(node))
            }
        })?;
        Ok(wrapped.data)
    }

    fn name(&self) -> &str {
        "yield_in_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
