//! A background thread that starts when there is something for it to do.
//!
//! **Owns** the thread. **Never** panics where the system has no thread to give: whoever needs it
//! gets the reason, and the next one to ask tries again.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::thread::JoinHandle;

use crate::{Faults, Operation, lock};

/// A thread that is started at most once.
#[derive(Default)]
pub(crate) struct Background {
    is_started: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Background {
    pub(crate) fn is_started(&self) -> bool {
        self.is_started.load(Acquire)
    }

    /// Starts the thread unless it runs.
    pub(crate) fn start(
        &self,
        name: &str,
        faults: Option<&dyn Faults>,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let mut thread = lock(&self.thread);
        if !self.is_started() {
            *thread = Some(spawn(name, faults, body)?);
            self.is_started.store(true, Release);
        }
        Ok(())
    }

    /// Waits for the end of the thread, unless it is the one that asks.
    pub(crate) fn join(&self) {
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic there was reported when it happened.
            let _reported = thread.join();
        }
    }
}

/// Starts a thread.
pub(crate) fn spawn(
    name: &str,
    faults: Option<&dyn Faults>,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    if let Some(faults) = faults {
        faults.before(Operation::Thread)?;
    }
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
}
