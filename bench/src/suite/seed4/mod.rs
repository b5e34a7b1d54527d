//! seed4: a derived table with a wide column by mysqlslap, "Back on disk temporary tables".
//!
//! Owns: the table, the statement and its answer, the two cells, the figures to be reached.
//!
//! The statement sorts a derived table whose last column is a correlated subquery over a
//! `VARCHAR(2000)`. Two clients run it, with `derived_merge` on and off. A server that turns a
//! column of more than 512 characters into a BLOB takes a table on the disk for its four rows.

mod statement;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::args::{BenchArgs, Limit, SystemName};
use crate::error::{BenchError, Context};
use crate::loads::{Contender, Host, Load, LoadRun, Loads, Rate, all_rows, kept, slap};
use crate::report::text::print_sheet;
use crate::results::{Results, Sheet};
use crate::runner::Settings;
use crate::state::State;
use crate::systems::server::Server;
use statement::STATEMENT;

const MAYFLY: &str = "Mayfly";
const MARIADB: &str = "MariaDB";
/// Clients of the page.
const CLIENTS: usize = 2;
/// The memory of every system.
const MEMORY_LIMIT: Limit = Limit::mib(1024);
/// Queries of a run; the page has as many as the full one.
const QUICK_QUERIES: u64 = 20_000;
const FULL_QUERIES: u64 = 100_000;

/// The two cells, and the most of MariaDB's time that is allowed in each.
const CELLS: [(&str, &str, f64); 2] = [
    (
        "derived_merge=on",
        "SET optimizer_switch='derived_merge=on'",
        1.0,
    ),
    (
        "derived_merge=off",
        "SET optimizer_switch='derived_merge=off'",
        0.6,
    ),
];

struct Cell<'a> {
    name: &'a str,
    first: &'a str,
    statements: PathBuf,
    queries: u64,
    timeout: Duration,
}

impl Load for Cell<'_> {
    type Known = ();

    fn name(&self) -> &str {
        self.name
    }

    fn clients(&self) -> usize {
        CLIENTS
    }

    fn prepare(&self, _contender: &Contender, server: &Server) -> Result<(), String> {
        all_rows(server, &statement::table()).map(drop)
    }

    fn run(
        &self,
        _contender: &Contender,
        server: &Server,
        _run: usize,
        (): &mut (),
    ) -> Result<Rate, String> {
        let slap = slap::Slap {
            socket: &server.socket,
            statements: &self.statements,
            first: self.first,
            clients: CLIENTS,
            queries: self.queries,
        };
        let before = temp_tables(server)?;
        let seconds = slap.run(self.timeout)?;
        let after = temp_tables(server)?;
        Ok(Rate {
            queries: self.queries,
            seconds,
            temp_tables: Some((after.0 - before.0, after.1 - before.1)),
            ..Rate::default()
        })
    }

    fn check(&self, server: &Server, (): &mut ()) -> Result<Option<String>, String> {
        let mut rows = all_rows(server, &format!("{};\n{STATEMENT}", self.first))?;
        let times: Vec<&str> = rows
            .iter()
            .filter_map(|row| row.split('\t').nth(1))
            .collect();
        let in_order = times.is_sorted();
        // Rows of the same time may come in any order.
        rows.sort();
        let expected = statement::answer();
        let wrong = if rows != expected {
            Some(format!("{rows:?} instead of {expected:?}"))
        } else if in_order {
            None
        } else {
            Some("the rows are not in order".to_owned())
        };
        Ok(wrong)
    }
}

/// Temporary tables that the server has counted, and those of them that went to the disk.
fn temp_tables(server: &Server) -> Result<(u64, u64), String> {
    let rows = all_rows(server, "SHOW GLOBAL STATUS LIKE 'Created_tmp%'")?;
    let value = |name: &str| {
        let row = rows.iter().find_map(|row| row.strip_prefix(name));
        row.and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| format!("the server does not count {name}"))
    };
    let all = value("Created_tmp_tables")?;
    Ok((all, value("Created_tmp_disk_tables")?))
}

pub(crate) fn run(
    settings: &Settings,
    args: &BenchArgs,
    state: State<LoadRun>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let statements = settings.temp_dir.join("statement.sql");
    fs::write(&statements, STATEMENT).context(|| format!("writing {}", statements.display()))?;
    let queries = if args.full {
        FULL_QUERIES
    } else {
        QUICK_QUERIES
    };
    let queries = args.queries.unwrap_or(queries);
    let limit = settings.limits.first().copied().unwrap_or(MEMORY_LIMIT);
    let contenders = [
        Contender {
            label: MAYFLY,
            system: SystemName::Mayfly,
            host: Host::Mayfly {
                memory_bytes: limit.bytes(settings.machine_bytes),
                temp_io: None,
            },
        },
        Contender {
            label: MARIADB,
            system: SystemName::Mariadb,
            host: Host::MariaDb {
                data: "mariadb",
                options: vec![
                    "--innodb-buffer-pool-size=1G".to_owned(),
                    "--tmp-table-size=1G".to_owned(),
                    "--max-heap-table-size=1G".to_owned(),
                ],
            },
        },
    ];
    let client = ("mariadb-slap", slap::version());
    let mut loads = Loads::new(settings, &args.systems, client, state, results);
    for (name, first, _) in CELLS {
        if loads.wanted(name) {
            let cell = Cell {
                name,
                first,
                statements: statements.clone(),
                queries,
                timeout: settings.timeout,
            };
            loads.cell(&cell, &contenders, results)?;
        }
    }
    loads.finish(statement::DROP);
    times(results, queries);
    for (name, _, most) in CELLS {
        let [ours, theirs] = [MAYFLY, MARIADB].map(|who| seconds(results, name, who));
        let what = format!("{name}, {CLIENTS} clients, Mayfly / MariaDB");
        results.ratio(what, ours, theirs, Some(most));
    }
    kept(results);
    Ok(())
}

fn seconds(results: &Results, cell: &str, contender: &str) -> Option<f64> {
    results.load_median(cell, CLIENTS, contender, |rate| rate.seconds)
}

/// The times of the page, with columns of our own.
fn times(results: &mut Results, queries: u64) {
    let columns = [
        "",
        "MariaDB, s",
        "Mayfly, s",
        "Mayfly / MariaDB",
        "MariaDB: temporary tables a query",
        "on disk",
        "Mayfly: temporary tables a query",
        "on disk",
    ];
    let title = format!("seconds to run all of {queries} queries, {CLIENTS} clients");
    let mut sheet = Sheet::new(&title, &columns);
    for (name, ..) in CELLS {
        let [theirs, ours] = [MARIADB, MAYFLY].map(|who| seconds(results, name, who));
        let text = |value: Option<f64>, decimals: usize| {
            value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
        };
        let ratio = ours.zip(theirs).map(|(ours, theirs)| ours / theirs);
        let mut row = vec![name.to_owned(), text(theirs, 3), text(ours, 3)];
        row.push(text(ratio, 2));
        for who in [MARIADB, MAYFLY] {
            let values: [fn((u64, u64)) -> u64; 2] = [|(all, _)| all, |(_, on_disk)| on_disk];
            for value in values {
                let each = |rate: &Rate| {
                    let tables = rate.temp_tables.unwrap_or_default();
                    value(tables) as f64 / rate.queries as f64
                };
                row.push(text(results.load_median(name, CLIENTS, who, each), 2));
            }
        }
        sheet.rows.push(row);
    }
    print_sheet(&sheet);
    results.sheets.push(sheet);
}
