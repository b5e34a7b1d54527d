//! Where statements wait that have nothing else to do, in SLEEP and in GET_LOCK, and where they do
//! what takes long in one step: the commit of many rows.
//!
//! A worker that waits, or is in such a step, gives what it had to do to another thread: each takes
//! one of those that the engine has beside its workers. Only a part of these may wait, so that
//! files can still be read. Where the system gives no thread to take the worker's place, a
//! statement that would wait fails: with all workers waiting, nobody's statement would go on. A
//! long step is done by the worker then.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mayfly_sql::functions::Waiting;
use mayfly_types::{ErrorCode, MySqlError};

use crate::shortage::TurnOfConnection;
use crate::spare_threads;

/// Threads of an engine beside its workers, made when they are needed.
pub(crate) const OTHER_THREADS_MAX: usize = 512;
/// How many of them may wait.
const WAITING_MAX: usize = 256;

/// How many may be in long steps. They take turns on the processors.
const LONG_STEPS_MAX: usize = 32;

/// Threads that the system must have when a worker begins to wait: one that takes its place, and
/// one that reads files.
const SPARE_THREADS: usize = 2;

/// Stack of a worker: nested expressions and plans recurse, and what the parser lets through must
/// fit whoever compiled it (see `mayfly_sql::parse`). It takes memory only where it is used.
pub(crate) const WORKER_STACK_BYTES: usize = 32 << 20;

/// The name of all threads of an engine.
pub(crate) const THREAD_NAME: &str = "mayfly-worker";

/// Counts those that wait, and those in long steps.
#[derive(Debug, Default)]
pub(crate) struct WaitingRoom {
    taken: AtomicUsize,
    long_steps: AtomicUsize,
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

impl WaitingRoom {
    /// Does what takes long while another thread takes the place of this worker; where there is
    /// none, others wait for this one.
    pub(crate) fn compute<T>(&self, step: impl FnOnce() -> T) -> T {
        let begun = self.long_steps.fetch_add(1, Ordering::Relaxed);
        let _place = Place(&self.long_steps);
        if begun >= LONG_STEPS_MAX || !is_of_engine() {
            return step();
        }
        match self.replacement() {
            Ok(replaced) => while_replaced(replaced, step),
            Err(_) => step(),
        }
    }

    /// The right to be replaced by another thread, until that is a worker.
    ///
    /// # Errors
    /// Error 1135 where the system has none.
    fn replacement(&self) -> Result<MutexGuard<'_, ()>, MySqlError> {
        let replaced = self.replaced.lock();
        let replaced = replaced.unwrap_or_else(PoisonError::into_inner);
        spare_threads::check(SPARE_THREADS, WORKER_STACK_BYTES)?;
        Ok(replaced)
    }
}

/// Does a step while another thread takes the place of this worker.
fn while_replaced<T>(replaced: MutexGuard<'_, ()>, step: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(|| {
        drop(replaced);
        step()
    })
}

/// Whether this thread is one of the engine's. Another one is its caller's, who may keep it.
fn is_of_engine() -> bool {
    std::thread::current().name() == Some(THREAD_NAME)
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
        match is_of_engine() {
            true => while_replaced(self.replacement()?, wait),
            false => wait(),
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

    /// One worker, and the threads that were started.
    fn one_worker() -> (tokio::runtime::Runtime, Arc<AtomicUsize>) {
        let started = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&started);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(THREAD_NAME)
            .on_thread_start(move || {
                count.fetch_add(1, Ordering::SeqCst);
            })
            .enable_all()
            .build();
        (runtime.unwrap(), started)
    }

    #[test]
    fn others_go_on_during_a_long_step() {
        let (runtime, _) = one_worker();
        let room = Arc::new(WaitingRoom::default());
        let (begin, begun) = std::sync::mpsc::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let long = {
            let room = Arc::clone(&room);
            runtime.spawn(async move {
                room.compute(|| {
                    begin.send(()).unwrap();
                    // What the other statement says; it needs the only worker.
                    told.recv_timeout(std::time::Duration::from_secs(60))
                })
            })
        };
        begun.recv().unwrap();
        let short = runtime.spawn(async move { tell.send(7) });
        assert_eq!(runtime.block_on(long).unwrap(), Ok(7));
        runtime.block_on(short).unwrap().unwrap();
        assert_eq!(room.long_steps.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_finds_no_place_does_its_step_all_the_same() {
        for (taken, threads) in [(LONG_STEPS_MAX - 1, 2), (LONG_STEPS_MAX, 1)] {
            let (runtime, started) = one_worker();
            let room = Arc::new(WaitingRoom::default());
            room.long_steps.store(taken, Ordering::Relaxed);
            let task = {
                let room = Arc::clone(&room);
                runtime.spawn(async move { room.compute(|| 7) })
            };
            assert_eq!(runtime.block_on(task).unwrap(), 7);
            assert_eq!(room.long_steps.load(Ordering::Relaxed), taken);
            // Waits for its threads.
            drop(runtime);
            assert_eq!(started.load(Ordering::SeqCst), threads, "{taken} taken");
        }
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
