//! What one operation takes, in rounds, beside its limit at the time of each.

use std::time::Instant;

use mayfly_space::Space;
use serde::Serialize;

use super::machine::Machine;
use crate::results::{Figure, Sheet, median};

/// Operations of one kind.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    what: String,
    #[serde(skip)]
    goal: Option<Goal>,
    rounds: Vec<Round>,
}

/// The mean of one round.
#[derive(Clone, Copy, Debug, Serialize)]
struct Round {
    ns: f64,
    limit_ns: f64,
    /// Pages that were read from the temp file.
    reads: f64,
}

/// What a figure asks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// At least this part of the limit.
    Efficiency(f64),
    /// At most so many nanoseconds.
    Nanoseconds(f64),
}

/// How to measure a line.
pub(super) struct Rounds<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) count: usize,
    /// Whose pages may have to be read, and how long a read takes.
    pub(super) space: Option<(&'a Space, f64)>,
}

impl Rounds<'_> {
    /// Measures `operations` at a time. The limit of one is taken before and after.
    pub(super) fn line<E>(
        &mut self,
        what: &str,
        operations: u64,
        limit: impl Fn(&mut Machine) -> f64,
        mut body: impl FnMut() -> Result<(), E>,
    ) -> Result<Line, E> {
        let mut all = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            all.push(self.round(operations, &limit, &mut body)?);
        }
        Ok(Line::new(what, all))
    }

    /// As [`Rounds::line`], with something made before each round and dropped after it.
    pub(super) fn line_of<T, E>(
        &mut self,
        what: &str,
        operations: u64,
        limit: impl Fn(&mut Machine) -> f64,
        mut make: impl FnMut() -> Result<T, E>,
        mut body: impl FnMut(&mut T) -> Result<(), E>,
    ) -> Result<Line, E> {
        let mut all = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            let mut made = make()?;
            all.push(self.round(operations, &limit, || body(&mut made))?);
        }
        Ok(Line::new(what, all))
    }

    fn round<E>(
        &mut self,
        operations: u64,
        limit: impl Fn(&mut Machine) -> f64,
        body: impl FnOnce() -> Result<(), E>,
    ) -> Result<Round, E> {
        let before = limit(self.machine);
        let misses = |space: Option<(&Space, f64)>| {
            space.map_or(0, |(space, _)| space.counters().read_misses)
        };
        let missed = misses(self.space);
        let started = Instant::now();
        body()?;
        let ns = started.elapsed().as_nanos() as f64 / operations as f64;
        let reads = (misses(self.space) - missed) as f64 / operations as f64;
        let read_ns = self.space.map_or(0.0, |(_, read_ns)| read_ns);
        let limit_ns = f64::midpoint(before, limit(self.machine)) + reads * read_ns;
        Ok(Round {
            ns,
            limit_ns,
            reads,
        })
    }
}

impl Line {
    fn new(what: &str, rounds: Vec<Round>) -> Self {
        Self {
            what: what.to_owned(),
            goal: None,
            rounds,
        }
    }

    pub(super) fn with_goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    fn values(&self, value: impl Fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(value).collect()
    }

    /// The part of the limit that is reached: each round has the machine as it was then. 0 where
    /// there is no limit.
    fn efficiency(&self) -> f64 {
        median(&self.values(|round| round.limit_ns / round.ns))
    }

    pub(super) fn figure(&self, section: &str) -> Option<Figure> {
        let what = format!("{section}: {}", self.what);
        Some(match self.goal? {
            Goal::Efficiency(least) => {
                let what = format!("{what}, part of the limit");
                Figure::at_least(what, self.efficiency(), least)
            }
            Goal::Nanoseconds(most) => {
                let us = median(&self.values(|round| round.ns)) / 1e3;
                Figure::at_most(format!("{what}, us"), us, Some(most / 1e3))
            }
        })
    }
}

/// The lines of a section as a table.
pub(super) fn sheet(section: &str, lines: &[Line]) -> Sheet {
    let mut sheet = Sheet::new(
        section,
        &[
            "ns an operation",
            "median",
            "least",
            "most",
            "limit",
            "efficiency",
            "goal",
            "page reads",
        ],
    );
    for line in lines {
        let times = line.values(|round| round.ns);
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        let limit = median(&line.values(|round| round.limit_ns));
        let has_limit = limit > 0.0;
        let efficiency = format!("{:.0} %", line.efficiency() * 100.0);
        let goal = match line.goal {
            Some(Goal::Efficiency(least)) => format!(">= {:.0} %", least * 100.0),
            Some(Goal::Nanoseconds(most)) => format!("<= {most:.0} ns"),
            None => String::new(),
        };
        let reads = median(&line.values(|round| round.reads));
        let reads = match reads > 0.0 {
            true => format!("{reads:.4}"),
            false => String::new(),
        };
        sheet.rows.push(vec![
            line.what.clone(),
            time(median(&times)),
            time(least),
            time(most),
            if has_limit {
                time(limit)
            } else {
                String::new()
            },
            if has_limit { efficiency } else { String::new() },
            goal,
            reads,
        ]);
    }
    sheet
}

fn time(ns: f64) -> String {
    let digits = match ns {
        ns if ns < 10.0 => 2,
        ns if ns < 1_000.0 => 1,
        _ => 0,
    };
    format!("{ns:.digits$}")
}
