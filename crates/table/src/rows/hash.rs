//! Hashes of keys: a fast one that places rows, and a slow one for keys that share the fast one.
//!
//! **Why two.** A client chooses the keys of its rows. If it can compute their hashes, it can send
//! keys that all share one: a table over them becomes a list, and no number of hash bits splits
//! their partition. The first hash (rapidhash) has secrets of the process, so nobody outside can
//! compute it; but it is not a cryptographic one, and what it gives away by its timing is not
//! known. So tables watch the length of their probes. One whose probes become too long goes over to
//! the second hash, SipHash under a key of the process, for which nobody knows how to find
//! collisions; a partition that the bits of the first hash do not split is split by the second.
//!
//! **Cost.** Secrets cost the first hash nothing. The second takes about 15 ns for a short key, and
//! is computed only where the first has failed.
//!
//! **Source.** Crosby and Wallach, "Denial of Service via Algorithmic Complexity Attacks" (2003);
//! Aumasson and Bernstein, "SipHash" (2012).

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

use super::layout::DEAD_BIT;

/// The hashes of keys under secrets.
#[derive(Debug, Clone)]
pub(crate) struct KeyHasher {
    first: RapidSecrets,
    second: RandomState,
}

impl KeyHasher {
    /// With the secrets of this process.
    pub(crate) fn of_process() -> KeyHasher {
        static PROCESS: LazyLock<KeyHasher> = LazyLock::new(|| {
            let seed = RandomState::new().hash_one("the seed of the first hash");
            KeyHasher::with_seed(seed)
        });
        PROCESS.clone()
    }

    /// With secrets of the first hash that are made of `seed`.
    pub(crate) fn with_seed(seed: u64) -> KeyHasher {
        KeyHasher {
            first: RapidSecrets::seed(seed),
            second: RandomState::new(),
        }
    }

    /// The hash of a canonical key, an even number.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        rapidhash_v3_inline::<true, false, false>(key, &self.first) & !DEAD_BIT
    }

    /// Another hash of the key, which says nothing about the first. Out of line: within the loops that
    /// place rows it would take the registers of the usual case.
    #[cold]
    #[inline(never)]
    pub(crate) fn second_hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.second.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    /// A word of a key that makes the first hash the same whatever its other word is.
    #[cfg(test)]
    pub(crate) fn weak_word(&self) -> u64 {
        self.first.secrets[1]
    }
}

/// Which hash bits all rows of a part share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Level {
    first_bits: u32,
    second_bits: u32,
    /// Whether parts are split by the second hash from here on.
    is_second: bool,
}

/// Bits by which the rows of a part may be told apart by one hash; behind them it has too few left.
const BITS_MAX: u32 = 60;

impl Level {
    /// Rows that share this many bits of the first hash.
    pub(crate) fn first(bits: u32) -> Level {
        Level {
            first_bits: bits,
            ..Level::default()
        }
    }

    /// Hash bits that the rows share, of both hashes.
    pub fn bits(self) -> u32 {
        self.first_bits + self.second_bits
    }

    /// Whether the second hash places rows.
    pub(crate) fn is_second(self) -> bool {
        self.is_second
    }

    /// The upper bits that rows share of the hash that places them.
    pub(crate) fn shared_bits(self) -> u32 {
        match self.is_second {
            false => self.first_bits,
            true => self.second_bits,
        }
    }

    /// The level of the parts that the next `bits` bits make; `None` where no hash has so many.
    pub(crate) fn below(self, bits: u32) -> Option<Level> {
        let mut below = self;
        if !self.is_second && self.first_bits + bits <= BITS_MAX {
            below.first_bits += bits;
            return Some(below);
        }
        below.is_second = true;
        below.second_bits += bits;
        (below.second_bits <= BITS_MAX).then_some(below)
    }

    /// The same rows, from here on told apart by the second hash.
    pub(crate) fn by_second(self) -> Level {
        Level {
            is_second: true,
            ..self
        }
    }
}
