//! Statements that clients prepare once and run often, with other values.
//!
//! A prepared statement keeps its text, cut at its parameters. Running it puts values into the
//! text: a statement on few rows is known by its shape and is not read again
//! (`docs/decisions/0009-statements-by-their-shape.md`), any other is planned with the values that
//! it has this time, which tell the planner more than a parameter would.

use mayfly_sql::pieces::Parametrized;
use mayfly_types::MySqlError;

use crate::outcome::ColumnInfo;
use crate::session::Session;

pub use mayfly_sql::pieces::Parameter;

/// Errors that say a statement cannot be run whatever values it gets: there is no such database,
/// column, table, function or variable, or it is no statement.
const HOPELESS: [u16; 8] = [1046, 1049, 1051, 1054, 1064, 1146, 1193, 1305];

/// A prepared statement.
#[derive(Debug)]
pub struct Prepared {
    text: Parametrized,
    columns: Vec<ColumnInfo>,
}

impl Prepared {
    pub(crate) async fn new(session: &mut Session, text: &str) -> Result<Prepared, MySqlError> {
        let text = Parametrized::read(text)?;
        let columns = match session.describe(&text.with_nothing()?).await {
            Ok(columns) => columns,
            Err(error) if HOPELESS.contains(&error.code) => return Err(error),
            // NULL is not a value that fits everywhere.
            Err(_) => Vec::new(),
        };
        Ok(Prepared { text, columns })
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

    /// The statement with these values, for [`Session::execute`].
    ///
    /// # Errors
    /// 1210 if there are not as many values as parameters, or one cannot be spelled.
    pub fn with(&self, values: &[Parameter<'_>]) -> Result<String, MySqlError> {
        self.text.with(values)
    }
}
