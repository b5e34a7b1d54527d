//! What a run of a load found.

use serde::{Deserialize, Serialize};

use crate::args::SystemName;

/// One run of one load by one contender, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LoadRun {
    pub(crate) load: String,
    /// Connections of the client program, each with a thread.
    pub(crate) clients: usize,
    pub(crate) contender: String,
    pub(crate) system: SystemName,
    pub(crate) run: usize,
    /// The budget of a contender that has one.
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) end: LoadEnd,
}

/// How a run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LoadEnd {
    Measured(Rate),
    Skipped(String),
    Failed(String),
}

/// What a client program reports, and what was seen of the server meanwhile.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rate {
    pub(crate) queries: u64,
    pub(crate) seconds: f64,
    /// Errors after which the client program went on, as it was told to.
    pub(crate) ignored_errors: u64,
    /// 95 % of the events took at most this long, in milliseconds.
    pub(crate) latency_ms: Option<f64>,
    /// Bytes from and to the device on behalf of the server, by the kernel's count.
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    /// Peak resident size of the server in this run, seen from outside.
    pub(crate) peak_bytes: u64,
    /// Temporary tables that the server counted, and those of them that went to the disk.
    pub(crate) temp_tables: Option<(u64, u64)>,
    /// Whether the tables were looked at afterwards.
    pub(crate) checked: bool,
    /// What the tables held, where it was not the right thing.
    pub(crate) wrong: Option<String>,
}

impl Rate {
    pub(crate) fn queries_per_second(&self) -> f64 {
        self.queries as f64 / self.seconds
    }
}

impl LoadRun {
    /// What was measured, if it was.
    pub(crate) fn rate(&self) -> Option<&Rate> {
        match &self.end {
            LoadEnd::Measured(rate) => Some(rate),
            LoadEnd::Skipped(_) | LoadEnd::Failed(_) => None,
        }
    }
}
