//! A count of things that somebody may wait for: until all of them are gone; and how to wait for
//! what is told to all who wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Things that are counted until they have gone.
#[derive(Debug, Default)]
pub(crate) struct Pending(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    number: AtomicUsize,
    none_left: Notify,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted(Arc<Count>);

impl Pending {
    /// Counts one more.
    pub(crate) fn enter(&self) -> Counted {
        self.0.number.fetch_add(1, Ordering::SeqCst);
        Counted(Arc::clone(&self.0))
    }

    /// Whether all have gone.
    pub(crate) fn is_none(&self) -> bool {
        self.0.number.load(Ordering::SeqCst) == 0
    }

    /// Waits until all have gone.
    pub(crate) async fn none_left(&self) {
        while !self.is_none() {
            notified_unless(&self.0.none_left, || self.is_none()).await;
        }
    }
}

/// Waits until all who wait are notified, unless it is over: from that look on none is missed.
pub(crate) async fn notified_unless(notify: &Notify, is_over: impl FnOnce() -> bool) {
    let notified = notify.notified();
    tokio::pin!(notified);
    notified.as_mut().enable();
    if !is_over() {
        notified.await;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.0.number.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.none_left.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_goes_on_when_the_last_is_gone() {
        let pending = Pending::default();
        pending.none_left().await;
        let (first, second) = (pending.enter(), pending.enter());
        let mut waiting = std::pin::pin!(pending.none_left());
        for counted in [first, second] {
            assert!(futures::poll!(&mut waiting).is_pending());
            assert!(!pending.is_none());
            drop(counted);
        }
        waiting.await;
        assert!(pending.is_none());
    }
}
