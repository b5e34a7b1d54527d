//! A Bloom filter over the hashes of keys.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::time_slice::TimeSlice;

/// Each key sets three bits of a word. With at most so many keys a word, one of a hundred others
/// passes.
const KEYS_PER_WORD: usize = 4;
const WORD_BITS_MIN: u32 = 3;
/// Words that are written or read between two looks at the clock.
pub(super) const WORDS_PER_STEP: usize = 64 << 10;

/// A Bloom filter over hashes, each of which has its bits in one word.
///
/// Words are independent of each other, and the tasks that set bits have ended before others look
/// for them: `Relaxed` is enough.
#[derive(Debug)]
pub(super) struct Bloom {
    words: Vec<AtomicU64>,
    word_bits: u32,
}

impl Bloom {
    /// The binary logarithm of how many words so many keys need.
    pub(super) fn word_bits(keys: usize) -> u32 {
        let words = keys.div_ceil(KEYS_PER_WORD).next_power_of_two();
        words.ilog2().max(WORD_BITS_MIN)
    }

    /// What so many words take.
    pub(super) fn bytes(word_bits: u32) -> u64 {
        (size_of::<AtomicU64>() as u64) << word_bits
    }

    pub(super) async fn new(word_bits: u32) -> Bloom {
        Bloom {
            words: no_bits(1 << word_bits).await,
            word_bits,
        }
    }

    /// What it takes.
    pub(super) fn own_bytes(&self) -> u64 {
        Bloom::bytes(self.word_bits)
    }

    /// The word of a hash and its bits there.
    #[inline]
    fn place(&self, hash: u64) -> (&AtomicU64, u64) {
        let word = (hash >> (u64::BITS - self.word_bits)) as usize;
        let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63);
        (&self.words[word], bits)
    }

    /// Whether a hash was not there: of tasks that insert the same at a time, one is told so.
    #[inline]
    pub(super) fn insert(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        // Most bits are there already where a key has many rows. To read is cheaper.
        word.load(Ordering::Relaxed) & bits != bits
            && word.fetch_or(bits, Ordering::Relaxed) & bits != bits
    }

    #[inline]
    pub(super) fn contains(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        word.load(Ordering::Relaxed) & bits == bits
    }

    /// Makes it as small as that. The first bits of a hash are its word, so words that become one
    /// are neighbours.
    pub(super) async fn fold(&mut self, word_bits: u32) {
        if word_bits >= self.word_bits {
            return;
        }
        let (count, merged) = (1 << word_bits, 1 << (self.word_bits - word_bits));
        let mut slice = TimeSlice::begin();
        let mut read = 0;
        for place in 0..count {
            let first = place * merged;
            let neighbours = self.words[first..first + merged].iter_mut();
            let bits = neighbours.fold(0, |bits, word| bits | *word.get_mut());
            *self.words[place].get_mut() = bits;
            read += merged;
            if read >= WORDS_PER_STEP {
                read = 0;
                slice.share().await;
            }
        }
        self.words.truncate(count);
        self.words.shrink_to_fit();
        self.word_bits = word_bits;
    }
}

/// Words without bits.
pub(super) async fn no_bits(count: usize) -> Vec<AtomicU64> {
    let mut words = Vec::with_capacity(count);
    let mut slice = TimeSlice::begin();
    while words.len() < count {
        let step = count.min(words.len() + WORDS_PER_STEP);
        words.resize_with(step, AtomicU64::default);
        slice.share().await;
    }
    words
}
