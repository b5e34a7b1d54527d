//! A cell as MySQL's text protocol prints it.
//!
//! Where a value becomes text for the shell; escapes and quotes belong to the output format.
//! Numbers and times are spelled by `mayfly_types`, as in CONCAT and on the wire. Lists, structs
//! and maps of files are written as the text of a JSON document.

use std::io::Write;

use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Field, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use mayfly_types::ColumnType;
use mayfly_types::spelling::{
    SECOND_MICROS, write_date, write_decimal, write_digits, write_double, write_fixed, write_float,
    write_moment, write_quoted, write_time,
};

const DAY_MILLIS: i64 = 86_400_000;

/// Appends the text of one cell to `out`; returns `false`, and appends nothing, for NULL.
pub fn write_cell(out: &mut Vec<u8>, array: &ArrayRef, row: usize, of: &ColumnType) -> bool {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        return false;
    }
    let array: &dyn Array = array.as_ref();
    match array.data_type() {
        DataType::Boolean => out.push(b'0' + u8::from(array.as_boolean().value(row))),
        DataType::Int8 => print(out, int::<Int8Type>(array, row)),
        DataType::Int16 => print(out, int::<Int16Type>(array, row)),
        DataType::Int32 => print(out, int::<Int32Type>(array, row)),
        DataType::Int64 => print(out, int::<Int64Type>(array, row)),
        DataType::UInt8 => print(out, int::<UInt8Type>(array, row)),
        DataType::UInt16 if *of == ColumnType::Year => {
            append(out, format_args!("{:04}", int::<UInt16Type>(array, row)));
        }
        DataType::UInt16 => print(out, int::<UInt16Type>(array, row)),
        DataType::UInt32 => print(out, int::<UInt32Type>(array, row)),
        DataType::UInt64 => match of {
            ColumnType::Bit { length } => {
                let bytes = usize::from(*length).div_ceil(8).max(1);
                let value = int::<UInt64Type>(array, row).to_be_bytes();
                out.extend_from_slice(&value[value.len() - bytes..]);
            }
            _ => print(out, int::<UInt64Type>(array, row)),
        },
        DataType::Float16 => write_float(f32::from(int::<Float16Type>(array, row)), out),
        DataType::Float32 => {
            let value = int::<Float32Type>(array, row);
            if !floating(out, f64::from(value), of) {
                write_float(value, out);
            }
        }
        DataType::Float64 => {
            let value = int::<Float64Type>(array, row);
            if !floating(out, value, of) {
                write_double(value, out);
            }
        }
        DataType::Decimal128(_, scale) => {
            write_decimal(int::<Decimal128Type>(array, row), *scale, out);
        }
        DataType::Decimal256(_, scale) => {
            let digits = int::<Decimal256Type>(array, row).to_string();
            write_digits(&digits, *scale, out);
        }
        DataType::Utf8 => out.extend_from_slice(array.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => {
            out.extend_from_slice(array.as_string::<i64>().value(row).as_bytes());
        }
        DataType::Utf8View => out.extend_from_slice(array.as_string_view().value(row).as_bytes()),
        DataType::Binary => out.extend_from_slice(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => out.extend_from_slice(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => out.extend_from_slice(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => {
            out.extend_from_slice(array.as_fixed_size_binary().value(row));
        }
        DataType::Date32 => write_date(i64::from(int::<Date32Type>(array, row)), out),
        DataType::Date64 => {
            let millis = int::<Date64Type>(array, row);
            write_date(millis.div_euclid(DAY_MILLIS), out);
        }
        DataType::Timestamp(unit, _) => {
            let micros = match unit {
                TimeUnit::Second => {
                    int::<TimestampSecondType>(array, row).saturating_mul(SECOND_MICROS)
                }
                TimeUnit::Millisecond => {
                    int::<TimestampMillisecondType>(array, row).saturating_mul(1000)
                }
                TimeUnit::Microsecond => int::<TimestampMicrosecondType>(array, row),
                TimeUnit::Nanosecond => int::<TimestampNanosecondType>(array, row).div_euclid(1000),
            };
            write_moment(micros, of.written_second_digits(), out);
        }
        DataType::Time32(TimeUnit::Second) => {
            let seconds = i64::from(int::<Time32SecondType>(array, row));
            write_time(seconds * SECOND_MICROS, of.written_second_digits(), out);
        }
        DataType::Time32(_) => {
            let millis = i64::from(int::<Time32MillisecondType>(array, row));
            write_time(millis * 1000, of.written_second_digits(), out);
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            let micros = int::<Time64MicrosecondType>(array, row);
            write_time(micros, of.written_second_digits(), out);
        }
        DataType::Time64(_) => {
            let nanos = int::<Time64NanosecondType>(array, row);
            write_time(nanos / 1000, of.written_second_digits(), out);
        }
        DataType::Duration(unit) => {
            let micros = match unit {
                TimeUnit::Second => {
                    int::<DurationSecondType>(array, row).saturating_mul(SECOND_MICROS)
                }
                TimeUnit::Millisecond => {
                    int::<DurationMillisecondType>(array, row).saturating_mul(1000)
                }
                TimeUnit::Microsecond => int::<DurationMicrosecondType>(array, row),
                TimeUnit::Nanosecond => int::<DurationNanosecondType>(array, row) / 1000,
            };
            write_time(micros, of.written_second_digits(), out);
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let key = dictionary.normalized_keys()[row];
            return write_cell(out, dictionary.values(), key, of);
        }
        data_type if data_type.is_nested() => write_nested(out, array, row),
        _ => match ArrayFormatter::try_new(array, &FormatOptions::default()) {
            Ok(formatter) => append(out, format_args!("{}", formatter.value(row))),
            Err(error) => append(out, format_args!("{error}")),
        },
    }
    true
}

/// The text of one cell, `None` for NULL; bytes that are not UTF-8 are replaced.
pub fn cell(array: &ArrayRef, row: usize, of: &ColumnType) -> Option<String> {
    let mut out = Vec::new();
    write_cell(&mut out, array, row, of).then(|| match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// One value inside a document.
fn write_json(out: &mut Vec<u8>, array: &ArrayRef, row: usize, field: &Field) {
    let data_type = array.data_type();
    if array.is_null(row) || data_type == &DataType::Null {
        out.extend_from_slice(b"null");
        return;
    }
    match data_type {
        DataType::Boolean => {
            let word: &[u8] = match array.as_boolean().value(row) {
                true => b"true",
                false => b"false",
            };
            out.extend_from_slice(word);
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let key = dictionary.normalized_keys()[row];
            write_json(out, dictionary.values(), key, field);
        }
        nested if nested.is_nested() => write_nested(out, array.as_ref(), row),
        number if number.is_numeric() => {
            let start = out.len();
            write_cell(out, array, row, &ColumnType::from_arrow(field));
            let text = &out[start..];
            if !text.iter().any(u8::is_ascii_digit) {
                // Not a number, or infinite: no JSON.
                out.truncate(start);
                out.extend_from_slice(b"null");
            } else if number.is_floating() && text.iter().all(|b| b.is_ascii_digit() || *b == b'-')
            {
                out.extend_from_slice(b".0");
            }
        }
        _ => {
            let text = cell(array, row, &ColumnType::from_arrow(field)).unwrap_or_default();
            write_quoted(&text, out);
        }
    }
}

/// A list, a struct or a map as the text of a JSON document, spaced as MySQL does.
fn write_nested(out: &mut Vec<u8>, array: &dyn Array, row: usize) {
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
        _ => {
            let text = match ArrayFormatter::try_new(array, &FormatOptions::default()) {
                Ok(formatter) => formatter.value(row).to_string(),
                Err(error) => error.to_string(),
            };
            write_quoted(&text, out);
        }
    }
}

fn write_object(out: &mut Vec<u8>, array: &StructArray, row: usize) {
    out.push(b'{');
    for (index, (field, values)) in array.fields().iter().zip(array.columns()).enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        write_quoted(field.name(), out);
        out.extend_from_slice(b": ");
        write_json(out, values, row, field);
    }
    out.push(b'}');
}

fn write_list(out: &mut Vec<u8>, values: &ArrayRef, field: &Field) {
    out.push(b'[');
    for row in 0..values.len() {
        if row > 0 {
            out.extend_from_slice(b", ");
        }
        write_json(out, values, row, field);
    }
    out.push(b']');
}

fn write_map(out: &mut Vec<u8>, entries: &StructArray) {
    out.push(b'{');
    if let ([keys, values], [key, value]) = (entries.columns(), entries.fields().as_ref()) {
        for row in 0..entries.len() {
            if row > 0 {
                out.extend_from_slice(b", ");
            }
            let name = cell(keys, row, &ColumnType::from_arrow(key)).unwrap_or_default();
            write_quoted(&name, out);
            out.extend_from_slice(b": ");
            write_json(out, values, row, value);
        }
    }
    out.push(b'}');
}

/// A floating-point number: the digits of its type, or as many as it has.
fn floating(out: &mut Vec<u8>, value: f64, of: &ColumnType) -> bool {
    let Some(digits) = of.shown_digits() else {
        return false;
    };
    write_fixed(value, digits, out);
    true
}

fn int<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}

fn print(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    append(out, format_args!("{value}"));
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text)
        .expect("writing to a vector cannot fail");
}
