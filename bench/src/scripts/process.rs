//! A child process that runs statements from its standard input.
//!
//! Owns: the process, both ways to speak to it, the watch over its memory and its time.
//! Never: lets the writing of statements wait for anything but the child.
//!
//! Text: statements as a person would pipe them into `mayfly sql` or `mariadb`. A `SELECT` of a
//! constant follows each line; the line's time is from its first byte written until that row is
//! read. Driven: `run N` and N statements, one a line, answered by the nanoseconds that they took
//! inside the child; `ask` and a query, answered by its row.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::connection::{Connection, Usage};
use crate::answer::shortened;
use crate::child::Watch;

const MARK: &str = "mayfly-bench-mark";
/// How often a running child is looked at.
const INTERVAL: Duration = Duration::from_millis(4);

/// How statements reach the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Text,
    Driven,
}

pub(super) struct Process {
    child: Child,
    framing: Framing,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: Option<JoinHandle<String>>,
    watched: Arc<Watched>,
    watcher: Option<JoinHandle<()>>,
    timeout: Duration,
}

/// What the watching thread shares.
struct Watched {
    watch: Mutex<Watch>,
    ended: AtomicBool,
    too_long: AtomicBool,
}

impl Process {
    pub(super) fn start(
        mut command: Command,
        framing: Framing,
        timeout: Duration,
    ) -> Result<Self, String> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().expect("standard output was piped");
        let mut errors = child.stderr.take().expect("standard error was piped");
        let errors = thread::spawn(move || {
            let mut text = Vec::new();
            // What was read before an error is still worth showing.
            let _read = errors.read_to_end(&mut text).is_ok();
            String::from_utf8_lossy(&text).into_owned()
        });
        let watched = Arc::new(Watched {
            watch: Mutex::new(Watch::new(child.id())),
            ended: AtomicBool::new(false),
            too_long: AtomicBool::new(false),
        });
        let process = child.id();
        let shared = Arc::clone(&watched);
        let watcher = thread::spawn(move || shared.watch(process, timeout));
        Ok(Self {
            child,
            framing,
            input,
            output: BufReader::new(output),
            errors: Some(errors),
            watched,
            watcher: Some(watcher),
            timeout,
        })
    }

    /// Writes `text` and reads the lines of the reply up to the one that `last` accepts.
    fn exchange(
        &mut self,
        text: &[u8],
        last: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>, String> {
        let input = self
            .input
            .as_mut()
            .expect("the input is open until the end");
        // A child that has failed reads no further; why is on its standard error.
        let written = input.write_all(text).and_then(|()| input.flush());
        let mut lines = Vec::new();
        while written.is_ok() {
            let mut line = String::new();
            match self.output.read_line(&mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => lines.push(line.trim_end_matches('\n').to_owned()),
            }
            if lines.last().is_some_and(|line| last(line)) {
                return Ok(lines);
            }
        }
        Err(self.why_it_ended())
    }

    fn why_it_ended(&mut self) -> String {
        self.end();
        if self.watched.too_long.load(Ordering::Relaxed) {
            return format!("over {} s", self.timeout.as_secs());
        }
        let errors = self.errors.take().map(JoinHandle::join);
        let text = errors.and_then(Result::ok).unwrap_or_default();
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        shortened(line.unwrap_or("ended without a message").trim())
    }

    /// Closes the input, which ends the child.
    fn end(&mut self) {
        self.input = None;
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                break;
            }
            thread::sleep(INTERVAL);
        }
        self.watched.ended.store(true, Ordering::Relaxed);
        let _watched = self.watcher.take().map(JoinHandle::join);
        // Only one that would not end by itself is still there.
        let _killed = self.child.kill().is_ok();
        let _waited = self.child.wait().is_ok();
    }
}

impl Watched {
    fn watch(&self, process: u32, timeout: Duration) {
        let start = Instant::now();
        while !self.ended.load(Ordering::Relaxed) {
            self.look();
            if start.elapsed() > timeout && !self.too_long.swap(true, Ordering::Relaxed) {
                let pid = i32::try_from(process).ok();
                if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
                    let kill = rustix::process::Signal::KILL;
                    let _killed = rustix::process::kill_process(pid, kill).is_ok();
                }
            }
            thread::sleep(INTERVAL);
        }
    }

    fn look(&self) -> Usage {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.look();
        Usage::of(&watch)
    }
}

impl Connection for Process {
    fn run(&mut self, statements: &[String]) -> Result<Duration, String> {
        let (end, mark) = match self.framing {
            Framing::Text => (";\n", format!("SELECT '{MARK}';\n")),
            Framing::Driven => ("\n", String::new()),
        };
        let mut text = match self.framing {
            Framing::Text => String::new(),
            Framing::Driven => format!("run {}\n", statements.len()),
        };
        for statement in statements {
            text.push_str(statement);
            text.push_str(end);
        }
        text.push_str(&mark);
        let framing = self.framing;
        let start = Instant::now();
        let lines = self.exchange(text.as_bytes(), |line| {
            framing == Framing::Driven || line == MARK
        })?;
        let elapsed = start.elapsed();
        match framing {
            Framing::Text => Ok(elapsed),
            Framing::Driven => lines
                .first()
                .and_then(|line| line.parse().ok())
                .map(Duration::from_nanos)
                .ok_or_else(|| "no time was reported".to_owned()),
        }
    }

    fn ask(&mut self, query: &str) -> Result<String, String> {
        let mut lines = match self.framing {
            Framing::Text => {
                let text = format!("{query};\nSELECT '{MARK}';\n");
                self.exchange(text.as_bytes(), |line| line == MARK)?
            }
            Framing::Driven => self.exchange(format!("ask\n{query}\n").as_bytes(), |_| true)?,
        };
        Ok(lines.swap_remove(0))
    }

    fn usage(&mut self) -> Usage {
        self.watched.look()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.watcher.is_some() {
            self.end();
        }
    }
}
