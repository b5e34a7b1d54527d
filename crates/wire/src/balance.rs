//! Which thread takes the next client in: the one with the fewest clients, and in turns where
//! several have as few.
//!
//! Left to the kernel, two busy clients land on one thread as often as not, and have half of the
//! rate that two threads would give them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The clients of each thread.
pub struct Balance {
    clients: Vec<AtomicUsize>,
    /// The thread that took the last one.
    last: AtomicUsize,
    changed: Notify,
}

/// Counts a client of a thread until it is dropped.
pub struct Counted {
    balance: Arc<Balance>,
    thread: usize,
}

impl Balance {
    /// Threads without clients.
    pub fn new(threads: usize) -> Arc<Balance> {
        Arc::new(Balance {
            clients: (0..threads).map(|_| AtomicUsize::new(0)).collect(),
            last: AtomicUsize::new(threads.saturating_sub(1)),
            changed: Notify::new(),
        })
    }

    /// Counts a client that a thread has taken in.
    pub fn enter(self: &Arc<Self>, thread: usize) -> Counted {
        if let Some(clients) = self.clients.get(thread) {
            clients.fetch_add(1, Ordering::SeqCst);
        }
        self.last.store(thread, Ordering::SeqCst);
        self.changed.notify_waiters();
        Counted {
            balance: Arc::clone(self),
            thread,
        }
    }

    /// Whether it is the turn of a thread: of those with the fewest clients the first one behind
    /// the thread that took the last one. (The idle client that a program keeps beside its busy
    /// ones counts as much as they do.)
    fn is_next(&self, thread: usize) -> bool {
        let behind = self.last.load(Ordering::SeqCst).saturating_add(1);
        let all = self.clients.iter().enumerate();
        let in_turn = all.clone().skip(behind).chain(all.take(behind));
        let next = in_turn.min_by_key(|(_, clients)| clients.load(Ordering::SeqCst));
        next.is_some_and(|(number, _)| number == thread)
    }

    /// The next client that a thread is to take in. `accept` may be dropped and made anew while
    /// nobody has come.
    pub async fn next<F: Future>(&self, thread: usize, accept: impl Fn() -> F) -> F::Output {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            if !self.is_next(thread) {
                changed.await;
                continue;
            }
            tokio::select! {
                accepted = accept() => return accepted,
                () = changed => {}
            }
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(clients) = self.balance.clients.get(self.thread) {
            clients.fetch_sub(1, Ordering::SeqCst);
        }
        self.balance.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn the_thread_with_the_fewest_clients_is_next() {
        let balance = Balance::new(2);
        balance.next(0, || ready(())).await;
        let first = balance.enter(0);
        balance.next(1, || ready(())).await;
        let waiting = balance.next(0, || ready(()));
        tokio::pin!(waiting);
        let soon = Duration::from_millis(20);
        assert!(tokio::time::timeout(soon, &mut waiting).await.is_err());
        let second = balance.enter(1);
        // Both have one, and the other thread took the last.
        waiting.await;
        let third = balance.enter(0);
        drop((first, second));
        // One is left, on thread 0.
        let waiting = balance.next(0, || ready(()));
        assert!(tokio::time::timeout(soon, waiting).await.is_err());
        drop(third);
        balance.next(1, || ready(())).await;
    }
}
