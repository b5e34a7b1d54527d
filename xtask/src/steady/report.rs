//! What several runs say of a test.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::run::Ended;

/// How often a test failed.
#[derive(Default)]
struct Failures {
    quiet: usize,
    loaded: usize,
    first_run: usize,
}

/// What all runs so far have shown.
#[derive(Default)]
pub struct Report {
    quiet_runs: usize,
    loaded_runs: usize,
    failures: BTreeMap<String, Failures>,
}

impl Report {
    /// Adds a run. One that was stopped counts only what had failed by then.
    pub fn add(&mut self, number: usize, is_loaded: bool, ended: &Ended) {
        match is_loaded {
            _ if ended.was_stopped => {}
            true => self.loaded_runs += 1,
            false => self.quiet_runs += 1,
        }
        for test in &ended.failed {
            let failures = self.failures.entry(test.clone()).or_default();
            match is_loaded {
                true => failures.loaded += 1,
                false => failures.quiet += 1,
            }
            if failures.first_run == 0 {
                failures.first_run = number;
            }
        }
    }

    pub fn complete_runs(&self) -> usize {
        self.quiet_runs + self.loaded_runs
    }

    pub fn has_failures(&self) -> bool {
        !self.failures.is_empty()
    }

    /// A line for each test that failed.
    pub fn text(&self) -> String {
        let (quiet, loaded) = (self.quiet_runs, self.loaded_runs);
        let mut text = String::new();
        for (test, failures) in &self.failures {
            let failed = failures.quiet + failures.loaded;
            let word = if failed < self.complete_runs() {
                "swings"
            } else {
                "fails"
            };
            writeln!(
                text,
                "steady: {word}: {test}: {} of {quiet} quiet runs, {} of {loaded} under load; \
                 run-{}.log",
                failures.quiet, failures.loaded, failures.first_run
            )
            .expect("a text takes everything");
        }
        if self.failures.is_empty() {
            writeln!(
                text,
                "steady: {quiet} quiet runs and {loaded} under load, all green"
            )
            .expect("a text takes everything");
        }
        text
    }
}

/// What is said when a run has ended.
pub fn line(number: usize, runs: usize, is_loaded: bool, ended: &Ended, log: &Path) -> String {
    let load = if is_loaded { ", under load" } else { "" };
    let result = match ended.failed.len() {
        _ if ended.was_stopped => "stopped, because the time is over".to_owned(),
        0 => "green".to_owned(),
        failed => format!("{failed} failed, see {}", log.display()),
    };
    format!(
        "steady: run {number} of {runs}{load}: {result}, {} s",
        ended.seconds
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(failed: &[&str]) -> Ended {
        Ended {
            failed: failed.iter().map(|test| (*test).to_owned()).collect(),
            was_stopped: false,
            seconds: 1,
        }
    }

    #[test]
    fn what_fails_sometimes_swings() {
        let mut report = Report::default();
        report.add(1, false, &ended(&["a"]));
        report.add(2, true, &ended(&["a", "b"]));
        let text = report.text();
        assert!(
            text.contains("fails: a: 1 of 1 quiet runs, 1 of 1 under load; run-1"),
            "{text}"
        );
        assert!(
            text.contains("swings: b: 0 of 1 quiet runs, 1 of 1 under load; run-2"),
            "{text}"
        );
        assert!(report.has_failures());
    }

    #[test]
    fn a_run_without_an_end_is_none() {
        let mut report = Report::default();
        report.add(1, false, &ended(&[]));
        let stopped = Ended {
            was_stopped: true,
            ..ended(&["x (does not end)"])
        };
        report.add(2, true, &stopped);
        assert_eq!(report.complete_runs(), 1);
        assert!(report.has_failures());
    }
}
