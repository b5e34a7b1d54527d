//! A function that hands its argument on without the MySQL type in the field's metadata.
//!
//! DataFusion refuses a recursive common table expression whose two terms differ in metadata, as
//! `1` and `i + 1` do. Both terms are wrapped in this function.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

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
        let data_type = arguments.arg_fields[0].data_type().clone();
        Ok(Arc::new(Field::new(NAME, data_type, true)))
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(arguments.args.swap_remove(0))
    }
}
