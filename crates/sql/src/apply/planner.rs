//! The operators of plans with subqueries that run row by row.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use mayfly_exec::ApplyOperator;
use mayfly_exec::slots::{OuterRow, with_placeholders};

use super::node::{Apply, Subquery};
use crate::planning::{in_one_partition, physical};

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
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Extensions)]);
        planner.create_physical_plan(plan, session).await
    }
}

struct Extensions;

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
        let ([input], Some(state)) = (
            physical_inputs,
            session.as_any().downcast_ref::<SessionState>(),
        ) else {
            return internal_err!("a subquery is applied to one input, in a session of its own");
        };
        let row = Arc::new(OuterRow::default());
        let plan = seeing(
            apply.subquery.plan.clone(),
            &apply.subquery.outer_numbers(),
            &row,
        )?;
        // To begin tasks would be most of what a run over few rows takes.
        let state = in_one_partition(state).build();
        let operator = ApplyOperator::new(
            Arc::clone(input),
            physical(&state, &plan).await?,
            row,
            &apply.outer_places()?,
            apply.subquery.varies,
            apply.subquery.yields,
        );
        Ok(Some(Arc::new(operator)))
    }
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
