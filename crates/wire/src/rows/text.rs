//! Values as text, each behind its length.
//!
//! Numbers and times are spelled by `mayfly_types`, as the shell prints them.

use bytes::{BufMut, BytesMut};
use mayfly_types::ColumnType;
use mayfly_types::spelling::{
    write_date, write_decimal, write_digits, write_double, write_fixed, write_float, write_moment,
    write_padded, write_time,
};

use crate::bytes_out::{ONE_BYTE_MAX, Spelled, put_bytes, put_length};
use crate::value::Value;

/// Stands for the length of NULL.
const NULL: u8 = 0xFB;

/// Appends a cell of a text row.
pub(super) fn write(out: &mut BytesMut, value: Value<'_>, of: &ColumnType) {
    match value {
        Value::Null => out.put_u8(NULL),
        Value::Bytes(bytes) => put_bytes(out, bytes),
        Value::Integer(number) => put_bytes(out, itoa::Buffer::new().format(number).as_bytes()),
        other => put_counted(out, |out| write_plain(out, other, of)),
    }
}

/// Appends the text of a value without its length; nothing for NULL.
pub(super) fn write_plain(out: &mut BytesMut, value: Value<'_>, of: &ColumnType) {
    match value {
        Value::Null => {}
        Value::Bytes(bytes) => out.extend_from_slice(bytes),
        Value::Integer(number) => put_text(out, itoa::Buffer::new().format(number)),
        Value::Unsigned(number) => match of {
            ColumnType::Year => {
                let year = i64::try_from(number).unwrap_or(i64::MAX);
                write_padded(year, 4, &mut Spelled(out));
            }
            ColumnType::Bit { length } => out.extend_from_slice(&bits(number, *length)),
            _ => put_text(out, itoa::Buffer::new().format(number)),
        },
        Value::Float(number) => match of.shown_digits() {
            Some(digits) => write_fixed(f64::from(number), digits, &mut Spelled(out)),
            None => write_float(number, &mut Spelled(out)),
        },
        Value::Double(number) => match of.shown_digits() {
            Some(digits) => write_fixed(number, digits, &mut Spelled(out)),
            None => write_double(number, &mut Spelled(out)),
        },
        Value::Decimal(number, scale) => write_decimal(number, scale, &mut Spelled(out)),
        Value::WideDecimal(number, scale) => {
            write_digits(&number.to_string(), scale, &mut Spelled(out));
        }
        Value::Date(day) => write_date(i64::from(day), &mut Spelled(out)),
        Value::Moment(micros) => {
            write_moment(micros, of.written_second_digits(), &mut Spelled(out));
        }
        Value::Time(micros) => write_time(micros, of.written_second_digits(), &mut Spelled(out)),
    }
}

/// The bytes of a BIT, the highest first.
pub(super) fn bits(number: u64, length: u8) -> Vec<u8> {
    let count = usize::from(length).div_ceil(8).clamp(1, 8);
    number
        .to_be_bytes()
        .into_iter()
        .skip(8_usize.saturating_sub(count))
        .collect()
}

/// Appends what `write` writes, behind its length.
pub(super) fn put_counted(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    let place = out.len();
    out.put_u8(0);
    write(out);
    let start = place.saturating_add(1);
    let len = out.len().saturating_sub(start);
    match u8::try_from(len) {
        Ok(short) if len as u64 <= ONE_BYTE_MAX => {
            if let Some(first) = out.get_mut(place) {
                *first = short;
            }
        }
        // A number with hundreds of digits: its length needs more room.
        _ => {
            let text = out.split_off(start);
            out.truncate(place);
            put_length(out, len as u64);
            out.extend_from_slice(&text);
        }
    }
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.extend_from_slice(text.as_bytes());
}
