//! Columns that are filled up with NULLs, of which less is known than DataFusion thinks.
//!
//! A column that is constant on one side of a join, as `b` is in `LEFT JOIN (SELECT 2 b) y` or in
//! `LEFT JOIN y ON ... AND y.b = 2`, is none behind an outer join that fills this side up; nor is
//! one by which WITH ROLLUP groups. DataFusion 55 takes them for constants all the same
//! (`EquivalenceGroup::join`, `AggregateExec::compute_properties`), leaves out sorts by them and
//! lets aggregates and windows think that their values come in order.
//!
//! Owns: [`KnowPadding`], the rule that puts [`ForgetConstants`] above such joins, and above and
//! below such aggregates; it stands behind the rule that chooses the sides of joins, before any
//! other asks what is constant. Never: changes a row: the node hands on what its input returns, and
//! only tells less of it.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::equivalence::{EquivalenceClass, EquivalenceGroup};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};

use crate::plan_node::{over_input, same_rows};

/// Puts [`ForgetConstants`] where too much would be believed of rows that are filled up.
#[derive(Debug, Default)]
pub struct KnowPadding;

impl PhysicalOptimizerRule for KnowPadding {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(know_padding).data()
    }

    fn name(&self) -> &str {
        "know_padding"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn know_padding(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(padded) = joined_columns(&node) {
        return forgotten(node, padded);
    }
    let Some(aggregate) = node.downcast_ref::<AggregateExec>() else {
        return Ok(Transformed::no(node));
    };
    if !aggregate.group_expr().is_single() {
        // What is constant below the groups is none in what they add up.
        let keys = aggregate.group_expr().expr().iter();
        let columns: HashSet<Column> = keys.flat_map(|(key, _)| collect_columns(key)).collect();
        let input = aggregate.input();
        let mut padded = vec![false; input.schema().fields().len()];
        for column in columns {
            padded[column.index()] = true;
        }
        let input = forgotten(Arc::clone(input), padded)?;
        if input.transformed {
            let node = over_input(&node, input.data)?;
            return Ok(Transformed::yes(rolled_up(node)?.data));
        }
    }
    rolled_up(node)
}

/// The same for the keys of an aggregate whose rows go on; a literal may be among them.
fn rolled_up(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let keys = node.downcast_ref::<AggregateExec>().and_then(|aggregate| {
        let grouping = match aggregate.mode() {
            AggregateMode::Partial => return None,
            AggregateMode::Single | AggregateMode::SinglePartitioned => aggregate,
            _ => aggregate.input().downcast_ref::<AggregateExec>()?,
        };
        let keys = grouping.group_expr();
        (!keys.is_single()).then(|| keys.expr().len())
    });
    let Some(keys) = keys else {
        return Ok(Transformed::no(node));
    };
    let columns = node.schema().fields().len();
    forgotten(node, (0..columns).map(|column| column < keys).collect())
}

/// The rows of a node without what is known of some of their columns, if anything is.
fn forgotten(
    node: Arc<dyn ExecutionPlan>,
    columns: Vec<bool>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let known = node.equivalence_properties().eq_group();
    if known.iter().all(|class| holds(class, &columns)) {
        return Ok(Transformed::no(node));
    }
    let node: Arc<dyn ExecutionPlan> =
        Arc::new(ForgetConstants::new(node, columns.into(), [].into())?);
    Ok(Transformed::yes(node))
}

/// For each column of an outer join, whether its side is filled up with NULLs.
fn joined_columns(plan: &Arc<dyn ExecutionPlan>) -> Option<Vec<bool>> {
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

fn mentions(expr: &Arc<dyn PhysicalExpr>, columns: &[bool]) -> bool {
    let mentioned = collect_columns(expr);
    { mentioned.iter() }.any(|column| columns.get(column.index()).copied().unwrap_or(true))
}

/// Whether what is equal or constant stays so if nothing is known of some columns.
fn holds(class: &EquivalenceClass, columns: &[bool]) -> bool {
    !{ class.iter() }.any(|expr| mentions(expr, columns))
}

/// The rows of its input, of some of whose columns nothing is known.
///
/// They have no order: a sort by such a column must not pass this node, below which it would find
/// a constant.
#[derive(Clone, Debug)]
pub struct ForgetConstants {
    input: Arc<dyn ExecutionPlan>,
    /// For each column whether nothing is known of it from the input.
    columns: Arc<[bool]>,
    /// Which of these columns are equal all the same, being made of one.
    equal: Arc<[EquivalenceClass]>,
    properties: Arc<PlanProperties>,
}

impl ForgetConstants {
    fn new(
        input: Arc<dyn ExecutionPlan>,
        columns: Arc<[bool]>,
        equal: Arc<[EquivalenceClass]>,
    ) -> Result<Self> {
        let all = input.equivalence_properties().eq_group().iter();
        let kept = all.filter(|class| holds(class, &columns));
        let kept = kept.chain(equal.iter()).cloned();
        let mut equivalences = EquivalenceProperties::new(input.schema());
        equivalences.add_equivalence_group(EquivalenceGroup::new(kept))?;
        let properties = PlanProperties::clone(input.properties()).with_eq_properties(equivalences);
        Ok(Self {
            input,
            columns,
            equal,
            properties: Arc::new(properties),
        })
    }

    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        options: &ReplaceChildrenOptions,
    ) -> Result<Self> {
        match options.children_properties {
            ChildrenPropertiesMode::Keep => Ok(Self {
                input,
                ..self.clone()
            }),
            ChildrenPropertiesMode::Recompute => {
                Self::new(input, Arc::clone(&self.columns), Arc::clone(&self.equal))
            }
        }
    }
}

impl DisplayAs for ForgetConstants {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForgetConstants")
    }
}

impl ExecutionPlan for ForgetConstants {
    crate::plan_node::node_over_input!("ForgetConstants");
    same_rows!();

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    crate::plan_node::runs_input!();

    /// Lets a join leave out columns; what is made of one that is not known is no better known,
    /// but two columns made of the same one stay equal: a sort above may already count on that.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        // A projection would answer with the one that it cannot take up, which is above this node.
        if self.input.is::<ProjectionExec>() {
            return Ok(None);
        }
        let Some(input) = self.input.try_swapping_with_projection(projection)? else {
            return Ok(None);
        };
        let made = projection.expr().iter();
        let columns = made.map(|made| mentions(&made.expr, &self.columns));
        let columns: Arc<[bool]> = columns.collect();
        // The projection is above this node, so what it knows is true of filled up rows as well.
        let known = projection.properties().equivalence_properties();
        let known = known.eq_group().iter();
        let equal = known.filter(|class| !holds(class, &columns)).cloned();
        let equal = equal.collect();
        Ok(Some(Arc::new(Self::new(input, columns, equal)?)))
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
