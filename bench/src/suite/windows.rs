//! windows: five window functions over one partition to one for each row, at data/limit to 16.
//!
//! The statements add up what the window returns, with the number and the text that each row
//! carries, so that all rows go through it. Compared are all rows, with the average as its sum.

use crate::answer::Comparison;
use crate::args::{BenchArgs, SystemName};
use crate::data::windows::dataset;
use crate::error::BenchError;
use crate::results::Results;
use crate::runner::{Case, Contender, Runner};
use crate::suite::ratios;

const ROWS: u64 = 4_000_000;
const FULL_ROWS: u64 = 10_000_000;

/// Name, function as it is timed, function as it is compared.
const FUNCTIONS: [(&str, &str, &str); 5] = [
    (
        "rank",
        "RANK() OVER (PARTITION BY g ORDER BY v)",
        "RANK() OVER (PARTITION BY g ORDER BY v)",
    ),
    (
        "running sum",
        "SUM(v) OVER (PARTITION BY g ORDER BY id)",
        "SUM(v) OVER (PARTITION BY g ORDER BY id)",
    ),
    (
        "sliding average",
        "AVG(v) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 10 PRECEDING AND 10 FOLLOWING)",
        "SUM(v) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 10 PRECEDING AND 10 FOLLOWING)",
    ),
    (
        "lag",
        "LAG(v) OVER (PARTITION BY g ORDER BY id)",
        "LAG(v) OVER (PARTITION BY g ORDER BY id)",
    ),
    (
        "whole partition",
        "SUM(v) OVER (PARTITION BY g)",
        "SUM(v) OVER (PARTITION BY g)",
    ),
];

pub(crate) fn run(
    runner: &mut Runner,
    args: &BenchArgs,
    results: &mut Results,
) -> Result<(), BenchError> {
    let default_rows = if args.full { FULL_ROWS } else { ROWS };
    let rows = args.rows.unwrap_or(default_rows).max(1000);
    let ratios = ratios::chosen(args.full);
    let mut names = Vec::new();
    for partitions in partition_counts(rows, args.full) {
        for function in 0..FUNCTIONS.len() {
            let name = name(function, partitions);
            let only = runner.settings.only.as_ref();
            if only.is_some_and(|only| !name.contains(only)) {
                continue;
            }
            let mut case = case(runner, rows, partitions, function)?;
            case.limits = ratios::limits(case.data_bytes, ratios);
            runner.case(&case, results)?;
            names.push((case.name, case.data_bytes));
        }
    }
    ratios::figures(results, "windows", &names, ratios);
    Ok(())
}

/// The case that `cliff` draws: a rank in groups of a hundred rows.
pub(crate) fn rank(runner: &Runner, rows: u64) -> Result<Case, BenchError> {
    let case = case(runner, rows, (rows / 100).max(1), 0)?;
    Ok(Case {
        name: "window".to_owned(),
        ..case
    })
}

/// From one partition to one for each row.
fn partition_counts(rows: u64, full: bool) -> Vec<u64> {
    let mut counts = if full {
        vec![1, 1000, rows / 100, rows / 10, rows]
    } else {
        vec![1, rows / 100, rows]
    };
    counts.dedup();
    counts
}

fn name(function: usize, partitions: u64) -> String {
    let (function, ..) = FUNCTIONS[function];
    match partitions {
        1 => format!("{function}, 1 partition"),
        many => format!("{function}, {many} partitions"),
    }
}

fn case(runner: &Runner, rows: u64, partitions: u64, function: usize) -> Result<Case, BenchError> {
    let dataset = dataset(&runner.settings.cache_dir, rows, partitions)?;
    let (_, timed, compared) = FUNCTIONS[function];
    let statement = format!(
        "SELECT COUNT(*), SUM(id), SUM(LENGTH(c)), SUM(w) \
         FROM (SELECT id, c, {timed} AS w FROM {{t}}) AS x"
    );
    let check = format!("SELECT id, c, {compared} FROM {{t}}");
    let contenders = [
        SystemName::Mayfly,
        SystemName::Duckdb,
        SystemName::Datafusion,
    ]
    .map(|system| Contender::new(system, &statement, &check));
    Ok(Case {
        name: name(function, partitions),
        data_bytes: dataset.bytes,
        dataset,
        tables: Vec::new(),
        contenders: contenders.to_vec(),
        limits: Vec::new(),
        check_every_limit: true,
        comparison: Comparison::Text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_go_from_one_to_one_a_row() {
        assert_eq!(partition_counts(2_000_000, false), [1, 20_000, 2_000_000]);
        let full = partition_counts(10_000_000, true);
        assert_eq!(full, [1, 1000, 100_000, 1_000_000, 10_000_000]);
        // Twice the same is measured once.
        assert_eq!(partition_counts(100_000, true), [1, 1000, 10_000, 100_000]);
    }

    #[test]
    fn names_tell_cases_apart() {
        let mut names: Vec<String> = (0..FUNCTIONS.len())
            .flat_map(|function| [1, 10].map(|partitions| name(function, partitions)))
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 10);
    }
}
