//! The watchdog of the process' memory: past its limit the largest statement ends, and nobody else.

use std::path::Path;
use std::time::Duration;

use mayfly_session::{Engine, EngineOptions};

use crate::engine::{check_nothing_left, rows, run};

/// A process of any size is larger.
const PASSED: u64 = 1;
/// No process of a test is larger.
const FAR_AWAY: u64 = 1 << 50;

fn open(resident_max_bytes: u64, directory: &Path) -> Engine {
    Engine::open(EngineOptions {
        memory_bytes: 64 << 20,
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
    let directory = tempfile::tempdir().unwrap();
    let engine = open(PASSED, directory.path());
    let mut session = engine.connect();
    for sql in [ENDLESS, "SELECT SLEEP(1000)"] {
        let error = run(&mut session, sql).await.unwrap_err();
        assert_eq!(error.code, 1038, "{error}");
        assert!(error.message.contains("limit of 0 MiB"), "{error}");
    }
    let status = engine.status();
    let ended = status
        .iter()
        .find(|(name, _)| *name == "Mayfly_statements_ended_for_memory");
    assert_eq!(ended.map(|(_, count)| *count), Some(2));
    drop(session);
    check_nothing_left(&engine, "ended for memory").await;
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
