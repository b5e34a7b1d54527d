//! Exchanges: rows move from the partitions of an input to those that the plan above asks for.
//!
//! ```text
//!   input 0 --- deals --->  queue 0: | pages | batch | batch |  ---> output 0
//!   input 1 --- deals --->  queue 1: | batch |                  ---> output 1
//! ```
//!
//! The stock exchange keeps what nobody has taken yet in memory, and writes it to files when that
//! is refused. Both fail where memory is short: what it holds starves those who are to take it, and
//! its writers, each of which appends to another file, wait for a reader that waits for the file of
//! one of them. Here a queue has one order, and its rows lie in pages where memory is short.
//!
//! `queue` holds the rows of an output, `queues` those of all and what holds inputs back, `run` the
//! tasks that fill queues and the streams that empty them, `operator` the plan node.

mod operator;
mod queue;
mod queues;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::repartition::RepartitionExec;

pub use operator::ExchangeOperator;

/// Puts ours in the place of all stock exchanges of a plan, but for those that merge.
///
/// # Errors
/// Where DataFusion cannot rebuild a node.
pub(crate) fn replace_all(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let stock = node.downcast_ref::<RepartitionExec>();
        Ok(match stock.and_then(ExchangeOperator::of_stock) {
            Some(ours) => Transformed::yes(Arc::new(ours) as Arc<dyn ExecutionPlan>),
            None => Transformed::no(node),
        })
    })
    .data()
}

/// Whether a node is an exchange, ours or the stock one.
pub(crate) fn is_exchange(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<RepartitionExec>() || plan.is::<ExchangeOperator>()
}

/// What an exchange reads, ours or the stock one; `None` for any other node.
pub(crate) fn input_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    let stock = plan.downcast_ref::<RepartitionExec>();
    let ours = || plan.downcast_ref::<ExchangeOperator>();
    stock
        .map(RepartitionExec::input)
        .or_else(|| ours().map(ExchangeOperator::input))
}
