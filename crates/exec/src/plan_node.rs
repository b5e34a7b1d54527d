//! What plan nodes of one shape have in common.
//!
//! `ExecutionPlan` asks each node how its inputs and its expressions are visited and replaced. For
//! one that has no input, for one that hands on the rows of one, and for one that stands in the
//! place of a node of DataFusion's, there is one answer.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, Statistics};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, PlanProperties};

/// `apply_expressions` of an `ExecutionPlan` that has none.
macro_rules! without_expressions {
    () => {
        fn apply_expressions(
            &self,
            _f: &mut dyn FnMut(
                &std::sync::Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> datafusion::common::Result<
                datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> datafusion::common::Result<datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}
pub(crate) use without_expressions;

/// The methods of an `ExecutionPlan` without inputs and expressions but for `execute` and what it
/// tells of itself; its `properties` are a field.
macro_rules! leaf_node {
    ($name:literal) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn properties(&self) -> &std::sync::Arc<datafusion::physical_plan::PlanProperties> {
            &self.properties
        }

        fn children(
            &self,
        ) -> Vec<&std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            Vec::new()
        }

        $crate::plan_node::without_expressions!();

        fn replace_children(
            self: std::sync::Arc<Self>,
            _children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
            _options: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> datafusion::common::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>
        {
            Ok(self)
        }

        fn with_new_children(
            self: std::sync::Arc<Self>,
            _children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
        ) -> datafusion::common::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>
        {
            Ok(self)
        }
    };
}
pub(crate) use leaf_node;

/// The same of a leaf that stands for another one, and never runs: what it would say.
macro_rules! leaf_that_never_runs {
    ($name:literal, $error:literal) => {
        $crate::plan_node::leaf_node!($name);

        fn execute(
            &self,
            _partition: usize,
            _context: std::sync::Arc<datafusion::execution::TaskContext>,
        ) -> datafusion::common::Result<datafusion::execution::SendableRecordBatchStream> {
            datafusion::common::internal_err!($error)
        }
    };
}
pub(crate) use leaf_that_never_runs;

/// The properties of a leaf whose rows come in no order.
pub(crate) fn leaf_properties(schema: SchemaRef, partitions: usize) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

/// What is known of a node's rows if it is no more than their number.
pub(crate) fn row_statistics(
    node: &dyn ExecutionPlan,
    rows: Precision<usize>,
) -> Result<Arc<Statistics>> {
    let statistics = Statistics::new_unknown(&node.schema());
    Ok(Arc::new(statistics.with_num_rows(rows)))
}

/// The rows of a plan, as far as its statistics know.
pub fn known_rows(plan: &dyn ExecutionPlan) -> Precision<usize> {
    let statistics = StatisticsContext::new().compute(plan, &StatisticsArgs::new());
    statistics.map_or(Precision::Absent, |found| found.num_rows)
}

/// A node of one input over another one.
pub(crate) fn over_input(
    node: &Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(node).replace_children(vec![input], options)
}

/// A plan with other inputs, each made of the one at its place.
pub(crate) fn with_inputs(
    plan: Arc<dyn ExecutionPlan>,
    other: impl Fn(usize, Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut inputs = 0..;
    let exchange = |input: Arc<dyn ExecutionPlan>| {
        let place = inputs.next().unwrap_or_default();
        let plan = other(place, Arc::clone(&input))?;
        Ok(match Arc::ptr_eq(&plan, &input) {
            true => Transformed::no(plan),
            false => Transformed::yes(plan),
        })
    };
    plan.map_children(exchange).data()
}

/// A column of a plan, by the name that it has there.
pub(crate) fn column_of(plan: &dyn ExecutionPlan, place: usize) -> ProjectionExpr {
    let schema = plan.schema();
    let name = schema.field(place).name();
    ProjectionExpr {
        expr: Arc::new(Column::new(name, place)),
        alias: name.clone(),
    }
}

/// The input of a projection that computes nothing, and which of its columns it chooses.
pub(crate) fn chosen_columns(
    projection: &ProjectionExec,
) -> Option<(&Arc<dyn ExecutionPlan>, Vec<usize>)> {
    let column = |chosen: &ProjectionExpr| chosen.expr.downcast_ref::<Column>().map(Column::index);
    let columns = projection.expr().iter().map(column);
    Some((projection.input(), columns.collect::<Option<_>>()?))
}

/// The stream of a node's batches, each made when it is asked for.
pub(crate) fn stream_of(
    node: &dyn ExecutionPlan,
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
) -> SendableRecordBatchStream {
    let batches = futures::stream::iter(batches);
    Box::pin(RecordBatchStreamAdapter::new(node.schema(), batches))
}

/// `with_new_children` of an `ExecutionPlan`: replaces them and knows nothing of their properties.
macro_rules! with_new_children {
    () => {
        fn with_new_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
        ) -> datafusion::common::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>
        {
            use datafusion::physical_plan::execution_plan::{
                ChildrenPropertiesMode, ReplaceChildrenOptions,
            };
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            self.replace_children(children, options)
        }
    };
}
pub(crate) use with_new_children;

/// The methods of an `ExecutionPlan` without expressions over its field `input`: its name, its
/// input, and how it is replaced. The node's own method
/// `with_input(&self, input, &ReplaceChildrenOptions) -> Result<Self>` makes it anew.
macro_rules! node_over_input {
    ($name:literal) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn children(
            &self,
        ) -> Vec<&std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.input]
        }

        $crate::plan_node::without_expressions!();

        fn replace_children(
            self: std::sync::Arc<Self>,
            mut children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
            options: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> datafusion::common::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>
        {
            let input = children.pop().ok_or_else(|| {
                datafusion::common::internal_datafusion_err!("{} has one input", $name)
            })?;
            Ok(std::sync::Arc::new(self.with_input(input, &options)?))
        }

        $crate::plan_node::with_new_children!();
    };
}
pub(crate) use node_over_input;

/// The methods of [`node_over_input`], for a node whose properties are those of its input: it hands
/// on its rows.
macro_rules! pass_through_node {
    ($name:literal) => {
        fn properties(&self) -> &std::sync::Arc<datafusion::physical_plan::PlanProperties> {
            self.input.properties()
        }

        $crate::plan_node::node_over_input!($name);
    };
}
pub(crate) use pass_through_node;

/// `execute` of an `ExecutionPlan` that hands on the rows of its field `input` as they are.
macro_rules! runs_input {
    () => {
        fn execute(
            &self,
            partition: usize,
            context: std::sync::Arc<datafusion::execution::TaskContext>,
        ) -> datafusion::common::Result<datafusion::execution::SendableRecordBatchStream> {
            self.input.execute(partition, context)
        }
    };
}
pub(crate) use runs_input;

/// What an `ExecutionPlan` tells of its rows that are, each of them, those of its input.
macro_rules! same_rows {
    () => {
        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }

        fn child_stats_requests(
            &self,
            partition: Option<usize>,
        ) -> Vec<datafusion::physical_plan::statistics::ChildStats> {
            vec![datafusion::physical_plan::statistics::ChildStats::At(
                partition,
            )]
        }

        fn statistics_from_inputs(
            &self,
            input_stats: &[std::sync::Arc<datafusion::common::Statistics>],
            _args: &datafusion::physical_plan::statistics::StatisticsArgs,
        ) -> datafusion::common::Result<std::sync::Arc<datafusion::common::Statistics>> {
            Ok(std::sync::Arc::clone(&input_stats[0]))
        }

        fn supports_limit_pushdown(&self) -> bool {
            true
        }

        fn cardinality_effect(
            &self,
        ) -> datafusion::physical_plan::execution_plan::CardinalityEffect {
            datafusion::physical_plan::execution_plan::CardinalityEffect::Equal
        }
    };
}
pub(crate) use same_rows;

/// What a node answers as the node of DataFusion's does that it stands for, its field `stock`:
/// nearly all that plans ask, but for how it is made anew. Its `metrics` are a field.
macro_rules! stock_answers {
    ($name:literal) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn properties(&self) -> &std::sync::Arc<datafusion::physical_plan::PlanProperties> {
            self.stock.properties()
        }

        fn input_distribution_requirements(
            &self,
        ) -> datafusion::physical_plan::InputDistributionRequirements {
            self.stock.input_distribution_requirements()
        }

        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            self.stock.benefits_from_input_partitioning()
        }

        fn children(&self) -> Vec<&std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            self.stock.children()
        }

        fn apply_expressions(
            &self,
            f: &mut dyn FnMut(
                &std::sync::Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> datafusion::common::Result<
                datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> datafusion::common::Result<datafusion::common::tree_node::TreeNodeRecursion> {
            self.stock.apply_expressions(f)
        }

        $crate::plan_node::with_new_children!();

        fn metrics(&self) -> Option<datafusion::physical_plan::metrics::MetricsSet> {
            Some(self.metrics.clone_inner())
        }

        fn child_stats_requests(
            &self,
            partition: Option<usize>,
        ) -> Vec<datafusion::physical_plan::statistics::ChildStats> {
            self.stock.child_stats_requests(partition)
        }

        fn statistics_from_inputs(
            &self,
            input_stats: &[std::sync::Arc<datafusion::common::Statistics>],
            args: &datafusion::physical_plan::statistics::StatisticsArgs,
        ) -> datafusion::common::Result<std::sync::Arc<datafusion::common::Statistics>> {
            self.stock.statistics_from_inputs(input_stats, args)
        }

        fn fetch(&self) -> Option<usize> {
            self.stock.fetch()
        }

        fn cardinality_effect(
            &self,
        ) -> datafusion::physical_plan::execution_plan::CardinalityEffect {
            self.stock.cardinality_effect()
        }
    };
}
pub(crate) use stock_answers;

/// The same, and a node that is made anew by its own `try_from_stock(&stock) ->
/// Result<Option<Self>>`; where that gives none, the stock node stays.
macro_rules! stock_node {
    ($name:literal, $stock:ty) => {
        $crate::plan_node::stock_answers!($name);

        fn replace_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
            options: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> datafusion::common::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>
        {
            let stock = std::sync::Arc::new(self.stock.clone());
            let stock = stock.replace_children(children, options)?;
            $crate::plan_node::ours_or_stock::<$stock, _>(stock, Self::try_from_stock)
        }

        fn reset_state(
            self: std::sync::Arc<Self>,
        ) -> datafusion::common::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>
        {
            let stock = std::sync::Arc::new(self.stock.clone()).reset_state()?;
            $crate::plan_node::ours_or_stock::<$stock, _>(stock, Self::try_from_stock)
        }
    };
}
pub(crate) use stock_node;

/// The node of ours that stands for a stock node, or the stock node where there is none.
pub(crate) fn ours_or_stock<S: ExecutionPlan, O: ExecutionPlan>(
    stock: Arc<dyn ExecutionPlan>,
    try_from_stock: impl FnOnce(&S) -> Result<Option<O>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let ours = match stock.downcast_ref::<S>() {
        Some(stock) => try_from_stock(stock)?,
        None => None,
    };
    Ok(match ours {
        Some(ours) => Arc::new(ours),
        None => stock,
    })
}
