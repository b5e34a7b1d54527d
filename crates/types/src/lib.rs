//! The words of MySQL: column types, collations, error codes, and how values are spelled.
//!
//! **Owns** the mapping between MySQL column types and Arrow fields, the table of error numbers
//! with their SQLSTATE and text, the collations that the engine knows, the character sets that its
//! clients may speak, and the text of a number, a day or a time.
//!
//! **Never** holds state, reads or writes anything, or knows where a value lies: it is vocabulary
//! that every floor may share.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod character_set;
mod code;
mod collation;
mod column;
mod error;
mod parse;
pub mod spelling;

pub use character_set::{CharacterSet, NoCollation};
pub use code::ErrorCode;
pub use collation::{CASELESS, Collation};
pub use column::{BlobSize, COLLATION_KEY, COLUMNS_MAX, ColumnType, Digits, TYPE_KEY};
pub use error::{Level, MySqlError, Warning};
