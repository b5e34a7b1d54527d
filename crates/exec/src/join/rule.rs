//! Which stock joins become ours, and what becomes of the exchanges below them.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use super::operator::JoinOperator;
use super::spec::Spec;
use crate::by_key::LateScan;
use crate::exchange;
use crate::plan_node::known_rows;
use crate::table_scan::TableScan;

/// A left side that is known to take at most this part of the budget stays with the stock join, as
/// it would when it runs.
const SMALL_PER_MEMORY: u64 = 8;

/// What a row takes in a stock join beside its columns.
const ROW_BYTES: u64 = 24;
/// What a value without a length of its own type is taken for, where its table does not tell more.
const VALUE_BYTES: u64 = 1 << 10;

/// Replaces a stock hash join by ours. Two kinds stay as they are: those that need columns of
/// nested types, and those whose left side is known to be small beside a budget of `memory_bytes`.
/// Ours would choose the stock join for such a side, too; but plans over few rows that run again
/// and again know the stock node, and need neither tasks nor streams for it.
///
/// # Errors
/// Where DataFusion cannot type an expression or rebuild a node.
pub fn replace(
    plan: Arc<dyn ExecutionPlan>,
    memory_bytes: u64,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(stock) = plan.downcast_ref::<HashJoinExec>() else {
        return Ok(Transformed::no(plan));
    };
    let left_bytes = bytes_at_most(stock.left());
    if left_bytes.is_some_and(|bytes| bytes < memory_bytes / SMALL_PER_MEMORY) {
        return Ok(Transformed::no(plan));
    }
    Ok(match ours(stock)? {
        Some(operator) => Transformed::yes(Arc::new(operator)),
        None => Transformed::no(plan),
    })
}

/// Our join in the place of a stock one, whatever its left side takes; `None` where rows cannot
/// hold what it needs.
///
/// # Errors
/// As [`replace`].
pub(crate) fn ours(stock: &HashJoinExec) -> Result<Option<JoinOperator>> {
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
    JoinOperator::try_from_stock(stock, left, right)
}

/// Whether a stock join that stayed as it is could be ours: its left side is small then.
pub(crate) fn is_supported(stock: &HashJoinExec) -> bool {
    matches!(Spec::try_from_stock(stock), Ok(Some(_)))
}

/// What a stock join needs for a side at most, about; `None` where it is not known.
fn bytes_at_most(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let (rows, leaf) = rows_at_most(plan)?;
    let schema = plan.schema();
    let widths = schema.fields().iter();
    let widths: Vec<_> = { widths.map(|field| field.data_type().primitive_width()) }.collect();
    let fixed: usize = widths.iter().flatten().sum();
    let long_values = widths.iter().filter(|width| width.is_none()).count() as u64;
    // Texts of a table are no longer than all that it has, and there is a copy of them.
    let late = leaf.downcast_ref::<LateScan>().map(LateScan::scan);
    let long_bytes = match late.or(leaf.downcast_ref::<TableScan>()) {
        Some(scan) => 2 * long_values.min(1) * scan.bytes(),
        None => rows.saturating_mul(long_values * VALUE_BYTES),
    };
    let fixed_bytes = rows.saturating_mul(ROW_BYTES + fixed as u64);
    Some(fixed_bytes.saturating_add(long_bytes))
}

/// The rows of a plan at most: those of the table that it reads, where no node makes more of them.
/// With the node that reads it.
fn rows_at_most(plan: &Arc<dyn ExecutionPlan>) -> Option<(u64, &Arc<dyn ExecutionPlan>)> {
    match plan.children().as_slice() {
        [] => known_rows(plan.as_ref())
            .get_value()
            .map(|rows| (*rows as u64, plan)),
        [input] => match plan.cardinality_effect() {
            CardinalityEffect::Equal | CardinalityEffect::LowerEqual => rows_at_most(input),
            _ => None,
        },
        _ => None,
    }
}

/// What an exchange by hash, or into one partition, reads. Which partition a row is in does not
/// matter to our join.
fn without_exchange(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    if let Some(input) = exchange::input_of(plan)
        && matches!(plan.output_partitioning(), Partitioning::Hash(..))
    {
        return without_exchange(input);
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
