//! Rows of outer joins, of which less is known than DataFusion thinks.
//!
//! A column that is constant on one side of a join, as `b` is in `LEFT JOIN (SELECT 2 b) y` or in
//! `LEFT JOIN y ON ... AND y.b = 2`, is none behind an outer join that fills this side up with
//! NULLs. DataFusion 55 takes it for one all the same (`EquivalenceGroup::join`), leaves out sorts
//! by it and lets aggregates and windows think that its values come in order.
//!
//! Owns: [`KnowPadding`], the rule that puts [`PaddedRows`] above such joins; it is the first of
//! all rules, before any other asks what is constant. Never: changes a row: the node hands on what
//! its input returns, and only tells less of it.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, Statistics, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::equivalence::{EquivalenceClass, EquivalenceGroup};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};

/// Puts [`PaddedRows`] above outer joins of whose rows too much would be believed.
#[derive(Debug, Default)]
pub struct KnowPadding;

impl PhysicalOptimizerRule for KnowPadding {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let known = plan.transform_up(|node| {
            let Some(padded) = padded_columns(&node) else {
                return Ok(Transformed::no(node));
            };
            let known = node.equivalence_properties().eq_group();
            if known.iter().all(|class| holds(class, &padded)) {
                return Ok(Transformed::no(node));
            }
            let node: Arc<dyn ExecutionPlan> = Arc::new(PaddedRows::new(node, padded.into())?);
            Ok(Transformed::yes(node))
        });
        known.data()
    }

    fn name(&self) -> &str {
        "know_padding"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// For each column of an outer join, whether its side is filled up with NULLs.
fn padded_columns(plan: &Arc<dyn ExecutionPlan>) -> Option<Vec<bool>> {
    let (join_type, left, projection) = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        (*join.join_type(), join.left(), join.projection.as_deref())
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        let projection = join.projection().as_deref();
        (*join.join_type(), join.left(), projection)
    } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        (join.join_type(), join.left(), None)
    } else {
        return None;
    };
    let (pads_left, pads_right) = match join_type {
        JoinType::Left => (false, true),
        JoinType::Right => (true, false),
        JoinType::Full => (true, true),
        _ => return None,
    };
    let left_columns = left.schema().fields().len();
    let is_padded = |column: usize| match column < left_columns {
        true => pads_left,
        false => pads_right,
    };
    let columns = plan.schema().fields().len();
    Some(match projection {
        Some(projection) => projection.iter().copied().map(is_padded).collect(),
        None => (0..columns).map(is_padded).collect(),
    })
}

fn mentions(expr: &Arc<dyn PhysicalExpr>, padded: &[bool]) -> bool {
    let columns = collect_columns(expr);
    { columns.iter() }.any(|column| padded.get(column.index()).copied().unwrap_or(true))
}

/// Whether what is equal or constant on one side stays so in rows that are filled up.
fn holds(class: &EquivalenceClass, padded: &[bool]) -> bool {
    !{ class.iter() }.any(|expr| mentions(expr, padded))
}

/// The rows of an outer join, of whose padded columns nothing is known but their order.
#[derive(Clone, Debug)]
pub struct PaddedRows {
    input: Arc<dyn ExecutionPlan>,
    /// For each column whether it may be NULL where its side has no row.
    padded: Arc<[bool]>,
    properties: Arc<PlanProperties>,
}

impl PaddedRows {
    fn new(input: Arc<dyn ExecutionPlan>, padded: Arc<[bool]>) -> Result<Self> {
        let all = input.equivalence_properties();
        let kept = all.eq_group().iter();
        let kept = kept.filter(|class| holds(class, &padded)).cloned();
        let mut equivalences = EquivalenceProperties::new(input.schema());
        equivalences.add_equivalence_group(EquivalenceGroup::new(kept))?;
        equivalences.add_orderings(all.oeq_class().iter().cloned());
        let properties = PlanProperties::clone(input.properties()).with_eq_properties(equivalences);
        Ok(Self {
            input,
            padded,
            properties: Arc::new(properties),
        })
    }
}

impl DisplayAs for PaddedRows {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PaddedRows")
    }
}

impl ExecutionPlan for PaddedRows {
    fn name(&self) -> &'static str {
        "PaddedRows"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children
            .pop()
            .ok_or_else(|| internal_datafusion_err!("padded rows have an input"))?;
        Ok(Arc::new(match options.children_properties {
            ChildrenPropertiesMode::Keep => Self {
                input,
                ..Self::clone(&self)
            },
            ChildrenPropertiesMode::Recompute => Self::new(input, Arc::clone(&self.padded))?,
        }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute),
        )
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&input_stats[0]))
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    /// Lets the join leave out columns; what is made of a padded one is no better known.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(input) = self.input.try_swapping_with_projection(projection)? else {
            return Ok(None);
        };
        let made = projection.expr().iter();
        let padded = made.map(|made| mentions(&made.expr, &self.padded));
        Ok(Some(Arc::new(Self::new(input, padded.collect())?)))
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(parent_filters, &self.children())
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(child_pushdown_result))
    }
}
