//! Windows whose rows are all in one partition, as those after `WHERE g = 5` are in that of
//! `PARTITION BY g`.
//!
//! DataFusion hands rows to the tasks of a window by the hash of their partition keys. With one
//! partition that gives all of them to one task, which sorts alone. Without partition keys each
//! task sorts what it reads, and the window reads the merged rows: the sort takes as long as there
//! are tasks to share it.
//!
//! **Never** changes rows: whoever reads sorted rows finds the partitions by their keys. A guess
//! that is wrong costs time.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_expr::{AcrossPartitions, PhysicalExprRef};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::estimate::Estimates;
use crate::plan_node::{chosen_columns, with_inputs};

/// Lets the rows of a single partition be sorted by all tasks.
#[derive(Debug, Default)]
pub(crate) struct ShareOnePartition;

impl PhysicalOptimizerRule for ShareOnePartition {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        shared(plan, false)
    }

    fn name(&self) -> &str {
        "share_one_partition"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// `keeps` says whether a window above, over the same rows, keeps its partitions: DataFusion hands
/// its rows out by hash whatever it is told here, and both had better be one operator.
fn shared(plan: Arc<dyn ExecutionPlan>, keeps: bool) -> Result<Arc<dyn ExecutionPlan>> {
    let window = plan.downcast_ref::<BoundedWindowAggExec>();
    let goes_on = window.is_some() || plan.downcast_ref().and_then(chosen_columns).is_some();
    let keeps_below = plan.is::<WindowAggExec>() || keeps && goes_on;
    let plan = with_inputs(plan, |_, input| shared(input, keeps_below))?;
    let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() else {
        return Ok(plan);
    };
    let (keys, input) = (window.partition_keys(), window.input());
    if keeps || keys.is_empty() || !is_one_partition(&keys, input)? {
        return Ok(plan);
    }
    let (functions, mode) = (
        window.window_expr().to_vec(),
        window.input_order_mode.clone(),
    );
    let shared = BoundedWindowAggExec::try_new(functions, Arc::clone(input), mode, false)?;
    Ok(Arc::new(shared))
}

/// Whether all rows of a plan have the same keys, as far as is known.
fn is_one_partition(keys: &[PhysicalExprRef], input: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let known = input.equivalence_properties();
    let may_differ = |key: &&PhysicalExprRef| {
        let constant = known.is_expr_constant(key);
        !matches!(constant, Some(AcrossPartitions::Uniform(_)))
    };
    let differ: Vec<PhysicalExprRef> = keys.iter().filter(may_differ).cloned().collect();
    if differ.is_empty() {
        return Ok(true);
    }
    let groups = Estimates::default().groups(&differ, input)?;
    Ok(groups.is_some_and(|groups| groups <= 1.0))
}
