//! The figures that every load has: memory kept, tables right, nothing failed.

use super::found::LoadEnd;
use crate::args::SystemName;
use crate::results::{Figure, Results};

/// What a process may take beyond its budget, and each of its connections.
const SLACK_BYTES: u64 = 96 << 20;
const CONNECTION_BYTES: u64 = 64 << 10;

/// Adds them.
pub(crate) fn kept(results: &mut Results) {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let ours = || {
        let loads = results.loads.iter();
        loads.filter(|ran| ran.system == SystemName::Mayfly)
    };
    let beyond = ours()
        .filter_map(|ran| {
            let memory_bytes = ran.memory_bytes?;
            let may_take = memory_bytes + ran.clients as u64 * CONNECTION_BYTES;
            Some(ran.rate()?.peak_bytes.saturating_sub(may_take))
        })
        .max();
    let failed = ours()
        .filter(|ran| matches!(ran.end, LoadEnd::Failed(_)))
        .count();
    let took_part = ours().any(|ran| !matches!(ran.end, LoadEnd::Skipped(_)));
    let ignored: u64 = ours()
        .filter_map(|ran| Some(ran.rate()?.ignored_errors))
        .sum();
    let rates = || results.loads.iter().filter_map(|ran| ran.rate());
    let checked = rates().filter(|rate| rate.checked).count();
    let wrong = rates().filter(|rate| rate.wrong.is_some()).count();
    let mut figures = Vec::new();
    let mut figure = |what: &str, found: f64, most: f64| {
        figures.push(Figure::at_most(what, found, Some(most)));
    };
    if let Some(beyond) = beyond {
        let what =
            "Mayfly's peak resident size beyond its budget and 64 KiB a client, worst run, MiB";
        figure(what, mib(beyond), mib(SLACK_BYTES));
    }
    if checked > 0 {
        let what = format!("answers that are not the right ones, of {checked}");
        figure(&what, wrong as f64, 0.0);
    }
    if took_part {
        let what = "errors of Mayfly after which the client program went on";
        figure(what, ignored as f64, 0.0);
        figure("runs in which Mayfly failed", failed as f64, 0.0);
    }
    results.figures.extend(figures);
}
