//! The words of MySQL: column types, collations, error codes.
//!
//! **Owns** the mapping between MySQL column types and Arrow fields, the table of error numbers
//! with their SQLSTATE and text, and the collations that the engine knows.
//!
//! **Never** holds state, reads or writes anything, or looks at a value: it is vocabulary that
//! every floor may share.

#![forbid(unsafe_code)]

mod code;
mod collation;
mod column;
mod error;
mod parse;

pub use code::ErrorCode;
pub use collation::Collation;
pub use column::{BlobSize, COLLATION_KEY, ColumnType, Digits, TYPE_KEY};
pub use error::{Level, MySqlError, Warning};
