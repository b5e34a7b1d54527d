//! Functions over texts that work on bytes as soon as one argument has bytes.
//!
//! A text of MySQL's character set `binary` has bytes for characters. The bodies of the functions
//! know characters only, so each byte of such a call is given to them as the character of the same
//! number, and each character that they return is a byte again. That holds for the bytes of any
//! text beside it, too: a position counts them. **Cost**: two copies of the bytes.

use super::own::{LIKE, SUM_ARGUMENT, TO_DOUBLE, TO_NUMBER, TRIM_LEADING, TRIM_TRAILING};
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

/// Whether a function takes a number at a place, where bytes are no text.
pub(crate) fn takes_number(name: &str, index: usize) -> bool {
    match name {
        "abs" | "acos" | "asin" | "atan" | "bit_count" | "ceil" | "char" | "cos" | "cot"
        | "degrees" | "exp" | "floor" | "from_days" | "inet_ntoa" | "interval" | "ln" | "log"
        | "log10" | "log2" | "makedate" | "maketime" | "period_add" | "period_diff" | "pow"
        | "radians" | "rand" | "round" | "sec_to_time" | "sign" | "sin" | "sleep" | "space"
        | "sqrt" | SUM_ARGUMENT | "tan" | TO_DOUBLE | TO_NUMBER | "truncate" => true,
        "elt" | "from_unixtime" | "make_set" => index == 0,
        "date_add" | "date_sub" | "left" | "lpad" | "repeat" | "right" | "rpad" | "sha2"
        | "timestampadd" | "week" | "yearweek" => index == 1,
        "locate" | "substring_index" => index == 2,
        "conv" | "insert" | "substring" => index == 1 || index == 2,
        "format" => index < 2,
        "export_set" => index == 0 || index == 4,
        "regexp_instr" => (2..=4).contains(&index),
        "regexp_substr" => index == 2 || index == 3,
        "regexp_replace" => index == 3 || index == 4,
        _ => false,
    }
}

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

/// Whether values are bytes where a text is wanted. Beside others a BIT is compared as a number.
fn is_binary_string(name: &str, field: &FieldRef) -> bool {
    let is_bit = || ColumnType::from_arrow(field).is_binary_string();
    let of = field.data_type();
    is_binary(of) || *of == DataType::UInt64 && name != "field" && is_bit()
}

/// Whether a call has bytes where a text is wanted.
fn has_bytes(name: &str, fields: &[FieldRef]) -> bool {
    let mut places = fields.iter().enumerate();
    places.any(|(index, field)| is_binary_string(name, field) && !takes_number(name, index))
}

/// Whether a call works on bytes that are given to it as characters.
pub(super) fn applies(name: &str, fields: &[FieldRef]) -> bool {
    has_bytes(name, fields) && NAMES.contains(&name)
}

/// The type of the result of a call: bytes in the place of a text where it works on bytes.
pub(super) fn result_type(name: &str, fields: &[FieldRef], of: ColumnType) -> ColumnType {
    match of {
        ColumnType::Text(_) if returns_bytes(name) && has_bytes(name, fields) => {
            ColumnType::Blob(BlobSize::Long)
        }
        other => other,
    }
}

/// The arguments of such a call, bytes as characters.
pub(super) fn arguments(name: &str, arguments: &ScalarFunctionArgs) -> Result<ScalarFunctionArgs> {
    let mut args = Vec::with_capacity(arguments.args.len());
    let mut arg_fields = Vec::with_capacity(arguments.args.len());
    for (index, (value, field)) in arguments.args.iter().zip(&arguments.arg_fields).enumerate() {
        let is_string = is_binary_string(name, field) || is_text(field.data_type());
        if !is_string || takes_number(name, index) {
            args.push(value.clone());
            arg_fields.push(Arc::clone(field));
            continue;
        }
        args.push(match value {
            ColumnarValue::Array(array) => ColumnarValue::Array(characters(array, field)?),
            ColumnarValue::Scalar(value) => {
                let one = characters(&value.to_array_of_size(1)?, field)?;
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

fn characters(array: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    let values = convert::to_bytes(array, &ColumnType::from_arrow(field))?;
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
