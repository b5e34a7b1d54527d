//! tpch: the 22 queries of TPC-H, in memory and at 25 %, 6 % and 1.5 % of the data.
//!
//! Each query is two cases: over Parquet files, which every system reads in place, and over
//! tables, which Mayfly and DuckDB load within their limit (not timed) and MariaDB has loaded
//! before, with its primary keys. Derived from TPC-H; not comparable with published results.

mod queries;

use crate::answer::Comparison;
use crate::args::{BenchArgs, Limit, SystemName};
use crate::data::{Named, tpch};
use crate::error::BenchError;
use crate::report::text::print_sheet;
use crate::results::{Results, Sheet};
use crate::runner::{Case, Contender, Runner};
use crate::suite::ratios::{self, in_mib};

use queries::{QUERIES, Query};

/// Thousandths of the data.
const SHARES: [u64; 3] = [250, 60, 15];
const QUICK_SHARES: [u64; 1] = [60];
/// DataFusion reads `0.06` as a double unless it is told; the columns are decimals.
const DECIMALS: &str = "SET datafusion.sql_parser.parse_float_as_decimal = true";
/// MariaDB joins by hash only where it is allowed to; its default is one row at a time.
const HASH_JOINS: &str = "SET join_cache_level = 8, optimizer_switch = 'join_cache_hashed=on', \
                          join_buffer_size = 64 * 1024 * 1024";

/// Where the tables lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Files,
    Tables,
}

impl Source {
    fn label(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Tables => "tables",
        }
    }
}

pub(crate) fn run(
    runner: &mut Runner,
    args: &BenchArgs,
    results: &mut Results,
) -> Result<(), BenchError> {
    let scales = if args.scale.is_empty() {
        &[1.0]
    } else {
        &args.scale[..]
    };
    for scale in scales {
        // Nested loops take minutes to hours: MariaDB comes when it is asked for.
        let wanted = args.full || args.systems.contains(&SystemName::Mariadb);
        let with_mariadb = wanted && *scale <= 1.0 && runner.takes_part(SystemName::Mariadb);
        let database = tpch::database(&runner.settings.cache_dir, *scale, with_mariadb)?;
        let data_bytes = database.iter().map(|table| table.dataset.bytes).sum();
        let shares: &[u64] = if args.full { &SHARES } else { &QUICK_SHARES };
        for source in [Source::Files, Source::Tables] {
            for query in &QUERIES {
                let mut case = case(query, *scale, source, &database, data_bytes, with_mariadb);
                // Loading takes longer than most queries.
                let in_memory_only = source == Source::Tables && !args.full;
                let shares = if in_memory_only { &[] } else { shares };
                case.limits = limits(data_bytes, shares);
                runner.case(&case, results)?;
            }
            figures(results, *scale, source);
        }
        lost(results, *scale);
    }
    Ok(())
}

fn case(
    query: &Query,
    scale: f64,
    source: Source,
    database: &[Named],
    data_bytes: u64,
    with_mariadb: bool,
) -> Case {
    let statement = query.statement(scale);
    let tables = query.tables(database);
    let with_settings = |system: SystemName, setting: &str| Contender {
        settings: vec![setting.to_owned()],
        ..Contender::new(system, &statement, &statement)
    };
    let contenders = match source {
        Source::Files => vec![
            Contender::new(SystemName::Mayfly, &statement, &statement),
            Contender::new(SystemName::Duckdb, &statement, &statement),
            with_settings(SystemName::Datafusion, DECIMALS),
        ],
        Source::Tables => {
            let loaded = |system| Contender {
                setup: load(&tables),
                ..Contender::new(system, &statement, &statement)
            };
            let mut contenders = vec![loaded(SystemName::Mayfly), loaded(SystemName::Duckdb)];
            if with_mariadb {
                contenders.push(with_settings(SystemName::Mariadb, HASH_JOINS));
            }
            contenders
        }
    };
    let largest = tables.iter().max_by_key(|table| table.dataset.rows);
    Case {
        name: name(scale, source, query.number),
        dataset: largest.expect("a query reads tables").dataset.clone(),
        tables,
        data_bytes,
        contenders,
        limits: Vec::new(),
        check_every_limit: true,
        comparison: Comparison::Values {
            rounded: query.rounded,
        },
    }
}

fn name(scale: f64, source: Source, number: u32) -> String {
    format!("SF{scale} Q{number:02} {}", source.label())
}

/// Statements that load tables, each once whatever it is called.
fn load(tables: &[Named]) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    for Named { dataset, .. } in tables {
        let table = &dataset.table;
        let create = format!("CREATE TEMPORARY TABLE {table} ({})", dataset.columns);
        if !statements.contains(&create) {
            statements.push(create);
            let file = dataset.parquet.display();
            statements.push(format!("INSERT INTO {table} SELECT * FROM '{file}'"));
        }
    }
    statements
}

/// No limit, and so many thousandths of the data.
fn limits(data_bytes: u64, shares: &[u64]) -> Vec<Limit> {
    let shares = shares.iter().map(|share| in_mib(data_bytes * share / 1000));
    let mut limits: Vec<Limit> = std::iter::once(Limit::All).chain(shares).collect();
    limits.dedup();
    limits
}

/// A source under a limit, at which all queries were measured.
#[derive(Clone, Copy, PartialEq)]
struct Place {
    scale: f64,
    source: Source,
    limit: Limit,
    capped: bool,
}

impl Place {
    /// Where a source was measured, from the largest limit down.
    fn all(results: &Results, scale: f64, source: Source) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for query in &QUERIES {
            let name = name(scale, source, query.number);
            for cell in results.cells.iter().filter(|cell| cell.case == name) {
                let place = Self {
                    scale,
                    source,
                    limit: cell.limit,
                    capped: cell.capped,
                };
                if !found.contains(&place) {
                    found.push(place);
                }
            }
        }
        found
    }

    fn case(&self, query: &Query) -> String {
        name(self.scale, self.source, query.number)
    }

    fn seconds(&self, results: &Results, query: &Query, who: &str) -> Option<f64> {
        results.right_seconds(&self.case(query), self.limit, self.capped, who)
    }

    fn failed(&self, results: &Results, query: &Query, who: &str) -> Option<bool> {
        results.failed(&self.case(query), self.limit, self.capped, who)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SF{} {}", self.scale, self.source.label())?;
        match self.limit {
            Limit::All => write!(f, " in memory"),
            limit if self.capped => write!(f, " at {limit} capped"),
            limit => write!(f, " at {limit}"),
        }
    }
}

fn figures(results: &mut Results, scale: f64, source: Source) {
    let [mayfly, duckdb] = [SystemName::Mayfly, SystemName::Duckdb].map(SystemName::label);
    for place in Place::all(results, scale, source) {
        let mut together = ratios::Quotients::default();
        for query in &QUERIES {
            if results
                .cell(&place.case(query), place.limit, place.capped)
                .is_some()
            {
                let [ours, theirs] = [mayfly, duckdb].map(|who| place.seconds(results, query, who));
                together.add(ours, theirs);
            }
        }
        if let Some((what, mean)) = together.figure(&place.to_string()) {
            results.ratio(what, Some(mean), Some(1.0), Some(1.0));
        }
    }
}

/// Which queries each system did not answer, or not rightly.
fn lost(results: &mut Results, scale: f64) {
    let contenders = results.contenders();
    let mut columns = vec!["queries without a right answer"];
    columns.extend(&contenders);
    let mut sheet = Sheet::new(&format!("SF{scale}: failures"), &columns);
    for source in [Source::Files, Source::Tables] {
        for place in Place::all(results, scale, source) {
            let mut row = vec![place.to_string()];
            row.extend(contenders.iter().map(|who| lost_by(results, place, who)));
            sheet.rows.push(row);
        }
    }
    print_sheet(&sheet);
    results.sheets.push(sheet);
}

/// `2: 8 9` for two queries, `none`, or `-` for who was not asked.
fn lost_by(results: &Results, place: Place, who: &str) -> String {
    let mut asked = 0;
    let mut lost = Vec::new();
    for query in &QUERIES {
        let failed = place.failed(results, query, who);
        asked += u32::from(failed.is_some());
        if failed == Some(true) {
            lost.push(query.number.to_string());
        }
    }
    match (asked, lost.len()) {
        (0, _) => "-".to_owned(),
        (_, 0) => "none".to_owned(),
        (_, many) => format!("{many}: {}", lost.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Check, Entry, Measured, Outcome};

    #[test]
    fn limits_are_shares_of_the_data() {
        let found = limits(10_000 << 20, &SHARES);
        let expected = [2500, 600, 150].map(Limit::mib);
        assert_eq!(found[0], Limit::All);
        assert_eq!(found[1..], expected);
        // A tiny database has one limit, the least.
        assert_eq!(limits(10 << 20, &SHARES), [Limit::All, Limit::mib(16)]);
    }

    /// A cell of one query over files, in memory.
    fn cell(number: u32, outcomes: [Outcome; 2]) -> Cell {
        let systems = [SystemName::Mayfly, SystemName::Duckdb];
        Cell {
            case: name(1.0, Source::Files, number),
            limit: Limit::All,
            limit_bytes: 0,
            capped: false,
            rows: 0,
            data_bytes: 0,
            results: (systems.into_iter().zip(outcomes))
                .map(|(system, outcome)| Entry {
                    contender: system.label().to_owned(),
                    system,
                    outcome,
                })
                .collect(),
        }
    }

    fn measured(median_s: f64, check: Check) -> Outcome {
        Outcome::Measured(Measured {
            median_s,
            runs_s: vec![median_s],
            cold_s: median_s,
            peak_bytes: 0,
            anonymous_bytes: 0,
            cap_peak_bytes: None,
            written_bytes: 0,
            spilled_bytes: None,
            check,
        })
    }

    #[test]
    fn a_failure_and_a_wrong_answer_are_lost_and_not_fast() {
        let right = |seconds| measured(seconds, Check::NotChecked);
        let wrong = || measured(0.001, Check::Different("other values".to_owned()));
        let failed = || Outcome::Failed("over 120 s".to_owned());
        let mut results = Results {
            cells: vec![
                cell(1, [right(4.0), right(1.0)]),
                cell(2, [right(1.0), right(1.0)]),
                cell(3, [wrong(), right(1.0)]),
                cell(4, [right(1.0), failed()]),
            ],
            ..Results::default()
        };
        figures(&mut results, 1.0, Source::Files);
        let figure = &results.figures[0];
        assert_eq!(
            figure.what,
            "SF1 files in memory, geometric mean of 2 cases, Mayfly / DuckDB, \
             without 1 that Mayfly lost, without 1 that DuckDB lost"
        );
        assert!((figure.found - 2.0).abs() < 1e-12, "{}", figure.found);
        let place = Place::all(&results, 1.0, Source::Files)[0];
        assert_eq!(lost_by(&results, place, "Mayfly"), "1: 3");
        assert_eq!(lost_by(&results, place, "DuckDB"), "1: 4");
        assert_eq!(lost_by(&results, place, "MariaDB"), "-");
    }

    #[test]
    fn a_table_with_two_names_is_loaded_once_and_without_keys() {
        let dataset = crate::data::Dataset {
            table: "tpch_nation_1".to_owned(),
            parquet: "/nation-sf1.parquet".into(),
            tsv: None,
            columns: "n_nationkey BIGINT NOT NULL".to_owned(),
            primary_key: Some("n_nationkey"),
            rows: 25,
            bytes: 0,
        };
        let statements = load(&["n1", "n2"].map(|name| Named::new(name, &dataset)));
        assert_eq!(
            statements,
            [
                "CREATE TEMPORARY TABLE tpch_nation_1 (n_nationkey BIGINT NOT NULL)",
                "INSERT INTO tpch_nation_1 SELECT * FROM '/nation-sf1.parquet'",
            ]
        );
    }
}
