//! `cargo xtask steady N`: repeats the test suite, and names the tests that swing.
//!
//! A test that fails in some runs only is a defect, of the test or of what it tests. The suite is
//! built once and then repeated as it is; every second run has busy loops beside it, one for each
//! core, which is what makes races show. The output of runs that failed is kept.

mod load;
mod output;
mod report;
mod run;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use load::Load;
use report::Report;

/// Ends a call for other reasons than tests that failed: too few runs in its time.
const TOO_FEW_RUNS: u8 = 2;

/// What is repeated if nothing else is asked for: the README's second command.
const SUITE: [&str; 2] = ["--release", "--workspace"];

/// How the suite is repeated.
struct Options {
    runs: usize,
    /// Whether every run is under load.
    is_loaded: bool,
    /// No run goes on beyond this.
    limit: Option<Duration>,
    /// What cargo test gets.
    suite: Vec<String>,
}

impl Options {
    fn read(arguments: &[&str]) -> Result<Options> {
        let (own, suite) = match arguments.iter().position(|argument| *argument == "--") {
            Some(place) => (&arguments[..place], arguments[place + 1..].to_vec()),
            None => (arguments, SUITE.to_vec()),
        };
        let mut options = Options {
            runs: 0,
            is_loaded: false,
            limit: None,
            suite: suite.into_iter().map(str::to_owned).collect(),
        };
        let mut own = own.iter();
        while let Some(argument) = own.next() {
            match *argument {
                "--load" => options.is_loaded = true,
                "--minutes" => {
                    let minutes = own.next().context("--minutes needs a number")?;
                    let minutes: u64 = minutes.parse().context("--minutes needs a number")?;
                    options.limit = Some(Duration::from_secs(minutes * 60));
                }
                runs if options.runs == 0 => {
                    options.runs = runs.parse().with_context(|| format!("what is {runs}?"))?;
                }
                other => bail!("what is {other}?"),
            }
        }
        ensure!(options.runs > 0, "how many runs?");
        Ok(options)
    }
}

/// Repeats the suite; the exit code: 0 if all runs were green, 1 if a test failed, 2 if time was
/// too short for all runs.
pub fn run(arguments: &[&str]) -> Result<u8> {
    let options = Options::read(arguments)?;
    let directory = logs()?;
    let begin = Instant::now();
    let deadline = options.limit.map(|limit| begin + limit);
    println!(
        "steady: building; logs of runs that fail: {}",
        directory.display()
    );
    run::build(&options.suite)?;
    let mut report = Report::default();
    for number in 1..=options.runs {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break;
        }
        let is_loaded = options.is_loaded || number % 2 == 0;
        let load = is_loaded.then(Load::begin);
        let log = directory.join(format!("run-{number}.log"));
        let ended = run::once(&options.suite, &log, deadline)?;
        drop(load);
        report.add(number, is_loaded, &ended);
        println!(
            "{}",
            report::line(number, options.runs, is_loaded, &ended, &log)
        );
        if ended.is_green() {
            std::fs::remove_file(&log).context("removing the log of a green run")?;
        }
        if ended.was_stopped {
            break;
        }
    }
    print!("{}", report.text());
    let complete = report.complete_runs();
    if report.has_failures() {
        Ok(1)
    } else if complete < options.runs {
        println!(
            "steady: only {complete} of {} runs in the time",
            options.runs
        );
        Ok(TOO_FEW_RUNS)
    } else {
        Ok(0)
    }
}

/// Where logs are kept: in the target directory that this program was built in.
fn logs() -> Result<PathBuf> {
    let program = std::env::current_exe().context("finding this program")?;
    let target = program
        .ancestors()
        .nth(2)
        .context("it lies in a target directory")?;
    let directory = target.join("steady");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("making {}", directory.display()))?;
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        let options = Options::read(&["20", "--minutes", "90"]).unwrap();
        assert_eq!((options.runs, options.is_loaded), (20, false));
        assert_eq!(options.limit, Some(Duration::from_secs(5400)));
        assert_eq!(options.suite, SUITE);
        let options = Options::read(&["--load", "3", "--", "-p", "x"]).unwrap();
        assert_eq!((options.runs, options.is_loaded), (3, true));
        assert_eq!(options.suite, ["-p", "x"]);
        for wrong in [&[][..], &["0"], &["many"], &["3", "4"], &["3", "--minutes"]] {
            assert!(Options::read(wrong).is_err(), "{wrong:?}");
        }
    }
}
