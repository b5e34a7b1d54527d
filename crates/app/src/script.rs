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
use clap::ValueEnum;
use mayfly_types::MySqlError;

use crate::args::Format;
use crate::caret;
use crate::commands::{self, Command};
use crate::raw_bytes;
use crate::runner::{End, Runner, View};
use crate::splitter::{Item, Splitter};
use crate::terminal::Size;

/// Files that `source` may nest: deep enough for people, shallow enough for a file that names
/// itself.
const SOURCE_DEPTH: usize = 16;

/// What `status` asks the engine.
pub const STATUS_SQL: &str =
    "SELECT VERSION() AS version, CONNECTION_ID() AS connection, DATABASE() AS `database`";

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
            let text = raw_bytes::statement_of(&sql, runner.client_set());
            let end = match &text {
                Ok(sql) => runner.run(sql, View::first_rows(vertical))?,
                Err(error) => {
                    runner.count_failure();
                    End::Failed(error.clone())
                }
            };
            let flow = finish_statement(runner, &end, text.as_deref().ok(), line, file);
            runner.write_stats();
            Ok(flow)
        }
        Item::Command(command) => run_command(runner, command, file),
    }
}

/// Says how a statement ended; `sql` is its text, unless that could not be read.
fn finish_statement(
    runner: &Runner,
    end: &End,
    sql: Option<&str>,
    line: u64,
    file: Option<(&Path, usize)>,
) -> Flow {
    let (error, flow) = match end {
        End::Done => return Flow::Continue,
        End::OutputClosed => return Flow::Quit,
        End::Failed(error) if runner.options().force => (error, Flow::Continue),
        End::Failed(error) => (error, Flow::Failed),
        End::Interrupted(error) => (error, Flow::Interrupted),
    };
    print_error(error, Some(line), file);
    if let Some(sql) = sql {
        print_place(error, sql, line);
    }
    flow
}

fn run_command(
    runner: &mut Runner,
    command: Command,
    file: Option<(&Path, usize)>,
) -> Result<Flow> {
    match command {
        Command::Quit => return Ok(Flow::Quit),
        Command::Help => println!("{}", commands::HELP),
        Command::Status => {
            let item = Item::Statement {
                sql: STATUS_SQL.to_owned(),
                line: 1,
                vertical: true,
                leads: false,
            };
            return run_item(runner, item, file);
        }
        Command::Source(path) => {
            let depth = file.map_or(0, |(_, depth)| depth);
            return Ok(match source(runner, Path::new(&path), depth)? {
                Flow::Failed if runner.options().force => Flow::Continue,
                flow => flow,
            });
        }
        Command::DescribeFile(described) => {
            let end = runner.describe_file(&described)?;
            return Ok(finish_statement(runner, &end, Some(&described), 1, None));
        }
        Command::Format(name) => match format_of(&name) {
            Ok(format) => runner.set_format(format),
            Err(reason) => return Ok(fail(runner, &reason)),
        },
        // As in the mysql client, nobody reads page by page here.
        Command::Pager(_) | Command::NoPager | Command::Rehash => {}
        // A script comes from anywhere, a dump for example.
        Command::System(_) => return Ok(refuse(runner, "system")),
        Command::Edit(_) => return Ok(refuse(runner, "edit")),
        Command::AllRows => return Ok(refuse(runner, "\\all")),
    }
    Ok(Flow::Continue)
}

/// The format of a name, or why there is none.
pub fn format_of(name: &str) -> Result<Format, String> {
    Format::from_str(name, true).map_err(|_| {
        let names: Vec<_> = Format::value_variants()
            .iter()
            .filter_map(|format| format.to_possible_value())
            .map(|value| value.get_name().to_owned())
            .collect();
        let names = names.join(", ");
        format!("'{name}' is no format; there are {names}")
    })
}

fn refuse(runner: &mut Runner, command: &str) -> Flow {
    fail(runner, &format!("'{command}' works at the prompt only"))
}

/// Fails as a statement does.
fn fail(runner: &mut Runner, reason: &str) -> Flow {
    runner.count_failure();
    eprintln!("ERROR: {reason}");
    if runner.options().force {
        Flow::Continue
    } else {
        Flow::Failed
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

/// Shows people where in a statement an error is; `first_line` is the number of its first line.
pub fn print_place(error: &MySqlError, sql: &str, first_line: u64) {
    if let Some(size) = Size::of(std::io::stderr())
        && let Some(excerpt) = caret::excerpt(sql, error, first_line, size.columns)
    {
        eprintln!("{excerpt}");
    }
}
