//! Functions that never warn, over values that others warn of.
//!
//! The list of them belongs to filters ([`mayfly_exec::SilentFunction`]); what it says of a
//! function is true of the bodies here, or one of these tests fails.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, StringViewArray};
use arrow::datatypes::{
    DataType, Date32Type, DurationMicrosecondType, FieldRef, Float64Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use mayfly_exec::{Kind, SilentFunction, silent_names};
use mayfly_types::ColumnType;

use super::calendar::{DAY_MICROS, TIME_MAX_MICROS, day_of};
use super::{SessionValues, scalar_function};

const ROWS: usize = 6;
const ARGUMENTS_MAX: usize = 4;
/// The least `max_allowed_packet`.
const PACKET_BYTES: usize = 1 << 10;

type Argument = (FieldRef, ColumnarValue);

fn column(declared: &str, values: ArrayRef) -> Argument {
    let of: ColumnType = declared.parse().expect("a type");
    assert_eq!(values.len(), ROWS);
    (
        Arc::new(of.to_arrow("a", true)),
        ColumnarValue::Array(values),
    )
}

/// Values, and a NULL behind them.
fn and_null<T: ArrowPrimitiveType>(values: [T::Native; ROWS - 1]) -> ArrayRef {
    let values = values.into_iter().map(Some);
    Arc::new(PrimitiveArray::<T>::from_iter(values.chain([None])))
}

/// Values at the ends of their types, and texts that are neither numbers nor dates.
fn columns() -> Vec<Argument> {
    let texts = |longest: String| -> ArrayRef {
        let texts = ["", "1x", "\u{df}a,b", "2024-02-30"];
        let texts = texts.map(|text| Some(text.to_owned())).into_iter();
        Arc::new(StringViewArray::from_iter(
            texts.chain([Some(longest), None]),
        ))
    };
    let (first, last) = (day_of(0, 1, 1), day_of(9999, 12, 31));
    let days = [first, last, 0, -1, day_of(2024, 2, 29)];
    let moments = days.map(|day| day * DAY_MICROS + DAY_MICROS - 1);
    let days = days.map(|day| i32::try_from(day).expect("a day of DATE"));
    let times = [TIME_MAX_MICROS, -TIME_MAX_MICROS, 0, -1, 1];
    let doubles = [f64::MAX, f64::MIN, -0.0, 0.5, f64::MIN_POSITIVE];
    let longs = [i64::MAX, i64::MIN, 0, -1, 2];
    let ints = [i32::MAX, i32::MIN, 0, -1, 2];
    vec![
        column("varchar(256)", texts("\u{1f600}".repeat(256))),
        column("text", texts("a".repeat(5 * PACKET_BYTES))),
        column("bigint", and_null::<Int64Type>(longs)),
        column("int", and_null::<Int32Type>(ints)),
        column("double", and_null::<Float64Type>(doubles)),
        column("date", and_null::<Date32Type>(days)),
        column("datetime(6)", and_null::<TimestampMicrosecondType>(moments)),
        column("time(6)", and_null::<DurationMicrosecondType>(times)),
    ]
}

/// Calls a function; how many warnings that adds.
fn warnings(function: &ScalarUDF, arguments: &[Argument]) -> Result<u64> {
    let session = SessionValues::default();
    session.lock().max_packet_bytes = PACKET_BYTES as u64;
    let mut options = ConfigOptions::default();
    options.extensions.insert(session.clone());
    let arg_fields: Vec<FieldRef> = { arguments.iter() }
        .map(|(field, _)| Arc::clone(field))
        .collect();
    let scalars = vec![None; arguments.len()];
    let return_field = function.return_field_from_args(ReturnFieldArgs {
        arg_fields: &arg_fields,
        scalar_arguments: &scalars,
    })?;
    function.invoke_with_args(ScalarFunctionArgs {
        args: arguments.iter().map(|(_, value)| value.clone()).collect(),
        arg_fields,
        number_rows: ROWS,
        return_field,
        config_options: Arc::new(options),
    })?;
    let count = session.lock().warning_count;
    Ok(count)
}

/// Calls a function with all arguments that it is said to be silent about; how many calls.
fn check(name: &str, function: &ScalarUDF, arguments: &mut Vec<Argument>) -> usize {
    let silent = SilentFunction::named(name).expect("a listed name");
    let types = arguments.iter().map(|(field, _)| field.data_type().clone());
    let types: Vec<DataType> = types.collect();
    let kinds = arguments.iter().map(|(field, _)| Kind::of(field));
    if !silent.is_silent(kinds) {
        return 0;
    }
    let mut calls = 0;
    if !arguments.is_empty() && function.coerce_types(&types).is_ok() {
        let found = warnings(function, arguments);
        assert_eq!(found.expect("no error"), 0, "{name} of {types:?}");
        calls += 1;
    }
    if arguments.len() < ARGUMENTS_MAX {
        for argument in columns() {
            arguments.push(argument);
            calls += check(name, function, arguments);
            arguments.pop();
        }
    }
    calls
}

#[test]
fn functions_of_the_list_neither_warn_nor_fail() {
    for name in silent_names() {
        let function = scalar_function(name).expect("a function");
        let mut calls = 0;
        if name == "extract" {
            // The unit is a constant.
            for unit in [
                "YEAR",
                "WEEK",
                "DAY_MICROSECOND",
                "HOUR_SECOND",
                "MICROSECOND",
            ] {
                let field = ColumnType::VarChar { length: 20 }.to_arrow("a", true);
                let unit = ScalarValue::Utf8View(Some(unit.to_owned()));
                let mut arguments = vec![(Arc::new(field), ColumnarValue::Scalar(unit))];
                calls += check(name, &function, &mut arguments);
            }
        } else {
            calls += check(name, &function, &mut Vec::new());
        }
        assert!(calls > 0, "{name} is silent about nothing");
    }
}

#[test]
fn the_same_values_make_others_warn_or_fail() {
    let columns = columns();
    let [short, long, number] = [0, 1, 2].map(|place| columns[place].clone());
    for (name, arguments) in [
        ("substring", vec![long.clone(), short.clone()]),
        ("year", vec![long.clone()]),
        ("upper", vec![long]),
        ("concat", vec![short.clone(), short]),
        ("abs", vec![number]),
    ] {
        let function = scalar_function(name).expect("a function");
        let kinds = arguments.iter().map(|(field, _)| Kind::of(field));
        let silent = SilentFunction::named(name);
        assert!(
            !silent.is_some_and(|silent| silent.is_silent(kinds)),
            "{name}"
        );
        let found = warnings(&function, &arguments);
        assert!(
            found.is_err() || found.is_ok_and(|count| count > 0),
            "{name}"
        );
    }
}
