//! cliff: time over memory, from eight times the data to a sixteenth of it, in half octaves.
//!
//! The cliff factor is defined over growing data at fixed memory: C(x) = T(2x) / T(x) / 2. Here
//! the data stays and memory shrinks; as T is proportional to the data at a fixed ratio of data
//! to memory, T(2x, M) = 2 T(x, M/2), so C is the time at half the memory over the time at the
//! memory. The step is taken at 5 % on either side of the data in the same way.

use crate::args::{Limit, SystemName};
use crate::error::BenchError;
use crate::results::Results;
use crate::runner::Runner;
use crate::suite::{groupings, seed0};

const MOST_FACTOR: f64 = 1.3;
const MOST_STEP: f64 = 1.1;

pub(crate) fn run(
    runner: &mut Runner,
    full: bool,
    results: &mut Results,
) -> Result<(), BenchError> {
    let mut cases = vec![seed0::case(runner, 4_000_000, Vec::new())?];
    if full {
        cases.push(groupings::case(runner, 4, 1, true)?);
        cases.push(groupings::case(runner, 4, 12, false)?);
    }
    for mut case in cases {
        case.name = format!("cliff {}", case.name);
        case.limits = half_octaves(case.data_bytes);
        case.check_every_limit = false;
        // The slow engines have a curve in `seed0`.
        case.contenders.retain(|contender| {
            !matches!(contender.system, SystemName::Sqlite | SystemName::Mariadb)
        });
        runner.case(&case, results)?;
        for contender in &case.contenders {
            for capped in [false, true] {
                figures(
                    results,
                    &case.name,
                    case.data_bytes,
                    &contender.label,
                    capped,
                );
            }
        }
    }
    Ok(())
}

/// Eight times the data down to a sixteenth, and the two limits around it.
fn half_octaves(data_bytes: u64) -> Vec<Limit> {
    let mut limits: Vec<Limit> = (-6..=8)
        .map(|half| at(data_bytes, 2_f64.powf(-f64::from(half) / 2.0)))
        .collect();
    limits.extend([at(data_bytes, 1.0 / 0.95), at(data_bytes, 1.0 / 1.05)]);
    limits.sort_by(|a, b| b.cmp(a));
    limits
}

fn at(data_bytes: u64, factor: f64) -> Limit {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a size"
    )]
    let mib = (data_bytes as f64 * factor / f64::from(1 << 20)).round() as u64;
    Limit::mib(mib.max(1))
}

fn figures(results: &mut Results, case: &str, data_bytes: u64, who: &str, capped: bool) {
    let seconds = |factor: f64| {
        results
            .cell(case, at(data_bytes, factor), capped)
            .and_then(|cell| cell.seconds(who))
    };
    let mut worst: Option<(f64, f64, f64)> = None;
    for half in -6..=6 {
        let factor = 2_f64.powf(-f64::from(half) / 2.0);
        if let (Some(more), Some(less)) = (seconds(factor), seconds(factor / 2.0))
            && worst.is_none_or(|(slow, fast, _)| less / more > slow / fast)
        {
            worst = Some((less, more, factor));
        }
    }
    let step = (seconds(1.0 / 1.05), seconds(1.0 / 0.95));
    let kind = if capped { "capped" } else { "by knob" };
    let ours = who == SystemName::Mayfly.label();
    if let Some((less, more, _)) = worst {
        let most = ours.then_some(MOST_FACTOR);
        results.ratio(
            format!("{case}, cliff factor of {who}, {kind}"),
            Some(less),
            Some(more),
            most,
        );
    }
    let most = ours.then_some(MOST_STEP);
    results.ratio(
        format!("{case}, step of {who}, {kind}"),
        step.0,
        step.1,
        most,
    );
}
