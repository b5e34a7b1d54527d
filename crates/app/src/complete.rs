//! What Tab offers: names and keywords, and file names inside quotes.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use reedline::{Completer, CompletionResult, Span, Suggestion};

use crate::splitter::{Splitter, Waiting};

/// Words that only the shell knows.
const COMMANDS: [&str; 5] = ["delimiter", "help", "quit", "source", "status"];
/// More would not fit a screen.
const OFFERED_MAX: usize = 200;

/// The names that the session knows; replaced after each statement.
#[derive(Clone, Default)]
pub struct Names {
    words: Arc<Mutex<Vec<String>>>,
}

impl Names {
    pub fn replace(&self, mut words: Vec<String>) {
        words.extend(COMMANDS.iter().map(|word| (*word).to_string()));
        words.sort_unstable();
        words.dedup();
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    fn matching(&self, prefix: &str) -> Vec<String> {
        let lower = prefix.to_lowercase();
        let small = prefix == lower;
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let matching = words
            .iter()
            .filter(|word| word.len() > prefix.len() && word.to_lowercase().starts_with(&lower))
            .take(OFFERED_MAX);
        // Who types in lower case wants the keyword in lower case.
        let keyword = |word: &str| {
            word.bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        };
        matching
            .map(|word| {
                if small && keyword(word) {
                    word.to_lowercase()
                } else {
                    word.clone()
                }
            })
            .collect()
    }
}

pub struct SqlCompleter {
    names: Names,
}

impl SqlCompleter {
    pub fn new(names: Names) -> Self {
        Self { names }
    }
}

impl Completer for SqlCompleter {
    fn complete(&mut self, text: &str, position: usize) -> CompletionResult {
        let before = &text[..position];
        let (start, words) = match open_quote(before) {
            Some(start) => (start, file_names(&before[start..])),
            None => {
                let start = before
                    .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '@'))
                    .map_or(0, |at| {
                        at + before[at..].chars().next().map_or(1, char::len_utf8)
                    });
                let command = before
                    .trim_start()
                    .to_ascii_lowercase()
                    .starts_with("source ");
                match &before[start..] {
                    _ if command => {
                        let start = before.rfind(' ').map_or(0, |at| at + 1);
                        (start, file_names(&before[start..]))
                    }
                    "" => (start, Vec::new()),
                    prefix => (start, self.names.matching(prefix)),
                }
            }
        };
        let suggestions: Vec<Suggestion> = words
            .into_iter()
            .map(|value| Suggestion {
                append_whitespace: false,
                span: Span::new(start, position),
                value,
                ..Suggestion::default()
            })
            .collect();
        CompletionResult::fresh(suggestions)
    }
}

/// Where the text of the quote begins that is open at the end of `before`.
fn open_quote(before: &str) -> Option<usize> {
    let mut splitter = Splitter::default();
    for line in before.lines() {
        splitter.push_line(line, &mut Vec::new());
    }
    match splitter.waiting() {
        Waiting::Quote(quote @ ('\'' | '"')) => before.rfind(quote).map(|at| at + 1),
        _ => None,
    }
}

/// Paths that begin with `prefix`; a directory ends with a slash.
fn file_names(prefix: &str) -> Vec<String> {
    let (dir, begin) = prefix
        .rsplit_once('/')
        .map_or(("", prefix), |(dir, begin)| (dir, begin));
    let listed = match (dir, prefix.starts_with('/')) {
        ("", true) => Path::new("/"),
        ("", false) => Path::new("."),
        (dir, _) => Path::new(dir),
    };
    let Ok(entries) = std::fs::read_dir(listed) else {
        return Vec::new();
    };
    let kept = &prefix[..prefix.len() - begin.len()];
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !begin.starts_with('.');
            let slash = if entry.path().is_dir() { "/" } else { "" };
            (name.starts_with(begin) && !hidden).then(|| format!("{kept}{name}{slash}"))
        })
        .take(OFFERED_MAX)
        .collect();
    names.sort_unstable();
    names
}
