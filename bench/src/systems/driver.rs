//! The protocol between the benchmark and its drivers, and programs that tell their version.

use std::path::PathBuf;

use serde::Deserialize;

use super::system::{Failure, Job, Reply};
use crate::answer::shortened;
use crate::child::{self, Spec};

/// One line of statistics that a driver prints after a statement.
#[derive(Deserialize)]
struct StatementLine {
    elapsed_ms: f64,
    #[serde(default)]
    temp_bytes_written: Option<u64>,
}

/// Runs a driver and reads its protocol; the last `job.repeats` statements are the timed ones.
pub(super) fn drive(
    job: &Job<'_>,
    program: PathBuf,
    args: Vec<String>,
    header_lines: usize,
) -> Result<Reply, Failure> {
    let spec = Spec {
        program,
        args,
        env: vec![("TMPDIR".to_owned(), job.temp_dir.display().to_string())],
        cap_bytes: job.cap_bytes(),
        timeout: job.timeout,
        header_lines,
        keep_lines: job.keep_lines,
    };
    let outcome = child::run(&spec).map_err(Failure::Skipped)?;
    let lines: Vec<StatementLine> = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with('{'))
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    if outcome.timed_out {
        return Err(Failure::TimedOut(job.timeout.as_secs()));
    }
    if !outcome.success {
        if outcome.cap.is_some_and(|cap| cap.killed > 0) {
            return Err(Failure::Failed(
                "killed: more memory than the cgroup has".to_owned(),
            ));
        }
        let message = outcome.stderr.lines().rev().find(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('{')
        });
        let message = message
            .unwrap_or("ended without a message")
            .trim()
            .to_owned();
        return Err(match message.strip_prefix("skipped: ") {
            Some(reason) => Failure::Skipped(reason.to_owned()),
            None => Failure::Failed(shortened(&message)),
        });
    }
    if lines.len() < job.repeats {
        return Err(Failure::Failed("no time was reported".to_owned()));
    }
    let timed = &lines[lines.len() - job.repeats..];
    Ok(Reply {
        seconds: timed.iter().map(|line| line.elapsed_ms / 1000.0).collect(),
        answer: outcome.answer,
        peak_bytes: outcome.peak_bytes,
        anonymous_bytes: outcome.anonymous_bytes,
        cap_peak_bytes: outcome.cap.map(|cap| cap.peak_bytes),
        written_bytes: outcome.written_bytes,
        spilled_bytes: timed.last().and_then(|line| line.temp_bytes_written),
    })
}

/// Runs a program for its first line of output.
pub(crate) fn first_line(program: &str, args: &[&str]) -> Result<String, String> {
    let output = std::process::Command::new(program)
        .args(args)
        .output()
        .map_err(|_| format!("`{program}` is not installed"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next() {
        Some(line) if output.status.success() => Ok(line.trim().to_owned()),
        _ => Err(format!("`{program}` does not answer")),
    }
}
