//! The errors of tables.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType};

/// The result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says what of a table does not hold, unless it does.
///
/// # Errors
/// [`Error::CorruptPage`].
pub(crate) fn ensure(holds: bool, what: &'static str) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(Error::CorruptPage { what }),
    }
}

/// Why an operation on a table or a run failed.
///
/// After any of these the table or run is as it was before the call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The temp space refused memory or disk, or an I/O operation failed. Whether a retry helps
    /// depends on the cause: after [`mayfly_space::Error::BudgetExceeded`] it does once something
    /// has been unpinned.
    #[error(transparent)]
    Space(#[from] mayfly_space::Error),

    /// Arrow refused the encoding of a nested value or the content of a page.
    #[error(transparent)]
    Arrow(#[from] ArrowError),

    /// A batch has another number of columns than the table. A retry does not help.
    #[error("expected {expected} columns but found {found}")]
    ColumnCount {
        /// Columns of the table or run.
        expected: usize,
        /// Columns of the batch.
        found: usize,
    },

    /// A column of a batch has a type that the table's column cannot hold. A retry does not help;
    /// cast the column first.
    #[error("column '{column}' holds {expected} but found {found}")]
    TypeMismatch {
        /// Name of the column.
        column: String,
        /// Type of the table's column.
        expected: DataType,
        /// Type of the batch's column.
        found: DataType,
    },

    /// A column that refuses NULL was given one. A retry does not help.
    #[error("column '{column}' cannot be null")]
    NullValue {
        /// Name of the column.
        column: String,
    },

    /// One row is longer than a page can address. A retry does not help.
    #[error("a row of {row_bytes} bytes exceeds the limit of {limit_bytes} bytes")]
    RowTooLong {
        /// Encoded bytes of the row.
        row_bytes: u64,
        /// Most bytes of one page.
        limit_bytes: u64,
    },

    /// The key of an index entry is too long. A retry does not help.
    #[error("a key of {key_bytes} bytes exceeds the limit of {limit_bytes} bytes")]
    KeyTooLong {
        /// Bytes of the key.
        key_bytes: usize,
        /// Most bytes of a key.
        limit_bytes: usize,
    },

    /// The payload of an index entry has another width than those of the tree. A retry does not
    /// help.
    #[error("expected a payload of {expected_bytes} bytes but found {found_bytes}")]
    PayloadWidth {
        /// Bytes of each payload of the tree.
        expected_bytes: usize,
        /// Bytes of the payload.
        found_bytes: usize,
    },

    /// An entry of a sorted input has the key of the one before it (MySQL's 1062, if the index is
    /// unique).
    #[error("entry {entry_index} has the same key as the one before it")]
    DuplicateKey {
        /// The entry, counted from 0.
        entry_index: u64,
    },

    /// Two rows have the same values in a unique key (MySQL's 1062).
    #[error("duplicate entry for key '{key}'")]
    DuplicateEntry {
        /// Name of the key.
        key: String,
        /// The values: one row of the columns of the key, in their order.
        entry: Box<RecordBatch>,
    },

    /// An entry of an input that has to be sorted has a smaller key than the one before it: a bug
    /// of the caller.
    #[error("entry {entry_index} has a smaller key than the one before it")]
    KeyOrder {
        /// The entry, counted from 0.
        entry_index: u64,
    },

    /// A page does not hold what was written to it: a bug or failing memory, since what comes from
    /// disk has passed its checksum.
    #[error("corrupt column page: {what}")]
    CorruptPage {
        /// The check that failed.
        what: &'static str,
    },

    /// Nobody wants the result any more: see [`StopFlag`](crate::rows::StopFlag).
    #[error("stopped")]
    Stopped,

    /// Somebody else changed the table between reading and changing it. Reading it again helps.
    #[error("table '{table}' was changed meanwhile")]
    Changed {
        /// Name of the table.
        table: String,
    },

    /// The table exists already in this database (MySQL's 1050).
    #[error("table '{table}' already exists")]
    TableExists {
        /// Name of the table.
        table: String,
    },

    /// There is no such table (MySQL's 1146, 1051 for DROP).
    #[error("table '{database}.{table}' does not exist")]
    UnknownTable {
        /// Name of the database.
        database: String,
        /// Name of the table.
        table: String,
    },

    /// The database exists already (MySQL's 1007).
    #[error("database '{database}' already exists")]
    DatabaseExists {
        /// Name of the database.
        database: String,
    },

    /// There is no such database (MySQL's 1049, 1008 for DROP).
    #[error("unknown database '{database}'")]
    UnknownDatabase {
        /// Name of the database.
        database: String,
    },
}
