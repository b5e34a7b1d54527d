//! Columns that a plan hands on from a plan below it, as they are.

use datafusion::logical_expr::LogicalPlan;

/// The plan that a column comes from, and its place there; `None` for a plan that names its columns
/// or computes them.
pub(crate) fn handed_on(plan: &LogicalPlan, place: usize) -> Option<(&LogicalPlan, usize)> {
    match plan {
        LogicalPlan::Window(window) => {
            // Behind them stand those that it computes.
            let is_handed_on = place < window.input.schema().fields().len();
            is_handed_on.then_some((window.input.as_ref(), place))
        }
        LogicalPlan::Join(join) => {
            let right = place.checked_sub(join.left.schema().fields().len());
            Some(match right {
                None => (join.left.as_ref(), place),
                Some(place) => (join.right.as_ref(), place),
            })
        }
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Repartition(_) => Some((plan.inputs().into_iter().next()?, place)),
        _ => None,
    }
}
