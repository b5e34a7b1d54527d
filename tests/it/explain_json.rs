//! EXPLAIN FORMAT=JSON has MySQL's shape, is JSON whatever the names are, and EXPLAIN ANALYZE says
//! why a statement spilled.

use mayfly_session::Session;

use crate::engine::{NUMBERS, check_nothing_left, make_digits, open, rows, run, unescape};

/// The document of a statement, which has to be JSON.
async fn document(session: &mut Session, sql: &str) -> String {
    let explained = rows(session, &format!("EXPLAIN FORMAT=JSON {sql}")).await;
    let text = unescape(&explained[0][0]);
    let literal = text.replace('\\', "\\\\").replace('\'', "''");
    let valid = rows(session, &format!("SELECT JSON_VALID('{literal}')")).await;
    assert_eq!(valid, [["1"]], "{sql}: {text}");
    text
}

/// Looks for lines in the document of a statement, which have to stand in this order, whatever
/// stands between them; returns the document.
async fn check(session: &mut Session, sql: &str, expected: &[&str]) -> String {
    let document = document(session, sql).await;
    let mut lines = document.lines().map(str::trim);
    for wanted in expected {
        let found = lines.any(|line| line.trim_end_matches(',') == *wanted);
        assert!(found, "{sql}: no {wanted} in its place: {document}");
    }
    document
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_have_the_shape_of_mysql() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    for sql in [
        "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, k INT, v VARCHAR(10), KEY k (k))",
        "INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c')",
        "CREATE TEMPORARY TABLE `o\"dd` (`it's` INT)",
        "INSERT INTO `o\"dd` VALUES (1), (2)",
    ] {
        rows(&mut session, sql).await;
    }
    let sql = "SELECT v FROM t WHERE id = 2";
    let expected = [
        "\"query_block\": {",
        "\"select_id\": 1",
        "\"table\": {",
        "\"table_name\": \"t\"",
        "\"access_type\": \"const\"",
        "\"possible_keys\": [",
        "\"PRIMARY\"",
        "\"key\": \"PRIMARY\"",
        "\"used_key_parts\": [",
        "\"id\"",
        "\"key_length\": \"4\"",
        "\"ref\": [",
        "\"const\"",
        "\"rows_examined_per_scan\": 1",
        "\"rows_produced_per_join\": 1",
        "\"filtered\": \"100.00\"",
        "\"used_columns\": [",
        "\"id\"",
        "\"v\"",
        "\"attached_condition\": \"(`t`.`id` = 2)\"",
    ];
    check(&mut session, sql, &expected).await;

    let sql = "SELECT COUNT(*) FROM t GROUP BY k + 1 ORDER BY MAX(v)";
    let expected = [
        "\"select_id\": 1",
        "\"ordering_operation\": {",
        "\"using_filesort\": true",
        "\"grouping_operation\": {",
        "\"using_temporary_table\": true",
        "\"using_filesort\": false",
        "\"table\": {",
    ];
    check(&mut session, sql, &expected).await;

    let sql = "SELECT * FROM t a JOIN t b ON a.v = b.v";
    let expected = ["\"nested_loop\": [", "\"table\": {", "\"table\": {"];
    let joined = check(&mut session, sql, &expected).await;
    assert_eq!(joined.matches("\"table_name\"").count(), 2, "{joined}");

    let sql = "SELECT * FROM (SELECT k, COUNT(*) AS c FROM t GROUP BY k) d WHERE c > 1";
    let expected = [
        "\"table_name\": \"d\"",
        "\"access_type\": \"ALL\"",
        "\"materialized_from_subquery\": {",
        "\"using_temporary_table\": true",
        "\"dependent\": false",
        "\"cacheable\": true",
        "\"query_block\": {",
        "\"select_id\": 2",
        "\"grouping_operation\": {",
        "\"table_name\": \"t\"",
    ];
    check(&mut session, sql, &expected).await;

    let sql = "SELECT k FROM t UNION SELECT 7";
    let expected = [
        "\"union_result\": {",
        "\"using_temporary_table\": true",
        "\"table_name\": \"<union1,2>\"",
        "\"access_type\": \"ALL\"",
        "\"query_specifications\": [",
        "\"dependent\": false",
        "\"select_id\": 1",
        "\"select_id\": 2",
        "\"message\": \"No tables used\"",
    ];
    check(&mut session, sql, &expected).await;

    let sql = "SELECT * FROM t WHERE 1 = 0 ORDER BY k";
    let expected = ["\"select_id\": 1", "\"message\": \"Impossible WHERE\""];
    let empty = check(&mut session, sql, &expected).await;
    assert!(!empty.contains("ordering_operation"), "{empty}");

    let recursive = "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 3) \
                     SELECT x.i FROM r x JOIN r y ON x.i = y.i";
    let expected = [
        "\"table_name\": \"x\"",
        "\"materialized_from_subquery\": {",
        "\"union_result\": {",
        "\"select_id\": 2",
        "\"select_id\": 3",
        "\"table_name\": \"r\"",
        "\"table_name\": \"y\"",
        "\"sharing_temporary_table_with\": {",
        "\"select_id\": 2",
    ];
    check(&mut session, recursive, &expected).await;

    let sql = "SELECT k, (SELECT MAX(b.k) FROM t b WHERE b.id > 1) FROM t a \
               WHERE k > (SELECT MIN(c.k) FROM t c)";
    let expected = [
        "\"table_name\": \"a\"",
        "\"attached_subqueries\": [",
        "\"table_name\": \"c\"",
        "\"select_list_subqueries\": [",
        "\"table_name\": \"b\"",
    ];
    check(&mut session, sql, &expected).await;

    let window = "SELECT RANK() OVER (ORDER BY v) FROM t";
    let expected = [
        "\"windowing\": {",
        "\"windows\": [",
        "\"name\": \"<unnamed window>\"",
        "\"functions\": [",
        "\"rank\"",
        "\"using_filesort\": true",
    ];
    check(&mut session, window, &expected).await;

    let sql = "INSERT INTO t SELECT id + 9, k, v FROM t";
    let expected = [
        "\"select_id\": 1",
        "\"insert\": true",
        "\"table_name\": \"t\"",
        "\"insert_from\": {",
        "\"table_name\": \"t\"",
    ];
    check(&mut session, sql, &expected).await;
    let sql = "UPDATE t SET v = 'x' WHERE id = 1";
    let expected = ["\"update\": true", "\"table_name\": \"t\""];
    check(&mut session, sql, &expected).await;
    let sql = "DELETE FROM t";
    let expected = ["\"delete\": true", "\"table_name\": \"t\""];
    check(&mut session, sql, &expected).await;

    let sql = "SELECT * FROM `o\"dd` WHERE `it's` = 1";
    let expected = ["\"table_name\": \"o\\\"dd\"", "\"it's\""];
    check(&mut session, sql, &expected).await;
    let text = "SELECT * FROM t WHERE v = 'a\\\\b\\\"c\\nd'";
    document(&mut session, text).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_spills_says_what_would_have_sufficed() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(4 << 20, directory.path());
    let mut session = engine.connect();
    make_digits(&mut session).await;
    let sql = format!(
        "EXPLAIN ANALYZE SELECT CONCAT(n, 'a long enough text to be a group of its own'), COUNT(*) \
         FROM {NUMBERS} GROUP BY 1"
    );
    let told = rows(&mut session, &sql).await.concat();
    let spilled = told.iter().find(|line| line.contains("Spilled: it had "));
    let spilled = spilled.unwrap_or_else(|| panic!("{told:#?}"));
    assert!(spilled.contains(" of the budget of "), "{spilled}");
    assert!(
        spilled.ends_with("MiB would keep it in memory"),
        "{spilled}"
    );
    let table = told
        .iter()
        .find(|line| line.contains("for GROUP BY: rows="));
    let table = table.unwrap_or_else(|| panic!("{told:#?}"));
    for word in [
        "memory=",
        "limit=",
        "on_disk=YES",
        "write_wait=",
        "read_wait=",
    ] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let statement = told.last().unwrap();
    assert!(statement.starts_with("Statement: time="), "{statement}");
    drop(session);
    check_nothing_left(&engine, "EXPLAIN ANALYZE").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_analyze_ends_when_its_time_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(16 << 20, directory.path());
    let mut session = engine.connect();
    make_digits(&mut session).await;
    rows(&mut session, "SET max_execution_time = 100").await;
    let sql = "EXPLAIN ANALYZE SELECT SUM(a.d + b.d * c.d > d.d + e.d - f.d + g.d + h.d + i.d) \
               FROM digits a, digits b, digits c, digits d, digits e, digits f, digits g, \
               digits h, digits i";
    let error = run(&mut session, sql).await.unwrap_err();
    assert_eq!(error.code, 3024, "{error}");
    drop(session);
    check_nothing_left(&engine, "EXPLAIN ANALYZE that ran out of time").await;
}
