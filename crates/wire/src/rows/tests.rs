//! Cells in both formats: what tables hold is tested from outside, what files bring is tested here.

use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, Date64Array, DictionaryArray, Float64Array, Int64Array,
    IntervalYearMonthArray, LargeStringArray, ListArray, PrimitiveArray, StringArray, StructArray,
    Time32SecondArray, Time64NanosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow_schema::{DataType, Field, Fields};
use bytes::BytesMut;
use mayfly_types::ColumnType;

use super::cells::Cells;
use super::{binary, text};
use crate::bytes_in::Reader;
use crate::value::Value;

/// The text of a cell of an array that no table made.
fn shown(array: ArrayRef, row: usize) -> Option<String> {
    let field = Field::new("c", array.data_type().clone(), true);
    let column_type = ColumnType::from_arrow(&field);
    let cells = Cells::new(&array, &field).expect("an array that can be shown");
    let mut out = BytesMut::new();
    match cells.document(row) {
        Some(document) => text::write(&mut out, Value::Bytes(&document), &column_type),
        None => text::write(&mut out, cells.value(row), &column_type),
    }
    if *out == [0xFB] {
        return None;
    }
    let mut reader = Reader::new(&out);
    let bytes = reader.counted().expect("a length and text").to_vec();
    assert!(reader.is_empty());
    Some(String::from_utf8(bytes).expect("UTF-8"))
}

fn check(array: impl Into<ArrayRef>, expected: &str) {
    assert_eq!(shown(array.into(), 0).as_deref(), Some(expected));
}

fn arc(array: impl arrow_array::Array + 'static) -> ArrayRef {
    Arc::new(array)
}

#[test]
fn columns_of_files_are_shown() {
    check(arc(BooleanArray::from(vec![true])), "1");
    check(arc(LargeStringArray::from(vec!["large"])), "large");
    check(arc(Date64Array::from(vec![-1])), "1969-12-31");
    check(
        arc(TimestampMillisecondArray::from(vec![1])),
        "1970-01-01 00:00:00.001",
    );
    check(
        arc(TimestampNanosecondArray::from(vec![-1])),
        "1969-12-31 23:59:59.999999",
    );
    check(arc(Time32SecondArray::from(vec![3661])), "01:01:01");
    check(
        arc(Time64NanosecondArray::from(vec![1_500_000_000])),
        "00:00:01.500000",
    );
    let dictionary: DictionaryArray<Int32Type> =
        vec![Some("a"), None, Some("b")].into_iter().collect();
    let dictionary = arc(dictionary);
    assert_eq!(shown(Arc::clone(&dictionary), 0).as_deref(), Some("a"));
    assert_eq!(shown(Arc::clone(&dictionary), 1), None);
    assert_eq!(shown(dictionary, 2).as_deref(), Some("b"));
    let empty: DictionaryArray<Int32Type> = vec![None::<&str>, None].into_iter().collect();
    assert_eq!(shown(arc(empty), 0), None);
}

#[test]
fn nested_values_are_documents() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), None, Some(3)]),
        None,
    ]);
    let list = arc(list);
    assert_eq!(shown(Arc::clone(&list), 0).as_deref(), Some("[1, null, 3]"));
    assert_eq!(shown(list, 1), None);
    let fields: Fields = vec![
        Field::new("a \"b\"", DataType::Utf8, true),
        Field::new("x", DataType::Float64, true),
        Field::new("ok", DataType::Boolean, true),
    ]
    .into();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec!["line\n\u{1}"])),
        Arc::new(Float64Array::from(vec![2.0])),
        Arc::new(BooleanArray::from(vec![false])),
    ];
    check(
        arc(StructArray::new(fields, columns, None)),
        r#"{"a \"b\"": "line\n\u0001", "x": 2.0, "ok": false}"#,
    );
}

#[test]
fn what_mysql_has_no_form_for_is_an_error() {
    let array = arc(IntervalYearMonthArray::from(vec![1]));
    let field = Field::new("c", array.data_type().clone(), true);
    let error = Cells::new(&array, &field).err().expect("an error");
    assert_eq!(error.code, 1235);
}

#[test]
fn decimals_are_those_of_arrow() {
    for value in [
        0,
        1,
        -1,
        5,
        -50,
        99,
        100,
        -100,
        123_456,
        i128::from(i64::MIN),
    ] {
        for scale in [0, 1, 2, 3, 10] {
            let array = PrimitiveArray::<Decimal128Type>::from(vec![value]);
            let array = array
                .with_precision_and_scale(38, scale)
                .expect("a decimal");
            check(arc(array.clone()), &array.value_as_string(0));
        }
    }
}

#[test]
fn numbers_are_written_as_mysql_does() {
    let double = |value: f64| {
        let mut out = BytesMut::new();
        text::write_plain(&mut out, Value::Double(value), &ColumnType::DOUBLE);
        String::from_utf8(out.to_vec()).expect("ASCII")
    };
    for (value, expected) in [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e14, "100000000000000"),
        (1e15, "1e15"),
        (123_456_789_012_345_680.0, "1.2345678901234568e17"),
        (1e-4, "0.0001"),
        (1e-15, "0.000000000000001"),
        (1e-16, "1e-16"),
        (f64::MAX, "1.7976931348623157e308"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        assert_eq!(double(value), expected, "{value:e}");
    }
    // A length of more than one byte.
    let of = ColumnType::double_with(30);
    let mut out = BytesMut::new();
    text::write(&mut out, Value::Double(1e300), &of);
    let mut reader = Reader::new(&out);
    assert_eq!(reader.counted().expect("a number").len(), 301 + 1 + 30);
    assert!(reader.is_empty());
}

#[test]
fn a_value_must_fit_its_column_in_binary() {
    let write = |value, declared: &str| {
        let mut out = BytesMut::new();
        let fits = binary::write(&mut out, value, &declared.parse().expect(declared));
        assert!(fits || out.is_empty());
        fits.then(|| out.to_vec())
    };
    assert_eq!(
        write(Value::Integer(-2), "int"),
        Some(vec![0xFE, 0xFF, 0xFF, 0xFF])
    );
    assert_eq!(write(Value::Unsigned(2), "smallint"), Some(vec![2, 0]));
    assert_eq!(
        write(Value::Moment(0), "datetime"),
        Some(vec![4, 0xB2, 7, 1, 1])
    );
    assert_eq!(
        write(Value::Time(-1), "time(6)"),
        Some(vec![12, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0])
    );
    assert_eq!(
        write(Value::Integer(12), "varchar(5)"),
        Some(vec![2, b'1', b'2'])
    );
    for (value, declared) in [
        (Value::Bytes(b"1"), "int"),
        (Value::Double(1.0), "decimal(5,2)"),
        (Value::Integer(1), "double"),
        (Value::Time(1), "datetime"),
        (Value::Date(1), "time"),
        (Value::Integer(1), "bit(3)"),
    ] {
        assert_eq!(write(value, declared), None, "{declared}");
    }
    let array = arc(Int64Array::from(vec![7]));
    let field = Field::new("c", DataType::Int64, false);
    let cells = Cells::new(&array, &field).expect("numbers");
    assert_eq!(cells.value(0), Value::Integer(7));
}
