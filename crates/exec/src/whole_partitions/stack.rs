//! Windows that stand upon each other, and which of their columns come from what they read.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowExpr};

use crate::other_columns::with_columns;
use crate::plan_node::chosen_columns;

/// Windows that stand upon each other, and what chooses columns between them.
pub(super) struct Stack {
    /// From the one at the bottom to the one on top.
    pub(super) nodes: Vec<Arc<dyn ExecutionPlan>>,
    /// What they all read.
    pub(super) input: Arc<dyn ExecutionPlan>,
}

impl Stack {
    /// The windows that a plan begins with; none if it begins otherwise.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> Stack {
        let mut nodes = Vec::new();
        let mut input = plan;
        while let Some(below) = input_of(input) {
            nodes.push(Arc::clone(input));
            input = below;
        }
        nodes.reverse();
        Stack {
            nodes,
            input: Arc::clone(input),
        }
    }
}

/// The input of a window, or of what chooses columns above one.
fn input_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    if let Some((_, input)) = window_of(plan) {
        return Some(input);
    }
    let (input, _) = chosen_columns(plan.downcast_ref()?)?;
    input_of(input).map(|_| input)
}

/// The functions of a window and its input.
type Functions<'a> = (&'a [Arc<dyn WindowExpr>], &'a Arc<dyn ExecutionPlan>);

/// The functions of a window and its input; `None` for other nodes.
pub(super) fn window_of(plan: &Arc<dyn ExecutionPlan>) -> Option<Functions<'_>> {
    if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        return Some((window.window_expr(), window.input()));
    }
    let window = plan.downcast_ref::<BoundedWindowAggExec>()?;
    Some((window.window_expr(), window.input()))
}

/// Which columns of a stack are columns of its input.
pub(super) struct InputColumns {
    pub(super) schema: SchemaRef,
    places: Vec<Option<usize>>,
}

impl InputColumns {
    /// At the bottom of a stack.
    pub(super) fn of(input: &Arc<dyn ExecutionPlan>) -> InputColumns {
        let schema = input.schema();
        InputColumns {
            places: (0..schema.fields().len()).map(Some).collect(),
            schema,
        }
    }

    /// Goes above a window.
    pub(super) fn add_results(&mut self, count: usize) {
        self.places.extend(std::iter::repeat_n(None, count));
    }

    /// Goes above a projection.
    pub(super) fn choose(&mut self, chosen: &[usize]) {
        self.places = chosen.iter().map(|place| self.places[*place]).collect();
    }

    /// Expressions over the input instead; `None` if one reads anything else, or gives something
    /// else each time.
    pub(super) fn all(&self, exprs: &[PhysicalExprRef]) -> Result<Option<Vec<PhysicalExprRef>>> {
        let is_of_input = |expr: &PhysicalExprRef| {
            let mut columns = collect_columns(expr).into_iter();
            !is_volatile(expr) && columns.all(|column| self.places[column.index()].is_some())
        };
        if !exprs.iter().all(is_of_input) {
            return Ok(None);
        }
        let over_input = exprs.iter().map(|expr| {
            with_columns(expr, |column| {
                let place = self.places[column.index()].unwrap_or_default();
                Column::new(self.schema.field(place).name(), place)
            })
        });
        over_input.collect::<Result<_>>().map(Some)
    }
}
