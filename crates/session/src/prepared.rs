//! Statements that clients prepare once and run often, with other values.
//!
//! A prepared statement keeps its text, cut at its parameters. Running it puts values into the
//! text: a statement on few rows is known by its shape and is not read again
//! (`docs/decisions/0009-statements-by-their-shape.md`), any other is planned with the values that
//! it has this time, which tell the planner more than a parameter would.

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use mayfly_sql::pieces::Parametrized;
use mayfly_types::MySqlError;

use crate::client_memory::ClientMemory;
use crate::clients::PreparedPlace;
use crate::column_info::ColumnInfo;

pub use mayfly_sql::pieces::Parameter;

/// A prepared statement.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) text: Parametrized,
    /// What was the current database then.
    pub(crate) database: Option<String>,
    pub(crate) columns: Vec<ColumnInfo>,
    pub(crate) _place: PreparedPlace,
    pub(crate) _memory: ClientMemory,
}

/// A command on a prepared statement that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreparedCommand {
    /// COM_STMT_CLOSE.
    Close,
    /// COM_STMT_FETCH.
    Fetch,
    /// COM_STMT_RESET.
    Reset,
    /// COM_STMT_SEND_LONG_DATA.
    LongData,
}

impl Prepared {
    /// The database in which it runs.
    pub(crate) fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// The number of parameters.
    pub fn parameter_count(&self) -> usize {
        self.text.count()
    }

    /// The columns of its rows, as far as they are known before it gets values; none if it returns
    /// no rows.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// Gives the columns of an execution the labels that they had when the statement was prepared,
    /// where these show parameters: an execution would show values.
    pub fn label(&self, columns: &mut [ColumnInfo]) {
        let shows = self.columns.iter().any(|column| column.name.contains('?'));
        if shows && self.columns.len() == columns.len() {
            for (column, prepared) in columns.iter_mut().zip(&self.columns) {
                column.name.clone_from(&prepared.name);
            }
        }
    }

    /// The statement with these values, for [`Session::execute`](crate::Session::execute).
    ///
    /// # Errors
    /// 1210 if there are not as many values as parameters, or one cannot be spelled.
    pub fn with(&self, values: &[Parameter<'_>]) -> Result<String, MySqlError> {
        self.text.with(values)
    }
}
