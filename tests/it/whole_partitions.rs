//! Aggregates over whole partitions read their input twice, and nobody is told twice.

use mayfly_session::Session;

use crate::engine::{make_wide, open, rows};

/// More than are sorted by themselves.
const ROWS: u32 = 12_000;

/// The rows of a statement, and how many warnings it has.
async fn warned(session: &mut Session, sql: &str) -> (Vec<Vec<String>>, String) {
    let found = rows(session, sql).await;
    let count = rows(session, "SELECT @@warning_count").await;
    (found, count[0][0].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warnings_are_those_of_one_reading() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    make_wide(&mut session, ROWS).await;
    let texts = "CREATE TEMPORARY TABLE texts AS SELECT n, n % 7 AS g, \
                 IF(n % 3000 = 0, 'no number', CAST(n % 10 AS CHAR)) AS s FROM wide";
    rows(&mut session, texts).await;
    for input in [
        "SELECT n, g, s FROM texts WHERE CAST(s AS SIGNED) >= 0",
        "SELECT n, g, CAST(s AS SIGNED) AS s FROM texts",
        "SELECT n, CAST(s AS SIGNED) AS g, 1 AS s FROM texts",
    ] {
        for partition in ["", "PARTITION BY g"] {
            let answer = async |session: &mut Session, order: &str| {
                let sql = format!(
                    "SELECT COUNT(*), SUM(n), SUM(c) FROM (SELECT n, MAX(s) OVER ({partition}) AS m, \
                     COUNT(s) OVER ({partition}{order}) AS c FROM ({input}) x) y"
                );
                warned(session, &sql).await
            };
            // With an order of its rows the same window sorts them, and reads them once.
            let order = " ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING";
            let expected = answer(&mut session, order).await;
            let found = answer(&mut session, "").await;
            assert_eq!(found, expected, "{partition} over {input}");
            // What nobody asks for is not computed.
            let is_asked = !partition.is_empty() || !input.contains("AS g");
            let warnings = if is_asked { "4" } else { "0" };
            assert_eq!(expected.1, warnings, "{partition} over {input}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_shown_once() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    make_wide(&mut session, ROWS).await;
    let sql = "EXPLAIN SELECT n, COUNT(*) OVER (PARTITION BY skewed) FROM wide a \
               UNION ALL SELECT n, COUNT(*) OVER () FROM wide b WHERE b.n > 5 \
               UNION ALL SELECT n, 1 FROM wide c";
    let shown = rows(&mut session, sql).await;
    let tables: Vec<&str> = shown.iter().map(|row| row[2].as_str()).collect();
    let named = |name: &str| tables.iter().filter(|table| **table == name).count();
    assert_eq!([named("a"), named("b"), named("c")], [1, 1, 1], "{shown:?}");
    let all = shown.iter().flatten();
    let refused = all.filter(|cell| cell.contains("cannot spill"));
    assert_eq!(refused.count(), 0, "{shown:?}");
}
