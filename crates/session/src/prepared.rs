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

use mayfly_sql::parse::is_on_prepared;
use mayfly_sql::pieces::Parametrized;
use mayfly_types::{ErrorCode, MySqlError};

use crate::client_memory::ClientMemory;
use crate::clients::PreparedPlace;
use crate::outcome::ColumnInfo;
use crate::session::Session;

pub use mayfly_sql::pieces::Parameter;

/// Errors that say a statement cannot be run whatever values it gets: there is no such database,
/// column, table, function or variable, a name means several, numbers of columns or arguments do
/// not fit, an aggregate stands where none may, or it is no statement.
const HOPELESS: [u16; 21] = [
    1044, 1046, 1049, 1051, 1052, 1054, 1060, 1064, 1065, 1066, 1109, 1110, 1111, 1136, 1146, 1193,
    1222, 1241, 1305, 1327, 1582,
];

/// Errors that say planning was stopped: by KILL, or at the end of its time. Its execution would be
/// planned for as long, in vain. A lack of memory is none of them: an execution waits for some.
const STOPPED: [u16; 2] = [1317, 3024];

/// What a prepared statement of a few parameters and columns takes beside its text, about.
const STATEMENT_BYTES: usize = 4 << 10;

/// What each further parameter takes.
const PARAMETER_BYTES: usize = 64;

/// A prepared statement.
#[derive(Debug)]
pub struct Prepared {
    text: Parametrized,
    /// What was the current database then.
    database: Option<String>,
    columns: Vec<ColumnInfo>,
    _place: PreparedPlace,
    _memory: ClientMemory,
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
    /// `place` is counted as long as the statement is there.
    pub(crate) async fn new(
        session: &Session,
        text: &str,
        place: PreparedPlace,
    ) -> Result<Prepared, MySqlError> {
        if is_on_prepared(text) {
            return Err(MySqlError::new(ErrorCode::NotPreparable, &[]));
        }
        let asked = text;
        let kept_bytes = text.len().saturating_add(STATEMENT_BYTES);
        let mut memory = session.keep_for_client(kept_bytes)?;
        let text = Parametrized::read(text)?;
        let parameter_bytes = text.count().saturating_mul(PARAMETER_BYTES);
        memory.resize(kept_bytes.saturating_add(parameter_bytes) as u64)?;
        let shows = text.as_asked(asked);
        let told = text.with_nothing()?;
        let database = session.database();
        let columns = match session.describe(&told).await {
            Ok(mut columns) => {
                for column in &mut columns {
                    column.name = shows(&column.name);
                }
                columns
            }
            Err(error) if HOPELESS.contains(&error.code) => {
                let message = shows(&error.message);
                return Err(MySqlError { message, ..error });
            }
            Err(error) if STOPPED.contains(&error.code) => return Err(error),
            // NULL is not a value that fits everywhere.
            Err(_) => Vec::new(),
        };
        Ok(Prepared {
            text,
            database,
            columns,
            _place: place,
            _memory: memory,
        })
    }

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

    /// The statement with these values, for [`Session::execute`].
    ///
    /// # Errors
    /// 1210 if there are not as many values as parameters, or one cannot be spelled.
    pub fn with(&self, values: &[Parameter<'_>]) -> Result<String, MySqlError> {
        self.text.with(values)
    }
}
