//! Puts back the exchange that some parents need.
//!
//! The stock final aggregate leaves its groups hash partitioned, and parents may have relied on it.
//! Ours does not promise which partition a group comes from, so an exchange goes between where a
//! parent asks for one: the few result rows travel, not the input.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::Distribution;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

/// Inserts an exchange wherever a node's input is not distributed as it requires.
///
/// # Errors
/// Where DataFusion cannot rebuild a node.
pub fn repair_distribution(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let repaired = plan.transform_up(|node| {
        let requirements = node.input_distribution_requirements().into_per_child();
        let mut changed = false;
        let mut children = Vec::with_capacity(requirements.len());
        for (child, required) in node.children().into_iter().zip(requirements) {
            let partitions = child.output_partitioning().partition_count();
            let keys = match required {
                Distribution::KeyPartitioned(keys) => keys,
                _ => Vec::new(),
            };
            let is_ours = matches!(
                child.output_partitioning(),
                Partitioning::UnknownPartitioning(_)
            );
            if partitions > 1 && !keys.is_empty() && is_ours {
                let exchange = RepartitionExec::try_new(
                    Arc::clone(child),
                    Partitioning::Hash(keys, partitions),
                )?;
                // Where rows come sorted, a window or a sort that was left out above counts on it.
                let exchange = exchange.with_preserve_order();
                children.push(Arc::new(exchange) as Arc<dyn ExecutionPlan>);
                changed = true;
            } else {
                children.push(Arc::clone(child));
            }
        }
        if !changed {
            return Ok(Transformed::no(node));
        }
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        Ok(Transformed::yes(node.replace_children(children, options)?))
    })?;
    Ok(repaired.data)
}
