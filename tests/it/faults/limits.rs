//! Limits that statements meet: a full disk, quotas, a budget below the minimum. Each is one of
//! MySQL's errors, and the session goes on.

use std::sync::Arc;

use mayfly_session::{EngineOptions, Session, TestFaults};
use mayfly_space::Operation;
use mayfly_testkit::FaultPlan;

use crate::budgets::MINIMUM;
use crate::engine::{check_nothing_left, make_wide, open_with, rows, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_error_1021() {
    let directory = tempfile::tempdir().unwrap();
    let plan = FaultPlan::failing_with(&[Operation::Extend], std::io::ErrorKind::StorageFull);
    let engine = open_with(
        EngineOptions {
            memory_bytes: MINIMUM,
            faults: Some(TestFaults(Arc::clone(&plan) as _)),
            ..EngineOptions::default()
        },
        directory.path(),
    );
    let mut session = engine.connect();
    plan.fail_from(1);
    let mut failed = None;
    rows(&mut session, "CREATE TEMPORARY TABLE t (a INT, b LONGTEXT)").await;
    rows(
        &mut session,
        "INSERT INTO t VALUES (1, REPEAT('x', 100000))",
    )
    .await;
    for _ in 0..12 {
        if let Err(error) = run(&mut session, "INSERT INTO t SELECT a + 1, b FROM t").await {
            failed = Some(error);
            break;
        }
    }
    assert_eq!(failed.expect("400 MB do not fit in memory").code, 1021);
    assert!(rows(&mut session, "SELECT COUNT(*) > 0 FROM t").await == [["1"]]);
    plan.disarm();
    rows(&mut session, "INSERT INTO t SELECT a + 1, b FROM t").await;
    drop(session);
    check_nothing_left(&engine, "full disk").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_end_the_statement_and_not_the_session() {
    let big = "SELECT COUNT(*) FROM (SELECT DISTINCT n, k, word FROM wide) d";
    let quota = 64 << 10;
    let default = EngineOptions {
        memory_bytes: MINIMUM,
        ..EngineOptions::default()
    };
    let server = EngineOptions {
        temp_limit_bytes: Some(quota),
        ..default.clone()
    };
    let one_session = EngineOptions {
        session_quota_bytes: Some(quota),
        ..default.clone()
    };
    let one_statement = EngineOptions {
        statement_quota_bytes: Some(quota),
        ..default
    };
    for (name, options, codes) in [
        ("server", server, [42, 1021]),
        ("session", one_session, [41, 41]),
        ("statement", one_statement, [41, 41]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let engine = open_with(options, directory.path());
        let mut session = engine.connect();
        // Making the table can meet the quota as well, except that of the statement.
        let mut failed = None;
        make_part(&mut session).await;
        for _ in 0..8 {
            let grown = "INSERT INTO wide SELECT n + 1000, k, skewed, word FROM wide";
            for sql in [grown, big] {
                if let Err(error) = run(&mut session, sql).await {
                    failed = Some(error);
                }
            }
            if failed.is_some() {
                break;
            }
        }
        let error = failed.unwrap_or_else(|| panic!("{name}: the quota was not met"));
        assert!(codes.contains(&error.code), "{name}: {error}");
        assert!(
            rows(&mut session, "SELECT COUNT(*) > 0 FROM wide").await == [["1"]],
            "{name}"
        );
        drop(session);
        check_nothing_left(&engine, name).await;
    }
}

async fn make_part(session: &mut Session) {
    make_wide(session, 1000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_below_the_minimum_is_refused_with_the_mib_needed() {
    let directory = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        memory_bytes: 1 << 20,
        ..EngineOptions::default()
    };
    let engine = open_with(options, directory.path());
    let mut session = engine.connect();
    // Deeper than a small budget can admit: each level has a minimum of its own.
    make_wide(&mut session, 10).await;
    let mut sql = "SELECT n AS a FROM wide".to_owned();
    for level in 0..12 {
        sql = format!(
            "SELECT MAX(a) AS a FROM ({sql}) q{level} GROUP BY a % {}",
            99 - level
        );
    }
    let error = run(&mut session, &sql)
        .await
        .expect_err("1 MiB is not enough");
    assert_eq!(error.code, 1041, "{error}");
    assert!(error.message.contains("MiB"), "{error}");
    assert!(rows(&mut session, "SELECT 1").await == [["1"]]);
    drop(session);
    check_nothing_left(&engine, "minimum").await;
}
