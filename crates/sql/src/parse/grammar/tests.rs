//! What is refused, and from where on: most of it was asked of MariaDB, which reads as MySQL does.

use super::super::parse;

/// The text behind `near` in the error of a statement; `None` if it has none.
fn near(sql: &str) -> Option<String> {
    let error = parse(sql).err()?;
    let (_, rest) = error.message.split_once("near '")?;
    let (near, _) = rest.rsplit_once("' at line")?;
    Some(near.to_owned())
}

#[test]
fn errors_begin_where_mysql_stops_reading() {
    let mut wrong = Vec::new();
    for (sql, expected) in [
        ("SELECT * FROM a QUALIFY x > 1", "x > 1"),
        ("SELECT * FROM a WHERE x QUALIFY x > 1", "QUALIFY x > 1"),
        ("SELECT * FROM a AS q TABLESAMPLE (10)", "TABLESAMPLE (10)"),
        ("SELECT * FROM a TABLESAMPLE SYSTEM (10)", "SYSTEM (10)"),
        ("SELECT * FROM a ORDER BY x NULLS LAST", "NULLS LAST"),
        ("SELECT * FROM a ORDER BY x DESC NULLS FIRST", "NULLS FIRST"),
        ("SELECT SUM(x) OVER (ORDER BY y NULLS LAST)", "NULLS LAST)"),
        (
            "SELECT GROUP_CONCAT(x ORDER BY y NULLS LAST)",
            "NULLS LAST)",
        ),
        ("DELETE FROM a ORDER BY x NULLS LAST", "NULLS LAST"),
        (
            "SELECT * FROM a FETCH FIRST 1 ROW ONLY",
            "FETCH FIRST 1 ROW ONLY",
        ),
        ("SELECT * FROM a OFFSET 1 ROWS", "1 ROWS"),
        ("SELECT * FROM a LIMIT 1 OFFSET 2 ROWS", "ROWS"),
        ("SELECT x FROM a LIMIT 1 BY x", "BY x"),
        ("SELECT * FROM a CROSS APPLY b", "APPLY b"),
        ("SELECT * FROM a OUTER APPLY b", "OUTER APPLY b"),
        ("SELECT * FROM a LEFT SEMI JOIN b ON 1", "SEMI JOIN b ON 1"),
        (
            "SELECT * FROM a FULL OUTER JOIN b ON 1",
            "OUTER JOIN b ON 1",
        ),
        ("SELECT * FROM a LEFT JOIN b WHERE 1", "WHERE 1"),
        ("SELECT * FROM a LEFT JOIN b", ""),
        ("SELECT * FROM a JOIN b USING (x.y)", "y)"),
        ("SELECT DISTINCT ON (x) x FROM a", "ON (x) x FROM a"),
        ("SELECT a.b.c, a.b.c.d FROM a", ".d FROM a"),
        ("SELECT TOP 5 x FROM a", "5 x FROM a"),
        ("SELECT * EXCLUDE (x) FROM a", "EXCLUDE (x) FROM a"),
        ("SELECT a.* AS q FROM a", "AS q FROM a"),
        ("SELECT 1, * FROM a", "* FROM a"),
        ("SELECT SUM(x) FILTER (WHERE y) FROM a", "(WHERE y) FROM a"),
        ("SELECT COUNT(x => 1)", "> 1)"),
        ("SELECT ABS(x ORDER BY x)", "ORDER BY x)"),
        ("SELECT ABS(x SEPARATOR '-')", "SEPARATOR '-')"),
        ("SELECT JSON_OBJECT(NULL ON NULL)", "ON NULL)"),
        ("SELECT ABS(DISTINCT x) FROM a", "DISTINCT x) FROM a"),
        ("SELECT nosuch(DISTINCT x) FROM a", "DISTINCT x) FROM a"),
        ("SELECT IF(ALL 1, 2, 3)", "ALL 1, 2, 3)"),
        ("SELECT BIT_AND(DISTINCT x) FROM a", "DISTINCT x) FROM a"),
        ("SELECT GROUP_CONCAT(ALL x) FROM a", "ALL x) FROM a"),
        (
            "SELECT FIRST_VALUE(DISTINCT x) OVER ()",
            "DISTINCT x) OVER ()",
        ),
        ("SELECT ABS(x) OVER () FROM a", "OVER () FROM a"),
        ("SELECT nosuch(x) OVER w", "OVER w"),
        ("SELECT CHAR(65) OVER ()", "OVER ()"),
        ("SELECT * FROM a WHERE ABS(x) OVER () > 1", "OVER () > 1"),
        ("SELECT ABS(x) IGNORE NULLS FROM a", "IGNORE NULLS FROM a"),
        ("SELECT SUM(x) RESPECT NULLS FROM a", "NULLS FROM a"),
        ("SELECT COUNT(*) IGNORE FROM a", "IGNORE FROM a"),
        ("SELECT ?1", "?1"),
        ("SELECT ? FROM a", "? FROM a"),
        ("SELECT a.('x')", "('x')"),
        ("SELECT a . (1)", "(1)"),
        ("SELECT a.'x'", "'x'"),
        ("SELECT CHAR(DISTINCT 65)", "DISTINCT 65)"),
        ("SELECT CHAR()", ")"),
        ("SELECT INTERVAL 1 DAYS", "DAYS"),
        ("SELECT INTERVAL(1)", ""),
        ("SELECT SUBSTRING()", ")"),
        ("SELECT EXPLAIN", "EXPLAIN"),
        ("EXPLAIN EXPLAIN SELECT 1", "EXPLAIN SELECT 1"),
        ("SELECT 'a' ~ 'b'", "~ 'b'"),
        ("SELECT 'a' ~* 'b'", "~* 'b'"),
        ("SELECT 'a' !~ 'b'", "!~ 'b'"),
        ("SELECT 'a' ~~ 'b'", "~~ 'b'"),
        ("SELECT 1 == 1", "= 1"),
        ("SELECT 1::int", "::int"),
        ("SELECT :a", ":a"),
        ("SELECT ARRAY[1, 2]", "[1, 2]"),
        ("SELECT x[1] FROM a", "[1] FROM a"),
        ("SELECT MAP {'a': 1}", "{'a': 1}"),
        ("SELECT x IS DISTINCT FROM y", "DISTINCT FROM y"),
        ("SELECT x IS NOT DISTINCT FROM y", "DISTINCT FROM y"),
        ("SELECT x ILIKE 'a' FROM a", "'a' FROM a"),
        ("SELECT x NOT NULL FROM a", "NOT NULL FROM a"),
        ("SELECT x LIKE ANY ('a')", "('a')"),
        ("SELECT x = ANY (1)", "1)"),
        ("SELECT x AT TIME ZONE 'UTC'", "TIME ZONE 'UTC'"),
        ("SELECT CAST(x AS TEXT)", "TEXT)"),
        ("SELECT CAST(x AS BIGINT)", "BIGINT)"),
        ("SELECT CAST(x AS VARBINARY(3))", "VARBINARY(3))"),
        ("SELECT CONVERT(x, BLOB)", "BLOB)"),
        ("SELECT CAST(x AS INT[])", "[])"),
        ("SELECT TRY_CAST(x AS INT)", "AS INT)"),
        ("SELECT CEIL(x TO DAY)", "TO DAY)"),
        ("SELECT EXTRACT(EPOCH FROM x)", "EPOCH FROM x)"),
        ("SELECT INT '5'", "INT '5'"),
        ("SELECT DECIMAL(3) '5'", "'5'"),
        ("SELECT * FROM a GROUP BY ALL", "ALL"),
        ("SELECT x FROM a GROUP BY x WITH TOTALS", "TOTALS"),
        ("SELECT * FROM a AS q (m, n)", "(m, n)"),
        ("SELECT * FROM a WITH (NOLOCK)", "WITH (NOLOCK)"),
        ("SELECT * FROM a.b.c", ".c"),
        ("SELECT * FROM f(x)", "(x)"),
        ("SELECT * FROM UNNEST(x)", "(x)"),
        ("SELECT * FROM (a JOIN b) AS q", "AS q"),
        ("SELECT * FROM a LATERAL VIEW f(x) t", "LATERAL VIEW f(x) t"),
        ("SELECT x FROM a MINUS SELECT 1", "SELECT 1"),
        ("SELECT x FROM a UNION BY NAME SELECT 1", "BY NAME SELECT 1"),
        ("SELECT x FROM a |> WHERE 1", "|> WHERE 1"),
        ("SELECT x FROM a FOR JSON AUTO", "JSON AUTO"),
        ("SELECT x FROM a SETTINGS z = 1", "z = 1"),
        ("FROM a SELECT x", "FROM a SELECT x"),
        ("PRAGMA x", "PRAGMA x"),
        ("COPY a FROM 'x'", "COPY a FROM 'x'"),
        ("SELECT 1 AS fetch", "fetch"),
        ("UPDATE a SET x = y::int", "::int"),
        ("UPDATE a SET x = y IS DISTINCT FROM 1", "DISTINCT FROM 1"),
        (
            "INSERT INTO a VALUES (1 IS DISTINCT FROM 2)",
            "DISTINCT FROM 2)",
        ),
        ("SET @v = CAST(1 AS TEXT)", "TEXT)"),
        ("DO 1 IS DISTINCT FROM 2", "DISTINCT FROM 2"),
        (
            "CREATE TABLE n (x INT DEFAULT (CAST(1 AS TEXT)))",
            "TEXT)))",
        ),
        ("SHOW TABLES WHERE x IS DISTINCT FROM 1", "DISTINCT FROM 1"),
        ("EXPLAIN SELECT DISTINCT ON (x) x FROM a", "ON (x) x FROM a"),
    ] {
        let found = near(sql);
        if found.as_deref() != Some(expected) {
            wrong.push(format!("{sql}: {expected:?} is expected, found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_of_other_systems_are_names() {
    for sql in [
        "SELECT * FROM a SEMI JOIN b ON 1",
        "SELECT * FROM a ANTI JOIN b ON 1",
        "SELECT * FROM a FULL JOIN b ON 1",
        "SELECT qualify, sample FROM pivot, unnest WHERE top = array",
        "SELECT x ilike, 1 filter, 2 within FROM a asof",
        "SELECT CEIL(x), FLOOR(x), STRUCT(1), ARRAY(1), LAMBDA(1), OVERLAY(1, 2)",
        "SELECT DATETIME '2020-01-01', JSON \"a\" FROM a",
        "SELECT cast, extract, position, substr, substring, a.trim FROM trim AS a",
        "SELECT array < 1, array << 2, array <> 3 FROM a",
        "SELECT x NOTNULL, $1, $a FROM a MATCH_RECOGNIZE",
        "SELECT COUNT(*) respect, SUM(x) respect FROM a",
        "SELECT COUNT(*) AS respect, respect FROM a GROUP BY respect",
        "SELECT COUNT(*) respect",
        "SELECT * FROM a PARTITION (p) IGNORE INDEX (i)",
        "SELECT SUM(x) OVER global FROM a WINDOW global AS (PARTITION BY materialized)",
    ] {
        assert_eq!(near(sql), None, "{sql}");
    }
}

#[test]
fn aggregates_and_windows_have_what_others_have_not() {
    for sql in [
        "SELECT SUM(DISTINCT x), SUM(ALL x), STD(ALL x), MAX(DISTINCT x), COUNT(DISTINCT x, y)",
        "SELECT GROUP_CONCAT(DISTINCT x ORDER BY x), COUNT(ALL x) OVER (), RANK() OVER w",
        "SELECT LAG(x) RESPECT NULLS OVER (ORDER BY x) FROM a",
    ] {
        assert_eq!(near(sql), None, "{sql}");
    }
}

#[test]
fn operators_are_divided_as_mysql_divides_them() {
    for sql in [
        "SELECT !!1, !~1, ~~1, !~~1",
        "SELECT 1 <@b, 1 ^@b, 1 <@`b c`, 1 <@'b c'",
        "SELECT 1 && 2 AND 3, 1 || 2",
        "SELECT b\"101\"",
        "SELECT --5, 1 --5, ---5",
    ] {
        assert_eq!(near(sql), None, "{sql}");
    }
}

#[test]
fn what_mysql_has_and_mayfly_has_not_is_named() {
    for (sql, what) in [
        ("SELECT MATCH (x) AGAINST ('a') FROM a", "MATCH ... AGAINST"),
        ("SELECT 1 MEMBER OF ('[1]')", "MEMBER OF"),
        (
            "SELECT * FROM JSON_TABLE('[]', '$' COLUMNS (x INT PATH '$')) q",
            "JSON_TABLE",
        ),
        ("SELECT LAG(x) IGNORE NULLS OVER () FROM a", "IGNORE NULLS"),
        (
            "SELECT SUM(x) OVER (ORDER BY y GROUPS 1 PRECEDING) FROM a",
            "GROUPS",
        ),
        (
            "SELECT CAST(x AS UNSIGNED ARRAY) FROM a",
            "CAST to an ARRAY",
        ),
    ] {
        let error = parse(sql).expect_err(sql);
        let expected = format!("This version of MySQL doesn't yet support '{what}'");
        assert_eq!(error.message, expected, "{sql}");
    }
}

#[test]
fn statements_have_what_mysql_has_and_no_more() {
    let mut wrong = Vec::new();
    for (sql, expected) in [
        ("CREATE SCHEMA q AUTHORIZATION x", "AUTHORIZATION x"),
        ("CREATE SCHEMA AUTHORIZATION x", "x"),
        ("CREATE SCHEMA q.x", ".x"),
        ("CREATE SCHEMA q WITH (x = 1)", "WITH (x = 1)"),
        ("CREATE SCHEMA q OPTIONS (x = 1)", "OPTIONS (x = 1)"),
        ("CREATE SCHEMA q CLONE a", "CLONE a"),
        (
            "CREATE SCHEMA q DEFAULT COLLATE utf8mb4_bin CLONE a",
            "CLONE a",
        ),
        ("CREATE OR REPLACE DATABASE q", "DATABASE q"),
        ("CREATE TRANSIENT DATABASE q", "TRANSIENT DATABASE q"),
        ("CREATE DATABASE q DEFAULT", ""),
        ("CREATE DATABASE q DEFAULT CATALOG = 'x'", "CATALOG = 'x'"),
        ("CREATE DATABASE q LOCATION 'x'", "LOCATION 'x'"),
        (
            "CREATE DATABASE q MANAGEDLOCATION 'x'",
            "MANAGEDLOCATION 'x'",
        ),
        ("CREATE DATABASE q CATALOG = 'x'", "CATALOG = 'x'"),
        (
            "CREATE DATABASE q EXTERNAL_VOLUME = 'x'",
            "EXTERNAL_VOLUME = 'x'",
        ),
        ("CREATE DATABASE q COMMENT = 'x'", "COMMENT = 'x'"),
        (
            "CREATE DATABASE q DATA_RETENTION_TIME_IN_DAYS = 1",
            "DATA_RETENTION_TIME_IN_DAYS = 1",
        ),
        (
            "CREATE DATABASE q CHARACTER SET utf8mb4 WITH TAG (x = 'y')",
            "WITH TAG (x = 'y')",
        ),
        ("DROP DATABASE q CASCADE", "CASCADE"),
        ("CREATE TABLE n (x INT) DEFAULT", ""),
        ("CREATE TABLE n (x INT) DEFAULT ENGINE = y", "ENGINE = y"),
        ("CREATE TABLE n (x INT) TYPE = y", "TYPE = y"),
        ("CREATE TABLE n (x INT), ENGINE = y", ", ENGINE = y"),
        ("CREATE TABLE n (x INT) ENGINE = y,", ""),
        ("CREATE TABLE n (x INT) DATA 'y'", "'y'"),
        ("CREATE TABLE n (x INT STORAGE y)", "y)"),
        ("CREATE TABLE n (x INT COLUMN_FORMAT y)", "y)"),
        ("ALTER TABLE n DEFAULT", ""),
        ("ALTER TABLE n ORDER BY x NULLS LAST", "NULLS LAST"),
        ("ALTER TABLE n ORDER BY x + 1", "+ 1"),
        ("INSERT INTO a (x,) VALUES (1)", ") VALUES (1)"),
        (
            "INSERT LOW_PRIORITY HIGH_PRIORITY INTO a VALUES (1)",
            "HIGH_PRIORITY INTO a VALUES (1)",
        ),
        (
            "REPLACE HIGH_PRIORITY INTO a VALUES (1)",
            "HIGH_PRIORITY INTO a VALUES (1)",
        ),
        ("UPDATE a SET p.q.r.s = 1", ".s = 1"),
        ("DELETE p.q.r FROM a", "r FROM a"),
        (
            "LOAD DATA INFILE 'x' INTO TABLE a FIELDS LINES STARTING BY 'x'",
            "LINES STARTING BY 'x'",
        ),
        ("LOAD DATA INFILE 'x' INTO TABLE a LINES (x)", "(x)"),
        ("EXPLAIN FORMAT = TREE a", "a"),
        ("EXPLAIN ANALYZE DROP TABLE a", "DROP TABLE a"),
        ("SHOW FULL VARIABLES", "VARIABLES"),
        ("SHOW FULL GLOBAL STATUS", "GLOBAL STATUS"),
        ("SHOW FULL EXTENDED TABLES", "EXTENDED TABLES"),
        ("SHOW EXTENDED PROCESSLIST", "PROCESSLIST"),
        ("SHOW FULL CREATE TABLE a", "CREATE TABLE a"),
        ("SHOW FUNCTION STATUS FROM x", "FROM x"),
        ("FLUSH", ""),
        ("FLUSH nonsense", "nonsense"),
        ("FLUSH STATUS x", "x"),
        ("FLUSH HOSTS,", ""),
        ("FLUSH TABLES a WITH READ LOCK x", "x"),
        ("LOCK TABLES a", ""),
        ("LOCK TABLES a AS b READ x", "x"),
        ("LOCK a READ", "a READ"),
        ("UNLOCK x", "x"),
        ("UNLOCK TABLES a", "a"),
    ] {
        let found = near(sql);
        if found.as_deref() != Some(expected) {
            wrong.push(format!("{sql}: {expected:?} is expected, found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn options_of_statements_are_read() {
    for sql in [
        "CREATE DATABASE q DEFAULT CHARACTER SET = utf8mb4 COLLATE utf8mb4_bin ENCRYPTION 'N'",
        "CREATE SCHEMA IF NOT EXISTS q DEFAULT ENCRYPTION = 'y';",
        "CREATE TABLE n (x INT STORAGE DISK COLUMN_FORMAT FIXED) ENGINE y, DEFAULT CHARSET utf8mb4",
        "CREATE TABLE n (x INT) DATA DIRECTORY = 'y' COMMENT 'z'",
        "ALTER TABLE n ORDER BY x, n.y DESC, z ASC",
        "INSERT HIGH_PRIORITY IGNORE INTO a () VALUES ()",
        "REPLACE DELAYED a (x, y) VALUES (1, 2)",
        "UPDATE a SET d.a.x = 1, a.x = 2, x = 3",
        "DELETE a, d.b, c.*, d.e.* FROM a JOIN b JOIN c JOIN e",
        "SHOW EXTENDED FULL COLUMNS FROM a",
        "SHOW EXTENDED INDEX FROM a",
        "SHOW FULL PROCESSLIST",
        "SHOW FULL TRIGGERS",
        "FLUSH LOCAL STATUS",
        "FLUSH STATUS, LOGS",
        "FLUSH PRIVILEGES, HOSTS, RELAY LOGS FOR CHANNEL 'x', ENGINE LOGS",
        "FLUSH TABLES",
        "FLUSH NO_WRITE_TO_BINLOG TABLES a, d.b WITH READ LOCK",
        "FLUSH TABLES WITH READ LOCK",
        "FLUSH TABLES a FOR EXPORT",
        "LOCK TABLES a READ, d.b AS c LOW_PRIORITY WRITE, e f READ LOCAL",
        "LOCK INSTANCE FOR BACKUP",
        "UNLOCK TABLES",
    ] {
        assert!(parse(sql).is_ok(), "{sql}: {:?}", parse(sql).err());
    }
    for (sql, code) in [
        ("CREATE SCHEMA q DEFAULT COLLATE 'und:ci'", 1273),
        ("CREATE DATABASE q ENCRYPTION 'x'", 1525),
    ] {
        let error = parse(sql).expect_err(sql);
        assert_eq!(error.code, code, "{sql}: {}", error.message);
    }
}
