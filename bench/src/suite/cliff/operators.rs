//! The operators whose time is drawn over memory.
//!
//! Owns: a case for each, and which of them belong to the quick form. Statements return one row,
//! so that neither the client nor its protocol is part of the time.

use crate::answer::Comparison;
use crate::args::SystemName;
use crate::data::seed0 as data;
use crate::error::BenchError;
use crate::runner::{Case, Contender, Runner};
use crate::suite::{groupings, joins, seed0, windows};

/// Rows of each operator; those of groups are as in the results so far.
const ROWS: u32 = 4_000_000;

/// One curve.
pub(super) struct Operator {
    pub(super) name: &'static str,
    /// Only with `--full`.
    pub(super) full: bool,
    /// Limits in half octaves even in the quick form.
    pub(super) halves: bool,
    /// The case, with `--rows` if given.
    pub(super) case: fn(&Runner, Option<u64>) -> Result<Case, BenchError>,
}

pub(super) const OPERATORS: [Operator; 8] = [
    operator("groups", groups).in_halves(),
    operator("groups, wide", |runner, _| {
        groupings::case(runner, 4.0, 1, true)
    })
    .in_full(),
    operator("groups, thin", |runner, _| {
        groupings::case(runner, 4.0, 12, false)
    })
    .in_full(),
    operator("distinct", distinct),
    operator("sort", sort),
    operator("join", |runner, rows| {
        joins::inner(runner, number(rows).into())
    }),
    operator("window", |runner, rows| {
        windows::rank(runner, number(rows).into())
    }),
    operator("cte named twice", cte),
];

const fn operator(
    name: &'static str,
    case: fn(&Runner, Option<u64>) -> Result<Case, BenchError>,
) -> Operator {
    Operator {
        name,
        full: false,
        halves: false,
        case,
    }
}

impl Operator {
    const fn in_full(self) -> Self {
        Self { full: true, ..self }
    }

    const fn in_halves(self) -> Self {
        Self {
            halves: true,
            ..self
        }
    }
}

fn number(rows: Option<u64>) -> u32 {
    let rows = rows.map_or(ROWS, |rows| u32::try_from(rows).unwrap_or(u32::MAX));
    rows.max(1000)
}

fn groups(runner: &Runner, rows: Option<u64>) -> Result<Case, BenchError> {
    let mut case = seed0::case(runner, number(rows), Vec::new())?;
    // The slow engines have a curve in `seed0`.
    case.contenders
        .retain(|contender| !matches!(contender.system, SystemName::Sqlite | SystemName::Mariadb));
    Ok(case)
}

fn distinct(runner: &Runner, rows: Option<u64>) -> Result<Case, BenchError> {
    over_seed0(runner, rows, |_, _| {
        [
            "SELECT COUNT(*), SUM(i), SUM(LENGTH(c)) FROM (SELECT DISTINCT c, i FROM {t}) AS d",
            "SELECT DISTINCT c, i FROM {t}",
        ]
        .map(str::to_owned)
    })
}

/// The last row of an order needs all of it. DataFusion would keep a heap of as many rows as the
/// limit lets through, so it returns all of them, to a client that only counts.
fn sort(runner: &Runner, rows: Option<u64>) -> Result<Case, BenchError> {
    over_seed0(runner, rows, |system, rows| {
        let all = "SELECT i, c FROM {t} ORDER BY c";
        let timed = match system {
            SystemName::Datafusion => all.to_owned(),
            _ => format!("{all} LIMIT 1 OFFSET {}", rows - 1),
        };
        [timed, format!("{all} LIMIT 1000 OFFSET {}", rows / 2)]
    })
}

/// Each of its halves names all of the groups.
fn cte(runner: &Runner, rows: Option<u64>) -> Result<Case, BenchError> {
    over_seed0(runner, rows, |_, _| {
        let groups = "WITH s AS (SELECT c, MAX(i) AS m FROM {t} GROUP BY c)";
        let halves = "SELECT c, m FROM s WHERE m % 2 = 0 \
                      UNION ALL SELECT c, m + 1 AS m FROM s WHERE m % 2 = 1";
        [
            format!("{groups} SELECT COUNT(*), SUM(m), SUM(LENGTH(c)) FROM ({halves}) AS u"),
            format!("{groups} {halves}"),
        ]
    })
}

/// A case of statements over a mostly unique text and a number: timed and compared.
fn over_seed0(
    runner: &Runner,
    rows: Option<u64>,
    statements: fn(SystemName, u32) -> [String; 2],
) -> Result<Case, BenchError> {
    let rows = number(rows);
    let dataset = data::dataset(&runner.settings.cache_dir, rows, false)?;
    let contenders = [
        SystemName::Mayfly,
        SystemName::Duckdb,
        SystemName::Datafusion,
    ]
    .map(|system| {
        let [statement, check] = statements(system, rows);
        Contender::new(system, &statement, &check)
    });
    Ok(Case {
        name: String::new(),
        data_bytes: dataset.bytes,
        dataset,
        tables: Vec::new(),
        contenders: contenders.to_vec(),
        limits: Vec::new(),
        check_every_limit: false,
        comparison: Comparison::Text,
    })
}
