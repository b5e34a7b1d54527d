//! One run of the suite.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::output::Reader;
use crate::repository;

/// How often a silent run is looked at.
const INTERVAL: Duration = Duration::from_millis(200);

/// How a run ended.
pub struct Ended {
    pub failed: Vec<String>,
    /// Whether there was no time for its end.
    pub was_stopped: bool,
    pub seconds: u64,
}

impl Ended {
    pub fn is_green(&self) -> bool {
        self.failed.is_empty() && !self.was_stopped
    }
}

/// Builds all that the runs run.
pub fn build(suite: &[String]) -> Result<()> {
    let status = cargo().args(["test", "--no-run"]).args(suite).status();
    ensure!(
        status.context("running cargo")?.success(),
        "the tests do not build"
    );
    Ok(())
}

/// Runs the suite, whatever fails, and keeps its output in a file.
pub fn once(suite: &[String], log: &Path, deadline: Option<Instant>) -> Result<Ended> {
    let begin = Instant::now();
    let mut log = BufWriter::new(File::create(log).context("making the log")?);
    let (output, input) = std::io::pipe().context("making a pipe")?;
    let mut command = cargo();
    // One pipe for both, so that lines stay in order. A group of its own, to be stopped as one.
    command
        .args(["test", "--no-fail-fast"])
        .args(suite)
        .stdin(Stdio::null())
        .stdout(input.try_clone().context("copying the end of a pipe")?)
        .stderr(input)
        .process_group(0);
    let mut child = command.spawn().context("running cargo")?;
    // Its copies of the end that is written to would keep the pipe open.
    drop(command);
    let lines = lines_of(output);
    let mut reader = Reader::default();
    let mut was_stopped = false;
    loop {
        match lines.recv_timeout(INTERVAL) {
            Ok(line) => {
                writeln!(log, "{line}").context("writing the log")?;
                reader.read(&line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            // What a test has left behind may hold the pipe longer than the run lasts.
            Err(RecvTimeoutError::Timeout) if has_ended(&mut child)? => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            was_stopped = true;
            stop(&child)?;
            break;
        }
    }
    let status = child.wait().context("waiting for cargo")?;
    log.flush().context("writing the log")?;
    let mut failed = reader.failed().to_vec();
    if was_stopped {
        failed.extend(reader.hanging());
    } else if !status.success() && failed.is_empty() {
        failed.push(format!("cargo test: {status}"));
    }
    Ok(Ended {
        failed,
        was_stopped,
        seconds: begin.elapsed().as_secs(),
    })
}

fn cargo() -> Command {
    let mut command = repository::cargo();
    command.env("CARGO_TERM_COLOR", "never");
    command
}

fn lines_of(output: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line).into_owned();
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

fn has_ended(child: &mut Child) -> Result<bool> {
    let ended = child.try_wait().context("looking at cargo")?;
    Ok(ended.is_some())
}

/// Ends cargo and the tests that it runs.
fn stop(child: &Child) -> Result<()> {
    let group = format!("-{}", child.id());
    let status = Command::new("kill").args(["-KILL", "--", &group]).status();
    ensure!(
        status.context("running kill")?.success(),
        "the run cannot be stopped"
    );
    Ok(())
}
