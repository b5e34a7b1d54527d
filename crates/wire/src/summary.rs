//! What the end of an answer tells: numbers, warnings, and what has changed in the session.

use crate::flags::ServerStatus;

/// How a statement ended, for its OK packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows changed, inserted or removed.
    pub affected_rows: u64,
    /// Value of `LAST_INSERT_ID()` if the statement set it, else 0.
    pub last_insert_id: u64,
    /// The state after the statement, and whether another result follows.
    pub status: ServerStatus,
    /// Entries that `SHOW WARNINGS` would list.
    pub warnings: u16,
    /// Text such as `Records: 3  Duplicates: 0  Warnings: 0`; often empty.
    pub info: String,
    /// What the session tells of its changes, by `session_track_*`.
    pub changes: Vec<SessionChange>,
}

impl Summary {
    /// The end of a statement that changed no rows.
    pub fn new(status: ServerStatus) -> Summary {
        Summary {
            status,
            ..Summary::default()
        }
    }
}

/// A change that the client may want to know of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionChange {
    /// A system variable has this value: `session_track_system_variables`.
    SystemVariable {
        /// Its name.
        name: String,
        /// Its value as text.
        value: String,
    },
    /// The current database: `session_track_schema`.
    Schema(String),
    /// Something that another connection would not have: `session_track_state_change`.
    State,
    /// The transaction's state in eight characters, `T_______`: `session_track_transaction_info`.
    TransactionState(String),
    /// Statements that would begin the same transaction: `session_track_transaction_info`.
    TransactionCharacteristics(String),
}

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// As text, for COM_QUERY.
    Text,
    /// In the binary protocol, for COM_STMT_EXECUTE.
    Binary,
}
