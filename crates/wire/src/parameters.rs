//! The parameters of COM_STMT_EXECUTE.
//!
//! **Source**: "COM_STMT_EXECUTE", "Binary Protocol Value".

use std::collections::BTreeMap;

use bytes::BytesMut;
use mayfly_types::MySqlError;

use crate::bytes_in::{Malformed, Reader};
use crate::column::wire_type;
use crate::error::wrong_arguments;

/// A value for a `?`, as the client's type says.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Parameter<'a> {
    /// NULL.
    Null,
    /// A whole number with a sign.
    Integer(i64),
    /// A whole number without a sign.
    Unsigned(u64),
    /// A FLOAT.
    Float(f32),
    /// A DOUBLE.
    Double(f64),
    /// A DECIMAL as the client wrote it, which need not be a number.
    Decimal(&'a [u8]),
    /// A text in the client's `character_set_client`.
    Text(&'a [u8]),
    /// Bytes without a character set.
    Bytes(&'a [u8]),
    /// A day; each part may be zero, none has been checked against the calendar.
    Date {
        /// 0 to 65535.
        year: u16,
        /// 1 to 12, or 0.
        month: u8,
        /// 1 to 31, or 0.
        day: u8,
    },
    /// A day and a time, checked no further than to be numbers.
    DateTime {
        /// 0 to 65535.
        year: u16,
        /// 1 to 12, or 0.
        month: u8,
        /// 1 to 31, or 0.
        day: u8,
        /// 0 to 23.
        hour: u8,
        /// 0 to 59.
        minute: u8,
        /// 0 to 59.
        second: u8,
        /// Microseconds, 0 to 999999.
        micros: u32,
    },
    /// A duration.
    Time {
        /// Whether it is before zero.
        negative: bool,
        /// Whole days, to be added to the hours.
        days: u32,
        /// 0 to 23.
        hours: u8,
        /// 0 to 59.
        minutes: u8,
        /// 0 to 59.
        seconds: u8,
        /// Microseconds, 0 to 999999.
        micros: u32,
    },
}

/// The type of a parameter as the client declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParameterType {
    wire_type: u8,
    unsigned: bool,
}

/// The high bit of a parameter's type.
const UNSIGNED: u8 = 0x80;

/// Reads the parameters of an execution. `types` are those of the execution before, and become
/// those of this one; `long_data` is what was sent ahead, by parameter.
pub(crate) fn parse<'a>(
    packet: &'a [u8],
    count: u16,
    types: &mut Vec<ParameterType>,
    long_data: &'a BTreeMap<u16, BytesMut>,
) -> Result<Vec<Parameter<'a>>, MySqlError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let read = read(packet, count, types, long_data);
    // Values that are not there are arguments, not a broken packet.
    read.map_err(|_| wrong_arguments("mysqld_stmt_execute"))
}

fn read<'a>(
    packet: &'a [u8],
    count: u16,
    types: &mut Vec<ParameterType>,
    long_data: &'a BTreeMap<u16, BytesMut>,
) -> Result<Vec<Parameter<'a>>, MySqlError> {
    let mut reader = Reader::new(packet);
    let null_bits = reader.bytes(usize::from(count).div_ceil(8))?;
    if reader.u8()? != 0 {
        let mut declared = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            declared.push(ParameterType {
                wire_type: reader.u8()?,
                unsigned: reader.u8()? & UNSIGNED != 0,
            });
        }
        *types = declared;
    }
    let mut parameters = Vec::with_capacity(usize::from(count));
    for index in 0..count {
        let byte = null_bits.get(usize::from(index / 8));
        let is_null = byte.is_some_and(|byte| byte >> (index % 8) & 1 == 1);
        let declared = types.get(usize::from(index));
        let data = long_data.get(&index);
        parameters.push(match (declared, data) {
            (Some(declared), Some(data)) => declared.counted(data),
            // NULL needs no type: Connector/J sends none for it.
            (_, None) if is_null => Parameter::Null,
            (Some(declared), None) => declared.read(&mut reader)?,
            (None, _) => return Err(wrong_arguments("mysqld_stmt_execute")),
        });
    }
    Ok(parameters)
}

impl ParameterType {
    fn read<'a>(self, reader: &mut Reader<'a>) -> Result<Parameter<'a>, MySqlError> {
        let parameter = match self.wire_type {
            wire_type::NULL => Parameter::Null,
            wire_type::TINY => {
                let value = reader.u8()?;
                self.whole(u64::from(value), i64::from(value.cast_signed()))
            }
            wire_type::SHORT | wire_type::YEAR => {
                let value = reader.u16()?;
                self.whole(u64::from(value), i64::from(value.cast_signed()))
            }
            wire_type::LONG | wire_type::INT24 => {
                let value = reader.u32()?;
                self.whole(u64::from(value), i64::from(value.cast_signed()))
            }
            wire_type::LONGLONG => {
                let value = reader.u64()?;
                self.whole(value, value.cast_signed())
            }
            wire_type::FLOAT => Parameter::Float(f32::from_bits(reader.u32()?)),
            wire_type::DOUBLE => Parameter::Double(f64::from_bits(reader.u64()?)),
            wire_type::DATE | wire_type::NEWDATE | wire_type::DATETIME | wire_type::TIMESTAMP => {
                read_moment(reader, self.wire_type)?
            }
            wire_type::TIME => read_time(reader)?,
            _ if self.is_counted() => self.counted(reader.counted()?),
            _ => return Err(wrong_arguments("mysqld_stmt_execute")),
        };
        Ok(parameter)
    }

    fn whole(self, unsigned: u64, signed: i64) -> Parameter<'static> {
        match self.unsigned {
            true => Parameter::Unsigned(unsigned),
            false => Parameter::Integer(signed),
        }
    }

    /// Whether values of the type have a length of their own, among those that are no numbers and
    /// no times.
    fn is_counted(self) -> bool {
        const VARCHAR: u8 = 15;
        matches!(
            self.wire_type,
            wire_type::DECIMAL | VARCHAR | wire_type::BIT | wire_type::JSON..=wire_type::GEOMETRY
        )
    }

    /// A value with a length of its own.
    fn counted(self, bytes: &[u8]) -> Parameter<'_> {
        match self.wire_type {
            wire_type::DECIMAL | wire_type::NEWDECIMAL => Parameter::Decimal(bytes),
            wire_type::TINY_BLOB
            | wire_type::MEDIUM_BLOB
            | wire_type::LONG_BLOB
            | wire_type::BLOB
            | wire_type::BIT
            | wire_type::GEOMETRY => Parameter::Bytes(bytes),
            _ => Parameter::Text(bytes),
        }
    }
}

fn read_moment<'a>(reader: &mut Reader<'a>, declared: u8) -> Result<Parameter<'a>, MySqlError> {
    let mut parts = Reader::new(short(reader)?);
    let (mut year, mut month, mut day) = (0, 0, 0);
    if !parts.is_empty() {
        (year, month, day) = (parts.u16()?, parts.u8()?, parts.u8()?);
    }
    if matches!(declared, wire_type::DATE | wire_type::NEWDATE) {
        return Ok(Parameter::Date { year, month, day });
    }
    let (mut hour, mut minute, mut second) = (0, 0, 0);
    if !parts.is_empty() {
        (hour, minute, second) = (parts.u8()?, parts.u8()?, parts.u8()?);
    }
    let micros = match parts.is_empty() {
        true => 0,
        false => parts.u32()?,
    };
    Ok(Parameter::DateTime {
        year,
        month,
        day,
        hour,
        minute,
        second,
        micros,
    })
}

fn read_time<'a>(reader: &mut Reader<'a>) -> Result<Parameter<'a>, MySqlError> {
    let mut parts = Reader::new(short(reader)?);
    let (mut negative, mut days, mut hours, mut minutes, mut seconds) = (false, 0, 0, 0, 0);
    if !parts.is_empty() {
        (negative, days) = (parts.u8()? != 0, parts.u32()?);
        (hours, minutes, seconds) = (parts.u8()?, parts.u8()?, parts.u8()?);
    }
    let micros = match parts.is_empty() {
        true => 0,
        false => parts.u32()?,
    };
    Ok(Parameter::Time {
        negative,
        days,
        hours,
        minutes,
        seconds,
        micros,
    })
}

/// The parts of a time behind their length of one byte.
fn short<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let len = reader.u8()?;
    reader.bytes(usize::from(len))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(packet: &[u8], count: u16) -> Vec<Parameter<'_>> {
        let no_data = Box::leak(Box::new(BTreeMap::new()));
        parse(packet, count, &mut Vec::new(), no_data).expect("parameters")
    }

    #[test]
    fn numbers_have_the_sign_of_their_type() {
        let packet = [
            b"\0\x01".as_slice(),
            b"\x01\0\x01\x80\x02\0\x03\x80\x08\0\x08\x80",
            b"\xFF\xFF\xFE\xFF\xFE\xFF\xFF\xFF",
            &[0xFF; 16],
        ]
        .concat();
        assert_eq!(
            parsed(&packet, 6),
            [
                Parameter::Integer(-1),
                Parameter::Unsigned(255),
                Parameter::Integer(-2),
                Parameter::Unsigned(4_294_967_294),
                Parameter::Integer(-1),
                Parameter::Unsigned(u64::MAX),
            ]
        );
    }

    #[test]
    fn times_have_the_parts_that_were_sent() {
        let packet = [
            b"\0\x01\x0A\0\x0C\0\x0C\0\x07\0\x0B\0\x0B\0".as_slice(),
            b"\x04\xE8\x07\x01\x1F",
            b"\0",
            b"\x07\xE8\x07\x01\x1F\x0C\x0D\x0E",
            b"\x0B\xE8\x07\x01\x1F\x0C\x0D\x0E\x40\x42\x0F\0",
            b"\0",
            b"\x0C\x01\x02\0\0\0\x03\x04\x05\x06\0\0\0",
        ]
        .concat();
        let moment = |year, month, day, hour, minute, second, micros| Parameter::DateTime {
            year,
            month,
            day,
            hour,
            minute,
            second,
            micros,
        };
        let time = |negative, days, hours, minutes, seconds, micros| Parameter::Time {
            negative,
            days,
            hours,
            minutes,
            seconds,
            micros,
        };
        assert_eq!(
            parsed(&packet, 6),
            [
                Parameter::Date {
                    year: 2024,
                    month: 1,
                    day: 31
                },
                moment(0, 0, 0, 0, 0, 0, 0),
                moment(2024, 1, 31, 12, 13, 14, 0),
                moment(2024, 1, 31, 12, 13, 14, 1_000_000),
                time(false, 0, 0, 0, 0, 0),
                time(true, 2, 3, 4, 5, 6),
            ]
        );
    }

    #[test]
    fn nulls_need_no_types() {
        let (mut types, none) = (Vec::new(), BTreeMap::new());
        let read = parse(b"\x03\0", 2, &mut types, &none).expect("parameters");
        assert_eq!(read, [Parameter::Null, Parameter::Null]);
        let refused = parse(b"\x01\0\x05", 2, &mut types, &none).expect_err("no type");
        assert_eq!(refused.code, 1210);
    }

    #[test]
    fn nulls_and_long_data_take_no_bytes() {
        let long_data = BTreeMap::from([(1, BytesMut::from(&b"long"[..]))]);
        let mut types = Vec::new();
        let packet = b"\x01\x01\xFD\0\xFC\0\xFD\0\x02ab";
        let read = parse(packet, 3, &mut types, &long_data).expect("parameters");
        assert_eq!(
            read,
            [
                Parameter::Null,
                Parameter::Bytes(b"long"),
                Parameter::Text(b"ab")
            ]
        );
        // The next execution may leave the types out.
        let none = BTreeMap::new();
        let read = parse(b"\x07\0", 3, &mut types, &none).expect("parameters");
        assert_eq!(read, [Parameter::Null; 3]);
    }

    #[test]
    fn what_is_missing_is_an_error() {
        let none = BTreeMap::new();
        for packet in [
            &b""[..],
            b"\0",
            b"\0\0",
            b"\0\x01\x08",
            b"\0\x01\x08\0\x01",
            b"\0\x01\x0A\0\x04",
        ] {
            assert!(
                parse(packet, 1, &mut Vec::new(), &none).is_err(),
                "{packet:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            count in 0_u16..20,
            types in prop::collection::vec(any::<[u8; 2]>(), 20),
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let no_data = BTreeMap::new();
            let nulls = vec![0; usize::from(count).div_ceil(8)];
            let declared = types.concat();
            let declared = &declared[..usize::from(count) * 2];
            let packet = [&nulls, &[1][..], declared, &bytes].concat();
            let _any = parse(&packet, count, &mut Vec::new(), &no_data);
            let _any = parse(&bytes, count, &mut Vec::new(), &no_data);
        }
    }
}
