//! Writes the basic types of the protocol: little-endian integers, lengths of one to nine bytes.
//!
//! **Source**: "Protocol::FixedLengthInteger", "Protocol::LengthEncodedInteger",
//! "Protocol::LengthEncodedString".

use bytes::{BufMut, BytesMut};
use mayfly_types::spelling::Out;

/// The first byte of a length that needs two, three or eight bytes.
pub(crate) const TWO_BYTES: u8 = 0xFC;
pub(crate) const THREE_BYTES: u8 = 0xFD;
pub(crate) const EIGHT_BYTES: u8 = 0xFE;
/// The greatest length that is written as itself.
pub(crate) const ONE_BYTE_MAX: u64 = 250;

pub(crate) fn put_u8(out: &mut BytesMut, value: u8) {
    out.put_u8(value);
}

pub(crate) fn put_u16(out: &mut BytesMut, value: u16) {
    out.put_u16_le(value);
}

pub(crate) fn put_u32(out: &mut BytesMut, value: u32) {
    out.put_u32_le(value);
}

/// A length-encoded integer.
pub(crate) fn put_length(out: &mut BytesMut, value: u64) {
    if value <= ONE_BYTE_MAX {
        out.put_u8(value.to_le_bytes()[0]);
    } else if value < 1 << 16 {
        out.put_u8(TWO_BYTES);
        out.put_uint_le(value, 2);
    } else if value < 1 << 24 {
        out.put_u8(THREE_BYTES);
        out.put_uint_le(value, 3);
    } else {
        out.put_u8(EIGHT_BYTES);
        out.put_u64_le(value);
    }
}

/// A length-encoded string.
pub(crate) fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    put_length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes and a zero.
pub(crate) fn put_terminated(out: &mut BytesMut, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    out.put_u8(0);
}

/// Takes values as `mayfly_types` spells them.
pub(crate) struct Spelled<'a>(pub(crate) &'a mut BytesMut);

impl Out for Spelled<'_> {
    fn push_str(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn push_times(&mut self, character: u8, count: usize) {
        self.0.put_bytes(character, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes_in::Reader;

    #[test]
    fn lengths_survive_the_round_trip() {
        let edges = [
            0,
            250,
            251,
            252,
            65_535,
            65_536,
            16_777_215,
            16_777_216,
            u64::MAX,
        ];
        for value in edges {
            let mut out = BytesMut::new();
            put_length(&mut out, value);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.length(), Ok(value));
            assert!(reader.is_empty());
        }
    }
}
