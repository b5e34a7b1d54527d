//! Stacks of windows, of whose columns nobody needs statistics.
//!
//! DataFusion asks at each node whether its input has many rows, and each time computes what is
//! known of all columns of all nodes below. Windows stand above one another, one for each order,
//! and each has a column more: for a select list of a thousand windows that is the cube of a
//! thousand.
//!
//! Owns: [`EnsureByRows`], the rule that asks, with [`OnlyRows`] put between windows as long as it
//! runs. Never: changes a plan; what the rule looks at is the number of rows, which is told.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, Statistics};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{
    ReplaceChildrenOptions, replace_children_if_necessary,
};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use crate::plan_node::{known_rows, over_input, row_statistics};

/// Windows of a stack that are asked for statistics together.
const WINDOWS_MAX: usize = 8;

/// The stock rule that hands rows out to tasks and sorts them.
#[derive(Debug)]
pub(crate) struct EnsureByRows(pub(crate) Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl EnsureByRows {
    /// The name of the stock rule.
    pub(crate) const STOCK: &'static str = "EnsureRequirements";
}

impl PhysicalOptimizerRule for EnsureByRows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (plan, windows) = divided(plan)?;
        let plan = self.0.optimize(plan, config)?;
        match windows < WINDOWS_MAX {
            true => Ok(plan),
            false => plan.transform_up(without).data(),
        }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// A plan with an [`OnlyRows`] above so many of its windows each, and how many windows are above
/// one another in it.
fn divided(plan: Arc<dyn ExecutionPlan>) -> Result<(Arc<dyn ExecutionPlan>, usize)> {
    // Down to the leaves without recursion where there is one input: a stack may be high.
    let mut nodes = Vec::new();
    let mut below = plan;
    while let Some(input) = only_input(&below) {
        nodes.push(std::mem::replace(&mut below, input));
    }
    let mut windows = 0;
    let mut inputs = Vec::new();
    for input in below.children() {
        let (input, found) = divided(Arc::clone(input))?;
        windows = windows.max(found);
        inputs.push(input);
    }
    let mut plan = replace_children_if_necessary(below, inputs)?;
    for node in nodes.into_iter().rev() {
        let is_window = node.is::<BoundedWindowAggExec>() || node.is::<WindowAggExec>();
        if is_window && windows > 0 && windows.is_multiple_of(WINDOWS_MAX) {
            let rows = known_rows(plan.as_ref());
            plan = Arc::new(OnlyRows { input: plan, rows });
        }
        windows += usize::from(is_window);
        plan = match Arc::ptr_eq(&plan, node.children()[0]) {
            true => node,
            false => over_input(&node, plan)?,
        };
    }
    Ok((plan, windows))
}

fn only_input(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    match plan.children().as_slice() {
        [input] => Some(Arc::clone(input)),
        _ => None,
    }
}

fn without(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    Ok(match plan.downcast_ref::<OnlyRows>() {
        Some(told) => Transformed::yes(Arc::clone(&told.input)),
        None => Transformed::no(plan),
    })
}

/// The rows of its input, of which only their number is known.
#[derive(Debug)]
struct OnlyRows {
    input: Arc<dyn ExecutionPlan>,
    rows: Precision<usize>,
}

impl OnlyRows {
    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _options: &ReplaceChildrenOptions,
    ) -> Result<Self> {
        Ok(Self {
            input,
            rows: self.rows,
        })
    }
}

impl DisplayAs for OnlyRows {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnlyRows")
    }
}

impl ExecutionPlan for OnlyRows {
    crate::plan_node::pass_through_node!("OnlyRows");
    crate::plan_node::runs_input!();

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn child_stats_requests(&self, _partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::Skip]
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        row_statistics(self, self.rows)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::physical_plan::displayable;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;
    use crate::tests::count_nodes;

    fn shown(plan: &Arc<dyn ExecutionPlan>) -> String {
        displayable(plan.as_ref()).indent(false).to_string()
    }

    /// A plan of so many windows in orders of their own, as the stock rules make it.
    async fn windows(count: usize) -> Arc<dyn ExecutionPlan> {
        let config = SessionConfig::new().with_target_partitions(2);
        let context = SessionContext::new_with_config(config);
        let list: Vec<String> = (0..count)
            .map(|key| format!("SUM(value) OVER (PARTITION BY value % 3 ORDER BY value + {key})"))
            .collect();
        let sql = format!("SELECT value, {} FROM range(9)", list.join(", "));
        let plan = context.sql(&sql).await.unwrap();
        plan.create_physical_plan().await.unwrap()
    }

    #[tokio::test]
    async fn statistics_are_asked_of_few_windows_at_a_time() {
        for (count, expected) in [(1, 0), (8, 0), (9, 1), (40, 4)] {
            let plan = windows(count).await;
            let before = shown(&plan);
            let (divided, found) = divided(Arc::clone(&plan)).unwrap();
            assert_eq!(found, count);
            let told = count_nodes(&divided, |node| node.is::<OnlyRows>());
            assert_eq!(told, expected, "{count}");
            assert_eq!(known_rows(divided.as_ref()), known_rows(plan.as_ref()));
            let again = divided.transform_up(without).data().unwrap();
            assert_eq!(shown(&again), before, "{count}");
        }
    }

    /// The plan of the rule is that of the stock one, which is there already.
    #[tokio::test]
    async fn what_the_rule_makes_is_the_same() {
        use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
        for count in [3, 20] {
            let plan = windows(count).await;
            let config = ConfigOptions::default();
            let stock: Arc<dyn PhysicalOptimizerRule + Send + Sync> =
                Arc::new(EnsureRequirements::new());
            let expected = stock.optimize(Arc::clone(&plan), &config).unwrap();
            let found = EnsureByRows(stock).optimize(plan, &config).unwrap();
            assert_eq!(shown(&found), shown(&expected), "{count}");
        }
    }
}
