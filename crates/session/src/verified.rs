//! A look at everything that tables hold, for tests: whether rows and keys agree.

use mayfly_table::Error;
use mayfly_types::MySqlError;

use crate::errors;
use crate::session::Session;

impl Session {
    /// Reads all rows and all entries of keys of the tables that the session sees, its own and
    /// those of everybody, and describes the first one that is not whole. Others wait for a table
    /// while it is looked at: this is for tests.
    ///
    /// # Errors
    /// If memory or I/O fail.
    #[doc(hidden)]
    pub fn verify_tables(&self) -> Result<Option<String>, MySqlError> {
        let connection = &self.connection;
        let dictionary = &connection.engine.shared().dictionary;
        let mut tables = connection.local().temporary.tables();
        for database in dictionary.databases() {
            // It may have been dropped meanwhile.
            let shared = dictionary.tables(&database).unwrap_or_default();
            tables.extend(shared.into_iter().map(|table| (database.clone(), table)));
        }
        for (database, table) in tables {
            match table.verify() {
                Ok(()) => {}
                Err(Error::Space(error)) => return Err(errors::from_space(&error)),
                Err(error) => return Ok(Some(format!("{database}.{}: {error}", table.name()))),
            }
        }
        Ok(None)
    }
}
