//! Files, pipes and `-e`: statements one after the other until one fails.
//!
//! **Never** reads ahead of the statement that runs: input of any length needs the memory of its
//! longest statement.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use mayfly_types::MySqlError;

use crate::raw_bytes;
use crate::runner::{End, Runner};
use crate::shell;
use crate::splitter::{Command, Item, Splitter};

/// Files that `source` may nest: deep enough for people, shallow enough for a file that names
/// itself.
const SOURCE_DEPTH: usize = 16;

/// What the caller does after a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// The script said so, or nobody reads the output.
    Quit,
    /// An error, and errors stop.
    Failed,
    /// Ctrl-C.
    Interrupted,
}

/// Runs what `input` holds. `files` names the files of `source` that led here, innermost last.
pub fn run(
    runner: &mut Runner,
    input: &mut dyn BufRead,
    file: Option<(&Path, usize)>,
) -> Result<Flow> {
    let mut splitter = Splitter::default();
    let mut line = Vec::new();
    let mut items = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        let ended = input
            .read_until(b'\n', &mut line)
            .context("reading the script")?
            == 0;
        number += 1;
        let text;
        let mut rest = None;
        if ended {
            splitter.finish(&mut items);
        } else {
            while line
                .last()
                .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
            {
                line.pop();
            }
            let mark = '\u{feff}';
            text = raw_bytes::text_of(&line);
            let text = if number == 1 {
                text.trim_start_matches(mark)
            } else {
                &text
            };
            rest = splitter.begin_line(text, &mut items);
        }
        loop {
            rest = rest.and_then(|rest| splitter.scan(rest, &mut items));
            let flow = run_items(runner, &mut items, file)?;
            if flow != Flow::Continue {
                return Ok(flow);
            }
            if rest.is_none() {
                break;
            }
        }
        if ended {
            return Ok(Flow::Continue);
        }
    }
}

/// Runs what was completed together.
fn run_items(
    runner: &mut Runner,
    items: &mut Vec<Item>,
    file: Option<(&Path, usize)>,
) -> Result<Flow> {
    let mut failed_leader = false;
    for item in items.drain(..) {
        let leads = matches!(item, Item::Statement { leads: true, .. });
        if failed_leader {
            failed_leader = leads;
            continue;
        }
        let failures = runner.failed_statements();
        let flow = run_item(runner, item, file)?;
        failed_leader = leads && runner.failed_statements() > failures;
        if flow != Flow::Continue {
            return Ok(flow);
        }
    }
    Ok(Flow::Continue)
}

fn run_item(runner: &mut Runner, item: Item, file: Option<(&Path, usize)>) -> Result<Flow> {
    match item {
        Item::Statement {
            sql,
            line,
            vertical,
            ..
        } => {
            let end = match raw_bytes::statement_of(&sql, runner.client_set()) {
                Ok(sql) => runner.run(&sql, vertical)?,
                Err(error) => {
                    runner.count_failure();
                    End::Failed(error)
                }
            };
            let flow = match &end {
                End::Done => Flow::Continue,
                End::OutputClosed => return Ok(Flow::Quit),
                End::Failed(error) => {
                    print_error(error, Some(line), file);
                    if runner.options().force {
                        Flow::Continue
                    } else {
                        Flow::Failed
                    }
                }
                End::Interrupted(error) => {
                    print_error(error, Some(line), file);
                    Flow::Interrupted
                }
            };
            runner.write_stats();
            Ok(flow)
        }
        Item::Command(Command::Quit) => Ok(Flow::Quit),
        Item::Command(Command::Help) => {
            println!("{}", shell::HELP);
            Ok(Flow::Continue)
        }
        Item::Command(Command::Status) => runner_status(runner, file),
        Item::Command(Command::Source(path)) => {
            let depth = file.map_or(0, |(_, depth)| depth);
            Ok(match source(runner, Path::new(&path), depth)? {
                Flow::Failed if runner.options().force => Flow::Continue,
                flow => flow,
            })
        }
    }
}

/// Runs the file that `source` names; a file that cannot be opened counts as a failed statement.
pub fn source(runner: &mut Runner, path: &Path, depth: usize) -> Result<Flow> {
    let name = path.to_str().and_then(raw_bytes::bytes_of);
    let name = name.map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
    let path = name.as_deref().unwrap_or(path);
    let opened = if depth < SOURCE_DEPTH {
        File::open(path).map_err(|error| error.to_string())
    } else {
        Err(format!("'source' is nested more than {SOURCE_DEPTH} deep"))
    };
    match opened {
        Ok(input) => run(runner, &mut BufReader::new(input), Some((path, depth + 1))),
        Err(reason) => {
            runner.count_failure();
            eprintln!(
                "ERROR: Failed to open file '{}', error: {reason}",
                path.display()
            );
            Ok(Flow::Failed)
        }
    }
}

fn runner_status(runner: &mut Runner, file: Option<(&Path, usize)>) -> Result<Flow> {
    let item = Item::Statement {
        sql: shell::STATUS_SQL.to_string(),
        line: 1,
        vertical: true,
        leads: false,
    };
    run_item(runner, item, file)
}

/// Prints an error as the `mysql` client does; the line is left out at a prompt.
pub fn print_error(error: &MySqlError, line: Option<u64>, file: Option<(&Path, usize)>) {
    let MySqlError {
        code,
        sqlstate,
        message,
    } = error;
    let place = match (line, file) {
        (Some(line), Some((path, _))) => format!(" at line {line} in file: '{}'", path.display()),
        (Some(line), None) => format!(" at line {line}"),
        (None, _) => String::new(),
    };
    eprintln!("ERROR {code} ({sqlstate}){place}: {message}");
}
