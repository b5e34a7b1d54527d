//! Steps out of a physical plan.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::first_rows::FirstRows;
use super::step::{Join, Step};
use super::stock::Stock;
use super::subquery::Places;
use crate::by_key::look_ups;
use crate::filter::{Condition, filter_of, may_warn};
use crate::given_rows::GivenRowsScan;
use crate::paced::Paced;
use crate::padding::ForgetConstants;
use crate::report::Why;
use crate::unbound::UnboundScan;

/// A step, and the plan that it was made of over the rows of now, which tells what keys are there.
pub(super) struct Compiled {
    pub(super) step: Step,
    bound: Arc<dyn ExecutionPlan>,
}

/// The step of a plan; `None` if it has a node of a kind that is not known here, or a table is
/// gone.
pub(super) fn compiled(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Compiled>> {
    let mut places = Places::of_plan(plan)?;
    match places.are_steps(plan, false)? {
        true => with_places(plan, &mut places),
        false => Ok(None),
    }
}

fn with_places(plan: &Arc<dyn ExecutionPlan>, places: &mut Places) -> Result<Option<Compiled>> {
    let mut steps = Vec::new();
    let mut bound = Vec::new();
    for input in plan.children() {
        let Some(input) = with_places(input, places)? else {
            return Ok(None);
        };
        steps.push(input.step);
        bound.push(input.bound);
    }
    if let Some(scan) = plan.downcast_ref::<UnboundScan>() {
        let bound = scan.bound()?;
        return Ok(bound.map(|bound| Compiled {
            step: Step::Table(scan.rows().clone()),
            bound,
        }));
    }
    let bound = match bound.is_empty() {
        true => Arc::clone(plan),
        // A scan of now has the properties of the one that stood for it.
        false => {
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
            Arc::clone(plan).replace_children(bound, options)?
        }
    };
    let step = step(plan, &bound, steps, places)?;
    Ok(step.map(|step| Compiled { step, bound }))
}

fn step(
    plan: &Arc<dyn ExecutionPlan>,
    bound: &Arc<dyn ExecutionPlan>,
    mut inputs: Vec<Step>,
    places: &mut Places,
) -> Result<Option<Step>> {
    if plan.is::<GivenRowsScan>() {
        return Ok(Some(Step::Given));
    }
    if plan.is::<UnionExec>() {
        let schema = plan.schema();
        return Ok(Some(Step::Append { inputs, schema }));
    }
    if let Some(node) = plan.downcast_ref::<ScalarSubqueryExec>() {
        return Ok(Some(Step::WithValues(places.with_values(node, inputs))));
    }
    if let Some(join) = bound.downcast_ref::<HashJoinExec>() {
        let Some(stock) = Stock::of(plan) else {
            return Ok(None);
        };
        let (Some(right), Some(left)) = (inputs.pop(), inputs.pop()) else {
            return Ok(None);
        };
        return Ok(Some(Step::Join(Join {
            look_ups: look_ups(join)?,
            inputs: [Box::new(left), Box::new(right)],
            stock,
        })));
    }
    let partitions = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count();
    let below = plan.children().first().map_or(1, |input| partitions(input));
    let Some(input) = inputs.pop() else {
        let stock = Stock::of(plan);
        return Ok(stock.map(|stock| Step::Stock { stock, inputs }));
    };
    let input = Box::new(input);
    Ok(Some(if let Some(filter) = filter_of(plan.as_ref()) {
        let projection = filter.projection().as_ref().map(|columns| columns.to_vec());
        let predicate = filter.predicate();
        let placed = places.placed(predicate)?;
        let input = places.narrowed(predicate, *input)?;
        // The long way may read other rows, and warns of these.
        if input.is_narrowed() && may_warn(plan) {
            return Ok(None);
        }
        let filtered = Step::Filter {
            condition: Condition::of(filter).with_predicate(placed),
            projection,
            input: Box::new(input),
        };
        limited(filtered, plan.fetch(), plan)
    } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let exprs = projection.expr().iter().map(|of| places.placed(&of.expr));
        Step::Project {
            exprs: exprs.collect::<Result<_>>()?,
            schema: projection.schema(),
            input,
        }
    } else if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let why = match sort.fetch() {
            Some(_) => Why::OrderByLimit,
            None => Why::OrderBy,
        };
        let by = sort.expr().iter().map(|by| {
            let expr = places.placed(&by.expr)?;
            Ok(PhysicalSortExpr::new(expr, by.options))
        });
        let by = LexOrdering::new(by.collect::<Result<Vec<_>>>()?);
        let is_narrowed = input.is_narrowed();
        let step = Step::Sort {
            by: by.unwrap_or_else(|| sort.expr().clone()),
            fetch: sort.fetch(),
            why: Some(why),
            input,
        };
        let step = FirstRows::of_sort(step, &plan.schema());
        // The long way may read fewer rows for it, and warns of these.
        let is_by_key = is_narrowed || matches!(step, Step::FirstRows(_));
        if is_by_key && may_warn(sort.input()) {
            return Ok(None);
        }
        step
    } else if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>()
        && below > 1
    {
        Step::Sort {
            by: merge.expr().clone(),
            fetch: merge.fetch(),
            why: None,
            input,
        }
    } else if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        let (skip, fetch) = (limit.skip(), limit.fetch());
        skipped_and_limited(*input, skip, fetch, plan)
    } else if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
        // Each partition has a limit of its own.
        if below > 1 {
            return Ok(None);
        }
        limited(*input, Some(limit.fetch()), plan)
    } else if plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<Paced>()
        || plan.is::<ForgetConstants>()
    {
        limited(*input, plan.fetch(), plan)
    } else {
        inputs.push(match plan.downcast_ref::<AggregateExec>() {
            Some(aggregate) if !may_warn(plan) => FirstRows::of_input(aggregate, *input),
            _ => *input,
        });
        let stock = Stock::of(plan);
        return Ok(stock.map(|stock| Step::Stock { stock, inputs }));
    }))
}

fn limited(step: Step, fetch: Option<usize>, plan: &Arc<dyn ExecutionPlan>) -> Step {
    match fetch {
        None => step,
        Some(_) => skipped_and_limited(step, 0, fetch, plan),
    }
}

/// The step of a plan that limits the rows of another one.
fn skipped_and_limited(
    step: Step,
    skip: usize,
    fetch: Option<usize>,
    plan: &Arc<dyn ExecutionPlan>,
) -> Step {
    let input = match fetch {
        Some(fetch) if !may_warn(plan) => {
            FirstRows::of_limit(skip.saturating_add(fetch), &plan.schema(), step)
        }
        _ => step,
    };
    Step::Limit {
        skip,
        fetch,
        input: Box::new(input),
    }
}
