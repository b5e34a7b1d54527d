//! The plan node of an aggregate.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, plan_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Volatility;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::aggregates::{
    AggregateExec, PhysicalGroupBy, aggregate_expressions,
};
use datafusion::physical_plan::execution_plan::{
    Boundedness, CardinalityEffect, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, apply_expression_roots,
};
use mayfly_table::rows::RowLayout;

use super::functions::Functions;
use super::recipe::InlineRecipe;
use super::run::Run;
use super::whole;
use crate::report::{Why, next_temp_table_id};
use crate::shared_run::SharedRun;

/// How the aggregates of a node are computed.
#[derive(Debug, Clone)]
pub(super) enum Recipe {
    /// All have states in the row.
    Inline(InlineRecipe),
    /// Arguments of every row are kept for accumulators.
    Kept(Functions),
    /// All rows are one group, of which distinct values are kept.
    Whole(Functions),
}

/// GROUP BY in one node, from raw input rows to result rows.
///
/// Output partitions are as many as the stock node had and hold groups in no order; which group
/// comes from which partition is not promised.
pub struct AggregateOperator {
    pub(super) id: u64,
    pub(super) why: Why,
    pub(super) group_by: Arc<PhysicalGroupBy>,
    pub(super) recipe: Recipe,
    pub(super) input: Arc<dyn ExecutionPlan>,
    pub(super) schema: SchemaRef,
    /// The stock nodes that this one stands for.
    first: Arc<AggregateExec>,
    properties: Arc<PlanProperties>,
    pub(super) metrics: ExecutionPlanMetricsSet,
    /// The execution under way and how many of its outputs are handed out.
    run: SharedRun<Run>,
}

impl AggregateOperator {
    /// The operator for a stock aggregate: `first` reads the input, `last` names the result. They
    /// are one node where the stock plan has one. `None` where a key cannot be held in a row.
    ///
    /// # Errors
    /// Where DataFusion cannot type an expression.
    pub fn try_new(first: &AggregateExec, last: &AggregateExec) -> Result<Option<Self>> {
        let partitions = last.properties().output_partitioning().partition_count();
        Self::build(first, last.schema(), partitions, next_temp_table_id())
    }

    fn build(
        first: &AggregateExec,
        schema: SchemaRef,
        partitions: usize,
        id: u64,
    ) -> Result<Option<Self>> {
        let input = Arc::clone(first.input());
        let input_schema = input.schema();
        let group_schema = first.group_expr().group_schema(&input_schema)?;
        if !group_schema
            .fields()
            .iter()
            .all(|f| RowLayout::supports(f.data_type()))
        {
            return Ok(None);
        }
        let inline = InlineRecipe::try_new(first.aggr_expr(), first.filter_expr(), &input_schema)?;
        let whole = first.group_expr().is_true_no_grouping();
        if whole && partitions != 1 {
            return Ok(None);
        }
        let recipe = match inline {
            Some(recipe) => Recipe::Inline(recipe),
            None => {
                let arguments = aggregate_expressions(first.aggr_expr(), first.mode(), 0)?;
                match Functions::try_new(first, arguments, &input_schema)? {
                    Some(functions) if whole => Recipe::Whole(functions),
                    Some(functions) => Recipe::Kept(functions),
                    None => return Ok(None),
                }
            }
        };
        let why = match (first.aggr_expr().is_empty(), input_is_union(&input)) {
            (true, true) => Why::Union,
            (true, false) => Why::Distinct,
            (false, _) if whole => Why::Distinct,
            (false, _) => Why::GroupBy,
        };
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Final,
            Boundedness::Bounded,
        ));
        Ok(Some(Self {
            id,
            why,
            group_by: Arc::new(first.group_expr().clone()),
            recipe,
            input,
            schema,
            first: Arc::new(first.clone()),
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
            run: SharedRun::new(),
        }))
    }

    /// Identity of its temporary table in the statement's report.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Why its temporary table exists.
    pub fn why(&self) -> Why {
        self.why
    }

    /// What rows are grouped by.
    pub(crate) fn group_by(&self) -> &PhysicalGroupBy {
        &self.group_by
    }

    /// What it reads.
    pub(crate) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// Whether a function of it may give something else for the same rows.
    pub(crate) fn has_volatile_function(&self) -> bool {
        let mut functions = self.first.aggr_expr().iter();
        functions.any(|it| it.fun().signature().volatility == Volatility::Volatile)
    }

    pub(super) fn input_partitions(&self) -> usize {
        self.input.output_partitioning().partition_count()
    }

    pub(super) fn output_partitions(&self) -> usize {
        self.properties.output_partitioning().partition_count()
    }

    /// The run that all output partitions of one execution share; the first one starts it.
    fn shared_run(&self, context: &Arc<TaskContext>) -> Result<Arc<Run>> {
        let start = || Run::start(self, context);
        self.run.share(self.output_partitions(), start)
    }
}

/// Whether rows come from a UNION, through nodes that keep them.
fn input_is_union(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<UnionExec>().is_some()
        || (plan.children().len() == 1
            && plan.name() != "AggregateOperator"
            && matches!(plan.cardinality_effect(), CardinalityEffect::Equal)
            && input_is_union(plan.children()[0]))
}

impl fmt::Debug for AggregateOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AggregateOperator")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for AggregateOperator {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&str> = self
            .group_by
            .expr()
            .iter()
            .map(|(_, name)| name.as_str())
            .collect();
        let functions: Vec<&str> = self.first.aggr_expr().iter().map(|a| a.name()).collect();
        let how = match self.recipe {
            Recipe::Inline(_) => "inline",
            Recipe::Kept(_) => "kept rows",
            Recipe::Whole(_) => "distinct values",
        };
        write!(
            f,
            "AggregateOperator: why={}, gby=[{}], aggr=[{}], states={how}",
            self.why.text(),
            keys.join(", "),
            functions.join(", "),
        )
    }
}

impl ExecutionPlan for AggregateOperator {
    fn name(&self) -> &str {
        "AggregateOperator"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(child) = children.pop().filter(|_| children.is_empty()) else {
            return plan_err!("AggregateOperator has one child");
        };
        let first = AggregateExec::try_new(
            *self.first.mode(),
            Arc::new(self.first.group_expr().clone()),
            self.first.aggr_expr().to_vec(),
            self.first.filter_expr().to_vec(),
            child,
            self.first.input_schema(),
        )?;
        let partitions = self.output_partitions();
        match Self::build(&first, Arc::clone(&self.schema), partitions, self.id)? {
            // What it is for does not change with what stands below it.
            Some(operator) => Ok(Arc::new(Self {
                why: self.why,
                ..operator
            })),
            None => plan_err!("AggregateOperator cannot hold the keys of its new child"),
        }
    }

    crate::plan_node::with_new_children!();

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let group_by = self.group_by.input_exprs();
        let aggregates = self.first.aggr_expr().iter().flat_map(|aggregate| {
            let all = aggregate.all_expressions();
            all.args.into_iter().chain(all.order_by_exprs)
        });
        let filters = self.first.filter_expr().iter().flatten().cloned();
        apply_expression_roots(group_by.into_iter().chain(aggregates).chain(filters), f)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let children = vec![Arc::clone(&self.input)];
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if let Recipe::Whole(functions) = &self.recipe {
            let metrics = BaselineMetrics::new(&self.metrics, partition);
            return whole::stream(self, functions, &context, metrics);
        }
        let run = self.shared_run(&context)?;
        run.output(
            partition,
            context.session_config().batch_size(),
            &self.metrics,
        )
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}
