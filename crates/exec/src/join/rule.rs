//! Which stock joins become ours, and what becomes of the exchanges below them.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use super::operator::JoinOperator;

/// Replaces a stock hash join by ours. One that needs columns of nested types stays as it is.
///
/// # Errors
/// Where DataFusion cannot type an expression or rebuild a node.
pub fn replace(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(stock) = plan.downcast_ref::<HashJoinExec>() else {
        return Ok(Transformed::no(plan));
    };
    let left = without_exchange(stock.left());
    // Rows that must come in order do so in the partitions in which they are.
    let right = match stock.properties().output_ordering() {
        Some(_) => Arc::clone(stock.right()),
        None => {
            let right = without_exchange(stock.right());
            let partitions = stock.properties().output_partitioning().partition_count();
            spread(right, partitions)?
        }
    };
    Ok(match JoinOperator::try_from_stock(stock, left, right)? {
        Some(operator) => Transformed::yes(Arc::new(operator)),
        None => Transformed::no(plan),
    })
}

/// What an exchange by hash, or into one partition, reads. Which partition a row is in does not
/// matter to our join.
fn without_exchange(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    if let Some(exchange) = plan.downcast_ref::<RepartitionExec>()
        && matches!(exchange.partitioning(), Partitioning::Hash(..))
    {
        return without_exchange(exchange.input());
    }
    match plan.downcast_ref::<CoalescePartitionsExec>() {
        Some(exchange) if exchange.fetch().is_none() => without_exchange(exchange.input()),
        _ => Arc::clone(plan),
    }
}

/// A plan whose rows come in as many partitions as those above it expect.
fn spread(plan: Arc<dyn ExecutionPlan>, partitions: usize) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.output_partitioning().partition_count() == partitions {
        return Ok(plan);
    }
    let by_turns = Partitioning::RoundRobinBatch(partitions);
    Ok(Arc::new(RepartitionExec::try_new(plan, by_turns)?))
}
