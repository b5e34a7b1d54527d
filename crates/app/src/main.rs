//! The `mayfly` program: arguments, configuration, shell and output around the engine.
//!
//! **Owns** the terminal, standard streams and exit codes. **Never** parses SQL (the splitter only
//! finds where a statement ends) and never touches the temp space: it speaks to sessions.
//!
//! Where to look: `args` for the command line, `config` for what it becomes, `runner` for one
//! statement, `script` for files and pipes, `shell` for people (with `editor` and `complete` for
//! what they type, `hangup`, `commands`, `pager`, and `caret` for errors), `output` for formats,
//! `server` for MySQL's clients.

#![forbid(unsafe_code)]

mod args;
mod caret;
mod commands;
mod complete;
mod config;
mod editor;
mod external;
mod file_columns;
mod hangup;
mod output;
mod pager;
mod progress;
mod raw_bytes;
mod runner;
mod script;
mod server;
mod shell;
mod size;
mod splitter;
mod terminal;

use std::io::{BufReader, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use mayfly_session::is_standard_input;

use crate::args::{Arguments, Command, Format, SqlArguments, WideRows};
use crate::config::{Config, PagerKey};
use crate::pager::Pager;
use crate::runner::{Options, Runner};
use crate::script::Flow;

/// Something failed before or beside SQL: options, files, the engine's start.
const EXIT_FAILURE: u8 = 1;
/// Rows that a prompt shows: more than anybody reads, less than a terminal remembers.
const ROWS_SHOWN: u64 = 1000;
/// What shells report of a program that Ctrl-C ended.
const EXIT_INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Sql(arguments) => run_sql(arguments),
        Command::Serve(arguments) => server::serve(arguments),
        Command::User(arguments) => server::user(arguments),
        Command::Bench(arguments) => mayfly_bench::run(arguments)
            .map(|()| ExitCode::SUCCESS)
            .map_err(anyhow::Error::from),
    };
    done.unwrap_or_else(|error| {
        eprintln!("mayfly: {error:#}");
        ExitCode::from(EXIT_FAILURE)
    })
}

fn run_sql(arguments: SqlArguments) -> Result<ExitCode> {
    let mut config = Config::load(&arguments.engine)?;
    let scripted = !arguments.execute.is_empty() || arguments.file.is_some();
    let to_terminal = std::io::stdout().is_terminal();
    let interactive = !scripted && to_terminal && std::io::stdin().is_terminal();
    let default_format = if to_terminal {
        Format::Table
    } else {
        Format::Tsv
    };
    let short_format = match (arguments.batch, arguments.table) {
        (true, _) => Some(Format::Tsv),
        (_, true) => Some(Format::Table),
        _ => arguments.format,
    };
    let options = Options {
        format: short_format.or(config.format).unwrap_or(default_format),
        stats: arguments.stats.or(config.stats),
        names: !arguments.skip_column_names && !config.skip_column_names,
        force: arguments.force || config.force,
        interactive,
        max_rows: arguments.max_rows.or(config.max_rows).unwrap_or(ROWS_SHOWN),
        wide_rows: match arguments.auto_vertical_output {
            true => Some(WideRows::Vertical),
            false => arguments.wide_rows.or(config.wide_rows),
        },
    };
    let pager = match (&arguments.pager, &config.pager) {
        _ if arguments.skip_pager || !interactive => None,
        (Some(command), _) | (None, Some(PagerKey::Command(command))) => {
            Some(Pager::named(command.trim()))
        }
        (None, Some(PagerKey::On(true))) => Some(Pager::named("")),
        (None, Some(PagerKey::On(false))) => None,
        (None, None) => Pager::of_environment(),
    };
    // Statements may read what no statement comes from.
    let is_script = |path: &Path| path.to_str().is_some_and(is_standard_input);
    let is_script = arguments.file.as_deref().is_some_and(is_script);
    config.engine.reads_standard_input = scripted && !is_script;
    let banner = shell::banner(&config);
    let mut runner = Runner::open(config.engine, options, pager)?;
    if interactive {
        println!("{banner}");
        shell::run(&mut runner)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut flow = Flow::Continue;
    for sql in &arguments.execute {
        if flow == Flow::Continue {
            flow = script::run(&mut runner, &mut sql.as_bytes(), None)?;
        }
    }
    if flow == Flow::Continue {
        flow = match &arguments.file {
            None if scripted => flow,
            Some(path) if path.as_os_str() != "-" => {
                let file = std::fs::File::open(path)
                    .with_context(|| format!("opening '{}'", path.display()))?;
                script::run(&mut runner, &mut BufReader::new(file), None)?
            }
            _ => script::run(&mut runner, &mut std::io::stdin().lock(), None)?,
        };
    }
    Ok(match flow {
        Flow::Interrupted => ExitCode::from(EXIT_INTERRUPTED),
        Flow::Failed => ExitCode::from(EXIT_FAILURE),
        _ if runner.failed_statements() > 0 => ExitCode::from(EXIT_FAILURE),
        _ => ExitCode::SUCCESS,
    })
}
