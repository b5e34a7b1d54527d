//! What seed3 shows beside its times: bytes of the device, figures to reach.

use super::names::{
    BATCHES_SCRIPT, BEYOND_SCRIPT, CREATE_SCRIPT, EMBEDDED, INNODB, KEYS_SCRIPT, MARIADB, MAYFLY,
    MAYFLY_QUARTER, MEMORY, ROWS_SCRIPT, WIRE,
};
use super::statements::{self, PAIR, PAIR_KEYS, RANDOM_LINES, ROW_LINES};
use crate::args::size;
use crate::report::text::print_sheet;
use crate::results::{Results, Sheet};
use crate::scripts::LineTime;
use crate::scripts::sheet::{kept, number, time};

/// Most of MariaDB's time for its best engine's create+drop.
const MOST_PAIR: f64 = 0.5;
/// Most of the time of a MEMORY table's line.
const MOST_MEMORY: f64 = 1.0;
/// Most of the time of an InnoDB temporary table's line.
const MOST_INNODB: f64 = 0.7;
/// Most of the time in memory that a line in order may take at a quarter of it.
const MOST_BEYOND: f64 = 2.0;

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
