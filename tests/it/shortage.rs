//! Statements that find the memory taken by others: they wait, and give the same rows.

use std::time::{Duration, Instant};

use futures::StreamExt;
use mayfly_session::{Engine, Outcome, Session};
use mayfly_types::MySqlError;
use tokio::task::JoinHandle;

use crate::engine::{check_nothing_left, open, read, rows, run};

const MEMORY_BYTES: u64 = 4 << 20;
const ROWS: u64 = 40_000;
const GROUPED: &str = "SELECT c, COUNT(*) FROM t GROUP BY c ORDER BY c";
const SORTED: &str = "SELECT a, c FROM t ORDER BY c, a";
/// Much longer than a statement takes that waits for nobody.
const SOON: Duration = Duration::from_secs(20);

async fn fill(engine: &Engine) -> Session {
    let mut session = engine.connect();
    rows(
        &mut session,
        "CREATE TABLE t (a INT PRIMARY KEY, c VARCHAR(40))",
    )
    .await;
    let values: Vec<_> = (0..ROWS)
        .map(|a| format!("({a}, 'a text of group {}')", a * 7919 % 5000))
        .collect();
    for part in values.chunks(1000) {
        let sql = format!("INSERT INTO t VALUES {}", part.join(", "));
        rows(&mut session, &sql).await;
    }
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_statements_share_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(MEMORY_BYTES, directory.path());
    let mut session = fill(&engine).await;
    let expected = rows(&mut session, GROUPED).await;
    assert_eq!(expected.len(), 5000);
    let started: Vec<_> = (0..24)
        .map(|_| {
            let mut session = engine.connect();
            tokio::spawn(async move { run(&mut session, GROUPED).await })
        })
        .collect();
    for task in started {
        let found = task.await.unwrap().unwrap().unwrap();
        assert!(found == expected);
    }
    let selects = "SHOW GLOBAL STATUS LIKE 'Com_select'";
    assert_eq!(rows(&mut session, selects).await, [["Com_select", "25"]]);
    rows(&mut session, "DROP TABLE t").await;
    drop(session);
    check_nothing_left(&engine, "many statements").await;
}

type Begun = Result<Outcome, MySqlError>;

/// Begins a statement whose rows nobody reads: it keeps its memory as soon as it has some.
fn begin(engine: &Engine) -> (u64, JoinHandle<(Session, Begun)>) {
    let mut session = engine.connect();
    let id = session.id();
    let task = tokio::spawn(async move {
        let begun = session.execute(SORTED).await;
        (session, begun)
    });
    (id, task)
}

/// Waits until a statement has begun, or waits for memory; whether it does.
async fn waits<T>(watcher: &mut Session, id: u64, task: &JoinHandle<T>) -> bool {
    loop {
        if task.is_finished() {
            return false;
        }
        let shown = rows(watcher, "SHOW PROCESSLIST").await;
        let is_waiting = |row: &Vec<String>| {
            row[0] == id.to_string() && row.iter().any(|cell| cell == "Waiting for memory")
        };
        if shown.iter().any(is_waiting) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_memory_can_be_killed_and_goes_on_when_there_is_some() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(MEMORY_BYTES, directory.path());
    let mut session = fill(&engine).await;
    let expected = rows(&mut session, SORTED).await;
    let mut held = Vec::new();
    let (killed, first) = loop {
        let (id, task) = begin(&engine);
        if waits(&mut session, id, &task).await {
            break (id, task);
        }
        let (session, begun) = task.await.unwrap();
        held.push((session, begun.expect("there was memory")));
    };
    let (id, second) = begin(&engine);
    assert!(waits(&mut session, id, &second).await);
    rows(&mut session, &format!("KILL QUERY {killed}")).await;
    let (_, ended) = first.await.unwrap();
    let error = ended.err().expect("it was killed");
    assert_eq!(error.code, 1317, "{error}");
    let started = Instant::now();
    for (session, outcome) in held {
        let Outcome::Rows { mut batches, .. } = outcome else {
            panic!("a query has rows");
        };
        assert!(batches.next().await.is_some());
        drop((batches, session));
    }
    let (_, begun) = second.await.unwrap();
    let found = read(begun.unwrap()).await.unwrap().unwrap();
    assert!(found == expected);
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    rows(&mut session, "DROP TABLE t").await;
    drop(session);
    check_nothing_left(&engine, "who waited").await;
}

/// Takes a few pages for each of its levels.
const NESTED: &str = "(SELECT MAX(n) FROM (SELECT c, COUNT(*) n FROM (SELECT c, a FROM (SELECT c, a, \
                      COUNT(*) FROM t GROUP BY c, a) e1 GROUP BY c, a) e2 GROUP BY c \
                      ORDER BY n, c LIMIT 100000) d)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_taken_a_lock_does_not_start_again() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(MEMORY_BYTES, directory.path());
    let mut session = fill(&engine).await;
    let mut held = Vec::new();
    let waiting = loop {
        let (id, task) = begin(&engine);
        if waits(&mut session, id, &task).await {
            break task;
        }
        held.push(task.await.unwrap());
    };
    for statement in ["DO GET_LOCK('x', 1), ", "SET @a = GET_LOCK('x', 1), @b = "] {
        let mut other = engine.connect();
        // As a rule too little is left for it. On a busy machine those that end may leave enough,
        // and then it has run once, as it should.
        let _ = run(&mut other, &format!("{statement}{NESTED}")).await;
        let once = "SELECT RELEASE_LOCK('x'), IS_FREE_LOCK('x')";
        assert_eq!(rows(&mut other, once).await, [["1", "1"]], "{statement}");
    }
    waiting.abort();
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_memory_that_is_his_own() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(1 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TABLE t (n INT)").await;
    rows(&mut session, "INSERT INTO t VALUES (1), (2), (3)").await;
    let mut sql = "SELECT n AS a FROM t".to_owned();
    for level in 0..16 {
        sql = format!("SELECT MAX(a) AS a FROM ({sql}) q{level} GROUP BY a % 7");
    }
    let started = Instant::now();
    let error = run(&mut session, &sql).await.expect_err("it is too much");
    assert_eq!(error.code, 1041, "{error}");
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
}
