//! Values in the binary protocol: fixed widths, little-endian, by the type of their column.
//!
//! **Source**: "Binary Protocol Value".

use bytes::{BufMut, BytesMut};
use mayfly_types::ColumnType;
use mayfly_types::spelling::{DAY_MICROS, SECOND_MICROS, date_of};

use super::text::{bits, put_counted, write_plain};
use crate::bytes_out::put_bytes;
use crate::value::Value;

const MINUTE_SECONDS: i64 = 60;
/// The digits of a second that a value holds.
const MICRO_DIGITS: u32 = 6;

/// Appends a value that is not NULL; `false`, with nothing appended, if it does not fit the type
/// of its column.
pub(super) fn write(out: &mut BytesMut, value: Value<'_>, of: &ColumnType) -> bool {
    match of {
        ColumnType::Bool | ColumnType::TinyInt { .. } => write_integer::<1>(out, value),
        ColumnType::SmallInt { .. } | ColumnType::Year => write_integer::<2>(out, value),
        ColumnType::MediumInt { .. } | ColumnType::Int { .. } => write_integer::<4>(out, value),
        ColumnType::BigInt { .. } => write_integer::<8>(out, value),
        ColumnType::Bit { length } => match value {
            Value::Unsigned(number) => {
                put_bytes(out, &bits(number, *length));
                true
            }
            _ => false,
        },
        ColumnType::Float { .. } => match value {
            Value::Float(number) => {
                out.put_f32_le(number);
                true
            }
            _ => false,
        },
        ColumnType::Double { .. } => match value {
            Value::Double(number) => {
                out.put_f64_le(number);
                true
            }
            Value::Float(number) => {
                out.put_f64_le(f64::from(number));
                true
            }
            _ => false,
        },
        ColumnType::Decimal { .. } => match value {
            Value::Decimal(..) | Value::WideDecimal(..) => {
                put_counted(out, |out| write_plain(out, value, of));
                true
            }
            _ => false,
        },
        ColumnType::Date | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
            write_day(out, value, of.second_digits())
        }
        ColumnType::Time { .. } => match value {
            Value::Time(micros) => {
                write_time(out, shown(micros, of.second_digits()));
                true
            }
            _ => false,
        },
        ColumnType::Char { .. }
        | ColumnType::VarChar { .. }
        | ColumnType::Text(_)
        | ColumnType::Binary { .. }
        | ColumnType::VarBinary { .. }
        | ColumnType::Blob(_)
        | ColumnType::Json
        | ColumnType::Enum(_)
        | ColumnType::Set(_) => {
            match value {
                Value::Bytes(bytes) => put_bytes(out, bytes),
                other => put_counted(out, |out| write_plain(out, other, of)),
            }
            true
        }
        ColumnType::Null => false,
    }
}

/// The lowest bytes of a whole number.
fn write_integer<const BYTES: usize>(out: &mut BytesMut, value: Value<'_>) -> bool {
    let bytes = match value {
        Value::Integer(number) => number.to_le_bytes(),
        Value::Unsigned(number) => number.to_le_bytes(),
        _ => return false,
    };
    if let Some(lowest) = bytes.first_chunk::<BYTES>() {
        out.extend_from_slice(lowest);
    }
    true
}

/// A day, with its time where that is not midnight.
fn write_day(out: &mut BytesMut, value: Value<'_>, digits: u8) -> bool {
    let (day, micros) = match value {
        Value::Date(day) => (i64::from(day), 0),
        Value::Moment(micros) => (micros.div_euclid(DAY_MICROS), micros.rem_euclid(DAY_MICROS)),
        _ => return false,
    };
    let micros = shown(micros, digits);
    let (year, month, day) = date_of(day);
    let fraction = micros % SECOND_MICROS;
    let len = match (micros, fraction) {
        (0, _) => 4,
        (_, 0) => 7,
        _ => 11,
    };
    out.put_u8(len);
    out.put_i16_le(i16::try_from(year).unwrap_or(0));
    out.put_u8(narrow(month));
    out.put_u8(narrow(day));
    if len > 4 {
        write_clock(out, micros / SECOND_MICROS);
    }
    if len > 7 {
        out.put_u32_le(u32::try_from(fraction).unwrap_or(0));
    }
    true
}

fn write_time(out: &mut BytesMut, micros: i64) {
    let magnitude = i64::try_from(micros.unsigned_abs()).unwrap_or(i64::MAX);
    let fraction = magnitude % SECOND_MICROS;
    let len = match (magnitude, fraction) {
        (0, _) => 0,
        (_, 0) => 8,
        _ => 12,
    };
    out.put_u8(len);
    if len == 0 {
        return;
    }
    out.put_u8(u8::from(micros < 0));
    out.put_u32_le(u32::try_from(magnitude / DAY_MICROS).unwrap_or(u32::MAX));
    write_clock(out, magnitude % DAY_MICROS / SECOND_MICROS);
    if len > 8 {
        out.put_u32_le(u32::try_from(fraction).unwrap_or(0));
    }
}

/// Microseconds without the digits that the column does not show.
fn shown(micros: i64, digits: u8) -> i64 {
    let hidden = MICRO_DIGITS.saturating_sub(u32::from(digits));
    // What is cut lies between zero and the value.
    let cut = micros.checked_rem(10_i64.saturating_pow(hidden));
    micros.saturating_sub(cut.unwrap_or(0))
}

/// Hours, minutes and seconds of a day, a byte each.
fn write_clock(out: &mut BytesMut, seconds: i64) {
    out.put_u8(narrow(seconds / MINUTE_SECONDS / 60));
    out.put_u8(narrow(seconds / MINUTE_SECONDS % 60));
    out.put_u8(narrow(seconds % MINUTE_SECONDS));
}

fn narrow(part: i64) -> u8 {
    u8::try_from(part).unwrap_or(0)
}
