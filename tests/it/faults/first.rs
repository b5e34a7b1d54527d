//! Faults that only the first statement meets that needs the disk: no descriptor for the temp file,
//! no thread that writes it, no room for its first bytes.

use super::fault::{Fault, Injected};
use super::{SEED, next};
use crate::budgets::MINIMUM;
use crate::engine::{NUMBERS, check_nothing_left, check_tables, make_digits, rows, run};

/// Rows of the input: more than the budget holds.
const ROWS: u32 = 60_000;

/// Runs a statement in a new engine where the n-th operation fails, and all others of its kind
/// until it has ended. Then it runs again. Gives whether it met the fault, and whether it failed.
async fn check(sql: &str, result: &str, fault: Fault, n: u64) -> (bool, bool) {
    let what = format!("{sql}, {fault:?} {n}");
    let directory = tempfile::tempdir().unwrap();
    let injected = Injected::new(SEED);
    let engine = injected.engine(MINIMUM, directory.path());
    let mut session = engine.connect();
    make_digits(&mut session).await;
    injected.arm(fault, n);
    let ran = run(&mut session, sql).await;
    let has_fired = injected.disarm(fault);
    let failed = ran.is_err();
    if let Err(error) = ran {
        assert!(has_fired, "{what}: {error}");
        fault.check(&error, directory.path(), &what);
        // What failed has left nothing, and what could not be had can be had now.
        rows(&mut session, sql).await;
    }
    let found = rows(&mut session, result).await;
    let sum = u64::from(ROWS) * u64::from(ROWS - 1) / 2;
    assert_eq!(found, [[ROWS.to_string(), sum.to_string()]], "{what}");
    check_tables(&session, &what).await;
    drop(session);
    check_nothing_left(&engine, &what).await;
    (has_fired, failed)
}

/// Runs a statement with each of these faults at its n-th operation, for growing n until it meets
/// none.
async fn check_all(sql: &str) {
    for fault in Fault::FIRST {
        let result = "SELECT SUM(c), SUM(n) FROM t";
        let (_, failed) = check(sql, result, fault, 1).await;
        assert!(failed, "{sql}: goes without {fault:?}");
        let mut n = 2;
        while check(sql, result, fault, n).await.0 {
            n = next(n);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_group_by_that_needs_the_disk() {
    check_all(&format!(
        "CREATE TEMPORARY TABLE t SELECT h, COUNT(*) c, SUM(n) n FROM \
         (SELECT n, MD5(n) h FROM {NUMBERS} WHERE n < {ROWS}) x GROUP BY h"
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_order_by_that_needs_the_disk() {
    check_all(&format!(
        "CREATE TEMPORARY TABLE t SELECT n, 1 c FROM {NUMBERS} WHERE n < {ROWS} ORDER BY MD5(n)"
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_table_with_keys_that_needs_the_disk() {
    check_all(&format!(
        "CREATE TEMPORARY TABLE t (PRIMARY KEY (n), KEY (h)) \
         SELECT n, 1 c, MD5(n) h FROM {NUMBERS} WHERE n < {ROWS}"
    ))
    .await;
}
