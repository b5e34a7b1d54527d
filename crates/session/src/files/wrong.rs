//! What a client is told of a file that is not as it should be: file, line, column, and what to
//! write instead.

use std::fmt;

use arrow::datatypes::Field;
use datafusion::error::DataFusionError;
use mayfly_records::{Error, TextType};
use mayfly_types::{ErrorCode, MySqlError};

use crate::errors;

/// Characters of a wrong value that are shown.
const SHOWN_CHARACTERS: usize = 64;

/// The error of a record.
pub(crate) fn of_record(error: Error, path: &str) -> MySqlError {
    let place = |line: u64| format!("(line {line} of file '{path}')");
    let unreadable = |line: u64, what: &str| {
        let text = format!("Error reading file '{path}' (line {line}): {what}");
        MySqlError::with_message(ErrorCode::FileRead, text)
    };
    match error {
        Error::Read(error) => cannot_read(path, &error),
        Error::Memory { line, cause } => {
            let mut found = match cause.downcast::<DataFusionError>() {
                Ok(cause) => errors::from_plan(&cause),
                Err(cause) => {
                    MySqlError::with_message(ErrorCode::OutOfResources, cause.to_string())
                }
            };
            let record =
                format!("; the record that begins on line {line} of file '{path}' is long");
            found.message.push_str(&record);
            found
        }
        Error::RecordTooLong {
            line,
            limit_bytes,
            in_quotes,
        } => too_long(line, limit_bytes, in_quotes, path),
        Error::Unterminated { line, .. } | Error::TextAfterQuote { line, .. } => {
            unreadable(line, &error.to_string())
        }
        Error::TooFewFields { line, .. } => {
            let text = format!(
                "Row doesn't contain data for all columns: {error} {}",
                place(line)
            );
            MySqlError::with_message(ErrorCode::TooFewRecords, text)
        }
        Error::TooManyFields { line, .. } => {
            let text = format!(
                "Row contains more data than there are columns: {error} {}",
                place(line)
            );
            MySqlError::with_message(ErrorCode::TooManyRecords, text)
        }
        Error::NotUtf8 { line, bytes } => {
            let shown = format!("{} {}", bytes.escape_ascii(), place(line));
            MySqlError::new(ErrorCode::InvalidCharacterString, &[&"utf8mb4", &shown])
        }
        Error::BadJson { line, .. } => {
            let text = format!("Invalid JSON text: {error} {}", place(line));
            MySqlError::with_message(ErrorCode::InvalidJsonText, text)
        }
        Error::UnknownKey { line, key } => unreadable(
            line,
            &format!(
                "the key '{key}' is not among the columns that the first rows have; SET \
                 mayfly_infer_rows = 0, or (sample = ALL) behind its name, looks at all rows for \
                 columns and their types"
            ),
        ),
        Error::TooManyColumns { line, limit } => too_many_columns(limit, &place(line)),
        Error::NameTooLong { line, key } => name_too_long(&key, line, path),
        other => MySqlError::with_message(ErrorCode::FileRead, other.to_string()),
    }
}

/// The error of files that have more columns than a table may have.
pub(super) fn too_many_columns(limit: usize, place: &str) -> MySqlError {
    let mut error = MySqlError::new(ErrorCode::TooManyColumns, &[]);
    let text = format!(": a file has at most {limit} {place}");
    error.message.push_str(&text);
    error
}

/// The error of a record that is longer than the limit.
fn too_long(line: u64, limit_bytes: usize, in_quotes: bool, path: &str) -> MySqlError {
    let quote = match in_quotes {
        true => " Perhaps a quote in it has no end.",
        false => "",
    };
    let text = format!(
        "Row size too large: the record that begins on line {line} of file '{path}' is longer than \
         {limit_bytes} bytes, which is mayfly_max_record_bytes.{quote}"
    );
    MySqlError::with_message(ErrorCode::RowTooBig, text)
}

/// The error of a value that its column's type cannot hold, which was declared or guessed.
pub(super) fn of_value(
    value: &str,
    text_type: TextType,
    field: &Field,
    is_declared: bool,
    line: u64,
    path: &str,
) -> MySqlError {
    let kind = match text_type {
        TextType::Text => "string",
        TextType::Boolean => "boolean",
        TextType::Integer | TextType::Unsigned => "integer",
        TextType::Decimal { .. } => "decimal",
        TextType::Double => "double",
        TextType::Date => "date",
        TextType::DateTime { .. } => "datetime",
        TextType::Json => "JSON",
    };
    let shown: String = value.chars().take(SHOWN_CHARACTERS).collect();
    let name = field.name();
    let origin = match is_declared {
        true => "the option 'types'",
        false => {
            "the first rows: SET mayfly_infer_rows = 0, or (sample = ALL) behind its name, looks at \
             all rows for it"
        }
    };
    let text = format!(
        "Incorrect {kind} value: '{shown}' for column '{name}' at line {line} of file '{path}'; its \
         type is that of {origin}"
    );
    MySqlError::with_message(ErrorCode::TruncatedWrongValueForField, text)
}

/// The error of a file that was opened and cannot be read on.
fn cannot_read(path: &str, error: &std::io::Error) -> MySqlError {
    let is_told = error
        .get_ref()
        .is_some_and(|cause| cause.is::<MySqlError>());
    if is_told || error.raw_os_error().is_some() {
        return cannot_open(path, error);
    }
    read_error(path, error)
}

/// The error of a file of which `what` tells why it cannot be read.
pub(super) fn read_error(path: &str, what: impl fmt::Display) -> MySqlError {
    let text = format!("Error reading file '{path}': {what}");
    MySqlError::with_message(ErrorCode::FileRead, text)
}

/// The error for a file that is missing or may not be read.
pub(crate) fn cannot_open(path: &str, error: &std::io::Error) -> MySqlError {
    let told = error.get_ref().and_then(|inner| inner.downcast_ref());
    if let Some(told) = told {
        return MySqlError::clone(told);
    }
    let number = error.raw_os_error().unwrap_or(0);
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorCode::FileNotFound,
        _ => ErrorCode::FileRead,
    };
    MySqlError::new(code, &[&path, &number, &errors::reason(error)])
}

/// The error of a name that is longer than those of columns are; it is told how it begins.
pub(super) fn name_too_long(name: &str, line: u64, path: &str) -> MySqlError {
    let shown: String = name.chars().take(SHOWN_CHARACTERS).collect();
    let mut error = MySqlError::new(ErrorCode::IdentifierTooLong, &[&format!("{shown}...")]);
    let place = format!("; it names a column on line {line} of file '{path}'");
    error.message.push_str(&place);
    error
}
