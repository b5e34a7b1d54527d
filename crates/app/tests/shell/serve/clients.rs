//! A client library against the server: prepared statements, sessions, who may come in, the end.

use std::process::Command;
use std::time::{Duration, Instant};

use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Row, Value, params};

use super::running::{self, Server, code};
use crate::program::{Ran, run_command};

#[tokio::test]
async fn prepared_statements_run_in_their_database() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    for sql in [
        "CREATE DATABASE one",
        "CREATE DATABASE two",
        "CREATE TABLE one.t (a INT)",
        "CREATE TABLE two.t (a INT)",
        "INSERT INTO one.t VALUES (1)",
        "INSERT INTO two.t VALUES (2)",
        "USE one",
    ] {
        connection.query_drop(sql).await.unwrap();
    }
    let found = connection.prep("SELECT a, DATABASE() FROM t WHERE a > ?");
    let found = found.await.unwrap();
    let moved = connection.prep("USE two").await.unwrap();
    connection.query_drop("USE two").await.unwrap();
    for _ in 0..3 {
        let row: Option<(i64, String)> = connection.exec_first(&found, (0,)).await.unwrap();
        assert_eq!(row, Some((1, "one".to_owned())));
        let row: Option<(i64, String)> = connection
            .query_first("SELECT a, DATABASE() FROM t")
            .await
            .unwrap();
        assert_eq!(row, Some((2, "two".to_owned())));
    }
    connection.query_drop("USE test").await.unwrap();
    connection.exec_drop(&moved, ()).await.unwrap();
    let database: Option<String> = connection.query_first("SELECT DATABASE()").await.unwrap();
    assert_eq!(database.as_deref(), Some("test"));
    connection.disconnect().await.unwrap();
}

#[tokio::test]
async fn prepared_statements_take_values_of_all_types() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    connection
        .query_drop(
            "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, big BIGINT UNSIGNED, real8 DOUBLE, \
             money DECIMAL(20,4), name VARCHAR(40), data VARBINARY(40), day DATE, \
             moment DATETIME(6), span TIME(6))",
        )
        .await
        .unwrap();
    let insert = "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let quoted = "it's \\ a \"name\" -- ?";
    let values = vec![
        Value::from(-1),
        Value::from(u64::MAX),
        Value::from(0.1),
        Value::from("12345678901234.5678"),
        Value::from(quoted),
        Value::from(&b"\0\xFF'\\"[..]),
        Value::Date(2024, 2, 29, 0, 0, 0, 0),
        Value::Date(2024, 2, 29, 23, 59, 58, 123_456),
        Value::Time(true, 1, 2, 3, 4, 500_000),
    ];
    // The third time a statement of this shape is known.
    for id in 1..=4 {
        let mut values = values.clone();
        values[0] = Value::from(id);
        connection.exec_drop(insert, values).await.unwrap();
        assert_eq!(connection.affected_rows(), 1);
    }
    let nulls = [vec![Value::from(9)], vec![Value::NULL; 8]].concat();
    connection.exec_drop(insert, nulls).await.unwrap();
    for id in 1..=4 {
        let row: Option<Row> = connection
            .exec_first("SELECT * FROM t WHERE id = ?", (id,))
            .await
            .unwrap();
        let found = row.unwrap().unwrap();
        assert_eq!(found[0], Value::Int(id));
        assert_eq!(found[1], Value::UInt(u64::MAX));
        assert_eq!(found[2], Value::Double(0.1));
        assert_eq!(found[3], Value::Bytes(b"12345678901234.5678".to_vec()));
        assert_eq!(found[4], Value::Bytes(quoted.as_bytes().to_vec()));
        assert_eq!(found[5..], values[5..]);
    }
    let row: Option<Row> = connection
        .exec_first("SELECT * FROM t WHERE id = ?", (9,))
        .await
        .unwrap();
    assert_eq!(row.unwrap().unwrap()[1..], vec![Value::NULL; 8]);
    let ids: Vec<i64> = connection
        .exec(
            "SELECT id FROM t WHERE id > :low AND name = :name ORDER BY id LIMIT :count",
            params! { "low" => 1, "name" => quoted, "count" => 2 },
        )
        .await
        .unwrap();
    assert_eq!(ids, [2, 3]);
    let updated = "UPDATE t SET big = ? - -? WHERE id = ?";
    connection.exec_drop(updated, (5, -3, 1)).await.unwrap();
    let big: Option<u64> = connection
        .query_first("SELECT big FROM t WHERE id = 1")
        .await
        .unwrap();
    assert_eq!(big, Some(2));
    let refused = connection.prep("SELECT nothing FROM t").await.unwrap_err();
    assert_eq!(code(&refused), 1054);
    let refused = connection
        .exec_drop("INSERT INTO t (id) VALUES (?)", (1,))
        .await
        .unwrap_err();
    assert_eq!(code(&refused), 1062);
}

/// `alias=database.table.column` of a column of a result, and its flags.
fn shown(column: &Column) -> String {
    let flags = column.flags() & !ColumnFlags::NUM_FLAG & !ColumnFlags::BINARY_FLAG;
    format!(
        "{}={}.{}.{} {:?}",
        column.table_str(),
        column.schema_str(),
        column.org_table_str(),
        column.org_name_str(),
        flags
    )
}

#[tokio::test]
async fn columns_tell_what_they_show() {
    let mut server = Server::start(&[]);
    let mut connection = server.connect().await;
    connection
        .query_drop(
            "CREATE TEMPORARY TABLE t (Id INT PRIMARY KEY AUTO_INCREMENT, a INT NOT NULL, \
             u INT UNIQUE, k INT, changed DATETIME ON UPDATE NOW(), KEY (k, u))",
        )
        .await
        .unwrap();
    let insert = "INSERT INTO t (a) VALUES (1)";
    connection.query_drop(insert).await.unwrap();
    let key = "NOT_NULL_FLAG | PRI_KEY_FLAG | AUTO_INCREMENT_FLAG | PART_KEY_FLAG";
    let cases = [
        (
            "SELECT id FROM t WHERE id = 1",
            vec![format!("t=test.t.Id ColumnFlags({key})")],
        ),
        (
            "SELECT x.a AS renamed, x.id + 1, k, u, changed FROM t AS x ORDER BY a",
            vec![
                "x=test.t.a ColumnFlags(NOT_NULL_FLAG | NO_DEFAULT_VALUE_FLAG)".to_owned(),
                "=.. ColumnFlags(NOT_NULL_FLAG)".to_owned(),
                "x=test.t.k ColumnFlags(MULTIPLE_KEY_FLAG | PART_KEY_FLAG)".to_owned(),
                "x=test.t.u ColumnFlags(UNIQUE_KEY_FLAG | PART_KEY_FLAG)".to_owned(),
                "x=test.t.changed ColumnFlags(ON_UPDATE_NOW_FLAG)".to_owned(),
            ],
        ),
        (
            "SELECT a, k, id FROM t GROUP BY id",
            vec![
                "t=test.t.a ColumnFlags(NOT_NULL_FLAG | NO_DEFAULT_VALUE_FLAG)".to_owned(),
                "t=test.t.k ColumnFlags(MULTIPLE_KEY_FLAG | PART_KEY_FLAG)".to_owned(),
                format!("t=test.t.Id ColumnFlags({key})"),
            ],
        ),
        (
            "SELECT y FROM (SELECT DISTINCT a AS y FROM t) AS d",
            vec!["d=.d.y ColumnFlags(NOT_NULL_FLAG)".to_owned()],
        ),
        (
            "SELECT a FROM t INTERSECT SELECT a FROM t",
            vec!["=.. ColumnFlags(NOT_NULL_FLAG)".to_owned()],
        ),
    ];
    // The third time a statement of this shape is known.
    for _ in 0..4 {
        for (query, expected) in &cases {
            let rows: Vec<Row> = connection.query(*query).await.unwrap();
            let columns = rows[0].columns_ref();
            let found: Vec<String> = columns.iter().map(shown).collect();
            assert_eq!(&found, expected, "{query}");
        }
    }
    drop(connection);
    server.stop();
}

#[tokio::test]
async fn drivers_are_told_what_they_build_on() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    connection
        .query_drop("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, flag BOOLEAN, body TEXT)")
        .await
        .unwrap();
    connection
        .query_drop("INSERT INTO t VALUES (1, TRUE, 'x')")
        .await
        .unwrap();
    // A comparison is a BIGINT in both protocols, and a declared BOOLEAN a TINYINT.
    let query = "SELECT flag, id > 0, body FROM t WHERE id = 1";
    for _ in 0..4 {
        let text: Row = connection.query_first(query).await.unwrap().unwrap();
        let binary: Row = connection.exec_first(query, ()).await.unwrap().unwrap();
        assert_eq!(binary[1], Value::Int(1));
        for row in [text, binary] {
            let columns = row.columns_ref();
            let types: Vec<ColumnType> = columns.iter().map(Column::column_type).collect();
            assert_eq!(types[0], ColumnType::MYSQL_TYPE_TINY);
            assert_eq!(types[1], ColumnType::MYSQL_TYPE_LONGLONG);
            assert_eq!(columns[2].column_length(), 4 * 65_535);
        }
    }
    // Without a character set of results a TEXT has the length of its own bytes.
    connection
        .query_drop("SET character_set_results = NULL")
        .await
        .unwrap();
    let row: Row = connection.query_first(query).await.unwrap().unwrap();
    assert_eq!(row.columns_ref()[2].column_length(), 65_535);
    // A label ends at 255 bytes, between two characters.
    let long = format!("SELECT '{}', x'00ff'", "\u{20ac}".repeat(100));
    let row: Row = connection.query_first(long).await.unwrap().unwrap();
    assert_eq!(row.columns_ref()[0].name_str(), "\u{20ac}".repeat(85));
    let tls: Vec<(String, String)> = connection.query("SHOW STATUS LIKE 'Ssl_%'").await.unwrap();
    let names = ["Ssl_cipher", "Ssl_version"];
    assert_eq!(tls, names.map(|name| (name.to_owned(), String::new())));
}

#[tokio::test]
async fn several_statements_of_one_text_have_their_results() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    let mut results = connection
        .query_iter("SELECT 1; CREATE TEMPORARY TABLE t (a INT); INSERT INTO t VALUES (1), (2); SELECT a FROM t ORDER BY a;")
        .await
        .unwrap();
    let mut found: Vec<Vec<i64>> = Vec::new();
    while !results.is_empty() {
        found.push(results.collect().await.unwrap());
    }
    drop(results);
    assert_eq!(found, [vec![1], vec![], vec![], vec![1, 2]]);
    // What stands behind a statement that fails does not run.
    let failed = connection
        .query_drop("INSERT INTO t VALUES (3); SELECT b FROM t; INSERT INTO t VALUES (4)")
        .await;
    assert_eq!(code(&failed.unwrap_err()), 1054);
    let count: Option<i64> = connection
        .query_first("SELECT COUNT(*) FROM t")
        .await
        .unwrap();
    assert_eq!(count, Some(3));
}

#[tokio::test]
async fn a_reset_drops_what_the_connection_has() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    let id = connection.id();
    let set = "CREATE TEMPORARY TABLE test.t (a INT); SET @a = 5; SET sql_select_limit = 3; USE information_schema";
    for statement in set.split("; ") {
        connection.query_drop(statement).await.unwrap();
    }
    assert!(connection.reset().await.unwrap());
    let row: (u32, Option<i64>, u64, String) = connection
        .query_first("SELECT CONNECTION_ID(), @a, @@sql_select_limit, DATABASE()")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row, (id, None, u64::MAX, "information_schema".to_owned()));
    let gone = connection
        .query_drop("SELECT * FROM test.t")
        .await
        .unwrap_err();
    assert_eq!(code(&gone), 1146);
    // Temporary tables are seen by their connection only, shared ones by all.
    connection
        .query_drop("CREATE TABLE test.s (a INT)")
        .await
        .unwrap();
    connection
        .query_drop("CREATE TEMPORARY TABLE test.own (a INT)")
        .await
        .unwrap();
    let mut other = server.connect().await;
    other
        .query_drop("INSERT INTO test.s VALUES (1)")
        .await
        .unwrap();
    let hidden = other
        .query_drop("SELECT * FROM test.own")
        .await
        .unwrap_err();
    assert_eq!(code(&hidden), 1146);
}

#[tokio::test]
async fn a_connection_is_killed_by_another() {
    let server = Server::start(&[]);
    let (mut victim, mut killer) = (server.connect().await, server.connect().await);
    let id = victim.id();
    killer.query_drop(format!("KILL QUERY {id}")).await.unwrap();
    victim.query_drop("SELECT 1").await.unwrap();
    killer.query_drop(format!("KILL {id}")).await.unwrap();
    let mut failed = victim.query_drop("SELECT 1").await;
    let started = Instant::now();
    while failed.is_ok() && started.elapsed() < Duration::from_secs(10) {
        failed = victim.query_drop("SELECT 1").await;
    }
    assert!(failed.is_err(), "the connection has ended");
    let gone = killer.query_drop("KILL 4000000").await.unwrap_err();
    assert_eq!(code(&gone), 1094);
    // The server takes its leave after the client has.
    let mut others: Vec<Row> = killer.query("SHOW PROCESSLIST").await.unwrap();
    while others.len() > 1 && started.elapsed() < Duration::from_secs(20) {
        others = killer.query("SHOW PROCESSLIST").await.unwrap();
    }
    assert_eq!(others.len(), 1);
}

#[tokio::test]
async fn users_prove_who_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let users = directory.path().join("users.toml");
    for (name, arguments) in [("anna", &[][..]), ("old", &["--native"])] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mayfly"));
        command
            .args(["user", "add", name, "--users"])
            .arg(&users)
            .args(arguments);
        let ran = run_command(&mut command, "secret\n");
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(ran.err.contains("FLUSH PRIVILEGES"), "{}", ran.err);
    }
    let server = Server::start(&["--users", users.to_str().unwrap()]);
    for name in ["anna", "old", "anna"] {
        let mut connection = Conn::new(server.options(name, "secret")).await.unwrap();
        let user: Option<String> = connection
            .query_first("SELECT CURRENT_USER()")
            .await
            .unwrap();
        assert_eq!(user, Some(format!("{name}@localhost")));
    }
    for (name, password) in [
        ("anna", "wrong"),
        ("anna", ""),
        ("old", "wrong"),
        ("root", ""),
    ] {
        let refused = Conn::new(server.options(name, password)).await.unwrap_err();
        assert_eq!(code(&refused), 1045, "{name}");
    }
    // A file that others can read is refused.
    let open = directory.path().join("open.toml");
    std::fs::write(&open, std::fs::read(&users).unwrap()).unwrap();
    let ran = refused(&["--users", open.to_str().unwrap()]);
    assert!(ran.err.contains("chmod 600"), "{}", ran.err);
    // Its own user needs no password over the socket, but one that it gives must be right.
    let socket = server.socket();
    for (name, password, is_right) in [
        ("root", "", true),
        ("root", "wrong", false),
        ("anna", "secret", true),
        ("anna", "wrong", false),
        ("nobody-known", "", false),
    ] {
        let options = server.options(name, password).socket(socket.to_str());
        match Conn::new(options).await {
            Ok(mut connection) => {
                assert!(is_right, "{name}");
                connection.query_drop("SELECT 1").await.unwrap();
            }
            Err(error) => {
                assert!(!is_right, "{name}: {error}");
                assert_eq!(code(&error), 1045, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn users_change_while_the_server_runs() {
    let directory = tempfile::tempdir().unwrap();
    let users = directory.path().join("users.toml");
    let add = |name: &str, password: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mayfly"));
        command.args(["user", "add", name, "--users"]).arg(&users);
        let ran = run_command(&mut command, &format!("{password}\n"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    };
    add("anna", "first");
    let server = Server::start(&["--users", users.to_str().unwrap()]);
    let mut anna = Conn::new(server.options("anna", "first")).await.unwrap();
    add("anna", "second");
    add("bert", "other");
    // Nothing is read before somebody says so.
    assert!(Conn::new(server.options("anna", "second")).await.is_err());
    anna.query_drop("FLUSH PRIVILEGES").await.unwrap();
    let refused = Conn::new(server.options("anna", "first"))
        .await
        .unwrap_err();
    assert_eq!(code(&refused), 1045);
    Conn::new(server.options("anna", "second")).await.unwrap();
    Conn::new(server.options("bert", "other")).await.unwrap();
    // Who is in stays, and a file that is wrong changes nothing.
    std::fs::write(&users, "nonsense").unwrap();
    let refused = anna.query_drop("FLUSH LOGS, PRIVILEGES").await.unwrap_err();
    assert_eq!(code(&refused), 1105);
    let message = refused.to_string();
    assert!(message.contains(users.to_str().unwrap()), "{message}");
    server.signal("HUP");
    Conn::new(server.options("bert", "other")).await.unwrap();
    std::fs::remove_file(&users).unwrap();
    add("carla", "third");
    server.signal("HUP");
    let started = Instant::now();
    while Conn::new(server.options("carla", "third")).await.is_err() {
        assert!(started.elapsed() < Duration::from_secs(20));
    }
    let refused = Conn::new(server.options("bert", "other"))
        .await
        .unwrap_err();
    assert_eq!(code(&refused), 1045);
}

/// What a server says that does not start with these arguments.
fn refused(arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayfly"));
    command.arg("serve").args(arguments);
    running::refused(command)
}

#[test]
fn a_server_that_others_reach_needs_users() {
    let text = refused(&["--bind", "0.0.0.0"]).err;
    assert!(text.contains("mayfly user add NAME --users FILE"), "{text}");
    let empty = tempfile::NamedTempFile::new().unwrap();
    let arguments = [
        "--bind",
        "0.0.0.0",
        "--users",
        empty.path().to_str().unwrap(),
    ];
    let text = refused(&arguments).err;
    assert!(text.contains("mayfly user add NAME --users FILE"), "{text}");
    let text = refused(&["--secure-file-priv", "/no/such/directory"]).err;
    assert!(text.contains("--secure-file-priv"), "{text}");
    let text = refused(&["--slow-log", "/no/such/directory/slow.log"]).err;
    assert!(text.contains("--slow-log"), "{text}");
}

#[tokio::test]
async fn files_of_the_server_are_not_for_its_clients() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.csv");
    std::fs::write(&file, "a,b\n1,2\n").unwrap();
    let path = file.to_str().unwrap();
    let statements = [
        format!("SELECT * FROM '{path}'"),
        format!("DESCRIBE '{path}'"),
        format!("LOAD DATA INFILE '{path}' INTO TABLE t FIELDS TERMINATED BY ','"),
    ];
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    connection
        .query_drop("CREATE TEMPORARY TABLE t (a VARCHAR(5), b VARCHAR(5))")
        .await
        .unwrap();
    for statement in &statements {
        let refused = connection.query_drop(statement).await.unwrap_err();
        assert_eq!(code(&refused), 1290, "{statement}");
    }
    let local = statements[2].replace("INFILE", "LOCAL INFILE");
    connection
        .query_drop("SET GLOBAL local_infile = 0")
        .await
        .unwrap();
    let refused = connection.query_drop(local).await.unwrap_err();
    assert_eq!(code(&refused), 3948);
    let server = Server::start(&["--secure-file-priv", directory.path().to_str().unwrap()]);
    let mut connection = server.connect().await;
    let rows: Vec<(i64, i64)> = connection.query(&statements[0]).await.unwrap();
    assert_eq!(rows, [(1, 2)]);
    let refused = connection
        .query_drop("SELECT * FROM '/etc/passwd.csv'")
        .await
        .unwrap_err();
    assert_eq!(code(&refused), 1290);
}

#[tokio::test]
async fn there_is_room_for_so_many() {
    let server = Server::start(&[]);
    let mut first = server.connect().await;
    first
        .query_drop("SET GLOBAL max_connections = 2")
        .await
        .unwrap();
    let second = server.connect().await;
    let refused = Conn::new(server.options("root", "")).await.unwrap_err();
    assert_eq!(code(&refused), 1040);
    second.disconnect().await.unwrap();
    let started = Instant::now();
    while let Err(refused) = Conn::new(server.options("root", "")).await {
        assert_eq!(code(&refused), 1040);
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "a place is free again"
        );
    }
}

#[tokio::test]
async fn clients_that_go_leave_nothing() {
    let server = Server::start(&[]);
    let mut watching = server.connect().await;
    let files = server.open_files();
    for round in 0..20 {
        let mut connection = server.connect().await;
        connection
            .query_drop("CREATE TEMPORARY TABLE t AS SELECT 1 AS a, REPEAT('x', 1000) AS b")
            .await
            .unwrap();
        if round % 2 == 0 {
            connection.disconnect().await.unwrap();
        } else {
            // In the middle of a result that is larger than all buffers between.
            let result = connection
                .query_iter("WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
                     SELECT a.i, b.i, REPEAT('x', 100) FROM n a, n b")
                .await
                .unwrap();
            drop(result);
            drop(connection);
        }
    }
    let started = Instant::now();
    loop {
        let connections: Vec<Row> = watching.query("SHOW PROCESSLIST").await.unwrap();
        if connections.len() == 1 && server.open_files() == files {
            break;
        }
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{} connections, {} files where there were {files}",
            connections.len(),
            server.open_files()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_stop_ends_well() {
    let mut server = Server::start(&[]);
    let mut connection = server.connect().await;
    connection
        .query_drop("CREATE TEMPORARY TABLE t (a INT)")
        .await
        .unwrap();
    let stopped = tokio::task::block_in_place(|| server.stop());
    assert_eq!(stopped.code(), Some(0));
    assert!(!server.socket().exists());
    assert!(connection.query_drop("SELECT 1").await.is_err());
}

#[tokio::test]
async fn packets_are_as_long_as_the_connection_found_allowed() {
    let server = Server::start(&[]);
    let mut before = server.connect().await;
    before
        .query_drop("SET GLOBAL max_allowed_packet = 1048576")
        .await
        .unwrap();
    let text = format!("SELECT LENGTH('{}')", "x".repeat(2 << 20));
    let length: Option<u64> = before.query_first(text.as_str()).await.unwrap();
    assert_eq!(length, Some(2 << 20));
    let mut after = server.connect().await;
    let error = after
        .query_drop("SET SESSION max_allowed_packet = 1024")
        .await;
    assert_eq!(code(&error.unwrap_err()), 1621);
    let mut raw = after;
    assert!(raw.query_drop(text.as_str()).await.is_err());
    assert!(raw.query_drop("SELECT 1").await.is_err());
}

#[tokio::test]
async fn who_kills_its_own_connection_is_told_so() {
    let server = Server::start(&["--log-level", "info", "--log-format", "json"]);
    let mut connection = server.connect().await;
    let id = connection.id();
    let error = connection.query_drop(format!("KILL {id}")).await;
    assert_eq!(code(&error.unwrap_err()), 1927);
    assert!(connection.query_drop("SELECT 1").await.is_err());
    let mut other = server.connect().await;
    let error = other.query_drop("KILL QUERY CONNECTION_ID()").await;
    assert_eq!(code(&error.unwrap_err()), 1317);
    other.query_drop("SELECT 1").await.unwrap();
}
