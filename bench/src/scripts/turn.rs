//! What a turn of a script found.

use serde::{Deserialize, Serialize};

use crate::args::SystemName;

/// One run of one script by one contender, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) script: String,
    pub(crate) contender: String,
    pub(crate) system: SystemName,
    pub(crate) run: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) end: End,
}

/// How a turn ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    Measured {
        lines: Vec<LineTime>,
        /// Peak resident size of the process that holds the tables, seen from outside.
        peak_bytes: u64,
        /// Most of it that was no file's.
        anonymous_bytes: u64,
    },
    Skipped(String),
    Failed(String),
}

/// One line of a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LineTime {
    pub(crate) line: String,
    pub(crate) operations: u64,
    pub(crate) seconds: f64,
    /// Bytes from and to the device meanwhile, by the kernel's count.
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    /// Whether its answer was looked at.
    pub(crate) checked: bool,
    /// The answer, where it is not the right one.
    pub(crate) wrong: Option<String>,
}

impl Turn {
    /// The time of all lines; none for a turn that did not reach its end.
    pub(super) fn seconds(&self) -> Option<f64> {
        match &self.end {
            End::Measured { lines, .. } => Some(lines.iter().map(|line| line.seconds).sum()),
            End::Skipped(_) | End::Failed(_) => None,
        }
    }
}
