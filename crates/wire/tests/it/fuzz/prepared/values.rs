//! Values of parameters: as they are sent, and as the server spells them.

use mayfly_wire::Parameter;

/// Types of parameters, with those that no client sends.
#[rustfmt::skip]
pub const TYPES: [u8; 22] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0F, 0x10,
    0xF5, 0xF6, 0xFC, 0xFD, 0xFE, 0xFF,
];

/// The bytes of a program; zeros behind its end.
pub struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }
}

pub fn spelled(parameter: Parameter<'_>) -> Vec<u8> {
    format!("{parameter:?}").into_bytes()
}

/// Bytes of a text behind its length.
pub fn counted_bytes(len: usize) -> usize {
    len + match len {
        0..=250 => 1,
        251..=0xFFFF => 3,
        _ => 4,
    }
}

/// A value with a length of its own, as its type says.
pub fn counted(declared: u8, data: &[u8]) -> Parameter<'_> {
    match declared {
        0x00 | 0xF6 => Parameter::Decimal(data),
        0x10 | 0xF9..=0xFC | 0xFF => Parameter::Bytes(data),
        _ => Parameter::Text(data),
    }
}

/// Appends a value, and gives it as the server spells it; `None` if the type has no values.
pub fn push_value(
    declared: [u8; 2],
    input: &mut Input<'_>,
    packet: &mut Vec<u8>,
) -> Option<Vec<u8>> {
    let [wire_type, unsigned] = declared;
    let whole = |unsigned_value: u64, signed: i64| match unsigned & 0x80 != 0 {
        true => Parameter::Unsigned(unsigned_value),
        false => Parameter::Integer(signed),
    };
    let start = packet.len();
    let value = match wire_type {
        0x06 => Parameter::Null,
        0x01 => {
            packet.push(input.byte());
            let byte = packet[start];
            whole(byte.into(), i64::from(byte as i8))
        }
        0x02 | 0x0D => {
            let bytes: [u8; 2] = input.array();
            packet.extend_from_slice(&bytes);
            let value = u16::from_le_bytes(bytes);
            whole(value.into(), i64::from(value as i16))
        }
        0x03 | 0x09 => {
            let bytes: [u8; 4] = input.array();
            packet.extend_from_slice(&bytes);
            let value = u32::from_le_bytes(bytes);
            whole(value.into(), i64::from(value as i32))
        }
        0x08 => {
            let bytes: [u8; 8] = input.array();
            packet.extend_from_slice(&bytes);
            let value = u64::from_le_bytes(bytes);
            whole(value, value as i64)
        }
        0x04 => {
            let bytes: [u8; 4] = input.array();
            packet.extend_from_slice(&bytes);
            Parameter::Float(f32::from_le_bytes(bytes))
        }
        0x05 => {
            let bytes: [u8; 8] = input.array();
            packet.extend_from_slice(&bytes);
            Parameter::Double(f64::from_le_bytes(bytes))
        }
        0x07 | 0x0A | 0x0C => push_moment(wire_type == 0x0A, input, packet),
        0x0B => push_time(input, packet),
        0x00 | 0x0F | 0x10 | 0xF5..=0xFF => {
            let len = input.byte();
            let data = vec![input.byte(); usize::from(len)];
            match u8::try_from(data.len()) {
                Ok(len @ 0..=250) => packet.push(len),
                _ => packet.extend_from_slice(&[0xFC, len, 0]),
            }
            packet.extend_from_slice(&data);
            return Some(spelled(counted(wire_type, &data)));
        }
        _ => return None,
    };
    Some(spelled(value))
}

fn push_moment(is_day: bool, input: &mut Input<'_>, packet: &mut Vec<u8>) -> Parameter<'static> {
    let len = [0, 4, 7, 11][usize::from(input.byte() % 4)];
    let mut bytes = [0; 11];
    bytes[..len].fill_with(|| input.byte());
    packet.push(len as u8);
    packet.extend_from_slice(&bytes[..len]);
    let [low, high, month, day, hour, minute, second, micros @ ..] = bytes;
    let year = u16::from_le_bytes([low, high]);
    match is_day {
        true => Parameter::Date { year, month, day },
        false => Parameter::DateTime {
            year,
            month,
            day,
            hour,
            minute,
            second,
            micros: u32::from_le_bytes(micros),
        },
    }
}

fn push_time(input: &mut Input<'_>, packet: &mut Vec<u8>) -> Parameter<'static> {
    let len = [0, 8, 12][usize::from(input.byte() % 3)];
    let mut bytes = [0; 12];
    bytes[..len].fill_with(|| input.byte());
    packet.push(len as u8);
    packet.extend_from_slice(&bytes[..len]);
    let [sign, a, b, c, d, hours, minutes, seconds, micros @ ..] = bytes;
    Parameter::Time {
        negative: sign != 0,
        days: u32::from_le_bytes([a, b, c, d]),
        hours,
        minutes,
        seconds,
        micros: u32::from_le_bytes(micros),
    }
}
