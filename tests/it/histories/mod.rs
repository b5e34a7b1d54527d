//! Histories: many sessions change shared tables at once, and every row is accounted for.
//!
//! ```text
//!   schedule    what each session runs, drawn from a seed
//!   statement   one statement: its text, and what it must do to the rows of its connection
//!   kinds       what must have been acknowledged at least once
//!   tables      the shared tables, and rows in them
//!   sums        numbers that everybody changes
//!   sessions    runs a schedule; writes down what was asked, when, and what came back
//!   ledger      which contents the answers allow
//!   checks      compares with the tables at the end, by every way to their rows
//! ```
//!
//! Clients go away in the middle of statements, kill each other, run out of memory and quotas, and
//! change definitions. What was acknowledged is there, unless it was acknowledged that it went;
//! what failed has left nothing; what got no answer did all or nothing.
//!
//! A run repeats as far as the scheduler allows: `MAYFLY_RANDOM_SEED` begins with another seed,
//! `MAYFLY_FULL` goes on for an hour, or for `MAYFLY_RANDOM_SECONDS`.

mod checks;
mod kinds;
mod ledger;
mod schedule;
mod sessions;
mod statement;
mod sums;
mod tables;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use mayfly_session::{EngineOptions, TestFaults};
use mayfly_testkit::FaultPlan;

use crate::budgets::MINIMUM;
use crate::engine::{check_nothing_left, open_with, rows};
use kinds::{KINDS, kind};
use ledger::Answer;
use schedule::{NUMBERS, Schedule};
use sessions::run_schedule;
use tables::TABLES;

const SEED: u64 = 20_261_124;
/// Schedules of an ordinary run.
const SCHEDULES: u64 = 4;
/// Statements of a schedule, of all sessions together.
const STEPS: usize = 600;

/// Where a schedule runs.
#[derive(Clone, Copy, Debug)]
struct Surroundings {
    memory_bytes: u64,
    /// Whether operations of the space fail now and then.
    has_faults: bool,
}

/// The same schedules with room for everything, with little, and on a bad disk.
const SURROUNDINGS: [Surroundings; 3] = [
    Surroundings {
        memory_bytes: 64 << 20,
        has_faults: false,
    },
    Surroundings {
        memory_bytes: MINIMUM,
        has_faults: false,
    },
    Surroundings {
        memory_bytes: MINIMUM,
        has_faults: true,
    },
];

/// Runs a schedule and checks what came of it; the kinds of statements that were acknowledged.
async fn check(seed: u64, surroundings: Surroundings) -> BTreeSet<&'static str> {
    let schedule = Schedule::new(seed, STEPS);
    let what = format!(
        "MAYFLY_RANDOM_SEED={seed}, {} sessions, {surroundings:?}",
        schedule.sessions.len()
    );
    println!("{what}");
    let directory = tempfile::tempdir().unwrap();
    let faults = surroundings.has_faults.then(|| FaultPlan::new(&[]));
    let options = EngineOptions {
        memory_bytes: surroundings.memory_bytes,
        faults: faults.clone().map(|plan| TestFaults(plan)),
        ..EngineOptions::default()
    };
    let engine = open_with(options, directory.path());
    let mut session = engine.connect();
    for sql in setup() {
        rows(&mut session, &sql).await;
    }
    drop(session);
    let files = directory.path().to_owned();
    let is_short = surroundings.memory_bytes == MINIMUM || surroundings.has_faults;
    let history = run_schedule(&engine, &schedule, files, faults.clone(), is_short).await;
    if let Some(faults) = faults {
        faults.disarm();
    }
    if let Err(problems) = checks::check(&engine, &history, seed).await {
        panic!("{what}:\n{problems}");
    }
    let mut session = engine.connect();
    for table in TABLES.iter().map(|table| table.name).chain(sums::SUMS) {
        rows(&mut session, &format!("DROP TABLE {table}")).await;
    }
    rows(&mut session, "DROP TABLE numbers").await;
    drop(session);
    check_nothing_left(&engine, &what).await;
    let events = history.logs.iter().flat_map(|log| &log.events);
    let done = events.filter(|event| matches!(event.answer, Answer::Done { .. } | Answer::Rows(_)));
    done.map(|event| kind(&event.statement)).collect()
}

fn setup() -> Vec<String> {
    let numbers: Vec<_> = (0..NUMBERS).map(|n| format!("({n})")).collect();
    let mut setup = vec![
        "CREATE TABLE numbers (n INT)".to_owned(),
        format!("INSERT INTO numbers VALUES {}", numbers.join(", ")),
    ];
    setup.extend(TABLES.iter().map(tables::SharedTable::definition));
    setup.extend(sums::setup());
    setup
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_shared_tables_is_accounted_for() {
    let begin = number("MAYFLY_RANDOM_SEED").unwrap_or(SEED);
    let seconds = number("MAYFLY_RANDOM_SECONDS");
    let is_full = std::env::var_os("MAYFLY_FULL").is_some();
    let seconds = seconds.or_else(|| is_full.then_some(3600));
    let is_usual = begin == SEED && seconds.is_none();
    let mut acknowledged = BTreeSet::new();
    let started = Instant::now();
    for seed in begin.. {
        let is_over = match seconds {
            Some(seconds) => started.elapsed() >= Duration::from_secs(seconds),
            None => seed >= begin + SCHEDULES,
        };
        if is_over {
            break;
        }
        for surroundings in SURROUNDINGS {
            acknowledged.append(&mut Box::pin(check(seed, surroundings)).await);
        }
    }
    if is_usual {
        let missing = KINDS.iter().filter(|kind| !acknowledged.contains(*kind));
        let missing: Vec<_> = missing.collect();
        assert!(missing.is_empty(), "never acknowledged: {missing:?}");
    }
}
