//! Keys that are whole numbers as bits, one each: what a Bloom filter tells, without a hash and
//! without keys that pass by chance.
//!
//! Bits are set by the lower part of a number, before it is known between which numbers the keys
//! lie. They tell keys apart if those lie no further apart than there are bits, which most do:
//! numbers of rows, and what refers to them.

use std::sync::atomic::{AtomicU64, Ordering};

use super::bloom::{WORDS_PER_STEP, no_bits};
use crate::time_slice::TimeSlice;

const WORD_BITS: u64 = u64::BITS as u64;
/// Bits that a core has near it in any case: what its second-level cache holds.
const NEAR_BYTES: u64 = 1 << 20;
/// Beyond that, the bits may take so many times what a Bloom filter takes of the same keys.
const BYTES_PER_BLOOM: u64 = 4;

/// A bit for each number, modulo how many they are.
#[derive(Debug)]
pub(super) struct SettingBits {
    words: Vec<AtomicU64>,
    least: AtomicU64,
    greatest: AtomicU64,
}

impl SettingBits {
    /// No bits of as many words, a power of two.
    pub(super) async fn new(words: usize) -> SettingBits {
        debug_assert!(words.is_power_of_two());
        SettingBits {
            words: no_bits(words).await,
            least: AtomicU64::new(u64::MAX),
            greatest: AtomicU64::new(u64::MIN),
        }
    }

    /// Any number of tasks may do so at a time; those that read the bits begin when they have
    /// ended, so that `Relaxed` is enough.
    pub(super) fn insert(&self, numbers: impl Iterator<Item = u64>) {
        let last = self.words.len() - 1;
        let (mut least, mut greatest) = (u64::MAX, u64::MIN);
        for number in numbers {
            (least, greatest) = (least.min(number), greatest.max(number));
            let word = &self.words[(number / WORD_BITS) as usize & last];
            let bit = 1 << (number % WORD_BITS);
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
        self.least.fetch_min(least, Ordering::Relaxed);
        self.greatest.fetch_max(greatest, Ordering::Relaxed);
    }

    /// The bits of the numbers between the least and the greatest; `None` where those lie too far
    /// apart for it, or a Bloom filter of so many bytes is smaller by much.
    pub(super) async fn finish(mut self, bloom_bytes: u64) -> Option<KeyBits> {
        let (least, greatest) = (*self.least.get_mut(), *self.greatest.get_mut());
        let first = least / WORD_BITS;
        let count = (greatest / WORD_BITS).checked_sub(first)? + 1;
        let bytes_max = NEAR_BYTES.max(bloom_bytes * BYTES_PER_BLOOM);
        if count > self.words.len() as u64 || count * size_of::<u64>() as u64 > bytes_max {
            return None;
        }
        let last = self.words.len() as u64 - 1;
        let mut words = Vec::with_capacity(count as usize + 1);
        let mut slice = TimeSlice::begin();
        for word in first..first + count {
            words.push(*self.words[(word & last) as usize].get_mut());
            if words.len().is_multiple_of(WORDS_PER_STEP) {
                slice.share().await;
            }
        }
        words.push(0);
        Some(KeyBits {
            words,
            first: first * WORD_BITS,
        })
    }
}

/// A bit for each number between the first and the last of some words.
#[derive(Debug)]
pub(super) struct KeyBits {
    /// No bit of the last is set: it stands for all numbers that have no word.
    words: Vec<u64>,
    /// The number of the first bit of the first word.
    first: u64,
}

impl KeyBits {
    /// Whether a number is there. Takes no branch.
    #[inline]
    pub(super) fn contains(&self, number: u64) -> bool {
        let place = number.wrapping_sub(self.first);
        let last = self.words.len() - 1;
        let word = self.words[last.min((place / WORD_BITS) as usize)];
        word >> (place % WORD_BITS) & 1 == 1
    }

    /// What they take.
    pub(super) fn own_bytes(&self) -> u64 {
        size_of_val(&self.words[..]) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn bits(numbers: &[u64], words: usize, bloom_bytes: u64) -> Option<KeyBits> {
        let bits = SettingBits::new(words).await;
        bits.insert(numbers.iter().copied());
        bits.finish(bloom_bytes).await
    }

    #[tokio::test]
    async fn numbers_are_found_and_no_others() {
        let middle = 1 << 63;
        for first in [0, 63, 64, 1000, middle - 100, middle, u64::MAX - 300] {
            let numbers = [first, first + 1, first + 64, first + 200, first + 300];
            let bits = bits(&numbers, 8, 0).await.unwrap();
            let around = (0..=700).map(|place| first.saturating_sub(200).saturating_add(place));
            for number in around.chain([0, first ^ 512, first ^ middle, u64::MAX]) {
                assert_eq!(bits.contains(number), numbers.contains(&number), "{number}");
            }
        }
    }

    #[tokio::test]
    async fn numbers_that_lie_far_apart_have_no_bits() {
        assert!(bits(&[], 8, 0).await.is_none());
        assert!(bits(&[0, 511], 8, 0).await.is_some());
        assert!(bits(&[63, 512 + 63], 8, 0).await.is_none());
        assert!(bits(&[0, u64::MAX], 8, 1 << 40).await.is_none());
        let far = [7, 8 * NEAR_BYTES + 64];
        assert!(bits(&far, 1 << 18, 0).await.is_none());
        assert!(bits(&far, 1 << 18, NEAR_BYTES).await.is_some());
    }
}
