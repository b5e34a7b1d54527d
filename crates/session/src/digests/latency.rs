//! How many statements took how long: what quantiles are made of.

/// Buckets between two powers of two. A quantile is at most a quarter above the truth.
const PER_POWER: u32 = 4;
/// Times below 2^10 ns go to the first bucket, those from 2^41 ns (half an hour) on to the last.
const LEAST_POWER: u32 = 10;
const BUCKETS: usize = 31 * PER_POWER as usize;

/// Counts of times, in buckets that grow with the time.
#[derive(Debug, Clone)]
pub(super) struct Latency([u32; BUCKETS]);

impl Default for Latency {
    fn default() -> Self {
        Latency([0; BUCKETS])
    }
}

impl Latency {
    pub(super) fn add(&mut self, nanos: u64) {
        let bucket = &mut self.0[bucket_of(nanos)];
        *bucket = bucket.saturating_add(1);
    }

    /// A time, in nanoseconds, that so many of a thousand did not exceed: the end of a bucket; 0
    /// where there were none.
    pub(super) fn quantile(&self, per_thousand: u64) -> u64 {
        let all: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let wanted = (all * per_thousand).div_ceil(1000);
        let mut seen = 0;
        for (bucket, count) in (0..).zip(&self.0) {
            seen += u64::from(*count);
            if *count > 0 && seen >= wanted {
                return end_of(bucket);
            }
        }
        0
    }
}

/// The bucket of a time: its highest bit and the two bits behind it.
fn bucket_of(nanos: u64) -> usize {
    let power = nanos.checked_ilog2().unwrap_or(0);
    if power < LEAST_POWER {
        return 0;
    }
    let part = (nanos >> (power - 2)) & u64::from(PER_POWER - 1);
    let bucket = (power - LEAST_POWER) as usize * PER_POWER as usize + part as usize;
    bucket.min(BUCKETS - 1)
}

/// The time at which a bucket ends, in nanoseconds.
fn end_of(bucket: u32) -> u64 {
    let power = LEAST_POWER + bucket / PER_POWER;
    let part = u64::from(bucket % PER_POWER);
    (u64::from(PER_POWER) + part + 1) << (power - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_little_above_what_was_measured() {
        let mut latency = Latency::default();
        assert_eq!(latency.quantile(950), 0);
        for micros in 1..=1000 {
            latency.add(micros * 1000);
        }
        for (per_thousand, micros) in [(500, 500), (950, 950), (990, 990), (999, 999)] {
            let found = latency.quantile(per_thousand);
            assert!(found >= micros * 1000, "{per_thousand}: {found}");
            assert!(found <= micros * 1300, "{per_thousand}: {found}");
        }
    }

    #[test]
    fn every_time_has_a_bucket_that_ends_behind_it() {
        for power in 0..64 {
            for nanos in [1_u64 << power, (1 << power) + (1 << power) / 3] {
                let bucket = bucket_of(nanos);
                assert!(bucket < BUCKETS);
                let is_last = bucket == BUCKETS - 1;
                assert!(is_last || end_of(bucket as u32) > nanos, "{nanos}");
            }
        }
        assert_eq!(bucket_of(0), 0);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }
}
