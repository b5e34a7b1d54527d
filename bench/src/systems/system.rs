//! What a job is, what a reply is, and what a driver in another process is asked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::args::SystemName;
use crate::data::{Dataset, Named};

/// What a cgroup allows beyond the memory limit of the system inside it.
pub(crate) const CAP_SLACK_BYTES: u64 = 200 << 20;

/// What a cell says of a process that outgrew its cgroup.
pub(super) const KILLED: &str = "killed: needs more memory than the cgroup has";

/// One statement to run on one system in one process.
pub(crate) struct Job<'a> {
    pub(crate) dataset: &'a Dataset,
    /// Further tables, each with its name in the statement.
    pub(crate) tables: &'a [Named],
    /// Settings of the session.
    pub(crate) settings: &'a [String],
    /// Statements that are not timed: they load a table.
    pub(crate) setup: Vec<String>,
    /// The timed statement; `{t}` stands for the table, `{NAME}` for a further one.
    pub(crate) statement: &'a str,
    /// How often it runs in the process; more than one warms up.
    pub(crate) repeats: usize,
    /// Send the rows out instead of counting them.
    pub(crate) emit: bool,
    /// Keep these rows, and not only their digest.
    pub(crate) keep_lines: bool,
    pub(crate) limit_bytes: u64,
    /// The limit is the whole machine: nothing has to spill.
    pub(crate) unlimited: bool,
    /// Put a memory cgroup of limit + 200 MiB around the process.
    pub(crate) capped: bool,
    pub(crate) threads: usize,
    pub(crate) temp_dir: &'a Path,
    pub(crate) cache_dir: &'a Path,
    pub(crate) timeout: Duration,
    /// Further options of `mayfly sql`.
    pub(crate) mayfly_options: &'a [String],
}

impl Job<'_> {
    pub(super) fn cap_bytes(&self) -> Option<u64> {
        self.capped.then_some(self.limit_bytes + CAP_SLACK_BYTES)
    }

    /// The statement over a table that is read from its Parquet file.
    pub(super) fn over_file(&self) -> String {
        self.over(|dataset| quoted(&dataset.parquet))
    }

    /// The statement over a table that the system has loaded.
    pub(super) fn over_table(&self) -> String {
        self.over(|dataset| dataset.table.clone())
    }

    pub(super) fn over(&self, source: impl Fn(&Dataset) -> String) -> String {
        bound(self.statement, self.dataset, self.tables, source)
    }

    /// All tables that the statement reads, each once.
    pub(super) fn datasets(&self) -> Vec<&Dataset> {
        let mut found: Vec<&Dataset> = vec![self.dataset];
        for Named { dataset, .. } in self.tables {
            if found.iter().all(|other| other.table != dataset.table) {
                found.push(dataset);
            }
        }
        found
    }
}

/// A statement with the sources of its tables in their places. `{t}` is the source alone, any
/// other table has its name as an alias.
pub(super) fn bound(
    statement: &str,
    dataset: &Dataset,
    tables: &[Named],
    source: impl Fn(&Dataset) -> String,
) -> String {
    let mut text = statement.replace("{t}", &source(dataset));
    for Named { name, dataset } in tables {
        let aliased = format!("{} AS {name}", source(dataset));
        text = text.replace(&format!("{{{name}}}"), &aliased);
    }
    text
}

/// What one process did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    /// Seconds of each repeat, the first one cold.
    pub(crate) seconds: Vec<f64>,
    pub(crate) answer: Answer,
    /// Peak resident size, seen from outside.
    pub(crate) peak_bytes: u64,
    /// Most of it that was no file's.
    pub(crate) anonymous_bytes: u64,
    /// Peak of the cgroup, page cache included.
    pub(crate) cap_peak_bytes: Option<u64>,
    /// Bytes that the kernel was asked to write to the device on behalf of the process.
    pub(crate) written_bytes: u64,
    /// What the system says it spilled, where it says so.
    pub(crate) spilled_bytes: Option<u64>,
}

/// Why there is no time.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The system is not here or cannot run this at all.
    Skipped(String),
    /// It tried and failed.
    Failed(String),
    /// It was ended after so many seconds.
    TimedOut(u64),
}

impl Failure {
    /// A sentence for the table.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Skipped(reason) | Self::Failed(reason) => reason,
            Self::TimedOut(seconds) => format!("over {seconds} s"),
        }
    }
}

/// A system under measurement.
pub(crate) trait System {
    fn name(&self) -> SystemName;
    /// Its version, or why it cannot run here.
    fn version(&self) -> Result<String, String>;
    /// Runs one job.
    fn run(&mut self, job: &Job<'_>) -> Result<Reply, Failure>;
}

/// What a driver in another process is asked to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(super) settings: Vec<String>,
    pub(super) setup: Vec<String>,
    pub(super) statement: String,
    pub(super) repeats: usize,
    pub(super) emit: bool,
    pub(super) memory_bytes: u64,
    pub(super) unlimited: bool,
    pub(super) threads: usize,
    pub(super) temp_dir: PathBuf,
    pub(super) table: String,
    /// Files behind the names of tables, for systems that register them.
    pub(super) files: Vec<(String, PathBuf)>,
}

impl Request {
    pub(super) fn new(job: &Job<'_>, statement: String) -> Self {
        Self {
            settings: job.settings.to_vec(),
            setup: job.setup.clone(),
            statement,
            repeats: job.repeats,
            emit: job.emit,
            memory_bytes: job.limit_bytes,
            unlimited: job.unlimited,
            threads: job.threads,
            temp_dir: job.temp_dir.to_owned(),
            table: job.dataset.table.clone(),
            files: (job.datasets().into_iter())
                .map(|dataset| (dataset.table.clone(), dataset.parquet.clone()))
                .collect(),
        }
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).expect("a request is plain data")
    }
}

/// A file name as an SQL string.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_sources() {
        let dataset = |table: &str| Dataset {
            table: table.to_owned(),
            parquet: PathBuf::from(format!("/{table}.parquet")),
            tsv: None,
            columns: String::new(),
            primary_key: None,
            rows: 0,
            bytes: 0,
        };
        let tables = ["n1", "n2"].map(|name| Named::new(name, &dataset("nation")));
        let statement = "SELECT * FROM {t} JOIN {n1} JOIN {n2}";
        let over_table = bound(statement, &dataset("facts"), &tables, |dataset| {
            dataset.table.clone()
        });
        assert_eq!(
            over_table,
            "SELECT * FROM facts JOIN nation AS n1 JOIN nation AS n2"
        );
        let over_file = bound(statement, &dataset("it's"), &tables, |dataset| {
            quoted(&dataset.parquet)
        });
        assert_eq!(
            over_file,
            "SELECT * FROM '/it''s.parquet' JOIN '/nation.parquet' AS n1 \
             JOIN '/nation.parquet' AS n2"
        );
    }
}
