//! The locks of GET_LOCK: names that connections of one engine hold.
//!
//! Owns who holds which name, and who waits for one. A name has one holder, who may take it several
//! times and gives it back as often; a connection may hold many. **Never** decides on which thread
//! somebody waits: see [`super::waiting`].
//!
//! Whoever begins to wait follows the chain of holders that wait themselves. A chain that comes
//! back to its beginning would never end, so no such one is ever made.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a statement that waits looks whether it is to end.
pub(super) const NAP: Duration = Duration::from_millis(20);

/// The names that the connections of an engine hold.
#[derive(Debug, Default)]
pub struct NamedLocks {
    state: Mutex<State>,
    released: Condvar,
    last_holder: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<String, Held>,
    /// What each holder waits for, if it does.
    awaited: HashMap<u64, String>,
}

#[derive(Debug)]
struct Held {
    holder: u64,
    connection_id: u64,
    /// How often the holder took it.
    times: u64,
}

/// One connection that may hold names.
#[derive(Clone, Debug)]
pub struct LockHolder {
    locks: Arc<NamedLocks>,
    /// No other connection has this number, not even a later one with the same id.
    number: u64,
    connection_id: u64,
}

/// How waiting for a name ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    Taken,
    TooLong,
    Stopped,
    Deadlock,
}

impl Default for LockHolder {
    fn default() -> Self {
        LockHolder::new(&Arc::default(), 0)
    }
}

impl LockHolder {
    /// A connection that holds nothing yet.
    pub fn new(locks: &Arc<NamedLocks>, connection_id: u64) -> LockHolder {
        LockHolder {
            number: locks.last_holder.fetch_add(1, Ordering::Relaxed) + 1,
            locks: Arc::clone(locks),
            connection_id,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let state = self.locks.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a name unless somebody else holds it.
    pub(super) fn take(&self, name: &str) -> bool {
        self.lock().take(self, name)
    }

    /// Waits until nobody else holds a name, and takes it.
    pub(super) fn wait_for(&self, name: &str, patience: Duration, stop: &AtomicBool) -> Waited {
        let started = Instant::now();
        let mut state = self.lock();
        if state.would_wait_for_ever(self.number, name) {
            return Waited::Deadlock;
        }
        state.awaited.insert(self.number, name.to_owned());
        let waited = loop {
            if state.take(self, name) {
                break Waited::Taken;
            }
            if stop.load(Ordering::SeqCst) {
                break Waited::Stopped;
            }
            let left = patience.saturating_sub(started.elapsed());
            if left.is_zero() {
                break Waited::TooLong;
            }
            // A statement that is stopped wakes nobody.
            let woken = self.locks.released.wait_timeout(state, left.min(NAP));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        };
        state.awaited.remove(&self.number);
        waited
    }

    /// Gives a name back once: whether it was held by this connection, `None` if by none.
    pub(super) fn release(&self, name: &str) -> Option<bool> {
        let mut state = self.lock();
        let held = state.held.get_mut(name)?;
        if held.holder != self.number {
            return Some(false);
        }
        held.times -= 1;
        if held.times == 0 {
            state.held.remove(name);
            self.locks.released.notify_all();
        }
        Some(true)
    }

    /// Gives all names back; how often they had been taken.
    pub fn release_all(&self) -> u64 {
        let mut state = self.lock();
        let mut times = 0;
        state.held.retain(|_, held| {
            let is_mine = held.holder == self.number;
            times += if is_mine { held.times } else { 0 };
            !is_mine
        });
        if times > 0 {
            self.locks.released.notify_all();
        }
        times
    }

    /// The id of the connection that holds a name.
    pub(super) fn used_by(&self, name: &str) -> Option<u64> {
        self.lock().held.get(name).map(|held| held.connection_id)
    }
}

impl State {
    fn take(&mut self, by: &LockHolder, name: &str) -> bool {
        if let Some(held) = self.held.get_mut(name) {
            let is_mine = held.holder == by.number;
            held.times += u64::from(is_mine);
            return is_mine;
        }
        let held = Held {
            holder: by.number,
            connection_id: by.connection_id,
            times: 1,
        };
        self.held.insert(name.to_owned(), held);
        true
    }

    /// Whether the holder of a name waits, by however many others, for what `number` holds.
    fn would_wait_for_ever(&self, number: u64, name: &str) -> bool {
        let mut awaited = Some(name);
        while let Some(held) = awaited.and_then(|name| self.held.get(name)) {
            if held.holder == number {
                return true;
            }
            awaited = self.awaited.get(&held.holder).map(String::as_str);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(30);

    fn holders() -> [LockHolder; 3] {
        let locks = Arc::default();
        [1, 2, 3].map(|id| LockHolder::new(&locks, id))
    }

    #[test]
    fn a_name_is_given_back_as_often_as_it_was_taken() {
        let [one, two, _] = holders();
        assert!(one.take("a") && one.take("a") && !two.take("a"));
        assert_eq!((one.used_by("a"), two.used_by("b")), (Some(1), None));
        assert_eq!(two.release("a"), Some(false));
        assert_eq!(one.release("a"), Some(true));
        assert!(!two.take("a"));
        assert_eq!(one.release("a"), Some(true));
        assert_eq!(one.release("a"), None);
        assert!(two.take("a") && two.take("a") && two.take("b"));
        assert_eq!((two.release_all(), two.release_all()), (3, 0));
        assert_eq!(one.used_by("a"), None);
    }

    #[test]
    fn waiting_ends_with_the_name_with_time_or_when_stopped() {
        let [one, two, _] = holders();
        let stop = AtomicBool::new(false);
        assert!(one.take("a"));
        assert_eq!(two.wait_for("a", SHORT, &stop), Waited::TooLong);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| two.wait_for("a", LONG, &stop));
            std::thread::sleep(SHORT);
            assert_eq!(one.release("a"), Some(true));
            assert_eq!(waits.join().unwrap(), Waited::Taken);
            let waits = scope.spawn(|| one.wait_for("a", LONG, &stop));
            std::thread::sleep(SHORT);
            stop.store(true, Ordering::SeqCst);
            assert_eq!(waits.join().unwrap(), Waited::Stopped);
        });
    }

    #[test]
    fn who_would_close_a_circle_does_not_wait() {
        let [one, two, three] = holders();
        let stop = AtomicBool::new(false);
        assert!(one.take("a") && two.take("b") && three.take("c"));
        std::thread::scope(|scope| {
            let first = scope.spawn(|| one.wait_for("b", LONG, &stop));
            let second = scope.spawn(|| two.wait_for("c", LONG, &stop));
            while one.lock().awaited.len() < 2 {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(three.wait_for("a", LONG, &stop), Waited::Deadlock);
            assert_eq!(three.release("c"), Some(true));
            assert_eq!(second.join().unwrap(), Waited::Taken);
            assert_eq!(two.release_all(), 2);
            assert_eq!(first.join().unwrap(), Waited::Taken);
        });
    }
}
