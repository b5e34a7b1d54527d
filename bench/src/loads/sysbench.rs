//! sysbench: its command line and its report.
//!
//! Owns: the options that every run has, and the words of the report.
//! Never: chooses a workload.
//!
//! Source: sysbench 1.0, its own scripts `oltp_*.lua`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::client;
use crate::systems::first_line;
use crate::systems::server::DATABASE;

/// What sysbench may take beyond the asked time: its threads connect and prepare, then finish.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time for filling a table.
const PREPARE_PATIENCE: Duration = Duration::from_secs(1_800);

/// One call of sysbench.
pub(crate) struct Sysbench<'a> {
    /// A script of its own by name, or the path of another.
    pub(crate) script: &'a str,
    pub(crate) options: &'a [&'a str],
    pub(crate) socket: &'a Path,
    pub(crate) rows: u64,
}

/// What it reports at its end.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Statements that changed a row.
    pub(crate) writes: u64,
    pub(crate) queries: u64,
    pub(crate) seconds: f64,
    pub(crate) ignored_errors: u64,
    pub(crate) reconnects: u64,
    pub(crate) latency_ms: Option<f64>,
}

/// The version of the installed sysbench, or why there is none.
pub(crate) fn version() -> Result<String, String> {
    let line = first_line("sysbench", &["--version"])?;
    Ok(line.trim_start_matches("sysbench ").to_owned())
}

impl Sysbench<'_> {
    /// Creates the table and fills it with rows that are others each time; `engine` is the storage
    /// engine of a system that has several.
    pub(crate) fn prepare(&self, engine: &str) -> Result<(), String> {
        self.call("cleanup", &[], PREPARE_PATIENCE)?;
        let engine = format!("--mysql-storage-engine={engine}");
        self.call("prepare", &[&engine], PREPARE_PATIENCE).map(drop)
    }

    /// Runs the script for so many seconds; with the same seed the same keys come. `ignored` are
    /// numbers of errors after which a thread begins its next event.
    pub(crate) fn run(
        &self,
        threads: usize,
        seconds: u64,
        seed: usize,
        ignored: &str,
    ) -> Result<Report, String> {
        let options = [
            format!("--threads={threads}"),
            format!("--time={seconds}"),
            format!("--rand-seed={seed}"),
            format!("--mysql-ignore-errors={ignored}"),
            // A key anywhere in the table: the hard case where the table does not fit.
            "--rand-type=uniform".to_owned(),
        ];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let patience = Duration::from_secs(seconds) + PATIENCE;
        let text = self.call("run", &options, patience)?;
        read(&text).ok_or_else(|| "sysbench's report is not understood".to_owned())
    }

    fn call(&self, what: &str, options: &[&str], patience: Duration) -> Result<String, String> {
        let mut command = Command::new("sysbench");
        command
            .arg(self.script)
            .arg(format!("--mysql-socket={}", self.socket.display()))
            .args(["--db-driver=mysql", "--mysql-user=root"])
            .arg(format!("--mysql-db={DATABASE}"))
            .arg(format!("--table-size={}", self.rows))
            .args(self.options)
            .args(options)
            .arg(what);
        client::run(command, patience)
    }
}

fn read(text: &str) -> Option<Report> {
    let words = |name: &str| {
        let rest = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(name))?;
        rest.split_whitespace().next()
    };
    let count = |name: &str| words(name)?.parse::<u64>().ok();
    Some(Report {
        writes: count("write:")?,
        queries: count("queries:")?,
        seconds: words("total time:")?.trim_end_matches('s').parse().ok()?,
        ignored_errors: count("ignored errors:")?,
        reconnects: count("reconnects:")?,
        latency_ms: words("95th percentile:").and_then(|word| word.parse().ok()),
    })
}
