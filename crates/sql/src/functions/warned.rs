//! Constants whose computation warns, where not every row asks for them.
//!
//! The engine computes a constant once, while it plans. What warns then warns for a row that never
//! asks for it: `IF(a > 0, a, 1 / 0)`. Such a constant becomes a function without arguments, which
//! has the value at hand, and warns for each row that is asked of it.

use std::hash::{Hash, Hasher};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use mayfly_types::Warning;

use super::own::WARNED;
use super::session_values::SessionValues;

#[derive(Debug)]
struct Warned {
    value: ScalarValue,
    field: FieldRef,
    warnings: Vec<Warning>,
    signature: Signature,
}

/// A function that yields a value, and warns for each row. `field` is the type of the value.
pub(crate) fn warned(value: ScalarValue, field: FieldRef, warnings: Vec<Warning>) -> ScalarUDF {
    ScalarUDF::new_from_impl(Warned {
        value,
        field,
        warnings,
        // Not of one value: it would be computed before a row asks.
        signature: Signature::nullary(Volatility::Volatile),
    })
}

impl Warned {
    fn messages(&self) -> impl Iterator<Item = &str> {
        self.warnings
            .iter()
            .map(|warning| warning.error.message.as_str())
    }
}

impl PartialEq for Warned {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
            && self.field == other.field
            && self.messages().eq(other.messages())
    }
}

impl Eq for Warned {}

impl Hash for Warned {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
        for message in self.messages() {
            message.hash(state);
        }
    }
}

impl ScalarUDFImpl for Warned {
    fn name(&self) -> &'static str {
        WARNED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type is that of a field")
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(FieldRef::clone(&self.field))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(session) = arguments.config_options.extensions.get::<SessionValues>() {
            for _ in 0..arguments.number_rows {
                for warning in &self.warnings {
                    session.warn(warning.clone());
                }
            }
        }
        Ok(ColumnarValue::Scalar(self.value.clone()))
    }
}
