//! Constants of a plan that are others in each run.
//!
//! Owns: what stands for such a constant while rules make the plan and when it runs, the values of
//! the run that this thread is in, and [`OuterRow`], those of the row that a subquery runs for.
//! Never: tells which constants these are (`mayfly_session` finds out).
//!
//! Rules see a placeholder: of that they know a type and no value, so what they make holds for all
//! values. Behind them it is a function, which operators can run.
//!
//! A short plan runs on the thread that asks, and starts no task. So the values lie where the
//! thread finds them, and the plan itself is never copied. Runs of a subquery may take many
//! threads, but follow one another: one place for the values of all of them is enough.

use std::borrow::Cow;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use crate::lock::lock;
use crate::run_values;

/// What the names of placeholders begin with.
const PLACEHOLDER: &str = "$slot_";

thread_local! {
    /// The values of the run that this thread is in, by their place.
    static VALUES: RefCell<Vec<ScalarValue>> = const { RefCell::new(Vec::new()) };
}

/// The values of an outer row that a subquery names, by their place.
#[derive(Debug, Default)]
pub struct OuterRow(Mutex<RowValues>);

#[derive(Debug, Default)]
struct RowValues {
    values: Vec<ScalarValue>,
    /// The number of the operator whose runs see them.
    owner: u64,
}

impl OuterRow {
    /// The expression of a value, in the plan of the subquery.
    pub fn value(self: &Arc<Self>, place: usize, field: FieldRef) -> Expr {
        Slot::call(Values::OfRow(Arc::clone(self)), place, field)
    }

    /// Makes who calls the only one that sets values from now on; returns its number. An operator
    /// that was dropped in a run of a plan around it may not have ended yet when the next run
    /// begins.
    pub(crate) fn own(&self) -> u64 {
        let mut row = lock(&self.0);
        row.owner += 1;
        row.owner
    }

    /// Lets the next run see these values.
    ///
    /// # Errors
    /// If another one has become the owner.
    pub(crate) fn set(&self, owner: u64, values: Vec<ScalarValue>) -> Result<()> {
        let mut row = lock(&self.0);
        if row.owner != owner {
            return internal_err!("two operators run one subquery at the same time");
        }
        row.values = values;
        Ok(())
    }
}

/// Where the values of a run are.
#[derive(Debug)]
enum Values {
    /// With the thread that runs the plan.
    OfThread,
    /// With the row that a subquery runs for.
    OfRow(Arc<OuterRow>),
}

/// An outer row is itself, whatever its values are at the moment.
impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::OfThread, Self::OfThread) => true,
            (Self::OfRow(row), Self::OfRow(other)) => Arc::ptr_eq(row, other),
            _ => false,
        }
    }
}

impl Eq for Values {}

impl Hash for Values {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if let Self::OfRow(row) = self {
            Arc::as_ptr(row).hash(state);
        }
    }
}

/// A constant of a plan by its place among the values of a run.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Slot {
    values: Values,
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
    with_placeholders(plan, |place, field| {
        Some(Slot::call(Values::OfThread, place, field))
    })
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

fn slot_of(function: &ScalarUDF) -> Option<&Slot> {
    function.inner().downcast_ref::<Slot>()
}

/// Whether a function stands for a value of a run: it is the same for all rows, and only read.
pub(crate) fn is_slot(function: &ScalarUDF) -> bool {
    slot_of(function).is_some()
}

/// Whether a function stands for a value of the row that a subquery runs for.
pub(crate) fn is_of_outer_row(function: &ScalarUDF) -> bool {
    slot_of(function).is_some_and(|slot| matches!(slot.values, Values::OfRow(_)))
}

fn slot_of_thread(function: &ScalarUDF) -> Option<&Slot> {
    slot_of(function).filter(|slot| slot.values == Values::OfThread)
}

/// Runs something with values for the slots of plans.
pub fn with_values<T>(values: Vec<ScalarValue>, run: impl FnOnce() -> T) -> T {
    run_values::with(&VALUES, values, run)
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
            match slot_of_thread(&function.func) {
                Some(slot) => Ok(Transformed::yes(Expr::Literal(slot.value()?, None))),
                None => Ok(Transformed::no(expr)),
            }
        });
        filter.data()
    });
    filled.collect::<Result<Vec<_>>>().map(Cow::Owned)
}

impl Slot {
    /// What stands for the value of a place when the plan runs.
    fn call(values: Values, place: usize, field: FieldRef) -> Expr {
        let name = match &values {
            Values::OfThread => format!("slot_{place}"),
            Values::OfRow(_) => format!("outer_value_{place}"),
        };
        let function = ScalarUDF::from(Slot {
            values,
            place,
            name,
            field,
            signature: Signature::nullary(Volatility::Stable),
        });
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), Vec::new()))
    }

    fn value(&self) -> Result<ScalarValue> {
        let value = match &self.values {
            Values::OfThread => VALUES.with_borrow(|values| values.get(self.place).cloned()),
            Values::OfRow(row) => lock(&row.0).values.get(self.place).cloned(),
        };
        value.ok_or_else(|| internal_datafusion_err!("a plan runs without {}", self.name))
    }
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
        self.value().map(ColumnarValue::Scalar)
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
        let slot = |place, field| Some(Slot::call(Values::OfThread, place, field));
        let runnable = |expr| replaced(expr, &slot);
        let condition = [placed.transform_up(runnable).data().unwrap()];
        let values = |second: i32| vec![ScalarValue::Int32(Some(9)), second.into()];
        for second in [5, 7] {
            let filled = with_values(values(second), || filled(&condition).unwrap().into_owned());
            assert_eq!(filled, [col("k").gt(lit(second))]);
        }
        assert_eq!(filled(&condition).unwrap().as_ref(), condition);
        assert!(with_values(values(5)[..1].to_vec(), || filled(&condition).is_err()));
    }

    #[test]
    fn a_value_of_an_outer_row_is_none_of_the_thread() {
        let rows: [Arc<OuterRow>; 2] = Default::default();
        let field = || Arc::new(Field::new("outer", DataType::Int32, true));
        let value = |row: &Arc<OuterRow>| row.value(0, field());
        assert_eq!(value(&rows[0]), value(&rows[0]));
        assert_ne!(value(&rows[0]), value(&rows[1]));
        let Expr::ScalarFunction(call) = value(&rows[0]) else {
            panic!("a call");
        };
        assert!(is_of_outer_row(&call.func));
        let slot = call.func.inner().downcast_ref::<Slot>().unwrap();
        assert!(slot.value().is_err());
        let owners = [rows[0].own(), rows[0].own()];
        assert!(rows[0].set(owners[0], vec![ScalarValue::from(4)]).is_err());
        rows[0].set(owners[1], vec![ScalarValue::from(5)]).unwrap();
        assert_eq!(slot.value().unwrap(), ScalarValue::from(5));
        let condition = [col("k").gt(value(&rows[0]))];
        let filled = with_values(vec![ScalarValue::from(7)], || {
            filled(&condition).unwrap().into_owned()
        });
        assert_eq!(filled, condition);
    }
}
