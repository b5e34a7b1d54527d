//! The threads that plan.
//!
//! **Owns** how many there are and who gets one. There are as many as workers, which is enough for
//! plans that are short, and one more for each plan that turns out to be long, or where all of
//! them are stuck: each has a stack and a heap that plans have filled. One is there from the start
//! to the end, so that planning goes on where the system gives no more. Long plans have a part of
//! the threads only: whatever a crowd of them does, short plans find a thread. **Never** knows what
//! is done on them.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::pending::notified_unless;

/// At a time, those included whose statement has been stopped and that have not noticed yet.
const THREADS_MAX: usize = 256;
/// How many of them may have plans that take long. Whoever makes one more ends it, and waits until
/// there is room: without a thread, which others may need for a short one.
pub(super) const LONG_MAX: usize = 224;
/// How long a thread waits for the next plan.
const IDLE: Duration = Duration::from_secs(5);

/// Without a task taken up for so long, all threads are stuck.
pub(super) const STUCK: Duration = Duration::from_millis(50);

/// What a thread does; what it gives is called when the thread is free for the next task.
pub(super) type Task = Box<dyn FnOnce() -> Answer + Send>;
pub(super) type Answer = Box<dyn FnOnce()>;

/// Hands tasks to threads; the threads end with it.
pub(super) struct Threads {
    shared: Arc<Shared>,
}

struct Shared {
    stack_bytes: usize,
    long_max: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// Told to one of those who wait for room for a long plan.
    room: Notify,
}

struct State {
    tasks: VecDeque<Task>,
    threads: usize,
    idle: usize,
    /// Those with a plan that takes long.
    long: usize,
    /// How many there are beside those.
    base: usize,
    last_taken: Instant,
    is_over: bool,
}

/// Says that the thread has a plan that takes long.
pub(super) struct IsLong(Arc<Shared>);

impl Drop for IsLong {
    fn drop(&mut self) {
        self.0.state().long -= 1;
        self.0.room.notify_one();
    }
}

impl Threads {
    /// Starts the first thread of `base`.
    ///
    /// # Errors
    /// Where the system gives none.
    pub(super) fn start(base: usize, stack_bytes: usize) -> io::Result<Threads> {
        Threads::start_with(base, stack_bytes, LONG_MAX)
    }

    fn start_with(base: usize, stack_bytes: usize, long_max: usize) -> io::Result<Threads> {
        let shared = Arc::new(Shared {
            stack_bytes,
            long_max,
            state: Mutex::new(State {
                tasks: VecDeque::new(),
                threads: 1,
                idle: 0,
                long: 0,
                base,
                last_taken: Instant::now(),
                is_over: false,
            }),
            changed: Condvar::new(),
            room: Notify::new(),
        });
        shared.spawn()?;
        Ok(Threads { shared })
    }

    /// Runs a task on a thread that is idle, a new one, or the next one that becomes idle.
    pub(super) fn run(&self, task: Task) {
        self.run_queued(|tasks| tasks.push_back(task));
    }

    /// The same, ahead of all tasks that wait.
    pub(super) fn run_first(&self, task: Task) {
        self.run_queued(|tasks| tasks.push_front(task));
    }

    fn run_queued(&self, queue: impl FnOnce(&mut VecDeque<Task>)) {
        let shared = &self.shared;
        let mut state = shared.state();
        queue(&mut state.tasks);
        if state.tasks.len() <= state.idle {
            drop(state);
            shared.changed.notify_one();
        } else if state.threads - state.long < state.base {
            shared.grow(&mut state);
        }
    }

    /// Makes a thread where tasks wait and none has been taken up for a while; asked by those who
    /// wait.
    pub(super) fn relieve(&self) {
        let mut state = self.shared.state();
        if !state.tasks.is_empty() && state.last_taken.elapsed() >= STUCK {
            state.last_taken = Instant::now();
            self.shared.grow(&mut state);
        }
    }

    /// Says that the plan of this thread takes long; others need another thread meanwhile. `None`
    /// where too many of them do already: it must end then.
    pub(super) fn is_long(&self) -> Option<IsLong> {
        let mut state = self.shared.state();
        if state.long >= self.shared.long_max {
            return None;
        }
        state.long += 1;
        if state.tasks.len() > state.idle {
            self.shared.grow(&mut state);
        }
        Some(IsLong(Arc::clone(&self.shared)))
    }

    /// Waits until there is room for one more plan that takes long. Somebody else may take it.
    pub(super) async fn room_for_long(&self) {
        let shared = &self.shared;
        let has_room = || shared.state().long < shared.long_max;
        notified_unless(&shared.room, has_room).await;
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

    /// Makes one more thread, if there may be one; else the next that is free has the task.
    fn grow(self: &Arc<Shared>, state: &mut State) {
        if state.threads < THREADS_MAX && self.spawn().is_ok() {
            state.threads += 1;
        }
    }

    /// The life of a thread.
    fn serve(&self) {
        let mut answer = None;
        while let Some(task) = self.next(answer.take()) {
            answer = Some(task());
        }
    }

    /// Gives an answer, and waits for the next task; `None` where the thread is to end. The thread
    /// is idle when it answers: whoever has the answer and asks again needs no other thread.
    fn next(&self, answer: Option<Answer>) -> Option<Task> {
        let mut state = self.state();
        state.idle += 1;
        if let Some(answer) = answer {
            drop(state);
            answer();
            state = self.state();
        }
        let task = loop {
            if let Some(task) = state.tasks.pop_front() {
                state.last_taken = Instant::now();
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
    use std::task::{Context, Waker};

    use super::*;

    fn nothing() -> Answer {
        Box::new(|| {})
    }

    #[test]
    fn long_and_stuck_tasks_get_threads_beside_the_others() {
        let threads = Arc::new(Threads::start(2, 1 << 20).unwrap());
        let (sender, ended) = mpsc::channel();
        // None ends before all have begun.
        let barrier = Arc::new(Barrier::new(8));
        for number in 0..8 {
            let (barrier, sender) = (Arc::clone(&barrier), sender.clone());
            let long = Arc::clone(&threads);
            threads.run(Box::new(move || {
                // The others are stuck.
                let _is_long = (number % 2 == 0).then(|| long.is_long().expect("they are few"));
                barrier.wait();
                sender.send(()).unwrap();
                nothing()
            }));
        }
        while ended.try_recv().is_err() {
            threads.relieve();
            thread::yield_now();
        }
        assert_eq!(ended.iter().take(7).count(), 7);
    }

    #[test]
    fn a_crowd_of_long_tasks_leaves_threads_to_the_others() {
        const LONG: usize = 5;
        let threads = Arc::new(Threads::start_with(2, 1 << 20, LONG).unwrap());
        let (sender, begun) = mpsc::channel();
        let gate = Arc::new(Barrier::new(LONG + 1));
        for _ in 0..LONG {
            let (gate, sender, long) = (Arc::clone(&gate), sender.clone(), Arc::clone(&threads));
            threads.run(Box::new(move || {
                let is_long = long.is_long();
                sender.send(is_long.is_some()).unwrap();
                gate.wait();
                nothing()
            }));
        }
        assert!(begun.iter().take(LONG).all(|is_long| is_long));
        // The next one may not take long, nor need it wait to be told so; short ones are done.
        for _ in 0..10 {
            let (sender, told) = mpsc::channel();
            let long = Arc::clone(&threads);
            threads.run(Box::new(move || {
                sender.send(long.is_long().is_none()).unwrap();
                nothing()
            }));
            assert!(told.recv().unwrap());
        }
        // It waits without a thread until one of those has ended.
        let mut room = std::pin::pin!(threads.room_for_long());
        let mut context = Context::from_waker(Waker::noop());
        assert!(room.as_mut().poll(&mut context).is_pending());
        gate.wait();
        while room.as_mut().poll(&mut context).is_pending() {
            thread::yield_now();
        }
        assert!(threads.is_long().is_some());
    }

    #[test]
    fn the_first_task_waits_for_none_that_waits() {
        let threads = Threads::start(1, 1 << 20).unwrap();
        let (sender, begun) = mpsc::channel();
        let gate = Arc::new(Barrier::new(2));
        let blocker = Arc::clone(&gate);
        threads.run(Box::new(move || {
            blocker.wait();
            nothing()
        }));
        for number in 0..3 {
            let sender = sender.clone();
            threads.run(Box::new(move || {
                sender.send(number).unwrap();
                nothing()
            }));
        }
        threads.run_first(Box::new(move || {
            sender.send(9).unwrap();
            nothing()
        }));
        gate.wait();
        assert_eq!(begun.iter().collect::<Vec<_>>(), [9, 0, 1, 2]);
    }

    #[test]
    fn one_after_the_other_has_one_thread() {
        let threads = Threads::start(8, 1 << 20).unwrap();
        for _ in 0..1000 {
            let (sender, answered) = mpsc::channel();
            threads.run(Box::new(move || Box::new(move || sender.send(()).unwrap())));
            answered.recv().unwrap();
        }
        // A second one where the first had not begun to wait for the first task.
        assert!(threads.shared.state().threads <= 2);
    }
}
