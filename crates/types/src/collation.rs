//! The collations that the engine compares, groups and sorts by.
//!
//! The default is `utf8mb4_0900_bin`: code point order, no padding, which is the order of the
//! UTF-8 bytes. It is what `@@collation_connection` says, so answers agree with a MySQL server
//! that was started with the same collation. Case-insensitive collations are not implemented;
//! naming one is an error, never a silently different answer.

use std::fmt;

/// The name in the metadata of texts that are compared with constants without case: those of
/// `information_schema` and SHOW. The engine has it for nothing else.
pub const CASELESS: &str = "utf8mb3_general_ci";

/// A collation that the engine implements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Collation {
    /// Code point order without padding: the order of the UTF-8 bytes.
    #[default]
    Utf8mb4_0900Bin,
    /// Bytes.
    Binary,
}

impl Collation {
    /// MySQL's name.
    pub const fn name(self) -> &'static str {
        match self {
            Collation::Utf8mb4_0900Bin => "utf8mb4_0900_bin",
            Collation::Binary => "binary",
        }
    }

    /// The name of the character set that the collation belongs to.
    pub const fn character_set(self) -> &'static str {
        match self {
            Collation::Utf8mb4_0900Bin => "utf8mb4",
            Collation::Binary => "binary",
        }
    }

    /// The collation of that name, if the engine implements it.
    pub fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "utf8mb4_0900_bin" => Some(Collation::Utf8mb4_0900Bin),
            "binary" => Some(Collation::Binary),
            _ => None,
        }
    }
}

impl fmt::Display for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
