//! Lists, structs and maps of files as the text of a JSON document, spaced as MySQL does.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, Field};
use bytes::{BufMut, BytesMut};
use mayfly_types::ColumnType;
use mayfly_types::spelling::write_quoted;

use super::cells::Cells;
use super::text::write_plain;
use crate::bytes_out::Spelled;

fn put(out: &mut BytesMut, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends the document of a nested value.
pub(super) fn write_nested(out: &mut BytesMut, array: &ArrayRef, row: usize) {
    match array.data_type() {
        DataType::Struct(_) => write_object(out, array.as_struct(), row),
        DataType::List(field) => write_list(out, &array.as_list::<i32>().value(row), field),
        DataType::LargeList(field) => write_list(out, &array.as_list::<i64>().value(row), field),
        DataType::ListView(field) => {
            write_list(out, &array.as_list_view::<i32>().value(row), field);
        }
        DataType::LargeListView(field) => {
            write_list(out, &array.as_list_view::<i64>().value(row), field);
        }
        DataType::FixedSizeList(field, _) => {
            write_list(out, &array.as_fixed_size_list().value(row), field);
        }
        DataType::Map(_, _) => write_map(out, &array.as_map().value(row)),
        // A union, which MySQL's documents have no form for.
        _ => put(out, "null"),
    }
}

/// One value inside a document.
fn write_value(out: &mut BytesMut, array: &ArrayRef, row: usize, field: &Field) {
    let data_type = array.data_type();
    if array.is_null(row) || data_type == &DataType::Null {
        put(out, "null");
        return;
    }
    match data_type {
        DataType::Boolean => put(
            out,
            match array.as_boolean().value(row) {
                true => "true",
                false => "false",
            },
        ),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            match dictionary.normalized_keys().get(row) {
                Some(key) => write_value(out, dictionary.values(), *key, field),
                None => put(out, "null"),
            }
        }
        nested if nested.is_nested() => write_nested(out, array, row),
        number if number.is_numeric() => {
            let text = plain(array, row, field);
            if !text.iter().any(u8::is_ascii_digit) {
                // Not a number, or infinite: no JSON.
                put(out, "null");
                return;
            }
            out.extend_from_slice(&text);
            if number.is_floating() && text.iter().all(|b| b.is_ascii_digit() || *b == b'-') {
                put(out, ".0");
            }
        }
        _ => {
            let text = plain(array, row, field);
            write_quoted(&String::from_utf8_lossy(&text), &mut Spelled(out));
        }
    }
}

/// The text of a value that is not nested.
fn plain(array: &ArrayRef, row: usize, field: &Field) -> BytesMut {
    let mut text = BytesMut::new();
    match Cells::new(array, field) {
        Ok(cells) => write_plain(&mut text, cells.value(row), &ColumnType::from_arrow(field)),
        Err(error) => put(&mut text, &error.message),
    }
    text
}

fn write_object(out: &mut BytesMut, array: &StructArray, row: usize) {
    out.put_u8(b'{');
    for (index, (field, values)) in array.fields().iter().zip(array.columns()).enumerate() {
        if index > 0 {
            put(out, ", ");
        }
        write_quoted(field.name(), &mut Spelled(out));
        put(out, ": ");
        write_value(out, values, row, field);
    }
    out.put_u8(b'}');
}

fn write_list(out: &mut BytesMut, values: &ArrayRef, field: &Field) {
    out.put_u8(b'[');
    for row in 0..values.len() {
        if row > 0 {
            put(out, ", ");
        }
        write_value(out, values, row, field);
    }
    out.put_u8(b']');
}

fn write_map(out: &mut BytesMut, entries: &StructArray) {
    out.put_u8(b'{');
    if let ([keys, values], [key, value]) = (entries.columns(), entries.fields().as_ref()) {
        for row in 0..entries.len() {
            if row > 0 {
                put(out, ", ");
            }
            let name = plain(keys, row, key);
            write_quoted(&String::from_utf8_lossy(&name), &mut Spelled(out));
            put(out, ": ");
            write_value(out, values, row, value);
        }
    }
    out.put_u8(b'}');
}
