//! `cargo xtask steady N`: repeats the test suite, and names the tests that swing.
//!
//! A test that fails in some runs only is a defect, of the test or of what it tests. The suite is
//! built once and then repeated as it is; every second run has busy loops beside it, one for each
//! core, which is what makes races show. With `--abreast 2` two runs go on beside each other, and
//! every second pair has the loops: a suite waits for the disk a fifth of its time, which the other
//! one fills, and each is a hostile neighbour of the other. The output of runs that failed is kept.

mod load;
mod output;
mod report;
mod run;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use load::Load;
use report::Report;
use run::Ended;

/// Ends a call for other reasons than tests that failed: too few runs in its time.
const TOO_FEW_RUNS: u8 = 2;

/// What is repeated if nothing else is asked for: the README's second command.
const SUITE: [&str; 2] = ["--release", "--workspace"];

/// How the suite is repeated.
struct Options {
    runs: usize,
    /// Whether every run is under load.
    is_loaded: bool,
    /// Runs that go on beside each other.
    abreast: usize,
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
            abreast: 1,
            limit: None,
            suite: suite.into_iter().map(str::to_owned).collect(),
        };
        let mut own = own.iter();
        while let Some(argument) = own.next() {
            match *argument {
                "--load" => options.is_loaded = true,
                "--minutes" => {
                    let minutes = number_of("--minutes", own.next())?;
                    options.limit = Some(Duration::from_secs(minutes as u64 * 60));
                }
                "--abreast" => options.abreast = number_of("--abreast", own.next())?,
                runs if options.runs == 0 => {
                    options.runs = runs.parse().with_context(|| format!("what is {runs}?"))?;
                }
                other => bail!("what is {other}?"),
            }
        }
        ensure!(options.runs > 0, "how many runs?");
        ensure!(options.abreast > 0, "no run beside none?");
        Ok(options)
    }
}

fn number_of(option: &str, argument: Option<&&str>) -> Result<usize> {
    let number = argument.and_then(|number| number.parse().ok());
    number.with_context(|| format!("{option} needs a number"))
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
    let numbers: Vec<usize> = (1..=options.runs).collect();
    for (round, numbers) in numbers.chunks(options.abreast).enumerate() {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break;
        }
        let is_loaded = options.is_loaded || round % 2 == 1;
        let load = is_loaded.then(Load::begin);
        let log_of = |number: usize| directory.join(format!("run-{number}.log"));
        let runs: Vec<Result<Ended>> = thread::scope(|scope| {
            let run = |number: usize| run::once(&options.suite, &log_of(number), deadline);
            let begin = |number: &usize| {
                let number = *number;
                scope.spawn(move || run(number))
            };
            let threads: Vec<_> = numbers.iter().map(begin).collect();
            let ends = threads.into_iter();
            ends.map(|thread| thread.join().expect("a run does not panic"))
                .collect()
        });
        drop(load);
        let mut was_stopped = false;
        for (&number, ended) in numbers.iter().zip(runs) {
            let (ended, log) = (ended?, log_of(number));
            report.add(number, is_loaded, &ended);
            let line = report::line(number, options.runs, is_loaded, &ended, &log);
            println!("{line}");
            if ended.is_green() {
                std::fs::remove_file(&log).context("removing the log of a green run")?;
            }
            was_stopped |= ended.was_stopped;
        }
        if was_stopped {
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
        let options = Options::read(&["4", "--abreast", "2"]).unwrap();
        assert_eq!((options.runs, options.abreast), (4, 2));
        for wrong in [
            &[][..],
            &["0"],
            &["many"],
            &["3", "4"],
            &["3", "--minutes"],
            &["3", "--abreast", "0"],
        ] {
            assert!(Options::read(wrong).is_err(), "{wrong:?}");
        }
    }
}
