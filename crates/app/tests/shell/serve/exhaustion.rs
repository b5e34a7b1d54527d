//! A server that the system gives no descriptor or no thread any more: statements that need one
//! fail with MySQL's error, all others go on, and so does everything when there are some again.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use mayfly_testkit::repository;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::running::{Server, code};
use crate::program::run_command;

/// What a system has more of than a server needs.
const PLENTY: u64 = 1024;
/// Whom the processes of no machine belong to.
const NOBODY_ELSE: u32 = 61_234;
/// A user whose password has been seen when threads are missing, and those whose has not.
const FIRST: &str = "ann";
const LATE: [&str; 2] = ["bob", "cat"];

/// Rows that take several times the memory of these servers.
const SPILLED: &str = "SELECT COUNT(*), MAX(h), SUM(c) FROM (SELECT h, COUNT(*) c FROM \
                       (SELECT REPEAT(MD5(a.i * 40000 + b.i), 4) h FROM few a, many b) x \
                       GROUP BY h) g";

async fn tables(connection: &mut Conn, directory: &Path) {
    let lines: String = (0..1000).map(|n| format!("{n},word {n}\n")).collect();
    std::fs::write(directory.join("rows.csv"), format!("n,word\n{lines}")).expect("a file");
    let demo = repository().join("demo/flights.parquet");
    std::fs::copy(demo, directory.join("flights.parquet")).expect("a file");
    for sql in [
        "SET SESSION cte_max_recursion_depth = 100000",
        "CREATE TABLE few (i INT PRIMARY KEY)",
        "INSERT INTO few VALUES (1), (2), (3), (4), (5)",
        "CREATE TABLE many (i INT)",
        "INSERT INTO many WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM n \
         WHERE i < 39999) SELECT i FROM n",
    ] {
        connection.query_drop(sql).await.expect(sql);
    }
}

/// The number of the error that a statement ends with; 0 if it ends well.
async fn ends(connection: &mut Conn, sql: &str) -> u16 {
    match connection.query::<Row, _>(sql).await {
        Ok(_) => 0,
        Err(error) => {
            println!("{sql}: {error}");
            code(&error)
        }
    }
}

/// What needs neither descriptors nor threads.
async fn goes_on(connection: &mut Conn) {
    for sql in [
        "SELECT i FROM few WHERE i = 3",
        "SELECT i % 7, COUNT(*) FROM many GROUP BY 1 ORDER BY 2, 1",
        "INSERT INTO few VALUES (6)",
        "UPDATE few SET i = 7 WHERE i = 6",
        "DELETE FROM few WHERE i = 7",
        "SHOW PROCESSLIST",
    ] {
        assert_eq!(ends(connection, sql).await, 0, "{sql}");
    }
    let count: Option<u64> = connection
        .query_first("SELECT COUNT(*) FROM few")
        .await
        .expect("it goes on");
    assert_eq!(count, Some(5));
}

/// What needs one or the other.
fn needy(directory: &Path, outfile: &str) -> [String; 6] {
    let directory = directory.display();
    [
        format!("SELECT COUNT(*), SUM(n) FROM '{directory}/rows.csv'"),
        format!("SELECT COUNT(*), MAX(dep_time) FROM '{directory}/flights.parquet'"),
        format!("SELECT * FROM few INTO OUTFILE '{directory}/{outfile}'"),
        "SELECT SLEEP(0.001)".to_owned(),
        SPILLED.to_owned(),
        "SELECT SLEEP(0.001), COUNT(*) FROM few".to_owned(),
    ]
}

#[tokio::test]
async fn without_descriptors() {
    let directory = tempfile::tempdir().expect("a fresh directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayfly"));
    command.args(["serve", "--memory", "8M", "--secure-file-priv"]);
    command.arg(directory.path());
    let server = Server::start_command(command, directory).expect("it was built");
    let directory = server.directory.path().to_owned();
    let mut connection = server.connect().await;
    tables(&mut connection, &directory).await;
    for of_spilled in [1026, 0] {
        server.limit("nofile", 1);
        goes_on(&mut connection).await;
        let [text, parquet, outfile, sleep, spilled, sleeps] = needy(&directory, "a.txt");
        for (sql, number) in [
            (&text, 1024),
            (&parquet, 1024),
            (&outfile, 1),
            (&sleep, 0),
            (&spilled, of_spilled),
            (&sleeps, 0),
        ] {
            assert_eq!(ends(&mut connection, sql).await, number, "{sql}");
        }
        goes_on(&mut connection).await;
        // Who comes now is served when there are descriptors.
        let options = server.options("root", "");
        let late = tokio::spawn(async move {
            let mut late = Conn::new(options).await.expect("it waits");
            goes_on(&mut late).await;
        });
        server.limit("nofile", PLENTY);
        late.await.expect("it is served");
        for sql in needy(&directory, "b.txt") {
            assert_eq!(ends(&mut connection, &sql).await, 0, "{sql}");
        }
        goes_on(&mut connection).await;
        std::fs::remove_file(directory.join("b.txt")).expect("it was written");
    }
}

/// A copy of the program that runs as a user without other processes, so that its threads can be
/// counted: what it is called, and the command to add arguments to.
fn alone(directory: &Path, before: &[&str]) -> std::io::Result<Command> {
    let program = directory.join("mayfly");
    std::fs::copy(env!("CARGO_BIN_EXE_mayfly"), &program)?;
    std::fs::set_permissions(directory, Permissions::from_mode(0o755))?;
    let mut words = before
        .iter()
        .map(AsRef::as_ref)
        .chain([program.as_os_str()]);
    let mut command = Command::new(words.next().expect("there is the program"));
    command.args(words);
    // Root has no limit.
    if std::fs::metadata("/proc/self")?.uid() == 0 {
        command.uid(NOBODY_ELSE).gid(NOBODY_ELSE);
        chown(directory, Some(NOBODY_ELSE), Some(NOBODY_ELSE))?;
    }
    Ok(command)
}

/// A server whose threads can be counted, with its users.
fn start_alone() -> std::io::Result<Server> {
    let directory = tempfile::tempdir()?;
    let users = directory.path().join("users.toml");
    for name in [FIRST].iter().chain(&LATE) {
        let mut add = Command::new(env!("CARGO_BIN_EXE_mayfly"));
        add.args(["user", "add", name, "--users"]).arg(&users);
        let ran = run_command(&mut add, "secret\n");
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let mut command = alone(directory.path(), &[])?;
    let owner = Some(std::fs::metadata(directory.path())?.uid());
    chown(&users, owner, None)?;
    command.args(["serve", "--memory", "8M", "--secure-file-priv"]);
    command.arg(directory.path()).arg("--users").arg(&users);
    Server::start_command(command, directory)
}

#[test]
fn a_start_without_threads_is_an_error() {
    let directory = tempfile::tempdir().expect("a fresh directory");
    let command = alone(directory.path(), &["prlimit", "--nproc=1"]);
    let mut command = match command {
        Ok(command) => command,
        Err(reason) => {
            println!("skipped: no program of another user: {reason}");
            return;
        }
    };
    let ran = run_command(command.args(["sql", "-e", "SELECT 1"]), "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("Can't create a new thread"), "{ran:?}");
    assert!(!ran.err.contains("panicked"), "{ran:?}");
}

#[tokio::test]
async fn without_threads() {
    let server = match start_alone() {
        Ok(server) => server,
        Err(reason) => {
            println!("skipped: no server of another user: {reason}");
            return;
        }
    };
    let directory = server.directory.path().to_owned();
    let mut connection = Conn::new(server.options(FIRST, "secret"))
        .await
        .expect("she is known");
    tables(&mut connection, &directory).await;
    for (name, of_spilled) in LATE.into_iter().zip([1026, 0]) {
        server.limit("nproc", 1);
        goes_on(&mut connection).await;
        let [text, parquet, outfile, sleep, spilled, sleeps] = needy(&directory, "a.txt");
        // More often than there are workers.
        for _ in 0..3 {
            assert_eq!(ends(&mut connection, &text).await, 0);
            assert_eq!(ends(&mut connection, &parquet).await, 0);
            assert_eq!(ends(&mut connection, &sleep).await, 1135);
            assert_eq!(ends(&mut connection, &sleeps).await, 1135);
        }
        assert_eq!(ends(&mut connection, &outfile).await, 0);
        assert_eq!(ends(&mut connection, &spilled).await, of_spilled);
        goes_on(&mut connection).await;
        // Clients come as before; a password that is new is looked at on a thread.
        let mut other = Conn::new(server.options(FIRST, "secret"))
            .await
            .expect("it is remembered");
        goes_on(&mut other).await;
        let refused = Conn::new(server.options(name, "secret")).await;
        let refused = refused.expect_err("there is no thread");
        assert_eq!(code(&refused), 1135, "{refused}");
        goes_on(&mut other).await;
        server.limit("nproc", PLENTY);
        for sql in needy(&directory, "b.txt") {
            assert_eq!(ends(&mut connection, &sql).await, 0, "{sql}");
        }
        Conn::new(server.options(name, "secret"))
            .await
            .expect("there are threads");
        for file in ["a.txt", "b.txt"] {
            std::fs::remove_file(directory.join(file)).expect("it was written");
        }
    }
}
