//! groupings: thirteen groupings of TPC-H lineitem, thin and wide, at data/limit from 1 to 16.
//!
//! Source: Kuiper, Boncz, Muehleisen, Robust External Hash Aggregation in the Solid State Age,
//! ICDE 2024. Thin selects the keys, wide adds ANY_VALUE of every other column. `LIMIT 1 OFFSET
//! groups - 1` forces the whole result to be computed and returns one row of it.

use std::collections::BTreeMap;
use std::fs;

use crate::args::{Limit, SystemName};
use crate::data::lineitem::{self, COLUMNS};
use crate::error::{BenchError, Context};
use crate::results::{Results, geometric_mean};
use crate::runner::{Case, Contender, Runner};

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
/// Data over limit.
const RATIOS: [u64; 5] = [1, 2, 4, 8, 16];
const QUICK_RATIOS: [u64; 2] = [4, 16];
/// No limit goes below what every system needs to start.
const LEAST_MIB: u64 = 16;

pub(crate) fn run(
    runner: &mut Runner,
    full: bool,
    scales: &[u32],
    results: &mut Results,
) -> Result<(), BenchError> {
    let default_scales: &[u32] = if full { &[1, 4, 8] } else { &[1] };
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
    let ratios: &[u64] = if full { &RATIOS } else { &QUICK_RATIOS };
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
                case.limits = std::iter::once(Limit::All)
                    .chain(ratios.iter().map(|ratio| limit(case.data_bytes, *ratio)))
                    .collect();
                case.limits.dedup();
                case.check_every_limit = full;
                runner.case(&case, results)?;
                names.push((case.name, case.data_bytes));
            }
        }
        figures(results, *scale, &names, ratios);
    }
    Ok(())
}

/// One grouping at a scale factor; its limits are left to the caller.
pub(crate) fn case(
    runner: &Runner,
    scale: u32,
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
    })
}

fn name(scale: u32, grouping: usize, wide: bool) -> String {
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

/// The data over a ratio, in whole MiB.
fn limit(data_bytes: u64, ratio: u64) -> Limit {
    Limit::mib((data_bytes / ratio).div_ceil(1 << 20).max(LEAST_MIB))
}

/// The number of groups, counted once by this program itself and kept beside the data.
fn group_count(
    runner: &Runner,
    parquet: &std::path::Path,
    scale: u32,
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

fn figures(results: &mut Results, scale: u32, names: &[(String, u64)], ratios: &[u64]) {
    let [mayfly, duckdb] = [SystemName::Mayfly, SystemName::Duckdb].map(SystemName::label);
    let mut found = Vec::new();
    let limits = std::iter::once(None).chain(ratios.iter().copied().map(Some));
    for ratio in limits {
        for capped in [false, true] {
            let mut quotients = Vec::new();
            let mut slowdowns = Vec::new();
            let mut lost = 0_u32;
            for (name, data_bytes) in names {
                let limit_of =
                    |ratio: Option<u64>| ratio.map_or(Limit::All, |r| limit(*data_bytes, r));
                let Some(cell) = results.cell(name, limit_of(ratio), capped) else {
                    continue;
                };
                match (cell.seconds(mayfly), cell.seconds(duckdb)) {
                    (Some(ours), Some(theirs)) => quotients.push(ours / theirs),
                    (_, None) => lost += 1,
                    (None, Some(_)) => {}
                }
                // Twice the memory: the cliff factor, as in `cliff`.
                let roomier = ratio.and_then(|ratio| (ratio > 1).then_some(ratio / 2));
                let roomier = roomier.filter(|ratio| ratios.contains(ratio));
                if let Some(more) = roomier
                    && let Some(cell_more) = results.cell(name, limit_of(Some(more)), capped)
                    && cell_more.limit != cell.limit
                    && let (Some(less), Some(more)) =
                        (cell.seconds(mayfly), cell_more.seconds(mayfly))
                {
                    slowdowns.push(less / more);
                }
            }
            let kind = if capped { " capped" } else { "" };
            let at = ratio.map_or("in memory".to_owned(), |ratio| {
                format!("data/limit {ratio}{kind}")
            });
            if let Some(mean) = geometric_mean(&quotients) {
                let without = if lost > 0 {
                    format!(", without {lost} that DuckDB lost")
                } else {
                    String::new()
                };
                let what = format!(
                    "SF{scale} {at}, geometric mean of {} cases, Mayfly / DuckDB{without}",
                    quotients.len()
                );
                found.push((what, mean, 1.0));
            }
            if let Some(worst) = slowdowns.iter().copied().reduce(f64::max) {
                found.push((format!("SF{scale} {at}, largest cliff factor"), worst, 1.3));
            }
        }
    }
    for (what, value, most) in found {
        results.ratio(what, Some(value), Some(1.0), Some(most));
    }
}
