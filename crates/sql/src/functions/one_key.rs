//! Many keys of an order as one: bytes that are in the order of the keys, and equal where they are.
//!
//! Who asks whether rows are in an order looks at each key once for each other key. A column of
//! bytes is one key, however many values it stands for.
//!
//! **Source**: the row format of `arrow-row`, by which sorts compare their keys.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// A function over keys that have an order each.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OneKey {
    options: Vec<SortOptions>,
    signature: Signature,
}

/// The key that stands for keys of these types, whose order is ascending; `None` where one of them
/// has no bytes of its order.
pub(crate) fn one_key(
    keys: Vec<(Expr, SortOptions)>,
    data_type_of: impl Fn(&Expr) -> Result<DataType>,
) -> Result<Option<Expr>> {
    let mut fields = Vec::with_capacity(keys.len());
    for (key, options) in &keys {
        fields.push(SortField::new_with_options(data_type_of(key)?, *options));
    }
    if !RowConverter::supports_fields(&fields) {
        return Ok(None);
    }
    let (keys, options) = keys.into_iter().unzip();
    let function = ScalarUDF::new_from_impl(OneKey {
        options,
        signature: Signature::variadic_any(Volatility::Immutable),
    });
    Ok(Some(function.call(keys)))
}

impl ScalarUDFImpl for OneKey {
    fn name(&self) -> &'static str {
        "mayfly one key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let keys = { arguments.args.into_iter() }.map(|key| key.into_array(rows));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let fields = { keys.iter().zip(&self.options) }
            .map(|(key, options)| SortField::new_with_options(key.data_type().clone(), *options));
        let converter = RowConverter::new(fields.collect())?;
        let bytes = converter.convert_columns(&keys)?.try_into_binary()?;
        Ok(ColumnarValue::Array(Arc::new(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, ArrayRef, Int64Array, StringArray};
    use arrow::compute::{SortColumn, lexsort_to_indices, sort_to_indices};
    use arrow::datatypes::Field;
    use datafusion::common::config::ConfigOptions;
    use datafusion::logical_expr::col;

    use super::*;

    #[test]
    fn bytes_have_the_order_of_the_keys() {
        let numbers = Int64Array::from(vec![Some(2), None, Some(-1), Some(2), None, Some(2)]);
        let texts = StringArray::from(vec![Some("b"), Some(""), None, Some("ab"), None, None]);
        let keys: [ArrayRef; 2] = [Arc::new(numbers), Arc::new(texts)];
        for (descending, nulls_first) in [(false, true), (true, false), (false, false)] {
            let options = [
                SortOptions::new(descending, nulls_first),
                SortOptions::new(!descending, nulls_first),
            ];
            let names = ["a", "b"].map(col);
            let named = names.into_iter().zip(options).collect();
            let types = |key: &Expr| Ok(keys[usize::from(*key == col("b"))].data_type().clone());
            let Some(Expr::ScalarFunction(call)) = one_key(named, types).unwrap() else {
                panic!("a call");
            };
            let arguments = ScalarFunctionArgs {
                args: keys.iter().cloned().map(ColumnarValue::Array).collect(),
                arg_fields: { keys.iter() }
                    .map(|key| Arc::new(Field::new("", key.data_type().clone(), true)))
                    .collect(),
                number_rows: keys[0].len(),
                return_field: Arc::new(Field::new("", DataType::Binary, true)),
                config_options: Arc::new(ConfigOptions::default()),
            };
            let made = call.func.invoke_with_args(arguments).unwrap();
            let made = made.into_array(keys[0].len()).unwrap();
            let ours = sort_to_indices(&made, None, None).unwrap();
            let columns: Vec<SortColumn> = { keys.iter().zip(options) }
                .map(|(key, options)| SortColumn {
                    values: Arc::clone(key),
                    options: Some(options),
                })
                .collect();
            let theirs = lexsort_to_indices(&columns, None).unwrap();
            // No two rows are equal.
            assert_eq!(ours, theirs, "{options:?}");
            assert_eq!(made.null_count(), 0);
        }
    }
}
