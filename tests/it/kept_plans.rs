//! Plans that are kept for statements that come again: each run has values of its own (its clock,
//! its connection, its database, the labels of its text) and reads few rows.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mayfly_session::{Outcome, Session};

use crate::engine::{check_nothing_left, open, reused, rows};

/// The labels of the columns of a query, whose rows are read.
async fn labels(session: &mut Session, sql: &str) -> Vec<String> {
    let outcome = session.execute(sql).await;
    let outcome = outcome.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let Outcome::Rows { columns, .. } = &outcome else {
        panic!("{sql} returns no rows");
    };
    let labels = columns.iter().map(|column| column.name.clone()).collect();
    crate::engine::read(outcome).await.unwrap();
    labels
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_plan_has_the_clock_of_its_statement() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut sessions = [engine.connect(), engine.connect()];
    rows(
        &mut sessions[0],
        "CREATE TABLE t (id INT PRIMARY KEY, at DATETIME(6), KEY (at))",
    )
    .await;
    let clock = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        since.as_secs_f64()
    };
    let queries = [
        "SELECT UNIX_TIMESTAMP(NOW(6)), NOW(6) = NOW(6)",
        "SELECT UNIX_TIMESTAMP(UTC_TIMESTAMP(6)), CURDATE() = DATE(NOW()) FROM t",
        "SELECT UNIX_TIMESTAMP(DATE_ADD(NOW(6), INTERVAL 5 SECOND)) - 5, \
         (SELECT NOW(6) FROM t) = (SELECT MAX(NOW(6)) FROM t)",
    ];
    rows(&mut sessions[0], "INSERT INTO t VALUES (1, NOW(6))").await;
    let before = reused(&mut sessions[0]).await;
    for query in queries {
        for _ in 0..5 {
            for session in &mut sessions {
                let from = clock();
                let row = rows(session, query).await.remove(0);
                let told: f64 = row[0].parse().unwrap();
                assert!((from - 1e-5..=clock()).contains(&told), "{query}: {row:?}");
                assert_eq!(row[1], "1", "{query}");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
    let after = reused(&mut sessions[0]).await;
    assert!(after >= before + 6, "{before} {after}");
    drop(sessions);
    let mut session = engine.connect();
    rows(&mut session, "DROP TABLE t").await;
    drop(session);
    check_nothing_left(&engine, "the clock of a statement").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_expire_under_a_kept_plan() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    rows(
        &mut session,
        "CREATE TABLE t (id INT PRIMARY KEY, k INT, at DATETIME(6), sec INT, KEY (at), KEY (sec))",
    )
    .await;
    rows(
        &mut session,
        "INSERT INTO t VALUES (1, 1, NOW(6) + INTERVAL 2 SECOND, UNIX_TIMESTAMP() + 3), \
         (2, 2, NOW(6) - INTERVAL 1 DAY, UNIX_TIMESTAMP() - 9), \
         (3, 3, NOW(6) + INTERVAL 1 DAY, UNIX_TIMESTAMP() + 999)",
    )
    .await;
    // The last one finds rows by the key of what expires.
    let queries = [
        "SELECT id FROM t WHERE id = 1 AND at > NOW(6)",
        "SELECT id FROM t WHERE k + 0 IN (1, 2) AND at > NOW(6)",
        "SELECT id FROM t WHERE at > NOW(6) AND at < NOW() + INTERVAL 1 HOUR ORDER BY id",
        "SELECT id FROM t WHERE sec > UNIX_TIMESTAMP() AND sec < UNIX_TIMESTAMP() + 100",
    ];
    let before = reused(&mut session).await;
    for _ in 0..4 {
        for query in queries {
            assert_eq!(rows(&mut session, query).await, [["1"]], "{query}");
        }
    }
    assert!(reused(&mut session).await >= before + 8);
    tokio::time::sleep(Duration::from_millis(3100)).await;
    for _ in 0..2 {
        for query in queries {
            assert!(rows(&mut session, query).await.is_empty(), "{query}");
        }
    }
    rows(&mut session, "DROP TABLE t").await;
    drop(session);
    check_nothing_left(&engine, "rows that expire").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_plan_has_the_session_of_its_statement() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut sessions = [engine.connect(), engine.connect()];
    rows(
        &mut sessions[0],
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
    )
    .await;
    let mut ids = Vec::new();
    for session in &mut sessions {
        let mut found = Vec::new();
        for _ in 0..4 {
            found.extend(rows(session, "SELECT CONNECTION_ID()").await.remove(0));
        }
        found.dedup();
        assert_eq!(found.len(), 1, "{found:?}");
        ids.extend(found);
    }
    assert_ne!(ids[0], ids[1]);
    for number in 1..=8 {
        let session = &mut sessions[number % 2];
        rows(session, "INSERT INTO t (v) VALUES (7)").await;
        let number = number.to_string();
        for query in [
            "SELECT LAST_INSERT_ID()",
            "SELECT id FROM t WHERE id = LAST_INSERT_ID()",
            "SELECT MAX(id) FROM t WHERE id <= LAST_INSERT_ID() AND v = 7",
        ] {
            assert_eq!(rows(session, query).await, [[number.as_str()]], "{query}");
        }
    }
    rows(&mut sessions[0], "CREATE DATABASE other").await;
    for round in 0..6 {
        let database = ["test", "other"][round % 2];
        for session in &mut sessions {
            rows(session, &format!("USE {database}")).await;
            for _ in 0..3 {
                let found = rows(session, "SELECT DATABASE(), SCHEMA()").await;
                assert_eq!(found, [[database, database]]);
            }
        }
    }
    for session in &mut sessions {
        assert!(reused(session).await > 8);
    }
    rows(&mut sessions[0], "DROP DATABASE other").await;
    rows(&mut sessions[0], "DROP TABLE test.t").await;
    drop(sessions);
    check_nothing_left(&engine, "the session of a statement").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_plan_has_the_labels_of_its_statement() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    rows(
        &mut session,
        "CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(20), KEY (k))",
    )
    .await;
    rows(
        &mut session,
        "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'it''s')",
    )
    .await;
    let queries = [
        ("EXISTS(SELECT 1 FROM t WHERE k = #)", ""),
        (
            "(SELECT MAX(id) FROM t  WHERE k > -#)",
            " FROM t WHERE id = 1",
        ),
        ("exists (select * from t where s = ~ and k <> #)", ""),
        ("(SELECT s FROM t WHERE id = #) = 'b'", " LIMIT 1"),
        (
            "(SELECT COUNT(*) FROM t WHERE k IN (#, 10, #))",
            " FROM t WHERE k < 25 ORDER BY id",
        ),
    ];
    let before = reused(&mut session).await;
    let texts = ["'a'", "\"b\"", "'it''s'", "'c'", "\"it's\""];
    for (item, rest) in queries {
        for (number, text) in ["3", "10", "20", "200", "1"].into_iter().zip(texts) {
            let item = item.replace('#', number).replace('~', text);
            let sql = format!("SELECT {item}, id{rest}");
            let sql = match rest.contains("FROM") {
                true => sql,
                false => sql.replace(", id", ", 5"),
            };
            let found = labels(&mut session, &sql).await;
            assert_eq!(found[0], item, "{sql}");
            let again = rows(&mut session, &sql).await;
            let new = sql.replacen("SELECT", "SELECT /* new */", 1);
            assert_eq!(again, rows(&mut session, &new).await, "{sql}");
        }
    }
    let after = reused(&mut session).await;
    assert!(after >= before + 8, "{before} {after}");
    // A label that is too long is cut, whatever its constants.
    for number in [7, 77_777, 777] {
        let item = format!(
            "EXISTS(SELECT '{}' FROM t WHERE k = {number})",
            "x".repeat(220)
        );
        for _ in 0..2 {
            let found = labels(&mut session, &format!("SELECT {item}")).await;
            assert_eq!(found, [&item[..255]]);
        }
    }
    rows(&mut session, "DROP TABLE t").await;
    drop(session);
    check_nothing_left(&engine, "labels").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_rows_of_many_are_walked_to_from_the_third_run_on() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    rows(
        &mut session,
        "CREATE TABLE t (id INT PRIMARY KEY, g INT NOT NULL, k INT NOT NULL, KEY (g, k))",
    )
    .await;
    let fill = "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n \
                WHERE i < 12000) SELECT i, i % 2, i * 3 FROM n";
    rows(&mut session, "SET cte_max_recursion_depth = 20000").await;
    rows(&mut session, fill).await;
    let read = "SHOW SESSION STATUS WHERE Variable_name LIKE 'Handler_read%'";
    for (query, expected) in [
        ("SELECT id FROM t WHERE id > # ORDER BY id LIMIT 2", "6 7"),
        (
            "SELECT id FROM t WHERE id > # ORDER BY id DESC LIMIT 1",
            "12000",
        ),
        ("SELECT MIN(id), MAX(id) FROM t WHERE id > #", "6 12000"),
        ("SELECT MAX(k) FROM t WHERE g = 1 AND k > #", "35997"),
        ("SELECT MIN(k) FROM t WHERE g = 0 AND k >= #", "6"),
        (
            "SELECT k FROM t WHERE g = 1 AND k > # ORDER BY k LIMIT 2",
            "9 15",
        ),
    ] {
        for run in 0..4 {
            let sql = query.replace('#', "5");
            let before = reused(&mut session).await;
            let counts = |rows: Vec<Vec<String>>| {
                rows.iter()
                    .map(|row| row[1].parse::<u64>().unwrap())
                    .sum::<u64>()
            };
            let read_before = counts(rows(&mut session, read).await);
            let found = rows(&mut session, &sql).await.concat().join(" ");
            let was_read = counts(rows(&mut session, read).await) - read_before;
            assert_eq!(found, expected, "{sql}");
            if run >= 2 {
                assert_eq!(reused(&mut session).await, before + 1, "{sql}");
                assert!(was_read < 200, "{sql}: {was_read}");
            }
        }
    }
    rows(&mut session, "DROP TABLE t").await;
    drop(session);
    check_nothing_left(&engine, "few rows of many").await;
}
