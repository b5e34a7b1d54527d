//! What scripts show: microseconds per operation, ratios to the best peer, the figures that all of
//! them have.

use super::{End, LineTime, Turn};
use crate::args::SystemName;
use crate::report::text::print_sheet;
use crate::results::{Figure, Results, Sheet};

/// What a process may take beyond its budget.
const SLACK_BYTES: u64 = 96 << 20;

fn microseconds(line: &LineTime) -> f64 {
    line.seconds * 1e6 / line.operations as f64
}

/// The median of a line's microseconds per operation.
pub(crate) fn time(results: &Results, script: &str, line: &str, contender: &str) -> Option<f64> {
    results.line_median(script, line, contender, microseconds)
}

fn turns<'a>(results: &'a Results, script: &'a str) -> impl Iterator<Item = &'a Turn> {
    results
        .turns
        .iter()
        .filter(move |turn| turn.script == script)
}

/// The names of contenders or lines, in the order of their first appearance.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn measured(turn: &Turn) -> &[LineTime] {
    match &turn.end {
        End::Measured { lines, .. } => lines,
        End::Skipped(_) | End::Failed(_) => &[],
    }
}

/// A number for a reader.
pub(crate) fn number(value: f64) -> String {
    if value < 100.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    }
}

/// A script's lines by contenders, in microseconds per `operation`, and the time of `mayfly` over
/// that of the best peer.
pub(crate) fn times(results: &mut Results, script: &str, mayfly: &str, operation: &str) {
    let contenders = distinct(
        turns(results, script)
            .filter(|turn| !matches!(turn.end, End::Skipped(_)))
            .map(|turn| turn.contender.as_str()),
    );
    let lines = distinct(
        turns(results, script)
            .flat_map(measured)
            .map(|line| line.line.as_str()),
    );
    let of_mayfly = |contender: &str| {
        turns(results, script)
            .any(|turn| turn.contender == contender && turn.system == SystemName::Mayfly)
    };
    let [unit, count] = [format!("us per {operation}"), format!("{operation}s")];
    let mut columns = vec![unit.as_str(), count.as_str()];
    columns.extend(&contenders);
    columns.extend(["best peer", "Mayfly / it"]);
    let mut sheet = Sheet::new(script, &columns);
    for line in lines {
        let operations = turns(results, script)
            .flat_map(measured)
            .filter(|found| found.line == line)
            .map(|found| found.operations)
            .max();
        let mut row = vec![line.to_owned(), operations.unwrap_or(0).to_string()];
        let mut best: Option<(&str, f64)> = None;
        for contender in &contenders {
            let found = time(results, script, line, contender);
            row.push(found.map_or("-".to_owned(), number));
            if let Some(found) = found
                && !of_mayfly(contender)
                && best.is_none_or(|(_, least)| found < least)
            {
                best = Some((contender, found));
            }
        }
        row.push(best.map_or("-".to_owned(), |(name, _)| name.to_owned()));
        let ours = time(results, script, line, mayfly);
        let ratio = ours.zip(best).map(|(ours, (_, least))| ours / least);
        row.push(ratio.map_or("-".to_owned(), number));
        sheet.rows.push(row);
    }
    let mut peaks = vec!["peak resident size, MiB".to_owned(), String::new()];
    for contender in &contenders {
        let peak = turns(results, script)
            .filter(|turn| turn.contender == *contender)
            .filter_map(|turn| match turn.end {
                End::Measured { peak_bytes, .. } => Some(peak_bytes >> 20),
                End::Skipped(_) | End::Failed(_) => None,
            })
            .max();
        peaks.push(peak.map_or("-".to_owned(), |peak| peak.to_string()));
    }
    peaks.extend([String::new(), String::new()]);
    sheet.rows.push(peaks);
    print_sheet(&sheet);
    results.sheets.push(sheet);
}

/// Memory kept, answers right, nothing failed.
pub(crate) fn kept(results: &mut Results) {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut beyond = None;
    let mut failed = 0_u32;
    for turn in results
        .turns
        .iter()
        .filter(|turn| turn.system == SystemName::Mayfly)
    {
        match turn.end {
            End::Measured { peak_bytes, .. } => {
                let more = peak_bytes.saturating_sub(turn.memory_bytes);
                beyond = Some(beyond.unwrap_or(0).max(more));
            }
            End::Failed(_) => failed += 1,
            End::Skipped(_) => {}
        }
    }
    let lines = || results.turns.iter().flat_map(measured);
    let checked = lines().filter(|line| line.checked).count();
    let wrong = lines().filter(|line| line.wrong.is_some()).count();
    let mut figure = |what: String, found: f64, most: f64| {
        let figure = Figure::at_most(what, found, Some(most));
        results.figures.push(figure);
    };
    if let Some(beyond) = beyond {
        let what = "Mayfly's peak resident size beyond its budget, worst run, MiB";
        figure(what.to_owned(), mib(beyond), mib(SLACK_BYTES));
    }
    if checked > 0 {
        let what = format!("answers that are not the right ones, of {checked}");
        figure(what, wrong as f64, 0.0);
    }
    figure(
        "turns in which Mayfly failed".to_owned(),
        f64::from(failed),
        0.0,
    );
}
