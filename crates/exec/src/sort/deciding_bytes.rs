//! Which bytes of the keys of a run decide its order.
//!
//! Keys are as long as their types are: a BIGINT takes nine bytes, though the numbers of a column
//! seldom differ in more than three of them. Bytes that are the same in all keys decide nothing,
//! and an entry has room for twelve that do. So most keys of several numbers fit into their
//! entries, and no key is looked up while they are sorted: each look is a cache miss.
//!
//! Cost: one pass over the keys in the order in which they lie, some 10 ns a row.

use super::order::{PREFIX_BYTES, entry_of, prefix};

/// Bytes that are compared with those of the first key at a time.
const WORD_BYTES: usize = 8;

/// The bytes that differ among some keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecidingBytes {
    /// The first ones, which an entry has room for.
    places: Places,
    /// Where a key goes on with bytes that may differ.
    rest: Option<usize>,
}

#[derive(Debug, PartialEq, Eq)]
enum Places {
    /// All from here on.
    From(usize),
    At(Vec<usize>),
}

impl DecidingBytes {
    /// Those of keys that all have this length, at least that of an entry.
    pub(super) fn of_fixed<'k>(length: usize, keys: impl Iterator<Item = &'k [u8]>) -> Self {
        let mut keys = keys.peekable();
        let first = keys.peek().copied().unwrap_or_default();
        let starts = (0..length).step_by(WORD_BYTES);
        // The last word begins earlier, where the length is no multiple of one.
        let starts = starts.map(|start| start.min(length - WORD_BYTES));
        let mut words: Vec<_> = { starts.map(|start| (start, word(first, start), 0)) }.collect();
        for key in keys {
            for (start, first, differ) in &mut words {
                *differ |= word(key, *start) ^ *first;
            }
        }
        let mut differs = vec![false; length];
        for (start, _, differ) in words {
            for (place, byte) in differ.to_ne_bytes().into_iter().enumerate() {
                differs[start + place] |= byte != 0;
            }
        }
        let mut places: Vec<usize> = (0..length).filter(|place| differs[*place]).collect();
        let rest = (places.len() > PREFIX_BYTES).then(|| places[PREFIX_BYTES]);
        places.truncate(PREFIX_BYTES);
        let places = Places::At(places);
        Self { places, rest }
    }

    /// Those behind what all keys begin with.
    pub(super) fn behind_common<'k>(keys: impl Iterator<Item = &'k [u8]>) -> Self {
        let mut keys = keys.peekable();
        let first = keys.peek().copied().unwrap_or_default();
        let mut common = first.len();
        for key in keys {
            let same = key.iter().zip(&first[..common]);
            common = same.take_while(|(one, other)| one == other).count();
            if common == 0 {
                break;
            }
        }
        Self {
            places: Places::From(common),
            rest: Some(common + PREFIX_BYTES),
        }
    }

    /// The entry of a row: its deciding bytes, and where they end zeros.
    #[inline]
    pub(super) fn entry(&self, key: &[u8], row_index: u32) -> u128 {
        let bytes = match &self.places {
            Places::From(offset) => return prefix(key, *offset) | u128::from(row_index),
            Places::At(places) => places.iter().map(|place| key.get(*place)),
        };
        let bytes = bytes.fold(0, |bytes, byte| {
            bytes << 8 | u128::from(byte.copied().unwrap_or_default())
        });
        entry_of(bytes, row_index)
    }

    /// Where keys go on, if entries do not hold all that may differ.
    pub(super) fn rest(&self) -> Option<usize> {
        self.rest
    }
}

/// The bytes of a key at a place, in no order.
#[inline]
fn word(key: &[u8], start: usize) -> u64 {
    let bytes = key.get(start..).and_then(|tail| tail.first_chunk());
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use mayfly_testkit::Random;

    use super::*;
    use crate::sort::order::{row_index, sort_narrow, sort_wide};

    fn check(keys: &[Vec<u8>], bytes: &DecidingBytes) {
        let entries = (0..).zip(keys).map(|(index, key)| bytes.entry(key, index));
        let mut entries: Vec<u128> = entries.collect();
        match bytes.rest() {
            None => sort_narrow(&mut entries),
            Some(rest) => sort_wide(&mut entries, rest, |index| &keys[index as usize]),
        }
        let got: Vec<u32> = entries.iter().map(|entry| row_index(*entry)).collect();
        let mut expected: Vec<u32> = (0..u32::try_from(keys.len()).unwrap()).collect();
        expected.sort_by(|a, b| keys[*a as usize].cmp(&keys[*b as usize]));
        assert_eq!(got, expected, "{bytes:?}");
    }

    /// Keys of a length, of whose bytes those at some places have three values.
    fn keys(length: usize, places: &[usize], count: usize) -> Vec<Vec<u8>> {
        let mut random = Random::new(11);
        let mut next = move || u8::try_from(random.below(3)).unwrap();
        let key = |_| {
            let mut key = vec![7; length];
            places.iter().for_each(|place| key[*place] = next());
            key
        };
        (0..count).map(key).collect()
    }

    #[test]
    fn only_bytes_that_differ_count() {
        for length in [13, 16, 18, 27, 45] {
            for places in [
                vec![],
                vec![0],
                vec![3, 12],
                (1..13).collect(),
                (0..13).collect(),
            ] {
                for count in [0, 1, 2, 400] {
                    let keys = keys(length, &places, count);
                    let of_keys = keys.iter().map(Vec::as_slice);
                    check(&keys, &DecidingBytes::of_fixed(length, of_keys));
                }
            }
        }
        let keys = keys(18, &[2, 9, 17], 400);
        let bytes = DecidingBytes::of_fixed(18, keys.iter().map(Vec::as_slice));
        let expected = DecidingBytes {
            places: Places::At(vec![2, 9, 17]),
            rest: None,
        };
        assert_eq!(bytes, expected);
    }

    #[test]
    fn what_all_keys_begin_with_does_not_count() {
        for common in [0, 1, 12, 13, 40] {
            for count in [0, 1, 2, 400] {
                let mut keys = keys(common + 20, &[common, common + 1, common + 19], count);
                // Some end early, and one where the others differ.
                keys.iter_mut()
                    .step_by(3)
                    .for_each(|key| key.truncate(common + 7));
                keys.iter_mut().take(1).for_each(|key| key.truncate(common));
                let bytes = DecidingBytes::behind_common(keys.iter().map(Vec::as_slice));
                check(&keys, &bytes);
            }
        }
    }
}
