//! What seed3 shows: microseconds per operation, ratios to the best peer, figures to reach.

use super::names::{
    BATCHES_SCRIPT, BEYOND_SCRIPT, CREATE_SCRIPT, EMBEDDED, INNODB, KEYS_SCRIPT, MARIADB, MAYFLY,
    MAYFLY_QUARTER, MEMORY, ROWS_SCRIPT, WIRE,
};
use super::statements::{self, PAIR, PAIR_KEYS, RANDOM_LINES, ROW_LINES};
use crate::args::{SystemName, size};
use crate::report::text::print_sheet;
use crate::results::{Figure, Results, Sheet};
use crate::scripts::{End, LineTime, Turn};

/// Most of MariaDB's time for its best engine's create+drop.
const MOST_PAIR: f64 = 0.5;
/// Most of the time of a MEMORY table's line.
const MOST_MEMORY: f64 = 1.0;
/// Most of the time of an InnoDB temporary table's line.
const MOST_INNODB: f64 = 0.7;
/// Most of the time in memory that a line in order may take at a quarter of it.
const MOST_BEYOND: f64 = 2.0;
/// What a process may take beyond its budget.
const SLACK_BYTES: u64 = 96 << 20;

fn microseconds(line: &LineTime) -> f64 {
    line.seconds * 1e6 / line.operations as f64
}

fn time(results: &Results, script: &str, line: &str, contender: &str) -> Option<f64> {
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

fn number(value: f64) -> String {
    if value < 100.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    }
}

/// A script's lines by contenders, in microseconds per operation.
pub(super) fn times(results: &mut Results, script: &str) {
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
    let mut columns = vec!["us per operation", "operations"];
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
        let ours = time(results, script, line, MAYFLY);
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

/// What the lines beyond memory read and wrote.
pub(super) fn device(results: &mut Results, table_bytes: u64, budget: u64) {
    let mut sheet = Sheet::new(
        &format!(
            "beyond memory: a table of {}, keys included, in {}",
            size(table_bytes),
            size(budget)
        ),
        &[
            "line",
            "in memory, us",
            "in a quarter, us",
            "ratio",
            "device bytes read per operation",
            "written per operation",
        ],
    );
    for line in ROW_LINES {
        let inside = time(results, BEYOND_SCRIPT, line, MAYFLY);
        let outside = time(results, BEYOND_SCRIPT, line, MAYFLY_QUARTER);
        let (Some(inside), Some(outside)) = (inside, outside) else {
            continue;
        };
        let bytes = |value: fn(&LineTime) -> u64| {
            let per_operation = |line: &LineTime| value(line) as f64 / line.operations as f64;
            results
                .line_median(BEYOND_SCRIPT, line, MAYFLY_QUARTER, per_operation)
                .map_or("-".to_owned(), |bytes| format!("{bytes:.0}"))
        };
        sheet.rows.push(vec![
            line.to_owned(),
            number(inside),
            number(outside),
            number(outside / inside),
            bytes(|line| line.read_bytes),
            bytes(|line| line.written_bytes),
        ]);
    }
    print_sheet(&sheet);
    results.sheets.push(sheet);
}

/// The figures to reach, and those that every benchmark has.
pub(super) fn figures(results: &mut Results) {
    for (script, line) in [(CREATE_SCRIPT, PAIR), (KEYS_SCRIPT, PAIR_KEYS)] {
        let best = MARIADB
            .iter()
            .filter_map(|engine| time(results, script, line, engine))
            .min_by(f64::total_cmp);
        for (who, most) in [(MAYFLY, Some(MOST_PAIR)), (EMBEDDED, None), (WIRE, None)] {
            let ours = time(results, script, line, who);
            let what = format!("{line}, {who} / MariaDB's best engine");
            results.ratio(what, ours, best, most);
        }
    }
    for line in ROW_LINES {
        for (who, ours_counts) in [(MAYFLY, true), (EMBEDDED, false), (WIRE, false)] {
            for (engine, most) in [(MEMORY, MOST_MEMORY), (INNODB, MOST_INNODB)] {
                let ours = time(results, ROWS_SCRIPT, line, who);
                let theirs = time(results, ROWS_SCRIPT, line, engine);
                let most = ours_counts.then_some(most);
                results.ratio(format!("{line}, {who} / {engine}"), ours, theirs, most);
            }
        }
    }
    for line in [statements::INSERT_BATCHES, statements::INSERT_SELECT] {
        for engine in [MEMORY, INNODB] {
            let ours = time(results, BATCHES_SCRIPT, line, MAYFLY);
            let theirs = time(results, BATCHES_SCRIPT, line, engine);
            results.ratio(format!("{line}, {MAYFLY} / {engine}"), ours, theirs, None);
        }
    }
    for line in ROW_LINES {
        let most = (!RANDOM_LINES.contains(&line)).then_some(MOST_BEYOND);
        results.ratio(
            format!("{line}, in a quarter of the memory / in memory"),
            time(results, BEYOND_SCRIPT, line, MAYFLY_QUARTER),
            time(results, BEYOND_SCRIPT, line, MAYFLY),
            most,
        );
    }
    kept(results);
}

/// Memory kept, answers right, nothing failed.
fn kept(results: &mut Results) {
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
