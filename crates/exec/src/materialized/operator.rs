//! The root of a plan that has tables which are computed once.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{Result, Statistics, internal_datafusion_err};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::table::Materialized;

/// Hands on the rows of its first child. The others are the plans of tables that are computed once,
/// so that whoever looks at a plan or changes it sees each of them once.
#[derive(Debug)]
pub struct WithMaterialized {
    input: Arc<dyn ExecutionPlan>,
    tables: Vec<(Materialized, Arc<dyn ExecutionPlan>)>,
}

impl WithMaterialized {
    /// The plan of a query over tables and their plans.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        tables: Vec<(Materialized, Arc<dyn ExecutionPlan>)>,
    ) -> WithMaterialized {
        for (table, plan) in &tables {
            table.set_plan(plan);
        }
        WithMaterialized { input, tables }
    }

    /// The tables.
    pub fn tables(&self) -> impl Iterator<Item = &Materialized> {
        self.tables.iter().map(|(table, _)| table)
    }
}

impl DisplayAs for WithMaterialized {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.tables().map(Materialized::name).collect();
        write!(f, "WithMaterialized: tables=[{}]", names.join(", "))
    }
}

impl ExecutionPlan for WithMaterialized {
    crate::plan_node::without_expressions!();
    crate::plan_node::with_new_children!();

    fn name(&self) -> &'static str {
        "WithMaterialized"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        let tables = self.tables.iter().map(|(_, plan)| plan);
        std::iter::once(&self.input).chain(tables).collect()
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut children = children.into_iter();
        let input = children
            .next()
            .ok_or_else(|| internal_datafusion_err!("a plan without its query"))?;
        let tables = self.tables().cloned().zip(children).collect();
        Ok(Arc::new(WithMaterialized::new(input, tables)))
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        let tables = self.tables.iter().map(|_| false);
        std::iter::once(true).chain(tables).collect()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; 1 + self.tables.len()]
    }

    crate::plan_node::runs_input!();

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        let tables = self.tables.iter().map(|_| ChildStats::Skip);
        std::iter::once(ChildStats::At(partition))
            .chain(tables)
            .collect()
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&input_stats[0]))
    }
}
