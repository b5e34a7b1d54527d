//! Joins with groups of which few are wanted: rows of the others are dropped before they are
//! grouped, and no answer changes.

use mayfly_session::Session;

use crate::engine::{NUMBERS, check_nothing_left, make_digits, open, rows, run};

/// `items (k, w, q)`: 40,000 rows in 2,000 groups of `k`; `parts (p, c)`: 3,000 rows, of which `c`
/// has 50 values; `averages (k, a)`: the groups, computed by a statement of their own.
async fn make_tables(session: &mut Session) {
    make_digits(session).await;
    for sql in [
        "CREATE TEMPORARY TABLE items (k INT, w INT, q INT)".to_owned(),
        format!(
            "INSERT INTO items SELECT NULLIF(n % 2000, 5), n % 3, n * 31 % 97 FROM {NUMBERS} \
             WHERE n < 40000"
        ),
        "CREATE TEMPORARY TABLE parts (p INT, c INT)".to_owned(),
        format!("INSERT INTO parts SELECT NULLIF(n, 3), n % 50 FROM {NUMBERS} WHERE n < 3000"),
        "CREATE TEMPORARY TABLE averages AS \
         SELECT k, AVG(q) AS a, SUM(q) AS s FROM items GROUP BY k"
            .to_owned(),
    ] {
        rows(session, &sql).await;
    }
}

/// Whether a statement drops rows before they are grouped, by its own account.
async fn drops_rows(session: &mut Session, sql: &str) -> bool {
    let plan = rows(session, &format!("EXPLAIN ANALYZE {sql}")).await;
    let mut lines = plan.iter().flatten().flat_map(|cell| cell.lines());
    lines.any(|line| {
        let dropped = line
            .split_once("(rows_dropped=")
            .map(|(_, dropped)| dropped);
        line.contains("SidewaysOperator") && dropped.is_some_and(|dropped| dropped != "0)")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_over_groups_that_were_computed_before() {
    let directory = tempfile::tempdir().unwrap();
    for memory_bytes in [64 << 20, 4 << 20] {
        let engine = open(memory_bytes, directory.path());
        let mut session = engine.connect();
        make_tables(&mut session).await;
        let groups = "(SELECT k, AVG(q) AS a, SUM(q) AS s FROM items GROUP BY k)";
        for (sql, drops) in [
            (
                "SELECT p, a FROM parts JOIN {} g ON p = k WHERE c = 3 ORDER BY p",
                true,
            ),
            (
                "SELECT p, a FROM parts LEFT JOIN {} g ON p = k WHERE c = 3 ORDER BY p",
                true,
            ),
            (
                "SELECT c, a FROM {} g LEFT JOIN parts ON p = k AND c = 3 ORDER BY k LIMIT 30",
                false,
            ),
            (
                "SELECT p, a FROM parts JOIN {} g ON p = k WHERE c = 77",
                false,
            ),
            // As TPC-H 17 and 20 ask.
            (
                "SELECT SUM(q), COUNT(*) FROM items i, parts JOIN {} g ON p = g.k \
                 WHERE p = i.k AND c = 3 AND q < 0.5 * a",
                true,
            ),
            (
                "SELECT p FROM parts WHERE c < 5 AND p IN (SELECT k FROM {} g WHERE 0.5 * s > 400) \
                 ORDER BY p",
                false,
            ),
        ] {
            let asked = sql.replace("{}", groups);
            let expected = rows(&mut session, &sql.replace("{}", "averages")).await;
            assert_eq!(rows(&mut session, &asked).await, expected, "{asked}");
            if drops {
                assert!(drops_rows(&mut session, &asked).await, "{asked}");
            }
        }
        drop(session);
        check_nothing_left(&engine, "joins with few groups").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn correlated_averages_are_those_of_all_rows_of_a_part() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    make_tables(&mut session).await;
    for (asked, by_table) in [
        (
            "SELECT SUM(q), COUNT(*) FROM items, parts WHERE p = k AND c = 3 AND q < \
             (SELECT 0.4 * AVG(i.q) FROM items i WHERE i.k = p)",
            "SELECT SUM(q), COUNT(*) FROM items, parts, averages WHERE p = items.k AND c = 3 \
             AND averages.k = p AND q < 0.4 * a",
        ),
        (
            "SELECT p FROM parts WHERE c IN (1, 2) AND 900 < \
             (SELECT SUM(i.q) FROM items i WHERE i.k = p) ORDER BY p",
            "SELECT p FROM parts, averages WHERE c IN (1, 2) AND k = p AND s > 900 ORDER BY p",
        ),
    ] {
        let expected = rows(&mut session, by_table).await;
        assert_eq!(rows(&mut session, asked).await, expected, "{asked}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_in_a_wanted_group_still_is() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    make_tables(&mut session).await;
    // The sum of a group, times this, is no BIGINT.
    let sql = |condition: &str| {
        format!(
            "SELECT COUNT(*), MAX(x) FROM parts JOIN (SELECT k, \
             CAST(SUM(q) AS SIGNED) * 9000000000000000000 AS x FROM items GROUP BY k) g ON p = k \
             WHERE {condition}"
        )
    };
    let refused = run(&mut session, &sql("c = 3")).await.unwrap_err();
    assert_eq!(refused.code, 1690, "{refused}");
    // The group without a key has a sum that is too large, and no part asks for it.
    let sql = |condition: &str| {
        format!(
            "SELECT COUNT(*), MAX(x) FROM parts JOIN (SELECT k, \
             CAST(SUM(CASE WHEN k IS NULL THEN 9 ELSE 1 END) AS SIGNED) * 300000000000000000 AS x \
             FROM items GROUP BY k) g ON p = k WHERE {condition}"
        )
    };
    let refused = run(&mut session, &sql("TRUE")).await.unwrap_err();
    assert_eq!(refused.code, 1690, "{refused}");
    let found = rows(&mut session, &sql("c = 3")).await;
    assert_eq!(found, [["39", "6000000000000000000"]]);
    assert!(drops_rows(&mut session, &sql("c = 3")).await);
}
