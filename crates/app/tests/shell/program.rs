//! Starts `mayfly sql` and collects what it says.

use std::io::Write;
use std::process::{Command, Stdio};

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A command that runs `mayfly sql` in 64 MiB.
pub fn mayfly() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayfly"));
    command.args(["sql", "--memory", "64M", "--threads", "2"]);
    command
}

/// Runs `mayfly sql` with more arguments and `input` on standard input.
pub fn run(arguments: &[&str], input: &str) -> Ran {
    run_command(mayfly().args(arguments), input)
}

/// Runs a command with `input` on standard input.
pub fn run_command(command: &mut Command, input: &str) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A program that ends early closes the pipe; that is no error of the test.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("the writer does not panic");
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("messages are UTF-8"),
    }
}
