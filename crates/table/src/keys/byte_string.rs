//! Byte strings in keys: an encoding that keeps their order, in which none is the beginning of
//! another, and that adds at most an eighth and [`END_BYTES_MAX`].
//!
//! ```text
//!  no zero byte      | value | 00 00 |
//!  with a zero byte  | value up to it | 00 ff | 8 bytes | 8 | .. | 0 to 7 and padding | 0 to 7 |
//! ```
//!
//! Text has no zero bytes and is copied. Escaping each zero byte would double a string of nothing
//! else, so the first one switches to groups of eight. A mark behind each group says how many of
//! its bytes count, and 8 that another group follows. Two strings are written alike as far as they
//! are equal, so the switch does not disturb the order.
//!
//! **Source**: the groups are those of MyRocks' memcomparable strings.

use crate::definition::KEY_BYTES_MAX;
use crate::tree::MAX_KEY_BYTES;

const GROUP_BYTES: usize = 8;
/// Behind a zero byte of the key: the string ends.
const END: u8 = 0;
/// Behind a zero byte of the key: the string has a zero byte, and groups follow.
const GROUPS: u8 = 0xff;
/// Behind a group: another one follows.
const MORE: u8 = GROUP_BYTES as u8;

/// What the encoding adds at most beside an eighth of the string: the switch and a last group.
const END_BYTES_MAX: usize = 1 + GROUP_BYTES + 1;

/// The most bytes that a string of `len` bytes takes in a key.
const fn encoded_len_max(len: usize) -> usize {
    len + len / GROUP_BYTES + END_BYTES_MAX
}

// A key of 16 strings, each with a mark of NULL, and of a row number is one that a tree takes.
const _: () = assert!(
    encoded_len_max(KEY_BYTES_MAX) + 16 + 15 * END_BYTES_MAX + size_of::<u64>() <= MAX_KEY_BYTES
);

/// Appends a string.
pub(super) fn write(value: &[u8], key: &mut Vec<u8>) {
    let Some(zero) = value.iter().position(|byte| *byte == 0) else {
        key.extend_from_slice(value);
        key.extend_from_slice(&[0, END]);
        return;
    };
    key.extend_from_slice(&value[..zero]);
    key.extend_from_slice(&[0, GROUPS]);
    let (groups, rest) = value[zero + 1..].as_chunks::<GROUP_BYTES>();
    for group in groups {
        key.extend_from_slice(group);
        key.push(MORE);
    }
    let mut last = [0; GROUP_BYTES];
    last[..rest.len()].copy_from_slice(rest);
    key.extend_from_slice(&last);
    key.push(rest.len() as u8);
}

/// How many bytes the string at the head of `key` takes; all of them if it does not end. `plain`
/// gives a byte as it was written.
pub(super) fn encoded_len(key: &[u8], plain: impl Fn(u8) -> u8) -> usize {
    let Some(zero) = key.iter().position(|byte| plain(*byte) == 0) else {
        return key.len();
    };
    let groups_at = (zero + 2).min(key.len());
    if key.get(zero + 1).is_none_or(|mark| plain(*mark) != GROUPS) {
        return groups_at;
    }
    let (groups, _) = key[groups_at..].as_chunks::<{ GROUP_BYTES + 1 }>();
    let last = groups
        .iter()
        .position(|group| plain(group[GROUP_BYTES]) != MORE);
    last.map_or(key.len(), |last| groups_at + (last + 1) * (GROUP_BYTES + 1))
}

/// Appends to `value` the string that takes all of `key`.
pub(super) fn read(key: &[u8], plain: impl Fn(u8) -> u8, value: &mut Vec<u8>) {
    let zero = key.iter().position(|byte| plain(*byte) == 0);
    let head = &key[..zero.unwrap_or(key.len())];
    value.extend(head.iter().map(|byte| plain(*byte)));
    let Some((mark, groups)) = key[head.len()..].get(1..).and_then(<[u8]>::split_first) else {
        return;
    };
    if plain(*mark) != GROUPS {
        return;
    }
    value.push(0);
    let (groups, _) = groups.as_chunks::<{ GROUP_BYTES + 1 }>();
    for group in groups {
        let len = usize::from(plain(group[GROUP_BYTES])).min(GROUP_BYTES);
        value.extend(group[..len].iter().map(|byte| plain(*byte)));
    }
}

#[cfg(test)]
mod tests {
    use mayfly_testkit::Random;

    use super::*;

    fn encoded(value: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        write(value, &mut key);
        key
    }

    /// Strings of few different bytes, so that they share beginnings and have runs of zeros.
    fn strings(seed: u64) -> Vec<Vec<u8>> {
        let mut random = Random::new(seed);
        let alphabet = [0, 0, 1, 8, 0xfe, 0xff];
        let mut string = |len_end: u64| -> Vec<u8> {
            let len = random.below(len_end);
            (0..len)
                .map(|_| alphabet[random.below(alphabet.len() as u64) as usize])
                .collect()
        };
        let mut strings: Vec<Vec<u8>> = (0..400).map(|_| string(4)).collect();
        strings.extend((0..400).map(|_| string(40)));
        // The same again with another end.
        let longer: Vec<Vec<u8>> = strings
            .iter()
            .map(|start| [start.as_slice(), &string(20)].concat())
            .collect();
        strings.extend(longer);
        strings.extend((0..40).map(|len| vec![0; len]));
        strings.sort();
        strings.dedup();
        strings
    }

    #[test]
    fn encoded_strings_keep_their_order_and_none_begins_another() {
        for seed in 0..4 {
            let keys: Vec<Vec<u8>> = strings(seed).iter().map(|value| encoded(value)).collect();
            for pair in keys.windows(2) {
                assert!(pair[0] < pair[1], "seed {seed}: {pair:?}");
                // What lies between a string and those that it begins begins with it as well.
                assert!(!pair[1].starts_with(&pair[0]), "seed {seed}: {pair:?}");
            }
            let inverted = |key: &Vec<u8>| -> Vec<u8> { key.iter().map(|byte| !byte).collect() };
            let descending: Vec<Vec<u8>> = keys.iter().rev().map(inverted).collect();
            for pair in descending.windows(2) {
                assert!(pair[0] < pair[1], "seed {seed}: {pair:?}");
            }
        }
    }

    #[test]
    fn strings_come_back_from_the_head_of_a_key() {
        for value in strings(7) {
            for invert in [0, 0xff] {
                let plain = |byte: u8| byte ^ invert;
                let mut key: Vec<u8> = encoded(&value).into_iter().map(plain).collect();
                let len = key.len();
                key.extend_from_slice(&[0, 1, 0xff, 0]);
                assert_eq!(encoded_len(&key, plain), len, "{value:?}");
                let mut found = Vec::new();
                read(&key[..len], plain, &mut found);
                assert_eq!(found, value);
            }
        }
    }

    #[test]
    fn no_string_takes_more_than_its_bound() {
        for len in 0..100 {
            let longest = (0..=len)
                .map(|zero| {
                    let mut value = vec![b'x'; len];
                    if let Some(byte) = value.get_mut(zero) {
                        *byte = 0;
                    }
                    encoded(&value).len()
                })
                .max();
            let longest = longest.expect("there is one at least");
            assert!(longest <= encoded_len_max(len), "{len}");
            assert!(
                encoded(&vec![0; len]).len() <= encoded_len_max(len),
                "{len}"
            );
        }
    }

    #[test]
    fn bytes_that_no_string_made_are_read_without_a_panic() {
        for key in [&[0][..], &[0, 0xff], &[0, 0xff, 1, 2], &[0xff; 30], &[]] {
            assert!(encoded_len(key, |byte| byte) <= key.len());
            read(key, |byte| byte, &mut Vec::new());
        }
        let mut key = vec![0, 0xff];
        key.extend([200; 9]);
        assert!(encoded_len(&key, |byte| byte) <= key.len());
        read(&key, |byte| byte, &mut Vec::new());
    }
}
