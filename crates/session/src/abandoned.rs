//! Statements whose caller has gone before they ended: a client hung up, rows were not read to
//! their end, Ctrl-C was pressed twice.
//!
//! Such a statement is told to stop, but its tasks stop at their next await only. Until then one of
//! them may be about to commit, or to put a table back. So the statement goes on to count as one
//! that runs, and has its memory, until the last of its tasks is gone, and the connection begins no
//! other statement before.
//!
//! **Cost**: a load of a counter for each statement; nothing else unless one was abandoned.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mayfly_types::{ErrorCode, MySqlError};

use crate::connection::Connection;
use crate::pending::Counted;
use crate::running::{AFTER_FAILURE, Running};
use crate::shortage::Place;

/// A statement on its way out.
struct Leaving {
    running: Arc<Running>,
    /// Keeps the connection from beginning another one.
    counted: Option<Counted>,
    /// Counts it among those that run.
    _place: Option<Place>,
}

impl Leaving {
    /// Finishes the statement, whose tasks are gone.
    fn finish(&mut self) {
        self.running.finish();
        drop(self.counted.take());
    }

    async fn leave(mut self) {
        self.running.tasks_gone().await;
        self.finish();
        // Operators have tasks of their own, which end with the step that they are in.
        self.running.let_go(AFTER_FAILURE).await;
    }
}

impl Drop for Leaving {
    /// Also where the engine ends before the tasks have.
    fn drop(&mut self) {
        self.finish();
    }
}

/// Stops a statement that nobody waits for any more, and finishes it when its tasks are gone.
pub(crate) fn abandon(running: &Arc<Running>) {
    running.abort();
    let connection = running.connection();
    let mut leaving = Leaving {
        running: Arc::clone(running),
        counted: Some(connection.abandoned.enter()),
        _place: running.take_place(),
    };
    if running.has_no_tasks() {
        leaving.finish();
    }
    if leaving.counted.is_some() || running.account.holders() > 1 {
        connection.engine.control().spawn(leaving.leave());
    }
}

impl Connection {
    /// Waits until no statement that was abandoned touches what the connection has.
    ///
    /// # Errors
    /// 1317 where the connection is ended meanwhile.
    pub(crate) async fn after_abandoned(&self) -> Result<(), MySqlError> {
        if !self.abandoned.is_none() {
            tokio::select! {
                () = self.abandoned.none_left() => {}
                () = self.end.wait() => {
                    return Err(MySqlError::new(ErrorCode::QueryInterrupted, &[]));
                }
            }
        }
        if self.is_left_away.load(Ordering::Relaxed) {
            self.return_home();
        }
        Ok(())
    }
}

/// Stops a statement whose caller has lost interest.
pub(crate) struct AbortOnDrop(pub(crate) Option<Arc<Running>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            abandon(&running);
        }
    }
}
