//! seed3: temporary tables by single statements, "InnoDB Temporary Tables just got faster".
//!
//! Owns: the contenders, the sizes and the order of the scripts.
//!
//! The lines are sql-bench's: create and drop, without and with 16 keys; insert sorted, in reverse
//! and at random; update and delete by primary key, by secondary key and all. Then the same rows
//! in a quarter of the memory that their table and keys take.

mod names;
mod statements;
mod tables;

use crate::args::{Limit, SystemName};
use crate::error::BenchError;
use crate::results::Results;
use crate::runner::Settings;
use crate::scripts::{Contender, Dialect, Scripts, Turn, Way, sheet};
use crate::state::State;
use crate::systems::server::Flavour;
use names::{
    BATCHES_SCRIPT, BEYOND_SCRIPT, COMPRESSED, CREATE_SCRIPT, EMBEDDED, INNODB, KEYS_SCRIPT,
    MAYFLY, MAYFLY_QUARTER, MEMORY, ROWS_SCRIPT, WIRE,
};

/// What times are shown of.
const OPERATION: &str = "operation";
/// The memory of every system where nothing has to leave it.
const MEMORY_LIMIT: Limit = Limit::mib(1024);
/// Bytes by which a row is wider beyond memory.
const WIDER: usize = 1_000;
/// The least budget beyond memory, in bytes.
const LEAST_BUDGET: u64 = 4 << 20;
/// A single statement of DuckDB takes as long as many of the others'.
const DUCKDB_DIVISOR: u64 = 10;

/// Numbers of rows and tables.
struct Sizes {
    /// A third of the rows.
    rows: u64,
    tables: u64,
    tables_with_keys: u64,
    /// A third of the rows beyond memory.
    beyond: u64,
}

const QUICK: Sizes = Sizes {
    rows: 10_000,
    tables: 1_000,
    tables_with_keys: 200,
    beyond: 10_000,
};
/// Tables as many as in sql-bench; one with 16 keys takes 17 pages of InnoDB.
const FULL: Sizes = Sizes {
    rows: 100_000,
    tables: 10_000,
    tables_with_keys: 1_000,
    beyond: 100_000,
};

pub(crate) fn run(
    settings: &Settings,
    systems: &[SystemName],
    full: bool,
    state: State<Turn>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let sizes = if full { FULL } else { QUICK };
    let limit = settings.limits.first().copied().unwrap_or(MEMORY_LIMIT);
    let memory_bytes = limit.bytes(settings.machine_bytes);
    let contenders = contenders(memory_bytes);
    let without_compressed: Vec<Contender> = contenders
        .iter()
        .filter(|contender| contender.label != COMPRESSED)
        .cloned()
        .collect();
    let mut scripts = Scripts::new(settings, systems, state, results);
    for (script, tables, keys) in [
        (CREATE_SCRIPT, sizes.tables, false),
        (KEYS_SCRIPT, sizes.tables_with_keys, true),
    ] {
        if scripts.wanted(script) {
            let lines = |contender: &Contender| {
                statements::create_drop(contender.dialect, tables / contender.divisor, keys)
            };
            scripts.script(script, &without_compressed, &lines, results)?;
            sheet::times(results, script, MAYFLY, OPERATION);
        }
    }
    if scripts.wanted(ROWS_SCRIPT) {
        let lines = |contender: &Contender| {
            statements::rows(contender.dialect, sizes.rows / contender.divisor, 0)
        };
        scripts.script(ROWS_SCRIPT, &contenders, &lines, results)?;
        sheet::times(results, ROWS_SCRIPT, MAYFLY, OPERATION);
    }
    if scripts.wanted(BATCHES_SCRIPT) {
        let lines = |contender: &Contender| statements::batches(contender.dialect, 3 * sizes.rows);
        let contenders: Vec<Contender> = without_compressed
            .iter()
            .map(|contender| Contender {
                divisor: 1,
                ..contender.clone()
            })
            .collect();
        scripts.script(BATCHES_SCRIPT, &contenders, &lines, results)?;
        sheet::times(results, BATCHES_SCRIPT, MAYFLY, OPERATION);
    }
    if scripts.wanted(BEYOND_SCRIPT) {
        beyond(&mut scripts, sizes.beyond, memory_bytes, results)?;
    }
    tables::figures(results);
    Ok(())
}

/// Everybody, each in the way that its users have.
fn contenders(memory_bytes: u64) -> Vec<Contender> {
    let contender = |label, system, way, dialect| Contender {
        label,
        system,
        way,
        dialect,
        memory_bytes,
        divisor: 1,
    };
    let mayfly =
        |label, way, options| contender(label, SystemName::Mayfly, way, Dialect::MySql(options));
    let mariadb = |label, options| {
        let way = Way::Wire(Flavour::MariaDb);
        contender(label, SystemName::Mariadb, way, Dialect::MySql(options))
    };
    let mysql = |label, options| {
        let way = Way::Wire(Flavour::MySql);
        contender(label, SystemName::Mysql, way, Dialect::MySql(options))
    };
    let sqlite = |label, store, transaction| {
        let way = Way::Sqlite { store, transaction };
        contender(label, SystemName::Sqlite, way, Dialect::Standard)
    };
    vec![
        mayfly(MAYFLY, Way::Shell, ""),
        mayfly(EMBEDDED, Way::Embedded, ""),
        mayfly(WIRE, Way::Served, ""),
        mayfly(COMPRESSED, Way::Shell, "ROW_FORMAT=COMPRESSED"),
        mariadb(INNODB, "ENGINE=InnoDB"),
        mariadb("Aria", "ENGINE=Aria"),
        mariadb("MyISAM", "ENGINE=MyISAM"),
        mariadb(MEMORY, "ENGINE=MEMORY"),
        Contender {
            way: Way::Client,
            ..mariadb("MEMORY piped", "ENGINE=MEMORY")
        },
        mysql("MySQL InnoDB", "ENGINE=InnoDB"),
        mysql("MySQL MEMORY", "ENGINE=MEMORY"),
        sqlite("SQLite", "MEMORY", false),
        sqlite("SQLite file", "FILE", true),
        Contender {
            divisor: DUCKDB_DIVISOR,
            ..contender("DuckDB", SystemName::Duckdb, Way::DuckDb, Dialect::Standard)
        },
    ]
}

/// The lines of rows again, wider, with all memory and with a quarter of what the table takes.
fn beyond(
    scripts: &mut Scripts<'_>,
    n: u64,
    memory_bytes: u64,
    results: &mut Results,
) -> Result<(), BenchError> {
    let dialect = Dialect::MySql("");
    let mayfly = |label, memory_bytes| Contender {
        label,
        system: SystemName::Mayfly,
        way: Way::Shell,
        dialect,
        memory_bytes,
        divisor: 1,
    };
    let table_bytes = table_bytes(scripts, &mayfly(MAYFLY, memory_bytes), n)?;
    let quarter = (table_bytes / 4).max(LEAST_BUDGET);
    let sqlite = |label, memory_bytes| Contender {
        label,
        system: SystemName::Sqlite,
        way: Way::Sqlite {
            store: "FILE",
            transaction: true,
        },
        dialect: Dialect::Standard,
        memory_bytes,
        divisor: 1,
    };
    let contenders = [
        mayfly(MAYFLY, memory_bytes),
        mayfly(MAYFLY_QUARTER, quarter),
        sqlite("SQLite file", memory_bytes),
        sqlite("SQLite file, 1/4", quarter),
    ];
    let lines = |contender: &Contender| statements::rows(contender.dialect, n, WIDER);
    scripts.script(BEYOND_SCRIPT, &contenders, &lines, results)?;
    sheet::times(results, BEYOND_SCRIPT, MAYFLY, OPERATION);
    tables::device(results, table_bytes, quarter);
    Ok(())
}

/// The bytes of the table of `beyond` with its keys, when all of its rows are in.
fn table_bytes(
    scripts: &mut Scripts<'_>,
    contender: &Contender,
    n: u64,
) -> Result<u64, BenchError> {
    let failed = |reason: String| BenchError::Setup(format!("the size of the table: {reason}"));
    let mut connection = (scripts.open(contender)).map_err(|failure| failed(failure.reason()))?;
    for line in statements::inserts(contender.dialect, n, WIDER) {
        connection.run(&(line.statements)()).map_err(failed)?;
    }
    let query = "SELECT data_length + index_length FROM information_schema.tables \
                 WHERE table_name = 'bench1'";
    let answer = connection.ask(query).map_err(failed)?;
    answer.parse().map_err(|_| failed(answer))
}
