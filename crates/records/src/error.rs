//! What can be wrong with a record.

use std::fmt;
use std::io;

/// Why there is no next record. Lines count from 1 and are those on which the record begins.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    Read(io::Error),
    /// A long record did not get its memory from [`Reserve`](crate::Reserve).
    Memory {
        /// Where the record begins.
        line: u64,
        /// Why there is none.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A record is longer than the limit.
    RecordTooLong {
        /// Where it begins.
        line: u64,
        /// The limit.
        limit_bytes: usize,
        /// Whether it was inside quotes at the limit: the end of a quote may be missing.
        in_quotes: bool,
    },
    /// The file ends inside quotes, or inside an object.
    Unterminated {
        /// Where the record begins.
        line: u64,
        /// What has no end.
        what: &'static str,
    },
    /// Something other than the end of the field follows a closing quote.
    TextAfterQuote {
        /// Where the record begins.
        line: u64,
        /// The number of the field, from 1.
        field: usize,
    },
    /// A record has too few fields.
    TooFewFields {
        /// Where it begins.
        line: u64,
        /// How many it should have.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// A record has too many fields.
    TooManyFields {
        /// Where it begins.
        line: u64,
        /// How many it should have.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// A field is not UTF-8.
    NotUtf8 {
        /// Where the record begins.
        line: u64,
        /// The bytes around the first wrong one.
        bytes: Vec<u8>,
    },
    /// The text of an object is not JSON.
    BadJson {
        /// Where the object begins.
        line: u64,
        /// What should have stood there.
        expected: &'static str,
    },
    /// An object has a key that the columns do not know.
    UnknownKey {
        /// Where the object begins.
        line: u64,
        /// The key, or how it begins.
        key: String,
    },
    /// A header, or the keys of all objects so far, name more columns than there may be.
    TooManyColumns {
        /// Where the record begins.
        line: u64,
        /// How many there may be.
        limit: usize,
    },
    /// A key that becomes a column is longer than
    /// [`NAME_CHARACTERS_MAX`](crate::NAME_CHARACTERS_MAX).
    NameTooLong {
        /// Where the object begins.
        line: u64,
        /// How the key begins.
        key: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Read(error) => error.fmt(f),
            Error::Memory { cause, .. } => cause.fmt(f),
            Error::RecordTooLong {
                limit_bytes,
                in_quotes,
                ..
            } => {
                write!(f, "the record is longer than {limit_bytes} bytes")?;
                match in_quotes {
                    true => f.write_str("; a quote in it may have no end"),
                    false => Ok(()),
                }
            }
            Error::Unterminated { what, .. } => write!(f, "{what} has no end"),
            Error::TextAfterQuote { field, .. } => {
                write!(f, "text follows the closing quote of field {field}")
            }
            Error::TooFewFields {
                expected, found, ..
            }
            | Error::TooManyFields {
                expected, found, ..
            } => write!(f, "{found} fields instead of {expected}"),
            Error::NotUtf8 { bytes, .. } => {
                write!(f, "'{}' is not UTF-8", bytes.escape_ascii())
            }
            Error::BadJson { expected, .. } => write!(f, "expected {expected}"),
            Error::UnknownKey { key, .. } => write!(f, "unknown key '{key}'"),
            Error::TooManyColumns { limit, .. } => write!(f, "more than {limit} columns"),
            Error::NameTooLong { key, .. } => {
                write!(f, "the name of a column is too long: '{key}...'")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Read(error) => Some(error),
            Error::Memory { cause, .. } => Some(cause.as_ref()),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Read(error)
    }
}
