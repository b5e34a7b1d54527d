//! Deterministic data from a seed.

/// A small random number generator with a period of 2^64 (SplitMix64, Steele et al., 2014).
///
/// Tests print the seed they use.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator; equal seeds give equal numbers on every machine.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether an event of this probability happened.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// Up to `longest` letters and digits; empty ones and long ones are both common.
    pub fn string(&mut self, longest: usize) -> String {
        let len = match self.below(8) {
            0 => 0,
            1 => longest as u64,
            _ => self.below(longest as u64 + 1),
        };
        let letters = b"abcdefghijklmnopqrstuvwxyz0123456789";
        (0..len)
            .map(|_| letters[self.below(36) as usize] as char)
            .collect()
    }
}

/// Ranks with Zipf's distribution: rank `r` comes up in proportion to `1 / (r + 1)^skew`.
#[derive(Debug, Clone)]
pub struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    /// A distribution over `count` ranks.
    pub fn new(count: usize, skew: f64) -> Zipf {
        let mut total = 0.0;
        let cumulative = (0..count)
            .map(|rank| {
                total += 1.0 / ((rank + 1) as f64).powf(skew);
                total
            })
            .collect();
        Zipf { cumulative }
    }

    /// A rank.
    pub fn sample(&self, random: &mut Random) -> usize {
        let total = self.cumulative.last().copied().unwrap_or(0.0);
        let at = random.unit() * total;
        self.cumulative
            .partition_point(|&sum| sum <= at)
            .min(self.cumulative.len().max(1) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_data() {
        let make = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| random.string(20)).collect::<Vec<_>>()
        };
        assert_eq!(make(7), make(7));
        assert_ne!(make(7), make(8));
    }

    #[test]
    fn low_ranks_are_common() {
        let (zipf, mut random) = (Zipf::new(1000, 1.0), Random::new(1));
        let firsts = (0..10_000)
            .filter(|_| zipf.sample(&mut random) == 0)
            .count();
        assert!((1000..2000).contains(&firsts), "{firsts}");
    }
}
