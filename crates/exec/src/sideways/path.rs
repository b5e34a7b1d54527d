//! The way from a join down to the aggregate whose groups it may not want, or to a scan of a table.
//!
//! It leads through nodes that hand columns on as they are: projections, conditions, exchanges, the
//! right side of inner joins, and aggregates of ours by those columns. Not through other joins,
//! windows, limits, sorts and unions: what they return of a row depends on the others. Nor through
//! any node with an expression that gives something else each time. To a scan it does not lead past
//! a filter or a projection that may warn, which is to do so whether rows have a partner or not; a
//! filter right above the scan that may is asked first (`filter::passing`).

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinSide, JoinType, Result};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::projection::ProjectionExec;

use super::operator::SidewaysOperator;
use crate::aggregate::AggregateOperator;
use crate::exchange;
use crate::filter::{expression_warns, filter_of, warns};
use crate::join::{EitherJoin, KeysPromise, result_columns};
use crate::padding::ForgetConstants;
use crate::plan_node::column_of;
use crate::table_scan::TableScan;

/// A key of a join, by its place there, and the column that it is.
type KeyColumn = (usize, usize);

/// Where rows are to be dropped: below an aggregate, or above a scan.
#[derive(Debug)]
pub(super) struct Path {
    /// Whose rows are dropped.
    input: Arc<dyn ExecutionPlan>,
    /// The keys that are columns of it.
    columns: Vec<KeyColumn>,
    is_grouped: bool,
}

impl Path {
    /// Whose rows are dropped.
    pub(super) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// Whether these rows are grouped by the keys.
    pub(super) fn is_grouped(&self) -> bool {
        self.is_grouped
    }

    /// Which keys of the join are told.
    pub(super) fn of_join(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|(place, _)| *place)
    }

    /// The same keys over the rows that are dropped.
    pub(super) fn keys(&self) -> Vec<PhysicalExprRef> {
        let keys = self.columns.iter();
        keys.map(|(_, column)| column_of(self.input.as_ref(), *column).expr)
            .collect()
    }
}

/// The way to the lowest aggregate below a plan that groups by all those of its columns by which
/// the highest one groups; without one, to the scan of a table of ours with the filter above it.
/// `None` where there is neither.
pub(super) fn find(plan: &Arc<dyn ExecutionPlan>, columns: Vec<KeyColumn>) -> Option<Path> {
    let mut found: Option<Path> = None;
    let mut plan = plan;
    let mut columns = columns;
    let mut may_warn = false;
    loop {
        if found.is_none() && !may_warn && !columns.is_empty() && is_read_late(plan) {
            return Some(Path {
                input: Arc::clone(plan),
                columns,
                is_grouped: false,
            });
        }
        may_warn |= warns(plan);
        let Some((input, below)) = through(plan, &columns) else {
            break;
        };
        let is_less = found
            .as_ref()
            .is_some_and(|it| below.len() < it.columns.len());
        if below.is_empty() || is_less {
            break;
        }
        if plan.is::<AggregateOperator>() {
            found = Some(Path {
                input: Arc::clone(input),
                columns: below.clone(),
                is_grouped: true,
            });
        }
        (plan, columns) = (input, below);
    }
    found.map(lowered)
}

/// The path to the scan below the rows of another path, if there is one: rows that are dropped
/// there meet no join.
fn lowered(path: Path) -> Path {
    let mut plan = &path.input;
    let mut columns = path.columns.clone();
    loop {
        if is_read_late(plan) {
            return Path {
                input: Arc::clone(plan),
                columns,
                is_grouped: path.is_grouped,
            };
        }
        match through(plan, &columns) {
            Some((input, below)) if below.len() == columns.len() && !warns(plan) => {
                (plan, columns) = (input, below);
            }
            _ => return path,
        }
    }
}

/// Whether the columns of a plan's rows are read when they are asked for.
fn is_read_late(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match filter_of(plan.as_ref()) {
        Some(filter) => {
            let is_plain = filter.fetch().is_none() && !has_volatile(plan);
            is_plain && filter.input().is::<TableScan>()
        }
        None => plan.is::<TableScan>() || plan.is::<SidewaysOperator>(),
    }
}

/// The plan with an operator above the rows of a path, to which a join promises the keys of its
/// left side; `None` where they are not met on the way down.
pub(super) fn with_operator(
    plan: &Arc<dyn ExecutionPlan>,
    path: &Path,
    promise: &KeysPromise,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if Arc::ptr_eq(plan, &path.input) {
        let columns = path.columns.iter().map(|(_, column)| *column);
        let input = Arc::clone(&path.input);
        let sideways =
            SidewaysOperator::new(promise.id(), columns.collect(), path.is_grouped, input);
        return Ok(Some(Arc::new(sideways)));
    }
    let children = plan.children();
    let (input, others) = match children[..] {
        [input] => (input, vec![]),
        [left, right] => (right, vec![Arc::clone(left)]),
        _ => return Ok(None),
    };
    match with_operator(input, path, promise)? {
        Some(input) => over_last_input(plan, others, input).map(Some),
        None => Ok(None),
    }
}

/// A node over another last input.
fn over_last_input(
    node: &Arc<dyn ExecutionPlan>,
    mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    last: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    inputs.push(last);
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(node).replace_children(inputs, options)
}

/// What a node reads, and which of some columns that it returns are columns of it; `None` where
/// rows may not be dropped below it, whatever their keys are.
fn through<'a>(
    plan: &'a Arc<dyn ExecutionPlan>,
    columns: &[KeyColumn],
) -> Option<(&'a Arc<dyn ExecutionPlan>, Vec<KeyColumn>)> {
    if plan.fetch().is_some() || has_volatile(plan) {
        return None;
    }
    if let Some(join) = EitherJoin::of(plan.as_ref()) {
        return through_join(&join, columns);
    }
    let place_of: Box<dyn Fn(usize) -> Option<usize>> =
        if let Some(filter) = filter_of(plan.as_ref()) {
            let projection = filter.projection().as_ref();
            Box::new(move |column| match projection {
                Some(projection) => projection.get(column).copied(),
                None => Some(column),
            })
        } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            Box::new(|column| column_in(&projection.expr().get(column)?.expr))
        } else if let Some(aggregate) = plan.downcast_ref::<AggregateOperator>() {
            let keys = aggregate.group_by();
            if !keys.is_single() || aggregate.has_volatile_function() {
                return None;
            }
            Box::new(|column| column_in(&keys.expr().get(column)?.0))
        } else if plan.is::<CoalescePartitionsExec>()
            || plan.is::<CooperativeExec>()
            || plan.is::<ForgetConstants>()
            || exchange::is_exchange(plan.as_ref())
        {
            Box::new(Some)
        } else {
            return None;
        };
    let [input] = plan.children()[..] else {
        return None;
    };
    let below = columns.iter();
    let below = below.filter_map(|(place, column)| Some((*place, place_of(*column)?)));
    Some((input, below.collect()))
}

/// What the right side of an inner join reads, and which of some columns are columns of it. A row
/// of it that is dropped is in no result, and in no other either.
fn through_join<'a>(
    join: &EitherJoin<'a>,
    columns: &[KeyColumn],
) -> Option<(&'a Arc<dyn ExecutionPlan>, Vec<KeyColumn>)> {
    let EitherJoin { stock, left, right } = join;
    let is_plain = *stock.join_type() == JoinType::Inner && stock.filter().is_none();
    let mut right_keys = stock.on().iter().map(|(_, key)| key);
    if !is_plain || right_keys.any(|key| expression_warns(key, &right.schema())) {
        return None;
    }
    let sides = [&left.schema(), &right.schema()];
    let results = result_columns(sides, JoinType::Inner, stock.projection.as_deref());
    let below = columns.iter().filter_map(|(place, column)| {
        let result = results.get(*column)?;
        (result.side == JoinSide::Right).then_some((*place, result.index))
    });
    Some((right, below.collect()))
}

fn column_in(expr: &PhysicalExprRef) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// Whether an expression of a node may give something else for the same row.
fn has_volatile(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut is_found = false;
    let looked = plan.apply_expressions(&mut |expr| {
        is_found |= is_volatile(expr);
        Ok(TreeNodeRecursion::Continue)
    });
    is_found || looked.is_err()
}
