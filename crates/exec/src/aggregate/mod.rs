//! GROUP BY, DISTINCT and UNION: one operator in the place of partial aggregate, exchange and final
//! aggregate.
//!
//! ```text
//!  stock:  Final <- Repartition <- Partial <- input       ours:  Aggregate <- input
//! ```
//!
//! **How.** Every input partition is read by a task that fills one [`GroupSet`]; its radix
//! partitions are the exchange. When all input is in, each output partition reads radix
//! partitions until none is left. Aggregates whose state fits a row (`recipe`) are merged there;
//! where one of them does not, the set keeps the arguments of every row and `accumulate` runs
//! DataFusion's vectorised accumulators over one partition at a time. Either way the same pages
//! hold the rows in memory and on disk. Without GROUP BY, and with DISTINCT, the set holds the
//! distinct values alone (`whole`).
//!
//! **Never** holds a page guard across an await; never sorts.
//!
//! [`GroupSet`]: mayfly_table::rows::GroupSet

mod accumulate;
mod distinct;
mod distribution;
mod finish;
mod functions;
mod operator;
mod recent;
mod recipe;
mod run;
mod whole;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::InputOrderMode;
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateInputMode, AggregateOutputMode,
};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;

pub use distribution::repair_distribution;
pub use operator::AggregateOperator;

/// Groups up to which a stock aggregate with a limit keeps all it needs in little memory.
const STOCK_LIMIT_MAX: usize = 10_000;

/// Replaces a stock aggregate, together with the partial one below it, by ours.
///
/// Left as they are: aggregates without groups (one row of state) unless one is DISTINCT, those
/// whose input is sorted by the keys (they stream), those with a small limit, and keys of nested or
/// dictionary types.
///
/// # Errors
/// Where DataFusion cannot rebuild the node's properties.
pub fn replace(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(last) = plan.downcast_ref::<AggregateExec>() else {
        return Ok(Transformed::no(plan));
    };
    if last.mode().output_mode() != AggregateOutputMode::Final || !can_replace(last) {
        return Ok(Transformed::no(plan));
    }
    let first = match last.mode().input_mode() {
        AggregateInputMode::Raw => Some(last),
        AggregateInputMode::Partial => partial_below(last.input()),
    };
    let Some(first) = first.filter(|first| can_replace(first)) else {
        return Ok(Transformed::no(plan));
    };
    match AggregateOperator::try_new(first, last)? {
        Some(operator) => Ok(Transformed::yes(Arc::new(operator))),
        None => Ok(Transformed::no(plan)),
    }
}

fn can_replace(aggregate: &AggregateExec) -> bool {
    let one_group = aggregate.group_expr().is_true_no_grouping();
    let distinct = || aggregate.aggr_expr().iter().any(|a| functions::is_ours(a));
    (!one_group || distinct())
        && *aggregate.input_order_mode() == InputOrderMode::Linear
        && aggregate
            .required_input_ordering()
            .iter()
            .all(Option::is_none)
        && aggregate
            .limit_options()
            .is_none_or(|limit| limit.limit() > STOCK_LIMIT_MAX)
}

/// The partial aggregate under an exchange.
fn partial_below(plan: &Arc<dyn ExecutionPlan>) -> Option<&AggregateExec> {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let is_partial = aggregate.mode().input_mode() == AggregateInputMode::Raw
            && aggregate.mode().output_mode() == AggregateOutputMode::Partial;
        return is_partial.then_some(aggregate);
    }
    if plan.downcast_ref::<RepartitionExec>().is_some()
        || plan.downcast_ref::<CoalescePartitionsExec>().is_some()
    {
        return partial_below(plan.children().first()?);
    }
    None
}
