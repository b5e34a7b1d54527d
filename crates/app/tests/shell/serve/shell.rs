//! The shell of MySQL or MariaDB against the server.

use std::process::Command;

use super::running::Server;
use crate::program::{Ran, run_command};

/// Runs a script in the installed shell; `None` if there is none.
fn shell(server: &Server, arguments: &[&str], script: &str) -> Option<Ran> {
    let found = ["mariadb", "mysql"].into_iter().find(|name| {
        let found = Command::new(name).arg("--version").output();
        found.is_ok_and(|output| output.status.success())
    });
    let Some(name) = found else {
        println!("skipped: neither mariadb nor mysql is installed");
        return None;
    };
    let mut command = Command::new(name);
    command
        .args(["--no-defaults", "--host=127.0.0.1", "--user=root"])
        .arg(format!("--port={}", server.port))
        .args(arguments);
    Some(run_command(&mut command, script))
}

#[test]
fn a_script_prints_what_it_prints_anywhere() {
    let server = Server::start(&[]);
    let script = "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20),
            price DECIMAL(8,2), at DATETIME, data BLOB);
        INSERT INTO t VALUES (1, 'a\\tb', 1.50, '2024-02-29 12:00:00', x'0041');
        INSERT INTO t (name) VALUES (NULL), ('\u{e4}');
        SELECT * FROM t ORDER BY id;
        SELECT COUNT(*), SUM(price) FROM t;
        SELECT LAST_INSERT_ID(), ROW_COUNT();
        SHOW WARNINGS;
        DROP TABLE t;";
    let Some(ran) = shell(&server, &["-B", "test"], script) else {
        return;
    };
    assert_eq!(ran.err, "");
    assert_eq!(
        ran.out,
        "id\tname\tprice\tat\tdata\n\
         1\ta\\tb\t1.50\t2024-02-29 12:00:00\t\\0A\n\
         2\tNULL\tNULL\tNULL\tNULL\n\
         3\t\u{e4}\tNULL\tNULL\tNULL\n\
         COUNT(*)\tSUM(price)\n3\t1.50\n\
         LAST_INSERT_ID()\tROW_COUNT()\n2\t-1\n"
    );
    assert_eq!(ran.code, Some(0));
}

#[test]
fn errors_have_their_numbers_and_end_the_script() {
    let server = Server::start(&[]);
    let Some(ran) = shell(&server, &[], "SELECT 1; SELECT * FROM nothing; SELECT 2;") else {
        return;
    };
    assert_eq!(ran.out, "1\n1\n");
    // MariaDB's shell says the statement first.
    let error = "ERROR 1146 (42S02) at line 1: Table 'test.nothing' doesn't exist\n";
    assert!(ran.err.ends_with(error), "{}", ran.err);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn the_status_of_a_connection_is_shown() {
    let server = Server::start(&[]);
    let Some(ran) = shell(&server, &["test"], "status") else {
        return;
    };
    assert_eq!(ran.err, "");
    for wanted in [
        "Mayfly",
        "Current database:\ttest",
        "root@localhost",
        "Uptime:",
    ] {
        assert!(ran.out.contains(wanted), "{wanted} in {}", ran.out);
    }
}

#[test]
fn a_client_sends_its_own_files() {
    let server = Server::start(&[]);
    let directory = tempfile::tempdir().expect("a fresh directory");
    let file = directory.path().join("rows.csv");
    let rows: String = (0..60_000)
        .map(|row| format!("{row},text {row}\n"))
        .collect();
    std::fs::write(&file, &rows).expect("a fresh directory takes it");
    let load = |file: &str| {
        format!("LOAD DATA LOCAL INFILE '{file}' INTO TABLE t FIELDS TERMINATED BY ','")
    };
    let path = file.to_str().expect("a plain name");
    // What an earlier row has in its key is left out, and a column that is not there is an error
    // before the file is read.
    let script = format!(
        "CREATE TEMPORARY TABLE t (a INT PRIMARY KEY, b VARCHAR(20)); INSERT INTO t VALUES (7, 'old');
        {load}; SHOW WARNINGS;
        SELECT COUNT(*), SUM(a), SUM(LENGTH(b)), MAX(b) FROM t; {load} (a, c);",
        load = load(path)
    );
    let Some(ran) = shell(&server, &["--local-infile=1", "test"], &script) else {
        return;
    };
    let bytes: usize = rows
        .lines()
        .map(|row| row.split(',').nth(1).map_or(0, str::len))
        .sum();
    let expect = format!(
        "Level\tCode\tMessage\nWarning\t1062\tDuplicate entry '7' for key 'PRIMARY'\n\
         COUNT(*)\tSUM(a)\tSUM(LENGTH(b))\tMAX(b)\n60000\t{}\t{}\ttext 9999\n",
        60_000_u64 * 59_999 / 2,
        bytes - "text 7".len() + "old".len()
    );
    assert_eq!(ran.out, expect);
    assert!(ran.err.contains("ERROR 1054 (42S22)"), "{}", ran.err);
    // A client that does not allow it, and one that has no such file.
    let create = "CREATE TEMPORARY TABLE t (a INT, b TEXT);";
    let script = format!("{create} {}", load(path));
    let ran = shell(&server, &["--local-infile=0", "test"], &script).expect("it ran before");
    assert!(ran.err.contains("ERROR"), "{}", ran.err);
    let script = format!("{create} {}; SELECT COUNT(*) FROM t", load("/no/such/file"));
    let ran = shell(&server, &["--local-infile=1", "--force", "test"], &script);
    let ran = ran.expect("it ran before");
    assert!(ran.err.contains("/no/such/file"), "{}", ran.err);
    assert_eq!(ran.out, "COUNT(*)\n0\n");
}

#[test]
fn a_dump_makes_the_same_tables() {
    let server = Server::start(&[]);
    let script = "CREATE DATABASE copy; CREATE TABLE one (id INT PRIMARY KEY AUTO_INCREMENT, t TEXT, d
            DECIMAL(8,2), b BLOB, at DATETIME(3), e ENUM('a','b') DEFAULT 'b', KEY (d)) COMMENT='it''s';
        INSERT INTO one (t, d, b, at) VALUES ('q''uote\\n\\\\', 1.5, x'00FF27', '2024-01-02 03:04:05.678'),
            (NULL, NULL, NULL, NULL);
        CREATE TABLE two (a BIGINT UNSIGNED, f DOUBLE, CHECK (f <> 2));
        INSERT INTO two VALUES (18446744073709551615, 0.1), (0, 1e300);
        CREATE VIEW three AS SELECT id, d AS x /* not the text */ FROM one WHERE d > 1 WITH CHECK OPTION;
        CREATE SQL SECURITY INVOKER VIEW four (p) AS SELECT x FROM three";
    let Some(made) = shell(&server, &["test"], script) else {
        return;
    };
    assert_eq!((made.out.as_str(), made.err.as_str()), ("", ""));
    let dumped = ["mariadb-dump", "mysqldump"].into_iter().find_map(|name| {
        let mut command = Command::new(name);
        command
            .args([
                "--no-defaults",
                "--host=127.0.0.1",
                "--user=root",
                "--hex-blob",
            ])
            .args([format!("--port={}", server.port).as_str(), "test"]);
        command
            .output()
            .is_ok()
            .then(|| run_command(&mut command, ""))
    });
    let dumped = dumped.expect("it comes with the shell");
    assert_eq!(
        (dumped.code, dumped.err.as_str()),
        (Some(0), ""),
        "{}",
        dumped.out
    );
    let loaded = shell(&server, &["copy"], &dumped.out).expect("it ran before");
    assert_eq!((loaded.code, loaded.err.as_str()), (Some(0), ""));
    let all = "SHOW CREATE TABLE one; SHOW CREATE TABLE two; SELECT id, t, d, HEX(b), at, e FROM one; SELECT * FROM two; \
               SHOW CREATE VIEW three; SHOW CREATE TABLE four; SELECT * FROM four";
    let [old, new] = ["test", "copy"].map(|database| shell(&server, &[database], all));
    assert_eq!(
        old.expect("it ran before").out,
        new.expect("it ran before").out
    );
}
