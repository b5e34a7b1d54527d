//! A Bloom filter over the hashes of keys: which rows have no partner for certain.
//!
//! Each hash sets three bits of one word, so a look costs one cache line. Memory is fixed when the
//! filter is made, since nobody knows how many keys will come; one that became too full to tell
//! anything says so.
//!
//! **Source.** Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (2007):
//! the blocked variant, with a machine word as the block. **Cost.** 2 ns a key while in cache.

use std::sync::atomic::{AtomicU64, Ordering};

use mayfly_space::{Account, Error};

use super::extra::ExtraMemory;

/// A filter takes at most this part of the budget ...
const FILTER_PER_MEMORY: u64 = 64;
/// ... and at most so much: 16 M keys with a few per cent of false answers.
const FILTER_BYTES_MAX: u64 = 16 << 20;
/// With more keys a word than this, every third row without a partner passes.
const KEYS_PER_WORD_MAX: u64 = 24;

/// Which keys may be among those that were added.
#[derive(Debug)]
pub struct KeyFilter {
    words: Vec<AtomicU64>,
    word_bits: u32,
    keys: AtomicU64,
    _memory: ExtraMemory,
}

impl KeyFilter {
    /// An empty filter, as large as the budget allows; `None` where memory is short.
    pub(crate) fn new(account: &Account) -> Result<Option<KeyFilter>, Error> {
        let share = account.space().memory_bytes() / FILTER_PER_MEMORY;
        let bytes = share.clamp(64, FILTER_BYTES_MAX);
        let word_bits = (bytes / 8).ilog2();
        let Some(memory) = ExtraMemory::reserve(account, 8 << word_bits)? else {
            return Ok(None);
        };
        Ok(Some(KeyFilter {
            words: (0..1 << word_bits).map(|_| AtomicU64::new(0)).collect(),
            word_bits,
            keys: AtomicU64::new(0),
            _memory: memory,
        }))
    }

    /// The word of a hash and its bits there. Partitions are chosen by the upper bits of a hash, so
    /// words are chosen by all of them, mixed.
    #[inline]
    fn place(&self, hash: u64) -> (usize, u64) {
        let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let word = (mixed >> (64 - self.word_bits)) as usize;
        // The lowest bit of a hash says nothing.
        let bits = 1 << (hash >> 1 & 63) | 1 << (hash >> 7 & 63) | 1 << (hash >> 13 & 63);
        (word, bits)
    }

    /// Adds keys by their hashes.
    pub(crate) fn add(&self, hashes: &[u64]) {
        for hash in hashes {
            let (word, bits) = self.place(*hash);
            let word = &self.words[word];
            if word.load(Ordering::Relaxed) & bits != bits {
                word.fetch_or(bits, Ordering::Relaxed);
            }
        }
        self.keys.fetch_add(hashes.len() as u64, Ordering::Relaxed);
    }

    /// Whether a key with this hash may have been added.
    #[inline]
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        self.words[word].load(Ordering::Relaxed) & bits == bits
    }

    /// Whether it is not too full to tell anything.
    pub(crate) fn is_useful(&self) -> bool {
        self.keys.load(Ordering::Relaxed) / KEYS_PER_WORD_MAX <= self.words.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use mayfly_testkit::{Random, space_of};

    use super::*;

    #[test]
    fn what_was_added_passes_and_little_else() {
        let space = space_of(4 << 20);
        let filter = KeyFilter::new(space.root()).unwrap().unwrap();
        let mut random = Random::new(7);
        let mut hashes = |count| (0..count).map(|_| random.next_u64() & !1).collect();
        let (added, others): (Vec<u64>, Vec<u64>) = (hashes(20_000), hashes(20_000));
        filter.add(&added);
        assert!(filter.is_useful());
        assert!(added.iter().all(|hash| filter.may_have(*hash)));
        let wrong = others.iter().filter(|hash| filter.may_have(**hash)).count();
        assert!(wrong < 2_000, "{wrong} of 20000 pass");
        filter.add(&hashes(400_000));
        assert!(!filter.is_useful());
    }

    #[test]
    fn its_memory_is_granted_and_given_back() {
        let space = space_of(1 << 20);
        let filter = KeyFilter::new(space.root()).unwrap().unwrap();
        assert_eq!(space.counters().reserved_bytes, 16 << 10);
        drop(filter);
        assert_eq!(space.counters().reserved_bytes, 0);
        let all = space.root().reserve(1 << 20).unwrap();
        assert!(KeyFilter::new(space.root()).unwrap().is_none());
        drop(all);
    }
}
