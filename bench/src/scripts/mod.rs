//! Measures scripts: lines of many statements, each line timed, in one connection.
//!
//! Owns: what a contender is, how it is opened, the order of turns, the comparison of answers.
//! Never: knows the statements of a benchmark.
//!
//! A turn is one script from an empty connection to its end. Contenders take turns; one that has
//! used up its share of time gets no further turn, and one that fails is not asked again.

mod connection;
mod embedded;
mod process;
pub(crate) mod sheet;
mod turn;
pub(crate) mod wire;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::args::SystemName;
use crate::child::Watch;
use crate::error::BenchError;
use crate::results::{Results, median};
use crate::runner::Settings;
use crate::state::State;
use crate::systems::server::{DATABASE, Flavour, Serve, Server, Start};
use crate::systems::{Failure, first_line, size_option};

use connection::{Connection, Usage};
pub(crate) use embedded::run as run_embedded;
use process::{Framing, Process};
pub(crate) use turn::{End, LineTime, Turn};

/// The Python side of SQLite and DuckDB.
const DRIVER: &str = include_str!("../../drivers/script.py");
/// What each storage engine of a server may keep in memory.
const SERVER_MEMORY: &str = "1G";

/// Which words a system has for a temporary table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Keys inside CREATE TABLE, followed by these options.
    MySql(&'static str),
    /// Keys in statements of their own.
    Standard,
}

/// How statements reach a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Piped into `mayfly sql`.
    Shell,
    /// `Session::execute` in a child process.
    Embedded,
    /// Packets of the MySQL protocol to a server, by our own client.
    Wire(Flavour),
    /// The same to `mayfly serve`.
    Served,
    /// Piped into the `mariadb` client of a server.
    Client,
    /// SQLite's Python module, with its temporary tables in `MEMORY` or `FILE`; each line one
    /// transaction or each statement.
    Sqlite {
        store: &'static str,
        transaction: bool,
    },
    /// DuckDB's Python package.
    DuckDb,
}

/// One system with one way to run scripts.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    pub(crate) label: &'static str,
    pub(crate) system: SystemName,
    pub(crate) way: Way,
    pub(crate) dialect: Dialect,
    pub(crate) memory_bytes: u64,
    /// It runs one of so many statements; its times are per operation anyway.
    pub(crate) divisor: u64,
}

/// Statements that are timed together.
pub(crate) struct Line {
    /// Name in the tables; none for preparation.
    pub(crate) name: Option<&'static str>,
    /// By which its time is divided.
    pub(crate) operations: u64,
    pub(crate) statements: Box<dyn Fn() -> Vec<String>>,
    /// A query after it and the one row that it must give.
    pub(crate) check: Option<(String, String)>,
}

/// Runs scripts, as the runner of cells runs cells.
pub(crate) struct Scripts<'a> {
    settings: &'a Settings,
    chosen: &'a [SystemName],
    state: State<Turn>,
    /// The servers that were started, each for all of its connections.
    servers: Vec<(ServerKey, Server)>,
}

/// What one server differs in from another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerKey {
    Peer(Flavour),
    Mayfly { memory_bytes: u64 },
}

impl<'a> Scripts<'a> {
    pub(crate) fn new(
        settings: &'a Settings,
        chosen: &'a [SystemName],
        state: State<Turn>,
        results: &mut Results,
    ) -> Self {
        for system in [
            SystemName::Mayfly,
            SystemName::Mariadb,
            SystemName::Mysql,
            SystemName::Sqlite,
            SystemName::Duckdb,
        ] {
            if chosen.is_empty() || chosen.contains(&system) {
                let version = version(system).unwrap_or_else(|reason| format!("skipped: {reason}"));
                println!("{}: {version}", system.label());
                results.machine.push((system.label().to_owned(), version));
            }
        }
        Self {
            settings,
            chosen,
            state,
            servers: Vec::new(),
        }
    }

    /// Whether a script is wanted.
    pub(crate) fn wanted(&self, script: &str) -> bool {
        let only = self.settings.only.as_ref();
        only.is_none_or(|only| script.contains(only.as_str()))
    }

    /// Runs a script on all contenders in turns; `lines` makes it in the words of each.
    pub(crate) fn script(
        &mut self,
        script: &str,
        contenders: &[Contender],
        lines: &dyn Fn(&Contender) -> Vec<Line>,
        results: &mut Results,
    ) -> Result<(), BenchError> {
        println!("\n{script}");
        let wanted = |contender: &&Contender| {
            self.chosen.is_empty() || self.chosen.contains(&contender.system)
        };
        let mut waiting: Vec<(&Contender, f64)> = contenders
            .iter()
            .filter(wanted)
            .map(|contender| (contender, 0.0))
            .collect();
        for run in 1..=self.settings.runs {
            let mut left = Vec::new();
            for (contender, spent_s) in waiting {
                let kept = self.state.find(|turn: &Turn| {
                    turn.script == script && turn.contender == contender.label && turn.run == run
                });
                let turn = if let Some(turn) = kept {
                    turn
                } else {
                    let turn = Turn {
                        script: script.to_owned(),
                        contender: contender.label.to_owned(),
                        system: contender.system,
                        run,
                        memory_bytes: contender.memory_bytes,
                        end: self.turn(contender, lines(contender)),
                    };
                    print_turn(&turn);
                    self.state.keep(&turn)?;
                    turn
                };
                if let Some(seconds) = turn.seconds()
                    && spent_s + seconds <= self.settings.share_s
                {
                    left.push((contender, spent_s + seconds));
                }
                results.turns.push(turn);
            }
            waiting = left;
        }
        Ok(())
    }

    fn turn(&mut self, contender: &Contender, lines: Vec<Line>) -> End {
        let mut connection = match self.open(contender) {
            Ok(connection) => connection,
            Err(Failure::Skipped(reason)) => return End::Skipped(reason),
            Err(failure) => return End::Failed(failure.reason()),
        };
        let mut times = Vec::new();
        for line in lines {
            match self.line(connection.as_mut(), &line) {
                Ok(time) => times.extend(time),
                Err(reason) => {
                    let name = line.name.unwrap_or("preparation");
                    return match reason.strip_prefix("skipped: ") {
                        Some(reason) => End::Skipped(reason.to_owned()),
                        None => End::Failed(format!("{name}: {reason}")),
                    };
                }
            }
        }
        let usage = connection.usage();
        End::Measured {
            lines: times,
            peak_bytes: usage.peak_bytes,
            anonymous_bytes: usage.anonymous_bytes,
        }
    }

    fn line(
        &self,
        connection: &mut dyn Connection,
        line: &Line,
    ) -> Result<Option<LineTime>, String> {
        let statements = (line.statements)();
        let before = connection.usage();
        let elapsed = connection.run(&statements)?;
        let after = connection.usage();
        let check = line.check.as_ref().filter(|_| self.settings.check);
        let wrong = match check {
            None => None,
            Some((query, expected)) => {
                let answer = connection.ask(query)?;
                (answer != *expected).then(|| format!("{answer} instead of {expected}"))
            }
        };
        Ok(line.name.map(|name| LineTime {
            line: name.to_owned(),
            operations: line.operations,
            seconds: elapsed.as_secs_f64(),
            read_bytes: after.read_bytes - before.read_bytes,
            written_bytes: after.written_bytes - before.written_bytes,
            checked: check.is_some(),
            wrong,
        }))
    }

    /// Opens a connection, and before it the server that it needs.
    pub(crate) fn open(&mut self, contender: &Contender) -> Result<Box<dyn Connection>, Failure> {
        version(contender.system).map_err(Failure::Skipped)?;
        let settings = self.settings;
        let this = || std::env::current_exe().map_err(|error| Failure::Skipped(error.to_string()));
        let python = |mut request: serde_json::Value| {
            request["memory_bytes"] = json!(contender.memory_bytes);
            request["threads"] = json!(settings.threads);
            request["temp_dir"] = json!(settings.temp_dir);
            let mut command = Command::new("python3");
            command.args(["-c", DRIVER, &request.to_string()]);
            command
        };
        let (command, framing) = match contender.way {
            Way::Wire(flavour) => return self.wire(ServerKey::Peer(flavour)),
            Way::Served => {
                let memory_bytes = contender.memory_bytes;
                return self.wire(ServerKey::Mayfly { memory_bytes });
            }
            Way::Client => {
                let server = self.server(ServerKey::Peer(Flavour::MariaDb));
                let server = server.map_err(Failure::Failed)?;
                let connection = Client::open(server, settings.timeout).map_err(Failure::Failed)?;
                return Ok(Box::new(connection));
            }
            Way::Shell => {
                let mut command = Command::new(this()?);
                command.args(["sql", "--skip-column-names", "--format", "tsv"]);
                command.args(["--memory", &size_option(contender.memory_bytes)]);
                command.args(["--threads", &settings.threads.to_string()]);
                command.arg("--temp-dir").arg(&settings.temp_dir);
                (command, Framing::Text)
            }
            Way::Embedded => {
                let request = embedded::Request {
                    memory_bytes: contender.memory_bytes,
                    threads: settings.threads,
                    temp_dir: settings.temp_dir.clone(),
                };
                let mut command = Command::new(this()?);
                command.args(["bench", "--embedded", &json!(request).to_string()]);
                (command, Framing::Driven)
            }
            Way::Sqlite { store, transaction } => {
                let request =
                    json!({ "system": "sqlite", "store": store, "transaction": transaction });
                (python(request), Framing::Driven)
            }
            Way::DuckDb => {
                let request = json!({ "system": "duckdb", "transaction": false });
                (python(request), Framing::Driven)
            }
        };
        let process =
            Process::start(command, framing, settings.timeout).map_err(Failure::Skipped)?;
        Ok(Box::new(process))
    }

    fn wire(&mut self, key: ServerKey) -> Result<Box<dyn Connection>, Failure> {
        let connection = self.server(key).and_then(Wire::open);
        Ok(Box::new(connection.map_err(Failure::Failed)?))
    }

    fn server(&mut self, key: ServerKey) -> Result<&Server, String> {
        let settings = self.settings;
        let found = self.servers.iter().position(|(found, _)| *found == key);
        let index = match found {
            Some(index) => index,
            None => {
                let server = match key {
                    ServerKey::Peer(flavour) => {
                        start(flavour, &settings.cache_dir, &settings.temp_dir)?
                    }
                    ServerKey::Mayfly { memory_bytes } => Server::serve(&Serve {
                        memory_bytes,
                        threads: settings.threads,
                        temp_io: None,
                        temp_dir: &settings.temp_dir,
                        files: None,
                    })?,
                };
                self.servers.push((key, server));
                self.servers.len() - 1
            }
        };
        Ok(&self.servers[index].1)
    }
}

fn start(flavour: Flavour, cache_dir: &Path, temp_dir: &Path) -> Result<Server, String> {
    let name = match flavour {
        Flavour::MariaDb => "mariadb",
        Flavour::MySql => "mysql",
    };
    Server::start(&Start {
        flavour,
        data_dir: &cache_dir.join(name),
        temp_dir,
        options: vec![
            format!("--innodb-buffer-pool-size={SERVER_MEMORY}"),
            format!("--key-buffer-size={SERVER_MEMORY}"),
            format!("--loose-aria-pagecache-buffer-size={SERVER_MEMORY}"),
            format!("--max-heap-table-size={SERVER_MEMORY}"),
            format!("--tmp-table-size={SERVER_MEMORY}"),
            // MyISAM and Aria keep two files of each temporary table open.
            "--open-files-limit=32768".to_owned(),
        ],
        cap_bytes: None,
    })
}

/// The version of a system, or why it cannot run here.
fn version(system: SystemName) -> Result<String, String> {
    match system {
        SystemName::Mayfly => Ok(env!("CARGO_PKG_VERSION").to_owned()),
        SystemName::Mariadb => Flavour::MariaDb.version(),
        SystemName::Mysql => Flavour::MySql.version(),
        SystemName::Sqlite => first_line(
            "python3",
            &["-c", "import sqlite3; print(sqlite3.sqlite_version)"],
        ),
        SystemName::Duckdb => first_line(
            "python3",
            &["-c", "import duckdb; print(duckdb.__version__)"],
        )
        .map_err(|_| "the Python package `duckdb` is not installed".to_owned()),
        SystemName::Datafusion => Err("it has no temporary tables".to_owned()),
    }
}

/// A server behind our own client.
struct Wire {
    client: wire::Client,
    watch: Watch,
}

impl Wire {
    fn open(server: &Server) -> Result<Self, String> {
        let client = wire::Client::connect(&server.socket, DATABASE)?;
        server.forget_peak();
        let watch = Watch::new(server.process());
        Ok(Self { client, watch })
    }
}

impl Connection for Wire {
    fn run(&mut self, statements: &[String]) -> Result<Duration, String> {
        let start = std::time::Instant::now();
        for statement in statements {
            self.client.query(statement)?;
        }
        Ok(start.elapsed())
    }

    fn ask(&mut self, query: &str) -> Result<String, String> {
        let mut rows = self.client.query(query)?;
        rows.pop().ok_or_else(|| "no row".to_owned())
    }

    fn usage(&mut self) -> Usage {
        self.watch.look();
        Usage::of(&self.watch)
    }
}

/// A server behind its own client, which gets the statements as text.
struct Client {
    process: Process,
    watch: Watch,
}

impl Client {
    fn open(server: &Server, timeout: Duration) -> Result<Self, String> {
        let mut command = Command::new("mariadb");
        command
            .arg("--no-defaults")
            .arg(format!("--socket={}", server.socket.display()))
            .args(["--user=root", "--batch", "--skip-column-names"])
            .args(["--quick", "--unbuffered", "--database", DATABASE]);
        let process = Process::start(command, Framing::Text, timeout)?;
        server.forget_peak();
        let watch = Watch::new(server.process());
        Ok(Self { process, watch })
    }
}

impl Connection for Client {
    fn run(&mut self, statements: &[String]) -> Result<Duration, String> {
        self.process.run(statements)
    }

    fn ask(&mut self, query: &str) -> Result<String, String> {
        self.process.ask(query)
    }

    fn usage(&mut self) -> Usage {
        self.watch.look();
        Usage::of(&self.watch)
    }
}

impl Results {
    /// The median of what `value` says of a line in all turns of a contender.
    pub(crate) fn line_median(
        &self,
        script: &str,
        line: &str,
        contender: &str,
        value: impl Fn(&LineTime) -> f64,
    ) -> Option<f64> {
        let values: Vec<f64> = self
            .turns
            .iter()
            .filter(|turn| turn.script == script && turn.contender == contender)
            .filter_map(|turn| match &turn.end {
                End::Measured { lines, .. } => lines.iter().find(|found| found.line == line),
                End::Skipped(_) | End::Failed(_) => None,
            })
            .map(value)
            .collect();
        (!values.is_empty()).then(|| median(&values))
    }
}

/// Prints a turn as soon as it is over.
fn print_turn(turn: &Turn) {
    let text = match &turn.end {
        End::Measured { lines, .. } => {
            let wrong = lines.iter().find_map(|line| {
                let wrong = line.wrong.as_ref()?;
                Some(format!(", WRONG after {}: {wrong}", line.line))
            });
            let seconds = turn.seconds().unwrap_or_default();
            format!("{seconds:.2} s{}", wrong.unwrap_or_default())
        }
        End::Skipped(reason) => format!("skipped: {reason}"),
        End::Failed(reason) => format!("failed: {reason}"),
    };
    println!("  run {}, {:<28} {text}", turn.run, turn.contender);
}
