//! What Tab offers: names and keywords, columns of the files that the statement names, and file
//! names inside quotes.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use mayfly_session::is_table_name;
use reedline::{Completer, CompletionResult, Span, Suggestion};

use crate::commands;
use crate::file_columns::FileColumns;
use crate::splitter::{Splitter, Waiting};

/// More would not fit a screen.
const OFFERED_MAX: usize = 200;
/// Files of a statement that are looked at.
const FILES_MAX: usize = 8;

/// The names that the session knows; replaced after each statement.
#[derive(Clone, Default)]
pub struct Names {
    words: Arc<Mutex<Vec<String>>>,
}

impl Names {
    pub fn replace(&self, mut words: Vec<String>) {
        words.extend(commands::WORDS.iter().map(|word| (*word).to_string()));
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
    files: FileColumns,
}

impl SqlCompleter {
    pub fn new(names: Names, files: FileColumns) -> Self {
        Self { names, files }
    }

    /// The words that begin with `prefix` in this statement.
    fn words(&mut self, text: &str, prefix: &str, is_quoted: bool) -> Vec<String> {
        let lower = prefix.to_lowercase();
        let mut words: Vec<String> = Vec::new();
        for (file, options) in files_in(text) {
            for name in self.files.of(file, options) {
                let begins = name.to_lowercase().starts_with(&lower);
                let shown = if is_quoted || is_plain(&name) {
                    name
                } else {
                    format!("`{}`", name.replace('`', "``"))
                };
                if begins && shown != prefix && !words.contains(&shown) {
                    words.push(shown);
                }
            }
        }
        if !prefix.is_empty() {
            let mut others = self.names.matching(prefix);
            others.retain(|name| !words.contains(name));
            words.extend(others);
        }
        words.truncate(OFFERED_MAX);
        words
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
                let line = before.trim_start();
                // They take the rest of the line, quotes and all.
                let names_file = line.to_ascii_lowercase().starts_with("source ")
                    || ["\\. ", "\\d '", "\\d \""]
                        .iter()
                        .any(|start| line.starts_with(start));
                match before[..start].chars().next_back() {
                    _ if names_file => {
                        let start = before.rfind([' ', '\'', '"']).map_or(0, |at| at + 1);
                        (start, file_names(&before[start..]))
                    }
                    // `\G` is complete: it is no beginning of GROUP.
                    Some('\\') => (start, Vec::new()),
                    quote => {
                        let words = self.words(text, &before[start..], quote == Some('`'));
                        (start, words)
                    }
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
    splitter.push_text(before, &mut Vec::new());
    match splitter.waiting() {
        Waiting::Quote(quote @ ('\'' | '"')) => before.rfind(quote).map(|at| at + 1),
        _ => None,
    }
}

/// Whether a name needs no quotes.
fn is_plain(name: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == '$';
    !name.is_empty() && name.chars().all(is_part) && !name.chars().all(|it| it.is_ascii_digit())
}

/// The files that a text names in FROM: literals behind FROM, JOIN or a comma that end like the
/// name of a file, and the options in parentheses behind them. One that is none has no columns.
fn files_in(text: &str) -> Vec<(&str, &str)> {
    let mut files = Vec::new();
    let mut rest = text;
    let mut word = "";
    while let Some(first) = rest.chars().next() {
        let is_word = |it: char| it.is_alphanumeric() || it == '_';
        let len = match first {
            '\'' | '"' | '`' => {
                let inside = &rest[1..];
                let Some(len) = inside.find(first) else {
                    return files;
                };
                let follows = word.eq_ignore_ascii_case("from")
                    || word.eq_ignore_ascii_case("join")
                    || word == ",";
                let literal = &inside[..len];
                if first != '`' && follows && is_table_name(literal) && files.len() < FILES_MAX {
                    files.push((literal, options_in(&inside[len + 1..])));
                }
                len + 2
            }
            _ if is_word(first) => rest.find(|it| !is_word(it)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        if !first.is_whitespace() {
            word = &rest[..len];
        }
        rest = &rest[len..];
    }
    files
}

/// The options that a text begins with, in their parentheses; empty if it does not.
fn options_in(text: &str) -> &str {
    let text = text.trim_start();
    let (mut depth, mut quote) = (0_usize, None);
    for (at, sign) in text.char_indices() {
        match (quote, sign) {
            (Some(end), _) if sign == end => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') if depth > 0 => quote = Some(sign),
            (None, '(') => depth += 1,
            (None, ')') if depth > 1 => depth -= 1,
            (None, ')') if depth == 1 => return &text[..=at],
            (None, _) if depth == 0 => break,
            (None, _) => {}
        }
    }
    ""
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_options_behind_them() {
        let check = |text: &str, expect: &[(&str, &str)]| {
            assert_eq!(files_in(text), expect, "{text}");
        };
        check("SELECT FROM 'a.csv' WHERE", &[("a.csv", "")]);
        check(
            "SELECT FROM 'a.csv' (sep = ')', null = ('', '-')) t JOIN \"b.json\"(skip = 1)",
            &[
                ("a.csv", "(sep = ')', null = ('', '-'))"),
                ("b.json", "(skip = 1)"),
            ],
        );
        check("SELECT FROM 'a.csv' (skip =", &[("a.csv", "")]);
    }
}
