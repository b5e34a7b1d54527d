//! What SHOW STATUS counts of rows that are read, and of rows that come, change and go.

use mayfly_session::Session;

use crate::engine::{open, rows};

/// Statements with what they count; all that is not named is 0. A statement is run the long way the
/// first time and then by its shape: each entry that changes nothing runs four times.
///
/// They are what MariaDB 10.11 counts for tables of MyISAM, but for these: it counts the end of a
/// scan as a row too (`Handler_read_rnd_next` is one more), attempts to write a row that is there
/// already (`Handler_write` of INSERT IGNORE and ON DUPLICATE KEY UPDATE), and a row that REPLACE
/// replaces as changed; it sorts for ORDER BY with LIMIT; and it has no `Rows_read` of MyISAM.
const QUERIES: &[(&str, &[(&str, u64)])] = &[
    ("SELECT 1", &[]),
    (
        "SELECT * FROM t",
        &[("Handler_read_rnd_next", 500), ("Rows_read", 500)],
    ),
    (
        "SELECT COUNT(*) FROM t WHERE v = 3",
        &[("Handler_read_rnd_next", 500), ("Rows_read", 500)],
    ),
    (
        "SELECT * FROM t WHERE id = 7",
        &[("Handler_read_key", 1), ("Rows_read", 1)],
    ),
    (
        "SELECT * FROM t WHERE id = 9999",
        &[("Handler_read_key", 1)],
    ),
    (
        "SELECT * FROM t WHERE id IN (7, 9, 12)",
        &[("Handler_read_key", 3), ("Rows_read", 3)],
    ),
    (
        "SELECT * FROM t WHERE id BETWEEN 10 AND 19",
        &[
            ("Handler_read_key", 1),
            ("Handler_read_next", 10),
            ("Rows_read", 10),
        ],
    ),
    (
        "SELECT SUM(v) FROM t WHERE k = 3",
        &[
            ("Handler_read_key", 1),
            ("Handler_read_next", 10),
            ("Rows_read", 10),
        ],
    ),
    (
        "SELECT * FROM t ORDER BY id LIMIT 500",
        &[("Handler_read_rnd_next", 500), ("Rows_read", 500)],
    ),
    (
        "SELECT t.v FROM u JOIN t ON t.id = u.id",
        &[
            ("Handler_read_key", 20),
            ("Handler_read_rnd_next", 20),
            ("Rows_read", 40),
        ],
    ),
    (
        "SELECT v FROM t WHERE id = (SELECT MAX(id) FROM u)",
        &[
            ("Handler_read_key", 1),
            ("Handler_read_rnd_next", 20),
            ("Rows_read", 21),
        ],
    ),
];

const CHANGES: &[(&str, &[(&str, u64)])] = &[
    (
        "UPDATE t SET v = v + 1 WHERE id = 7",
        &[
            ("Handler_read_key", 1),
            ("Handler_update", 1),
            ("Rows_read", 1),
        ],
    ),
    (
        "UPDATE t SET v = v WHERE id = 8",
        &[("Handler_read_key", 1), ("Rows_read", 1)],
    ),
    (
        "UPDATE t SET v = v + 1 WHERE id BETWEEN 10 AND 19",
        &[
            ("Handler_read_key", 1),
            ("Handler_read_next", 10),
            ("Handler_update", 10),
            ("Rows_read", 10),
        ],
    ),
    (
        "UPDATE t SET v = v + 1",
        &[
            ("Handler_read_rnd_next", 500),
            ("Handler_update", 500),
            ("Rows_read", 500),
        ],
    ),
    (
        "DELETE FROM t WHERE id = 8",
        &[
            ("Handler_delete", 1),
            ("Handler_read_key", 1),
            ("Rows_read", 1),
        ],
    ),
    (
        "DELETE FROM t WHERE k = 5",
        &[
            ("Handler_delete", 10),
            ("Handler_read_key", 1),
            ("Handler_read_next", 10),
            ("Rows_read", 10),
        ],
    ),
    (
        "INSERT INTO t VALUES (1000, 1, 1), (1001, 2, 2)",
        &[("Handler_write", 2)],
    ),
    (
        "INSERT IGNORE INTO t VALUES (1000, 1, 1), (1002, 2, 2)",
        &[("Handler_write", 1)],
    ),
    (
        "REPLACE INTO t VALUES (1000, 1, 5), (1005, 2, 2)",
        &[("Handler_delete", 1), ("Handler_write", 2)],
    ),
    (
        "INSERT INTO t VALUES (1000, 1, 1) ON DUPLICATE KEY UPDATE v = 99",
        &[("Handler_update", 1)],
    ),
    ("TRUNCATE u", &[]),
];

/// What a statement counts, in the order of the names.
async fn counted(session: &mut Session, sql: &str) -> Vec<(String, u64)> {
    rows(session, "FLUSH STATUS").await;
    rows(session, sql).await;
    let names = "SHOW SESSION STATUS WHERE Variable_name LIKE 'Handler\\_%' \
                 AND Variable_name NOT LIKE 'Handler\\_tmp%' OR Variable_name = 'Rows_read'";
    let counts = rows(session, names).await.into_iter();
    counts
        .map(|row| (row[0].clone(), row[1].parse().unwrap()))
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_counted_as_they_are_read_and_changed() {
    for memory_bytes in [64 << 20, 4 << 20] {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(memory_bytes, directory.path());
        let mut session = engine.connect();
        let session = &mut session;
        let keyed = "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, k INT, v INT, KEY (k))";
        rows(session, keyed).await;
        let filled = "INSERT INTO t WITH RECURSIVE s AS \
                      (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 500) \
                      SELECT n, n % 50, n % 7 FROM s";
        rows(session, filled).await;
        rows(session, "CREATE TEMPORARY TABLE u (id INT PRIMARY KEY)").await;
        rows(session, "INSERT INTO u SELECT id FROM t WHERE id <= 20").await;
        let told = |counts: &[(&str, u64)]| -> Vec<(String, u64)> {
            let counts = counts.iter();
            counts
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        for (sql, expected) in QUERIES {
            for run in 0..4 {
                let found = counted(session, sql).await;
                assert_eq!(found, told(expected), "{sql}, run {run}");
            }
        }
        for (sql, expected) in CHANGES {
            assert_eq!(counted(session, sql).await, told(expected), "{sql}");
        }
        // By their shape, which is known by now.
        for id in [200, 201] {
            let sql = format!("UPDATE t SET v = v + 1 WHERE id = {id}");
            assert_eq!(counted(session, &sql).await, told(CHANGES[0].1), "{sql}");
        }
    }
}
