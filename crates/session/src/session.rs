//! One connection as its user holds it.

use std::sync::Arc;

use mayfly_types::MySqlError;

use crate::connection::Connection;
use crate::names;
use crate::outcome::{Outcome, crashed};
use crate::progress::Progress;
use crate::running::{AFTER_FAILURE, AFTER_SUCCESS, CancelHandle, Running};
use crate::statement;
use crate::stats::StatementStats;

/// A connection to an engine: variables, temporary tables, one statement at a time.
///
/// Dropping it drops its temporary tables.
pub struct Session {
    connection: Arc<Connection>,
}

/// Stops a statement whose caller has lost interest.
struct AbortOnDrop(Option<Arc<Running>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            running.abort();
            running.finish();
        }
    }
}

impl Session {
    pub(crate) fn new(connection: Arc<Connection>) -> Session {
        Session { connection }
    }

    /// Runs one statement. A delimiter at its end is allowed.
    ///
    /// The statement runs on the engine's workers; the future may be polled anywhere. Dropping it
    /// stops the statement.
    ///
    /// # Errors
    /// Whatever MySQL would answer; the session stays usable.
    pub async fn execute(&mut self, statement: &str) -> Result<Outcome, MySqlError> {
        let connection = Arc::clone(&self.connection);
        connection.engine.make_room_for_planning();
        let account = connection.statement_account();
        let running = Running::begin(&connection, statement, account);
        let runtime = self.connection.engine.runtime();
        let task = runtime.spawn(statement::run(connection, Arc::clone(&running)));
        running.add_task(task.abort_handle());
        let mut guard = AbortOnDrop(Some(Arc::clone(&running)));
        let ended = task.await;
        match &ended {
            Ok(Ok(Outcome::Rows { .. })) => {}
            Ok(Ok(Outcome::Done { .. })) => running.let_go(AFTER_SUCCESS).await,
            Ok(Err(_)) | Err(_) => running.let_go(AFTER_FAILURE).await,
        }
        guard.0 = None;
        match ended {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(error)) => {
                let error = running.interrupted().unwrap_or(error);
                running.fail(&error);
                Err(error)
            }
            Err(join) => {
                let error = running
                    .interrupted()
                    .unwrap_or_else(|| crashed(&panic_text(join)));
                running.fail(&error);
                Err(error)
            }
        }
    }

    /// The number of the connection, as `CONNECTION_ID()` says it.
    pub fn id(&self) -> u64 {
        self.connection.id
    }

    /// The current database.
    pub fn database(&self) -> Option<String> {
        self.connection.local().database.clone()
    }

    /// A handle that stops the running statement.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.connection.cancel.clone()
    }

    /// What the last finished statement cost.
    pub fn last_stats(&self) -> StatementStats {
        self.connection.local().last
    }

    /// Looks at the running statement while the session itself is busy.
    pub fn progress_handle(&self) -> ProgressHandle {
        ProgressHandle {
            cancel: self.connection.cancel.clone(),
        }
    }

    /// How far the running statement has come.
    pub fn progress(&self) -> Progress {
        self.connection.cancel.progress()
    }

    /// Names of tables, columns, functions, variables and keywords for completion, sorted.
    pub fn names_for_completion(&self) -> Vec<String> {
        names::all(&self.connection)
    }
}

/// Reads the progress of a session's statement; cheap to clone, may be used from any thread.
#[derive(Clone)]
pub struct ProgressHandle {
    cancel: CancelHandle,
}

impl ProgressHandle {
    /// How far the running statement has come; zero between statements.
    pub fn read(&self) -> Progress {
        self.cancel.progress()
    }
}

fn panic_text(join: tokio::task::JoinError) -> String {
    if !join.is_panic() {
        return "the statement's task was stopped".to_owned();
    }
    let payload = join.into_panic();
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "panic".to_owned()
    }
}
