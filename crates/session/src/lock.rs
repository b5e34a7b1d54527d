//! Locks that a panic of another thread leaves usable.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, whether or not somebody panicked while they held it: panics end their own statement, and
/// what is locked here is whole between two changes.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
