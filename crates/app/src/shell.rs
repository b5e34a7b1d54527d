//! The interactive shell.
//!
//! **Owns** the prompt and what the user did last. A statement may span lines and ends at the
//! delimiter; Ctrl-C discards the text or cancels the statement that runs, and two in a row at an
//! empty prompt leave.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use reedline::{EditCommand, Reedline, Signal};

use crate::commands::{self, Command};
use crate::complete::{Names, SqlCompleter};
use crate::config::Config;
use crate::editor::{self, SqlPrompt};
use crate::external;
use crate::hangup::Hangup;
use crate::pager::Pager;
use crate::runner::{End, Runner, View};
use crate::script::{self, Flow};
use crate::size::display_bytes;
use crate::splitter::{Item, Splitter};

/// The first lines of the shell.
pub fn banner(config: &Config) -> String {
    let dirs = match config.engine.temp_dirs.as_slice() {
        [] => std::env::temp_dir().display().to_string(),
        dirs => dirs
            .iter()
            .map(|dir| dir.display().to_string())
            .collect::<Vec<_>>()
            .join(", "),
    };
    format!(
        "Mayfly {}: memory {}, {} threads, temporary space in {dirs}.\n\
         Statements end with ';'. Type 'help' for help.\n",
        env!("CARGO_PKG_VERSION"),
        display_bytes(config.engine.memory_bytes),
        config.threads,
    )
}

/// Reads and runs statements until the user leaves.
pub fn run(runner: &mut Runner) -> Result<()> {
    let names = Names::default();
    let delimiter = Arc::new(Mutex::new(";".to_string()));
    let blank = Arc::new(AtomicBool::new(true));
    let completer = SqlCompleter::new(names.clone(), runner.file_columns());
    let mut shell = Shell {
        editor: editor::open(completer, Arc::clone(&delimiter), &blank),
        last: None,
    };
    let hangup = Hangup::watch();
    let mut interrupts = 0;
    loop {
        names.replace(runner.names_for_completion());
        blank.store(true, Ordering::Relaxed);
        let read = hangup.while_reading(|| shell.editor.read_line(&SqlPrompt));
        match read.context("reading the terminal")? {
            Signal::Success(text) => {
                interrupts = 0;
                let mut current = delimiter
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone();
                let flow = shell.run_text(runner, &text, &mut current)?;
                *delimiter.lock().unwrap_or_else(PoisonError::into_inner) = current;
                if flow == Flow::Quit {
                    break;
                }
            }
            Signal::CtrlC if !blank.load(Ordering::Relaxed) => interrupts = 0,
            Signal::CtrlC => {
                interrupts += 1;
                if interrupts > 1 {
                    break;
                }
                println!("(Ctrl-C again or \\q leaves)");
            }
            Signal::CtrlD => break,
            _ => {}
        }
    }
    println!("Bye");
    Ok(())
}

struct Shell {
    editor: Reedline,
    /// The last statement, to be edited, and whether it was shown with one column per line.
    last: Option<(String, bool)>,
}

impl Shell {
    fn run_text(
        &mut self,
        runner: &mut Runner,
        text: &str,
        delimiter: &mut String,
    ) -> Result<Flow> {
        let mut splitter = Splitter::with_delimiter(delimiter);
        let mut items = Vec::new();
        splitter.push_text(text, &mut items);
        splitter.finish(&mut items);
        *delimiter = splitter.delimiter().to_string();
        for item in items {
            match item {
                Item::Statement {
                    sql,
                    line,
                    vertical,
                    ..
                } => {
                    let goes_on = run_statement(runner, &sql, line, View::first_rows(vertical))?;
                    self.last = Some((sql, vertical));
                    if !goes_on {
                        return Ok(Flow::Continue);
                    }
                }
                Item::Command(command) => {
                    if self.run_command(runner, command)? == Flow::Quit {
                        return Ok(Flow::Quit);
                    }
                }
            }
        }
        Ok(Flow::Continue)
    }

    fn run_command(&mut self, runner: &mut Runner, command: Command) -> Result<Flow> {
        match command {
            Command::Quit => return Ok(Flow::Quit),
            Command::Help => println!("{}\n", commands::HELP),
            Command::Status => {
                let view = View {
                    vertical: true,
                    all_rows: true,
                };
                run_statement(runner, script::STATUS_SQL, 1, view)?;
            }
            Command::Source(path) => return script::source(runner, Path::new(&path), 0),
            Command::AllRows => match runner.last_query() {
                Some((sql, view)) => {
                    let view = View {
                        all_rows: true,
                        ..view
                    };
                    run_statement(runner, &sql, 1, view)?;
                }
                None => eprintln!("ERROR: there is no query to run again"),
            },
            Command::DescribeFile(file) => {
                let end = runner.describe_file(&file)?;
                print_failure(&end, &file, 1);
            }
            Command::Edit(text) => self.edit(text),
            Command::Format(name) => match script::format_of(&name) {
                Ok(format) => {
                    runner.set_format(format);
                    println!("Results are shown as {name}");
                }
                Err(reason) => eprintln!("ERROR: {reason}"),
            },
            Command::Pager(command) => {
                let pager = Pager::named(&command);
                println!("PAGER set to '{}'", pager.command());
                runner.set_pager(Some(pager));
            }
            Command::NoPager => {
                println!("PAGER set to stdout");
                runner.set_pager(None);
            }
            // The names are read before each prompt, and files are looked at when they are named.
            Command::Rehash => {}
            Command::System(command) => {
                if let Err(error) = external::run(&command) {
                    eprintln!("ERROR: '{command}': {error}");
                }
            }
        }
        Ok(Flow::Continue)
    }

    /// Puts a text that the user edits into the line of the next prompt; as it was if the editor
    /// fails.
    fn edit(&mut self, text: String) {
        let draft = match &self.last {
            Some((last, vertical)) if text.is_empty() => {
                let end = if *vertical { "\\G" } else { ";" };
                format!("{last}{end}")
            }
            _ => text.clone(),
        };
        let line = match external::edit(&draft) {
            Ok(Some(edited)) => edited,
            Ok(None) => {
                eprintln!("ERROR: the editor failed, the text is as it was");
                text
            }
            Err(error) => {
                eprintln!("ERROR: the editor: {error}");
                text
            }
        };
        let commands = [EditCommand::Clear, EditCommand::InsertString(line)];
        self.editor.run_edit_commands(&commands);
    }
}

/// Whether the statements after this one may run.
fn run_statement(runner: &mut Runner, sql: &str, line: u64, view: View) -> Result<bool> {
    let end = runner.run(sql, view)?;
    print_failure(&end, sql, line);
    runner.write_stats();
    Ok(matches!(end, End::Done))
}

/// Prints the error that something ended with, if it did, and its place in `text`.
fn print_failure(end: &End, text: &str, first_line: u64) {
    if let End::Failed(error) | End::Interrupted(error) = end {
        script::print_error(error, None, None);
        script::print_place(error, text, first_line);
    }
}
