//! The order of joins: DataFusion joins as the text says, a user expects the order not to matter.
//!
//! ```text
//!   plan --read--> graph --search--> tree --build--> plan
//!                    \--estimate          rows of parts, values of columns (crate::estimate)
//! ```
//!
//! **How.** Inner, semi and anti joins that stand upon each other are taken apart into what they
//! join and by what. Rows of each set of parts are guessed from what files and tables know, and the
//! tree that looks at the fewest rows takes the place of the written one if it promises much. Semi
//! and anti joins move too: they drop rows of one part, sooner or later.
//!
//! **Never** changes rows. A guess that is wrong costs time. Where nothing is known of the rows of
//! a part, and where all of them are few, joins stay as they are written.
//!
//! The rule runs before sides of joins are chosen: which side becomes a table is left to that.

mod build;
mod graph;
mod read;
mod search;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::{JoinType, Result};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

use self::graph::{Found, Graph};
use crate::plan_node::with_inputs;

/// An order must promise this part of the cost of the written one: guesses are rough.
const PROMISE: f64 = 0.8;

/// Chooses the order of joins by the rows that are expected.
#[derive(Debug, Default)]
pub(crate) struct OrderJoins;

impl PhysicalOptimizerRule for OrderJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match config.optimizer.join_reordering {
            true => ordered(plan),
            false => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        "order_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A plan with its joins in the order that costs least.
fn ordered(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(found) = read::joins(&plan)? else {
        return with_inputs(plan, |_, input| ordered(input));
    };
    match reordered(found)? {
        Some(plan) => Ok(plan),
        None => with_ordered_parts(plan),
    }
}

/// Joins that stay as they are, and what is made of them, over parts that are ordered by
/// themselves.
fn with_ordered_parts(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let join = plan.downcast_ref::<HashJoinExec>();
    let is_reduced = join.is_some_and(|join| *join.join_type() != JoinType::Inner);
    with_inputs(plan, |place, input| {
        let is_part = !read::begins_with_join(&input) || is_reduced && place == 1;
        match is_part {
            true => ordered(input),
            false => with_ordered_parts(input),
        }
    })
}

/// Joins in another order; `None` if that they have is good enough.
fn reordered(found: Found) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(mut graph) = Graph::of(found)? else {
        return Ok(None);
    };
    let Some(tree) = search::best(&graph) else {
        return Ok(None);
    };
    if search::cost(&tree, &graph) > PROMISE * search::cost(&graph.tree, &graph) {
        return Ok(None);
    }
    for part in &mut graph.parts {
        part.plan = ordered(Arc::clone(&part.plan))?;
    }
    build::plan(&graph, &tree).map(Some)
}
