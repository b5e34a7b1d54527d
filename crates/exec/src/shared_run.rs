//! What the output partitions of one execution of an operator share.
//!
//! Owns: [`SharedRun`], and [`Unfinished`], by which the last one is known. Never: knows what a run
//! is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use datafusion::common::Result;

use crate::lock::lock;

/// The run of an operator's node, begun by the first output partition that is executed.
///
/// The last one takes the node's own share away: when all streams are gone, so is the run, and the
/// node may be executed again.
pub(crate) struct SharedRun<R>(Mutex<Option<(Arc<R>, usize)>>);

impl<R> SharedRun<R> {
    /// None has begun.
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// A share for one of so many output partitions.
    ///
    /// # Errors
    /// If it cannot begin.
    pub(crate) fn share(
        &self,
        outputs: usize,
        begin: impl FnOnce() -> Result<Arc<R>>,
    ) -> Result<Arc<R>> {
        let mut run = lock(&self.0);
        let (shared, handed_out) = match run.take() {
            Some(found) => found,
            None => (begin()?, 0),
        };
        if handed_out + 1 < outputs {
            *run = Some((Arc::clone(&shared), handed_out + 1));
        }
        Ok(shared)
    }
}

/// How many streams of a run have not seen the end of their input.
pub(crate) struct Unfinished(AtomicUsize);

impl Unfinished {
    /// All of so many streams.
    pub(crate) const fn new(streams: usize) -> Self {
        Self(AtomicUsize::new(streams))
    }

    /// Counts a stream that has seen the end of its input; whether it is the last one. The others
    /// may have ended long ago: nobody waits for another.
    pub(crate) fn is_last_to_finish(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}
