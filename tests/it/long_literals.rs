//! Literals of many bytes, which stand in plans as functions.

use crate::engine::{open, rows};

const LITERAL_BYTES: usize = 100_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_literal_is_a_literal() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    let z = "z".repeat(LITERAL_BYTES);
    let same = format!("REPEAT('z', {LITERAL_BYTES})");
    for sql in [
        "SET group_concat_max_len = 1000000".to_owned(),
        format!("SET @v = '{z}'"),
        "CREATE TEMPORARY TABLE t (a INT PRIMARY KEY, b LONGTEXT)".to_owned(),
        format!("INSERT INTO t VALUES (1, '{z}'), (2, 'short')"),
        format!("INSERT INTO t SELECT 3, '{z}'"),
        format!("INSERT INTO t VALUES (4, CONCAT('{z}', 'y'))"),
        format!("CREATE TEMPORARY TABLE copied AS SELECT '{z}' AS c, 1 AS d"),
    ] {
        rows(&mut session, &sql).await;
    }
    for (query, expected) in [
        (format!("SELECT LENGTH('{z}')"), "100000"),
        (format!("SELECT '{z}' = {same}, \"{z}\" = {same}"), "1 1"),
        (format!("SELECT MD5('{z}') = MD5({same})"), "1"),
        (
            format!("SELECT MAX(LENGTH(c)) FROM (SELECT '{z}' AS c UNION SELECT {same}) u"),
            "100000",
        ),
        (format!("SELECT COUNT(*) FROM t WHERE b = '{z}'"), "2"),
        (
            format!("SELECT COUNT(*) FROM t WHERE b IN ('short', '{z}')"),
            "3",
        ),
        (format!("SELECT COUNT(*) FROM t WHERE b LIKE '{z}%'"), "3"),
        (format!("SELECT COUNT(*) FROM t WHERE b > '{z}'"), "1"),
        (format!("SELECT a FROM t WHERE a = 1 AND '{z}' = b"), "1"),
        (
            format!("SELECT COUNT(DISTINCT IF(b = '{z}', '{z}', b)) FROM t"),
            "3",
        ),
        (
            format!("SELECT SUM(a) FROM t GROUP BY b = '{z}' ORDER BY 1"),
            "4|6",
        ),
        (format!("SELECT '{z}' + 1"), "1"),
        (
            format!("SELECT LENGTH(LOWER(UPPER('{z}'))), CHARSET('{z}')"),
            "100000 utf8mb4",
        ),
        (
            "SELECT LENGTH(@v), LENGTH(d.v) FROM (VALUES ROW(@v)) AS d (v)".to_owned(),
            "100000 100000",
        ),
        (
            "SELECT @v = b, COUNT(*) FROM t GROUP BY @v = b ORDER BY 1".to_owned(),
            "0 2|1 2",
        ),
        // One expression twice, and places where the planner wants a literal.
        (
            format!("SELECT b = '{z}', COUNT(*) FROM t GROUP BY b = '{z}' ORDER BY b = '{z}'"),
            "0 2|1 2",
        ),
        (
            format!(
                "SELECT COUNT(IF(b = '{z}', 1, NULL)) AS n FROM t GROUP BY a > 2 \
                 HAVING COUNT(IF(b = '{z}', 1, NULL)) > 0 ORDER BY COUNT(IF(b = '{z}', 1, NULL))"
            ),
            "1|1",
        ),
        (
            format!("SELECT LENGTH(c), d FROM (VALUES ROW('{z}', 2)) AS v (c, d)"),
            "100000 2",
        ),
        (
            format!("SELECT LENGTH(GROUP_CONCAT(a SEPARATOR '{z}')) FROM t WHERE a < 3"),
            "100002",
        ),
        (
            format!("SELECT LENGTH(LAG(b, 1, '{z}') OVER (ORDER BY a)) FROM t WHERE a = 2"),
            "100000",
        ),
        (
            format!("SELECT MAX(LENGTH(x)) FROM (SELECT MAX('{z}') OVER () AS x FROM t) w"),
            "100000",
        ),
        (
            format!("SELECT LENGTH(c), d FROM copied WHERE c = '{z}'"),
            "100000 1",
        ),
    ] {
        let found = rows(&mut session, &query).await;
        let found: Vec<String> = found.iter().map(|row| row.join(" ")).collect();
        assert_eq!(found.join("|"), expected, "{}", query.replace(&z, "zz"));
    }
    rows(&mut session, &format!("UPDATE t SET b = '{z}' WHERE a = 2")).await;
    rows(&mut session, &format!("DELETE FROM t WHERE b = '{z}'")).await;
    assert_eq!(rows(&mut session, "SELECT a FROM t").await, [["4"]]);
}
