//! Which thread takes the next client in: one that speaks with no more clients than any other.
//!
//! Left to the kernel, two busy clients land on one thread as often as not, and have half of the
//! rate that two threads would give them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The clients of each thread.
pub struct Balance {
    clients: Vec<AtomicUsize>,
    changed: Notify,
}

/// Counts a client of a thread until it is dropped.
pub struct Counted {
    balance: Arc<Balance>,
    thread: usize,
}

impl Balance {
    pub fn new(threads: usize) -> Arc<Balance> {
        Arc::new(Balance {
            clients: (0..threads).map(|_| AtomicUsize::new(0)).collect(),
            changed: Notify::new(),
        })
    }

    /// Counts a client that a thread has taken in.
    pub fn enter(self: &Arc<Self>, thread: usize) -> Counted {
        self.clients[thread].fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
        Counted {
            balance: Arc::clone(self),
            thread,
        }
    }

    /// Whether no other thread has fewer clients.
    fn is_least(&self, thread: usize) -> bool {
        let mine = self.clients[thread].load(Ordering::SeqCst);
        let all = self.clients.iter();
        all.map(|clients| clients.load(Ordering::SeqCst))
            .all(|others| mine <= others)
    }

    /// The next client that a thread is to take in. `accept` may be dropped and made anew while
    /// nobody has come.
    pub async fn next<F: Future>(&self, thread: usize, accept: impl Fn() -> F) -> F::Output {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            if !self.is_least(thread) {
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
        self.balance.clients[self.thread].fetch_sub(1, Ordering::SeqCst);
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
        drop(first);
        waiting.await;
    }
}
