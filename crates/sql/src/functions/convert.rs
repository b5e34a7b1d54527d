//! Arrays of any type as text, bytes, numbers or times, by MySQL's conversions.
//!
//! Never fails for a value that MySQL would convert with a warning: the warning goes to the
//! session, the nearest value to the result. Arrays that have the asked type already are shared.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, DurationMicrosecondArray,
    Float64Array, Float64Builder, Int64Array, Int64Builder, StringViewArray, StringViewBuilder,
    TimestampMicrosecondArray, TimestampMicrosecondBuilder, UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type, DecimalType,
    DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type, i256,
};
use datafusion::error::Result;
use mayfly_types::{ColumnType, ErrorCode, Level, MySqlError, Warning, spelling};

use super::calendar::{self, DAY_MICROS};
use super::number;
use super::raise::raise;
use super::session_values::SessionValues;

const MOMENT: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
const TIME: DataType = DataType::Duration(TimeUnit::Microsecond);

/// The array with an Arrow type that the conversions know: no dictionaries, no small offsets.
pub(crate) fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    let to = match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) => {
            DataType::BinaryView
        }
        DataType::Dictionary(_, values) => {
            return plain(&cast(array, values)?);
        }
        DataType::RunEndEncoded(_, values) => {
            return plain(&cast(array, values.data_type())?);
        }
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(TimeUnit::Microsecond, None) => return Ok(Arc::clone(array)),
        DataType::Timestamp(_, _) => MOMENT,
        DataType::Time32(_) | DataType::Time64(TimeUnit::Nanosecond) => {
            let micros = cast(array, &DataType::Time64(TimeUnit::Microsecond))?;
            return Ok(cast(&cast(&micros, &DataType::Int64)?, &TIME)?);
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            return Ok(cast(&cast(array, &DataType::Int64)?, &TIME)?);
        }
        DataType::Duration(TimeUnit::Microsecond) => return Ok(Arc::clone(array)),
        DataType::Duration(_) => TIME,
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        _ => return Ok(Arc::clone(array)),
    };
    Ok(cast(array, &to)?)
}

fn texts_of<T: ArrowPrimitiveType>(
    array: &dyn Array,
    mut write: impl FnMut(T::Native, &mut String),
) -> StringViewArray {
    let mut builder = StringViewBuilder::with_capacity(array.len());
    let mut text = String::new();
    for value in array.as_primitive::<T>() {
        match value {
            Some(value) => {
                text.clear();
                write(value, &mut text);
                builder.append_value(&text);
            }
            None => builder.append_null(),
        }
    }
    builder.finish()
}

fn texts_of_integers<T: ArrowPrimitiveType>(array: &dyn Array) -> StringViewArray
where
    T::Native: itoa::Integer,
{
    let mut builder = StringViewBuilder::with_capacity(array.len());
    let mut buffer = itoa::Buffer::new();
    for value in array.as_primitive::<T>() {
        match value {
            Some(value) => builder.append_value(buffer.format(value)),
            None => builder.append_null(),
        }
    }
    builder.finish()
}

/// The bytes of a BIT, the highest first, as many as its length takes.
fn bytes_of_bits(array: &UInt64Array, length: u8) -> BinaryViewArray {
    let skipped = 8 - usize::from(length.clamp(1, 64)).div_ceil(8);
    let values = array.iter().map(|bits| bits.map(u64::to_be_bytes));
    values
        .map(|bytes| bytes.map(|bytes| bytes[skipped..].to_vec()))
        .collect()
}

/// The values as text; `of` is the MySQL type, which decides the digits of a second. The text of a
/// BIT are its bytes.
pub(crate) fn to_text(array: &ArrayRef, of: &ColumnType) -> Result<StringViewArray> {
    let mut array = plain(array)?;
    if let (ColumnType::Bit { length }, DataType::UInt64) = (of, array.data_type()) {
        array = Arc::new(bytes_of_bits(array.as_primitive(), *length));
    }
    let digits = of.second_digits();
    Ok(match array.data_type() {
        DataType::Utf8View => array.as_string_view().clone(),
        DataType::Null => StringViewArray::new_null(array.len()),
        DataType::Boolean => {
            let values = array.as_boolean();
            values
                .iter()
                .map(|value| value.map(|v| if v { "1" } else { "0" }))
                .collect()
        }
        DataType::Int8 => texts_of_integers::<Int8Type>(&array),
        DataType::Int16 => texts_of_integers::<Int16Type>(&array),
        DataType::Int32 => texts_of_integers::<Int32Type>(&array),
        DataType::Int64 => texts_of_integers::<Int64Type>(&array),
        DataType::UInt8 => texts_of_integers::<UInt8Type>(&array),
        DataType::UInt16 if *of == ColumnType::Year => {
            texts_of::<UInt16Type>(&array, |year, out| {
                spelling::write_padded(year.into(), 4, out)
            })
        }
        DataType::UInt16 => texts_of_integers::<UInt16Type>(&array),
        DataType::UInt32 => texts_of_integers::<UInt32Type>(&array),
        DataType::UInt64 => texts_of_integers::<UInt64Type>(&array),
        DataType::Float32 => match of.shown_digits() {
            Some(digits) => texts_of::<Float32Type>(&array, |value, out| {
                spelling::write_fixed(f64::from(value), digits, out);
            }),
            None => texts_of::<Float32Type>(&array, spelling::write_float),
        },
        DataType::Float64 => match of.shown_digits() {
            Some(digits) => texts_of::<Float64Type>(&array, |value, out| {
                spelling::write_fixed(value, digits, out);
            }),
            None => texts_of::<Float64Type>(&array, spelling::write_double),
        },
        DataType::Decimal128(_, scale) => {
            let scale = *scale;
            texts_of::<Decimal128Type>(&array, |value, out| {
                spelling::write_decimal(value, scale, out);
            })
        }
        DataType::Decimal256(_, scale) => {
            let scale = *scale;
            texts_of::<Decimal256Type>(&array, |value, out| {
                spelling::write_digits(&value.to_string(), scale, out);
            })
        }
        DataType::Date32 => {
            texts_of::<Date32Type>(&array, |day, out| spelling::write_date(day.into(), out))
        }
        DataType::Timestamp(_, _) => texts_of::<TimestampMicrosecondType>(&array, |value, out| {
            spelling::write_moment(value, digits, out);
        }),
        DataType::Duration(_) => texts_of::<DurationMicrosecondType>(&array, |value, out| {
            spelling::write_time(value, digits, out);
        }),
        DataType::BinaryView => {
            let mut builder = StringViewBuilder::with_capacity(array.len());
            for value in array.as_binary_view() {
                match value.map(std::str::from_utf8) {
                    None => builder.append_null(),
                    Some(Ok(text)) => builder.append_value(text),
                    Some(Err(_)) => {
                        let bytes = value.unwrap_or_default();
                        let shown: String = bytes
                            .iter()
                            .take(6)
                            .map(|byte| format!("\\x{byte:02X}"))
                            .collect();
                        let arguments: [&dyn std::fmt::Display; 2] = [&"utf8mb4", &shown];
                        return Err(raise(MySqlError::new(
                            ErrorCode::InvalidCharacterString,
                            &arguments,
                        )));
                    }
                }
            }
            builder.finish()
        }
        _ => cast(&array, &DataType::Utf8View)?.as_string_view().clone(),
    })
}

/// As [`to_text`], for values that are read as numbers or times: bytes that are no text are
/// spelled as MySQL's warnings show them, since nothing is read from there on.
pub(crate) fn to_readable(array: &ArrayRef, of: &ColumnType) -> Result<StringViewArray> {
    if array.data_type() != &DataType::BinaryView {
        return to_text(array, of);
    }
    let mut builder = StringViewBuilder::with_capacity(array.len());
    for value in array.as_binary_view() {
        match value.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
            None => builder.append_null(),
            Some((_, Ok(text))) => builder.append_value(text),
            Some((bytes, Err(_))) => builder.append_value(spelling::shown_bytes(bytes)),
        }
    }
    Ok(builder.finish())
}

/// The values as bytes: those of their text, or the bytes themselves.
pub(crate) fn to_bytes(array: &ArrayRef, of: &ColumnType) -> Result<BinaryViewArray> {
    let array = plain(array)?;
    match (array.data_type(), of) {
        (DataType::BinaryView, _) => return Ok(array.as_binary_view().clone()),
        (DataType::UInt64, ColumnType::Bit { length }) => {
            return Ok(bytes_of_bits(array.as_primitive(), *length));
        }
        _ => {}
    }
    Ok(to_text(&array, of)?.to_binary_view())
}

fn warn(session: Option<&SessionValues>, what: &str, value: &dyn std::fmt::Display) {
    if let Some(session) = session {
        session.warn(Warning::new(ErrorCode::TruncatedValue, &[&what, value]));
    }
}

/// Warns of a value that is no moment at all.
fn warn_incorrect(session: Option<&SessionValues>, value: &dyn std::fmt::Display) {
    if let Some(session) = session {
        let text = format!("Incorrect datetime value: '{value}'");
        session.warn(Warning {
            level: Level::Warning,
            error: MySqlError::with_message(ErrorCode::TruncatedValue, text),
        });
    }
}

/// The values as whole numbers: numbers rounded, texts up to what is no digit, clipped to BIGINT.
pub(crate) fn to_integer(array: &ArrayRef, session: Option<&SessionValues>) -> Result<Int64Array> {
    let array = plain(array)?;
    let rows = array.len();
    Ok(match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().clone(),
        DataType::Null => Int64Array::new_null(rows),
        DataType::UInt64 => array
            .as_primitive::<UInt64Type>()
            .unary(|value| i64::try_from(value).unwrap_or(i64::MAX)),
        DataType::Float32 => array
            .as_primitive::<Float32Type>()
            .unary(|value| number::round_to_integer(f64::from(value))),
        DataType::Float64 => array
            .as_primitive::<Float64Type>()
            .unary(number::round_to_integer),
        DataType::Decimal128(_, scale) => {
            let scale = *scale;
            array
                .as_primitive::<Decimal128Type>()
                .unary(|value| clip(round_decimal(i256::from_i128(value), scale)))
        }
        DataType::Decimal256(_, scale) => {
            let scale = *scale;
            array
                .as_primitive::<Decimal256Type>()
                .unary(|v| clip(round_decimal(v, scale)))
        }
        DataType::Utf8View | DataType::BinaryView => {
            let texts = to_readable(&array, &ColumnType::Null)?;
            let mut builder = Int64Builder::with_capacity(rows);
            for text in &texts {
                builder.append_option(text.map(|text| {
                    let (value, whole) = number::read_integer(text);
                    if !whole || number::is_beyond_integers(value) {
                        warn(session, "INTEGER", &text);
                    }
                    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
                }));
            }
            builder.finish()
        }
        DataType::Date32 => array
            .as_primitive::<Date32Type>()
            .unary(|day| calendar::number_of_day(day.into())),
        DataType::Timestamp(_, _) => array
            .as_primitive::<TimestampMicrosecondType>()
            .unary(calendar::number_of_moment),
        DataType::Duration(_) => array
            .as_primitive::<DurationMicrosecondType>()
            .unary(calendar::number_of_time),
        _ => cast(&array, &DataType::Int64)?
            .as_primitive::<Int64Type>()
            .clone(),
    })
}

/// The values as 64 bits: whole numbers that are unsigned keep their highest one.
pub(crate) fn to_bits(array: &ArrayRef, session: Option<&SessionValues>) -> Result<UInt64Array> {
    let array = plain(array)?;
    Ok(match array.data_type() {
        DataType::UInt64 => array.as_primitive::<UInt64Type>().clone(),
        DataType::Utf8View | DataType::BinaryView => {
            let texts = to_readable(&array, &ColumnType::Null)?;
            let bits = texts.iter().map(|text| {
                let text = text?;
                let (value, whole) = number::read_integer(text);
                if !whole {
                    warn(session, "INTEGER", &text);
                }
                Some(match u64::try_from(value) {
                    Ok(bits) => bits,
                    Err(_) if value > 0 => u64::MAX,
                    Err(_) => i64::try_from(value).unwrap_or(i64::MIN).cast_unsigned(),
                })
            });
            bits.collect()
        }
        _ => to_integer(&array, session)?.unary(i64::cast_unsigned),
    })
}

fn clip(value: i256) -> i64 {
    value.to_i128().map_or(
        if value.is_negative() {
            i64::MIN
        } else {
            i64::MAX
        },
        |value| i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX }),
    )
}

/// A decimal rounded to a whole number, halves away from zero.
fn round_decimal(value: i256, scale: i8) -> i256 {
    rescale(value, scale, 0)
}

/// A decimal brought to another scale, rounded with halves away from zero.
pub(crate) fn rescale(value: i256, from: i8, to: i8) -> i256 {
    let ten = i256::from_i128(10);
    if to >= from {
        return value.wrapping_mul(ten.wrapping_pow(u32::from(to.abs_diff(from))));
    }
    let unit = ten.wrapping_pow(u32::from(from.abs_diff(to)));
    let quotient = value.checked_div(unit).unwrap_or(i256::ZERO);
    let rest = value.wrapping_sub(quotient.wrapping_mul(unit));
    if rest.wrapping_abs().wrapping_mul(i256::from_i128(2)) >= unit {
        if value.is_negative() {
            quotient.wrapping_sub(i256::ONE)
        } else {
            quotient.wrapping_add(i256::ONE)
        }
    } else {
        quotient
    }
}

/// The values as floating-point numbers.
pub(crate) fn to_double(array: &ArrayRef, session: Option<&SessionValues>) -> Result<Float64Array> {
    let array = plain(array)?;
    let rows = array.len();
    Ok(match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().clone(),
        DataType::Null => Float64Array::new_null(rows),
        DataType::Utf8View | DataType::BinaryView => {
            let texts = to_readable(&array, &ColumnType::Null)?;
            let mut builder = Float64Builder::with_capacity(rows);
            for text in &texts {
                builder.append_option(text.map(|text| {
                    let (value, whole) = number::read_double(text);
                    if !whole {
                        warn(session, "DOUBLE", &text);
                    }
                    value
                }));
            }
            builder.finish()
        }
        DataType::Date32 | DataType::Boolean => {
            let integers = to_integer(&array, session)?;
            cast(&integers, &DataType::Float64)?
                .as_primitive::<Float64Type>()
                .clone()
        }
        #[expect(clippy::cast_precision_loss, reason = "a double is what is asked for")]
        DataType::Timestamp(_, _) => {
            array
                .as_primitive::<TimestampMicrosecondType>()
                .unary(|value| {
                    calendar::number_of_moment(value) as f64
                        + value.rem_euclid(calendar::MICROS) as f64 / 1e6
                })
        }
        #[expect(clippy::cast_precision_loss, reason = "a double is what is asked for")]
        DataType::Duration(_) => array
            .as_primitive::<DurationMicrosecondType>()
            .unary(|value| {
                calendar::number_of_time(value) as f64 + (value % calendar::MICROS) as f64 / 1e6
            }),
        DataType::Decimal128(_, scale) => array
            .as_primitive::<Decimal128Type>()
            .unary(|value| nearest_double(value, *scale)),
        _ => cast(&array, &DataType::Float64)?
            .as_primitive::<Float64Type>()
            .clone(),
    })
}

/// The DOUBLE that is nearest to a DECIMAL: one division where both numbers are exact as they are,
/// otherwise what its digits are read as. Two roundings would give the neighbour of some.
#[expect(clippy::cast_precision_loss, reason = "only where nothing is lost")]
pub(crate) fn nearest_double(value: i128, scale: i8) -> f64 {
    const WHOLE_MAX: u128 = 1 << 53;
    const POWER_MAX: i8 = 22;
    if value.unsigned_abs() <= WHOLE_MAX && (0..=POWER_MAX).contains(&scale) {
        return value as f64 / 10_f64.powi(scale.into());
    }
    let digits = Decimal128Type::format_decimal(value, Decimal128Type::MAX_PRECISION, scale);
    digits.parse().unwrap_or(f64::NAN)
}

/// How far the session's time zone is ahead of UTC.
pub(crate) fn time_zone_seconds(session: Option<&SessionValues>) -> i64 {
    session.map_or(0, |session| session.lock().time_zone_seconds.into())
}

/// The values as moments; NULL and a warning where a value is none.
pub(crate) fn to_moment(
    array: &ArrayRef,
    session: Option<&SessionValues>,
) -> Result<TimestampMicrosecondArray> {
    let array = plain(array)?;
    let rows = array.len();
    Ok(match array.data_type() {
        DataType::Timestamp(_, _) => array.as_primitive::<TimestampMicrosecondType>().clone(),
        DataType::Null => TimestampMicrosecondArray::new_null(rows),
        DataType::Date32 => array
            .as_primitive::<Date32Type>()
            .unary(|day| i64::from(day) * DAY_MICROS),
        DataType::Utf8View | DataType::BinaryView => {
            let texts = to_readable(&array, &ColumnType::Null)?;
            let time_zone = time_zone_seconds(session);
            let mut builder = TimestampMicrosecondBuilder::with_capacity(rows);
            for text in &texts {
                builder.append_option(text.and_then(|text| {
                    let read = calendar::read_moment(text);
                    match read {
                        None => warn_incorrect(session, &text),
                        Some(read) if read.has_garbage() => warn(session, "datetime", &text),
                        Some(_) => {}
                    }
                    read.map(|read| read.moment_in(time_zone))
                }));
            }
            builder.finish()
        }
        DataType::Duration(_) => {
            let now = session.map_or(0, |session| {
                let values = session.of_statement();
                values.now_micros + i64::from(values.time_zone_seconds) * calendar::MICROS
            });
            let today = now.div_euclid(DAY_MICROS) * DAY_MICROS;
            array
                .as_primitive::<DurationMicrosecondType>()
                .unary(|micros| today + micros)
        }
        _ => {
            let integers = to_integer(&array, session)?;
            let mut builder = TimestampMicrosecondBuilder::with_capacity(rows);
            for value in &integers {
                builder.append_option(value.and_then(|value| {
                    let moment = calendar::moment_of_number(value);
                    if moment.is_none() {
                        warn_incorrect(session, &value);
                    }
                    moment
                }));
            }
            builder.finish()
        }
    })
}

/// The values as signed times; NULL and a warning where a value is none.
pub(crate) fn to_time(
    array: &ArrayRef,
    session: Option<&SessionValues>,
) -> Result<DurationMicrosecondArray> {
    let array = plain(array)?;
    let rows = array.len();
    Ok(match array.data_type() {
        DataType::Duration(_) => array.as_primitive::<DurationMicrosecondType>().clone(),
        DataType::Null => DurationMicrosecondArray::new_null(rows),
        DataType::Timestamp(_, _) => array
            .as_primitive::<TimestampMicrosecondType>()
            .unary(|moment| moment.rem_euclid(DAY_MICROS)),
        DataType::Date32 => array.as_primitive::<Date32Type>().unary(|_| 0),
        DataType::Utf8View | DataType::BinaryView => {
            let texts = to_readable(&array, &ColumnType::Null)?;
            let mut builder = DurationMicrosecondArray::builder(rows);
            for text in &texts {
                builder.append_option(text.and_then(|text| {
                    let read = calendar::read_whole_time(text);
                    if read.is_none_or(|read| read.has_rest || read.is_beyond) {
                        warn(session, "time", &text);
                    }
                    read.map(|read| read.micros)
                }));
            }
            builder.finish()
        }
        _ => {
            let integers = to_integer(&array, session)?;
            let mut builder = DurationMicrosecondArray::builder(rows);
            for value in &integers {
                builder.append_option(value.and_then(|value| {
                    let read = calendar::whole_time_of_number(value);
                    if read.is_none_or(|read| read.is_beyond) {
                        warn(session, "time", &value);
                    }
                    read.map(|read| read.micros)
                }));
            }
            builder.finish()
        }
    })
}

/// The values as truth: numbers that are not zero.
pub(crate) fn to_boolean(
    array: &ArrayRef,
    session: Option<&SessionValues>,
) -> Result<BooleanArray> {
    let array = plain(array)?;
    if let DataType::Boolean = array.data_type() {
        return Ok(array.as_boolean().clone());
    }
    let numbers = to_double(&array, session)?;
    Ok(numbers
        .iter()
        .map(|value| value.map(|value| value != 0.0))
        .collect())
}
