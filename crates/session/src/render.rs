//! A cell as MySQL's text protocol prints it.
//!
//! The one place where a value becomes text for a client; escapes and quotes belong to the output
//! format. Never allocates for a value but the bytes it appends.
//!
//! Source: `my_gcvt` of MySQL's `strings/dtoa.cc` for the shape of floating-point numbers.

use std::io::Write;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal128Type, Decimal256Type,
    DecimalType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use mayfly_types::ColumnType;

const MICROS: i64 = 1_000_000;
const DAY_SECONDS: i64 = 86_400;
/// Digits that MySQL prints of a FLOAT.
const FLOAT_DIGITS: usize = 6;
/// Beyond this decimal exponent a number is printed with an `e`.
const LARGEST_PLAIN_EXPONENT: i32 = 15;

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
        DataType::Float16 => float(out, f32::from(int::<Float16Type>(array, row))),
        DataType::Float32 => float(out, int::<Float32Type>(array, row)),
        DataType::Float64 => double(out, int::<Float64Type>(array, row)),
        DataType::Decimal128(precision, scale) => {
            let value = int::<Decimal128Type>(array, row);
            let text = Decimal128Type::format_decimal(value, *precision, *scale);
            out.extend_from_slice(text.as_bytes());
        }
        DataType::Decimal256(precision, scale) => {
            let value = int::<Decimal256Type>(array, row);
            let text = Decimal256Type::format_decimal(value, *precision, *scale);
            out.extend_from_slice(text.as_bytes());
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
        DataType::Date32 => date(out, i64::from(int::<Date32Type>(array, row))),
        DataType::Date64 => {
            date(
                out,
                int::<Date64Type>(array, row).div_euclid(DAY_SECONDS * 1000),
            );
        }
        DataType::Timestamp(unit, _) => {
            let micros = match unit {
                TimeUnit::Second => int::<TimestampSecondType>(array, row).saturating_mul(MICROS),
                TimeUnit::Millisecond => {
                    int::<TimestampMillisecondType>(array, row).saturating_mul(1000)
                }
                TimeUnit::Microsecond => int::<TimestampMicrosecondType>(array, row),
                TimeUnit::Nanosecond => int::<TimestampNanosecondType>(array, row).div_euclid(1000),
            };
            datetime(out, micros, second_digits(of));
        }
        DataType::Time32(TimeUnit::Second) => {
            time(
                out,
                i64::from(int::<Time32SecondType>(array, row)) * MICROS,
                second_digits(of),
            );
        }
        DataType::Time32(_) => {
            let millis = i64::from(int::<Time32MillisecondType>(array, row));
            time(out, millis * 1000, second_digits(of));
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            time(
                out,
                int::<Time64MicrosecondType>(array, row),
                second_digits(of),
            );
        }
        DataType::Time64(_) => {
            time(
                out,
                int::<Time64NanosecondType>(array, row) / 1000,
                second_digits(of),
            );
        }
        DataType::Duration(unit) => {
            let micros = match unit {
                TimeUnit::Second => int::<DurationSecondType>(array, row).saturating_mul(MICROS),
                TimeUnit::Millisecond => {
                    int::<DurationMillisecondType>(array, row).saturating_mul(1000)
                }
                TimeUnit::Microsecond => int::<DurationMicrosecondType>(array, row),
                TimeUnit::Nanosecond => int::<DurationNanosecondType>(array, row) / 1000,
            };
            time(out, micros, second_digits(of));
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let key = dictionary.normalized_keys()[row];
            return write_cell(out, dictionary.values(), key, of);
        }
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

/// Appends a DOUBLE: the shortest text that reads back as the same number.
pub fn double(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        return append(out, format_args!("{value}"));
    }
    shape(out, &format!("{value:e}"));
}

/// Appends a FLOAT: six digits at most.
pub fn float(out: &mut Vec<u8>, value: f32) {
    if !value.is_finite() {
        return append(out, format_args!("{value}"));
    }
    let shortest = format!("{value:e}");
    let digits = shortest
        .bytes()
        .take_while(|byte| *byte != b'e')
        .filter(u8::is_ascii_digit);
    if digits.count() <= FLOAT_DIGITS {
        shape(out, &shortest);
    } else {
        shape(
            out,
            &format!("{value:.precision$e}", precision = FLOAT_DIGITS - 1),
        );
    }
}

/// Turns `-1.25e-3` into what MySQL prints.
fn shape(out: &mut Vec<u8>, scientific: &str) {
    let (mantissa, exponent) = scientific
        .split_once('e')
        .expect("the format {:e} always has an exponent");
    let exponent: i32 = exponent
        .parse()
        .expect("the exponent of {:e} is a small integer");
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    let mut digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    while digits.len() > 1 && digits.ends_with('0') {
        digits.pop();
    }
    if negative {
        out.push(b'-');
    }
    let point = exponent + 1;
    if digits == "0" {
        out.push(b'0');
    } else if !(1 - LARGEST_PLAIN_EXPONENT..=LARGEST_PLAIN_EXPONENT).contains(&point) {
        out.extend_from_slice(&digits.as_bytes()[..1]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits.as_bytes()[1..]);
        }
        append(out, format_args!("e{exponent}"));
    } else if point <= 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', point.unsigned_abs() as usize));
        out.extend_from_slice(digits.as_bytes());
    } else {
        let point = point.unsigned_abs() as usize;
        if digits.len() <= point {
            out.extend_from_slice(digits.as_bytes());
            out.extend(std::iter::repeat_n(b'0', point - digits.len()));
        } else {
            out.extend_from_slice(&digits.as_bytes()[..point]);
            out.push(b'.');
            out.extend_from_slice(&digits.as_bytes()[point..]);
        }
    }
}

fn second_digits(of: &ColumnType) -> u8 {
    match of {
        ColumnType::DateTime { digits }
        | ColumnType::Timestamp { digits }
        | ColumnType::Time { digits } => (*digits).min(6),
        _ => 6,
    }
}

fn date(out: &mut Vec<u8>, days: i64) {
    let (year, month, day) = civil(days);
    append(out, format_args!("{year:04}-{month:02}-{day:02}"));
}

fn datetime(out: &mut Vec<u8>, micros: i64, digits: u8) {
    let seconds = micros.div_euclid(MICROS);
    date(out, seconds.div_euclid(DAY_SECONDS));
    out.push(b' ');
    clock(
        out,
        seconds.rem_euclid(DAY_SECONDS),
        micros.rem_euclid(MICROS),
        digits,
    );
}

fn time(out: &mut Vec<u8>, micros: i64, digits: u8) {
    if micros < 0 {
        out.push(b'-');
    }
    let micros = micros.saturating_abs();
    clock(out, micros / MICROS, micros % MICROS, digits);
}

fn clock(out: &mut Vec<u8>, seconds: i64, micros: i64, digits: u8) {
    append(
        out,
        format_args!(
            "{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        ),
    );
    if digits > 0 {
        let fraction = micros / 10_i64.pow(6 - u32::from(digits));
        append(
            out,
            format_args!(".{fraction:0width$}", width = usize::from(digits)),
        );
    }
}

/// Year, month and day of a day number counted from 1970-01-01 (proleptic Gregorian).
///
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
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
