//! Rows on standard output.

use crate::program::{mayfly, run};

fn check(arguments: &[&str], sql: &str, expect: &str) {
    let ran = run(arguments, sql);
    assert_eq!(ran.out, expect, "{sql}: {}", ran.err);
    assert_eq!(ran.code, Some(0), "{sql}: {}", ran.err);
}

#[test]
fn tsv_is_what_mysql_b_prints() {
    check(
        &[],
        "SELECT 1 AS a, NULL AS b, 'x' AS c;",
        "a\tb\tc\n1\tNULL\tx\n",
    );
    // Tab, line feed and backslash in a value; the text below reaches the engine as \t \n \\.
    check(&[], r"SELECT 'x\ty\nz\\' AS c;", "c\nx\\ty\\nz\\\\\n");
    check(&[], "SELECT 1 AS a; SELECT 2 AS b;", "a\n1\nb\n2\n");
    // No rows, no header; statements without rows print nothing.
    check(&[], "SELECT 1 AS a FROM DUAL WHERE 1 = 0;", "");
}

#[test]
fn values_that_assign_are_labelled_as_they_are_written() {
    check(
        &[],
        "SELECT @v := a, (@w := 3), @v  + 1, @n := 4 AS n, a FROM (SELECT 1 AS a) t;",
        "@v := a\t(@w := 3)\t@v  + 1\tn\ta\n1\t3\t2\t4\t1\n",
    );
}

#[test]
fn columns_of_one_name_are_all_called_by_it() {
    check(
        &[],
        "CREATE TABLE a (Id INT PRIMARY KEY, x INT); CREATE TABLE b (ID INT PRIMARY KEY, X INT);
         INSERT INTO a VALUES (1, 2); INSERT INTO b VALUES (1, 3);
         SELECT * FROM a JOIN b ON a.id = b.id;
         SELECT * FROM a JOIN b ON a.id = b.id GROUP BY a.id;
         SELECT COUNT(*) AS x, b.* FROM a JOIN b ON a.id = b.id GROUP BY a.id;",
        "Id\tx\tID\tX\n1\t2\t1\t3\nId\tx\tID\tX\n1\t2\t1\t3\nx\tID\tX\n1\t1\t3\n",
    );
}

#[test]
fn stars_spell_names_as_their_tables_do() {
    check(
        &[],
        "CREATE TABLE a (Id INT, x INT); CREATE TABLE b (ID INT, X INT);
         INSERT INTO a VALUES (1, 2); INSERT INTO b VALUES (1, 3);
         SELECT b.*, 1 AS q, a.* FROM a JOIN b ON a.id = b.id;
         SELECT * FROM b WHERE id IN (SELECT id FROM a);
         SELECT * FROM b UNION SELECT * FROM a ORDER BY 1, 2;
         SELECT q.* FROM (SELECT * FROM b) q, a;
         CREATE TABLE c AS SELECT b.*, a.x AS yy FROM a JOIN b ON a.id = b.id; SELECT * FROM c;",
        "ID\tX\tq\tId\tx\n1\t3\t1\t1\t2\nID\tX\n1\t3\nID\tX\n1\t2\n1\t3\n\
         ID\tX\n1\t3\nID\tX\tyy\n1\t3\t2\n",
    );
}

/// As MariaDB 10.11 calls them.
#[test]
fn columns_of_merged_tables_are_called_as_those_call_them() {
    let table = "CREATE TABLE fa (id INT PRIMARY KEY, n INT); INSERT INTO fa VALUES (2, 3);";
    for (query, label) in [
        ("SELECT ID FROM fa", "ID"),
        ("SELECT ID FROM (SELECT id FROM fa) x", "id"),
        ("SELECT x.ID FROM (SELECT id FROM fa ORDER BY id) x", "id"),
        ("SELECT (ID) FROM (SELECT id FROM fa WHERE id > 1) x", "id"),
        ("SELECT A FROM (SELECT id + 0 AS a FROM fa) x", "a"),
        ("SELECT B FROM (SELECT 2 AS b) x", "B"),
        ("SELECT ID FROM (SELECT DISTINCT id FROM fa) x", "ID"),
        ("SELECT ID FROM (SELECT id FROM fa LIMIT 1) x", "ID"),
        ("SELECT ID FROM (SELECT id FROM fa GROUP BY id) x", "ID"),
        ("SELECT M FROM (SELECT MAX(id) AS m FROM fa) x", "M"),
        (
            "SELECT ID FROM (SELECT id, ROW_NUMBER() OVER () AS r FROM fa) x",
            "ID",
        ),
        ("SELECT ID FROM (SELECT id FROM fa UNION SELECT 2) x", "ID"),
        (
            "SELECT iD FROM (SELECT ID FROM (SELECT id FROM fa) y) x",
            "id",
        ),
        ("SELECT ID FROM (SELECT id FROM fa) x GROUP BY ID", "id"),
        ("WITH y AS (SELECT id FROM fa) SELECT ID FROM y", "id"),
        (
            "WITH y AS (SELECT id FROM fa LIMIT 1) SELECT Id FROM y",
            "Id",
        ),
        (
            "WITH y(Foo) AS (SELECT id FROM fa) SELECT fOO FROM y",
            "Foo",
        ),
        ("SELECT ID FROM (SELECT id FROM fa) x UNION SELECT 2", "id"),
    ] {
        check(&[], &format!("{table} {query};"), &format!("{label}\n2\n"));
    }
}

/// As MySQL calls them, where most tables of INFORMATION_SCHEMA are views.
#[test]
fn columns_of_information_are_called_in_capitals() {
    let of_one = "WHERE character_set_name = 'binary'";
    for (query, label) in [
        (
            "SELECT character_set_name FROM information_schema.character_sets",
            "CHARACTER_SET_NAME",
        ),
        (
            "SELECT c.Character_Set_Name FROM information_schema.CHARACTER_SETS c",
            "CHARACTER_SET_NAME",
        ),
        (
            "SELECT DISTINCT (character_set_name) FROM information_schema.character_sets",
            "CHARACTER_SET_NAME",
        ),
        (
            "SELECT character_set_name AS character_set_name FROM information_schema.character_sets",
            "character_set_name",
        ),
        (
            "SELECT max(character_set_name) FROM information_schema.character_sets",
            "max(character_set_name)",
        ),
        // No view.
        (
            "SELECT DISTINCT character_set_name FROM information_schema.collations",
            "character_set_name",
        ),
    ] {
        check(
            &[],
            &format!("{query} {of_one};"),
            &format!("{label}\nbinary\n"),
        );
    }
}

#[test]
fn csv_quotes_what_needs_quotes() {
    check(
        &["--format", "csv"],
        "SELECT 1 AS a, NULL AS b, '' AS c, 'x,y' AS d, 'q\"q' AS e;",
        "a,b,c,d,e\n1,,\"\",\"x,y\",\"q\"\"q\"\n",
    );
    check(
        &["--format", "csv"],
        "SELECT 1 AS a FROM DUAL WHERE 1 = 0;",
        "a\n",
    );
}

#[test]
fn json_is_one_object_a_line() {
    check(
        &["--format=json"],
        "SELECT 1 AS a, NULL AS b, 'x\"y' AS c, 1.50 AS d UNION ALL SELECT 2, 'n', '', 0.25 ORDER BY a;",
        "{\"a\":1,\"b\":null,\"c\":\"x\\\"y\",\"d\":1.50}\n{\"a\":2,\"b\":\"n\",\"c\":\"\",\"d\":0.25}\n",
    );
}

#[test]
fn nested_values_are_json() {
    let dir = tempfile::tempdir().expect("a fresh directory");
    let path = dir.path().join("nested.json");
    let rows = "{\"id\":1,\"n\":{\"a\":1,\"t\":\"x\\\"\\n\\u00e4\"},\"l\":[1.5,2,null],\"o\":[{\"b\":true}]}\n\
                {\"id\":2,\"n\":null,\"l\":[],\"o\":null}\n";
    std::fs::write(&path, rows).expect("the directory can be written");
    let sql = format!("SELECT id, n, l, o FROM '{}' ORDER BY id", path.display());
    let ran = run(&["--format=json", "-e", &sql], "");
    let lines: Vec<serde_json::Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is an object"))
        .collect();
    assert_eq!(lines.len(), 2, "{}", ran.err);
    assert_eq!(
        lines[0],
        serde_json::json!({"id": 1, "n": {"a": 1, "t": "x\"\n\u{e4}"}, "l": [1.5, 2, null],
            "o": [{"b": true}]})
    );
    assert_eq!(
        lines[1],
        serde_json::json!({"id": 2, "n": null, "l": [], "o": null})
    );
    check(
        &["-N", "-e", &sql],
        "",
        "1\t{\"a\": 1, \"t\": \"x\\\\\"\\\\n\u{e4}\"}\t[1.5, 2, null]\t[{\"b\": true}]\n2\tNULL\t[]\tNULL\n",
    );
}

#[test]
fn names_of_columns_can_be_left_out() {
    let sql = "SELECT 1 AS a, 'x' AS long_name;";
    check(&["-N"], sql, "1\tx\n");
    check(&["-N", "--format", "csv"], sql, "1,x\n");
    check(
        &["-N", "--format", "json"],
        sql,
        "{\"a\":1,\"long_name\":\"x\"}\n",
    );
    check(&["-Nt"], sql, "+---+---+\n| 1 | x |\n+---+---+\n");
    check(&["-B"], sql, "a\tlong_name\n1\tx\n");
    check(
        &["-t"],
        "SELECT 1 AS a;",
        "+---+\n| a |\n+---+\n| 1 |\n+---+\n",
    );
    let ran = run(&["-B", "-t"], sql);
    assert_eq!((ran.out.as_str(), ran.code), ("", Some(2)), "{}", ran.err);
}

#[test]
fn table_draws_boxes() {
    check(
        &["--format", "table"],
        "SELECT 7 AS number, 'ab' AS t, NULL AS n;",
        "+--------+----+------+\n\
         | number | t  | n    |\n\
         +--------+----+------+\n\
         |      7 | ab | NULL |\n\
         +--------+----+------+\n",
    );
}

#[test]
fn backslash_g_turns_rows_on_their_side() {
    check(
        &[],
        "SELECT 1 AS a, 'x' AS long_name\\G",
        "*************************** 1. row ***************************\n        a: 1\nlong_name: x\n",
    );
}

#[test]
fn stats_have_the_documented_fields() {
    let ran = run(&["--stats=json"], "SELECT 1 AS a UNION ALL SELECT 2;");
    let stats: serde_json::Value = serde_json::from_str(ran.err.trim()).expect("one JSON object");
    let names: Vec<&str> = stats
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    for name in [
        "elapsed_ms",
        "rows",
        "temp_tables",
        "temp_disk_tables",
        "temp_bytes_written",
        "temp_bytes_read",
        "peak_memory_bytes",
    ] {
        assert!(names.contains(&name), "{name} is missing in {}", ran.err);
    }
    assert_eq!(names.len(), 7);
    assert_eq!(stats["rows"], 2);
    assert!(stats["elapsed_ms"].as_f64().expect("a number") > 0.0);
    let text = run(&["--stats"], "SELECT 1 AS a;");
    assert!(
        text.err.starts_with("-- ") && text.err.contains(" 1 rows, "),
        "{}",
        text.err
    );
}

#[test]
fn a_closed_output_ends_quietly() {
    use std::io::Read;
    use std::process::Stdio;
    let mut child = mayfly()
        .args([
            "-e",
            "SELECT REPEAT('x', 1000) AS a, t.* FROM '../../demo/planes.csv' t",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    let mut first = [0; 1];
    child
        .stdout
        .take()
        .expect("piped")
        .read_exact(&mut first)
        .expect("one byte of the header");
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}
