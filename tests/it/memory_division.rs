//! Many statements that each want several times the budget: all of them end with the right rows,
//! and small statements of others find memory beside them.
//!
//! `MAYFLY_FULL` takes larger budgets too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mayfly_session::{Engine, Session};

use crate::engine::{NUMBERS, check_nothing_left, make_digits, open, rows, run};

/// Statements at a time.
const STATEMENTS: usize = 16;
const ROWS: u64 = 30_000;
/// What a statement wants, in budgets.
const BUDGETS: u64 = 4;

/// Joins of all of the table, which nobody can hold in memory.
const JOINS: &[&str] = &[
    "SELECT COUNT(*), SUM(LENGTH(CONCAT(a.s, b.s))), SUM(a.id - b.k) \
     FROM t a JOIN t b ON a.k = b.id + 1",
    "SELECT COUNT(*), SUM(LENGTH(a.s)), COUNT(b.s), SUM(LENGTH(b.s)) \
     FROM t a LEFT JOIN t b ON a.s = b.s AND a.id < b.k",
    "SELECT COUNT(*), SUM(LENGTH(s)) FROM t \
     WHERE s IN (SELECT CONCAT(b.s, '') FROM t b WHERE LENGTH(b.s) % 7 > 2)",
];

/// Operators of all kinds over all of the table.
const KINDS: &[&str] = &[
    "SELECT COUNT(*), SUM(n), SUM(LENGTH(s)) FROM (SELECT s, COUNT(*) n FROM t GROUP BY s) g",
    "SELECT COUNT(*), SUM(LENGTH(a.s)), COUNT(b.s), SUM(LENGTH(b.s)) \
     FROM t a LEFT JOIN t b ON a.s = b.s AND a.id < b.k",
    "SELECT id, k, LENGTH(s) FROM t ORDER BY s, id LIMIT 3 OFFSET 20000",
    "SELECT COUNT(*), SUM(r), SUM(LENGTH(s)) FROM \
     (SELECT s, ROW_NUMBER() OVER (PARTITION BY k % 7 ORDER BY s) r FROM t) w WHERE r > 3",
    "SELECT COUNT(DISTINCT s), COUNT(DISTINCT k), MAX(s) FROM t",
    "SELECT COUNT(*), SUM(LENGTH(s)) FROM (SELECT s FROM t UNION SELECT s FROM t WHERE k > 9) u",
    "SELECT COUNT(*), SUM(g.n), SUM(LENGTH(t.s)) \
     FROM (SELECT s, COUNT(*) n FROM t GROUP BY s) g JOIN t ON t.s = g.s",
];

async fn fill(engine: &Engine, row_bytes: u64) -> Session {
    let mut session = engine.connect();
    make_digits(&mut session).await;
    let create = "CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(6000))";
    rows(&mut session, create).await;
    // `k` numbers the rows in another order.
    for first in (0..ROWS).step_by(5000) {
        let insert = format!(
            "INSERT INTO t SELECT n + 1, n * 7919 % {ROWS} + 1, CONCAT(MD5(n), REPEAT('x', \
             {row_bytes} - 80 + n % 60)) FROM {NUMBERS} WHERE n >= {first} AND n < {}",
            ROWS.min(first + 5000)
        );
        rows(&mut session, &insert).await;
    }
    session
}

/// Reads single rows by their key until it is told to end: how many, and what failed.
async fn read_by_key(mut session: Session, is_over: Arc<AtomicBool>) -> (u64, Vec<String>) {
    let (mut read, mut failed) = (0, Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        let id = read * 131 % ROWS + 1;
        match run(&mut session, &format!("SELECT id FROM t WHERE id = {id}")).await {
            Ok(found) => assert_eq!(found.unwrap(), [[id.to_string()]]),
            Err(error) => failed.push(format!("row {id}: {error}")),
        }
        read += 1;
        tokio::task::yield_now().await;
    }
    (read, failed)
}

/// Runs statements at a time beside a reader of single rows; what of its reads failed. The first
/// statement counts so many rows.
async fn run_beside_each_other(
    statements: &[&'static str],
    counted: u64,
    memory_bytes: u64,
) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(memory_bytes, directory.path());
    let mut session = fill(&engine, memory_bytes * BUDGETS / ROWS).await;
    let mut expected = Vec::new();
    for sql in statements {
        expected.push(rows(&mut session, sql).await);
    }
    assert_eq!(expected[0][0][0], counted.to_string());
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn(read_by_key(engine.connect(), Arc::clone(&is_over)));
    let started: Vec<_> = (0..STATEMENTS)
        .map(|n| {
            let mut session = engine.connect();
            let sql = statements[n % statements.len()];
            tokio::spawn(async move { run(&mut session, sql).await })
        })
        .collect();
    for (n, task) in started.into_iter().enumerate() {
        let found = task.await.unwrap();
        let sql = statements[n % statements.len()];
        let found = found.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(found.unwrap() == expected[n % statements.len()], "{sql}");
    }
    is_over.store(true, Ordering::Relaxed);
    let (read, failed) = reader.await.unwrap();
    assert!(read > 0);
    rows(&mut session, "DROP TABLE t").await;
    rows(&mut session, "DROP TABLE digits").await;
    drop(session);
    check_nothing_left(&engine, "many large statements").await;
    failed
}

/// The same at every budget.
async fn check_beside_each_other(statements: &[&'static str], counted: u64) {
    let budgets: &[u64] = match std::env::var_os("MAYFLY_FULL") {
        Some(_) => &[8 << 20, 16 << 20, 64 << 20],
        None => &[8 << 20],
    };
    for memory_bytes in budgets.iter().copied() {
        let failed = run_beside_each_other(statements, counted, memory_bytes).await;
        assert!(failed.is_empty(), "{memory_bytes}: {failed:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_of_four_budgets_end_beside_each_other_and_leave_room_for_others() {
    check_beside_each_other(JOINS, ROWS - 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_of_all_kinds_end_beside_each_other_and_leave_room_for_others() {
    check_beside_each_other(KINDS, ROWS).await;
}
