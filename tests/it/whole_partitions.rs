//! Aggregates over whole partitions, which read their input twice where nobody notices.

use mayfly_session::Session;

use crate::engine::{make_wide, open, rows, run};

/// More than are sorted by themselves, also where a condition is thought to leave a third.
const ROWS: u32 = 40_000;

/// The table `texts` of rows `(n, g, s)`: seven groups of `g`, and four texts that are no numbers.
async fn make_texts(session: &mut Session) {
    make_wide(session, ROWS).await;
    let texts = "CREATE TEMPORARY TABLE texts AS SELECT n, n % 7 AS g, \
                 IF(n % 10000 = 0, 'no number', CAST(n % 10 AS CHAR)) AS s FROM wide";
    rows(session, texts).await;
}

/// The rows of a statement, and how many warnings it has.
async fn warned(session: &mut Session, sql: &str) -> (Vec<Vec<String>>, String) {
    let found = rows(session, sql).await;
    let count = rows(session, "SELECT @@warning_count").await;
    (found, count[0][0].clone())
}

/// Whether a statement joins rows with groups.
async fn is_joined(session: &mut Session, sql: &str) -> bool {
    let plan = rows(session, &format!("EXPLAIN ANALYZE {sql}")).await;
    plan.iter().flatten().any(|cell| cell.contains("ReadAgain"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warnings_are_those_of_one_reading() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    make_texts(&mut session).await;
    // What warns stands below the window, in it, or nowhere.
    for (input, value, joined, warnings) in [
        ("SELECT * FROM texts", "s", true, "0"),
        (
            "SELECT * FROM texts WHERE n >= 0 AND s IS NOT NULL",
            "s",
            true,
            "0",
        ),
        ("SELECT * FROM texts", "CAST(s AS SIGNED)", true, "4"),
        (
            "SELECT * FROM texts WHERE CAST(s AS SIGNED) >= 0",
            "s",
            false,
            "4",
        ),
        (
            "SELECT n, g, CAST(s AS SIGNED) AS s FROM texts",
            "s",
            false,
            "4",
        ),
    ] {
        for partition in ["", "PARTITION BY g"] {
            let sql = |order: &str| {
                format!(
                    "SELECT COUNT(*), SUM(n), MAX(c) FROM (SELECT n, MAX({value}) OVER \
                     ({partition}{order}) AS c FROM ({input}) x) y"
                )
            };
            // With an order of its rows the same window sorts them, and reads them once.
            let order = " ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING";
            let expected = warned(&mut session, &sql(order)).await;
            let found = warned(&mut session, &sql("")).await;
            let label = format!("MAX({value}) OVER ({partition}) over {input}");
            assert_eq!(found, expected, "{label}");
            assert_eq!(expected.1, warnings, "{label}");
            assert_eq!(is_joined(&mut session, &sql("")).await, joined, "{label}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_do_not_fit_are_refused_whatever_is_asked_of_the_result() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    make_texts(&mut session).await;
    rows(&mut session, "CREATE TEMPORARY TABLE target (n INT, m INT)").await;
    let sql = "INSERT INTO target SELECT n, m FROM (SELECT n, MAX(s) OVER (PARTITION BY g) AS m FROM \
               (SELECT n, g, CAST(s AS SIGNED) AS s FROM texts WHERE n >= 0) x) w WHERE n = 5";
    let refused = run(&mut session, sql).await.unwrap_err();
    assert_eq!(refused.code, 1292, "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_shown_once() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    make_wide(&mut session, ROWS).await;
    let sql = "SELECT n, COUNT(*) OVER (PARTITION BY skewed) FROM wide a \
               UNION ALL SELECT n, COUNT(*) OVER () FROM wide b \
               UNION ALL SELECT n, 1 FROM wide c";
    assert!(is_joined(&mut session, sql).await);
    let shown = rows(&mut session, &format!("EXPLAIN {sql}")).await;
    let tables: Vec<&str> = shown.iter().map(|row| row[2].as_str()).collect();
    let named = |name: &str| tables.iter().filter(|table| **table == name).count();
    assert_eq!([named("a"), named("b"), named("c")], [1, 1, 1], "{shown:?}");
    let all = shown.iter().flatten();
    let refused = all.filter(|cell| cell.contains("cannot spill"));
    assert_eq!(refused.count(), 0, "{shown:?}");
}
