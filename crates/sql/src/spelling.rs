//! Names in errors, spelled as the statement spells them.
//!
//! Names that have no case are planned in lower case; MySQL's errors repeat what was written. So an
//! error that is about to leave gets the spelling of the text back.

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;

use mayfly_types::{ErrorCode, MySqlError};

use crate::scanner::{Lexeme, Scanner};

/// Errors that name something without case between their first quotes.
const NAMING: [ErrorCode; 6] = [
    ErrorCode::UnknownColumn,
    ErrorCode::AmbiguousColumn,
    ErrorCode::UnknownTable,
    ErrorCode::UnknownTableIn,
    ErrorCode::NotUniqueTable,
    ErrorCode::UnknownSystemVariable,
];

/// An error of a statement with this text, its name as the text writes it first.
pub fn as_written(error: MySqlError, text: &str) -> MySqlError {
    match respelled(&error, text) {
        Some(message) => MySqlError { message, ..error },
        None => error,
    }
}

fn respelled(error: &MySqlError, text: &str) -> Option<String> {
    let range = name(error)?;
    let (before, rest) = error.message.split_at_checked(range.start)?;
    let (name, after) = rest.split_at_checked(range.len())?;
    let parts: Vec<&str> = name.split('.').map(|part| spelled(part, text)).collect();
    Some(format!("{before}{}{after}", parts.join(".")))
}

/// Where in its message an error has the name.
fn name(error: &MySqlError) -> Option<Range<usize>> {
    let (start_of, ends_of): (char, &[&str]) = if error.is(ErrorCode::NoSuchFunction) {
        // FUNCTION test.f does not exist
        (' ', &[" does not exist", " "])
    } else if NAMING.iter().any(|code| error.is(*code)) {
        // Names can have quotes of their own.
        ('\'', &["' in ", "'"])
    } else {
        return None;
    };
    let (before, rest) = error.message.split_once(start_of)?;
    let (name, _) = ends_of.iter().find_map(|end| rest.rsplit_once(*end))?;
    let start = before.len().checked_add(start_of.len_utf8())?;
    Some(start..start.checked_add(name.len())?)
}

/// A name as a text writes it first, unless it also writes it like this.
fn spelled<'a>(name: &'a str, text: &'a str) -> &'a str {
    let lower = name.to_lowercase();
    if lower != name {
        return name;
    }
    let mut first = None;
    for (lexeme, range) in Scanner::new(text.as_bytes()) {
        let Some(word) = text.get(range) else {
            continue;
        };
        let word = match lexeme {
            Lexeme::Word => word.trim_start_matches('@'),
            Lexeme::Quoted if word.starts_with('`') => word.trim_matches('`'),
            _ => continue,
        };
        if word == name {
            return name;
        }
        if first.is_none() && word.len() == name.len() && word.to_lowercase() == lower {
            first = Some(word);
        }
    }
    first.unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_the_spelling_of_the_text() {
        let check = |code: ErrorCode, name: &str, text: &str, expect: &str| {
            let error = MySqlError::new(code, &[&name, &"x"]);
            let expect = MySqlError::new(code, &[&expect, &"x"]);
            assert_eq!(as_written(error, text), expect, "{text}");
        };
        let column = ErrorCode::UnknownColumn;
        check(column, "nosuch", "SELECT NoSuch FROM t", "NoSuch");
        check(column, "q'y", "SELECT `Q'Y` FROM t", "Q'Y");
        check(ErrorCode::UnknownTable, "q'y", "DROP TABLE `Q'Y`", "Q'Y");
        check(column, "a.nosuch", "SELECT A.`NoSuch` FROM t A", "A.NoSuch");
        // Both are written: nobody knows which one is meant.
        check(column, "a", "SELECT A, a FROM t", "a");
        // Neither literals nor comments name anything.
        check(column, "a", "SELECT 'A' /* A */", "a");
        check(column, "A", "SELECT a", "A");
        let variable = ErrorCode::UnknownSystemVariable;
        check(variable, "nosuch", "SELECT @@NoSuch", "NoSuch");
        // A table keeps its case anyway, and a key is written as its table has it.
        check(ErrorCode::NoSuchTable, "test", "SELECT * FROM Test", "test");
    }

    #[test]
    fn functions_stand_without_quotes() {
        let error = MySqlError::new(ErrorCode::NoSuchFunction, &[&"FUNCTION", &"test.nosuch"]);
        let error = as_written(error, "SELECT NoSuch(1)");
        assert_eq!(error.message, "FUNCTION test.NoSuch does not exist");
    }
}
