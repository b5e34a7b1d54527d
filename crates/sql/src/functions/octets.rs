//! Functions over texts that work on bytes as soon as one argument has bytes.
//!
//! A text of MySQL's character set `binary` has bytes for characters. The bodies of the functions
//! know characters only, so each byte of such a call is given to them as the character of the same
//! number, and each character that they return is a byte again. That holds for the bytes of any
//! text beside it, too: a position counts them. **Cost**: two copies of the bytes.

use super::own::{LIKE, TRIM_LEADING, TRIM_TRAILING};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use mayfly_types::{BlobSize, ColumnType};

use super::call::Call;
use super::convert;

/// The functions that work so.
const NAMES: &[&str] = &[
    "concat",
    "concat_ws",
    "repeat",
    "lpad",
    "rpad",
    "replace",
    "reverse",
    "insert",
    "left",
    "right",
    "substring",
    "substring_index",
    "trim",
    "ltrim",
    "rtrim",
    TRIM_LEADING,
    TRIM_TRAILING,
    "elt",
    "make_set",
    "quote",
    "instr",
    "locate",
    "field",
    "find_in_set",
    "strcmp",
    LIKE,
    "regexp_like",
    "regexp_instr",
    "regexp_substr",
    "regexp_replace",
];

/// Functions that leave bytes as they are.
const OF_LETTERS: &[&str] = &["upper", "lower"];

fn is_binary(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    )
}

fn is_text(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// Whether a function with bytes among its arguments returns bytes in the place of a text.
pub(crate) fn returns_bytes(name: &str) -> bool {
    NAMES.contains(&name) || OF_LETTERS.contains(&name)
}

/// Whether a call works on bytes that are given to it as characters.
pub(super) fn applies(name: &str, fields: &[FieldRef]) -> bool {
    fields.iter().any(|field| is_binary(field.data_type())) && NAMES.contains(&name)
}

/// The type of the result of a call: bytes in the place of a text where it works on bytes.
pub(super) fn result_type(name: &str, fields: &[FieldRef], of: ColumnType) -> ColumnType {
    let has_bytes = || fields.iter().any(|field| is_binary(field.data_type()));
    match of {
        ColumnType::Text(_) if has_bytes() && returns_bytes(name) => {
            ColumnType::Blob(BlobSize::Long)
        }
        other => other,
    }
}

/// The arguments of such a call, bytes as characters.
pub(super) fn arguments(arguments: &ScalarFunctionArgs) -> Result<ScalarFunctionArgs> {
    let mut args = Vec::with_capacity(arguments.args.len());
    let mut arg_fields = Vec::with_capacity(arguments.args.len());
    for (value, field) in arguments.args.iter().zip(&arguments.arg_fields) {
        if !is_binary(field.data_type()) && !is_text(field.data_type()) {
            args.push(value.clone());
            arg_fields.push(Arc::clone(field));
            continue;
        }
        args.push(match value {
            ColumnarValue::Array(array) => ColumnarValue::Array(characters(array)?),
            ColumnarValue::Scalar(value) => {
                let one = characters(&value.to_array_of_size(1)?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&one, 0)?)
            }
        });
        arg_fields.push(Arc::new(Field::new(field.name(), DataType::Utf8View, true)));
    }
    let return_field = match is_binary(arguments.return_field.data_type()) {
        true => Arc::new(Field::new("", DataType::Utf8View, true)),
        false => Arc::clone(&arguments.return_field),
    };
    Ok(ScalarFunctionArgs {
        args,
        arg_fields,
        return_field,
        number_rows: arguments.number_rows,
        config_options: Arc::clone(&arguments.config_options),
    })
}

/// The result of such a call, characters as bytes.
pub(super) fn result(call: &Call<'_>, array: ArrayRef) -> Result<ArrayRef> {
    if !is_text(array.data_type()) {
        return Ok(array);
    }
    let array = convert::plain(&array)?;
    let values = array.as_string_view();
    call.make_bytes(|row, out| {
        if values.is_null(row) {
            return Ok(false);
        }
        // A body makes no other characters than those that it was given, and ASCII.
        let characters = values.value(row).chars();
        out.extend(characters.map(|character| u8::try_from(character).unwrap_or(b'?')));
        Ok(true)
    })
}

fn characters(array: &ArrayRef) -> Result<ArrayRef> {
    let values = convert::to_bytes(array, &ColumnType::Null)?;
    let mut builder = StringViewBuilder::with_capacity(values.len());
    let mut text = String::new();
    for value in &values {
        let Some(value) = value else {
            builder.append_null();
            continue;
        };
        text.clear();
        text.extend(value.iter().map(|byte| char::from(*byte)));
        builder.append_value(&text);
    }
    Ok(Arc::new(builder.finish()))
}
