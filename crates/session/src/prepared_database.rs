//! The database of a prepared statement.
//!
//! Names without a database mean that which was current when the statement was prepared, however
//! often the connection has changed its own since. So an execution begins with a step into that
//! database and ends with a step back, as in MySQL: `DATABASE()` says where it is, and a prepared
//! `USE` has no effect beyond its execution unless both are the same.
//!
//! ```text
//!   USE d; PREPARE s FROM 'SELECT * FROM t'
//!   USE e; EXECUTE s                           away:  database d, home e
//!                                              ended: database e
//! ```
//!
//! **Source**: `Prepared_statement::execute_loop` in MySQL's `sql/sql_prepare.cc`.
//!
//! **Cost**: a lock and a comparison for each execution where both databases are the same.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::connection::Connection;
use crate::local::{Home, Local};

/// Keeps a connection in the database of a prepared statement.
pub(crate) struct Away(Arc<Connection>);

impl Away {
    /// Steps into a database; `None` if the connection is there.
    pub(crate) fn enter(connection: &Arc<Connection>, database: Option<&str>) -> Option<Away> {
        let mut local = connection.local();
        if local.database.as_deref() == database {
            return None;
        }
        let home = std::mem::replace(&mut local.database, database.map(str::to_owned));
        local.home = Some(Home(home));
        drop(local);
        Some(Away(Arc::clone(connection)))
    }
}

impl Drop for Away {
    /// A statement that was abandoned may still look names up: who waits for its end steps back.
    fn drop(&mut self) {
        match self.0.abandoned.is_none() {
            true => self.0.return_home(),
            false => self.0.is_left_away.store(true, Ordering::Relaxed),
        }
    }
}

impl Connection {
    /// What DATABASE() says: nothing where that of a prepared statement is gone.
    pub(crate) fn tell_database(&self, local: &Local, told: &mut Option<String>) {
        told.clone_from(&local.database);
        let is_gone = |name: &String| !self.has_database(name);
        if local.home.is_some() && told.as_ref().is_some_and(is_gone) {
            *told = None;
        }
    }

    /// Steps back into the database that was left. If it is gone meanwhile, none is selected.
    pub(crate) fn return_home(&self) {
        self.is_left_away.store(false, Ordering::Relaxed);
        let Some(Home(home)) = self.local().home.take() else {
            return;
        };
        let (is_gone, home) = match home {
            Some(name) if !self.has_database(&name) => (true, None),
            home => (false, home),
        };
        let mut local = self.local();
        local.database = home;
        if is_gone {
            local.database_changed();
        }
    }
}
