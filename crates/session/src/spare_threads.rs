//! Threads that an engine needs beside its workers, where the system may have none.
//!
//! The runtime panics where it needs a thread and gets none, or leaves what a thread was needed for
//! in a queue that nobody serves. So it is asked for one only where there is one: after [`check`],
//! or because [`keep_one`] keeps one from the start to the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::Builder;
use std::time::Duration;

use mayfly_types::MySqlError;
use tokio::runtime::Runtime;

/// How long a thread beside the workers stays that has nothing to do.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Looks whether the system gives so many threads at once, by making them.
///
/// # Errors
/// Error 1135 where it does not.
pub(crate) fn check(count: usize, stack_bytes: usize) -> Result<(), MySqlError> {
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
    let mut threads = Vec::with_capacity(count);
    let mut refused = None;
    for _ in 0..count {
        let gate = Arc::clone(&gate);
        let thread = Builder::new().stack_size(stack_bytes);
        match thread.spawn(move || drop(gate.read())) {
            Ok(thread) => threads.push(thread),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    drop(closed);
    // The system has them again when they have ended.
    for thread in threads {
        let _it_does_nothing = thread.join();
    }
    match refused {
        None => Ok(()),
        Some(error) => Err(MySqlError::no_thread(&error)),
    }
}

/// Keeps one thread beside the workers, so that files are read, one after the other, where the
/// system gives no more: it has something to do before it would end.
pub(crate) fn keep_one(runtime: &Runtime) {
    runtime.spawn(async {
        loop {
            // It may have ended all the same on a machine that slept; then the next try may do.
            let spawned = catch_unwind(AssertUnwindSafe(|| tokio::task::spawn_blocking(|| ())));
            if let Ok(task) = spawned {
                let _it_does_nothing = task.await;
            }
            tokio::time::sleep(KEEP_ALIVE / 2).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_cannot_be_had_is_an_error() {
        assert_eq!(check(3, 1 << 20), Ok(()));
        // No machine has an address space for its stack.
        let error = check(1, 1 << 50).expect_err("too large");
        assert_eq!(error.code, 1135, "{error}");
    }

    #[test]
    fn one_thread_is_there_whatever_happens() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        keep_one(&runtime);
        let ran = runtime.block_on(async { tokio::task::spawn_blocking(|| 7).await });
        assert_eq!(ran.unwrap(), 7);
    }
}
