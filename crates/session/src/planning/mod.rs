//! Where plans are made: on threads beside the workers.
//!
//! **Owns** the threads that plan, how many there are and how they take turns, and the bounds of
//! one statement's planning. **Never** knows how a plan is made: that is `sql`.
//!
//! **Memory.** Libraries ask nobody for what they take for a plan. What the thread has taken since
//! it began to plan is read at every node, and is reserved from the statement's account in steps.
//! Beside that, a text and a plan are reserved for what they are expected to take.
//!
//! A text of a kilobyte may take seconds to plan, in DataFusion's code, which does not yield. So a
//! statement's task waits for its plan as it waits for a file, and the workers go on with others.
//! When the statement is stopped its task ends at once; the thread that plans for it ends at its
//! next look at the [`Watch`], which it takes at every node of the plan.
//!
//! ```text
//!   begins ---> short (50 ms of the processor)
//!                 |
//!                 v
//!               long (some at a time; the others stand in the queue, so many at most)
//!                 |    ^
//!                 v    | after each slice, while others wait
//!               queue -+
//! ```
//!
//! Where as many are long as may be, one more ends, waits without a thread until another one has
//! ended, and begins again. Nearly all plans are made while they are short, and no crowd of long
//! ones slows them down more than so many busy threads do.

mod threads;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mayfly_space::{Account, CountedHeap, Reservation, taken_by_thread};
use mayfly_sql::planning::{Watch, watched};
use mayfly_types::{ErrorCode, MySqlError};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::crash::{crashed, panic_text};
use crate::errors;
use threads::{Answer, IsLong, LONG_MAX, STUCK, Task, Threads};

/// How long a plan is short: a hundred times what a join of a few tables takes.
const SHORT: Duration = Duration::from_millis(50);

/// How long one of the long plans goes on while others wait.
const SLICE: Duration = Duration::from_millis(50);

/// How soon the processor time is looked at again at least.
const LOOK: Duration = Duration::from_millis(1);

/// How often one that waits looks whether its statement has been stopped. Nobody waits for that:
/// the client has had its answer.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// Memory for planning that is not counted: that of nearly all statements.
const UNCOUNTED_BYTES: u64 = 1 << 20;

/// Counts what threads take for plans.
#[global_allocator]
static HEAP: CountedHeap = CountedHeap;

/// What a thread has taken for a plan is reserved from so much on: nearly all take less.
const TAKEN_BYTES_MIN: u64 = 4 << 20;
/// And again after so much more.
const TAKEN_STEP_BYTES: u64 = 1 << 20;

/// Memory for a text that is read beyond the budget: that of 250,000 values.
const LARGE_TEXT_BYTES_MAX: u64 = 128 << 20;

/// The threads that plan.
pub(crate) struct Planners {
    threads: Threads,
    /// The right to read a large text beyond the budget.
    large_text: Arc<Semaphore>,
    turns: Mutex<Turns>,
    changed: Condvar,
}

/// Who of the long plans goes on.
struct Turns {
    free: usize,
    last_ticket: u64,
    queue: VecDeque<u64>,
}

impl Planners {
    /// For an engine with so many workers: long plans take no more than half as many threads.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(crate) fn start(workers: usize, stack_bytes: usize) -> io::Result<Planners> {
        Ok(Planners {
            threads: Threads::start(workers, stack_bytes)?,
            large_text: Arc::new(Semaphore::new(1)),
            turns: Mutex::new(Turns {
                free: (workers / 2).max(1),
                last_ticket: 0,
                queue: VecDeque::new(),
            }),
            changed: Condvar::new(),
        })
    }

    /// Makes a part of a statement's plan. Dropping the future abandons it.
    pub(crate) async fn plan<T: Send + 'static>(
        self: &Arc<Planners>,
        planning: &Arc<Planning>,
        make: impl FnOnce() -> Result<T, MySqlError> + Send + 'static,
    ) -> Result<T, MySqlError> {
        self.plan_in_turn(planning, Threads::run, make).await
    }

    /// The same for a plan that others will run too, ahead of all plans that wait: each that comes
    /// after it waits for no thread. There are few of those.
    pub(crate) async fn plan_first<T: Send + 'static>(
        self: &Arc<Planners>,
        planning: &Arc<Planning>,
        make: impl FnOnce() -> Result<T, MySqlError> + Send + 'static,
    ) -> Result<T, MySqlError> {
        self.plan_in_turn(planning, Threads::run_first, make).await
    }

    async fn plan_in_turn<T: Send + 'static>(
        self: &Arc<Planners>,
        planning: &Arc<Planning>,
        run: fn(&Threads, Task),
        make: impl FnOnce() -> Result<T, MySqlError> + Send + 'static,
    ) -> Result<T, MySqlError> {
        let (planners, planning) = (Arc::clone(self), Arc::clone(planning));
        let (sender, mut planned) = oneshot::channel();
        let runtime = Handle::current();
        let task = Box::new(move || -> Answer {
            let _entered = runtime.enter();
            let made = catch_unwind(AssertUnwindSafe(|| planners.plan_here(&planning, make)));
            // What the statement has must be let go before it is told.
            drop((planners, planning));
            Box::new(move || {
                // Nobody waits for it where the statement has been stopped.
                let _abandoned = sender.send(made);
            })
        });
        run(&self.threads, task);
        let planned = loop {
            match tokio::time::timeout(STUCK, &mut planned).await {
                Ok(planned) => break planned,
                Err(_) => self.threads.relieve(),
            }
        };
        match planned {
            Ok(Ok(planned)) => planned,
            Ok(Err(panic)) => Err(crashed(&panic_text(panic))),
            Err(_) => Err(MySqlError::new(ErrorCode::ServerShutdown, &[])),
        }
    }

    /// Counts what reading a statement's text takes. Where the budget has not so much, a text of no
    /// more than [`LARGE_TEXT_BYTES_MAX`] is read beyond it, one at a time: that many rows are
    /// inserted by a single statement of a dump. The right to it is waited for as long as
    /// `patience`, and as the time that planning may take, and until the statement is stopped.
    ///
    /// # Errors
    /// As of `Account::reserve`, also where others have the right for too long; 1317 for a
    /// statement that was stopped.
    pub(crate) async fn hold_text(
        &self,
        planning: &Planning,
        bytes: u64,
        patience: Duration,
    ) -> Result<(), MySqlError> {
        let refused = match planning.hold_text(bytes) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if bytes > LARGE_TEXT_BYTES_MAX {
            return Err(refused);
        }
        if planning.memory().large_text.is_some() {
            return Ok(());
        }
        let began = Instant::now();
        let patience = planning.limit.map_or(patience, |limit| limit.min(patience));
        let mut acquired = pin!(Arc::clone(&self.large_text).acquire_owned());
        loop {
            planning.check()?;
            let left = patience.saturating_sub(began.elapsed());
            match tokio::time::timeout(left.min(LOOKS_EVERY), &mut acquired).await {
                Ok(right) => {
                    planning.memory().large_text = right.ok();
                    return Ok(());
                }
                Err(_) if left.is_zero() => return Err(refused),
                Err(_) => {}
            }
        }
    }

    /// Counts what a thread has taken for a plan. Where the budget has not so much, a large text
    /// that takes more than was expected has the right to it if nobody else has.
    ///
    /// # Errors
    /// As of `Account::reserve`.
    fn hold_taken(&self, planning: &Planning, bytes: u64) -> Result<(), MySqlError> {
        let Err(refused) = planning.hold_taken(bytes) else {
            return Ok(());
        };
        let mut memory = planning.memory();
        if memory.text_bytes < TAKEN_BYTES_MIN {
            return Err(refused);
        }
        let right = Arc::clone(&self.large_text).try_acquire_owned();
        memory.large_text = Some(right.map_err(|_| refused)?);
        Ok(())
    }

    /// Waits until one more plan may take long; the statement that has failed for that starts again
    /// then.
    pub(crate) async fn room_for_long(&self) {
        self.threads.room_for_long().await;
    }

    fn plan_here<T>(
        self: &Arc<Planners>,
        planning: &Arc<Planning>,
        make: impl FnOnce() -> Result<T, MySqlError>,
    ) -> Result<T, MySqlError> {
        let watch = Rc::new(StatementWatch {
            planners: Arc::clone(self),
            planning: Arc::clone(planning),
            began: processor_time(),
            next_look: Cell::new(Instant::now()),
            taken_before: taken_by_thread(),
            next_taken: Cell::new(TAKEN_BYTES_MIN),
            is_long: RefCell::default(),
            turn: RefCell::default(),
        });
        let _under_way = planning.begin();
        watch.check()?;
        let made = watched(Rc::clone(&watch) as Rc<dyn Watch>, make);
        let took = watch.took();
        // What was made for a statement that has been stopped meanwhile must not begin to run, even
        // if an error of the watch was lost on its way.
        planning.check()?;
        planning.check_time(took)?;
        planning.add_time(took);
        planning.add_taken(watch.taken());
        made
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn among the long plans.
    fn turn(
        self: &Arc<Planners>,
        look: impl Fn() -> Result<(), MySqlError>,
    ) -> Result<Turn, MySqlError> {
        let mut turns = self.turns();
        turns.last_ticket += 1;
        let ticket = turns.last_ticket;
        turns.queue.push_back(ticket);
        loop {
            if turns.free > 0 && turns.queue.front() == Some(&ticket) {
                turns.queue.pop_front();
                turns.free -= 1;
                // The next one has seen that it was not the first.
                self.changed.notify_all();
                return Ok(Turn {
                    planners: Arc::clone(self),
                    began: Instant::now(),
                });
            }
            let waited = self.changed.wait_timeout(turns, LOOKS_EVERY);
            turns = waited.unwrap_or_else(PoisonError::into_inner).0;
            if let Err(error) = look() {
                turns.queue.retain(|waiting| *waiting != ticket);
                drop(turns);
                self.changed.notify_all();
                return Err(error);
            }
        }
    }
}

/// The turn of a long plan.
struct Turn {
    planners: Arc<Planners>,
    began: Instant,
}

impl Turn {
    /// Whether it is over: somebody waits who has waited long enough.
    fn is_over(&self) -> bool {
        self.began.elapsed() > SLICE && !self.planners.turns().queue.is_empty()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.planners.turns().free += 1;
        self.planners.changed.notify_all();
    }
}

/// What planning has cost a statement so far, and may.
pub(crate) struct Planning {
    /// Whether the statement is to end.
    stop: Arc<AtomicBool>,
    limit: Option<Duration>,
    spent_nanos: AtomicU64,
    /// What the parts that are made have taken of the heap.
    taken_bytes: AtomicU64,
    /// Since when a thread plans for it.
    since: Mutex<Option<Instant>>,
    memory: Mutex<Memory>,
}

/// Says that a thread plans for a statement, until it is dropped.
pub(crate) struct UnderWay<'a>(&'a Planning);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        *self.0.since() = None;
    }
}

/// The memory that a statement's text and plan take.
struct Memory {
    /// `None` when the statement has ended.
    held: Option<Reservation>,
    /// What of it the text takes.
    text_bytes: u64,
    large_text: Option<OwnedSemaphorePermit>,
}

impl Planning {
    /// With the statement's flag and account, and `mayfly_max_planning_time`, of which 0 is any.
    pub(crate) fn new(stop: Arc<AtomicBool>, account: &Account, limit_ms: u64) -> Planning {
        Planning {
            stop,
            limit: (limit_ms > 0).then(|| Duration::from_millis(limit_ms)),
            spent_nanos: AtomicU64::new(0),
            taken_bytes: AtomicU64::new(0),
            since: Mutex::new(None),
            memory: Mutex::new(Memory {
                // Nothing is refused to who asks for nothing.
                held: account.reserve(0).ok(),
                text_bytes: 0,
                large_text: None,
            }),
        }
    }

    /// Why the statement was stopped is found where it ends.
    fn check(&self) -> Result<(), MySqlError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(MySqlError::new(ErrorCode::QueryInterrupted, &[])),
            false => Ok(()),
        }
    }

    /// Says that this thread plans for the statement from now on.
    pub(crate) fn begin(&self) -> UnderWay<'_> {
        self.since().get_or_insert_with(Instant::now);
        UnderWay(self)
    }

    /// How long the statement has been planned; `None` where no thread plans for it now. Parts that
    /// are made count with their processor time.
    pub(crate) fn planned_for(&self) -> Option<Duration> {
        let since = (*self.since())?;
        let before = Duration::from_nanos(self.spent_nanos.load(Ordering::Relaxed));
        Some(before + since.elapsed())
    }

    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_time(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.spent_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// How much time is left.
    fn check_time(&self, now: Duration) -> Result<Duration, MySqlError> {
        let before = Duration::from_nanos(self.spent_nanos.load(Ordering::Relaxed));
        let limit = self.limit.unwrap_or(Duration::MAX);
        let left = limit.checked_sub(before + now);
        left.ok_or_else(|| out_of_time(limit))
    }

    fn hold_text(&self, bytes: u64) -> Result<(), MySqlError> {
        let mut memory = self.memory();
        memory.hold(bytes)?;
        memory.text_bytes = bytes;
        Ok(())
    }

    fn hold_plan(&self, bytes: u64) -> Result<(), MySqlError> {
        let mut memory = self.memory();
        let text_bytes = memory.text_bytes;
        memory.hold(text_bytes + bytes)
    }

    /// Counts what a thread has taken for the plan. What its text was expected to take is a part of
    /// it, or more; with the right to a large text it is not counted.
    fn hold_taken(&self, bytes: u64) -> Result<(), MySqlError> {
        let mut memory = self.memory();
        match memory.large_text {
            Some(_) => Ok(()),
            None => memory.hold(bytes),
        }
    }

    /// What all parts of the plan have taken, with one that is made.
    fn taken_so_far(&self, by_part: i64) -> u64 {
        let before = self.taken_bytes.load(Ordering::Relaxed);
        before.saturating_add_signed(by_part)
    }

    /// A part was made that took so much.
    fn add_taken(&self, by_part: i64) {
        let so_far = self.taken_so_far(by_part);
        self.taken_bytes.store(so_far, Ordering::Relaxed);
    }

    /// Gives the memory back: the plan has been made, and runs.
    pub(crate) fn is_made(&self) {
        if let Some(held) = self.memory().held.as_mut() {
            held.shrink(0);
        }
    }

    /// Lets go of the statement's account.
    pub(crate) fn end(&self) {
        let mut memory = self.memory();
        drop((memory.held.take(), memory.large_text.take()));
    }
}

impl Memory {
    /// Grows to so many bytes.
    fn hold(&mut self, bytes: u64) -> Result<(), MySqlError> {
        match &mut self.held {
            Some(held) if bytes > UNCOUNTED_BYTES.max(held.bytes()) => {
                let grown = held.try_resize(bytes);
                grown.map_err(|error| errors::from_space(&error))
            }
            _ => Ok(()),
        }
    }
}

fn out_of_time(limit: Duration) -> MySqlError {
    let mut error = MySqlError::new(ErrorCode::QueryTimeout, &[]);
    error.message += &format!(
        ": planning it took more than mayfly_max_planning_time = {} ms",
        limit.as_millis()
    );
    error
}

/// Watches a thread that plans for a statement.
struct StatementWatch {
    planners: Arc<Planners>,
    planning: Arc<Planning>,
    /// The processor time of the thread when it began.
    began: Duration,
    /// When its processor time is looked at again, which takes a call of the system.
    next_look: Cell<Instant>,
    /// What the thread had taken of the heap when it began, and what it takes from then on that is
    /// reserved next.
    taken_before: i64,
    next_taken: Cell<u64>,
    is_long: RefCell<Option<IsLong>>,
    turn: RefCell<Option<Turn>>,
}

impl StatementWatch {
    /// How long planning took, without the time in which others had the processor.
    fn took(&self) -> Duration {
        processor_time().saturating_sub(self.began)
    }

    /// What the thread has taken of the heap since it began; less than nothing where it let go of
    /// what others have taken.
    fn taken(&self) -> i64 {
        taken_by_thread() - self.taken_before
    }

    /// Takes a turn, which is another one if that before is over.
    fn take_turn(&self) -> Result<(), MySqlError> {
        let mut is_long = self.is_long.borrow_mut();
        if is_long.is_none() {
            let place = self.planners.threads.is_long();
            *is_long = Some(place.ok_or_else(|| errors::many_long_plans(LONG_MAX))?);
        }
        let mut turn = self.turn.borrow_mut();
        if turn.as_ref().is_some_and(|turn| !turn.is_over()) {
            return Ok(());
        }
        drop(turn.take());
        *turn = Some(self.planners.turn(|| self.planning.check())?);
        Ok(())
    }
}

impl Watch for StatementWatch {
    fn check(&self) -> Result<(), MySqlError> {
        self.planning.check()?;
        let taken = self.planning.taken_so_far(self.taken());
        if taken >= self.next_taken.get() {
            self.next_taken.set(taken + TAKEN_STEP_BYTES);
            self.planners.hold_taken(&self.planning, taken)?;
        }
        let now = Instant::now();
        if now < self.next_look.get() {
            return Ok(());
        }
        let took = self.took();
        let left = self.planning.check_time(took)?.min(SHORT);
        self.next_look.set(now + left.max(LOOK));
        match took <= SHORT {
            true => Ok(()),
            false => self.take_turn(),
        }
    }

    fn hold_bytes(&self, bytes: u64) -> Result<(), MySqlError> {
        self.planning.check()?;
        self.planning.hold_plan(bytes)
    }
}

/// The processor time of this thread.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Waits for what planning reads, such as the footer of a file; on a thread that plans.
pub(crate) fn wait<T>(reading: impl Future<Output = T>) -> T {
    Handle::current().block_on(reading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, EngineOptions};

    const FOREVER: Duration = Duration::from_secs(1 << 30);

    #[tokio::test]
    async fn the_right_to_a_large_text_is_waited_for_no_longer_than_the_statement_may() {
        let engine = Engine::open(EngineOptions {
            memory_bytes: 64 << 20,
            ..EngineOptions::default()
        });
        let engine = engine.unwrap();
        let session = engine.connect();
        let account = session.connection.statement_account();
        let planners = &engine.shared().planners;
        let planning = |limit_ms| Planning::new(Arc::default(), &account, limit_ms);
        // More than the budget.
        let bytes = LARGE_TEXT_BYTES_MAX;
        let refused = planning(0).hold_text(bytes).expect_err("too large");
        let hold = async |planning: &Planning, bytes, patience| {
            let held = planners.hold_text(planning, bytes, patience).await;
            held.map_err(|error| error.code)
        };
        let first = planning(0);
        assert_eq!(hold(&first, bytes, Duration::ZERO).await, Ok(()));
        // The first one has the right.
        let second = planning(0);
        let ended = hold(&second, bytes, Duration::ZERO).await;
        assert_eq!(ended, Err(refused.code));
        let ended = hold(&planning(50), bytes, FOREVER).await;
        assert_eq!(ended, Err(refused.code));
        let stopped = planning(0);
        stopped.stop.store(true, Ordering::Relaxed);
        assert_eq!(hold(&stopped, bytes, FOREVER).await, Err(1317));
        first.end();
        assert_eq!(hold(&second, bytes, Duration::ZERO).await, Ok(()));
        let ended = hold(&planning(0), bytes + 1, FOREVER).await;
        assert_eq!(ended, Err(refused.code));
    }
}
