//! Statements that wait in SLEEP and GET_LOCK: others go on meanwhile, and they end when told to.

use std::path::Path;
use std::time::{Duration, Instant};

use mayfly_session::{Engine, EngineOptions, Session};
use mayfly_types::MySqlError;

use crate::engine::{check_nothing_left, rows, run};

/// Longer than any test: what sleeps so long must be woken.
const LONG: &str = "SELECT SLEEP(1000)";
/// Much longer than what must not wait takes.
const SOON: Duration = Duration::from_secs(5);

/// An engine with one worker.
fn open(directory: &Path) -> Engine {
    Engine::open(EngineOptions {
        memory_bytes: 16 << 20,
        temp_dirs: vec![directory.to_owned()],
        threads: 1,
        ..EngineOptions::default()
    })
    .unwrap()
}

type Ran = Result<Option<Vec<Vec<String>>>, MySqlError>;

/// Runs a statement beside the test, which gets the session back.
fn start(mut session: Session, sql: &str) -> tokio::task::JoinHandle<(Session, Ran)> {
    let sql = sql.to_owned();
    tokio::spawn(async move {
        let ran = run(&mut session, &sql).await;
        (session, ran)
    })
}

async fn until_all_run(engine: &Engine, count: usize) {
    let mut watcher = engine.connect();
    let started = Instant::now();
    let waiting = |rows: &Vec<Vec<String>>| {
        let statements = rows.iter().filter(|row| {
            let text = row.last().expect("a row has columns");
            text.contains("SLEEP") || text.contains("GET_LOCK")
        });
        statements.count()
    };
    while waiting(&rows(&mut watcher, "SHOW PROCESSLIST").await) < count {
        assert!(started.elapsed() < SOON, "they do not begin");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_worker_serves_others_while_many_sleep() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let sleepers: Vec<_> = (0..20).map(|_| start(engine.connect(), LONG)).collect();
    until_all_run(&engine, sleepers.len()).await;
    let mut session = engine.connect();
    let started = Instant::now();
    rows(&mut session, "CREATE TABLE t (a INT)").await;
    rows(&mut session, "INSERT INTO t VALUES (1), (2), (3)").await;
    assert_eq!(
        rows(
            &mut session,
            "SELECT SUM(a) FROM t GROUP BY a > 1 ORDER BY 1"
        )
        .await,
        [["1"], ["5"]]
    );
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    for sleeper in &sleepers {
        sleeper.abort();
    }
    rows(&mut session, "DROP TABLE t").await;
    for sleeper in sleepers {
        let _ = sleeper.await;
    }
    drop(session);
    check_nothing_left(&engine, "sleepers").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_row_sleeps() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TEMPORARY TABLE t (a INT)").await;
    rows(&mut session, "INSERT INTO t VALUES (1), (2), (3)").await;
    for (sql, naps, expected) in [
        ("SELECT COUNT(*) FROM t WHERE SLEEP(0.1) = 0", 3, "3"),
        (
            "SELECT COUNT(*) FROM t WHERE a > 1 AND SLEEP(0.1) = 0",
            2,
            "2",
        ),
        ("SELECT SUM(SLEEP(0.1)) FROM t", 3, "0"),
        ("SELECT IF(1, 7, SLEEP(1000))", 0, "7"),
        ("SELECT SLEEP(0.1) + SLEEP(0.1)", 2, "0"),
    ] {
        let started = Instant::now();
        assert_eq!(rows(&mut session, sql).await, [[expected]], "{sql}");
        let least = Duration::from_millis(100) * naps;
        let elapsed = started.elapsed();
        assert!(elapsed >= least && elapsed < SOON, "{sql}: {elapsed:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_ends_when_it_is_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let mut holder = engine.connect();
    assert_eq!(rows(&mut holder, "SELECT GET_LOCK('a', 0)").await, [["1"]]);
    for sql in [LONG, "SELECT GET_LOCK('A', 1000)"] {
        let session = engine.connect();
        let cancel = session.cancel_handle();
        let waiting = start(session, sql);
        until_all_run(&engine, 1).await;
        let started = Instant::now();
        cancel.cancel();
        let (mut session, ran) = waiting.await.unwrap();
        assert_eq!(ran.unwrap_err().code, 1317, "{sql}");
        rows(&mut session, "SET max_execution_time = 50").await;
        let error = run(&mut session, sql).await.unwrap_err();
        assert_eq!(error.code, 3024, "{sql}: {error}");
        let timed = tokio::time::timeout(Duration::from_millis(50), run(&mut session, LONG));
        assert!(timed.await.is_err(), "{sql}: it ended by itself");
        assert_eq!(rows(&mut session, "SELECT 1").await, [["1"]]);
        assert!(started.elapsed() < SOON, "{sql}: {:?}", started.elapsed());
    }
    check_nothing_left(&engine, "waiting").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_goes_from_connection_to_connection() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let (mut one, mut two) = (engine.connect(), engine.connect());
    let taken = "SELECT GET_LOCK('a', 1000), GET_LOCK('a', 0), GET_LOCK('b', 0)";
    assert_eq!(rows(&mut one, taken).await, [["1", "1", "1"]]);
    let started = Instant::now();
    let seen = format!(
        "SELECT GET_LOCK('A', 0.1), IS_USED_LOCK('a') = {}, IS_FREE_LOCK('b'), RELEASE_LOCK('a')",
        one.id()
    );
    assert_eq!(rows(&mut two, &seen).await, [["0", "1", "0", "0"]]);
    assert!(started.elapsed() >= Duration::from_millis(100));

    // It comes with the second release, with the end of the connection, and with its reset.
    let waiting = start(two, "SELECT GET_LOCK('a', 1000)");
    until_all_run(&engine, 1).await;
    assert_eq!(rows(&mut one, "SELECT RELEASE_LOCK('a')").await, [["1"]]);
    assert_eq!(rows(&mut one, "SELECT RELEASE_LOCK('a')").await, [["1"]]);
    let (two, ran) = waiting.await.unwrap();
    assert_eq!(ran.unwrap().unwrap(), [["1"]]);
    let waiting = start(one, "SELECT GET_LOCK('a', -1)");
    until_all_run(&engine, 1).await;
    drop(two);
    let (mut one, ran) = waiting.await.unwrap();
    assert_eq!(ran.unwrap().unwrap(), [["1"]]);
    let waiting = start(engine.connect(), "SELECT GET_LOCK('a', 1000)");
    until_all_run(&engine, 1).await;
    one.reset().await;
    let (_, ran) = waiting.await.unwrap();
    assert_eq!(ran.unwrap().unwrap(), [["1"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_wait_for_each_other_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let (mut one, mut two) = (engine.connect(), engine.connect());
    rows(&mut one, "DO GET_LOCK('a', 0)").await;
    rows(&mut two, "DO GET_LOCK('b', 0)").await;
    let waiting = start(one, "SELECT GET_LOCK('b', 1000)");
    until_all_run(&engine, 1).await;
    let error = run(&mut two, "SELECT GET_LOCK('a', 1000)").await;
    assert_eq!(error.unwrap_err().code, 3058);
    assert_eq!(rows(&mut two, "SELECT RELEASE_ALL_LOCKS()").await, [["1"]]);
    let (_, ran) = waiting.await.unwrap();
    assert_eq!(ran.unwrap().unwrap(), [["1"]]);
}
