//! A private MariaDB, to ask what the right answer is.
//!
//! The server listens on a socket in its own temporary directory only. A connection is one
//! `mariadb --batch` process; the end of each answer is marked by a sentinel.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use sqllogictest::{DB, DBOutput, DefaultColumnType};

/// The mode that MySQL 8.4 starts with, as far as MariaDB has it.
pub const SQL_MODE: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
                            ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// Literals compare as Mayfly compares: byte by byte, trailing spaces included.
const SET_NAMES: &str = "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin";

/// The longest that a server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server of our own; dropping it ends it and removes its files.
pub struct Server {
    process: Child,
    directory: tempfile::TempDir,
}

impl Server {
    /// Whether MariaDB's programs are installed.
    pub fn is_installed() -> bool {
        ["mariadbd", "mariadb", "mariadb-install-db"]
            .iter()
            .all(|program| {
                let asked = Command::new(program)
                    .arg("--help")
                    .stdin(Stdio::null())
                    .output();
                asked.is_ok()
            })
    }

    /// Starts a server on an empty data directory.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start() -> Server {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let data = directory.path().join("data");
        let installed = Command::new("mariadb-install-db")
            // A server that starts removes what others have in its temporary directory.
            .env("TMPDIR", directory.path())
            .args(["--no-defaults", "--skip-test-db"])
            .arg("--auth-root-authentication-method=normal")
            .arg(format!("--datadir={}", data.display()))
            .args(as_root())
            .output()
            .expect("mariadb-install-db is installed");
        assert!(
            installed.status.success(),
            "{}",
            String::from_utf8_lossy(&installed.stderr)
        );
        let log = std::fs::File::create(directory.path().join("log")).expect("the log can be made");
        let process = Command::new("mariadbd")
            .args(["--no-defaults", "--skip-networking", "--local-infile=1"])
            .args([
                "--character-set-server=utf8mb4",
                "--collation-server=utf8mb4_nopad_bin",
            ])
            .args([
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-buffer-pool-size=64M",
            ])
            .args([
                "--max-heap-table-size=256M",
                "--tmp-table-size=256M",
                "--secure-file-priv=",
                "--group-concat-max-len=1024",
            ])
            .arg(format!("--sql-mode={SQL_MODE}"))
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--tmpdir={}", directory.path().display()))
            .arg(format!("--socket={}", socket(directory.path()).display()))
            .arg(format!(
                "--pid-file={}",
                directory.path().join("pid").display()
            ))
            .args(as_root())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file handle can be copied"))
            .stderr(log)
            .spawn()
            .expect("mariadbd is installed");
        let server = Server { process, directory };
        server.wait_until_up();
        server
    }

    fn wait_until_up(&self) {
        let started = Instant::now();
        loop {
            let made = self.client().args(["-e", "CREATE DATABASE test"]).output();
            if made.expect("the client is installed").status.success() {
                return;
            }
            let log = self.directory.path().join("log");
            assert!(
                started.elapsed() < PATIENCE,
                "mariadbd does not come up: {}",
                std::fs::read_to_string(log).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Empties the database `test`.
    ///
    /// # Panics
    /// If the server refuses.
    pub fn clear(&self) {
        let made = self
            .client()
            .args(["-e", "DROP DATABASE test; CREATE DATABASE test"])
            .output();
        assert!(made.expect("the client is installed").status.success());
    }

    /// The command-line client, connected to this server.
    pub fn client(&self) -> Command {
        let mut client = Command::new("mariadb");
        client
            .args(["--no-defaults", "--user=root", "--local-infile=1"])
            .args(["--init-command", SET_NAMES])
            .arg("--default-character-set=utf8mb4")
            .arg(format!(
                "--socket={}",
                socket(self.directory.path()).display()
            ))
            .stdin(Stdio::null());
        client
    }

    /// Opens a connection to the database `test`.
    ///
    /// # Panics
    /// If the client cannot be started.
    pub fn connect(&self) -> Connection {
        // Errors go where the rows go, so that they stay in order.
        let mut process = Command::new("sh")
            .args([
                "-c",
                "exec \"$@\" 2>&1",
                "sh",
                "mariadb",
                "--no-defaults",
                "--user=root",
            ])
            .args([
                "--batch",
                "--force",
                "--unbuffered",
                "--comments",
                "--local-infile=1",
            ])
            .args(["--init-command", SET_NAMES])
            .arg("--default-character-set=utf8mb4")
            .arg(format!(
                "--socket={}",
                socket(self.directory.path()).display()
            ))
            .arg("test")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the client is installed");
        let input = process.stdin.take().expect("piped");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        Connection {
            process,
            input,
            output,
            statements: 0,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn socket(directory: &Path) -> PathBuf {
    directory.join("socket")
}

/// MariaDB refuses to run as root unless it is told to.
fn as_root() -> Vec<String> {
    let uid = Command::new("id")
        .arg("-u")
        .output()
        .expect("id is part of every system");
    if uid.stdout.trim_ascii() == b"0" {
        vec!["--user=root".to_owned()]
    } else {
        Vec::new()
    }
}

/// One connection to a [`Server`].
pub struct Connection {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    statements: u64,
}

/// An error of MariaDB: its number. Its text differs from MySQL's and is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// MySQL's number.
    pub number: u16,
    /// What the client printed.
    pub text: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {}", self.number)
    }
}

impl std::error::Error for ServerError {}

impl Connection {
    /// Runs one statement and gives its rows as `mariadb --batch` prints them; the first line has
    /// the names of the columns. No lines when there are no rows.
    ///
    /// # Errors
    /// The error that the server answered.
    ///
    /// # Panics
    /// If the client has gone.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, ServerError> {
        self.statements += 1;
        let sentinel = format!("end-of-answer-{}", self.statements);
        let sql = sql.trim_end().trim_end_matches(';');
        // The client prints the sentinel itself: another statement would reset ROW_COUNT().
        write!(self.input, "{sql}\n;\nsystem echo {sentinel}\n")
            .and_then(|()| self.input.flush())
            .expect("the client reads");
        let mut rows = Vec::new();
        let mut error = None;
        loop {
            let mut line = Vec::new();
            let read = self
                .output
                .read_until(b'\n', &mut line)
                .expect("the client writes");
            assert!(read > 0, "the client ended at: {sql}");
            let line = String::from_utf8_lossy(&line)
                .trim_end_matches('\n')
                .to_owned();
            if line == sentinel {
                break;
            }
            match number_of(&line) {
                Some(number) => error = Some(ServerError { number, text: line }),
                None => rows.push(line.split('\t').map(str::to_owned).collect()),
            }
        }
        match error {
            Some(error) => Err(error),
            None => Ok(rows),
        }
    }
}

/// The number of `ERROR 1064 (42000) at line 1: ...`.
fn number_of(line: &str) -> Option<u16> {
    let rest = line.strip_prefix("ERROR ")?;
    let (number, rest) = rest.split_once(' ')?;
    let number = number.parse().ok()?;
    (rest.starts_with('(') || rest.starts_with("at line")).then_some(number)
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl DB for Connection {
    type Error = ServerError;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, ServerError> {
        let mut rows = self.rows(sql)?;
        // What EXECUTE gives is only known from its answer.
        if rows.is_empty() && !gives_rows(sql) {
            return Ok(DBOutput::StatementComplete(0));
        }
        if rows.is_empty() {
            return Ok(DBOutput::Rows {
                types: Vec::new(),
                rows,
            });
        }
        let names = rows.remove(0);
        for cell in rows.iter_mut().flatten() {
            if cell.is_empty() {
                cell.push_str(EMPTY);
            }
        }
        Ok(DBOutput::Rows {
            types: vec![DefaultColumnType::Text; names.len()],
            rows,
        })
    }

    fn engine_name(&self) -> &str {
        "mariadb"
    }
}

/// How SQL logic tests write an empty string.
pub const EMPTY: &str = "(empty)";

/// Whether a statement has a result set.
pub fn gives_rows(sql: &str) -> bool {
    let first = sql.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    let end = first
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(first.len());
    let word = first[..end].to_ascii_uppercase();
    [
        "SELECT", "WITH", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "ANALYZE",
    ]
    .contains(&word.as_str())
}
