//! What statements cost by their digest, as those see it who watch a server.

use std::time::Duration;

use mayfly_session::{Engine, Parameter, Session};

use crate::budgets::{MINIMUM, UNLIMITED};
use crate::engine::{check_nothing_left, open, read, rows, run};

const TABLE: &str = "performance_schema.events_statements_summary_by_digest";

/// Some figures of a digest in the database `test`.
async fn figures(session: &mut Session, columns: &str, text: &str) -> Vec<Vec<String>> {
    let sql = format!(
        "SELECT {columns} FROM {TABLE} WHERE SCHEMA_NAME = 'test' AND DIGEST_TEXT = '{text}'"
    );
    rows(session, &sql).await
}

async fn with_table(engine: &Engine) -> Session {
    let mut session = engine.connect();
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
    ] {
        rows(&mut session, sql).await;
    }
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_of_one_shape_are_one_row() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut session = with_table(&engine).await;
    // The first goes the long way, the others run at once; two find nothing.
    for id in 1..=5 {
        rows(&mut session, &format!("SELECT v FROM t WHERE id = {id}")).await;
    }
    // Other spaces, the other case, another connection, and a prepared statement.
    rows(&mut session, "select  v from t where id=-1").await;
    let mut other = engine.connect();
    rows(&mut other, "SELECT v FROM t WHERE id = 2").await;
    let prepared = other.prepare("SELECT v FROM t WHERE id = ?").await.unwrap();
    for id in [1, 2] {
        let text = prepared.with(&[Parameter::Integer(id)]).unwrap();
        let ran = other.execute_prepared(&prepared, &text).await.unwrap();
        read(ran).await.unwrap();
    }
    let columns = "COUNT_STAR, SUM_ROWS_SENT, SUM_ROWS_EXAMINED, SUM_ROWS_AFFECTED, SUM_ERRORS, \
                   SUM_CREATED_TMP_TABLES, SUM_NO_INDEX_USED";
    let text = "SELECT `v` FROM `t` WHERE `id` = ?";
    let found = figures(&mut session, columns, text).await;
    assert_eq!(found, [["9", "6", "6", "0", "0", "0", "0"]]);
    let times = "MIN_TIMER_WAIT > 0 AND MIN_TIMER_WAIT <= AVG_TIMER_WAIT \
                 AND AVG_TIMER_WAIT <= MAX_TIMER_WAIT AND MAX_TIMER_WAIT <= SUM_TIMER_WAIT \
                 AND QUANTILE_95 <= QUANTILE_999 AND QUANTILE_999 >= MAX_TIMER_WAIT \
                 AND FIRST_SEEN <= LAST_SEEN AND LAST_SEEN <= NOW(6) \
                 AND FIRST_SEEN > NOW() - INTERVAL 1 HOUR";
    assert_eq!(figures(&mut session, times, text).await, [["1"]]);
    let digest = "LENGTH(DIGEST), DIGEST = SHA2(DIGEST_TEXT, 256), \
                  LOWER(QUERY_SAMPLE_TEXT) LIKE 'select %v from t where id%'";
    let expected = [["64", "1", "1"]];
    assert_eq!(figures(&mut session, digest, text).await, expected);
    rows(&mut session, "DROP TABLE t").await;
    drop((session, other, prepared));
    check_nothing_left(&engine, "digests").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_values_errors_and_warnings_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut session = with_table(&engine).await;
    for sql in [
        "INSERT INTO t VALUES (11, 1)",
        "INSERT INTO t VALUES (12, NULL)",
        "INSERT INTO t VALUES (13, 1), (14, 2)",
        "UPDATE t SET v = v + 1 WHERE id = 11",
        "SELECT 1 / 0",
    ] {
        rows(&mut session, sql).await;
    }
    for sql in [
        "INSERT INTO t VALUES (11, 1)",
        "SELECT v FROM nowhere",
        "SELECT v FROM nowhere",
        "selec 7",
    ] {
        assert!(run(&mut session, sql).await.is_err(), "{sql}");
    }
    let columns = "COUNT_STAR, SUM_ROWS_AFFECTED, SUM_ERRORS, SUM_WARNINGS";
    for (text, expected) in [
        ("INSERT INTO `t` VALUES (...)", ["3", "2", "1", "0"]),
        (
            "INSERT INTO `t` VALUES (...) /* , ... */",
            ["2", "5", "0", "0"],
        ),
        (
            "UPDATE `t` SET `v` = `v` + ? WHERE `id` = ?",
            ["1", "1", "0", "0"],
        ),
        ("SELECT `v` FROM `nowhere`", ["2", "0", "2", "0"]),
        ("SELECT ? / ?", ["1", "0", "0", "1"]),
        ("SELEC ?", ["1", "0", "1", "0"]),
    ] {
        assert_eq!(
            figures(&mut session, columns, text).await,
            [expected],
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_are_stopped_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut session = with_table(&engine).await;
    let statements = [
        ("SELECT SLEEP(1000)", "SELECT `SLEEP` (?)"),
        (
            "SELECT COUNT(*) FROM t WHERE SLEEP(1000) = 0",
            "SELECT COUNT ( * ) FROM `t` WHERE `SLEEP` (?) = ?",
        ),
    ];
    for (sql, text) in statements {
        rows(&mut session, "SET max_execution_time = 50").await;
        let error = run(&mut session, sql).await.unwrap_err();
        assert_eq!(error.code, 3024, "{sql}: {error}");
        rows(&mut session, "SET max_execution_time = 0").await;
        let cancel = session.cancel_handle();
        // Again and again: it does nothing before the statement begins.
        let stopping = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(100)).await;
                cancel.cancel();
            }
        });
        let error = run(&mut session, sql).await.unwrap_err();
        stopping.abort();
        let _it_has_ended = stopping.await;
        assert_eq!(error.code, 1317, "{sql}: {error}");
        let columns = "COUNT_STAR, SUM_ERRORS, SUM_WARNINGS";
        let found = figures(&mut session, columns, text).await;
        assert_eq!(found, [["2", "2", "0"]], "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn samples_show_no_passwords() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut session = with_table(&engine).await;
    for sql in [
        "CREATE USER bob IDENTIFIED BY 'sEcret1'",
        "ALTER USER bob IDENTIFIED BY 'sEcret1'",
        "SET PASSWORD = 'sEcret1'",
    ] {
        assert!(run(&mut session, sql).await.is_err(), "{sql}");
    }
    let sql = format!(
        "SELECT COUNT(*), SUM(QUERY_SAMPLE_TEXT LIKE '%<secret>%') FROM {TABLE} \
         WHERE DIGEST_TEXT LIKE '%USER%' OR DIGEST_TEXT LIKE 'SET%'"
    );
    assert_eq!(rows(&mut session, &sql).await, [["3", "3"]]);
    let sql = format!("SELECT COUNT(*) FROM {TABLE} WHERE QUERY_SAMPLE_TEXT LIKE '%ecret1%'");
    assert_eq!(rows(&mut session, &sql).await, [["0"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_with_default_are_told_apart_by_their_number() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut session = with_table(&engine).await;
    for sql in [
        "INSERT INTO t VALUES (11, DEFAULT), (12, DEFAULT)",
        "INSERT INTO t VALUES (13, DEFAULT), (14, DEFAULT), (15, DEFAULT)",
        "INSERT INTO t VALUES (16, DEFAULT), (17, DEFAULT)",
        "INSERT INTO t VALUES (18, DEFAULT)",
    ] {
        rows(&mut session, sql).await;
    }
    let row = "( ? , DEFAULT )";
    for (count, times) in [(1, "1"), (2, "2"), (3, "1")] {
        let text = format!("INSERT INTO `t` VALUES {}", vec![row; count].join(" , "));
        let found = figures(&mut session, "COUNT_STAR", &text).await;
        assert_eq!(found, [[times]], "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporary_tables_are_seen_and_figures_can_be_emptied() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut session = with_table(&engine).await;
    rows(&mut session, "SELECT v % 7, COUNT(*) FROM t GROUP BY v % 7").await;
    let text = "SELECT `v` % ? , COUNT ( * ) FROM `t` GROUP BY `v` % ?";
    let columns = "SUM_CREATED_TMP_TABLES, SUM_CREATED_TMP_DISK_TABLES, SUM_SELECT_SCAN, \
                   SUM_NO_INDEX_USED, MAYFLY_TEMP_BYTES_WRITTEN, MAYFLY_TEMP_BYTES_READ";
    let found = figures(&mut session, columns, text).await;
    assert_eq!(found, [["1", "0", "1", "1", "0", "0"]]);
    let sql = "SELECT db, exec_count, memory_tmp_tables, disk_tmp_tables, \
               avg_tmp_tables_per_query, tmp_tables_to_disk_pct, temp_bytes_written \
               FROM sys.statements_with_temp_tables WHERE query LIKE 'SELECT `v` % ?%'";
    let expected = [["test", "1", "1", "0", "1", "0", "   0 bytes"]];
    assert_eq!(rows(&mut session, sql).await, expected);
    let sql = "SELECT full_scan, tmp_tables, total_latency LIKE '% _s' FROM sys.statement_analysis \
               WHERE query LIKE 'SELECT `v` % ?%'";
    let found = rows(&mut session, sql).await;
    assert_eq!(found, [["*", "1", "1"]]);
    let sql = "SELECT total_latency > 0 FROM sys.x$statement_analysis WHERE db = 'test' LIMIT 1";
    assert_eq!(rows(&mut session, sql).await, [["1"]]);
    rows(&mut session, &format!("TRUNCATE TABLE {TABLE}")).await;
    let sql = format!("SELECT DIGEST_TEXT, COUNT_STAR FROM {TABLE}");
    let truncated = "TRUNCATE TABLE `performance_schema` . `events_statements_summary_by_digest`";
    assert_eq!(rows(&mut session, &sql).await, [[truncated, "1"]]);
    // What was known goes on.
    rows(&mut session, "SELECT v FROM t WHERE id = 1").await;
    let found = figures(
        &mut session,
        "COUNT_STAR",
        "SELECT `v` FROM `t` WHERE `id` = ?",
    )
    .await;
    assert_eq!(found, [["1"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_are_so_many_rows_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(MINIMUM, directory.path());
    let mut session = engine.connect();
    let most = rows(&mut session, "SELECT @@performance_schema_digests_size").await;
    let most: usize = most[0][0].parse().unwrap();
    for number in 0..most + 20 {
        rows(&mut session, &format!("SELECT 1 AS c{number}")).await;
    }
    let sql = format!("SELECT COUNT(*), SUM(DIGEST IS NULL), MAX(COUNT_STAR) >= 20 FROM {TABLE}");
    let found = rows(&mut session, &sql).await;
    assert_eq!(found, [[&*(most + 1).to_string(), "1", "1"]]);
    let sql = format!("SELECT SCHEMA_NAME, DIGEST_TEXT FROM {TABLE} WHERE DIGEST IS NULL");
    assert_eq!(rows(&mut session, &sql).await, [["NULL", "NULL"]]);
}

/// In the form in which agents ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_find_their_columns() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut session = with_table(&engine).await;
    let sums = [
        "COUNT_STAR",
        "SUM_TIMER_WAIT",
        "SUM_LOCK_TIME",
        "SUM_ERRORS",
        "SUM_WARNINGS",
        "SUM_ROWS_AFFECTED",
        "SUM_ROWS_SENT",
        "SUM_ROWS_EXAMINED",
        "SUM_CREATED_TMP_DISK_TABLES",
        "SUM_CREATED_TMP_TABLES",
        "SUM_SELECT_FULL_JOIN",
        "SUM_SELECT_FULL_RANGE_JOIN",
        "SUM_SELECT_RANGE",
        "SUM_SELECT_RANGE_CHECK",
        "SUM_SELECT_SCAN",
        "SUM_SORT_MERGE_PASSES",
        "SUM_SORT_RANGE",
        "SUM_SORT_ROWS",
        "SUM_SORT_SCAN",
        "SUM_NO_INDEX_USED",
        "SUM_NO_GOOD_INDEX_USED",
        "SUM_CPU_TIME",
        "QUANTILE_95",
        "QUANTILE_99",
        "QUANTILE_999",
    ];
    let grouped: Vec<String> = sums.iter().map(|name| format!("Q.{name}")).collect();
    let sql = format!(
        "SELECT ifnull(SCHEMA_NAME, 'NONE') AS SCHEMA_NAME, DIGEST, LEFT(DIGEST_TEXT, 120) AS \
         DIGEST_TEXT, {} FROM (SELECT * FROM {TABLE} WHERE SCHEMA_NAME NOT IN ('mysql', \
         'performance_schema', 'information_schema') AND LAST_SEEN > DATE_SUB(NOW(), INTERVAL \
         86400 SECOND) ORDER BY LAST_SEEN DESC) Q GROUP BY Q.SCHEMA_NAME, Q.DIGEST, \
         Q.DIGEST_TEXT, {} ORDER BY SUM_TIMER_WAIT DESC LIMIT 250",
        sums.join(", "),
        grouped.join(", ")
    );
    let found = rows(&mut session, &sql).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .all(|row| row.len() == sums.len() + 3 && row[0] == "test")
    );
    let all: Vec<String> = sums
        .iter()
        .map(|name| format!("SUM({name}) AS SUM_{name}"))
        .collect();
    let sql = format!("SELECT {} FROM {TABLE};", all.join(", "));
    assert_eq!(rows(&mut session, &sql).await.len(), 1);
    let qualified = "`performance_schema`.`events_statements_summary_by_digest`";
    let sql = format!(
        "SELECT /* agent */ {qualified}.`SCHEMA_NAME`, {qualified}.`DIGEST`, \
         {qualified}.`MIN_TIMER_WAIT`, {qualified}.`QUERY_SAMPLE_TEXT` FROM {qualified} \
         WHERE DIGEST IS NOT NULL AND DIGEST_TEXT IS NOT NULL"
    );
    assert!(rows(&mut session, &sql).await.len() >= 2);
    let sql = "SELECT sys_version, mysql_version = VERSION() FROM sys.version";
    assert_eq!(rows(&mut session, sql).await, [["2.1.3", "1"]]);
}
