//! Steps out of a physical plan.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
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
use super::totals::Totals;
use crate::by_key::{KeyScan, look_ups};
use crate::filter::{Condition, filter_of, may_warn};
use crate::given_rows::GivenRowsScan;
use crate::paced::Paced;
use crate::padding::ForgetConstants;
use crate::report::Why;
use crate::source::RowsOf;
use crate::table_scan::TableScan;
use crate::unbound::{UnboundRows, UnboundScan};

/// A step, and the plan that it was made of over rows that are there, which tells what keys are.
pub(super) struct Compiled {
    pub(super) step: Step,
    bound: Arc<dyn ExecutionPlan>,
}

/// The step of a plan over rows of now or of snapshots; `None` if it has a node of a kind that is
/// not known here, or a table is gone.
pub(super) fn compiled(plan: &Arc<dyn ExecutionPlan>, rows: RowsOf) -> Result<Option<Compiled>> {
    let places = Places::of_plan(plan)?;
    match places.are_steps(plan, false)? {
        true => Compiler { places, rows }.compiled(plan),
        false => Ok(None),
    }
}

struct Compiler {
    places: Places,
    rows: RowsOf,
}

impl Compiler {
    fn compiled(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Compiled>> {
        let mut steps = Vec::new();
        let mut bound = Vec::new();
        for input in plan.children() {
            let Some(input) = self.compiled(input)? else {
                return Ok(None);
            };
            steps.push(input.step);
            bound.push(input.bound);
        }
        if let Some(scan) = plan.downcast_ref::<UnboundScan>() {
            let bound = scan.bound()?.filter(|_| self.rows == RowsOf::Now);
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
        let step = self.step(plan, &bound, steps)?;
        Ok(step.map(|step| Compiled { step, bound }))
    }

    fn step(
        &mut self,
        plan: &Arc<dyn ExecutionPlan>,
        bound: &Arc<dyn ExecutionPlan>,
        inputs: Vec<Step>,
    ) -> Result<Option<Step>> {
        if plan.is::<UnionExec>() {
            let schema = plan.schema();
            return Ok(Some(Step::Append { inputs, schema }));
        }
        if let Some(node) = plan.downcast_ref::<ScalarSubqueryExec>() {
            let values = self.places.with_values(node, inputs);
            return Ok(Some(Step::WithValues(values)));
        }
        let mut inputs = inputs.into_iter();
        match [inputs.next(), inputs.next(), inputs.next()] {
            [None, ..] => Ok(self.leaf(plan)),
            [Some(input), None, _] => self.over_one(plan, input),
            [Some(first), Some(last), None] => self.over_two(plan, bound, [first, last]),
            _ => Ok(None),
        }
    }

    fn leaf(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<Step> {
        if plan.is::<GivenRowsScan>() {
            return Some(Step::Given);
        }
        if self.rows == RowsOf::Snapshot {
            if let Some(scan) = plan.downcast_ref::<TableScan>() {
                let (source, limit) = scan.source_and_limit();
                return Some(Step::Table(UnboundRows::of_source(source, limit)));
            }
            let scan: Arc<dyn Any + Send + Sync> = Arc::<dyn ExecutionPlan>::clone(plan);
            if let Ok(scan) = scan.downcast::<KeyScan>() {
                return Some(Step::Found(scan));
            }
        }
        let inputs = Vec::new();
        Stock::of(plan).map(|stock| Step::Stock { stock, inputs })
    }

    fn over_two(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        bound: &Arc<dyn ExecutionPlan>,
        inputs: [Step; 2],
    ) -> Result<Option<Step>> {
        let Some(stock) = Stock::of(plan) else {
            return Ok(None);
        };
        Ok(Some(match bound.downcast_ref::<HashJoinExec>() {
            Some(join) => Step::Join(Join {
                look_ups: look_ups(join, self.rows)?,
                inputs: inputs.map(Box::new),
                stock,
            }),
            None => Step::Stock {
                stock,
                inputs: inputs.into(),
            },
        }))
    }

    fn over_one(&mut self, plan: &Arc<dyn ExecutionPlan>, input: Step) -> Result<Option<Step>> {
        let partitions =
            |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count();
        let below = plan.children().first().map_or(1, |input| partitions(input));
        if let Some(filter) = filter_of(plan.as_ref()) {
            return self.filtered(plan, filter, input);
        }
        if let Some(sort) = plan.downcast_ref::<SortExec>() {
            return self.sorted(plan, sort, input);
        }
        Ok(Some(
            if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
                let exprs = projection.expr().iter();
                let exprs = exprs.map(|of| self.places.placed(&of.expr));
                Step::Project {
                    exprs: exprs.collect::<Result<_>>()?,
                    schema: projection.schema(),
                    input: Box::new(input),
                }
            } else if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>()
                && below > 1
            {
                Step::Sort {
                    by: merge.expr().clone(),
                    fetch: merge.fetch(),
                    why: None,
                    input: Box::new(input),
                }
            } else if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
                let (skip, fetch) = (limit.skip(), limit.fetch());
                skipped_and_limited(input, skip, fetch, plan)
            } else if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
                // Each partition has a limit of its own.
                if below > 1 {
                    return Ok(None);
                }
                limited(input, Some(limit.fetch()), plan)
            } else if plan.is::<CoalescePartitionsExec>()
                || plan.is::<SortPreservingMergeExec>()
                || plan.is::<CooperativeExec>()
                || plan.is::<Paced>()
                || plan.is::<ForgetConstants>()
            {
                limited(input, plan.fetch(), plan)
            } else {
                return Ok(stock(plan, input));
            },
        ))
    }

    fn filtered(
        &mut self,
        plan: &Arc<dyn ExecutionPlan>,
        filter: &FilterExec,
        input: Step,
    ) -> Result<Option<Step>> {
        let projection = filter.projection().as_ref().map(|columns| columns.to_vec());
        let predicate = filter.predicate();
        let placed = self.places.placed(predicate)?;
        let input = self.places.narrowed(predicate, input)?;
        // The long way may read other rows, and warns of these.
        if input.is_narrowed() && may_warn(plan) {
            return Ok(None);
        }
        let filtered = Step::Filter {
            condition: Condition::of(filter).with_predicate(placed),
            projection,
            input: Box::new(input),
        };
        Ok(Some(limited(filtered, plan.fetch(), plan)))
    }

    fn sorted(
        &mut self,
        plan: &Arc<dyn ExecutionPlan>,
        sort: &SortExec,
        input: Step,
    ) -> Result<Option<Step>> {
        let why = match sort.fetch() {
            Some(_) => Why::OrderByLimit,
            None => Why::OrderBy,
        };
        let by = sort.expr().iter().map(|by| {
            let expr = self.places.placed(&by.expr)?;
            Ok(PhysicalSortExpr::new(expr, by.options))
        });
        let by = LexOrdering::new(by.collect::<Result<Vec<_>>>()?);
        let is_narrowed = input.is_narrowed();
        let step = Step::Sort {
            by: by.unwrap_or_else(|| sort.expr().clone()),
            fetch: sort.fetch(),
            why: Some(why),
            input: Box::new(input),
        };
        let step = FirstRows::of_sort(step, &plan.schema());
        // The long way may read fewer rows for it, and warns of these.
        let is_by_key = is_narrowed || matches!(step, Step::FirstRows(_));
        if is_by_key && may_warn(sort.input()) {
            return Ok(None);
        }
        Ok(Some(step))
    }
}

/// A node that is handed the rows of its input.
fn stock(plan: &Arc<dyn ExecutionPlan>, input: Step) -> Option<Step> {
    let input = match plan.downcast_ref::<AggregateExec>() {
        Some(aggregate) if !may_warn(plan) => FirstRows::of_input(aggregate, input),
        _ => input,
    };
    if let Some(totals) = Totals::of(plan) {
        let input = Box::new(input);
        return Some(Step::Totals { totals, input });
    }
    let stock = Stock::of(plan)?;
    let inputs = vec![input];
    Some(Step::Stock { stock, inputs })
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
