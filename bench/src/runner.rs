//! Measures cells: contenders take turns, each run in a process of its own.
//!
//! Owns: the order of runs, warm-up, the comparison of answers, what is printed while it goes.
//! Never: knows a benchmark.
//!
//! Each process runs the statement twice and the second one counts; once a statement takes longer
//! than `WARM_LIMIT_S` the first one counts and there is no second. A contender that has used up
//! its share of time in a cell gets no further runs, and one that fails is not asked again. One
//! that was ended by the clock is not asked with less memory either.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::answer::{Answer, Comparison};
use crate::args::{Limit, SystemName};
use crate::cgroup;
use crate::data::{self, Dataset, Named};
use crate::error::BenchError;
use crate::report::text;
use crate::results::{Cell, Check, Entry, Measured, Outcome, Results, median};
use crate::state::State;
use crate::systems::{self, Failure, Job, Reply, System};

/// A statement slower than this needs no warm-up.
const WARM_LIMIT_S: f64 = 5.0;

/// One benchmark case: what each contender runs, and under which limits.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) dataset: Dataset,
    /// Further tables that the statement names.
    pub(crate) tables: Vec<Named>,
    /// Bytes of what the statement reads, in memory.
    pub(crate) data_bytes: u64,
    pub(crate) contenders: Vec<Contender>,
    pub(crate) limits: Vec<Limit>,
    /// Compare answers under every limit, or under the largest and the smallest only.
    pub(crate) check_every_limit: bool,
    /// By value, the answers of all contenders are compared; as text, Mayfly's alone.
    pub(crate) comparison: Comparison,
}

/// One system with one way to run the case.
#[derive(Clone)]
pub(crate) struct Contender {
    pub(crate) label: String,
    pub(crate) system: SystemName,
    /// Settings of the session.
    pub(crate) settings: Vec<String>,
    /// Statements that load the table; empty when the file is read directly.
    pub(crate) setup: Vec<String>,
    pub(crate) statement: String,
    /// The statement whose rows are compared.
    pub(crate) check: String,
    pub(crate) mayfly_options: Vec<String>,
}

impl Contender {
    pub(crate) fn new(system: SystemName, statement: &str, check: &str) -> Self {
        Self {
            label: system.label().to_owned(),
            system,
            settings: Vec::new(),
            setup: Vec::new(),
            statement: statement.to_owned(),
            check: check.to_owned(),
            mayfly_options: Vec::new(),
        }
    }
}

/// What holds for all cells of a run.
pub(crate) struct Settings {
    pub(crate) runs: usize,
    pub(crate) threads: usize,
    pub(crate) machine_bytes: u64,
    pub(crate) temp_dir: PathBuf,
    pub(crate) cache_dir: PathBuf,
    /// Seconds after which a contender gets no further run in a cell.
    pub(crate) share_s: f64,
    pub(crate) timeout: Duration,
    pub(crate) check: bool,
    pub(crate) cap: bool,
    pub(crate) only: Option<String>,
    pub(crate) limits: Vec<Limit>,
}

pub(crate) struct Runner {
    pub(crate) settings: Settings,
    systems: Vec<Box<dyn System>>,
    /// Why a system cannot run here.
    missing: HashMap<SystemName, String>,
    state: State,
    /// Rows of a case as a peer gives them.
    references: HashMap<String, Option<(String, Answer)>>,
    /// The last time of a contender on a case, to know whether it needs a warm-up.
    last_seconds: HashMap<(String, String), f64>,
    /// The memory with which a contender was ended by the clock on a case.
    timed_out: HashMap<(String, String), u64>,
}

impl Runner {
    /// Finds out which of the chosen systems run here; an empty choice means all.
    pub(crate) fn new(
        settings: Settings,
        chosen: &[SystemName],
        state: State,
        results: &mut Results,
    ) -> Self {
        let mut systems = systems::all(&settings.cache_dir);
        systems.retain(|system| chosen.is_empty() || chosen.contains(&system.name()));
        let mut missing = HashMap::new();
        for system in &systems {
            let version = system.version().unwrap_or_else(|reason| {
                missing.insert(system.name(), reason.clone());
                format!("skipped: {reason}")
            });
            results
                .machine
                .push((system.name().label().to_owned(), version));
        }
        Self {
            settings,
            systems,
            missing,
            state,
            references: HashMap::new(),
            last_seconds: HashMap::new(),
            timed_out: HashMap::new(),
        }
    }

    /// Whether a system takes part, so that its form of the data is needed.
    pub(crate) fn takes_part(&self, name: SystemName) -> bool {
        self.systems.iter().any(|system| system.name() == name) && !self.missing.contains_key(&name)
    }

    /// Measures a case under all its limits, each by the knobs alone and capped.
    pub(crate) fn case(&mut self, case: &Case, results: &mut Results) -> Result<(), BenchError> {
        if self
            .settings
            .only
            .as_ref()
            .is_some_and(|only| !case.name.contains(only))
        {
            return Ok(());
        }
        let limits = if self.settings.limits.is_empty() {
            &case.limits
        } else {
            &self.settings.limits
        };
        let limits = limits.clone();
        // In memory, as a system that fails with little has no other answer to compare.
        let ends = [limits.iter().min().copied(), limits.iter().max().copied()];
        for limit in limits {
            let check =
                self.settings.check && (case.check_every_limit || ends.contains(&Some(limit)));
            self.cell(case, limit, false, check, results)?;
            if self.settings.cap && limit != Limit::All {
                self.cell(case, limit, true, false, results)?;
            }
        }
        Ok(())
    }

    fn cell(
        &mut self,
        case: &Case,
        limit: Limit,
        capped: bool,
        check: bool,
        results: &mut Results,
    ) -> Result<(), BenchError> {
        let finished = self
            .state
            .find(|cell| cell.case == case.name && cell.limit == limit && cell.capped == capped);
        if let Some(cell) = finished {
            results.cells.push(cell);
            return Ok(());
        }
        for dataset in std::iter::once(&case.dataset).chain(case.tables.iter().map(|t| &t.dataset))
        {
            data::warm(&dataset.parquet);
        }
        let mut cell = Cell {
            case: case.name.clone(),
            limit,
            limit_bytes: limit.bytes(self.settings.machine_bytes),
            capped,
            rows: case.dataset.rows,
            data_bytes: case.data_bytes,
            results: Vec::new(),
        };
        let mut tallies: Vec<(&Contender, Tally)> = case
            .contenders
            .iter()
            .filter(|contender| self.systems.iter().any(|s| s.name() == contender.system))
            .map(|contender| (contender, Tally::default()))
            .collect();
        for _ in 0..self.settings.runs {
            for (contender, tally) in &mut tallies {
                if !tally.done(self.settings.share_s) {
                    let reply = self.run(case, contender, &cell, false);
                    tally.add(reply);
                }
            }
        }
        for (contender, tally) in tallies {
            let mut outcome = tally.outcome();
            if let Outcome::Measured(measured) = &mut outcome {
                self.last_seconds.insert(
                    (case.name.clone(), contender.label.clone()),
                    measured.median_s,
                );
                let compared =
                    contender.system == SystemName::Mayfly || case.comparison.keeps_lines();
                if check && compared {
                    measured.check = self.check(case, contender, &cell);
                }
            }
            cell.results.push(Entry {
                contender: contender.label.clone(),
                system: contender.system,
                outcome,
            });
        }
        text::print_cell(&cell);
        self.state.keep(&cell)?;
        results.cells.push(cell);
        Ok(())
    }

    /// Runs a contender once: twice in its process when it is fast, to warm up.
    fn run(
        &mut self,
        case: &Case,
        contender: &Contender,
        cell: &Cell,
        emit: bool,
    ) -> Result<Reply, Failure> {
        if let Some(reason) = self.missing.get(&contender.system) {
            return Err(Failure::Skipped(reason.clone()));
        }
        if cell.capped
            && let Err(reason) = cgroup::available()
        {
            return Err(Failure::Skipped(reason));
        }
        let key = (case.name.clone(), contender.label.clone());
        let slow = self
            .last_seconds
            .get(&key)
            .is_some_and(|seconds| *seconds > WARM_LIMIT_S);
        if let Some(bytes) = self.timed_out.get(&key)
            && cell.limit_bytes <= *bytes
        {
            return Err(Failure::TimedOut(self.settings.timeout.as_secs()));
        }
        let job = Job {
            dataset: &case.dataset,
            tables: &case.tables,
            setup: contender
                .setup
                .iter()
                .map(|text| {
                    let file = case.dataset.parquet.display().to_string();
                    text.replace("{file}", &file)
                        .replace("{t}", &case.dataset.table)
                })
                .collect(),
            settings: &contender.settings,
            statement: if emit {
                &contender.check
            } else {
                &contender.statement
            },
            repeats: if emit || slow { 1 } else { 2 },
            emit,
            keep_lines: emit && case.comparison.keeps_lines(),
            limit_bytes: cell.limit_bytes,
            unlimited: cell.limit == Limit::All,
            capped: cell.capped,
            threads: self.settings.threads,
            temp_dir: &self.settings.temp_dir,
            cache_dir: &self.settings.cache_dir,
            timeout: self.settings.timeout,
            mayfly_options: &contender.mayfly_options,
        };
        let system = self
            .systems
            .iter_mut()
            .find(|system| system.name() == contender.system)
            .expect("only contenders whose system takes part are run");
        let reply = system.run(&job);
        // What is compared is another statement, and its rows are written.
        match &reply {
            Ok(reply) if !emit => {
                let first = reply.seconds.first().copied();
                self.last_seconds
                    .extend(first.map(|seconds| (key, seconds)));
            }
            Err(Failure::TimedOut(_)) if !emit => {
                self.timed_out.insert(key, cell.limit_bytes);
            }
            _ => {}
        }
        reply
    }

    /// Compares rows under this limit with those of the first peer that has them.
    fn check(&mut self, case: &Case, contender: &Contender, cell: &Cell) -> Check {
        if !self.references.contains_key(&case.name) {
            let reference = self.reference(case);
            self.references.insert(case.name.clone(), reference);
        }
        let Some((label, expected)) = self.references[&case.name].clone() else {
            return Check::NotChecked;
        };
        if label == contender.label {
            return Check::NotChecked;
        }
        match self.run(case, contender, cell, true) {
            Ok(reply) => match case.comparison.difference(&reply.answer, &expected) {
                None => Check::SameAs(label),
                Some(how) => Check::Different(format!("{how} of {label}")),
            },
            Err(failure) => Check::Unanswered(failure.reason()),
        }
    }

    fn reference(&mut self, case: &Case) -> Option<(String, Answer)> {
        let everything = Cell {
            case: case.name.clone(),
            limit: Limit::All,
            limit_bytes: Limit::All.bytes(self.settings.machine_bytes),
            capped: false,
            rows: case.dataset.rows,
            data_bytes: case.data_bytes,
            results: Vec::new(),
        };
        let peers: Vec<&Contender> = case
            .contenders
            .iter()
            .filter(|peer| peer.system != SystemName::Mayfly && self.takes_part(peer.system))
            .collect();
        peers.into_iter().find_map(|peer| {
            let reply = self.run(case, peer, &everything, true).ok()?;
            Some((peer.label.clone(), reply.answer))
        })
    }
}

/// What one contender has done in a cell so far.
#[derive(Default)]
struct Tally {
    counted: Vec<f64>,
    cold: Vec<f64>,
    spent_s: f64,
    best: Reply,
    failure: Option<Failure>,
}

impl Tally {
    fn done(&self, share_s: f64) -> bool {
        self.failure.is_some() || self.spent_s > share_s
    }

    fn add(&mut self, reply: Result<Reply, Failure>) {
        match reply {
            Ok(reply) => {
                self.spent_s += reply.seconds.iter().sum::<f64>();
                self.cold.extend(reply.seconds.first());
                self.counted.extend(reply.seconds.last());
                let best = &mut self.best;
                best.peak_bytes = best.peak_bytes.max(reply.peak_bytes);
                best.anonymous_bytes = best.anonymous_bytes.max(reply.anonymous_bytes);
                best.cap_peak_bytes = best.cap_peak_bytes.max(reply.cap_peak_bytes);
                best.written_bytes = best.written_bytes.max(reply.written_bytes);
                best.spilled_bytes = best.spilled_bytes.max(reply.spilled_bytes);
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn outcome(self) -> Outcome {
        match self.failure {
            Some(Failure::Skipped(reason)) => Outcome::Skipped(reason),
            Some(failure) => Outcome::Failed(failure.reason()),
            None => Outcome::Measured(Measured {
                median_s: median(&self.counted),
                runs_s: self.counted,
                cold_s: median(&self.cold),
                peak_bytes: self.best.peak_bytes,
                anonymous_bytes: self.best.anonymous_bytes,
                cap_peak_bytes: self.best.cap_peak_bytes,
                written_bytes: self.best.written_bytes,
                spilled_bytes: self.best.spilled_bytes,
                check: Check::NotChecked,
            }),
        }
    }
}
