//! What a client is told of rows that were met: those that were changed, or with CLIENT_FOUND_ROWS
//! all of them. The numbers are those of MariaDB.

use mayfly_session::{Outcome, Session};

use crate::budgets::UNLIMITED;
use crate::engine::{open, rows};

/// Statements in turn, with what they tell of rows that were changed and of those that were found.
const STATEMENTS: [(&str, u64, u64, &str, &str); 12] = [
    (
        "INSERT INTO t VALUES (1, 5, 7) ON DUPLICATE KEY UPDATE a = 1",
        0,
        1,
        "",
        "",
    ),
    (
        "INSERT INTO t VALUES (1, 5, 7) ON DUPLICATE KEY UPDATE a = 6",
        2,
        2,
        "",
        "",
    ),
    (
        "INSERT INTO t VALUES (1, 5, 7), (2, 2, 2), (9, 9, 9) ON DUPLICATE KEY UPDATE a = VALUES(a)",
        3,
        4,
        "Records: 3  Duplicates: 1  Warnings: 0",
        "Records: 3  Duplicates: 2  Warnings: 0",
    ),
    (
        "INSERT INTO t VALUES (1, 5, 7), (2, 2, 2), (9, 9, 9) ON DUPLICATE KEY UPDATE a = VALUES(a)",
        0,
        3,
        "Records: 3  Duplicates: 0  Warnings: 0",
        "Records: 3  Duplicates: 3  Warnings: 0",
    ),
    (
        "INSERT INTO t SELECT * FROM (SELECT 1 x, 5 y, 7 z UNION ALL SELECT 2, 2, 2) q \
         ON DUPLICATE KEY UPDATE a = y",
        0,
        2,
        "Records: 2  Duplicates: 0  Warnings: 0",
        "Records: 2  Duplicates: 0  Warnings: 0",
    ),
    (
        "INSERT IGNORE INTO t VALUES (1, 5, 7), (2, 2, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)",
        0,
        2,
        "Records: 2  Duplicates: 2  Warnings: 0",
        "Records: 2  Duplicates: 2  Warnings: 0",
    ),
    (
        "INSERT IGNORE INTO t VALUES (1, 5, 7), (2, 2, 2) ON DUPLICATE KEY UPDATE b = 3",
        0,
        2,
        "Records: 2  Duplicates: 2  Warnings: 2",
        "Records: 2  Duplicates: 2  Warnings: 2",
    ),
    (
        "INSERT INTO t SET id = 1, a = 5 ON DUPLICATE KEY UPDATE a = a",
        0,
        1,
        "",
        "",
    ),
    (
        "REPLACE INTO t VALUES (1, 5, 8), (2, 2, 12)",
        4,
        4,
        "Records: 2  Duplicates: 2  Warnings: 0",
        "Records: 2  Duplicates: 2  Warnings: 0",
    ),
    (
        "UPDATE t SET a = a",
        0,
        4,
        "Rows matched: 4  Changed: 0  Warnings: 0",
        "Rows matched: 4  Changed: 0  Warnings: 0",
    ),
    (
        "UPDATE t SET a = a WHERE id = 1",
        0,
        1,
        "Rows matched: 1  Changed: 0  Warnings: 0",
        "Rows matched: 1  Changed: 0  Warnings: 0",
    ),
    ("DELETE FROM t WHERE id = 1", 1, 1, "", ""),
];

async fn told(session: &mut Session, sql: &str) -> (u64, String) {
    match session.execute(sql).await.unwrap() {
        Outcome::Done {
            affected_rows,
            info,
            ..
        } => (affected_rows, info),
        Outcome::Rows { .. } => panic!("{sql} has rows"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_stay_as_they_are_count_for_clients_that_ask_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    for counts_found in [false, true] {
        let mut session = engine.connect();
        session.count_found_rows(counts_found);
        for sql in [
            "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b INT, UNIQUE (b))",
            "INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
        ] {
            rows(&mut session, sql).await;
        }
        for (sql, changed, found, info, found_info) in STATEMENTS {
            let expected = match counts_found {
                true => (found, found_info.to_owned()),
                false => (changed, info.to_owned()),
            };
            assert_eq!(told(&mut session, sql).await, expected, "{sql}");
            let counted = rows(&mut session, "SELECT ROW_COUNT()").await;
            assert_eq!(counted, [[expected.0.to_string()]], "{sql}");
        }
    }
}
