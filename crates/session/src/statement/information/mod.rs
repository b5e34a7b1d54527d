//! INFORMATION_SCHEMA: what exists, as tables.
//!
//! Owns the names of these tables and how they are found; each is made anew, out of the dictionary
//! and the session's temporary tables, when a statement mentions it. Nothing is stored.
//!
//! **Source**: the columns of MySQL 8.4. Temporary tables are listed as MariaDB 11.2 does.

mod columns;
mod constraints;
mod nothing;
mod tables;

use std::sync::Arc;

use mayfly_sql::bindings::BoundTable;
use mayfly_sql::statement::TableName;
use mayfly_table::Table;
use mayfly_types::{ErrorCode, MySqlError};

use super::Job;
use super::show::profile;
use crate::connection::Connection;
use crate::listing::Listing;
use crate::lowered;

/// The name of the database, of which case does not count.
pub(crate) const DATABASE: &str = "information_schema";

/// The catalog that everything is in.
const CATALOG: &str = "def";

type Make = fn(&Job) -> Listing;

/// The tables, in the order of their names.
const TABLES: [(&str, Make); 17] = [
    ("CHECK_CONSTRAINTS", constraints::check_constraints),
    ("COLUMNS", columns::columns),
    ("EVENTS", nothing::events),
    ("KEY_COLUMN_USAGE", constraints::key_column_usage),
    ("MAYFLY_TEMP_FILES", tables::temp_files),
    ("MAYFLY_TEMPORARY_TABLES", tables::temporary_tables),
    ("PARAMETERS", nothing::parameters),
    ("PARTITIONS", nothing::partitions),
    ("PROFILING", profile::profiling),
    ("REFERENTIAL_CONSTRAINTS", nothing::referential_constraints),
    ("ROUTINES", nothing::routines),
    ("SCHEMATA", tables::schemata),
    ("STATISTICS", constraints::statistics),
    ("TABLES", tables::tables),
    ("TABLE_CONSTRAINTS", constraints::table_constraints),
    ("TRIGGERS", nothing::triggers),
    ("VIEWS", nothing::views),
];

/// Whether this is the name of the database.
pub(crate) fn is_database(name: &str) -> bool {
    name.eq_ignore_ascii_case(DATABASE)
}

/// The names of the tables.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(name, _)| *name)
}

/// Nobody may change what is in INFORMATION_SCHEMA.
pub(crate) fn refuse_information(database: &str) -> Result<(), MySqlError> {
    if is_database(database) {
        return Err(MySqlError::new(
            ErrorCode::DatabaseAccessDenied,
            &[&"root", &"localhost", &DATABASE],
        ));
    }
    Ok(())
}

impl Connection {
    /// Whether there is such a database, this one included.
    pub(crate) fn has_database(&self, name: &str) -> bool {
        is_database(name) || self.engine.shared().dictionary.has_database(name)
    }
}

impl Job {
    /// The table of this name in INFORMATION_SCHEMA.
    ///
    /// # Errors
    /// 1109 if there is none.
    pub(crate) fn information(&self, name: &str) -> Result<Listing, MySqlError> {
        let found = TABLES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        match found {
            Some((_, make)) => Ok(make(self)),
            None => {
                let code = ErrorCode::UnknownTableIn;
                Err(MySqlError::new(code, &[&name, &DATABASE]))
            }
        }
    }

    /// The same for a planner.
    pub(crate) fn information_bound(&self, name: &TableName) -> Result<BoundTable, MySqlError> {
        lowered::bind_batch(self.information(&name.table)?.batch(None)?)
    }

    /// The databases, this one included.
    pub(crate) fn databases(&self) -> Vec<String> {
        let mut names = self.connection.engine.shared().dictionary.databases();
        names.push(DATABASE.to_owned());
        names.sort();
        names
    }

    /// Whether there is such a database, this one included.
    pub(crate) fn has_database(&self, name: &str) -> bool {
        self.connection.has_database(name)
    }

    /// All tables with their databases, and whether they are temporary ones of this session.
    fn all_tables(&self) -> Vec<(String, Arc<Table>, bool)> {
        let mut all = Vec::new();
        for database in self.connection.engine.shared().dictionary.databases() {
            for (table, is_temporary) in self.tables_of(&database) {
                all.push((database.clone(), table, is_temporary));
            }
        }
        all
    }
}
