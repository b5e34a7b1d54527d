//! seed2: sysbench on one shared table, "MyISAM mmap feature (5.1)".
//!
//! Owns: the contenders, the sizes, and which figures are to be reached.
//!
//! The seven workloads of the page, and the other scripts that sysbench comes with, at each number
//! of threads. MyISAM reads its data file by `pread`, and in a second server through a mapping.
//! Mayfly holds the table in memory, and in three further servers in a quarter of what it takes,
//! its file read directly, through the page cache, and through a mapping. All take turns in every
//! cell.

mod check;
mod names;
mod tables;
mod workloads;

use std::fs;

use crate::args::{BenchArgs, Limit, SystemName, size};
use crate::error::{BenchError, Context};
use crate::loads::{Contender, Host, LoadRun, Loads, sysbench};
use crate::results::Results;
use crate::runner::Settings;
use crate::state::State;
use check::Known;
use names::{MAYFLY, MMAP, PREAD, QUARTERS};
use workloads::{Cell, Setup, WORKLOADS};

/// Mayfly's memory where the table does not have to leave it.
const MEMORY_LIMIT: Limit = Limit::mib(4096);
/// The least budget beyond memory, in bytes.
const LEAST_BUDGET: u64 = 4 << 20;
/// Our scripts for sysbench.
const DRIVERS: [(&str, &str); 2] = [
    (
        "batch_select.lua",
        include_str!("../../../drivers/batch_select.lua"),
    ),
    (
        "short_queries.lua",
        include_str!("../../../drivers/short_queries.lua"),
    ),
];

/// Numbers of rows and threads, and the seconds of a run.
struct Sizes {
    rows: u64,
    seconds: u64,
    clients: &'static [usize],
}

const QUICK: Sizes = Sizes {
    rows: 500_000,
    seconds: 1,
    clients: &[1, 4, 16, 64],
};
const FULL: Sizes = Sizes {
    rows: 5_000_000,
    seconds: 10,
    clients: &[1, 4, 16, 64, 256],
};

pub(crate) fn run(
    settings: &Settings,
    args: &BenchArgs,
    state: State<LoadRun>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let sizes = if args.full { FULL } else { QUICK };
    for (name, text) in DRIVERS {
        let driver = settings.temp_dir.join(name);
        fs::write(&driver, text).context(|| format!("writing {}", driver.display()))?;
    }
    let setup = Setup {
        rows: args.rows.unwrap_or(sizes.rows),
        seconds: args.seconds.unwrap_or(sizes.seconds),
        drivers: settings.temp_dir.clone(),
    };
    let clients = if args.clients.is_empty() {
        sizes.clients
    } else {
        &args.clients
    };
    let limit = settings.limits.first().copied().unwrap_or(MEMORY_LIMIT);
    let memory_bytes = limit.bytes(settings.machine_bytes);
    let client = ("sysbench", sysbench::version());
    let mut loads = Loads::new(settings, &args.systems, client, state, results);
    let mut contenders = vec![
        mayfly(MAYFLY, memory_bytes, None),
        myisam(PREAD, "mariadb", "OFF"),
        myisam(MMAP, "mariadb-mmap", "ON"),
    ];
    if loads.takes_part(SystemName::Mayfly) {
        let table_bytes = table_bytes(&mut loads, &setup, &contenders[0])?;
        let quarter = (table_bytes / 4).max(LEAST_BUDGET);
        let text = format!(
            "{} rows, {} with keys; a quarter is {}",
            setup.rows,
            size(table_bytes),
            size(quarter)
        );
        println!("table: {text}");
        results.machine.push(("table".to_owned(), text));
        let quarters = QUARTERS.map(|(label, way)| mayfly(label, quarter, Some(way)));
        contenders.extend(quarters);
    }
    for workload in &WORKLOADS {
        if !loads.wanted(workload.name) {
            continue;
        }
        for &clients in clients {
            let cell = Cell {
                workload,
                clients,
                setup: &setup,
            };
            loads.cell(&cell, &contenders, results)?;
        }
        tables::rates(results, workload.name, clients);
    }
    loads.finish("DROP TABLE IF EXISTS sbtest1");
    tables::beyond(results, clients);
    tables::figures(results, clients);
    Ok(())
}

fn mayfly(label: &'static str, memory_bytes: u64, temp_io: Option<&'static str>) -> Contender {
    Contender {
        label,
        system: SystemName::Mayfly,
        host: Host::Mayfly {
            memory_bytes,
            temp_io,
        },
    }
}

fn myisam(label: &'static str, data: &'static str, mmap: &str) -> Contender {
    Contender {
        label,
        system: SystemName::Mariadb,
        host: Host::MariaDb {
            data,
            options: vec![
                format!("--myisam-use-mmap={mmap}"),
                // All keys in memory; the rows are in the page cache.
                "--key-buffer-size=1G".to_owned(),
                "--innodb-buffer-pool-size=16M".to_owned(),
                "--max-connections=2000".to_owned(),
            ],
        },
    }
}

/// The bytes of the table with its keys, asked of the server that holds it in memory.
fn table_bytes(
    loads: &mut Loads<'_, Known>,
    setup: &Setup,
    contender: &Contender,
) -> Result<u64, BenchError> {
    let cell = Cell {
        workload: &WORKLOADS[0],
        clients: 1,
        setup,
    };
    let query = "SELECT data_length + index_length FROM information_schema.tables \
                 WHERE table_name = 'sbtest1'";
    loads
        .ask_number(&cell, contender, query)
        .map_err(|reason| BenchError::Setup(format!("the size of the table: {reason}")))
}
