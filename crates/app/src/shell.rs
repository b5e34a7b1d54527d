//! The interactive shell.
//!
//! **Owns** the prompt, the line editor and the history file. A statement may span lines and ends
//! at the delimiter; Ctrl-C discards the text or cancels the statement that runs, and two in a row
//! at an empty prompt leave.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use reedline::{
    ColumnarMenu, EditCommand, EditMode, Emacs, ExampleHighlighter, FileBackedHistory, Highlighter,
    KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch,
    PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, ReedlineRawEvent, Signal,
    StyledText, ValidationResult, Validator, default_emacs_keybindings,
};

use crate::complete::{Names, SqlCompleter};
use crate::config::Config;
use crate::runner::{End, Runner};
use crate::script::{self, Flow};
use crate::size::display_bytes;
use crate::splitter::{Command, Item, Splitter, Waiting};

/// Statements that the history file keeps.
const HISTORY_STATEMENTS: usize = 10_000;
const MENU: &str = "completion_menu";

/// What `status` asks the engine.
pub const STATUS_SQL: &str =
    "SELECT VERSION() AS version, CONNECTION_ID() AS connection, DATABASE() AS `database`";

/// What `help` prints.
pub const HELP: &str = "\
Statements end with ; and may span lines. Files are tables: SELECT * FROM 'file.parquet';

  \\G             run the statement, one column per line   \\g   same as ;
  use DATABASE   change the current database
  source FILE    run the statements of a file              \\.   same
  delimiter STR  end statements with STR                   \\c   discard the statement
  status         show version and connection               \\s   same
  help           show this                                 \\h   same
  quit           leave                                     \\q   same, or Ctrl-D

  Tab completes names, and file names inside quotes. Ctrl-R searches the history.
  Ctrl-C cancels the statement that runs; twice at an empty prompt it leaves.";

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
    let mut editor = editor(names.clone(), Arc::clone(&delimiter), &blank)?;
    let mut interrupts = 0;
    loop {
        names.replace(runner.names_for_completion());
        blank.store(true, Ordering::Relaxed);
        match editor
            .read_line(&SqlPrompt)
            .context("reading the terminal")?
        {
            Signal::Success(text) => {
                interrupts = 0;
                let mut current = delimiter
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone();
                let flow = run_text(runner, &text, &mut current)?;
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

fn run_text(runner: &mut Runner, text: &str, delimiter: &mut String) -> Result<Flow> {
    let mut splitter = Splitter::with_delimiter(delimiter);
    let mut items = Vec::new();
    for line in text.lines() {
        splitter.push_line(line, &mut items);
    }
    splitter.finish(&mut items);
    *delimiter = splitter.delimiter().to_string();
    for item in items {
        match item {
            Item::Statement { sql, vertical, .. } => {
                if !run_statement(runner, &sql, vertical)? {
                    return Ok(Flow::Continue);
                }
            }
            Item::Command(Command::Quit) => return Ok(Flow::Quit),
            Item::Command(Command::Help) => println!("{HELP}\n"),
            Item::Command(Command::Status) => {
                run_statement(runner, STATUS_SQL, true)?;
            }
            Item::Command(Command::Source(path)) => {
                if script::source(runner, Path::new(&path), 0)? == Flow::Quit {
                    return Ok(Flow::Quit);
                }
            }
        }
    }
    Ok(Flow::Continue)
}

/// Whether the statements after this one may run.
fn run_statement(runner: &mut Runner, sql: &str, vertical: bool) -> Result<bool> {
    let end = runner.run(sql, vertical)?;
    if let End::Failed(error) | End::Interrupted(error) = &end {
        script::print_error(error, None, None);
    }
    runner.write_stats();
    Ok(matches!(end, End::Done))
}

fn editor(
    names: Names,
    delimiter: Arc<Mutex<String>>,
    blank: &Arc<AtomicBool>,
) -> Result<Reedline> {
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_string()),
            ReedlineEvent::MenuNext,
        ]),
    );
    keys.add_binding(
        KeyModifiers::ALT,
        KeyCode::Enter,
        ReedlineEvent::Edit(vec![EditCommand::InsertNewline]),
    );
    let menu = ColumnarMenu::default()
        .with_name(MENU)
        .with_columns(4)
        .with_column_padding(2);
    let mut editor = Reedline::create()
        .with_edit_mode(Box::new(Keys {
            inner: Emacs::new(keys),
            blank: Arc::clone(blank),
        }))
        .with_highlighter(Box::new(Line {
            inner: ExampleHighlighter::default(),
            blank: Arc::clone(blank),
        }))
        .with_completer(Box::new(SqlCompleter::new(names)))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_validator(Box::new(StatementValidator { delimiter }))
        .with_ansi_colors(std::env::var_os("NO_COLOR").is_none());
    if let Some(path) = history_path() {
        match FileBackedHistory::with_file(HISTORY_STATEMENTS, path.clone()) {
            Ok(history) => editor = editor.with_history(Box::new(history)),
            Err(error) => eprintln!("mayfly: no history in '{}': {error}", path.display()),
        }
    }
    Ok(editor)
}

/// `$MAYFLY_HISTORY`, or a file among the user's state files.
fn history_path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("MAYFLY_HISTORY") {
        return (!path.is_empty()).then(|| PathBuf::from(path));
    }
    let state = match std::env::var_os("XDG_STATE_HOME").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(&std::env::var_os("HOME")?).join(".local/state"),
    };
    Some(state.join("mayfly/history"))
}

/// Lets Enter end the input where a statement or command is complete.
struct StatementValidator {
    delimiter: Arc<Mutex<String>>,
}

impl Validator for StatementValidator {
    fn validate(&self, text: &str) -> ValidationResult {
        let delimiter = self
            .delimiter
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut splitter = Splitter::with_delimiter(&delimiter);
        let mut items = Vec::new();
        for line in text.lines() {
            splitter.push_line(line, &mut items);
        }
        if splitter.waiting() == Waiting::Statement {
            ValidationResult::Complete
        } else {
            ValidationResult::Incomplete
        }
    }
}

/// The keys; whatever edits makes the line not blank, until it is painted.
///
/// The editor forgets its line before it tells of Ctrl-C, and paints only after all keys that came
/// together; so keys and painter watch the line.
struct Keys {
    inner: Emacs,
    blank: Arc<AtomicBool>,
}

impl EditMode for Keys {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = self.inner.parse_event(event);
        if matches!(event, ReedlineEvent::Edit(_)) {
            self.blank.store(false, Ordering::Relaxed);
        }
        event
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.inner.edit_mode()
    }
}

/// Sees the line whenever it is painted.
struct Line {
    inner: ExampleHighlighter,
    blank: Arc<AtomicBool>,
}

impl Highlighter for Line {
    fn highlight(&self, line: &str, cursor: usize) -> StyledText {
        self.blank.store(line.is_empty(), Ordering::Relaxed);
        self.inner.highlight(line, cursor)
    }
}

struct SqlPrompt;

impl Prompt for SqlPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("mayfly")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("     -> ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failing = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "failing ",
        };
        Cow::Owned(format!("({failing}search: {}) ", search.term))
    }
}
