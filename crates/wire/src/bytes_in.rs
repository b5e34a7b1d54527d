//! Reads the basic types of the protocol out of bytes that a stranger sent.
//!
//! Every read checks what is left; nothing here can panic or allocate.

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use mayfly_types::MySqlError;

use crate::bytes_out::{EIGHT_BYTES, THREE_BYTES, TWO_BYTES};
use crate::error::malformed_packet;

/// The packet ends too early or says something impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl From<Malformed> for MySqlError {
    fn from(_: Malformed) -> MySqlError {
        malformed_packet()
    }
}

type Result<T> = std::result::Result<T, Malformed>;

/// The part of a packet that has not been read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(packet: &'a [u8]) -> Reader<'a> {
        Reader { rest: packet }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes are left.
    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// A length of three bytes.
    pub(crate) fn u24(&mut self) -> Result<usize> {
        let [low, middle, high] = self.array()?;
        Ok(usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer.
    pub(crate) fn length(&mut self) -> Result<u64> {
        match self.u8()? {
            TWO_BYTES => self.u16().map(u64::from),
            THREE_BYTES => self.u24().map(|value| value as u64),
            EIGHT_BYTES => self.u64(),
            0xFB | 0xFF => Err(Malformed),
            value => Ok(u64::from(value)),
        }
    }

    /// A length-encoded string.
    pub(crate) fn counted(&mut self) -> Result<&'a [u8]> {
        let count = self.length()?;
        self.bytes(usize::try_from(count).map_err(|_| Malformed)?)
    }

    /// Bytes up to a zero, which is skipped.
    pub(crate) fn terminated(&mut self) -> Result<&'a [u8]> {
        let count = self.rest.iter().position(|byte| *byte == 0);
        let taken = self.bytes(count.ok_or(Malformed)?)?;
        self.bytes(1)?;
        Ok(taken)
    }

    /// The same; everything that is left where some clients forget the zero.
    pub(crate) fn terminated_or_rest(&mut self) -> &'a [u8] {
        self.terminated().unwrap_or_else(|_| self.rest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_an_error() {
        assert_eq!(Reader::new(b"").u8(), Err(Malformed));
        assert_eq!(Reader::new(b"abc").u32(), Err(Malformed));
        assert_eq!(Reader::new(b"abc").terminated(), Err(Malformed));
        assert_eq!(Reader::new(b"\x05abc").counted(), Err(Malformed));
        assert_eq!(
            Reader::new(b"\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF").counted(),
            Err(Malformed)
        );
        assert_eq!(Reader::new(b"\xFB").length(), Err(Malformed));
    }

    #[test]
    fn reads_stop_where_they_should() {
        let mut reader = Reader::new(b"ab\0\x02cdrest");
        assert_eq!(reader.terminated(), Ok(&b"ab"[..]));
        assert_eq!(reader.counted(), Ok(&b"cd"[..]));
        assert_eq!(reader.rest(), b"rest");
        assert!(reader.is_empty());
    }
}
