//! Limits that are a part of the data, and the figures over them.
//!
//! Owns: the ratios of data to limit that several benchmarks share, and what they say of each:
//! the geometric mean over DuckDB of the cases that both answer, and the largest cliff factor.

use crate::args::{Limit, SystemName};
use crate::results::{Results, geometric_mean};

/// Data over limit.
const RATIOS: [u64; 5] = [1, 2, 4, 8, 16];
const QUICK_RATIOS: [u64; 2] = [4, 16];
/// No limit goes below what every system needs to start.
const LEAST_MIB: u64 = 16;

/// The ratios of the full form, or of the quick one.
pub(crate) fn chosen(full: bool) -> &'static [u64] {
    if full { &RATIOS } else { &QUICK_RATIOS }
}

/// No limit, and one for each ratio, from the largest down.
pub(crate) fn limits(data_bytes: u64, ratios: &[u64]) -> Vec<Limit> {
    let mut limits: Vec<Limit> = std::iter::once(Limit::All)
        .chain(ratios.iter().map(|ratio| limit(data_bytes, *ratio)))
        .collect();
    limits.dedup();
    limits
}

/// The data over a ratio, in whole MiB.
fn limit(data_bytes: u64, ratio: u64) -> Limit {
    in_mib(data_bytes / ratio)
}

/// Bytes as a limit of whole MiB that every system can start with.
pub(crate) fn in_mib(bytes: u64) -> Limit {
    Limit::mib(bytes.div_ceil(1 << 20).max(LEAST_MIB))
}

/// What many cases under comparable limits say together.
#[derive(Debug, Default)]
pub(crate) struct Quotients {
    found: Vec<f64>,
    without_theirs: u32,
    without_ours: u32,
}

impl Quotients {
    /// Adds a case: who has no right answer has no time.
    pub(crate) fn add(&mut self, ours: Option<f64>, theirs: Option<f64>) {
        match (ours, theirs) {
            (Some(ours), Some(theirs)) => self.found.push(ours / theirs),
            (Some(_), None) => self.without_theirs += 1,
            (None, Some(_)) => self.without_ours += 1,
            (None, None) => {
                self.without_ours += 1;
                self.without_theirs += 1;
            }
        }
    }

    /// The geometric mean and its name, if both have answered at least one case.
    pub(crate) fn figure(&self, at: &str) -> Option<(String, f64)> {
        let mean = geometric_mean(&self.found)?;
        let mut without = String::new();
        for (lost, who) in [
            (self.without_ours, SystemName::Mayfly),
            (self.without_theirs, SystemName::Duckdb),
        ] {
            if lost > 0 {
                without.push_str(&format!(", without {lost} that {} lost", who.label()));
            }
        }
        let cases = self.found.len();
        let what = format!("{at}, geometric mean of {cases} cases, Mayfly / DuckDB{without}");
        Some((what, mean))
    }
}

/// Adds the figures of cases, each with the bytes of its data.
pub(crate) fn figures(results: &mut Results, label: &str, cases: &[(String, u64)], ratios: &[u64]) {
    let mut found = Vec::new();
    let limits = std::iter::once(None).chain(ratios.iter().copied().map(Some));
    for ratio in limits {
        for capped in [false, true] {
            let kind = if capped { " capped" } else { "" };
            let at = ratio.map_or(format!("{label} in memory"), |ratio| {
                format!("{label} data/limit {ratio}{kind}")
            });
            let (together, slowdowns) = at_ratio(results, cases, ratios, ratio, capped);
            if let Some((what, mean)) = together.figure(&at) {
                found.push((what, mean, 1.0));
            }
            if let Some(worst) = slowdowns.into_iter().reduce(f64::max) {
                found.push((format!("{at}, largest cliff factor"), worst, 1.3));
            }
        }
    }
    for (what, value, most) in found {
        results.ratio(what, Some(value), Some(1.0), Some(most));
    }
}

/// All cases at a ratio: beside DuckDB, and Mayfly beside itself with twice the memory.
fn at_ratio(
    results: &Results,
    cases: &[(String, u64)],
    ratios: &[u64],
    ratio: Option<u64>,
    capped: bool,
) -> (Quotients, Vec<f64>) {
    let [mayfly, duckdb] = [SystemName::Mayfly, SystemName::Duckdb].map(SystemName::label);
    let mut together = Quotients::default();
    let mut slowdowns = Vec::new();
    for (name, data_bytes) in cases {
        let limit_of = |ratio: Option<u64>| ratio.map_or(Limit::All, |r| limit(*data_bytes, r));
        let Some(cell) = results.cell(name, limit_of(ratio), capped) else {
            continue;
        };
        let [ours, theirs] =
            [mayfly, duckdb].map(|who| results.right_seconds(name, cell.limit, capped, who));
        together.add(ours, theirs);
        // Twice the memory: the cliff factor, as in `cliff`.
        let roomier = ratio.and_then(|ratio| (ratio > 1).then_some(ratio / 2));
        let roomier = roomier.filter(|ratio| ratios.contains(ratio));
        if let Some(more) = roomier
            && let Some(cell_more) = results.cell(name, limit_of(Some(more)), capped)
            && cell_more.limit != cell.limit
            && let (Some(less), Some(more)) = (cell.seconds(mayfly), cell_more.seconds(mayfly))
        {
            slowdowns.push(less / more);
        }
    }
    (together, slowdowns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_fall_with_the_ratio_and_end_at_the_least() {
        let mib = 1 << 20;
        let found = limits(1000 * mib, &[1, 4, 16]);
        let expected = [1000, 250, 63].map(Limit::mib);
        assert_eq!(found[0], Limit::All);
        assert_eq!(found[1..], expected);
        // What would be the same twice is measured once.
        assert_eq!(limits(mib, &[4, 16]), [Limit::All, Limit::mib(16)]);
    }

    #[test]
    fn the_mean_is_over_cases_that_both_answer() {
        let mut together = Quotients::default();
        assert!(together.figure("x").is_none());
        together.add(Some(2.0), Some(1.0));
        together.add(Some(1.0), Some(8.0));
        together.add(None, Some(1.0));
        together.add(Some(0.1), None);
        together.add(None, None);
        let (what, mean) = together.figure("x").expect("two cases have a quotient");
        // The root of 2 times an eighth.
        assert!((mean - 0.5).abs() < 1e-12, "{mean}");
        assert_eq!(
            what,
            "x, geometric mean of 2 cases, Mayfly / DuckDB, without 2 that Mayfly lost, \
             without 2 that DuckDB lost"
        );
    }
}
