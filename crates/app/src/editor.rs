//! The line editor of the shell: keys, completion, history, and where a statement ends.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use reedline::{
    ColumnarMenu, EditCommand, EditMode, Emacs, ExampleHighlighter, FileBackedHistory, Highlighter,
    InputMode, KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch,
    PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, ReedlineRawEvent, StyledText,
    ValidationResult, Validator, default_emacs_keybindings,
};

use crate::complete::SqlCompleter;
use crate::splitter::{Splitter, Waiting};

/// Statements that the history file keeps.
const HISTORY_STATEMENTS: usize = 10_000;
const MENU: &str = "completion_menu";

/// An editor that ends a statement at `delimiter` and says in `blank` whether its line is empty.
pub fn open(
    completer: SqlCompleter,
    delimiter: Arc<Mutex<String>>,
    blank: &Arc<AtomicBool>,
) -> Reedline {
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
        // What stands behind the place may name the files whose columns are offered.
        .with_input_mode(InputMode::FullBuffer)
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
        .with_completer(Box::new(completer))
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
    editor
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
        splitter.push_text(text, &mut Vec::new());
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

pub struct SqlPrompt;

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
