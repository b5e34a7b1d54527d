//! The operators of plans with subqueries that run row by row.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use mayfly_exec::slots::{OuterRow, with_placeholders};
use mayfly_exec::{ApplyOperator, SwapOperators};

use super::node::{Apply, Subquery};
use crate::planning::{in_one_partition, without_long_values_in};

/// DataFusion's planner, and operators for subqueries that run row by row.
#[derive(Debug, Default)]
pub struct PlanApplies;

#[async_trait]
impl QueryPlanner for PlanApplies {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        planner(None).create_physical_plan(plan, session).await
    }
}

fn planner(state: Option<Arc<SessionState>>) -> DefaultPhysicalPlanner {
    DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Extensions { state })])
}

struct Extensions {
    /// What subqueries are planned with, if not with the session of the plan around them.
    state: Option<Arc<SessionState>>,
}

#[async_trait]
impl ExtensionPlanner for Extensions {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        _planning_context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(apply) = node.as_any().downcast_ref::<Apply>() else {
            return Ok(None);
        };
        let state = match &self.state {
            Some(state) => Some(state.as_ref()),
            None => session.as_any().downcast_ref::<SessionState>(),
        };
        let ([input], Some(state)) = (physical_inputs, state) else {
            return internal_err!("a subquery is applied to one input, in a session of its own");
        };
        let row = Arc::new(OuterRow::default());
        let plan = seeing(
            apply.subquery.plan.clone(),
            &apply.subquery.outer_numbers(),
            &row,
        )?;
        // To begin tasks would be most of what a run over few rows takes.
        let state = Arc::new(in_one_partition(state).build());
        let stock = stock_operators(&state, &plan).await?;
        let operator = ApplyOperator::new(
            Arc::clone(input),
            with_own_operators(&state, Arc::clone(&stock))?,
            row,
            &apply.outer_places()?,
            apply.subquery.varies,
            apply.subquery.yields,
        );
        Ok(Some(Arc::new(operator.with_steps_of(&stock)?)))
    }
}

/// Where the rules begin that put other operators in the place of stock ones.
fn first_own_rule(state: &SessionState) -> usize {
    let rules = state.physical_optimizers();
    let first = { rules.iter() }.position(|rule| rule.name() == SwapOperators::NAME);
    first.unwrap_or(rules.len())
}

/// The stock operators of a plan.
async fn stock_operators(
    state: &Arc<SessionState>,
    plan: &LogicalPlan,
) -> Result<Arc<dyn ExecutionPlan>> {
    let rules = state.physical_optimizers()[..first_own_rule(state)].to_vec();
    let stock = SessionStateBuilder::new_from_existing(SessionState::clone(state));
    let stock = stock.with_physical_optimizer_rules(rules).build();
    // What it applies itself has all rules.
    let planner = planner(Some(Arc::clone(state)));
    without_long_values_in(planner.create_physical_plan(plan, &stock)).await
}

/// A plan of stock operators with those of ours.
fn with_own_operators(
    state: &SessionState,
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let rules = &state.physical_optimizers()[first_own_rule(state)..];
    { rules.iter() }.try_fold(plan, |plan, rule| {
        rule.optimize(plan, state.config_options())
    })
}

impl Subquery {
    fn outer_numbers(&self) -> Vec<usize> {
        self.outer.iter().map(|(number, _)| *number).collect()
    }
}

/// A plan that reads the values of an outer row in the places of their placeholders, in the
/// subqueries that it applies too.
fn seeing(plan: LogicalPlan, numbers: &[usize], row: &Arc<OuterRow>) -> Result<LogicalPlan> {
    let plan = with_placeholders(plan, |number, field| {
        let place = numbers.iter().position(|known| *known == number)?;
        Some(row.value(place, field))
    })?;
    let plan = plan.transform_down_with_subqueries(|node| {
        let Some(apply) = Apply::of(&node) else {
            return Ok(Transformed::no(node));
        };
        let subquery = Subquery {
            plan: seeing(apply.subquery.plan.clone(), numbers, row)?,
            ..apply.subquery.clone()
        };
        let apply = Apply::over(apply.input.clone(), subquery)?;
        Ok(Transformed::yes(apply.into_node()))
    });
    plan.data()
}
