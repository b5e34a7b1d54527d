//! How a statement is prepared.

use mayfly_sql::parse::is_on_prepared;
use mayfly_sql::pieces::Parametrized;
use mayfly_types::{ErrorCode, MySqlError};

use crate::clients::PreparedPlace;
use crate::commands::Command;
use crate::prepared::Prepared;
use crate::session::Session;

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

impl Session {
    /// Cuts a statement at its parameters and looks at its columns.
    ///
    /// # Errors
    /// 1064, what names tables and columns that do not exist, 1461 when there are too many, and
    /// what stops planning: 1317 and 3024.
    pub async fn prepare(&mut self, statement: &str) -> Result<Prepared, MySqlError> {
        let connection = &self.connection;
        connection.count(|status| status.commands.add(Command::StatementPrepare));
        self.prepare_any(statement).await
    }

    /// The same, whatever asks for it.
    pub(crate) async fn prepare_any(&self, statement: &str) -> Result<Prepared, MySqlError> {
        self.connection.after_abandoned().await?;
        let engine = &self.connection.engine;
        let most = engine.globals().variables.number("max_prepared_stmt_count");
        let place = engine.clients().prepare(most);
        let place = place.ok_or_else(|| MySqlError::new(ErrorCode::TooManyPrepared, &[&most]))?;
        let statement = self.connection.in_backticks(statement);
        prepare(self, &statement, place).await
    }
}

/// `place` is counted as long as the statement is there.
async fn prepare(
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
