//! Arrow arrays as sequences of [`Value`]: one downcast a batch, one match a cell.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray,
    LargeBinaryArray, LargeStringArray, PrimitiveArray, StringArray, StringViewArray, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, TimeUnit};
use bytes::{BufMut, BytesMut};
use mayfly_types::spelling::{SECOND_MICROS, write_quoted};
use mayfly_types::{ColumnType, MySqlError};

use super::text::write_plain;
use crate::bytes_out::Spelled;
use crate::error::not_supported;
use crate::value::Value;

const MILLI_MICROS: i64 = 1000;
const DAY_MILLIS: i64 = 86_400_000;

/// One column of a batch.
pub(super) struct Cells<'a> {
    nulls: Option<&'a NullBuffer>,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Null,
    Boolean(&'a BooleanArray),
    Int8(&'a PrimitiveArray<Int8Type>),
    Int16(&'a PrimitiveArray<Int16Type>),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    UInt8(&'a PrimitiveArray<UInt8Type>),
    UInt16(&'a PrimitiveArray<UInt16Type>),
    UInt32(&'a PrimitiveArray<UInt32Type>),
    UInt64(&'a PrimitiveArray<UInt64Type>),
    Float16(&'a PrimitiveArray<Float16Type>),
    Float32(&'a PrimitiveArray<Float32Type>),
    Float64(&'a PrimitiveArray<Float64Type>),
    Decimal32(&'a PrimitiveArray<Decimal32Type>, i8),
    Decimal64(&'a PrimitiveArray<Decimal64Type>, i8),
    Decimal128(&'a PrimitiveArray<Decimal128Type>, i8),
    Decimal256(&'a PrimitiveArray<Decimal256Type>, i8),
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a StringViewArray),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    FixedBinary(&'a FixedSizeBinaryArray),
    Date32(&'a PrimitiveArray<Date32Type>),
    Date64(&'a PrimitiveArray<Date64Type>),
    MomentSecond(&'a PrimitiveArray<TimestampSecondType>),
    MomentMilli(&'a PrimitiveArray<TimestampMillisecondType>),
    MomentMicro(&'a PrimitiveArray<TimestampMicrosecondType>),
    MomentNano(&'a PrimitiveArray<TimestampNanosecondType>),
    TimeSecond(&'a PrimitiveArray<Time32SecondType>),
    TimeMilli(&'a PrimitiveArray<Time32MillisecondType>),
    TimeMicro(&'a PrimitiveArray<Time64MicrosecondType>),
    TimeNano(&'a PrimitiveArray<Time64NanosecondType>),
    DurationSecond(&'a PrimitiveArray<DurationSecondType>),
    DurationMilli(&'a PrimitiveArray<DurationMillisecondType>),
    DurationMicro(&'a PrimitiveArray<DurationMicrosecondType>),
    DurationNano(&'a PrimitiveArray<DurationNanosecondType>),
    Dictionary(Vec<usize>, Box<Cells<'a>>),
    /// A list, a struct or a map: the text of a JSON document.
    Document(&'a ArrayRef),
}

impl<'a> Cells<'a> {
    /// # Errors
    /// 1235 for Arrow types that no column of MySQL can show.
    pub(super) fn new(array: &'a ArrayRef, field: &Field) -> Result<Cells<'a>, MySqlError> {
        let kind = match array.data_type() {
            DataType::Null => Kind::Null,
            DataType::Boolean => Kind::Boolean(array.as_boolean()),
            DataType::Int8 => Kind::Int8(array.as_primitive()),
            DataType::Int16 => Kind::Int16(array.as_primitive()),
            DataType::Int32 => Kind::Int32(array.as_primitive()),
            DataType::Int64 => Kind::Int64(array.as_primitive()),
            DataType::UInt8 => Kind::UInt8(array.as_primitive()),
            DataType::UInt16 => Kind::UInt16(array.as_primitive()),
            DataType::UInt32 => Kind::UInt32(array.as_primitive()),
            DataType::UInt64 => Kind::UInt64(array.as_primitive()),
            DataType::Float16 => Kind::Float16(array.as_primitive()),
            DataType::Float32 => Kind::Float32(array.as_primitive()),
            DataType::Float64 => Kind::Float64(array.as_primitive()),
            DataType::Decimal32(_, scale) => Kind::Decimal32(array.as_primitive(), *scale),
            DataType::Decimal64(_, scale) => Kind::Decimal64(array.as_primitive(), *scale),
            DataType::Decimal128(_, scale) => Kind::Decimal128(array.as_primitive(), *scale),
            DataType::Decimal256(_, scale) => Kind::Decimal256(array.as_primitive(), *scale),
            DataType::Utf8 => Kind::Utf8(array.as_string()),
            DataType::LargeUtf8 => Kind::LargeUtf8(array.as_string()),
            DataType::Utf8View => Kind::Utf8View(array.as_string_view()),
            DataType::Binary => Kind::Binary(array.as_binary()),
            DataType::LargeBinary => Kind::LargeBinary(array.as_binary()),
            DataType::BinaryView => Kind::BinaryView(array.as_binary_view()),
            DataType::FixedSizeBinary(_) => Kind::FixedBinary(array.as_fixed_size_binary()),
            DataType::Date32 => Kind::Date32(array.as_primitive()),
            DataType::Date64 => Kind::Date64(array.as_primitive()),
            DataType::Timestamp(unit, _) => match unit {
                TimeUnit::Second => Kind::MomentSecond(array.as_primitive()),
                TimeUnit::Millisecond => Kind::MomentMilli(array.as_primitive()),
                TimeUnit::Microsecond => Kind::MomentMicro(array.as_primitive()),
                TimeUnit::Nanosecond => Kind::MomentNano(array.as_primitive()),
            },
            DataType::Time32(TimeUnit::Second) => Kind::TimeSecond(array.as_primitive()),
            DataType::Time32(_) => Kind::TimeMilli(array.as_primitive()),
            DataType::Time64(TimeUnit::Microsecond) => Kind::TimeMicro(array.as_primitive()),
            DataType::Time64(_) => Kind::TimeNano(array.as_primitive()),
            DataType::Duration(unit) => match unit {
                TimeUnit::Second => Kind::DurationSecond(array.as_primitive()),
                TimeUnit::Millisecond => Kind::DurationMilli(array.as_primitive()),
                TimeUnit::Microsecond => Kind::DurationMicro(array.as_primitive()),
                TimeUnit::Nanosecond => Kind::DurationNano(array.as_primitive()),
            },
            DataType::Dictionary(_, _) if array.null_count() == array.len() => Kind::Null,
            DataType::Dictionary(_, _) => {
                let dictionary = array.as_any_dictionary();
                let values = Cells::new(dictionary.values(), field)?;
                Kind::Dictionary(dictionary.normalized_keys(), Box::new(values))
            }
            DataType::RunEndEncoded(_, _) => return Err(unsupported(field)),
            nested if nested.is_nested() => Kind::Document(array),
            _ => return Err(unsupported(field)),
        };
        Ok(Cells {
            nulls: array.nulls(),
            kind,
        })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// The document in a cell of a nested type.
    pub(super) fn document(&self, row: usize) -> Option<BytesMut> {
        match &self.kind {
            Kind::Document(array) if !self.is_null(row) => {
                let mut out = BytesMut::new();
                write_nested(&mut out, array, row);
                Some(out)
            }
            _ => None,
        }
    }

    /// The value of a cell that holds no document.
    pub(super) fn value(&self, row: usize) -> Value<'_> {
        if self.is_null(row) {
            return Value::Null;
        }
        match &self.kind {
            Kind::Null | Kind::Document(_) => Value::Null,
            Kind::Boolean(array) => Value::Integer(i64::from(array.value(row))),
            Kind::Int8(array) => Value::Integer(i64::from(array.value(row))),
            Kind::Int16(array) => Value::Integer(i64::from(array.value(row))),
            Kind::Int32(array) => Value::Integer(i64::from(array.value(row))),
            Kind::Int64(array) => Value::Integer(array.value(row)),
            Kind::UInt8(array) => Value::Unsigned(u64::from(array.value(row))),
            Kind::UInt16(array) => Value::Unsigned(u64::from(array.value(row))),
            Kind::UInt32(array) => Value::Unsigned(u64::from(array.value(row))),
            Kind::UInt64(array) => Value::Unsigned(array.value(row)),
            Kind::Float16(array) => Value::Float(array.value(row).to_f32()),
            Kind::Float32(array) => Value::Float(array.value(row)),
            Kind::Float64(array) => Value::Double(array.value(row)),
            Kind::Decimal32(array, scale) => Value::Decimal(i128::from(array.value(row)), *scale),
            Kind::Decimal64(array, scale) => Value::Decimal(i128::from(array.value(row)), *scale),
            Kind::Decimal128(array, scale) => Value::Decimal(array.value(row), *scale),
            Kind::Decimal256(array, scale) => Value::WideDecimal(array.value(row), *scale),
            Kind::Utf8(array) => Value::Bytes(array.value(row).as_bytes()),
            Kind::LargeUtf8(array) => Value::Bytes(array.value(row).as_bytes()),
            Kind::Utf8View(array) => Value::Bytes(array.value(row).as_bytes()),
            Kind::Binary(array) => Value::Bytes(array.value(row)),
            Kind::LargeBinary(array) => Value::Bytes(array.value(row)),
            Kind::BinaryView(array) => Value::Bytes(array.value(row)),
            Kind::FixedBinary(array) => Value::Bytes(array.value(row)),
            Kind::Date32(array) => Value::Date(array.value(row)),
            Kind::Date64(array) => {
                let day = array.value(row).div_euclid(DAY_MILLIS);
                let limit = if day < 0 { i32::MIN } else { i32::MAX };
                Value::Date(i32::try_from(day).unwrap_or(limit))
            }
            Kind::MomentSecond(array) => moment(array.value(row), SECOND_MICROS),
            Kind::MomentMilli(array) => moment(array.value(row), MILLI_MICROS),
            Kind::MomentMicro(array) => Value::Moment(array.value(row)),
            Kind::MomentNano(array) => Value::Moment(array.value(row).div_euclid(MILLI_MICROS)),
            Kind::TimeSecond(array) => time(i64::from(array.value(row)), SECOND_MICROS),
            Kind::TimeMilli(array) => time(i64::from(array.value(row)), MILLI_MICROS),
            Kind::TimeMicro(array) => Value::Time(array.value(row)),
            Kind::TimeNano(array) => Value::Time(array.value(row) / MILLI_MICROS),
            Kind::DurationSecond(array) => time(array.value(row), SECOND_MICROS),
            Kind::DurationMilli(array) => time(array.value(row), MILLI_MICROS),
            Kind::DurationMicro(array) => Value::Time(array.value(row)),
            Kind::DurationNano(array) => Value::Time(array.value(row) / MILLI_MICROS),
            Kind::Dictionary(keys, values) => {
                let key = keys.get(row);
                key.map_or(Value::Null, |key| values.value(*key))
            }
        }
    }
}

fn moment(count: i64, unit_micros: i64) -> Value<'static> {
    Value::Moment(count.saturating_mul(unit_micros))
}

fn time(count: i64, unit_micros: i64) -> Value<'static> {
    Value::Time(count.saturating_mul(unit_micros))
}

fn unsupported(field: &Field) -> MySqlError {
    not_supported(&format!(
        "column '{}' of type {}",
        field.name(),
        field.data_type()
    ))
}

// Lists, structs and maps of files are the text of a JSON document, spaced as MySQL does. Their
// values are cells again.

fn put(out: &mut BytesMut, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends the document of a nested value.
fn write_nested(out: &mut BytesMut, array: &ArrayRef, row: usize) {
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
