//! neighbours: how long a client waits while others work hard.
//!
//! Owns: the tables, the kinds of neighbours, the figures to be reached.
//!
//! Eight clients read single rows by primary key, one after the other. Beside them other clients
//! group, join, load files, commit millions of keyed rows into the same table, send statements
//! that are hard to plan, and spill until a quota ends them. Shown are the 99.9th percentile of the
//! waits of the client that had the worst, and the longest wait of all, which is the longest stop
//! that anybody saw. One more client comes and goes meanwhile: how long it took to be let in and
//! to have its first answers.

mod others;
mod waits;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::args::{BenchArgs, SystemName};
use crate::error::BenchError;
use crate::report::text::print_sheet;
use crate::results::{Figure, Results, Sheet};
use crate::scripts::wire::Client;
use crate::systems::server::{DATABASE, Flavour, Serve, Server, Start};
use others::{NEIGHBOURS, Neighbour};
use waits::Waits;

/// Clients that read rows by key.
const READERS: u64 = 8;
/// Rows that they read.
const POINTS: u64 = 100_000;
/// Rows of the table that is grouped and joined.
const ROWS: u64 = 2_000_000;
/// Less than what the neighbours want.
const MEMORY_BYTES: u64 = 128 << 20;
/// How long each neighbour is there, in seconds.
const SECONDS: u64 = 5;

/// The longest stop, in milliseconds.
const STOP_MS_MAX: f64 = 100.0;
/// The 99.9th percentile over that without neighbours.
const RATIO_MAX: f64 = 10.0;

/// What the readers saw beside one kind of neighbour.
struct Seen {
    neighbour: &'static str,
    waits: Waits,
    /// Those of clients that came.
    newcomers: Waits,
    /// Statements of the neighbours that ended, those with an error included.
    ended: u64,
    failure: Option<String>,
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
        files: Some(temp_dir),
    };
    if args.wants(SystemName::Mayfly) {
        let server = Server::serve(&serve).map_err(BenchError::Setup)?;
        let seen =
            measure(args, &server, SystemName::Mayfly, temp_dir).map_err(BenchError::Setup)?;
        show(results, "Mayfly", &seen);
        figures(results, &seen);
    }
    if args.wants(SystemName::Mariadb) && Flavour::MariaDb.version().is_ok() {
        let start = Start {
            flavour: Flavour::MariaDb,
            data_dir: &cache_dir.join("mariadb"),
            temp_dir,
            options: vec![
                "--default-storage-engine=InnoDB".to_owned(),
                format!("--innodb-buffer-pool-size={MEMORY_BYTES}"),
                "--innodb-flush-log-at-trx-commit=0".to_owned(),
                "--local-infile=1".to_owned(),
            ],
            cap_bytes: None,
        };
        let server = Server::start(&start).map_err(BenchError::Setup)?;
        let seen =
            measure(args, &server, SystemName::Mariadb, temp_dir).map_err(BenchError::Setup)?;
        show(results, "MariaDB, InnoDB", &seen);
    }
    Ok(())
}

fn measure(
    args: &BenchArgs,
    server: &Server,
    system: SystemName,
    files: &Path,
) -> Result<Vec<Seen>, String> {
    let mut client = Client::connect(&server.socket, DATABASE)?;
    others::prepare(&mut client, system, files, POINTS, ROWS)?;
    let duration = Duration::from_secs(args.seconds.unwrap_or(SECONDS));
    let mut seen = Vec::new();
    for neighbour in &NEIGHBOURS {
        let is_wanted = args.only.as_deref();
        let is_wanted = is_wanted.is_none_or(|only| neighbour.name.contains(only));
        if !is_wanted && !neighbour.statements.is_empty() || !neighbour.takes_part(system) {
            continue;
        }
        let one = beside(server, neighbour, system, files, duration)?;
        others::tidy_up(&mut client, POINTS)?;
        seen.push(one);
    }
    Ok(seen)
}

/// Reads rows beside one kind of neighbour.
fn beside(
    server: &Server,
    neighbour: &Neighbour,
    system: SystemName,
    files: &Path,
    duration: Duration,
) -> Result<Seen, String> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = |seed| {
            let is_over = &is_over;
            scope.spawn(move || waits::read(server, seed, POINTS, is_over))
        };
        let readers: Vec<_> = (1..=READERS).map(reader).collect();
        let newcomer = scope.spawn(|| waits::arrive(server, &is_over));
        let other =
            |number| scope.spawn(move || neighbour.work(server, system, files, number, duration));
        let others: Vec<_> = (0..neighbour.clients).map(other).collect();
        if others.is_empty() {
            thread::sleep(duration);
        }
        let (mut ended, mut failure) = (0, None);
        for other in others {
            match other.join() {
                Ok(Ok(statements)) => ended += statements,
                Ok(Err(error)) => failure = Some(error),
                Err(_) => failure = Some("a neighbour panicked".to_owned()),
            }
        }
        is_over.store(true, Ordering::Relaxed);
        let newcomers = newcomer
            .join()
            .map_err(|_| "the client that comes panicked".to_owned())?;
        let mut all = Waits::default();
        for reader in readers {
            let waits = reader.join().map_err(|_| "a reader panicked".to_owned())?;
            all.add(waits?);
        }
        Ok(Seen {
            neighbour: neighbour.name,
            waits: all,
            newcomers,
            ended,
            failure,
        })
    })
}

fn show(results: &mut Results, system: &str, seen: &[Seen]) {
    let columns = [
        "beside",
        "statements",
        "failed reads",
        "reads/s",
        "median ms",
        "99 % ms",
        "99.9 % ms",
        "of the worst client",
        "longest ms",
        "to come in, longest ms",
    ];
    let title = format!("{system}: waits of {READERS} clients that read single rows");
    let mut sheet = Sheet::new(&title, &columns);
    for one in seen {
        let waits = &one.waits;
        let ended = match &one.failure {
            Some(failure) => format!("{}, {failure}", one.ended),
            None => one.ended.to_string(),
        };
        let errors = match &waits.error {
            Some(error) => format!("{}: {error}", waits.errors),
            None => "0".to_owned(),
        };
        let mut row = vec![one.neighbour.to_owned(), ended, errors];
        row.push(format!("{:.0}", waits.per_second()));
        let percentiles = [0.5, 0.99, 0.999].map(|part| waits.percentile_ms(part));
        let longest = waits.percentile_ms(1.0);
        let others = [waits.worst_ms(), longest, one.newcomers.percentile_ms(1.0)];
        let times = percentiles.into_iter().chain(others);
        row.extend(times.map(|milliseconds| format!("{milliseconds:.2}")));
        sheet.rows.push(row);
    }
    print_sheet(&sheet);
    results.sheets.push(sheet);
}

fn figures(results: &mut Results, seen: &[Seen]) {
    let is_alone = |one: &&Seen| one.neighbour == NEIGHBOURS[0].name;
    let Some(alone) = seen.iter().find(is_alone).map(|one| one.waits.worst_ms()) else {
        return;
    };
    let (mut worst, mut longest) = (0.0_f64, 0.0_f64);
    for one in seen.iter().filter(|one| !is_alone(one)) {
        let what = format!("beside {}", one.neighbour);
        let ratio = one.waits.worst_ms() / alone;
        let stop = one.waits.percentile_ms(1.0);
        (worst, longest) = (worst.max(ratio), longest.max(stop));
        let errors = one.waits.errors + one.newcomers.errors;
        results.figures.extend([
            Figure::at_most(
                format!("{what}: 99.9 % of the waits over those alone"),
                ratio,
                Some(RATIO_MAX),
            ),
            Figure::at_most(
                format!("{what}: longest stop in ms"),
                stop,
                Some(STOP_MS_MAX),
            ),
            Figure::at_most(
                format!("{what}: longest in ms until a client is in and answered"),
                one.newcomers.percentile_ms(1.0),
                Some(STOP_MS_MAX),
            ),
            Figure::at_most(format!("{what}: failed reads"), errors as f64, Some(0.0)),
            Figure::at_most(
                format!("{what}: neighbours that could not do their work"),
                f64::from(u8::from(one.failure.is_some())),
                Some(0.0),
            ),
        ]);
    }
    results.figures.extend([
        Figure::at_most(
            "worst 99.9 % of the waits over those alone",
            worst,
            Some(RATIO_MAX),
        ),
        Figure::at_most("longest stop in ms", longest, Some(STOP_MS_MAX)),
    ]);
}
