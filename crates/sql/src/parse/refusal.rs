//! What a parser refuses, and how the user is told.

use datafusion::sql::sqlparser::parser::ParserError;
use mayfly_types::{ErrorCode, MySqlError};

use crate::text_places::syntax_error;

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

pub(crate) fn unsupported<T>(what: &str) -> Result<T> {
    Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]).into())
}

/// Refuses a statement that makes or changes an account.
pub(crate) fn unsupported_account<T>(what: &str) -> Result<T> {
    unsupported(&format!(
        "{what}: accounts are made and changed by mayfly user add"
    ))
}
