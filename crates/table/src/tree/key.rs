//! Keys and payloads as bytes.
//!
//! **Owns** nothing. **Never** knows what a key means: keys are memcomparable, so that the order
//! of their bytes is the order of what they stand for.

use std::fmt;
use std::ops::Deref;

use crate::definition::KEY_BYTES_MAX;

/// Bytes of a row id at the end of a key.
const ROW_ID_BYTES: usize = size_of::<u64>();

/// What an encoding may add to MySQL's longest key: an eighth, and a mark of NULL and an end for
/// each of 16 columns.
const ENCODING_BYTES: usize = KEY_BYTES_MAX / 8 + 16 * 11;

/// The longest key of a tree: MySQL's longest index key, encoded, and a row id behind it.
pub const MAX_KEY_BYTES: usize = KEY_BYTES_MAX + ENCODING_BYTES + ROW_ID_BYTES;

/// The widest payload of a tree.
pub const MAX_PAYLOAD_BYTES: usize = 16;

/// Appends a row id to the key of an index that is not unique, so that its entries differ and
/// lie in the order of their rows.
///
/// The key before it must not be a prefix of another key, which memcomparable encodings see to:
/// they end what has no fixed width.
pub fn append_row_id(key: &mut Vec<u8>, row_id: u64) {
    key.extend_from_slice(&row_id.to_be_bytes());
}

/// Takes a key made by [`append_row_id`] apart; `None` if it is too short to hold a row id.
pub fn split_row_id(key: &[u8]) -> Option<(&[u8], u64)> {
    let (key, row_id) = key.split_last_chunk::<ROW_ID_BYTES>()?;
    Some((key, u64::from_be_bytes(*row_id)))
}

/// How many bytes two keys have in common at their beginning.
pub(super) fn common_len(left: &[u8], right: &[u8]) -> usize {
    let (left_words, right_words) = (left.as_chunks::<8>().0, right.as_chunks::<8>().0);
    let words = left_words.iter().zip(right_words);
    let equal = words.take_while(|(left, right)| left == right).count() * 8;
    let rest = left[equal..].iter().zip(&right[equal..]);
    equal + rest.take_while(|(left, right)| left == right).count()
}

/// What belongs to a key: a few bytes, as many in every entry of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Payload {
    bytes: [u8; MAX_PAYLOAD_BYTES],
    len: u8,
}

impl Payload {
    /// A copy of `bytes`.
    ///
    /// # Panics
    /// If there are more than [`MAX_PAYLOAD_BYTES`].
    pub fn new(bytes: &[u8]) -> Self {
        let mut copy = [0; MAX_PAYLOAD_BYTES];
        // A copy of known length is two instructions.
        match bytes.as_array::<ROW_ID_BYTES>() {
            Some(row_id) => copy[..ROW_ID_BYTES].copy_from_slice(row_id),
            None => copy[..bytes.len()].copy_from_slice(bytes),
        }
        Self {
            bytes: copy,
            len: bytes.len() as u8,
        }
    }

    /// The payload as a row id; `None` if it has another width.
    pub fn row_id(&self) -> Option<u64> {
        <[u8; ROW_ID_BYTES]>::try_from(&self[..])
            .ok()
            .map(u64::from_le_bytes)
    }
}

impl From<u64> for Payload {
    fn from(row_id: u64) -> Self {
        Self::new(&row_id.to_le_bytes())
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row_id() {
            Some(row_id) => write!(f, "Payload({row_id})"),
            None => write!(f, "Payload({:?})", &self[..]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_beginnings() {
        let check = |left: &str, right: &str, expect| {
            assert_eq!(common_len(left.as_bytes(), right.as_bytes()), expect);
            assert_eq!(common_len(right.as_bytes(), left.as_bytes()), expect);
        };
        check("", "", 0);
        check("", "a", 0);
        check("abc", "abd", 2);
        check("abc", "abcd", 3);
        check("0123456789", "0123456789", 10);
        check("01234567x9", "01234567y9", 8);
        check("0123456789abcdef0", "0123456789abcdef1", 16);
    }

    #[test]
    fn row_ids_come_back_and_keep_their_order() {
        let mut keys = Vec::new();
        for row_id in [0, 1, 255, 256, u64::MAX] {
            let mut key = b"key".to_vec();
            append_row_id(&mut key, row_id);
            assert_eq!(split_row_id(&key), Some((&b"key"[..], row_id)));
            keys.push(key);
        }
        assert!(keys.is_sorted());
        assert_eq!(split_row_id(b"short"), None);
        assert_eq!(Payload::from(7).row_id(), Some(7));
        assert_eq!(Payload::new(b"seven").row_id(), None);
    }
}
