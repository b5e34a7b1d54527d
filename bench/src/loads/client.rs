//! One run of a client program.
//!
//! Owns: the process, which is ended when its time is up, and what it writes.
//! Never: knows what the text means.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::answer::shortened;

/// How often a running program is looked at.
const INTERVAL: Duration = Duration::from_millis(10);

/// Runs a program to its end; its standard output.
///
/// # Errors
/// The line that says best why it failed.
pub(super) fn run(mut command: Command, timeout: Duration) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let output = reader(child.stdout.take().expect("standard output was piped"));
    let errors = reader(child.stderr.take().expect("standard error was piped"));
    let start = Instant::now();
    let mut too_long = false;
    let success = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.success(),
            Ok(None) if start.elapsed() > timeout && !too_long => {
                too_long = true;
                // One that has just ended by itself cannot be killed: the next wait says so.
                let _killed = child.kill().is_ok();
            }
            Ok(None) => thread::sleep(INTERVAL),
            Err(_) => break false,
        }
    };
    let output = output.join().unwrap_or_default();
    let errors = errors.join().unwrap_or_default();
    if too_long {
        return Err(format!("over {} s", timeout.as_secs()));
    }
    if success {
        return Ok(output);
    }
    Err(shortened(reason(&output, &errors)))
}

/// The first message with the number of an error: those that follow are about its consequences.
fn reason<'a>(output: &'a str, errors: &'a str) -> &'a str {
    let lines = || output.lines().chain(errors.lines()).map(str::trim);
    let is_fatal = |line: &&str| line.starts_with("FATAL:") || line.contains("ERROR");
    let has_number = |line: &&str| is_fatal(line) && line.contains("error ");
    let last = || lines().rfind(|line| !line.is_empty());
    let line = lines().find(has_number);
    let line = line.or_else(|| lines().find(is_fatal)).or_else(last);
    line.unwrap_or("ended without a message")
}

fn reader(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = Vec::new();
        // What was read before an error is still worth showing.
        let _read = stream.read_to_end(&mut text).is_ok();
        String::from_utf8_lossy(&text).into_owned()
    })
}
