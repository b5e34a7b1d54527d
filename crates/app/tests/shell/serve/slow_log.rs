//! The slow query log: its text, its rotation, and the tool that reads such logs.

use std::path::Path;
use std::process::Command;

use mysql_async::prelude::Queryable;

use super::running::{Server, code};
use crate::program::run_command;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the log is there")
}

/// The lines of the entry of a statement, without their figures.
fn entry(log: &str, statement: &str) -> Vec<String> {
    let lines: Vec<&str> = log.lines().collect();
    let end = lines.iter().position(|line| line.starts_with(statement));
    let end = end.unwrap_or_else(|| panic!("{statement} is not in\n{log}"));
    let begin = { lines[..end].iter() }.rposition(|line| line.starts_with("# User@Host"));
    let without_figures = |line: &&str| {
        let mut text = String::new();
        for letter in line.chars() {
            match letter.is_ascii_digit() {
                false => text.push(letter),
                true if text.ends_with('9') => {}
                true => text.push('9'),
            }
        }
        text
    };
    let begin = begin.expect("an entry begins with its user");
    lines[begin..=end].iter().map(without_figures).collect()
}

/// `Rows_examined` of the entry of a statement.
fn examined(log: &str, statement: &str) -> u64 {
    let before = &log[..log.find(statement).expect("it is logged")];
    let (_, figure) = before.rsplit_once("Rows_examined: ").expect("a figure");
    let digits = figure.lines().next().expect("a line");
    digits.parse().expect("a number")
}

#[tokio::test]
async fn slow_statements_are_logged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("slow.log");
    let server = Server::start(&["--slow-log", path.to_str().unwrap()]);
    let mut connection = server.connect().await;
    for statement in [
        "SELECT 'not slow'",
        "SET long_query_time = 0, log_slow_verbosity = 'query_plan,warnings'",
        "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, word VARCHAR(20))",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'a')",
        "SELECT word, COUNT(*) FROM t GROUP BY word ORDER BY 2 LIMIT 1",
        "SELECT CAST('1x' AS SIGNED)",
        "SELECT word FROM t WHERE id = 2;",
        "SELECT word FROM t WHERE id = 3;",
    ] {
        connection.query_drop(statement).await.unwrap();
    }
    let slow: Option<(String, u64)> = connection
        .query_first("SHOW SESSION STATUS LIKE 'Slow_queries'")
        .await
        .unwrap();
    assert_eq!(slow.unwrap().1, 7);
    let log = read(&path);
    assert!(!log.contains("not slow"), "{log}");
    assert_eq!(log.matches("# Time: ").count().min(1), 1);
    assert_eq!(log.matches("use `test`;").count(), 1);
    let head = [
        "# User@Host: root[root] @ localhost []",
        "# Thread_id: 9  Schema: test  QC_hit: No",
        "# Query_time: 9.9  Lock_time: 9.9  Rows_sent: 9  Rows_examined: 9",
        "# Rows_affected: 9  Bytes_sent: 9",
    ];
    let grouped = entry(&log, "SELECT word, COUNT(*)");
    let plan = [
        "# Tmp_tables: 9  Tmp_disk_tables: 9  Tmp_table_sizes: 9",
        "# Full_scan: Yes  Full_join: No  Tmp_table: Yes  Tmp_table_on_disk: No",
        "# Filesort: Yes  Filesort_on_disk: No  Merge_passes: 9  Priority_queue: Yes",
        "# Spill_bytes: 9  Mem_peak: 9",
        "SET timestamp=9;",
        "SELECT word, COUNT(*) FROM t GROUP BY word ORDER BY 9 LIMIT 9;",
    ];
    assert_eq!(
        grouped,
        head.iter().chain(&plan).copied().collect::<Vec<_>>()
    );
    // The second one is known by its shape: no plan, the same entry.
    for id in [2, 3] {
        let point = entry(&log, &format!("SELECT word FROM t WHERE id = {id};"));
        assert_eq!(point[..4], head);
        assert!(point[4].starts_with("# Full_scan: No"), "{point:?}");
        assert_eq!(
            examined(&log, &format!("SELECT word FROM t WHERE id = {id};")),
            1
        );
    }
    assert_eq!(examined(&log, "SELECT word, COUNT(*)"), 3);
    let warned = log.find("# Warning 1292 Truncated incorrect INTEGER value: '1x'");
    assert!(warned.is_some(), "{log}");

    connection
        .query_drop("SET log_slow_verbosity = 'explain'")
        .await
        .unwrap();
    connection
        .query_drop("SELECT word FROM t WHERE id = 4")
        .await
        .unwrap();
    connection
        .query_drop("UPDATE t SET word = 'z' WHERE id > 4")
        .await
        .unwrap();
    let log = read(&path);
    let names = "# explain: id\tselect_type\ttable\ttype\tpossible_keys\tkey\tkey_len\tref\trows\t\
                 r_rows\tfiltered\tr_filtered\tExtra";
    let explained = entry(&log, "SELECT word FROM t WHERE id = 4");
    let expected = [
        "#",
        names,
        "# explain: 9\tSIMPLE\tt\tconst\tPRIMARY\tPRIMARY\t9\tconst\t9\tNULL\t9.9\tNULL\tUsing where",
        "#",
    ];
    assert_eq!(explained[4..8], expected);
    let changed = entry(&log, "UPDATE t SET word = 'z' WHERE id > 4");
    assert!(
        changed[6].starts_with("# explain: 9\tUPDATE\tt\trange"),
        "{changed:?}"
    );

    // Moved away and begun anew.
    std::fs::rename(&path, directory.path().join("slow.log.1")).unwrap();
    connection.query_drop("FLUSH SLOW LOGS").await.unwrap();
    connection
        .query_drop("SET log_slow_verbosity = ''")
        .await
        .unwrap();
    connection.query_drop("SELECT 42").await.unwrap();
    let short = read(&path);
    assert!(short.starts_with("mayfly, Version: "), "{short}");
    assert_eq!(entry(&short, "SELECT 42")[..4], head);
    assert_eq!(entry(&short, "SELECT 42").len(), 6);
    connection
        .query_drop("SET GLOBAL slow_query_log = OFF")
        .await
        .unwrap();
    connection.query_drop("SELECT 43").await.unwrap();
    assert!(!read(&path).contains("SELECT 43"));
    // The same by a signal, as a program sends it that moves logs.
    std::fs::rename(&path, directory.path().join("slow.log.2")).unwrap();
    server.signal("HUP");
    while !path.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    connection
        .query_drop("SET GLOBAL slow_query_log = ON")
        .await
        .unwrap();
    connection.query_drop("SELECT 44").await.unwrap();
    assert_eq!(entry(&read(&path), "SELECT 44").len(), 6);
    drop(connection);

    let mut digest = Command::new("pt-query-digest");
    digest
        .arg("--no-version-check")
        .arg(directory.path().join("slow.log.1"));
    if digest.output().is_err() {
        println!("skipped: pt-query-digest is not installed");
        return;
    }
    let ran = run_command(&mut digest, "");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for wanted in [
        "Exec time",
        "Rows examine",
        "Bytes sent",
        "Lock time",
        "Tmp tables",
        "Spill bytes",
        "Filesort",
    ] {
        assert!(
            ran.out.contains(wanted),
            "{wanted} in {}{}",
            ran.out,
            ran.err
        );
    }
}

#[tokio::test]
async fn there_is_no_log_without_a_file() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    let refused = connection
        .query_drop("SET GLOBAL slow_query_log = ON")
        .await;
    assert_eq!(code(&refused.unwrap_err()), 1231);
    connection.query_drop("FLUSH LOGS").await.unwrap();
}
