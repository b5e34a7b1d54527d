//! How long a task computes before others of its thread have their turn.
//!
//! A thread of the runtime runs one task until that waits for something. Operators over rows that
//! are all there never wait, so they give the thread away by themselves: after each step of their
//! work they ask whether their slice is over. The runtime's own budget counts steps, and steps here
//! take anything from microseconds to milliseconds: 128 of them kept a short statement waiting for
//! a third of a second.

use std::time::{Duration, Instant};

/// Long enough that giving the thread away, a few microseconds, costs nothing; short enough that
/// nobody notices some of them.
const LENGTH: Duration = Duration::from_millis(2);

/// The slice of time that a task is in.
#[derive(Debug)]
pub struct TimeSlice {
    began: Instant,
}

impl TimeSlice {
    /// Begins one.
    pub fn begin() -> TimeSlice {
        TimeSlice {
            began: Instant::now(),
        }
    }

    /// To be awaited between two steps of work: lets others run if the slice is over. A statement
    /// that was cancelled ends here, too.
    pub async fn share(&mut self) {
        if self.began.elapsed() < LENGTH {
            tokio::task::coop::consume_budget().await;
        } else {
            tokio::task::yield_now().await;
            self.began = Instant::now();
        }
    }
}
