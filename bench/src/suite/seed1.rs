//! seed1: the six queries of "Benchmarking Aria" over 2,097,152 rows with a TEXT column.
//!
//! Mayfly reads the file, and again a temporary table loaded from it; so does DuckDB.

use crate::answer::Comparison;
use crate::args::{Limit, SystemName};
use crate::data::seed1;
use crate::error::BenchError;
use crate::results::Results;
use crate::runner::{Case, Contender, Runner};

const MAYFLY_TABLE: &str = "Mayfly table";
const DUCKDB_TABLE: &str = "DuckDB table";

/// Name, selected columns, key in MySQL, key in standard SQL.
const QUERIES: [(&str, bool, &str, &str); 6] = [
    ("Q1", false, "left(id,1)", "left(CAST(id AS VARCHAR),1)"),
    ("Q2", true, "left(id,1)", "left(CAST(id AS VARCHAR),1)"),
    ("Q3", false, "left(id,2)", "left(CAST(id AS VARCHAR),2)"),
    ("Q4", true, "left(id,2)", "left(CAST(id AS VARCHAR),2)"),
    ("Q5", false, "id % 100", "id % 100"),
    ("Q6", true, "id % 100", "id % 100"),
];

/// One of the six queries.
pub(crate) fn case(runner: &Runner, query: usize, limits: Vec<Limit>) -> Result<Case, BenchError> {
    let with_tsv = runner.takes_part(SystemName::Mariadb);
    let mut dataset = seed1::dataset(&runner.settings.cache_dir, with_tsv)?;
    // SQLite has no `left` and no such table: the file is for MariaDB alone.
    if !with_tsv {
        dataset.tsv = None;
    }
    let (name, counts, mysql_key, standard_key) = QUERIES[query];
    let count = if counts { " count(*)," } else { "" };
    let mysql = format!("SELECT id,{count} tea FROM {{t}} GROUP BY {mysql_key} ORDER BY NULL");
    let duckdb =
        format!("SELECT any_value(id),{count} any_value(tea) FROM {{t}} GROUP BY {standard_key}");
    let datafusion = format!(
        "SELECT first_value(id),{count} first_value(tea) FROM {{t}} GROUP BY {standard_key}"
    );
    // Any row of a group may stand for it: answers are compared by key, count and extremes.
    let check = |key: &str| {
        format!("SELECT {key}, COUNT(*), MIN(id), MAX(id), MAX(tea) FROM {{t}} GROUP BY {key}")
    };
    let (mysql_check, standard_check) = (check(mysql_key), check(standard_key));
    let mayfly = Contender {
        // Without ONLY_FULL_GROUP_BY, as on the page.
        settings: vec!["SET sql_mode = ''".to_owned()],
        ..Contender::new(SystemName::Mayfly, &mysql, &mysql_check)
    };
    let load = |create: &str| {
        vec![
            create.to_owned(),
            "INSERT INTO {t} SELECT * FROM '{file}'".to_owned(),
        ]
    };
    Ok(Case {
        name: format!("seed1 {name}"),
        data_bytes: dataset.bytes,
        dataset,
        contenders: vec![
            mayfly.clone(),
            Contender {
                label: MAYFLY_TABLE.to_owned(),
                setup: load("CREATE TEMPORARY TABLE {t} (id INT, tea TEXT)"),
                ..mayfly
            },
            Contender::new(SystemName::Duckdb, &duckdb, &standard_check),
            Contender {
                label: DUCKDB_TABLE.to_owned(),
                setup: load("CREATE TEMPORARY TABLE {t} (id INT, tea VARCHAR)"),
                ..Contender::new(SystemName::Duckdb, &duckdb, &standard_check)
            },
            Contender::new(SystemName::Datafusion, &datafusion, &standard_check),
            Contender::new(SystemName::Mariadb, &mysql, &mysql_check),
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
        vec![Limit::All, Limit::mib(256), Limit::mib(64), Limit::mib(16)]
    } else {
        vec![Limit::All, Limit::mib(64)]
    };
    for query in 0..QUERIES.len() {
        let case = case(runner, query, limits.clone())?;
        runner.case(&case, results)?;
    }
    for (name, ..) in QUERIES {
        let Some(cell) = results.cell(&format!("seed1 {name}"), Limit::All, false) else {
            continue;
        };
        let [ours, ours_table, duckdb, duckdb_table, aria] = [
            SystemName::Mayfly.label(),
            MAYFLY_TABLE,
            SystemName::Duckdb.label(),
            DUCKDB_TABLE,
            SystemName::Mariadb.label(),
        ]
        .map(|contender| cell.seconds(contender));
        results.ratio(
            format!("{name} from the file, Mayfly / DuckDB"),
            ours,
            duckdb,
            Some(1.0),
        );
        results.ratio(
            format!("{name} from a table, Mayfly / DuckDB"),
            ours_table,
            duckdb_table,
            Some(1.0),
        );
        results.ratio(
            format!("{name}, Mayfly table / MariaDB Aria"),
            ours_table,
            aria,
            Some(0.5),
        );
    }
    Ok(())
}
