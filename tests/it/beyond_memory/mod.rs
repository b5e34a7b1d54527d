//! Statements that page out: the answers of a live MariaDB, with all memory and with the least, and
//! stopped at any point.
//!
//! `queries` has every form of query over a few rows, which never leave memory. Here the forms are
//! few, the rows many and wide.

mod statements;

use std::path::Path;
use std::time::{Duration, Instant};

use mayfly_session::{Engine, Session};
use mayfly_testkit::Random;
use mayfly_tests::mariadb::Server;

use self::statements::Statements;
use crate::answers::{answer, answer_of};
use crate::budgets::{MINIMUM, UNLIMITED};
use crate::engine::{check_nothing_left, check_only_left, open, rows};

const SEED: u64 = 20_261_127;
/// Statements that are compared, and statements that are stopped.
const QUERIES: usize = 40;
const STOPPED: usize = 60;
/// The same with `MAYFLY_FULL`.
const FULL: usize = 1_000;

/// Errors of statements that were stopped.
const INTERRUPTED: u16 = 1317;

fn count(quick: usize) -> usize {
    match std::env::var_os("MAYFLY_FULL") {
        Some(_) => FULL,
        None => quick,
    }
}

/// A session with the tables, and its engine.
async fn with_tables(memory_bytes: u64, directory: &Path, tables: &[String]) -> (Engine, Session) {
    let engine = open(memory_bytes, directory);
    let mut session = engine.connect();
    for sql in tables {
        rows(&mut session, sql).await;
    }
    (engine, session)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_windows_and_with_tables_of_any_size_answer_as_mariadb() {
    if !Server::is_installed() {
        println!("skipped: mariadbd is not installed");
        return;
    }
    println!("seed {SEED}");
    let mut statements = Statements::new(SEED);
    let tables = statements.tables();
    let server = Server::start();
    let mut theirs = server.connect();
    for sql in &tables {
        theirs.rows(sql).unwrap();
    }
    // Without keys, and without joins by hash, it would compare each row with each.
    for sql in [
        "SET join_cache_level = 8, join_buffer_size = 64 << 20, join_buffer_space_limit = 1 << 30",
        "ALTER TABLE l ADD KEY (k), ADD KEY (id)",
        "ALTER TABLE r ADD KEY (k), ADD KEY (id)",
    ] {
        theirs.rows(sql).unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let (roomy, mut in_memory) = with_tables(UNLIMITED, directory.path(), &tables).await;
    let (least, mut on_disk) = with_tables(MINIMUM, directory.path(), &tables).await;
    let mut spilled = 0;
    let mut failures = Vec::new();
    let count = count(QUERIES);
    for _ in 0..count {
        let sql = statements.query();
        let expected = answer_of(&mut theirs, &sql);
        assert!(expected.is_ok(), "{sql}: {expected:?}");
        let written = least.space().counters().bytes_written;
        for (memory, session) in [("all", &mut in_memory), ("the least", &mut on_disk)] {
            let got = answer(session, &sql).await;
            if got != expected {
                failures.push(format!(
                    "with {memory} memory: {sql}\n  ours: {got:?}\n  theirs: {expected:?}"
                ));
            }
        }
        let written = least.space().counters().bytes_written - written;
        spilled += usize::from(written > 0);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(roomy.space().counters().bytes_written, 0);
    assert!(
        spilled > count / 2,
        "{spilled} of {count} wrote to the disk"
    );
    for (engine, session) in [(roomy, in_memory), (least, on_disk)] {
        drop(session);
        check_nothing_left(&engine, "beyond memory").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_stopped_anywhere_leave_nothing() {
    println!("seed {SEED}");
    let mut statements = Statements::new(SEED);
    let mut random = Random::new(SEED);
    let tables = statements.tables();
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = with_tables(MINIMUM, directory.path(), &tables).await;
    let held = {
        let counters = engine.space().counters();
        (counters.pages_live, counters.reserved_bytes)
    };
    let mut interrupted = 0;
    let count = count(STOPPED);
    for _ in 0..count {
        let sql = statements.query();
        let begin = Instant::now();
        let expected = answer(&mut session, &sql).await;
        assert!(expected.is_ok(), "{sql}: {expected:?}");
        let micros = begin.elapsed().as_micros() as u64;
        let point = Duration::from_micros(random.below(micros));
        let cancel = session.cancel_handle();
        let stopper = tokio::spawn(async move {
            tokio::time::sleep(point).await;
            cancel.cancel();
        });
        match answer(&mut session, &sql).await {
            Err(code) => {
                assert_eq!(code, INTERRUPTED, "{sql} after {point:?}");
                interrupted += 1;
            }
            rows => assert_eq!(rows, expected, "{sql}"),
        }
        // One that came too late must not stop the next.
        stopper.await.unwrap();
        check_only_left(&engine, held, &sql).await;
        assert_eq!(answer(&mut session, &sql).await, expected, "{sql}");
    }
    assert!(
        interrupted > count / 4,
        "{interrupted} of {count} were stopped"
    );
    drop(session);
    check_nothing_left(&engine, "stopped statements").await;
}
