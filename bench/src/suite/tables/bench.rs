//! What holds for all measurements of a run.

use std::path::PathBuf;

use mayfly_space::{Compression, Space, SpaceOptions};

use super::lines::{self, Line};
use super::machine::Machine;
use crate::results::{Results, Sheet};

/// What holds for all measurements of a run.
pub(super) struct Bench<'a> {
    pub(super) machine: Machine,
    pub(super) rounds: usize,
    pub(super) only: Option<String>,
    pub(super) threads: usize,
    pub(super) temp_dir: PathBuf,
    pub(super) results: &'a mut Results,
}

impl Bench<'_> {
    pub(super) fn wants(&self, section: &str) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|only| section.contains(only.as_str()))
    }

    pub(super) fn keep_sheet(&mut self, sheet: Sheet) {
        crate::report::text::print_sheet(&sheet);
        self.results.sheets.push(sheet);
    }

    /// Prints and keeps the lines of a section and the figures that they have to reach.
    pub(super) fn keep(&mut self, section: &str, lines: Vec<Line>) {
        self.keep_sheet(lines::sheet(section, &lines));
        let figures = lines.iter().filter_map(|line| line.figure(section));
        self.results.figures.extend(figures);
        self.results.lines.extend(lines);
    }

    pub(super) fn space(&self, memory_bytes: u64) -> mayfly_space::Result<Space> {
        Space::open(SpaceOptions {
            memory_bytes,
            temp_dirs: vec![self.temp_dir.clone()],
            compression: Compression::None,
            ..SpaceOptions::default()
        })
    }
}
