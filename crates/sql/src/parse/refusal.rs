//! What a parser refuses, and how the user is told.

use datafusion::sql::sqlparser::parser::ParserError;
use mayfly_types::{ErrorCode, MySqlError};

/// Depth of nesting that a statement may have.
pub(crate) const RECURSION_LIMIT: usize = 200;

/// What a parser of this module may answer.
pub(crate) enum Refusal {
    /// sqlparser's word for a syntax error, with the place in its text.
    Syntax(ParserError),
    /// An error with its own number.
    Known(MySqlError),
}

impl From<ParserError> for Refusal {
    fn from(error: ParserError) -> Refusal {
        Refusal::Syntax(error)
    }
}

impl From<MySqlError> for Refusal {
    fn from(error: MySqlError) -> Refusal {
        Refusal::Known(error)
    }
}

impl Refusal {
    /// The error that the user sees, where the refusal says itself where it is.
    pub(crate) fn of_text(self, text: &str) -> MySqlError {
        match self {
            Refusal::Known(error) => error,
            Refusal::Syntax(error) => {
                let (line, column) = place(&error.to_string()).unwrap_or_default();
                syntax_error(text, line, column)
            }
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, Refusal>;

pub(crate) fn nested_too_deeply() -> MySqlError {
    MySqlError::with_message(
        ErrorCode::Syntax,
        "memory exhausted near '' at line 1: the statement is nested too deeply",
    )
}

/// Reads `at Line: 1, Column: 5` at the end of sqlparser's message.
pub(crate) fn place(message: &str) -> Option<(u64, u64)> {
    let (_, rest) = message.rsplit_once("Line: ")?;
    let (line, column) = rest.split_once(", Column: ")?;
    let digits = |text: &str| {
        text.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse::<u64>()
            .ok()
    };
    Some((digits(line)?, digits(column)?))
}

/// Characters of the statement that MySQL repeats in a syntax error.
pub(crate) const NEAR_CHARACTERS: usize = 80;

pub(crate) fn syntax_error(text: &str, line: u64, column: u64) -> MySqlError {
    let rest = if line == 0 {
        ""
    } else {
        &text[crate::places::offset(text, line, column)..]
    };
    let line = if line == 0 {
        text.lines().count().max(1) as u64
    } else {
        line
    };
    near(rest, line)
}

/// A syntax error at a byte of a text.
pub(crate) fn syntax_error_at(text: &str, at: usize) -> MySqlError {
    let (before, rest) = text.split_at(at);
    near(rest, before.matches('\n').count() as u64 + 1)
}

pub(crate) fn near(rest: &str, line: u64) -> MySqlError {
    let near: String = rest.chars().take(NEAR_CHARACTERS).collect();
    MySqlError::new(ErrorCode::Syntax, &[&near, &line])
}

pub(crate) fn unsupported<T>(what: &str) -> Result<T> {
    Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]).into())
}

/// Refuses a statement that makes or changes an account.
pub(crate) fn unsupported_account<T>(what: &str) -> Result<T> {
    unsupported(&format!(
        "{what}: accounts are made and changed by mayfly user add"
    ))
}
