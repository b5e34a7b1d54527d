//! The place of an error in the text of its statement, for people: its line, and a caret below.
//!
//! An error of MySQL says its place in words only: a syntax error repeats the text from there on,
//! others name what they did not find. **Never** guesses: a name that the statement holds more than
//! once has no caret.

use mayfly_types::{ErrorCode, MySqlError};

use crate::terminal;

/// Errors that name something of the statement between their first quotes.
const NAMING: [ErrorCode; 15] = [
    ErrorCode::FileNotFound,
    ErrorCode::FileRead,
    ErrorCode::UnknownDatabase,
    ErrorCode::UnknownTable,
    ErrorCode::AmbiguousColumn,
    ErrorCode::UnknownColumn,
    ErrorCode::KeyColumnMissing,
    ErrorCode::CantDropField,
    ErrorCode::UnknownTableIn,
    ErrorCode::UnknownCharacterSet,
    ErrorCode::NoSuchTable,
    ErrorCode::KeyDoesNotExist,
    ErrorCode::UnknownSystemVariable,
    ErrorCode::UnknownCollation,
    ErrorCode::UnknownStorageEngine,
];

/// The line of the error and the caret, in two lines no wider than `columns`; `first_line` is the
/// number of the first line of the statement.
pub fn excerpt(sql: &str, error: &MySqlError, first_line: u64, columns: usize) -> Option<String> {
    let at = place(sql, error)?;
    let before = &sql[..at];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = sql[start..].lines().next().unwrap_or_default();
    let number = first_line + before.matches('\n').count() as u64;
    let label = format!("line {number}: ");
    let room = columns.saturating_sub(label.len() + 1);
    let (text, column) = terminal::excerpt(line, (at - start).min(line.len()), room);
    let blank = label.len() + column;
    Some(format!("{label}{text}\n{:blank$}^", ""))
}

fn place(sql: &str, error: &MySqlError) -> Option<usize> {
    if error.is(ErrorCode::Syntax) {
        return place_of_syntax(sql, &error.message);
    }
    let name = if error.is(ErrorCode::NoSuchFunction) {
        // FUNCTION test.f does not exist
        error.message.split(' ').nth(1)?
    } else if NAMING.iter().any(|code| error.is(*code)) {
        // An apostrophe is no quote: Can't DROP 'k'; ...
        let (_, quoted) = error.message.split_once(" '")?;
        quoted.split('\'').next()?
    } else {
        return None;
    };
    let last = name.rsplit('.').next().unwrap_or(name);
    only_place(sql, name).or_else(|| only_place(sql, last))
}

/// Where the text stands that a syntax error repeats.
fn place_of_syntax(sql: &str, message: &str) -> Option<usize> {
    let (_, rest) = message.split_once(" near '")?;
    let (near, number) = rest.rsplit_once("' at line ")?;
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    let number: usize = number[..digits].parse().ok()?;
    let end = sql.trim_end().len();
    if near.trim().is_empty() {
        return Some(end);
    }
    let mut ends = sql.match_indices('\n').map(|(at, _)| at + 1);
    let start = match number {
        0 | 1 => 0,
        _ => ends.nth(number - 2)?,
    };
    // What is shorter than MySQL repeats goes on to the end of the statement.
    let trimmed = near.trim_end();
    if sql[..end].ends_with(trimmed) && end - trimmed.len() >= start {
        return Some(end - trimmed.len());
    }
    sql[start..].find(near).map(|at| start + at)
}

/// Where a name stands, in whatever case, if it stands in one place only.
fn only_place(sql: &str, name: &str) -> Option<usize> {
    // Bytes keep their places.
    let (text, name) = (sql.to_ascii_lowercase(), name.to_ascii_lowercase());
    if name.is_empty() {
        return None;
    }
    let is_part = |character: Option<char>| {
        character.is_some_and(|it| it.is_alphanumeric() || matches!(it, '_' | '$'))
    };
    let mut places = text.match_indices(&name).filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !is_part(before) && !is_part(after)
    });
    let (at, _) = places.next()?;
    places.next().is_none().then_some(at)
}
