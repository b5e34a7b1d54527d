//! A result with a column of every type: two rows of values, one of NULLs.

use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Decimal256Type};
use arrow_array::{
    ArrayRef, BinaryViewArray, Date32Array, DurationMicrosecondArray, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, NullArray, PrimitiveArray, RecordBatch,
    StringViewArray, TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::i256;
use arrow_schema::Schema;
use mayfly_types::ColumnType;
use mayfly_wire::ColumnDefinition;

use crate::canned::field;

/// One column: its type, its array, and the text of its first two cells.
pub struct Sample {
    pub declared: &'static str,
    pub array: ArrayRef,
    pub texts: [&'static [u8]; 2],
}

fn decimal128(values: [Option<i128>; 3], precision: u8, scale: i8) -> ArrayRef {
    let array = PrimitiveArray::<Decimal128Type>::from_iter(values);
    Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
}

fn decimal256(values: [Option<i256>; 3], precision: u8, scale: i8) -> ArrayRef {
    let array = PrimitiveArray::<Decimal256Type>::from_iter(values);
    Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
}

fn strings(first: &str, second: &str) -> ArrayRef {
    Arc::new(StringViewArray::from_iter([
        Some(first),
        Some(second),
        None,
    ]))
}

fn bytes(first: &[u8], second: &[u8]) -> ArrayRef {
    Arc::new(BinaryViewArray::from_iter([
        Some(first),
        Some(second),
        None,
    ]))
}

fn moments(first: i64, second: i64) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from_iter([
        Some(first),
        Some(second),
        None,
    ]))
}

fn durations(first: i64, second: i64) -> ArrayRef {
    Arc::new(DurationMicrosecondArray::from_iter([
        Some(first),
        Some(second),
        None,
    ]))
}

/// 2024-02-29 12:34:56.789012.
const LEAP_MOMENT: i64 = 1_709_210_096_789_012;
/// 2024-02-29.
const LEAP_DAY: i32 = 19_782;
/// -12:34:56.5.
const TIME: i64 = -45_296_500_000;
/// 838:59:59.
const LONGEST_TIME: i64 = 3_020_399_000_000;

#[rustfmt::skip]
pub fn samples() -> Vec<Sample> {
    let wide: i256 = "12345678901234567890123456789012345678901234567890".parse().unwrap();
    let sample = |declared, array, texts| Sample { declared, array, texts };
    vec![
        sample("tinyint(1)", Arc::new(Int8Array::from_iter([Some(1), Some(0), None])), [b"1", b"0"]),
        sample("tinyint", Arc::new(Int8Array::from_iter([Some(-128), Some(127), None])), [b"-128", b"127"]),
        sample("tinyint unsigned", Arc::new(UInt8Array::from_iter([Some(0), Some(255), None])), [b"0", b"255"]),
        sample("smallint", Arc::new(Int16Array::from_iter([Some(-32768), Some(32767), None])), [b"-32768", b"32767"]),
        sample("smallint unsigned", Arc::new(UInt16Array::from_iter([Some(0), Some(65535), None])), [b"0", b"65535"]),
        sample("mediumint", Arc::new(Int32Array::from_iter([Some(-8_388_608), Some(8_388_607), None])), [b"-8388608", b"8388607"]),
        sample("mediumint unsigned", Arc::new(UInt32Array::from_iter([Some(0), Some(16_777_215), None])), [b"0", b"16777215"]),
        sample("int", Arc::new(Int32Array::from_iter([Some(i32::MIN), Some(i32::MAX), None])), [b"-2147483648", b"2147483647"]),
        sample("int unsigned", Arc::new(UInt32Array::from_iter([Some(0), Some(u32::MAX), None])), [b"0", b"4294967295"]),
        sample("bigint", Arc::new(Int64Array::from_iter([Some(i64::MIN), Some(i64::MAX), None])), [b"-9223372036854775808", b"9223372036854775807"]),
        sample("bigint unsigned", Arc::new(UInt64Array::from_iter([Some(0), Some(u64::MAX), None])), [b"0", b"18446744073709551615"]),
        sample("decimal(10,2)", decimal128([Some(-5), Some(1_234_567_890), None], 10, 2), [b"-0.05", b"12345678.90"]),
        sample("decimal(20,0)", decimal128([Some(0), Some(-7), None], 20, 0), [b"0", b"-7"]),
        sample("decimal(50,4)", decimal256([Some(wide), Some(-wide), None], 50, 4), [b"1234567890123456789012345678901234567890123456.7890", b"-1234567890123456789012345678901234567890123456.7890"]),
        sample("float", Arc::new(Float32Array::from_iter([Some(1.5), Some(-1.234_567_9e20), None])), [b"1.5", b"-1.23457e20"]),
        sample("float(7,3)", Arc::new(Float32Array::from_iter([Some(1.5), Some(-0.0001), None])), [b"1.500", b"0.000"]),
        sample("double", Arc::new(Float64Array::from_iter([Some(0.1), Some(-1.25e-20), None])), [b"0.1", b"-1.25e-20"]),
        sample("double(10,2)", Arc::new(Float64Array::from_iter([Some(0.1), Some(12_345.678), None])), [b"0.10", b"12345.68"]),
        sample("bit(1)", Arc::new(UInt64Array::from_iter([Some(0), Some(1), None])), [b"\0", b"\x01"]),
        sample("bit(12)", Arc::new(UInt64Array::from_iter([Some(0x0FFF), Some(1), None])), [b"\x0F\xFF", b"\0\x01"]),
        sample("year", Arc::new(UInt16Array::from_iter([Some(1901), Some(0), None])), [b"1901", b"0000"]),
        sample("date", Arc::new(Date32Array::from_iter([Some(LEAP_DAY), Some(-719_162), None])), [b"2024-02-29", b"0001-01-01"]),
        sample("datetime", moments(LEAP_MOMENT, 0), [b"2024-02-29 12:34:56", b"1970-01-01 00:00:00"]),
        sample("datetime(6)", moments(LEAP_MOMENT, -1), [b"2024-02-29 12:34:56.789012", b"1969-12-31 23:59:59.999999"]),
        sample("timestamp", moments(1_709_210_096_000_000, 86_400_000_000), [b"2024-02-29 12:34:56", b"1970-01-02 00:00:00"]),
        sample("timestamp(3)", moments(1_709_210_096_789_000, 1000), [b"2024-02-29 12:34:56.789", b"1970-01-01 00:00:00.001"]),
        sample("time", durations(LONGEST_TIME, 0), [b"838:59:59", b"00:00:00"]),
        sample("time(2)", durations(TIME, -10_000), [b"-12:34:56.50", b"-00:00:00.01"]),
        sample("char(5)", strings("a", ""), [b"a", b""]),
        sample("varchar(40)", strings("gr\u{fc}n", "a string of more than twelve bytes"), ["gr\u{fc}n".as_bytes(), b"a string of more than twelve bytes"]),
        sample("tinytext", strings("tiny", ""), [b"tiny", b""]),
        sample("text", strings("text", "\u{1F41D}"), [b"text", "\u{1F41D}".as_bytes()]),
        sample("longtext", strings("long", "x"), [b"long", b"x"]),
        sample("binary(3)", bytes(b"\0\x01\xFF", b"abc"), [b"\0\x01\xFF", b"abc"]),
        sample("varbinary(3)", bytes(b"", b"\xFB"), [b"", b"\xFB"]),
        sample("mediumblob", bytes(b"\xFE\xFE", b""), [b"\xFE\xFE", b""]),
        sample("json", strings("{\"a\": [1, null]}", "[]"), [b"{\"a\": [1, null]}", b"[]"]),
        sample("enum('red','green')", strings("red", "green"), [b"red", b"green"]),
        sample("set('a','b','c')", strings("a,c", ""), [b"a,c", b""]),
    ]
}

/// Columns and the batch. The last column is a bare NULL.
pub fn all() -> (Vec<ColumnDefinition>, RecordBatch) {
    let samples = samples();
    let mut columns: Vec<ColumnDefinition> = samples
        .iter()
        .map(|sample| {
            let column_type: ColumnType = sample.declared.parse().unwrap();
            ColumnDefinition::new(sample.declared, column_type, true)
        })
        .collect();
    let mut arrays: Vec<ArrayRef> = samples.into_iter().map(|sample| sample.array).collect();
    columns.push(ColumnDefinition::new("NULL", ColumnType::Null, true));
    arrays.push(Arc::new(NullArray::new(3)));
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    (
        columns,
        RecordBatch::try_new(Arc::new(schema), arrays).unwrap(),
    )
}
