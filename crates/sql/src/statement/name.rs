//! What statements of all kinds name.

use std::fmt;

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    /// The database, when the name is qualified.
    pub database: Option<String>,
    /// The table, in the case in which it was written.
    pub table: String,
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(database) = &self.database {
            write!(f, "{database}.")?;
        }
        f.write_str(&self.table)
    }
}

/// Which value of a variable is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The connection's.
    Session,
    /// The engine's, which later connections copy.
    Global,
    /// GLOBAL, to be kept over a restart.
    Persist,
}
