//! The threads that plan.
//!
//! **Owns** how many there are and who gets one. A thread is made where none is idle, and ends when
//! it has been idle for a while; one is there from the start to the end, so that planning goes on
//! where the system gives no more. **Never** knows what is done on them.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// At a time, those included whose statement has been stopped and that have not noticed yet.
const THREADS_MAX: usize = 128;
/// How long a thread waits for the next plan.
const IDLE: Duration = Duration::from_secs(5);

type Task = Box<dyn FnOnce() + Send>;

/// Hands tasks to threads; the threads end with it.
pub(super) struct Threads {
    shared: Arc<Shared>,
}

struct Shared {
    stack_bytes: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    tasks: VecDeque<Task>,
    threads: usize,
    idle: usize,
    is_over: bool,
}

impl Threads {
    /// Starts the first thread.
    ///
    /// # Errors
    /// Where the system gives none.
    pub(super) fn start(stack_bytes: usize) -> io::Result<Threads> {
        let shared = Arc::new(Shared {
            stack_bytes,
            state: Mutex::new(State {
                tasks: VecDeque::new(),
                threads: 1,
                idle: 0,
                is_over: false,
            }),
            changed: Condvar::new(),
        });
        shared.spawn()?;
        Ok(Threads { shared })
    }

    /// Runs a task on a thread that is idle, a new one, or the next one that becomes idle.
    pub(super) fn run(&self, task: Task) {
        let shared = &self.shared;
        let mut state = shared.state();
        state.tasks.push_back(task);
        if state.tasks.len() <= state.idle {
            drop(state);
            shared.changed.notify_one();
        } else if state.threads < THREADS_MAX && shared.spawn().is_ok() {
            state.threads += 1;
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(self: &Arc<Shared>) -> io::Result<()> {
        let shared = Arc::clone(self);
        let builder = thread::Builder::new()
            .name("mayfly-planner".to_owned())
            .stack_size(self.stack_bytes);
        builder.spawn(move || shared.serve()).map(drop)
    }

    /// The life of a thread.
    fn serve(&self) {
        while let Some(task) = self.next() {
            task();
        }
    }

    /// The next task; `None` where the thread is to end.
    fn next(&self) -> Option<Task> {
        let mut state = self.state();
        state.idle += 1;
        let task = loop {
            if let Some(task) = state.tasks.pop_front() {
                break Some(task);
            }
            if state.is_over {
                break None;
            }
            let waited = self.changed.wait_timeout(state, IDLE);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timeout.timed_out() && state.tasks.is_empty() && state.threads > 1 {
                break None;
            }
        };
        state.idle -= 1;
        state.threads -= usize::from(task.is_none());
        task
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn tasks_run_side_by_side_and_threads_are_used_again() {
        let threads = Threads::start(1 << 20).unwrap();
        let (sender, ended) = mpsc::channel();
        // None ends before all have begun.
        let barrier = Arc::new(Barrier::new(8));
        for _ in 0..8 {
            let (barrier, sender) = (Arc::clone(&barrier), sender.clone());
            threads.run(Box::new(move || {
                barrier.wait();
                sender.send(thread::current().id()).unwrap();
            }));
        }
        let mut ids: Vec<_> = ended.iter().take(8).collect();
        ids.sort_by_key(|id| format!("{id:?}"));
        ids.dedup();
        assert_eq!(ids.len(), 8);
        for _ in 0..1000 {
            let sender = sender.clone();
            threads.run(Box::new(move || {
                sender.send(thread::current().id()).unwrap()
            }));
        }
        assert_eq!(ended.iter().take(1000).count(), 1000);
        assert!(threads.shared.state().threads <= THREADS_MAX);
    }
}
