//! mariadb-slap, which was mysqlslap: its command line and its report.
//!
//! Owns: the options that every run has, and the words of the report.
//! Never: chooses a statement.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::client;
use crate::systems::first_line;
use crate::systems::server::DATABASE;

const PROGRAM: &str = "mariadb-slap";

/// One call.
pub(crate) struct Slap<'a> {
    pub(crate) socket: &'a Path,
    /// A file with one statement a line.
    pub(crate) statements: &'a Path,
    /// A statement that every connection begins with.
    pub(crate) first: &'a str,
    pub(crate) clients: usize,
    /// Statements of all clients together.
    pub(crate) queries: u64,
}

/// The version of the installed program, or why there is none.
pub(crate) fn version() -> Result<String, String> {
    let line = first_line(PROGRAM, &["--version"])?;
    let version = line
        .split_whitespace()
        .skip_while(|word| *word != "Distrib" && *word != "from")
        .nth(1);
    Ok(version.unwrap_or(&line).trim_end_matches(',').to_owned())
}

impl Slap<'_> {
    /// Runs all statements; the seconds that they took by the program's own clock.
    pub(crate) fn run(&self, timeout: Duration) -> Result<f64, String> {
        let mut command = Command::new(PROGRAM);
        command
            .arg("--no-defaults")
            .arg(format!("--socket={}", self.socket.display()))
            .args(["--user=root", "--no-drop"])
            .arg(format!("--create-schema={DATABASE}"))
            .arg(format!("--query={}", self.statements.display()))
            .arg(format!("--init-command={}", self.first))
            .arg(format!("--concurrency={}", self.clients))
            .arg(format!("--number-of-queries={}", self.queries));
        let text = client::run(command, timeout)?;
        let name = "Average number of seconds to run all queries:";
        let rest = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(name))
            .ok_or("its report is not understood")?;
        let word = rest.split_whitespace().next().unwrap_or_default();
        let seconds: f64 = word.parse().map_err(|_| format!("its time is `{word}`"))?;
        if seconds > 0.0 {
            Ok(seconds)
        } else {
            Err("it took no time: give it more statements".to_owned())
        }
    }
}
