//! subqueries: what a correlated subquery costs an outer row, where it may have to run row by row.
//!
//! Owns: the contenders, and the tables that the subqueries read.
//!
//! The statements are those of `docs/decisions/0032-subqueries-row-by-row.md` and some more, over
//! temporary tables. No two outer rows give a subquery the same values, so no system can answer
//! from values that it has kept. DuckDB makes joins of all of them: its column is the cost of
//! unnesting.

mod statements;

use crate::args::{Limit, SystemName};
use crate::error::BenchError;
use crate::results::Results;
use crate::runner::Settings;
use crate::scripts::{Contender, Dialect, Scripts, Turn, Way, sheet};
use crate::state::State;
use crate::systems::server::Flavour;
use statements::Inner;

const MAYFLY: &str = "Mayfly";
const OPERATION: &str = "outer row";
/// The memory of every system; all tables fit.
const MEMORY_LIMIT: Limit = Limit::mib(1024);
/// A server that scans 20,000 rows for each outer row takes milliseconds for one: it gets one of
/// so many outer rows.
const SCANS_DIVISOR: u64 = 40;

/// The scripts: their names, the rows of the inner table, whether it has a key, and by how much
/// servers that scan are spared.
const SCRIPTS: [(&str, u64, bool, u64); 4] = [
    ("20,000 inner rows with a key", 20_000, true, 1),
    (
        "20,000 inner rows without a key",
        20_000,
        false,
        SCANS_DIVISOR,
    ),
    ("200 inner rows with a key", 200, true, 1),
    ("200 inner rows without a key", 200, false, 1),
];

pub(crate) fn run(
    settings: &Settings,
    systems: &[SystemName],
    state: State<Turn>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let limit = settings.limits.first().copied().unwrap_or(MEMORY_LIMIT);
    let memory_bytes = limit.bytes(settings.machine_bytes);
    let mut scripts = Scripts::new(settings, systems, state, results);
    for (script, rows, has_key, divisor) in SCRIPTS {
        if scripts.wanted(script) {
            let inner = Inner { rows, has_key };
            let lines = |contender: &Contender| statements::lines(contender, inner);
            let contenders = contenders(memory_bytes, divisor);
            scripts.script(script, &contenders, &lines, results)?;
            sheet::times(results, script, MAYFLY, OPERATION);
        }
    }
    sheet::kept(results);
    Ok(())
}

/// Servers behind the same client, and DuckDB in a process of its own.
fn contenders(memory_bytes: u64, scans_divisor: u64) -> Vec<Contender> {
    let contender = |label, system, way, dialect, divisor| Contender {
        label,
        system,
        way,
        dialect,
        memory_bytes,
        divisor,
    };
    let peer = |label, system, flavour, options| {
        let dialect = Dialect::MySql(options);
        contender(label, system, Way::Wire(flavour), dialect, scans_divisor)
    };
    let mariadb = |label, options| peer(label, SystemName::Mariadb, Flavour::MariaDb, options);
    let mysql = |label, options| peer(label, SystemName::Mysql, Flavour::MySql, options);
    vec![
        contender(
            MAYFLY,
            SystemName::Mayfly,
            Way::Served,
            Dialect::MySql(""),
            1,
        ),
        mariadb("MariaDB InnoDB", "ENGINE=InnoDB"),
        mariadb("MariaDB MEMORY", "ENGINE=MEMORY"),
        mysql("MySQL InnoDB", "ENGINE=InnoDB"),
        mysql("MySQL MEMORY", "ENGINE=MEMORY"),
        contender(
            "DuckDB",
            SystemName::Duckdb,
            Way::DuckDb,
            Dialect::Standard,
            1,
        ),
    ]
}
