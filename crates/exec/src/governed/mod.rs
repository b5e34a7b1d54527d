//! The last check of a plan: every operator in it keeps to the budget.
//!
//! **Owns** what is known of each operator (`operators`), and the rule [`OnlyGoverned`] that
//! refuses a plan with one that holds rows without asking for their memory, or of which nothing is
//! known. **Never** changes a plan.
//!
//! The check looks at the names of nodes when all other rules have run. Operators that another one
//! begins while it runs are those that the table says of it.

mod operators;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec};

use self::operators::Governance;
use crate::join;
use crate::whole_partitions::is_for_window;

/// The names of the operators of a plan that hold their rows in memory only, in the order of the
/// plan. They ask the memory pool, so they fail rather than exceed the budget. A hash join that
/// stayed the stock one because its left side is known to be small is none of them, nor is a cross
/// join with one row.
pub fn unspillable(plan: &Arc<dyn ExecutionPlan>) -> Vec<&'static str> {
    let mut found = Vec::new();
    collect_unspillable(plan, &mut found);
    found
}

fn collect_unspillable(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<&'static str>) {
    let is_small = plan.downcast_ref::<HashJoinExec>();
    let is_small = is_small.is_some_and(join::is_supported);
    // A window without PARTITION BY is a cross join with one row.
    let is_row = plan.is::<CrossJoinExec>() && is_for_window(plan);
    let known = match is_small || is_row {
        true => None,
        false => operators::find(plan.name()),
    };
    found.extend(
        known
            .filter(|known| known.governance == Governance::InMemory)
            .map(|known| known.name),
    );
    for child in plan.children() {
        collect_unspillable(child, found);
    }
}

/// A plan was refused for an operator that could exceed the memory budget.
///
/// It travels through DataFusion as `DataFusionError::External`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UngovernedOperator {
    /// It is known to hold rows without asking for their memory.
    #[error("{name} is not planned: it holds {holds} without asking for memory")]
    AsksNobody {
        /// Its name.
        name: String,
        /// What it holds.
        holds: &'static str,
    },
    /// Nothing is known of it.
    #[error("{name} is not planned: it is not known to keep to the memory budget")]
    Unknown {
        /// Its name.
        name: String,
    },
}

impl UngovernedOperator {
    /// The name of the operator.
    pub fn name(&self) -> &str {
        match self {
            Self::AsksNobody { name, .. } | Self::Unknown { name } => name,
        }
    }
}

/// The rule that refuses plans that could exceed the budget; it goes behind all others.
///
/// It lets pass our operators, those of DataFusion that hold some batches or ask the memory pool,
/// and those that were named to it. [`install`](crate::install) does not add it: a program's own
/// operators run without a word, as everywhere in DataFusion.
///
/// ```
/// use std::sync::Arc;
///
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::prelude::SessionContext;
/// use mayfly_exec::OnlyGoverned;
/// use mayfly_space::{Space, SpaceOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let space = Space::open(SpaceOptions { memory_bytes: 8 << 20, ..SpaceOptions::default() })?;
/// let builder = SessionStateBuilder::new().with_default_features();
/// let state = mayfly_exec::install(builder, &space)?
///     .with_physical_optimizer_rule(Arc::new(OnlyGoverned::with_operators(["MyScanExec"])))
///     .build();
/// let context = SessionContext::new_with_state(state);
///
/// let sql = "SELECT value, SUM(value) OVER (ORDER BY value) FROM range(10)";
/// assert_eq!(context.sql(sql).await?.count().await?, 10);
/// let sql = "SELECT value, COUNT(DISTINCT value) OVER () FROM range(10)";
/// let refused = context.sql(sql).await?.collect().await.unwrap_err();
/// assert!(refused.to_string().contains("WindowAggExec is not planned"));
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct OnlyGoverned {
    operators: Vec<String>,
}

impl OnlyGoverned {
    /// The name of the rule.
    pub const NAME: &'static str = "only_governed";

    /// A rule that lets operators with these names pass too: whoever names them answers for what
    /// they hold. Those of DataFusion may be among them.
    pub fn with_operators<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        let operators = names.into_iter().map(Into::into).collect();
        Self { operators }
    }

    fn check(&self, name: &str) -> std::result::Result<(), UngovernedOperator> {
        if self.operators.iter().any(|known| known == name) {
            return Ok(());
        }
        let name = || name.to_owned();
        match operators::find(&name()) {
            Some(known) if known.governance == Governance::Ungoverned => {
                Err(UngovernedOperator::AsksNobody {
                    name: name(),
                    holds: known.holds,
                })
            }
            Some(_) => Ok(()),
            None => Err(UngovernedOperator::Unknown { name: name() }),
        }
    }
}

impl PhysicalOptimizerRule for OnlyGoverned {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.apply(|node| match self.check(node.name()) {
            Ok(()) => Ok(TreeNodeRecursion::Continue),
            Err(refused) => Err(DataFusionError::External(Box::new(refused))),
        })?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}
