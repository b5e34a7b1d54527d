//! What a benchmark found, as it is kept, printed and drawn.
//!
//! Owns: the form of cells and figures and the arithmetic over them (medians, ratios, cliffs).
//! Never: measures.

mod figures;

use serde::{Deserialize, Serialize};

use crate::args::{Limit, SystemName};
use crate::loads::LoadRun;
use crate::scripts::Turn;
use crate::suite::tables::Line;
pub(crate) use figures::{Figure, Sheet, median};

/// Everything of one benchmark.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Results {
    pub(crate) benchmark: String,
    pub(crate) command: String,
    pub(crate) machine: Vec<(String, String)>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) figures: Vec<Figure>,
    /// Measurements that are no cells.
    pub(crate) sheets: Vec<Sheet>,
    /// Every run of every script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) turns: Vec<Turn>,
    /// Every run of every load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) loads: Vec<LoadRun>,
    /// Every round of every structure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lines: Vec<Line>,
}

/// All contenders on one case under one limit, interleaved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) case: String,
    pub(crate) limit: Limit,
    pub(crate) limit_bytes: u64,
    /// Inside a memory cgroup of limit + 200 MiB, page cache included.
    pub(crate) capped: bool,
    pub(crate) rows: u64,
    pub(crate) data_bytes: u64,
    pub(crate) results: Vec<Entry>,
}

/// One contender in a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) contender: String,
    pub(crate) system: SystemName,
    pub(crate) outcome: Outcome,
}

/// Time or the lack of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Measured(Measured),
    Skipped(String),
    Failed(String),
}

/// The timed runs of one contender.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) median_s: f64,
    pub(crate) runs_s: Vec<f64>,
    /// First execution in the process, not counted where there is a warm one.
    pub(crate) cold_s: f64,
    pub(crate) peak_bytes: u64,
    /// Most of it that was no file's: without the text of the program and its libraries.
    pub(crate) anonymous_bytes: u64,
    pub(crate) cap_peak_bytes: Option<u64>,
    pub(crate) written_bytes: u64,
    pub(crate) spilled_bytes: Option<u64>,
    pub(crate) check: Check,
}

/// Whether the rows were those of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Check {
    /// Row count and digest agree with this contender.
    SameAs(String),
    Different(String),
    /// The statement that is compared failed, though the timed one did not.
    Unanswered(String),
    NotChecked,
}

impl Cell {
    /// `64 MiB`, `64 MiB capped`, `all`.
    pub(crate) fn limit_label(&self) -> String {
        if self.capped {
            format!("{} capped", self.limit)
        } else {
            self.limit.to_string()
        }
    }

    fn outcome(&self, contender: &str) -> Option<&Outcome> {
        let mut entries = self.results.iter();
        let entry = entries.find(|entry| entry.contender == contender)?;
        Some(&entry.outcome)
    }

    /// What a contender measured here.
    pub(crate) fn measured(&self, contender: &str) -> Option<&Measured> {
        match self.outcome(contender)? {
            Outcome::Measured(measured) => Some(measured),
            Outcome::Skipped(_) | Outcome::Failed(_) => None,
        }
    }

    /// Why a contender that ran has no right answer here.
    pub(crate) fn failure(&self, contender: &str) -> Option<String> {
        match self.outcome(contender)? {
            Outcome::Failed(reason) => Some(reason.clone()),
            Outcome::Measured(measured) => match &measured.check {
                Check::Different(how) => Some(format!("different rows: {how}")),
                Check::SameAs(_) | Check::Unanswered(_) | Check::NotChecked => None,
            },
            Outcome::Skipped(_) => None,
        }
    }

    /// The median of a contender in seconds.
    pub(crate) fn seconds(&self, contender: &str) -> Option<f64> {
        self.measured(contender).map(|measured| measured.median_s)
    }
}

impl Results {
    /// The cell of a case, if it was measured.
    pub(crate) fn cell(&self, case: &str, limit: Limit, capped: bool) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.case == case && cell.limit == limit && cell.capped == capped)
    }

    /// The median of a contender whose answer was not found to be wrong.
    pub(crate) fn right_seconds(
        &self,
        case: &str,
        limit: Limit,
        capped: bool,
        contender: &str,
    ) -> Option<f64> {
        let seconds = self.cell(case, limit, capped)?.seconds(contender)?;
        (!self.is_wrong(case, limit, contender)).then_some(seconds)
    }

    /// Whether a contender ran and gave no right answer; nothing if it did not run.
    pub(crate) fn failed(
        &self,
        case: &str,
        limit: Limit,
        capped: bool,
        contender: &str,
    ) -> Option<bool> {
        match self.cell(case, limit, capped)?.outcome(contender)? {
            Outcome::Measured(_) => Some(self.is_wrong(case, limit, contender)),
            Outcome::Failed(_) => Some(true),
            Outcome::Skipped(_) => None,
        }
    }

    /// Whether a contender gave other rows than a peer; answers are compared by the knob alone,
    /// which speaks for the capped ones.
    fn is_wrong(&self, case: &str, limit: Limit, contender: &str) -> bool {
        let cell = self.cell(case, limit, false);
        let measured = cell.and_then(|cell| cell.measured(contender));
        measured.is_some_and(|measured| matches!(measured.check, Check::Different(_)))
    }

    /// The quoted cell: capped where that was possible.
    pub(crate) fn quoted(&self, case: &str, limit: Limit) -> Option<&Cell> {
        self.cell(case, limit, true)
            .or_else(|| self.cell(case, limit, false))
    }

    /// The names of the cases, in the order of their first cell.
    pub(crate) fn cases(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !names.contains(&cell.case.as_str()) {
                names.push(&cell.case);
            }
        }
        names
    }

    /// The names of all contenders, in the order of their first entry.
    pub(crate) fn contenders(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for entry in self.cells.iter().flat_map(|cell| &cell.results) {
            if !names.contains(&entry.contender.as_str()) {
                names.push(&entry.contender);
            }
        }
        names
    }

    /// Adds a figure when both times are there.
    pub(crate) fn ratio(
        &mut self,
        what: impl Into<String>,
        above: Option<f64>,
        below: Option<f64>,
        at_most: Option<f64>,
    ) {
        if let (Some(above), Some(below)) = (above, below)
            && below > 0.0
        {
            let figure = Figure::at_most(what, above / below, at_most);
            self.figures.push(figure);
        }
    }

    /// The figures that every benchmark has: memory kept and answers right.
    pub(crate) fn common_figures(&mut self) {
        const SLACK_BYTES: u64 = 96 << 20;
        let mut worst: Option<u64> = None;
        let mut worst_anonymous = 0;
        let mut different = 0_u32;
        let mut checked = 0_u32;
        let mut unanswered = 0_u32;
        let mut failed = 0_u32;
        for cell in &self.cells {
            for entry in &cell.results {
                let measured = match &entry.outcome {
                    Outcome::Measured(measured) => measured,
                    Outcome::Failed(_) if entry.system == SystemName::Mayfly => {
                        failed += 1;
                        continue;
                    }
                    Outcome::Failed(_) | Outcome::Skipped(_) => continue,
                };
                match measured.check {
                    Check::Different(_) => different += 1,
                    Check::SameAs(_) => checked += 1,
                    Check::Unanswered(_) => unanswered += 1,
                    Check::NotChecked => {}
                }
                if entry.system == SystemName::Mayfly {
                    let beyond = measured.peak_bytes.saturating_sub(cell.limit_bytes);
                    worst = Some(worst.unwrap_or(0).max(beyond));
                    let beyond = measured.anonymous_bytes.saturating_sub(cell.limit_bytes);
                    worst_anonymous = worst_anonymous.max(beyond);
                }
            }
        }
        let takes_part = worst.is_some() || failed > 0;
        if let Some(worst) = worst {
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            self.figures.push(Figure::at_most(
                "Mayfly's peak resident size beyond its budget, worst run, MiB",
                mib(worst),
                Some(mib(SLACK_BYTES)),
            ));
            self.figures.push(Figure::at_most(
                "the same without the text of the program, MiB",
                mib(worst_anonymous),
                None,
            ));
        }
        if checked + different > 0 {
            let answers = checked + different;
            self.figures.push(Figure::at_most(
                format!("answers that differ from a peer's, of {answers}"),
                f64::from(different),
                Some(0.0),
            ));
        }
        if unanswered > 0 {
            self.figures.push(Figure::at_most(
                "answers that could not be compared, as the statement for it failed",
                f64::from(unanswered),
                Some(0.0),
            ));
        }
        if takes_part {
            self.figures.push(Figure::at_most(
                "cells in which Mayfly failed",
                f64::from(failed),
                Some(0.0),
            ));
        }
    }
}

/// The geometric mean.
pub(crate) fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    Some((sum / values.len() as f64).exp())
}
