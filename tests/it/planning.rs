//! Statements that are hard to plan: they end, they can be stopped, and nobody else waits for them.

use std::path::Path;
use std::time::{Duration, Instant};

use mayfly_session::{Engine, EngineOptions, Session};
use mayfly_types::MySqlError;

use crate::engine::{check_nothing_left, open, open_with, rows, run};

const MEMORY: u64 = 64 << 20;
/// A watchdog: what takes longer than this has hung.
const PATIENCE: Duration = Duration::from_secs(120);

async fn engine_with_table(directory: &Path) -> (Engine, Session) {
    let engine = open_with(
        EngineOptions {
            memory_bytes: MEMORY,
            threads: 2,
            ..EngineOptions::default()
        },
        directory,
    );
    let mut session = engine.connect();
    rows(&mut session, "CREATE TABLE t1 (a INT, b INT)").await;
    rows(&mut session, "INSERT INTO t1 VALUES (1, 2), (2, 3)").await;
    (engine, session)
}

async fn end(engine: &Engine, mut session: Session, what: &str) {
    rows(&mut session, "DROP TABLE t1").await;
    drop(session);
    check_nothing_left(engine, what).await;
}

/// `around` so many times, and `inner` in the middle.
fn nested(around: &str, inner: &str, depth: usize) -> String {
    format!("{}{inner}{}", around.repeat(depth), ")".repeat(depth))
}

/// A statement that is planned for as long as a test looks: each item is as long as it may be.
fn long_to_plan() -> String {
    let items = (0..24).map(|item| format!("a{} AS c{item}", " + b".repeat(480)));
    format!("SELECT {} FROM t1", items.collect::<Vec<_>>().join(", "))
}

/// Waits until so many statements are being planned.
async fn until_planned(watcher: &mut Session, count: usize) {
    let started = Instant::now();
    loop {
        let list = rows(watcher, "SHOW PROCESSLIST").await;
        let is_planned = |row: &&Vec<String>| row[6] == "Optimizing" || row[6] == "Preparing";
        if list.iter().filter(is_planned).count() >= count {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{list:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn start(mut session: Session, sql: String) -> tokio::task::JoinHandle<Option<MySqlError>> {
    tokio::spawn(async move { run(&mut session, &sql).await.err() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selects_are_nested_as_deeply_as_in_mysql() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    let both = vec![vec!["1".to_owned()], vec!["2".to_owned()]];
    let largest = vec![vec!["2".to_owned()]];
    for (around, inner, expected) in [
        ("SELECT a FROM t1 WHERE a IN (", "SELECT a FROM t1", &both),
        ("SELECT a FROM t1 WHERE EXISTS (", "SELECT a FROM t1", &both),
        (
            "SELECT MAX(a) FROM t1 WHERE a = (",
            "SELECT MAX(a) FROM t1",
            &largest,
        ),
        ("SELECT (", "SELECT MAX(a) FROM t1", &largest),
    ] {
        let sql = nested(around, inner, 63);
        let mut answer = rows(&mut session, &sql).await;
        answer.sort();
        assert_eq!(answer, *expected, "{around}");
        let error = run(&mut session, &nested(around, inner, 64))
            .await
            .unwrap_err();
        assert_eq!(error.code, 1473, "{around}: {error}");
    }
    end(&engine, session, "nested").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_larger_than_memory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    // Each table expression is twice in the next one.
    let doubled = |count: usize| {
        let tables: String = (1..=count)
            .map(|at| {
                let before = at - 1;
                format!(", w{at} AS (SELECT x.a FROM w{before} x JOIN w{before} y ON x.a = y.a)")
            })
            .collect();
        format!("WITH w0 AS (SELECT a FROM t1){tables} SELECT COUNT(*) FROM w{count}")
    };
    assert_eq!(rows(&mut session, &doubled(3)).await, [["2"]]);
    for (count, codes) in [
        (13, &[1038, 1041][..]),
        (16, &[1116]),
        (30, &[1116]),
        (100, &[1116]),
    ] {
        let error = run(&mut session, &doubled(count)).await.unwrap_err();
        assert!(codes.contains(&error.code), "{count}: {error}");
        // EXPLAIN looks at the expanded statement in more ways, and has the same bounds.
        let explained = format!("EXPLAIN {}", doubled(count));
        let error = run(&mut session, &explained).await.unwrap_err();
        assert!(codes.contains(&error.code), "EXPLAIN {count}: {error}");
    }
    // A list that is short as a plan, but not as a text.
    let items = "1,".repeat(1_000_000);
    let list = format!("SELECT 1 FROM t1 WHERE a IN ({items}1)");
    let error = run(&mut session, &list).await.unwrap_err();
    assert!([1038, 1041].contains(&error.code), "{error}");
    assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM t1").await, [["2"]]);
    end(&engine, session, "doubled").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planning_ends_when_its_time_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    rows(&mut session, "SET mayfly_max_planning_time = 100").await;
    let error = run(&mut session, &long_to_plan()).await.unwrap_err();
    assert_eq!(error.code, 3024, "{error}");
    assert!(
        error.message.contains("mayfly_max_planning_time = 100 ms"),
        "{error}"
    );
    rows(&mut session, "SET mayfly_max_planning_time = DEFAULT").await;
    rows(&mut session, "SET max_execution_time = 100").await;
    let error = run(&mut session, &long_to_plan()).await.unwrap_err();
    assert_eq!(error.code, 3024, "{error}");
    rows(&mut session, "SET max_execution_time = 0").await;
    end(&engine, session, "time").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_served_while_statements_are_planned_which_can_be_killed() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    rows(&mut session, "SET GLOBAL mayfly_max_planning_time = 0").await;
    // More than the workers, and more than may be planned at a time for long.
    let planned: Vec<_> = (0..6)
        .map(|_| {
            let session = engine.connect();
            let id = session.id();
            (id, start(session, long_to_plan()))
        })
        .collect();
    until_planned(&mut session, planned.len()).await;
    let mut newcomer = engine.connect();
    assert_eq!(
        rows(&mut newcomer, "SELECT COUNT(*) FROM t1 WHERE b > 1").await,
        [["2"]]
    );
    for (id, planned) in planned {
        assert!(!planned.is_finished());
        rows(&mut newcomer, &format!("KILL QUERY {id}")).await;
        let error = planned.await.unwrap().expect("it was killed");
        assert_eq!(error.code, 1317, "{error}");
    }
    rows(
        &mut session,
        "SET GLOBAL mayfly_max_planning_time = DEFAULT",
    )
    .await;
    drop(newcomer);
    end(&engine, session, "killed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_statement_is_planned_no_further() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    let planned = start(engine.connect(), long_to_plan());
    until_planned(&mut session, 1).await;
    planned.abort();
    assert!(planned.await.unwrap_err().is_cancelled());
    // What it held is given back when its thread has noticed.
    end(&engine, session, "dropped").await;
}

/// Everything is refused or answered: no statement of these shapes keeps the planner for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wide_statements_are_planned() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(256 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TABLE t1 (a INT, b INT)").await;
    rows(&mut session, "INSERT INTO t1 VALUES (1, 2), (2, 3)").await;
    let list = |count: usize, between: &str, item: &dyn Fn(usize) -> String| {
        let items: Vec<String> = (0..count).map(item).collect();
        items.join(between)
    };
    let items = list(5000, ", ", &|item| item.to_string());
    let terms = list(2000, " OR ", &|term| format!("a = {term} AND b > {term}"));
    let joins = list(20, "", &|at| format!(" JOIN t1 x{at} ON x{at}.a = t1.a"));
    let unions = " UNION ALL SELECT a FROM t1".repeat(300);
    for (sql, expected) in [
        (format!("SELECT COUNT(*) FROM t1 WHERE a IN ({items})"), "2"),
        (format!("SELECT COUNT(*) FROM t1 WHERE {terms}"), "2"),
        (format!("SELECT COUNT(*) FROM t1{joins}"), "2"),
        (
            format!("SELECT COUNT(*) FROM (SELECT a FROM t1{unions}) u"),
            "602",
        ),
    ] {
        assert_eq!(
            rows(&mut session, &sql).await,
            [[expected]],
            "{}",
            &sql[..40]
        );
    }
    end(&engine, session, "wide").await;
}
