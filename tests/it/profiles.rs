//! SHOW PROFILES and SHOW PROFILE: which statements are kept, and that their stages are real ones.

use mayfly_session::Session;

use crate::engine::{open, rows, run};

const MEMORY_BYTES: u64 = 16 << 20;

async fn stages(session: &mut Session, sql: &str) -> Vec<(String, f64)> {
    let rows = rows(session, sql).await;
    let stage = |row: Vec<String>| (row[0].clone(), row[1].parse().expect("seconds"));
    rows.into_iter().map(stage).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_are_kept_while_profiling_is_on() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(MEMORY_BYTES, directory.path());
    let mut session = engine.connect();
    let listed = "SHOW PROFILES";
    rows(&mut session, "SELECT 0").await;
    rows(&mut session, "SET profiling = 1").await;
    assert!(rows(&mut session, listed).await.is_empty());
    assert!(rows(&mut session, "SHOW PROFILE").await.is_empty());
    rows(&mut session, "SELECT 1").await;
    let failed = run(&mut session, "SELECT * FROM nosuch").await;
    assert_eq!(failed.unwrap_err().code, 1146);
    assert_eq!(run(&mut session, "SELEC").await.unwrap_err().code, 1064);
    rows(&mut session, "CREATE TABLE t (a INT PRIMARY KEY)").await;
    // By their shape, and so without stages but for one.
    for a in 1..4 {
        rows(&mut session, &format!("INSERT INTO t VALUES ({a})")).await;
    }
    let statements = |rows: Vec<Vec<String>>| -> Vec<(String, String)> {
        let rows = rows.into_iter();
        rows.map(|row| (row[0].clone(), row[2].clone())).collect()
    };
    let found = statements(rows(&mut session, listed).await);
    let expected = [
        ("1", "SELECT 1"),
        ("2", "SELECT * FROM nosuch"),
        ("3", "SELEC"),
        ("4", "CREATE TABLE t (a INT PRIMARY KEY)"),
        ("5", "INSERT INTO t VALUES (1)"),
        ("6", "INSERT INTO t VALUES (2)"),
        ("7", "INSERT INTO t VALUES (3)"),
    ];
    let expected = expected.map(|(id, text)| (id.to_owned(), text.to_owned()));
    assert_eq!(found, expected);
    let last = stages(&mut session, "SHOW PROFILE").await;
    assert!(!last.is_empty());
    assert!(
        rows(&mut session, "SHOW PROFILE FOR QUERY 77")
            .await
            .is_empty()
    );
    rows(&mut session, "SET profiling_history_size = 2").await;
    rows(&mut session, "SET profiling = 0").await;
    rows(&mut session, "SELECT 2").await;
    let found = statements(rows(&mut session, listed).await);
    let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["7", "8"]);
    rows(&mut session, "SET profiling_history_size = 0").await;
    assert!(rows(&mut session, listed).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stages_of_a_query_fill_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(MEMORY_BYTES, directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TABLE t (a INT, c TEXT)").await;
    rows(&mut session, "INSERT INTO t VALUES (1, REPEAT('x', 2000))").await;
    for _ in 0..14 {
        rows(&mut session, "INSERT INTO t SELECT a + 1, c FROM t").await;
    }
    rows(&mut session, "SET profiling = 1").await;
    let sorted = rows(&mut session, "SELECT a, c FROM t ORDER BY c, a DESC").await;
    assert_eq!(sorted.len(), 1 << 14);
    let found = stages(&mut session, "SHOW PROFILE FOR QUERY 1").await;
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "Starting",
        "Executing",
        "Opening tables",
        "Optimizing",
        "Preparing",
        "Executing",
        "Sending data",
        "Removing tmp table",
        "Query end",
    ];
    assert_eq!(names, expected);
    let total: f64 = found.iter().map(|(_, seconds)| seconds).sum();
    let profiles = rows(&mut session, "SHOW PROFILES").await;
    let whole: f64 = profiles[0][1].parse().expect("seconds");
    assert!(
        total <= whole * 1.1 + 0.001,
        "{total} of {whole}: {found:?}"
    );
    // It was written to the disk and read again, and no column is left out.
    let all = rows(&mut session, "SHOW PROFILE ALL FOR QUERY 1").await;
    let blocks = |column: usize| -> u64 {
        all.iter()
            .map(|row| row[column].parse::<u64>().expect("a number"))
            .sum()
    };
    assert!(blocks(6) > 0 && blocks(7) > 0, "{all:?}");
    assert!(all.iter().all(|row| row.len() == 16));
    let two = rows(
        &mut session,
        "SHOW PROFILE CPU, BLOCK IO FOR QUERY 1 LIMIT 2 OFFSET 1",
    )
    .await;
    let first: Vec<&str> = two.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(first, ["Executing", "Opening tables"]);
    assert!(two.iter().all(|row| row.len() == 6));
    let sums =
        "SELECT COUNT(*), SUM(DURATION) > 0 FROM information_schema.PROFILING WHERE QUERY_ID = 1";
    assert_eq!(rows(&mut session, sums).await, [["9", "1"]]);
}
