//! seed0: GROUP BY on 1 M and 4 M rows with a mostly unique CHAR(32) key.

use crate::answer::Comparison;
use crate::args::{Limit, SystemName};
use crate::data::seed0;
use crate::error::BenchError;
use crate::results::Results;
use crate::runner::{Case, Contender, Runner};

const STATEMENT: &str = "SELECT c, COUNT(*) n FROM {t} GROUP BY c HAVING n > 1000000";
/// DataFusion knows no alias in HAVING.
const STANDARD: &str = "SELECT c, COUNT(*) n FROM {t} GROUP BY c HAVING COUNT(*) > 1000000";
const MARIADB: &str = "SELECT c, COUNT(*) n FROM {t} GROUP BY c HAVING n > 1000000 ORDER BY NULL";
/// The same grouping, all rows: what the comparison of answers reads.
const CHECK: &str = "SELECT c, COUNT(*) n FROM {t} GROUP BY c";
/// The limit of the second figure.
const TIGHT: Limit = Limit::mib(64);

/// The case with so many rows.
pub(crate) fn case(runner: &Runner, rows: u32, limits: Vec<Limit>) -> Result<Case, BenchError> {
    let with_tsv = runner.takes_part(SystemName::Sqlite) || runner.takes_part(SystemName::Mariadb);
    let dataset = seed0::dataset(&runner.settings.cache_dir, rows, with_tsv)?;
    Ok(Case {
        name: name(rows),
        // Keys and counts of as many groups.
        data_bytes: u64::from(rows) * (16 + 32 + 8),
        dataset,
        contenders: vec![
            Contender::new(SystemName::Mayfly, STATEMENT, CHECK),
            Contender::new(SystemName::Duckdb, STATEMENT, CHECK),
            Contender::new(SystemName::Datafusion, STANDARD, CHECK),
            Contender::new(SystemName::Sqlite, STATEMENT, CHECK),
            Contender::new(SystemName::Mariadb, MARIADB, CHECK),
        ],
        limits,
        check_every_limit: true,
        comparison: Comparison::Text,
        tables: Vec::new(),
    })
}

pub(crate) fn run(
    runner: &mut Runner,
    full: bool,
    results: &mut Results,
) -> Result<(), BenchError> {
    let limits = if full {
        [512, 256, 128, 64, 32, 16, 8].map(Limit::mib).to_vec()
    } else {
        vec![TIGHT]
    };
    for rows in [1_000_000, 4_000_000] {
        let limits = [Limit::All].into_iter().chain(limits.clone()).collect();
        let case = case(runner, rows, limits)?;
        runner.case(&case, results)?;
    }
    figures(results);
    Ok(())
}

fn name(rows: u32) -> String {
    match rows {
        0..1_000_000 => format!("seed0 {rows} rows"),
        _ => format!("seed0 {} M rows", rows / 1_000_000),
    }
}

fn figures(results: &mut Results) {
    let large = name(4_000_000);
    let [mayfly, duckdb, mariadb] =
        [SystemName::Mayfly, SystemName::Duckdb, SystemName::Mariadb].map(SystemName::label);
    let seconds = |results: &Results, limit, capped, who: &str| {
        results
            .cell(&large, limit, capped)
            .and_then(|cell| cell.seconds(who))
    };
    let ours = seconds(results, Limit::All, false, mayfly);
    let theirs = seconds(results, Limit::All, false, duckdb);
    let memory = seconds(results, Limit::All, false, mariadb);
    results.ratio(
        "4 M rows in memory, Mayfly / DuckDB",
        ours,
        theirs,
        Some(0.8),
    );
    results.ratio(
        "4 M rows in memory, Mayfly / MariaDB MEMORY",
        ours,
        memory,
        Some(0.15),
    );
    for capped in [false, true] {
        let kind = if capped {
            "64 MiB capped"
        } else {
            "64 MiB by knob"
        };
        let tight = seconds(results, TIGHT, capped, mayfly);
        let theirs = seconds(results, TIGHT, capped, duckdb);
        results.ratio(
            format!("4 M rows, {kind} / in memory, Mayfly"),
            tight,
            ours,
            Some(1.4),
        );
        results.ratio(
            format!("4 M rows, {kind}, Mayfly / DuckDB"),
            tight,
            theirs,
            Some(0.6),
        );
    }
    for (limit, label) in [(Limit::All, "in memory"), (TIGHT, "64 MiB")] {
        let cell = |rows| {
            results
                .quoted(&name(rows), limit)
                .and_then(|cell| cell.seconds(mayfly))
        };
        let per_row = cell(4_000_000).map(|seconds| seconds / 4.0);
        let (small, what) = (
            cell(1_000_000),
            format!("time per row, 4 M / 1 M rows, {label}"),
        );
        results.ratio(what, per_row, small, None);
    }
}
