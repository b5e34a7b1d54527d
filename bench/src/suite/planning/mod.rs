//! planning: how long plans take to make, over depth and width.
//!
//! Owns: the sizes, how a plan is timed, the figures to be reached.
//!
//! Each statement is explained, not run, over a table of two rows: what EXPLAIN takes is the parser
//! and the planner. Shown is the median, and by which power of the size the time grew since the
//! size before: 1 is linear, 2 the square; where a time doubles with each level it goes up and up.
//! A statement that a server refuses shows its error, and how long it took to refuse.

mod statements;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::args::{BenchArgs, SystemName};
use crate::error::BenchError;
use crate::report::text::print_sheet;
use crate::results::{Figure, Results, Sheet};
use crate::scripts::wire::Client;
use crate::systems::server::{DATABASE, Flavour, Serve, Server, Start};
use statements::{KINDS, Kind};

/// Enough for each of the statements that is to be planned.
const MEMORY_BYTES: u64 = 1 << 30;
/// Runs of a statement that is planned in no time.
const RUNS: usize = 5;
/// A statement that takes longer is planned once.
const LONG: Duration = Duration::from_millis(500);
/// The longest that a client may hold a thread that plans: `mayfly_max_planning_time`.
const LIMIT_MS: f64 = 30_000.0;

/// One statement on one system.
struct Taken {
    median: Duration,
    refused: Option<String>,
}

pub(crate) fn run(
    args: &BenchArgs,
    cache_dir: &Path,
    temp_dir: &Path,
    results: &mut Results,
) -> Result<(), BenchError> {
    let serve = Serve {
        memory_bytes: MEMORY_BYTES,
        threads: args.threads,
        temp_io: None,
        temp_dir,
        files: None,
    };
    let mut servers = Vec::new();
    if args.wants(SystemName::Mayfly) {
        let server = Server::serve(&serve).map_err(BenchError::Setup)?;
        servers.push((SystemName::Mayfly, server));
    }
    if args.wants(SystemName::Mariadb) && Flavour::MariaDb.version().is_ok() {
        let start = Start {
            flavour: Flavour::MariaDb,
            data_dir: &cache_dir.join("mariadb"),
            temp_dir,
            options: Vec::new(),
            cap_bytes: None,
        };
        let server = Server::start(&start).map_err(BenchError::Setup)?;
        servers.push((SystemName::Mariadb, server));
    }
    let measured = measure(args, &servers).map_err(BenchError::Setup)?;
    results.figures.extend(measured.figures);
    print_sheet(&measured.sheet);
    results.sheets.push(measured.sheet);
    Ok(())
}

struct Measured {
    sheet: Sheet,
    figures: Vec<Figure>,
}

fn measure(args: &BenchArgs, servers: &[(SystemName, Server)]) -> Result<Measured, String> {
    let mut columns = vec!["statement".to_owned(), "size".to_owned()];
    let mut clients = Vec::new();
    for (system, server) in servers {
        columns.push(format!("{} ms", system.label()));
        columns.push("power".to_owned());
        let mut client = Client::connect(&server.socket, DATABASE)?;
        for statement in statements::TABLES {
            client.query(statement)?;
        }
        clients.push((*system, client));
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut sheet = Sheet::new("planning", &columns);
    let mut figures = Vec::new();
    for kind in &KINDS {
        let is_wanted = args.only.as_deref();
        if !is_wanted.is_none_or(|only| kind.name.contains(only)) {
            continue;
        }
        let longest = measure_kind(kind, &mut clients, &mut sheet)?;
        let what = format!("{}: longest in ms", kind.name);
        figures.push(Figure::at_most(what, longest, Some(LIMIT_MS)));
    }
    Ok(Measured { sheet, figures })
}

/// Adds the sizes of one kind; gives the longest time that Mayfly took, in milliseconds.
fn measure_kind(
    kind: &Kind,
    clients: &mut [(SystemName, Client)],
    sheet: &mut Sheet,
) -> Result<f64, String> {
    let mut before: Vec<Option<(usize, Duration)>> = vec![None; clients.len()];
    let mut longest = Duration::ZERO;
    for size in kind.sizes {
        let statement = format!("EXPLAIN {}", (kind.text)(*size));
        let mut row = vec![kind.name.to_owned(), size.to_string()];
        for ((system, client), before) in clients.iter_mut().zip(&mut before) {
            let taken = explain(client, &statement)?;
            if *system == SystemName::Mayfly {
                longest = longest.max(taken.median);
            }
            row.extend(cells(&taken, *size, *before));
            *before = taken.refused.is_none().then_some((*size, taken.median));
        }
        sheet.rows.push(row);
    }
    Ok(longest.as_secs_f64() * 1000.0)
}

fn explain(client: &mut Client, statement: &str) -> Result<Taken, String> {
    let mut times = Vec::new();
    let mut refused = None;
    while times.len() < RUNS {
        let started = Instant::now();
        let answer = client.query(statement);
        times.push(started.elapsed());
        if let Err(error) = answer {
            // The server still lives.
            client.query("DO 1")?;
            refused = Some(error);
        }
        if times.last().is_some_and(|last| *last > LONG) {
            break;
        }
    }
    times.sort_unstable();
    Ok(Taken {
        median: times[times.len() / 2],
        refused,
    })
}

/// The time, and the power of the size with which it grew.
fn cells(taken: &Taken, size: usize, before: Option<(usize, Duration)>) -> [String; 2] {
    let ms = taken.median.as_secs_f64() * 1000.0;
    if let Some(error) = &taken.refused {
        let words: String = error.chars().take(40).collect();
        return [format!("{ms:.1}: {words}"), String::new()];
    }
    let power = before.map(|(smaller, less)| {
        let times = taken.median.as_secs_f64() / less.as_secs_f64();
        times.ln() / (size as f64 / smaller as f64).ln()
    });
    let power = power.map_or_else(String::new, |power| format!("{power:.1}"));
    [format!("{ms:.1}"), power]
}
