//! The watchdog of the process' memory: past its limit one statement ends, and nobody else.

use std::path::Path;
use std::time::Duration;

use mayfly_session::{Engine, EngineOptions};
use mayfly_types::MySqlError;
use tokio::task::JoinHandle;

use crate::engine::{check_nothing_left, rows, run};

/// A process of any size is larger.
const PASSED: u64 = 1;
/// No process of a test is larger.
const FAR_AWAY: u64 = 1 << 50;

fn open(resident_max_bytes: u64, directory: &Path) -> Engine {
    Engine::open(EngineOptions {
        // More than a plan takes before the second look: it ends nothing by itself.
        memory_bytes: 2 << 30,
        temp_dirs: vec![directory.to_owned()],
        threads: 2,
        resident_max_bytes: Some(resident_max_bytes),
        ..EngineOptions::default()
    })
    .unwrap()
}

/// Rows without an end.
const ENDLESS: &str = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000) \
    SELECT a.n, COUNT(*) FROM n a JOIN n b JOIN n c JOIN n d ON a.n + b.n + c.n + d.n > 1 GROUP BY a.n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_end_past_the_limit_and_their_sessions_go_on() {
    // Each beside a watchdog of its own: one ends nobody else in vain.
    for sql in [ENDLESS, "SELECT SLEEP(1000)"] {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(PASSED, directory.path());
        let mut session = engine.connect();
        let error = run(&mut session, sql).await.unwrap_err();
        assert_eq!(error.code, 1038, "{error}");
        assert!(error.message.contains("limit of 0 MiB"), "{error}");
        let status = engine.status();
        let ended = status
            .iter()
            .find(|(name, _)| *name == "Mayfly_statements_ended_for_memory");
        assert_eq!(ended.map(|(_, count)| *count), Some(1));
        drop(session);
        check_nothing_left(&engine, "ended for memory").await;
    }
}

/// A statement that is planned for long, in more and more memory.
fn long_to_plan() -> String {
    let around = "SELECT a FROM t1 WHERE a >= ALL (".repeat(20);
    format!("{around}SELECT a FROM t1{}", ")".repeat(20))
}

/// What ends a statement that is planned beside one that sleeps; `None` where the watchdog looked
/// before both had begun.
async fn planned_beside_a_sleeper(planner_is_first: bool) -> Option<MySqlError> {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(PASSED, directory.path());
    let mut planner = engine.connect();
    for sql in [
        "CREATE TABLE t1 (a INT)",
        "INSERT INTO t1 VALUES (1), (2), (3)",
    ] {
        run(&mut planner, sql).await.ok()?;
    }
    let mut sleeper = engine.connect();
    let awake = sleeper.cancel_handle();
    let sleep = async move { run(&mut sleeper, "SELECT SLEEP(1000)").await.err() };
    let plan = async move { run(&mut planner, &long_to_plan()).await.err() };
    let (planned, asleep) = match planner_is_first {
        true => {
            let planned = tokio::spawn(plan);
            until_begun(&engine, &planned).await;
            (planned, tokio::spawn(sleep))
        }
        false => {
            let asleep = tokio::spawn(sleep);
            until_begun(&engine, &asleep).await;
            (tokio::spawn(plan), asleep)
        }
    };
    let error = planned.await.unwrap().expect("it is planned for long");
    let is_asleep = !asleep.is_finished();
    awake.cancel();
    asleep.abort();
    // What it takes is counted or, at the first looks, is not.
    let is_told = ["this statement holds most", "which is planned"];
    let is_told = { is_told.iter() }.any(|text| error.message.contains(text));
    (is_asleep && is_told).then_some(error)
}

/// Waits until a statement runs, or has ended already.
async fn until_begun<T>(engine: &Engine, statement: &JoinHandle<T>) {
    let runs = || {
        let status = engine.status();
        status.contains(&("Threads_running", 1))
    };
    while !runs() && !statement.is_finished() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sleeper_does_not_end_for_one_that_is_planned() {
    /// Nearly always the first try finds both at work when the watchdog looks.
    const TRIES: usize = 20;
    for planner_is_first in [true, false] {
        let mut error = None;
        for _ in 0..TRIES {
            error = planned_beside_a_sleeper(planner_is_first).await;
            if error.is_some() {
                break;
            }
        }
        let error = error.expect("the sleeper ends first");
        assert_eq!(error.code, 1038, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn below_the_limit_nothing_ends() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(FAR_AWAY, directory.path());
    let mut session = engine.connect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(rows(&mut session, "SELECT SLEEP(1)").await, [["0"]]);
    let variable = "SELECT @@mayfly_resident_max_bytes";
    assert_eq!(rows(&mut session, variable).await, [[FAR_AWAY.to_string()]]);
    let resident = "SHOW STATUS LIKE 'Mayfly_resident_bytes'";
    let bytes: u64 = rows(&mut session, resident).await[0][1].parse().unwrap();
    assert!(bytes > 0);
}
