//! The plan node of a join.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinType, Result, plan_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, apply_expression_roots,
};

use super::ordered::in_order;
use super::report::NAMES;
use super::run::{JoinInputs, Run};
use super::spec::Spec;
use super::stream;
use super::wanted_keys::KeysPromise;
use crate::aggregate::AggregateOperator;
use crate::report::next_temp_table_id;
use crate::shared_run::SharedRun;
use crate::sort::SortOperator;
use crate::window::WindowOperator;

/// A join of two inputs by the equality of keys.
///
/// Each partition of the right side is one of the output; the left side is read once, by all of its
/// partitions at the same time. Rows come in the order of the right side where plans may count on
/// it, and in none otherwise.
pub struct JoinOperator {
    id: u64,
    pub(super) spec: Arc<Spec>,
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    /// What an operator below the right side is told.
    promise: Option<Arc<KeysPromise>>,
    metrics: ExecutionPlanMetricsSet,
    /// The execution under way and how many of its outputs are handed out.
    run: SharedRun<Run>,
}

impl JoinOperator {
    /// The operator for a stock join over these inputs, whose partitions need not fit each other;
    /// `None` where rows cannot hold what it needs.
    ///
    /// # Errors
    /// Where DataFusion cannot type an expression.
    pub fn try_from_stock(
        stock: &HashJoinExec,
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
    ) -> Result<Option<Self>> {
        let Some(spec) = Spec::try_from_stock(stock)? else {
            return Ok(None);
        };
        let partitions = right.output_partitioning().partition_count();
        let properties = PlanProperties::clone(stock.properties())
            .with_partitioning(Partitioning::UnknownPartitioning(partitions))
            .with_emission_type(match spec.kind {
                JoinType::Inner | JoinType::RightSemi => EmissionType::Incremental,
                _ => EmissionType::Both,
            });
        let id = next_temp_table_id();
        Ok(Some(Self::new(
            id,
            Arc::new(spec),
            left,
            right,
            Arc::new(properties),
            None,
        )))
    }

    fn new(
        id: u64,
        spec: Arc<Spec>,
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        properties: Arc<PlanProperties>,
        promise: Option<Arc<KeysPromise>>,
    ) -> Self {
        Self {
            id,
            spec,
            left,
            right,
            properties,
            promise,
            metrics: ExecutionPlanMetricsSet::new(),
            run: SharedRun::new(),
        }
    }

    /// Identity of its temporary table in the statement's report.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The side that streams.
    pub(crate) fn right(&self) -> &Arc<dyn ExecutionPlan> {
        &self.right
    }

    /// Whether an operator below the right side is told the keys of the left one.
    pub(crate) fn tells_keys(&self) -> bool {
        self.promise.is_some()
    }

    /// The same join over another right side of as many partitions, which it tells the keys of the
    /// left one.
    pub(crate) fn telling(
        &self,
        right: Arc<dyn ExecutionPlan>,
        promise: Arc<KeysPromise>,
    ) -> JoinOperator {
        let (spec, properties) = (Arc::clone(&self.spec), Arc::clone(&self.properties));
        let left = Arc::clone(&self.left);
        Self::new(self.id, spec, left, right, properties, Some(promise))
    }

    /// What was counted of its executions: names and values, for EXPLAIN ANALYZE.
    pub fn counted(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let metrics = self.metrics.clone_inner();
        let value = move |name| {
            metrics
                .sum_by_name(name)
                .map_or(0, |value| value.as_usize())
        };
        NAMES.into_iter().map(move |name| (name, value(name)))
    }

    pub(super) fn output_partitions(&self) -> usize {
        self.properties.output_partitioning().partition_count()
    }

    /// The run that all output partitions of one execution share.
    fn shared_run(&self, context: &Arc<TaskContext>) -> Result<Arc<Run>> {
        self.run.share(self.output_partitions(), || {
            let inputs = JoinInputs {
                id: self.id,
                spec: &self.spec,
                left: &self.left,
                right: &self.right,
                metrics: &self.metrics,
                memory_users: memory_users(&self.right),
                promise: self.promise.as_ref(),
            };
            Run::start(inputs, context)
        })
    }
}

/// A hash join, ours or the stock one.
pub(crate) struct EitherJoin<'a> {
    /// The stock join itself, or the one that ours stands for, which has no inputs.
    pub(crate) stock: &'a HashJoinExec,
    /// The side that is read first.
    pub(crate) left: &'a Arc<dyn ExecutionPlan>,
    /// The side that streams.
    pub(crate) right: &'a Arc<dyn ExecutionPlan>,
}

impl<'a> EitherJoin<'a> {
    /// The join that a node is; `None` for any other node.
    pub(crate) fn of(plan: &'a dyn ExecutionPlan) -> Option<EitherJoin<'a>> {
        if let Some(stock) = plan.downcast_ref::<HashJoinExec>() {
            let (left, right) = (stock.left(), stock.right());
            return Some(EitherJoin { stock, left, right });
        }
        let ours = plan.downcast_ref::<JoinOperator>()?;
        Some(EitherJoin {
            stock: &ours.spec.stock,
            left: &ours.left,
            right: &ours.right,
        })
    }
}

impl fmt::Debug for JoinOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinOperator")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for JoinOperator {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.spec.left.keys().iter().zip(self.spec.right.keys());
        let on: Vec<String> = keys
            .map(|(left, right)| format!("({left}, {right})"))
            .collect();
        write!(
            f,
            "JoinOperator: join_type={}, on=[{}]",
            self.spec.kind,
            on.join(", ")
        )?;
        if let Some(residual) = &self.spec.residual {
            write!(f, ", filter={}", residual.condition)?;
        }
        if self.spec.null_keys_match() {
            write!(f, ", nulls_equal")?;
        }
        if self.spec.is_null_aware {
            write!(f, ", null_aware")?;
        }
        if let Some(fetch) = self.spec.fetch {
            write!(f, ", fetch={fetch}")?;
        }
        if let Some(promise) = &self.promise {
            let keys: Vec<String> = promise.keys().iter().map(ToString::to_string).collect();
            write!(f, ", tells=[{}]", keys.join(", "))?;
        }
        Ok(())
    }
}

impl ExecutionPlan for JoinOperator {
    fn name(&self) -> &str {
        "JoinOperator"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right]
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (Some(right), Some(left), true) = (children.pop(), children.pop(), children.is_empty())
        else {
            return plan_err!("JoinOperator has two children");
        };
        let partitions = right.output_partitioning().partition_count();
        let properties = PlanProperties::clone(&self.properties)
            .with_partitioning(Partitioning::UnknownPartitioning(partitions));
        let spec = Arc::clone(&self.spec);
        Ok(Arc::new(Self::new(
            self.id,
            spec,
            left,
            right,
            Arc::new(properties),
            self.promise.clone(),
        )))
    }

    crate::plan_node::with_new_children!();

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let spec = &self.spec;
        let keys = spec.left.keys().iter().chain(spec.right.keys());
        let residual = spec.residual.iter().map(|residual| &residual.condition);
        let all = keys.chain(residual).chain(&spec.dynamic_filter);
        apply_expression_roots(all.cloned(), f)
    }

    fn dynamic_expressions_produced(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        self.spec.dynamic_filter.iter().cloned().collect()
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let children = vec![Arc::clone(&self.left), Arc::clone(&self.right)];
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        self.replace_children(children, options)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false, self.spec.ordering.is_some()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![true, self.spec.ordering.is_none()]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let run = self.shared_run(&context)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let schema = self.schema();
        Ok(match self.spec.ordering.clone() {
            None => {
                let results = stream::results(run, partition, metrics, self.spec.fetch);
                Box::pin(RecordBatchStreamAdapter::new(schema, results))
            }
            Some(ordering) => in_order(run, partition, metrics, ordering, context),
        })
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn fetch(&self) -> Option<usize> {
        self.spec.fetch
    }
}

/// The operators of a plan that hold rows in memory while it runs.
fn memory_users(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let below: u64 = plan.children().into_iter().map(memory_users).sum();
    let is_one = plan.is::<JoinOperator>()
        || plan.is::<HashJoinExec>()
        || plan.is::<AggregateOperator>()
        || plan.is::<SortOperator>()
        || plan.is::<WindowOperator>();
    below + u64::from(is_one)
}
