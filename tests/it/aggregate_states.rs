//! Every aggregate function takes memory for groups and not for rows.
//!
//! Many rows in four groups, and in some thousands, at a small budget: what a statement holds and
//! writes stays within what `COUNT(*)` over the same groups takes, and a state for each group. The
//! values are compared with those of the same function without GROUP BY, which other code computes.
//! GROUP_CONCAT and functions with DISTINCT keep more than a state, and are not here.
//! `MAYFLY_FULL` takes 10 million rows, and a million groups.

use mayfly_session::Session;

use crate::budgets::SPILLING;
use crate::engine::{NUMBERS, make_digits, open, rows};

/// Bytes that a function may take for a group beside what a count takes: its state, and a text
/// twice, since one that is replaced by a longer one leaves its room behind for a while.
const STATE_BYTES: u64 = 192;

/// What a statement may hold beside its groups more than another of the kind: pages of its tables
/// that are on their way.
const SLACK_BYTES: u64 = 1 << 20;

/// Each function over each kind of number, text and time that it takes.
const CALLS: [&str; 34] = [
    "COUNT(i)",
    "SUM(i)",
    "SUM(d)",
    "SUM(w)",
    "SUM(x)",
    "SUM(f)",
    "SUM(w * (1 - d))",
    "AVG(i)",
    "AVG(d)",
    "AVG(w)",
    "AVG(x)",
    "AVG(f)",
    "MIN(i)",
    "MAX(d)",
    "MIN(w)",
    "MAX(x)",
    "MIN(x)",
    "MAX(f)",
    "MIN(day)",
    "MIN(s)",
    "MAX(s)",
    "MAX(i > 7)",
    "BIT_AND(i)",
    "BIT_OR(i)",
    "BIT_XOR(i)",
    "STD(i)",
    "STDDEV(d)",
    "STDDEV_POP(w)",
    "STDDEV_SAMP(x)",
    "VARIANCE(f)",
    "VAR_POP(i)",
    "VAR_SAMP(d)",
    "ANY_VALUE(g)",
    "COUNT(s)",
];

/// Fills `t` with rows whose columns have every type; one value in fifty is NULL.
async fn fill(session: &mut Session, hundred_thousands: u32) {
    make_digits(session).await;
    let create = "CREATE TEMPORARY TABLE t (g INT NOT NULL, i INT, d DECIMAL(12,2), \
                  w DECIMAL(31,4), x DECIMAL(60,6), f DOUBLE, s VARCHAR(40), day DATE)";
    rows(session, create).await;
    for step in 0..hundred_thousands {
        let insert = format!(
            "INSERT INTO t SELECT n, IF(n % 50 = 0, NULL, n * 7 % 1001 - 500), n % 900 / 100, \
             IF(n % 50 = 1, NULL, 123456789012345678901234.5678 - n), \
             IF(n % 50 = 2, NULL, 98765432109876543210987654321098765432.5 * (n % 3 - 1)), \
             n / 8 + 0e0, IF(n % 50 = 3, NULL, CONCAT('a text of ', n * 7919 % 10007)), \
             DATE_ADD(DATE '2020-02-02', INTERVAL n % 1000 DAY) \
             FROM (SELECT n + 100000 * {step} AS n FROM {NUMBERS}) m"
        );
        rows(session, &insert).await;
    }
}

/// Bytes that the last statement held and wrote.
fn taken_bytes(session: &Session) -> u64 {
    let stats = session.last_stats();
    stats.peak_memory_bytes + stats.temp_bytes_written
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_follows_groups_and_not_rows() {
    let is_full = std::env::var_os("MAYFLY_FULL").is_some();
    let (hundred_thousands, many) = if is_full {
        (100, 1_000_000)
    } else {
        (2, 4_000)
    };
    let directory = tempfile::tempdir().unwrap();
    let engine = open(SPILLING, directory.path());
    let mut session = engine.connect();
    fill(&mut session, hundred_thousands).await;
    for groups in [4, many] {
        let over_groups = |call: &str| {
            format!(
                "SELECT COUNT(*), COUNT(v) FROM (SELECT {call} v FROM t GROUP BY g % {groups}) r"
            )
        };
        rows(&mut session, &over_groups("COUNT(*)")).await;
        let base = taken_bytes(&session);
        for call in CALLS {
            let found = rows(&mut session, &over_groups(call)).await;
            assert_eq!(found[0][0], groups.to_string(), "{call}");
            let (taken, allowed) = (
                taken_bytes(&session),
                base + groups * STATE_BYTES + SLACK_BYTES,
            );
            assert!(
                taken <= allowed,
                "{call}, {groups} groups: {taken} of {allowed} bytes"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_have_the_values_of_their_rows() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(SPILLING, directory.path());
    let mut session = engine.connect();
    fill(&mut session, 1).await;
    for call in CALLS
        .into_iter()
        .filter(|call| !call.starts_with("ANY_VALUE"))
    {
        // The last digits of a DOUBLE depend on the order of its rows.
        let is_double = call.starts_with("STD") || call.starts_with("VAR") || call.contains("(f)");
        let value = if is_double {
            format!("ROUND({call} / 1e12, 9)")
        } else {
            call.to_owned()
        };
        let grouped = format!("SELECT g % 3 k, {value} FROM t GROUP BY k ORDER BY k");
        let grouped = rows(&mut session, &grouped).await;
        assert_eq!(grouped.len(), 3, "{call}");
        for (k, found) in grouped.iter().enumerate() {
            let alone = format!("SELECT {k}, {value} FROM t WHERE g % 3 = {k}");
            assert_eq!(
                rows(&mut session, &alone).await,
                [found.as_slice()],
                "{call}"
            );
        }
    }
}
