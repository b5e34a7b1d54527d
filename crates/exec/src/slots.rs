//! Constants of a plan that are others in each run.
//!
//! Owns: what stands for such a constant while rules make the plan and when it runs, and the values
//! of the run that this thread is in. Never: tells which constants these are (`mayfly_session`
//! finds out).
//!
//! Rules see a placeholder: of that they know a type and no value, so what they make holds for all
//! values. Behind them it is a function, which operators can run.
//!
//! A short plan runs on the thread that asks, and starts no task. So the values lie where the
//! thread finds them, and the plan itself is never copied.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use crate::run_values;

/// What the names of placeholders begin with.
const PLACEHOLDER: &str = "$slot_";

thread_local! {
    /// The values of the run that this thread is in, by their place.
    static VALUES: RefCell<Vec<ScalarValue>> = const { RefCell::new(Vec::new()) };
}

/// A constant of a plan by its place among the values of a run.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Slot {
    place: usize,
    name: String,
    field: FieldRef,
    signature: Signature,
}

/// What stands for the value of a place while rules make a plan.
pub fn placeholder(place: usize, field: FieldRef) -> Expr {
    let id = format!("{PLACEHOLDER}{place}");
    Expr::Placeholder(Placeholder::new_with_field(id, Some(field)))
}

/// A plan behind all rules, with what stands for values when it runs in the place of placeholders.
///
/// # Errors
/// If a placeholder is none of these.
pub fn runnable_plan(plan: LogicalPlan) -> Result<LogicalPlan> {
    with_placeholders(plan, |place, field| Some(value_of_run(place, field)))
}

/// A plan with other expressions in the place of placeholders, where `other` has one.
///
/// # Errors
/// If a placeholder is none of these.
pub fn with_placeholders(
    plan: LogicalPlan,
    other: impl Fn(usize, FieldRef) -> Option<Expr>,
) -> Result<LogicalPlan> {
    let plan = plan.transform_down_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let made = expr.transform_up(|expr| replaced(expr, &other))?;
            Ok(made.update_data(|expr| name.restore(expr)))
        })
    });
    plan.data()
}

fn replaced(
    expr: Expr,
    other: &impl Fn(usize, FieldRef) -> Option<Expr>,
) -> Result<Transformed<Expr>> {
    let Expr::Placeholder(of) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let place = of.id.strip_prefix(PLACEHOLDER).map(str::parse);
    let (Some(Ok(place)), Some(field)) = (place, &of.field) else {
        return internal_err!("{} is no slot", of.id);
    };
    Ok(match other(place, Arc::clone(field)) {
        Some(other) => Transformed::yes(other),
        None => Transformed::no(expr),
    })
}

/// What stands for the value of a place when the plan runs.
fn value_of_run(place: usize, field: FieldRef) -> Expr {
    let function = ScalarUDF::from(Slot {
        place,
        name: format!("slot_{place}"),
        field,
        signature: Signature::nullary(Volatility::Stable),
    });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), Vec::new()))
}

/// A condition with values of their types in the places of placeholders: whether a key can be
/// searched for it does not depend on which.
///
/// # Errors
/// If a type has no value of its own.
pub(crate) fn with_examples(filter: &Expr) -> Result<Expr> {
    let filter = filter.clone().transform_up(|expr| match &expr {
        Expr::Placeholder(Placeholder {
            field: Some(field), ..
        }) => {
            let value = ScalarValue::new_default(field.data_type())?;
            Ok(Transformed::yes(Expr::Literal(value, None)))
        }
        _ => Ok(Transformed::no(expr)),
    });
    filter.data()
}

/// Whether a function is such an expression.
pub(crate) fn is_slot(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<Slot>().is_some()
}

/// Runs something with values for the slots of plans.
pub fn with_values<T>(values: Vec<ScalarValue>, run: impl FnOnce() -> T) -> T {
    run_values::with(&VALUES, values, run)
}

fn value_of(place: usize) -> Result<ScalarValue> {
    let value = VALUES.with_borrow(|values| values.get(place).cloned());
    value.ok_or_else(|| internal_datafusion_err!("a plan runs without the value of slot {place}"))
}

/// Conditions with the values of this run in the place of slots, as keys are asked for them.
pub(crate) fn filled(filters: &[Expr]) -> Result<Cow<'_, [Expr]>> {
    if VALUES.with_borrow(Vec::is_empty) {
        return Ok(Cow::Borrowed(filters));
    }
    let filled = filters.iter().map(|filter| {
        let filter = filter.clone().transform_up(|expr| {
            let Expr::ScalarFunction(function) = &expr else {
                return Ok(Transformed::no(expr));
            };
            match function.func.inner().downcast_ref::<Slot>() {
                Some(slot) => Ok(Transformed::yes(Expr::Literal(value_of(slot.place)?, None))),
                None => Ok(Transformed::no(expr)),
            }
        });
        filter.data()
    });
    filled.collect::<Result<Vec<_>>>().map(Cow::Owned)
}

impl ScalarUDFImpl for Slot {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        value_of(self.place).map(ColumnarValue::Scalar)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use datafusion::prelude::{col, lit};

    use super::*;

    #[test]
    fn conditions_get_the_values_of_the_run_they_are_in() {
        let field = Arc::new(Field::new("slot", DataType::Int32, true));
        let placed = col("k").gt(placeholder(1, field));
        assert_eq!(with_examples(&placed).unwrap(), col("k").gt(lit(0)));
        let runnable = |expr| replaced(expr, &|place, field| Some(value_of_run(place, field)));
        let condition = [placed.transform_up(runnable).data().unwrap()];
        let values = |second: i32| vec![ScalarValue::Int32(Some(9)), second.into()];
        for second in [5, 7] {
            let filled = with_values(values(second), || filled(&condition).unwrap().into_owned());
            assert_eq!(filled, [col("k").gt(lit(second))]);
        }
        assert_eq!(filled(&condition).unwrap().as_ref(), condition);
        assert!(with_values(values(5)[..1].to_vec(), || filled(&condition).is_err()));
    }
}
