//! groupings: thirteen groupings of TPC-H lineitem, thin and wide, at data/limit from 1 to 16.
//!
//! Source: Kuiper, Boncz, Muehleisen, Robust External Hash Aggregation in the Solid State Age,
//! ICDE 2024. Thin selects the keys, wide adds ANY_VALUE of every other column. `LIMIT 1 OFFSET
//! groups - 1` forces the whole result to be computed and returns one row of it.

use std::collections::BTreeMap;
use std::fs;

use crate::answer::Comparison;
use crate::args::SystemName;
use crate::data::lineitem::{self, COLUMNS};
use crate::error::{BenchError, Context};
use crate::results::Results;
use crate::runner::{Case, Contender, Runner};
use crate::suite::ratios;

/// The groupings, numbered from 1 as published.
const GROUPINGS: [&[&str]; 13] = [
    &["l_returnflag", "l_linestatus"],
    &["l_partkey"],
    &["l_partkey", "l_returnflag", "l_linestatus"],
    &["l_suppkey", "l_partkey"],
    &["l_orderkey"],
    &["l_orderkey", "l_returnflag", "l_linestatus"],
    &["l_suppkey", "l_partkey", "l_returnflag", "l_linestatus"],
    &["l_suppkey", "l_partkey", "l_shipinstruct"],
    &["l_suppkey", "l_partkey", "l_shipmode"],
    &["l_suppkey", "l_partkey", "l_shipinstruct", "l_shipmode"],
    &["l_orderkey", "l_partkey"],
    &["l_orderkey", "l_suppkey"],
    &["l_suppkey", "l_partkey", "l_orderkey"],
];
/// Those of the quick form: few groups, repeated keys, half unique, unique.
const QUICK: [usize; 5] = [0, 1, 4, 9, 12];

pub(crate) fn run(
    runner: &mut Runner,
    full: bool,
    scales: &[f64],
    results: &mut Results,
) -> Result<(), BenchError> {
    let default_scales: &[f64] = if full { &[1.0, 4.0, 8.0] } else { &[1.0] };
    let scales = if scales.is_empty() {
        default_scales
    } else {
        scales
    };
    let chosen: Vec<usize> = if full {
        (0..GROUPINGS.len()).collect()
    } else {
        QUICK.to_vec()
    };
    let ratios = ratios::chosen(full);
    for scale in scales {
        let mut names = Vec::new();
        for wide in [false, true] {
            for grouping in &chosen {
                let name = name(*scale, *grouping, wide);
                if runner
                    .settings
                    .only
                    .as_ref()
                    .is_some_and(|only| !name.contains(only))
                {
                    continue;
                }
                let mut case = case(runner, *scale, *grouping, wide)?;
                case.limits = ratios::limits(case.data_bytes, ratios);
                case.check_every_limit = full;
                runner.case(&case, results)?;
                names.push((case.name, case.data_bytes));
            }
        }
        ratios::figures(results, &format!("SF{scale}"), &names, ratios);
    }
    Ok(())
}

/// One grouping at a scale factor; its limits are left to the caller.
pub(crate) fn case(
    runner: &Runner,
    scale: f64,
    grouping: usize,
    wide: bool,
) -> Result<Case, BenchError> {
    let dataset = lineitem::dataset(&runner.settings.cache_dir, scale)?;
    let keys = GROUPINGS[grouping];
    let others: Vec<&str> = COLUMNS
        .iter()
        .map(|(column, _)| *column)
        .filter(|column| wide && *column != "l_shipinstruct" && !keys.contains(column))
        .collect();
    let select = |function: &str| {
        let values = others.iter().map(|column| format!("{function}({column})"));
        let items: Vec<String> = keys
            .iter()
            .map(|key| (*key).to_owned())
            .chain(values)
            .collect();
        items.join(", ")
    };
    let groups = group_count(runner, &dataset.parquet, scale, keys)?;
    let statement = |function: &str| {
        format!(
            "SELECT {} FROM {{t}} GROUP BY {} LIMIT 1 OFFSET {}",
            select(function),
            keys.join(", "),
            groups - 1
        )
    };
    // ANY_VALUE may differ between systems; MIN has the same shape and one answer.
    let check = format!(
        "SELECT {}, COUNT(*) FROM {{t}} GROUP BY {}",
        select("MIN"),
        keys.join(", ")
    );
    let row_bytes: u64 = COLUMNS
        .iter()
        .filter(|(column, _)| keys.contains(column) || others.contains(column))
        .map(|(_, bytes)| bytes)
        .sum();
    Ok(Case {
        name: name(scale, grouping, wide),
        data_bytes: dataset.rows * row_bytes,
        contenders: vec![
            Contender::new(SystemName::Mayfly, &statement("ANY_VALUE"), &check),
            Contender::new(SystemName::Duckdb, &statement("any_value"), &check),
            // Its `first_value` of a string goes row by row, a hundred times slower than `min`.
            Contender::new(SystemName::Datafusion, &statement("min"), &check),
        ],
        dataset,
        limits: Vec::new(),
        check_every_limit: false,
        comparison: Comparison::Text,
        tables: Vec::new(),
    })
}

fn name(scale: f64, grouping: usize, wide: bool) -> String {
    let kind = if wide { "wide" } else { "thin" };
    format!(
        "SF{scale} {kind} {} ({})",
        grouping + 1,
        short_keys(GROUPINGS[grouping])
    )
}

fn short_keys(keys: &[&str]) -> String {
    keys.iter()
        .map(|key| key.trim_start_matches("l_"))
        .collect::<Vec<_>>()
        .join(",")
}

/// The number of groups, counted once by this program itself and kept beside the data.
fn group_count(
    runner: &Runner,
    parquet: &std::path::Path,
    scale: f64,
    keys: &[&str],
) -> Result<u64, BenchError> {
    let file = runner
        .settings
        .cache_dir
        .join(format!("lineitem-sf{scale}-groups.json"));
    let text = fs::read_to_string(&file).unwrap_or_default();
    let mut counts: BTreeMap<String, u64> = serde_json::from_str(&text).unwrap_or_default();
    let key = keys.join(",");
    if let Some(count) = counts.get(&key) {
        return Ok(*count);
    }
    let sql = format!("SELECT COUNT(*) FROM (SELECT {key} FROM {{t}} GROUP BY {key}) AS grouped");
    let count = crate::systems::count(parquet, &sql, runner.settings.threads)?;
    counts.insert(key, count);
    let text = serde_json::to_string_pretty(&counts).expect("names and numbers are plain data");
    fs::write(&file, text).context(|| format!("writing {}", file.display()))?;
    Ok(count)
}
