//! Errors and warnings as a MySQL client sees them.

use std::fmt;

use crate::ErrorCode;

/// An error with MySQL's number, SQLSTATE and text.
///
/// `Display` prints it as the `mysql` client does: `ERROR 1064 (42000): ...`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ERROR {code} ({sqlstate}): {message}")]
pub struct MySqlError {
    /// MySQL's error number.
    pub code: u16,
    /// The five characters of the SQL standard's state.
    pub sqlstate: &'static str,
    /// The text, without number and state.
    pub message: String,
}

impl MySqlError {
    /// The error of a table that there is not; of a name that none can have (1102, 1103), as MySQL
    /// asks first.
    pub fn no_such_table(database: &str, table: &str) -> Self {
        let is_none = |name: &str| name.is_empty() || name.ends_with(' ');
        if is_none(database) {
            MySqlError::new(ErrorCode::WrongDatabaseName, &[&database])
        } else if is_none(table) {
            MySqlError::new(ErrorCode::WrongTableName, &[&table])
        } else {
            MySqlError::new(ErrorCode::NoSuchTable, &[&database, &table])
        }
    }

    /// The error `code` with the placeholders of its text replaced by `arguments`, in order.
    pub fn new(code: ErrorCode, arguments: &[&dyn fmt::Display]) -> Self {
        let mut message = String::with_capacity(64);
        let mut arguments = arguments.iter();
        let mut rest = code.format();
        while let Some(at) = rest.find('{') {
            message.push_str(&rest[..at]);
            match arguments.next() {
                Some(argument) => message.push_str(&argument.to_string()),
                None => message.push('?'),
            }
            rest = rest[at..].split_once('}').map_or("", |(_, after)| after);
        }
        message.push_str(rest);
        Self {
            code: code.number(),
            sqlstate: code.sqlstate(),
            message,
        }
    }

    /// The error of a thread that the system did not give.
    pub fn no_thread(error: &std::io::Error) -> Self {
        let number = error.raw_os_error().unwrap_or(0);
        Self::new(ErrorCode::CantCreateThread, &[&number])
    }

    /// The error `code` with a text of its own, for causes that MySQL has no words for.
    pub fn with_message(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code: code.number(),
            sqlstate: code.sqlstate(),
            message: message.into(),
        }
    }

    /// Whether this is the error `code`.
    pub fn is(&self, code: ErrorCode) -> bool {
        self.code == code.number()
    }
}

/// How serious an entry of SHOW WARNINGS is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For information only.
    Note,
    /// The statement went on with an adjusted value.
    Warning,
    /// The statement failed.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        })
    }
}

/// One row of SHOW WARNINGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Note, warning or error.
    pub level: Level,
    /// MySQL's number, SQLSTATE and text.
    pub error: MySqlError,
}

impl Warning {
    /// A warning with the text of `code`.
    pub fn new(code: ErrorCode, arguments: &[&dyn fmt::Display]) -> Self {
        Self {
            level: Level::Warning,
            error: MySqlError::new(code, arguments),
        }
    }

    /// A note with the text of `code`.
    pub fn note(code: ErrorCode, arguments: &[&dyn fmt::Display]) -> Self {
        Self {
            level: Level::Note,
            error: MySqlError::new(code, arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_filled_in_order() {
        let error = MySqlError::new(ErrorCode::UnknownColumn, &[&"c", &"field list"]);
        assert_eq!(
            error.to_string(),
            "ERROR 1054 (42S22): Unknown column 'c' in 'field list'"
        );
    }

    #[test]
    fn missing_arguments_do_not_panic() {
        let error = MySqlError::new(ErrorCode::NoSuchTable, &[&"d"]);
        assert_eq!(error.message, "Table 'd.?' doesn't exist");
    }
}
