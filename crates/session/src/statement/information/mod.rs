//! The databases whose tables are made anew, out of the dictionary and what the engine knows, when
//! a statement mentions them: INFORMATION_SCHEMA, PERFORMANCE_SCHEMA and `sys`, and the tables of
//! `mysql` that clients read.
//!
//! Owns the names of these tables and how they are found. Nothing is stored.
//!
//! **Source**: the columns of MySQL 8.4; where MariaDB 10.11 has further ones that can be told,
//! they follow. Temporary tables are listed as MariaDB 11.2 does.

mod accounts;
mod columns;
mod constraints;
mod extensions;
mod logs;
mod nothing;
mod performance;
mod processes;
mod server;
mod sys;
mod system;
mod tables;
mod threads;
mod uninstrumented;
mod views;

use std::pin::Pin;
use std::sync::Arc;

use mayfly_sql::statement::TableName;
use mayfly_table::Table;
use mayfly_types::{ErrorCode, MySqlError};

use super::Job;
use super::show::profile;
use crate::connection::Connection;
use crate::listing::Listing;
use crate::outcome::Outcome;
pub(crate) use accounts::connection_account;
pub(crate) use processes::processlist;
pub(crate) use sys::{short_bytes, short_time};
use system::{MYSQL, Make};

/// The name of the database, of which case does not count.
pub(crate) const DATABASE: &str = "information_schema";

/// The table of the columns of all tables.
const COLUMNS: &str = "COLUMNS";

/// The tables of INFORMATION_SCHEMA that may have rows.
const TABLES: [(&str, Make); 28] = [
    ("CHARACTER_SETS", server::character_sets),
    ("CHECK_CONSTRAINTS", constraints::check_constraints),
    ("COLLATIONS", server::collations),
    (
        "COLLATION_CHARACTER_SET_APPLICABILITY",
        server::applicability,
    ),
    (COLUMNS, columns::columns),
    ("COLUMNS_EXTENSIONS", extensions::columns),
    ("ENGINES", server::engines),
    ("GLOBAL_STATUS", server::global_status),
    ("GLOBAL_VARIABLES", server::global_variables),
    ("KEYWORDS", server::keywords),
    ("KEY_COLUMN_USAGE", constraints::key_column_usage),
    ("MAYFLY_TEMP_FILES", tables::temp_files),
    ("MAYFLY_TEMPORARY_TABLES", tables::temporary_tables),
    ("PLUGINS", server::plugins),
    ("PROCESSLIST", processes::processlist),
    ("PROFILING", profile::profiling),
    ("SCHEMATA", tables::schemata),
    ("SCHEMATA_EXTENSIONS", extensions::schemata),
    ("SESSION_STATUS", server::session_status),
    ("SESSION_VARIABLES", server::session_variables),
    ("STATISTICS", constraints::statistics),
    ("TABLES", tables::tables),
    ("TABLES_EXTENSIONS", extensions::tables),
    ("TABLE_CONSTRAINTS", constraints::table_constraints),
    ("TABLE_CONSTRAINTS_EXTENSIONS", extensions::constraints),
    ("USER_ATTRIBUTES", accounts::user_attributes),
    ("USER_PRIVILEGES", accounts::user_privileges),
    ("VIEWS", views::views),
];

/// A database whose tables are made anew.
struct System {
    name: &'static str,
    /// What its tables are, as lists of tables say it.
    kind: &'static str,
    /// Whether lists of databases have it.
    is_listed: bool,
    /// Which of its tables lists have.
    lists: fn(&str) -> bool,
    /// Whether there may be a database of this name beside it, as a dump of another server makes
    /// one. Its tables come before those that are made anew, and the name has case.
    is_open: bool,
    /// The tables that may have rows.
    made: &'static [(&'static str, Make)],
    /// The tables that have none, and their columns.
    empty: &'static [(&'static str, &'static str)],
}

/// The databases whose tables are made anew. Whoever copies all databases asks for what is listed,
/// and is to copy neither accounts nor views of what the server did: `sys` is not listed. `mysql`
/// is, since mysqldump copies nothing of a server that does not list it, but of its tables only the
/// logs.
const SYSTEMS: [System; 4] = [
    System {
        name: DATABASE,
        kind: "SYSTEM VIEW",
        is_listed: true,
        lists: |_| true,
        is_open: false,
        made: &TABLES,
        empty: &nothing::TABLES,
    },
    System {
        name: performance::DATABASE,
        kind: "BASE TABLE",
        is_listed: true,
        lists: |_| true,
        is_open: false,
        made: &performance::TABLES,
        empty: &uninstrumented::TABLES,
    },
    System {
        name: sys::DATABASE,
        kind: "VIEW",
        is_listed: false,
        lists: |_| true,
        is_open: true,
        made: &sys::TABLES,
        empty: &[],
    },
    System {
        name: MYSQL,
        kind: "BASE TABLE",
        is_listed: true,
        lists: logs::is_log,
        is_open: true,
        made: &accounts::TABLES,
        empty: &accounts::EMPTY_TABLES,
    },
];

impl System {
    fn of(database: &str) -> Option<&'static System> {
        SYSTEMS.iter().find(|system| match system.is_open {
            true => system.name == database,
            false => system.name.eq_ignore_ascii_case(database),
        })
    }

    fn all_names(&self) -> impl Iterator<Item = &'static str> {
        let made = self.made.iter().map(|(name, _)| *name);
        made.chain(self.empty.iter().map(|(name, _)| *name))
    }

    fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = self.all_names().collect();
        names.sort_unstable();
        names
    }

    fn has(&self, name: &str) -> bool {
        self.all_names()
            .any(|known| known.eq_ignore_ascii_case(name))
    }

    fn table(&self, name: &str, job: &Job) -> Option<Listing> {
        let is_it = |known: &str| known.eq_ignore_ascii_case(name);
        if let Some((_, make)) = self.made.iter().find(|(known, _)| is_it(known)) {
            return Some(make(job));
        }
        let empty = self.empty.iter().find(|(known, _)| is_it(known));
        empty.map(|(_, columns)| Listing::declared(columns))
    }
}

/// Whether this is the name of INFORMATION_SCHEMA.
pub(crate) fn is_database(name: &str) -> bool {
    name.eq_ignore_ascii_case(DATABASE)
}

/// The databases that are not open.
fn closed() -> impl Iterator<Item = &'static System> {
    SYSTEMS.iter().filter(|system| !system.is_open)
}

/// What the tables are that are made anew in a database.
pub(crate) fn kind_of(database: &str) -> &'static str {
    System::of(database).map_or("", |system| system.kind)
}

/// Nobody may drop a database whose tables are made anew while there is no other of its name.
pub(crate) fn undroppable(connection: &Connection, database: &str) -> Option<MySqlError> {
    let system = System::of(database)?;
    Some(access_denied(connection, system.name))
}

/// The error of a table that INFORMATION_SCHEMA does not have.
pub(crate) fn unknown_table(name: &str) -> MySqlError {
    MySqlError::new(ErrorCode::UnknownTableIn, &[&name, &DATABASE])
}

/// Nobody may make, drop or repair a database that is not open, or what it has.
///
/// # Errors
/// 1044 for its name.
pub(crate) fn refuse_information(
    connection: &Connection,
    database: &str,
) -> Result<(), MySqlError> {
    match System::of(database) {
        Some(system) if !system.is_open => Err(access_denied(connection, system.name)),
        _ => Ok(()),
    }
}

fn access_denied(connection: &Connection, database: &str) -> MySqlError {
    let (user, host) = accounts::connection_account(connection);
    MySqlError::new(ErrorCode::DatabaseAccessDenied, &[&user, &host, &database])
}

impl Connection {
    /// Whether there is such a database, those whose tables are made anew included.
    pub(crate) fn has_database(&self, name: &str) -> bool {
        System::of(name).is_some() || self.engine.shared().dictionary.has_database(name)
    }
}

impl Job {
    /// The table of this name that is made anew, if there is one and nobody made another.
    pub(crate) fn system_table(&self, database: &str, name: &TableName) -> Option<Listing> {
        self.system_of(database, name)?.table(&name.table, self)
    }

    /// The same, with what is planned for it.
    pub(crate) fn planned_system_table<'a>(
        &'a self,
        database: &'a str,
        name: &'a TableName,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Listing>, MySqlError>> + Send + 'a>> {
        Box::pin(async move {
            let mut made = self.system_table(database, name);
            if let Some(listing) = &mut made
                && is_database(database)
                && name.table.eq_ignore_ascii_case(COLUMNS)
            {
                self.add_columns_of_views(listing).await?;
            }
            Ok(made)
        })
    }

    /// Whether there is one. It is not made.
    pub(crate) fn is_system_table(&self, name: &TableName) -> bool {
        let database = self.database_of(name);
        database.is_ok_and(|database| self.system_of(&database, name).is_some())
    }

    fn system_of(&self, database: &str, name: &TableName) -> Option<&'static System> {
        let system = System::of(database)?;
        (system.has(&name.table) && self.table(name).is_err()).then_some(system)
    }

    /// The names of the tables that are made anew in a database, in their order.
    pub(crate) fn system_names(&self, database: &str) -> Vec<&'static str> {
        let Some(system) = System::of(database) else {
            return Vec::new();
        };
        let mut names = system.names();
        let made = self.tables_of(database);
        names.retain(|name| made.iter().all(|(table, _)| table.name() != *name));
        names
    }

    /// Those of them that lists of tables have.
    pub(crate) fn listed_system_names(&self, database: &str) -> Vec<&'static str> {
        let mut names = self.system_names(database);
        names.retain(|name| System::of(database).is_some_and(|system| (system.lists)(name)));
        names
    }

    /// Nobody may write to a database whose tables are made anew, unless it was created as well.
    pub(crate) fn refuse_system(&self, database: &str) -> Result<(), MySqlError> {
        refuse_information(&self.connection, database)?;
        let is_created = || {
            { self.connection.engine.shared() }
                .dictionary
                .has_database(database)
        };
        match System::of(database) {
            Some(system) if !is_created() => Err(access_denied(&self.connection, system.name)),
            _ => Ok(()),
        }
    }

    /// Nobody may change rows of a database whose tables are made anew, unless it was created as
    /// well.
    ///
    /// # Errors
    /// 1142 for a table that MySQL keeps rows in, 1146 if there is none of the name, 1044 for any
    /// other one.
    pub(crate) fn refuse_system_rows(
        &self,
        name: &TableName,
        command: &str,
    ) -> Result<(), MySqlError> {
        let database = self.database_of(name)?;
        let denied = self.refuse_system(&database);
        if denied.is_ok() || is_database(&database) {
            return denied;
        }
        let table = &name.table;
        let names = self.system_names(&database);
        Err(
            match names.iter().any(|own| own.eq_ignore_ascii_case(table)) {
                true => {
                    let code = ErrorCode::TableAccessDenied;
                    let (user, host) = accounts::connection_account(&self.connection);
                    MySqlError::new(code, &[&command, &user, &host, table])
                }
                false => MySqlError::new(ErrorCode::NoSuchTable, &[&database, table]),
            },
        )
    }

    /// TRUNCATE TABLE where figures are emptied; `None` for a table that has rows.
    ///
    /// # Errors
    /// As of other changes of rows.
    pub(crate) fn truncate_system(&self, name: &TableName) -> Result<Option<Outcome>, MySqlError> {
        let database = self.database_of(name)?;
        if database.eq_ignore_ascii_case(performance::DATABASE) {
            if name.table.eq_ignore_ascii_case(performance::DIGESTS) {
                self.connection.engine.shared().digests.clear();
                return Ok(Some(Outcome::done(0)));
            }
            if name.table.eq_ignore_ascii_case(performance::HOSTS) {
                return Ok(Some(Outcome::done(0)));
            }
        }
        self.refuse_system_rows(name, "DROP").map(|()| None)
    }

    /// The databases that lists have, those whose tables are made anew included.
    pub(crate) fn databases(&self) -> Vec<String> {
        let mut names = self.connection.engine.shared().dictionary.databases();
        let listed = SYSTEMS.iter().filter(|system| system.is_listed);
        names.extend(listed.map(|system| system.name.to_owned()));
        names.sort();
        // Somebody may have made one beside that of the system.
        names.dedup();
        names
    }

    /// Whether there is such a database, those whose tables are made anew included.
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

#[cfg(test)]
mod tests {
    use mayfly_types::ColumnType;

    use mayfly_sql::bindings::SYSTEM_DATABASES;

    use super::{SYSTEMS, closed};
    use crate::listing::{Listing, declared_columns};

    #[test]
    fn empty_tables_are_declared_well() {
        for (table, columns) in SYSTEMS.iter().flat_map(|system| system.empty) {
            for (column, declared) in declared_columns(columns) {
                let parsed = declared.parse::<ColumnType>();
                assert!(parsed.is_ok(), "{table}.{column} {declared}");
                assert!(
                    column
                        .chars()
                        .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
                );
            }
            let batch = Listing::declared(columns).batch(None);
            assert_eq!(batch.unwrap().num_rows(), 0, "{table}");
        }
    }

    #[test]
    fn the_planner_knows_which_names_have_no_case() {
        let names: Vec<&str> = closed().map(|system| system.name).collect();
        assert_eq!(names, SYSTEM_DATABASES);
    }

    #[test]
    fn no_table_is_there_twice() {
        for system in &SYSTEMS {
            let names = system.names().into_iter();
            let mut names: Vec<String> = names.map(str::to_lowercase).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{}", system.name);
        }
    }
}
