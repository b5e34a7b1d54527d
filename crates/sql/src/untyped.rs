//! A function that hands its argument on without the MySQL type in the field's metadata.
//!
//! The two terms of a recursive common table expression differ in it, as `1` and `i + 1` do, and
//! the engine reads the rows of either as those of the first. Both are wrapped in this function.
//! What says how many digits a value shows stays: the typing makes it that of the first term.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use mayfly_types::ColumnType;

/// A name that no statement can write.
pub(crate) const NAME: &str = "mayfly untyped";

/// The function.
pub fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(Untyped {
        signature: Signature::any(1, Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Untyped {
    signature: Signature,
}

impl ScalarUDFImpl for Untyped {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = &arguments.arg_fields[0];
        let of = ColumnType::from_arrow(field);
        Ok(Arc::new(
            match of.is_temporal() || of.shown_digits().is_some() {
                true => of.to_arrow(NAME, true),
                false => Field::new(NAME, field.data_type().clone(), true),
            },
        ))
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(arguments.args.swap_remove(0))
    }
}
