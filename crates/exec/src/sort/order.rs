//! The order of a run: sorts entries of key prefix and row index.
//!
//! Owns: nothing; free functions over slices. Never: touches a column.
//!
//! An entry is one `u128`: the first twelve bytes of the normalised key above, a 32-bit row index
//! below. Comparing two entries is comparing two integers, and equal prefixes fall back to the
//! order of arrival, which makes the sort stable. Where twelve bytes do not decide, each group of
//! equal prefixes is sorted again by the next twelve, and so on until the keys end. Which twelve
//! come first is for `deciding_bytes`.
//!
//! Source: prefix sorting as in "AlphaSort" (Nyberg et al., SIGMOD 1994); re-sorting groups by the
//! following bytes is multikey sorting with a radix of twelve bytes. Cost: one integer sort when
//! prefixes differ; one more pass over a group per twelve equal bytes.

/// Bytes of the key in an entry: what a `u128` leaves beside the row index.
pub(super) const PREFIX_BYTES: usize = 12;

/// Groups up to this size compare whole keys; larger ones pay for building entries again.
const SMALL_GROUP: usize = 12;

/// The bytes of `key` from `offset`, zero-padded, as the upper 96 bits of an entry.
#[inline]
pub(super) fn prefix(key: &[u8], offset: usize) -> u128 {
    let tail = key.get(offset..).unwrap_or_default();
    if let Some(bytes) = tail.first_chunk::<16>() {
        return u128::from_be_bytes(*bytes) >> 32 << 32;
    }
    let mut padded = [0_u8; 16];
    let len = tail.len().min(PREFIX_BYTES);
    padded[..len].copy_from_slice(&tail[..len]);
    u128::from_be_bytes(padded)
}

/// The entry of a row.
#[inline]
pub(super) fn entry(key: &[u8], row_index: u32) -> u128 {
    prefix(key, 0) | u128::from(row_index)
}

/// The entry of a row with these bytes of its key, as an integer of at most 96 bits.
#[inline]
pub(super) fn entry_of(bytes: u128, row_index: u32) -> u128 {
    bytes << 32 | u128::from(row_index)
}

/// The row index of an entry.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the row index is the lower 32 bits"
)]
pub(super) fn row_index(entry: u128) -> u32 {
    entry as u32
}

/// The key bytes that an entry carries.
#[inline]
pub(super) fn prefix_bytes(entry: u128) -> [u8; PREFIX_BYTES] {
    let mut bytes = [0; PREFIX_BYTES];
    bytes.copy_from_slice(&entry.to_be_bytes()[..PREFIX_BYTES]);
    bytes
}

/// Sorts entries whose prefixes hold the whole key.
pub(super) fn sort_narrow(entries: &mut [u128]) {
    entries.sort_unstable();
}

/// Sorts entries whose keys may go on at an offset: before it, those with equal prefixes are equal.
/// The prefixes are scratch space: only the row indexes of the result mean anything.
pub(super) fn sort_wide<'k>(entries: &mut [u128], offset: usize, key_of: impl Fn(u32) -> &'k [u8]) {
    entries.sort_unstable();
    let mut open = vec![(0, entries.len(), offset)];
    while let Some((start, end, offset)) = open.pop() {
        let mut first = start;
        while first < end {
            let same = entries[first] >> 32;
            let mut last = first + 1;
            while last < end && entries[last] >> 32 == same {
                last += 1;
            }
            let group = &mut entries[first..last];
            if group.len() > SMALL_GROUP {
                if extend_prefixes(group, offset, &key_of) {
                    open.push((first, last, offset + PREFIX_BYTES));
                }
            } else if group.len() > 1 {
                group.sort_unstable_by(|&a, &b| {
                    let (a, b) = (row_index(a), row_index(b));
                    key_of(a)
                        .get(offset..)
                        .cmp(&key_of(b).get(offset..))
                        .then(a.cmp(&b))
                });
            }
            first = last;
        }
    }
}

/// Sorts a group of equal keys up to `offset` by the bytes from there. False when no key goes on,
/// which leaves the group in order of arrival.
fn extend_prefixes<'k>(
    group: &mut [u128],
    offset: usize,
    key_of: &impl Fn(u32) -> &'k [u8],
) -> bool {
    let mut any_longer = false;
    for entry in group.iter_mut() {
        let index = row_index(*entry);
        let key = key_of(index);
        any_longer |= key.len() > offset;
        *entry = prefix(key, offset) | u128::from(index);
    }
    if any_longer {
        group.sort_unstable();
    }
    any_longer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &[Vec<u8>]) {
        let mut entries: Vec<u128> = (0_u32..)
            .zip(keys)
            .map(|(index, key)| entry(key, index))
            .collect();
        sort_wide(&mut entries, PREFIX_BYTES, |index| &keys[index as usize]);
        let got: Vec<u32> = entries.iter().map(|&entry| row_index(entry)).collect();
        let mut expected: Vec<u32> = (0..u32::try_from(keys.len()).unwrap()).collect();
        expected.sort_by(|&a, &b| keys[a as usize].cmp(&keys[b as usize]));
        assert_eq!(got, expected);
    }

    #[test]
    fn long_common_prefixes_sort_stably() {
        let mut state = 7_u64;
        let mut next = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for common in [0, 3, 11, 12, 13, 40, 100] {
            for rows in [1_u64, 2, 5, 50, 500] {
                let keys: Vec<Vec<u8>> = (0..rows)
                    .map(|_| {
                        let mut key = vec![1; common];
                        key.extend((0..5).map(|_| b'a' + u8::try_from(next(3)).unwrap()));
                        key.push(0);
                        key
                    })
                    .collect();
                check(&keys);
            }
        }
    }

    #[test]
    fn equal_keys_keep_the_order_of_arrival() {
        check(&vec![vec![9; 64]; 300]);
    }
}
