//! One measured child process.
//!
//! Owns: starting it (inside a memory cgroup when asked), watching its resident size and its
//! bytes written from outside, reading its streams, ending it when its time is up.
//! Never: trusts the child about its memory.
//!
//! The peak is `VmHWM` of `/proc/<pid>/status`, itself a high-water mark, read every few
//! milliseconds: only growth in the last interval before the exit can be missed.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::answer::Answer;
use crate::cgroup::{Cap, CapReport};

/// How often a running child is looked at.
const INTERVAL: Duration = Duration::from_millis(4);

/// How to start the child.
pub(crate) struct Spec {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    /// Limit of a memory cgroup around it, page cache included.
    pub(crate) cap_bytes: Option<u64>,
    pub(crate) timeout: Duration,
    /// Header lines on standard output that are not rows.
    pub(crate) header_lines: usize,
    /// Keep the rows, and not only their digest.
    pub(crate) keep_lines: bool,
}

/// What was seen.
pub(crate) struct Outcome {
    pub(crate) success: bool,
    pub(crate) timed_out: bool,
    pub(crate) answer: Answer,
    pub(crate) stderr: String,
    pub(crate) peak_bytes: u64,
    pub(crate) anonymous_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) cap: Option<CapReport>,
}

/// Runs a child to its end.
///
/// # Errors
/// A sentence for the table: the program or the cgroup is not there.
pub(crate) fn run(spec: &Spec) -> Result<Outcome, String> {
    let cap = spec.cap_bytes.map(Cap::create).transpose()?;
    let mut command = command(&spec.program, cap.as_ref());
    command
        .args(&spec.args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (name, value) in &spec.env {
        command.env(name, value);
    }
    let mut child = command
        .spawn()
        .map_err(|error| format!("{}: {error}", spec.program.display()))?;
    let stdout = child.stdout.take().expect("standard output was piped");
    let mut stderr = child.stderr.take().expect("standard error was piped");
    let (header_lines, keep_lines) = (spec.header_lines, spec.keep_lines);
    let answer =
        thread::spawn(move || Answer::read(stdout, header_lines, keep_lines).unwrap_or_default());
    let messages = thread::spawn(move || {
        let mut text = Vec::new();
        // What was read before an error is still worth showing.
        let _read = stderr.read_to_end(&mut text).is_ok();
        String::from_utf8_lossy(&text).into_owned()
    });

    let start = Instant::now();
    let mut watch = Watch::new(child.id());
    let mut timed_out = false;
    let status = loop {
        watch.look();
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if start.elapsed() > spec.timeout && !timed_out => {
                timed_out = true;
                // A child that has just ended by itself cannot be killed: the next wait says so.
                let _killed = child.kill().is_ok();
            }
            Ok(None) => thread::sleep(INTERVAL),
            Err(_) => break None,
        }
    };
    Ok(Outcome {
        success: status.is_some_and(|status| status.success()),
        timed_out,
        answer: answer.join().unwrap_or_default(),
        stderr: messages.join().unwrap_or_default(),
        peak_bytes: watch.peak_bytes,
        anonymous_bytes: watch.anonymous_bytes,
        written_bytes: watch.written_bytes,
        cap: cap.as_ref().map(Cap::report),
    })
}

/// A command that starts inside a cgroup.
pub(crate) fn command(program: &Path, cap: Option<&Cap>) -> Command {
    let Some(cap) = cap else {
        return Command::new(program);
    };
    // The shell enters the group, then becomes the program: same process id.
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
    shell.arg(cap.entrance()).arg(program);
    shell
}

/// The memory of a process and its bytes on the device, seen from outside.
pub(crate) struct Watch {
    status: PathBuf,
    io: PathBuf,
    pub(crate) peak_bytes: u64,
    /// Most of it that was no file's: without the text of the program and its libraries.
    pub(crate) anonymous_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) read_bytes: u64,
}

impl Watch {
    pub(crate) fn new(process: u32) -> Self {
        let root = PathBuf::from(format!("/proc/{process}"));
        Self {
            status: root.join("status"),
            io: root.join("io"),
            peak_bytes: 0,
            anonymous_bytes: 0,
            written_bytes: 0,
            read_bytes: 0,
        }
    }

    /// Takes one look; a process that has ended leaves the last values.
    pub(crate) fn look(&mut self) {
        if let Some(kib) = field(&self.status, "VmHWM:") {
            self.peak_bytes = self.peak_bytes.max(kib << 10);
        }
        if let Some(kib) = field(&self.status, "RssAnon:") {
            self.anonymous_bytes = self.anonymous_bytes.max(kib << 10);
        }
        if let Some(bytes) = field(&self.io, "write_bytes:") {
            self.written_bytes = self.written_bytes.max(bytes);
        }
        if let Some(bytes) = field(&self.io, "read_bytes:") {
            self.read_bytes = self.read_bytes.max(bytes);
        }
    }
}

/// The number after `name` in a file of `/proc`.
fn field(file: &PathBuf, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
