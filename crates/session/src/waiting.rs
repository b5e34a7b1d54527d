//! Where statements wait that have nothing else to do: in SLEEP and in GET_LOCK.
//!
//! A worker that waits gives what it had to do to another thread: each takes one of those that the
//! engine has beside its workers. Only a part of these may wait, so that files can still be read.
//! Where the system gives no thread to take the worker's place, the statement fails: with all
//! workers waiting, nobody's statement would go on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mayfly_sql::functions::Waiting;
use mayfly_types::{ErrorCode, MySqlError};

use crate::shortage::TurnOfConnection;
use crate::spare_threads;

/// Threads of an engine beside its workers, made when they are needed.
pub(crate) const OTHER_THREADS_MAX: usize = 512;
/// How many of them may wait.
const WAITING_MAX: usize = 256;

/// Threads that the system must have when a worker begins to wait: one that takes its place, and
/// one that reads files.
const SPARE_THREADS: usize = 2;

/// Stack of a worker: nested expressions and plans recurse, and what the parser lets through must
/// fit whoever compiled it (see `mayfly_sql::parse`). It takes memory only where it is used.
pub(crate) const WORKER_STACK_BYTES: usize = 32 << 20;

/// The name of all threads of an engine.
pub(crate) const THREAD_NAME: &str = "mayfly-worker";

/// Counts those that wait.
#[derive(Debug, Default)]
pub(crate) struct WaitingRoom {
    taken: AtomicUsize,
    /// Held from looking for spare threads until one of them is a worker.
    replaced: Mutex<()>,
}

/// The room as the statements of one connection see it.
#[derive(Debug)]
pub(crate) struct WaitingPlace {
    pub(crate) room: Arc<WaitingRoom>,
    pub(crate) turn: Arc<TurnOfConnection>,
}

impl Waiting for WaitingPlace {
    fn wait(&self, wait: &mut dyn FnMut()) -> Result<(), MySqlError> {
        drop(self.turn.take());
        self.room.wait(wait)
    }
}

/// A place in the room.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Waiting for WaitingRoom {
    fn wait(&self, wait: &mut dyn FnMut()) -> Result<(), MySqlError> {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        let _place = Place(&self.taken);
        if taken >= WAITING_MAX {
            let message = format!("{WAITING_MAX} statements wait in SLEEP or GET_LOCK already");
            return Err(MySqlError::with_message(ErrorCode::OutOfResources, message));
        }
        // Another thread than the engine's is its caller's, who may keep it.
        match std::thread::current().name() {
            Some(THREAD_NAME) => {
                let replaced = self.replaced.lock();
                let replaced = replaced.unwrap_or_else(PoisonError::into_inner);
                spare_threads::check(SPARE_THREADS, WORKER_STACK_BYTES)?;
                tokio::task::block_in_place(|| {
                    drop(replaced);
                    wait();
                });
            }
            _ => wait(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_gives_its_turn_away() {
        let queue = Arc::new(tokio::sync::Mutex::new(()));
        let place = WaitingPlace {
            room: Arc::default(),
            turn: Arc::default(),
        };
        place.turn.put(Some(Arc::clone(&queue).lock_owned().await));
        assert!(queue.try_lock().is_err());
        place
            .wait(&mut || assert!(queue.try_lock().is_ok()))
            .unwrap();
    }

    #[test]
    fn only_so_many_wait_at_a_time() {
        let room = WaitingRoom::default();
        let mut places: Vec<Place<'_>> = Vec::new();
        for _ in 0..WAITING_MAX - 1 {
            room.taken.fetch_add(1, Ordering::Relaxed);
            places.push(Place(&room.taken));
        }
        let one_more = || {
            let mut inner = Ok(());
            let outer = room.wait(&mut || inner = room.wait(&mut || {}));
            assert_eq!(outer, Ok(()));
            inner.map_err(|error| error.code)
        };
        assert_eq!(one_more(), Err(1041));
        places.pop();
        assert_eq!(one_more(), Ok(()));
    }
}
