//! What makes a value of a subquery: the functions that [`crate::typing`] puts around it.
//!
//! A correlated subquery becomes a join, which computes its value for every group of its table,
//! needed or not. Whether a group has more than one row may therefore be asked only behind the
//! join: `pair` carries value and count through it, `single` looks.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use mayfly_types::{ErrorCode, MySqlError};

use super::define::nameless;
use super::raise::raise;

/// The functions, none of which has a name that a statement can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// A value and the number of rows that it was taken from; NULL for no row.
    Pair,
    /// The value of a pair; error 1242 if it was taken from more than one row.
    Single,
    /// Its argument, as a value that may be NULL.
    Nullable,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfSubquery {
    kind: Kind,
    signature: Signature,
}

fn make(kind: Kind) -> ScalarUDF {
    let volatility = match kind {
        // What is known beforehand would become a constant, which is not NULL.
        Kind::Nullable => Volatility::Volatile,
        Kind::Pair | Kind::Single => Volatility::Immutable,
    };
    ScalarUDF::new_from_impl(OfSubquery {
        kind,
        signature: Signature::variadic_any(volatility),
    })
}

/// The function over a value and a count of rows.
pub(crate) fn pair() -> ScalarUDF {
    make(Kind::Pair)
}

/// The function over a pair.
pub(crate) fn single() -> ScalarUDF {
    make(Kind::Single)
}

/// The function over any value.
pub(crate) fn nullable() -> ScalarUDF {
    make(Kind::Nullable)
}

/// Whether the one column of a plan is what [`nullable`] makes of another.
pub(crate) fn is_nullable_value(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Projection(projection) = plan else {
        return false;
    };
    match projection.expr.first().map(|expr| expr.clone().unalias()) {
        Some(Expr::ScalarFunction(call)) => {
            let function = call.func.inner().downcast_ref::<OfSubquery>();
            function.is_some_and(|function| function.kind == Kind::Nullable)
        }
        _ => false,
    }
}

/// The fields of a pair.
fn fields(value: &Field) -> Fields {
    let value = value.clone().with_name("value").with_nullable(true);
    let rows = Field::new("rows", DataType::Int64, true);
    Fields::from(vec![value, rows])
}

impl ScalarUDFImpl for OfSubquery {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Pair => "mayfly pair",
            Kind::Single => "mayfly single",
            Kind::Nullable => "mayfly nullable",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(self.result(&nameless(types)).data_type().clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(self.result(arguments.arg_fields)))
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.kind == Kind::Nullable {
            return Ok(arguments.args.swap_remove(0));
        }
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let constant = arguments
            .args
            .iter()
            .all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let array: ArrayRef = match self.kind {
            Kind::Pair => {
                let rows = arrays[1].as_primitive::<Int64Type>();
                let none = rows.iter().map(|rows| rows == Some(0)).collect();
                let nulls = arrow::compute::not(&none)?;
                let nulls = arrow::buffer::NullBuffer::new(nulls.values().clone());
                let fields = fields(&arguments.arg_fields[0]);
                Arc::new(StructArray::try_new(fields, arrays, Some(nulls))?)
            }
            _ => value_of(arrays[0].as_struct())?,
        };
        if constant {
            let value = datafusion::common::ScalarValue::try_from_array(&array, 0)?;
            return Ok(ColumnarValue::Scalar(value));
        }
        Ok(ColumnarValue::Array(array))
    }
}

impl OfSubquery {
    fn result(&self, arguments: &[FieldRef]) -> Field {
        let first = arguments[0].as_ref();
        match (self.kind, first.data_type()) {
            (Kind::Pair, _) => Field::new(self.name(), DataType::Struct(fields(first)), true),
            (Kind::Single, DataType::Struct(fields)) => fields[0].as_ref().clone(),
            _ => first.clone(),
        }
        .with_name(self.name())
        .with_nullable(true)
    }
}

fn value_of(pairs: &StructArray) -> Result<ArrayRef> {
    let rows = pairs.column(1).as_primitive::<Int64Type>();
    for row in 0..pairs.len() {
        if pairs.is_valid(row) && rows.value(row) > 1 {
            return Err(raise(MySqlError::new(ErrorCode::SubqueryRows, &[])));
        }
    }
    let missing = arrow::compute::is_null(pairs)?;
    Ok(nullif(pairs.column(0), &missing)?)
}
