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

    /// The clause of a definition that MySQL and MariaDB both read, who have no name for code
    /// point order without padding in common: each reads its own comment. `between` stands between
    /// the word and the name.
    pub fn clause(self, between: &str) -> String {
        match self {
            Collation::Utf8mb4_0900Bin => format!(
                "/*!80017 COLLATE{between}{self} */ /*M!100202 COLLATE{between}utf8mb4_nopad_bin */"
            ),
            Collation::Binary => format!("COLLATE{between}{self}"),
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
