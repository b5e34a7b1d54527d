//! How many partitions of one scan read at a time.
//!
//! Owns: [`Turns`], and the [`Turn`] that a reader holds from its first row group to its end. All
//! begin together; each time that one finds no memory beside others, one fewer reads at a time.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::lock::lock;

/// How long readers of a scan wait for those of other scans.
const PATIENCE: Duration = Duration::from_millis(50);

/// The partitions of one run of a scan.
#[derive(Debug)]
pub(super) struct Turns {
    waits: bool,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    held: usize,
    /// Turns that are given at a time.
    most: usize,
    /// How long readers may wait for those of other scans.
    patience: Option<Instant>,
}

/// The right to hold a row group.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
}

impl Turns {
    pub(super) fn new(partitions: usize) -> Turns {
        Turns {
            waits: true,
            state: Mutex::new(State {
                held: 0,
                most: partitions.max(1),
                patience: None,
            }),
            freed: Notify::new(),
        }
    }

    /// Turns for partitions that cannot wait for each other.
    pub(super) fn without_waiting() -> Turns {
        Turns {
            waits: false,
            ..Turns::new(usize::MAX)
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        lock(&self.state)
    }

    /// Whether a reader may wait a little for those of other scans, which may wait for its rows at
    /// worst: no longer than [`PATIENCE`] after the first one of the scan did.
    pub(super) fn has_patience(&self) -> bool {
        let mut state = self.state();
        let until = *state
            .patience
            .get_or_insert_with(|| Instant::now() + PATIENCE);
        self.waits && Instant::now() < until
    }

    fn try_take(self: &Arc<Self>) -> Option<Turn> {
        let mut state = self.state();
        if state.held >= state.most {
            return None;
        }
        state.held += 1;
        Some(Turn {
            turns: Arc::clone(self),
        })
    }

    /// Waits for a turn.
    pub(super) async fn take(self: &Arc<Self>) -> Turn {
        loop {
            let freed = self.freed.notified();
            if let Some(turn) = self.try_take() {
                return turn;
            }
            freed.await;
        }
    }
}

impl Turn {
    /// Whether its holder, which found no memory, is to try again when others have read; from now
    /// on fewer read at a time.
    pub(super) fn may_try_again(&self) -> bool {
        let mut state = self.turns.state();
        if state.held <= 1 || !self.turns.waits {
            return false;
        }
        state.most = (state.held - 1).min(state.most);
        true
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.state().held -= 1;
        self.turns.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_fewer_reads_each_time_that_one_finds_no_memory() {
        let turns = Arc::new(Turns::new(3));
        let (first, second, third) = (turns.take().await, turns.take().await, turns.take().await);
        assert!(turns.try_take().is_none());
        assert!(third.may_try_again());
        drop(third);
        assert!(turns.try_take().is_none());
        assert!(second.may_try_again());
        drop(second);
        assert!(turns.try_take().is_none());
        assert!(!first.may_try_again(), "it was alone");
        let waiting = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.take().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        drop(waiting.await.unwrap());
        assert!(turns.try_take().is_some());
    }

    #[tokio::test]
    async fn where_nobody_may_wait_all_read_or_fail() {
        let turns = Arc::new(Turns::without_waiting());
        let (first, _second) = (turns.take().await, turns.take().await);
        assert!(!first.may_try_again());
    }
}
