//! The hash join that goes on where a key does not pay.
//!
//! Owns: how it is given an outer side that was begun. Never: decides that it goes on.

use std::sync::Arc;

use datafusion::common::{JoinSide, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use crate::exchange;
use crate::join;

/// The rows of a hash join over an outer side in one partition, and an inner side that is
/// partitioned as the join wants it.
///
/// # Errors
/// If the plan cannot be built or begun.
pub(super) fn join_all(
    stock: &HashJoinExec,
    outer_side: JoinSide,
    outer: Arc<dyn ExecutionPlan>,
    inner: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let outer = match stock.partition_mode() {
        PartitionMode::Partitioned => {
            let partitions = inner.output_partitioning().partition_count();
            by_hash(outer, keys_of(stock, outer_side), partitions)?
        }
        _ => outer,
    };
    let children = match outer_side {
        JoinSide::Left => vec![outer, inner],
        _ => vec![inner, outer],
    };
    let stock = stock.builder().reset_state().recompute_properties();
    let stock = stock.with_new_children(children)?.build_exec()?;
    // A side that was begun is never known to be small.
    let joined = exchange::replace_all(join::replace(stock, 0)?.data)?;
    in_one_partition(joined).execute(0, context)
}

/// What a join compares of one of its sides.
pub(super) fn keys_of(join: &HashJoinExec, side: JoinSide) -> Vec<Arc<dyn PhysicalExpr>> {
    let keys = join.on().iter().map(|(left, right)| match side {
        JoinSide::Left => left,
        _ => right,
    });
    keys.cloned().collect()
}

/// A plan whose rows come in partitions by the hash of `keys`.
///
/// # Errors
/// If the plan cannot be built.
pub(super) fn by_hash(
    plan: Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    partitions: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let hash = Partitioning::Hash(keys, partitions);
    Ok(Arc::new(RepartitionExec::try_new(plan, hash)?))
}

/// A plan whose rows come in one partition.
pub(super) fn in_one_partition(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}
