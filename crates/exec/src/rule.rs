//! The physical optimizer rule that puts our operators in the place of the stock ones.
//!
//! Owns: [`SwapOperators`], and which temporary tables a plan makes. Never: changes what a plan
//! computes.
//!
//! The rule runs after all stock rules. They look for stock nodes by their concrete types, and
//! each stock node that they leave is a finished specification for one of ours.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;

use crate::aggregate::{self, AggregateOperator};
use crate::apply::ApplyOperator;
use crate::by_key;
use crate::exchange;
use crate::filter;
use crate::join;
use crate::kept_rows;
use crate::long_rows;
use crate::materialized::WithMaterialized;
use crate::nested_loop;
use crate::paced;
use crate::parquet_reads;
use crate::recursion::{self, RecursionOperator};
use crate::report::Why;
use crate::sideways;
use crate::sort::{MergeOperator, SortOperator};
use crate::window::WindowOperator;

/// Replaces sorts, aggregates, exchanges and hash joins by operators over the temp space, and joins
/// and sorts that a key answers by lookups.
#[derive(Debug, Default)]
pub struct SwapOperators {
    memory_bytes: u64,
}

impl SwapOperators {
    /// The name of the rule.
    pub const NAME: &str = "swap_operators";

    /// The rule for plans that run in a budget.
    pub fn for_budget(memory_bytes: u64) -> SwapOperators {
        SwapOperators { memory_bytes }
    }
}

impl PhysicalOptimizerRule for SwapOperators {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = filter::in_joins(plan)?;
        // From the root to the leaves: an aggregate takes the partial one below it along.
        let replace = |node| replace(node, self.memory_bytes);
        let plan = plan.transform_down(replace).data()?;
        // Behind all that answers by key, and before exchanges are put where rows need them.
        let plan = sideways::drop_early(plan)?;
        let plan = aggregate::repair_distribution(plan)?;
        let plan = kept_rows::copy_kept(plan)?;
        let plan = long_rows::shorten_batches(plan, config)?;
        let plan = filter::replace_all(plan)?;
        let plan = exchange::replace_all(plan)?;
        let plan = paced::pace_joins(plan)?;
        parquet_reads::grant(plan)
    }

    fn name(&self) -> &str {
        SwapOperators::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn replace(
    plan: Arc<dyn ExecutionPlan>,
    memory_bytes: u64,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let plan = by_key::replace(plan)?;
    if plan.transformed {
        return Ok(plan);
    }
    let plan = join::replace(plan.data, memory_bytes)?;
    if plan.transformed {
        return Ok(plan);
    }
    let plan = nested_loop::replace(plan.data)?;
    if plan.transformed {
        return Ok(plan);
    }
    let plan = recursion::replace(plan.data)?;
    if plan.transformed {
        return Ok(plan);
    }
    let plan = plan.data;
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        return Ok(match SortOperator::try_from_stock(sort)? {
            Some(operator) => Transformed::yes(Arc::new(operator)),
            None => Transformed::no(plan),
        });
    }
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        return Ok(match MergeOperator::try_from_stock(merge)? {
            Some(operator) => Transformed::yes(Arc::new(operator)),
            None => Transformed::no(plan),
        });
    }
    if let Some(window) = WindowOperator::try_from_plan(&plan)? {
        return Ok(Transformed::yes(Arc::new(window)));
    }
    aggregate::replace(plan)
}

/// A temporary table that a plan will make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedTempTable {
    /// Its identity in the report.
    pub id: u64,
    /// Why it exists.
    pub why: Why,
}

/// The temporary tables that a plan will make, in the order of the plan.
pub fn planned_temp_tables(plan: &Arc<dyn ExecutionPlan>) -> Vec<PlannedTempTable> {
    let mut found = Vec::new();
    visit(plan, &mut |node| found.extend(temp_tables_of(node)));
    found
}

/// The temporary tables that a node of a plan will make, without those of the nodes below it.
pub fn temp_tables_of(node: &Arc<dyn ExecutionPlan>) -> Vec<PlannedTempTable> {
    let one = |id, why| vec![PlannedTempTable { id, why }];
    if let Some(sort) = node.downcast_ref::<SortOperator>() {
        return one(sort.temp_table_id(), sort.why());
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateOperator>() {
        return one(aggregate.id(), aggregate.why());
    }
    if let Some(window) = node.downcast_ref::<WindowOperator>() {
        return match window.keeps_partitions() {
            true => one(window.temp_table_id(), Why::Window),
            false => Vec::new(),
        };
    }
    if let Some(recursion) = node.downcast_ref::<RecursionOperator>() {
        return one(recursion.id(), Why::Recursion);
    }
    let with = node.downcast_ref::<WithMaterialized>();
    let tables = with.into_iter().flat_map(WithMaterialized::tables);
    let planned = tables.map(|table| PlannedTempTable {
        id: table.id(),
        why: Why::Derived,
    });
    planned.collect()
}

fn visit(plan: &Arc<dyn ExecutionPlan>, see: &mut dyn FnMut(&Arc<dyn ExecutionPlan>)) {
    see(plan);
    for child in plan.children() {
        visit(child, see);
    }
    if let Some(apply) = plan.downcast_ref::<ApplyOperator>() {
        visit(apply.subquery(), see);
    }
}
