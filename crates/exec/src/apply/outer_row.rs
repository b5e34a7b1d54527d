//! The row that a subquery runs for.
//!
//! Owns: [`OuterRow`], and the expression that reads a value of it. Runs of one subquery follow one
//! another, on whatever threads, so one place for the values is enough, and the plan is made once.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::lock::lock;

/// The values of an outer row that a subquery names, by their place.
#[derive(Debug, Default)]
pub struct OuterRow(Mutex<Vec<ScalarValue>>);

impl OuterRow {
    /// The expression of a value, in the plan of the subquery.
    pub fn value(self: &Arc<Self>, place: usize, field: FieldRef) -> Expr {
        let function = ScalarUDF::from(OuterValue {
            row: Arc::clone(self),
            place,
            name: format!("outer_value_{place}"),
            field,
            signature: Signature::nullary(Volatility::Stable),
        });
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), Vec::new()))
    }

    /// Lets the next run see these values.
    pub(super) fn set(&self, values: Vec<ScalarValue>) {
        *lock(&self.0) = values;
    }

    fn get(&self, place: usize) -> Result<ScalarValue> {
        let value = lock(&self.0).get(place).cloned();
        value.ok_or_else(|| internal_datafusion_err!("a subquery runs without an outer row"))
    }
}

#[derive(Debug)]
struct OuterValue {
    row: Arc<OuterRow>,
    place: usize,
    name: String,
    field: FieldRef,
    signature: Signature,
}

impl PartialEq for OuterValue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.row, &other.row) && self.place == other.place
    }
}

impl Eq for OuterValue {}

impl Hash for OuterValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.row).hash(state);
        self.place.hash(state);
    }
}

impl ScalarUDFImpl for OuterValue {
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
        self.row.get(self.place).map(ColumnarValue::Scalar)
    }
}
