//! Statements that find the memory taken by others wait until some of these have ended.
//!
//! Owns the count of running statements and the queue of those that start again. A statement admits
//! what it needs at least when it starts (see `Account::admit`); where others have admitted the
//! rest of the budget it has sent nothing yet, and is run again. **Never** waits where nobody else
//! runs: then the budget is too small, and the error stands. How long it waits says
//! `mayfly_memory_wait_timeout`.
//!
//! One at a time starts again, in the order of the queue: the others would plan in vain. It does
//! when another one has ended, and now and then before: those that run need more at one time than
//! at another, and a statement on one row needs little. Newcomers are not held back, so a statement
//! in the queue may lose its chance to them; its patience ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedMutexGuard};

use crate::pending::notified_unless;

/// How long the first one in the queue waits before it tries again while nobody has ended ...
const FIRST_PAUSE: Duration = Duration::from_millis(4);
/// ... how often that doubles with each try in vain, up to a second ...
const PAUSE_DOUBLINGS: u32 = 8;
/// ... and how many times as long as the try it is at least: what is done in vain takes time from
/// those that it waits for.
const PAUSE_PER_TRY: u32 = 8;

/// The pause after so many tries in vain, the last of which took so long.
pub(crate) fn pause(tries: u32, took: Duration) -> Duration {
    let doubled = FIRST_PAUSE * 2_u32.saturating_pow(tries.min(PAUSE_DOUBLINGS));
    doubled.max(took.saturating_mul(PAUSE_PER_TRY))
}

/// The statements of an engine that have a task.
#[derive(Default)]
pub(crate) struct Statements {
    running: AtomicUsize,
    ended: Notify,
    queue: Arc<tokio::sync::Mutex<()>>,
}

/// What counts one of them until it is dropped.
pub(crate) struct Place(Arc<Statements>);

/// The right to start again.
pub(crate) type Turn = OwnedMutexGuard<()>;

/// Where the turn of a connection's statement lies while it runs. One that waits for something else
/// than memory gives it away, since those in the queue may be what it waits for.
#[derive(Debug, Default)]
pub(crate) struct TurnOfConnection(Mutex<Option<Turn>>);

impl TurnOfConnection {
    /// Keeps a turn, in place of the one before.
    pub(crate) fn put(&self, turn: Option<Turn>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }

    /// Takes the turn out, if it was not given away.
    pub(crate) fn take(&self) -> Option<Turn> {
        let mut turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turn.take()
    }
}

impl Statements {
    /// Counts a statement.
    pub(crate) fn enter(self: &Arc<Self>) -> Place {
        self.running.fetch_add(1, Ordering::SeqCst);
        Place(Arc::clone(self))
    }

    /// How many are counted.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// Waits until a statement that is not counted any more may start again: it is its turn, which
    /// it may hold already, and one of those that ran has ended or the pause is over. `None` if its
    /// patience ends first.
    pub(crate) async fn next_turn(
        &self,
        held: Option<Turn>,
        pause: Duration,
        patience: Duration,
    ) -> Option<Turn> {
        let next = async {
            let turn = match held {
                Some(turn) => turn,
                None => Arc::clone(&self.queue).lock_owned().await,
            };
            let _either = tokio::time::timeout(pause, self.one_ended()).await;
            turn
        };
        tokio::time::timeout(patience, next).await.ok()
    }

    /// Waits until one of those that run has ended; not at all where none does.
    async fn one_ended(&self) {
        notified_unless(&self.ended, || self.running() == 0).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        self.0.ended.notify_waiters();
    }
}

/// Whether a statement that has failed may run a second time as if it had not run before, by its
/// text: what it wrote is taken back, its variables are not. What else it may have done says
/// `Values::took_effect`.
pub(crate) fn may_run_again(text: &str) -> bool {
    !text.contains(":=")
}
