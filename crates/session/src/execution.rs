//! How one statement is executed: at once on the thread that asks, on the workers, or again when
//! others have given back the memory that it needs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use mayfly_sql::parse::is_on_prepared;
use mayfly_types::{ErrorCode, MySqlError};
use tokio::runtime::Handle;

use super::abandoned::AbortOnDrop;
use crate::crash::{crashed, panic_text};
use crate::outcome::Outcome;
use crate::profile::Stage;
use crate::running::{AFTER_FAILURE, AFTER_SUCCESS, Running};
use crate::session::Session;
use crate::statement::{self, Apart, Attempt};
use crate::{errors, shortage};

/// How long a statement waits for its turn to change a table before it becomes a task that can be
/// seen and killed: longer than others of its kind take.
const SHORT_WAIT: Duration = Duration::from_millis(10);

/// How often a statement that runs at once tries again to find memory, about a second in all,
/// before it goes the long way.
const SHORT_TRIES: u32 = 8;

/// What came of running a statement at once.
enum AtOnce {
    Ended(Result<Outcome, MySqlError>),
    /// It is known, and waits for its turn to change a table. Nothing was done.
    Waits,
    /// It is not known. Nothing was done.
    Unknown,
}

impl AtOnce {
    fn interrupted() -> AtOnce {
        AtOnce::Ended(Err(MySqlError::new(ErrorCode::QueryInterrupted, &[])))
    }
}

impl Session {
    pub(crate) async fn run(&mut self, statement: &str) -> Result<Outcome, MySqlError> {
        let started = Instant::now();
        let at_once = self.run_at_once(statement).await;
        let waits = matches!(at_once, AtOnce::Waits);
        if let AtOnce::Ended(ended) = at_once {
            share_thread(started.elapsed()).await;
            return ended;
        }
        if is_on_prepared(statement) {
            return self.run_on_prepared(statement).await;
        }
        let connection = Arc::clone(&self.connection);
        let account = connection.statement_account();
        let mut running = Running::begin(&connection, statement, account);
        if waits {
            running.begin_waiting();
        }
        let mut guard = AbortOnDrop(Some(Arc::clone(&running)));
        let was_alone = self.is_alone();
        let mut ended = self.run_once(&running).await;
        if was_alone && self.is_alone() {
            ended = ended.map_err(errors::of_one_alone);
        } else if ended.as_ref().is_err_and(errors::may_pass) && self.may_run_again(&running) {
            (running, ended) = self.run_in_turn(running, ended, &mut guard).await;
        }
        guard.0 = None;
        ended.map_err(|error| {
            let error = running.shown_error(error);
            running.fail(&error);
            error
        })
    }

    /// Runs a statement of a shape or a text that was seen before, on this thread.
    async fn run_at_once(&self, statement: &str) -> AtOnce {
        if self.connection.explains.load(Ordering::Relaxed) {
            return AtOnce::Unknown;
        }
        let apart = Apart::of_short(statement);
        let run_known = |held| match &apart {
            Some(apart) => statement::run_known(&self.connection, statement, apart, held),
            None => Attempt::Unknown,
        };
        let mut attempt = run_known(None);
        let mut waited = Duration::ZERO;
        let mut tries = 0;
        loop {
            let started = Instant::now();
            let again = match attempt {
                Attempt::Busy(busy) => {
                    let patience = self.pause(SHORT_WAIT.saturating_sub(waited));
                    let turn = tokio::select! {
                        turn = busy.turns.take(busy.purpose) => Some(turn),
                        () = patience => None,
                        () = self.connection.end.wait() => return AtOnce::interrupted(),
                    };
                    waited += started.elapsed();
                    self.connection.local().waited += started.elapsed();
                    match turn {
                        Some(turn) => Some((busy, turn)),
                        None => return AtOnce::Waits,
                    }
                }
                // It needs little: it does not wait behind those that need much.
                Attempt::Short if tries < SHORT_TRIES && self.others_run() => {
                    let pause = self.pause(shortage::pause(tries, Duration::ZERO));
                    tries += 1;
                    tokio::select! {
                        () = pause => {}
                        () = self.connection.end.wait() => return AtOnce::interrupted(),
                    }
                    None
                }
                _ => break,
            };
            attempt = run_known(again);
        }
        if let Attempt::Ended(ended) = attempt {
            return AtOnce::Ended(ended);
        }
        let ended = statement::run_known_table(&self.connection, statement);
        let run_repeated = || statement::run_repeated(&self.connection, statement, apart.as_ref());
        let ended = ended.or_else(|| run_repeated().map(Ok));
        ended.map_or(AtOnce::Unknown, AtOnce::Ended)
    }

    /// A timer for whoever polls a statement that runs at once.
    fn pause(&self, time: Duration) -> tokio::time::Sleep {
        let _entered = self.connection.engine.runtime().enter();
        tokio::time::sleep(time)
    }

    /// Whether statements run that have a task, which those that run at once have not.
    fn others_run(&self) -> bool {
        self.connection.engine.shared().statements.running() > 0
    }

    /// Whether its statement is the only one of the engine that runs.
    fn is_alone(&self) -> bool {
        self.connection.engine.shared().statements.running() == 1
    }

    async fn run_once(&self, running: &Arc<Running>) -> Result<Outcome, MySqlError> {
        let run = statement::run(Arc::clone(&self.connection), Arc::clone(running));
        let engine = &self.connection.engine;
        let ended = if statement::is_light(&running.text) {
            self.run_light(running, Box::pin(run)).await
        } else if statement::is_control(&running.text) {
            run_on(engine.control(), running, run).await
        } else {
            engine.make_room_for_planning();
            self.run_on_workers(running, run).await
        };
        match &ended {
            Ok(Outcome::Rows { .. }) => {}
            Ok(Outcome::Done { .. }) => running.let_go(AFTER_SUCCESS).await,
            Err(_) => running.let_go(AFTER_FAILURE).await,
        }
        ended
    }

    /// Starts a statement again that found the memory taken by others, or the threads that plan, as
    /// often as some of them end while it is patient.
    async fn run_in_turn(
        &self,
        first: Arc<Running>,
        failed: Result<Outcome, MySqlError>,
        guard: &mut AbortOnDrop,
    ) -> (Arc<Running>, Result<Outcome, MySqlError>) {
        let statements = &self.connection.engine.shared().statements;
        let mut running = first;
        let mut ended = failed;
        let (mut tries, mut took) = (0, running.elapsed());
        let memory_wait = self.connection.local().settings().memory_wait;
        while let Some(patience) = memory_wait.checked_sub(running.elapsed()) {
            running.enter(Stage::WaitingForMemory);
            running.leave();
            let turn = self.connection.turn.take();
            let needs_thread = ended.as_ref().is_err_and(errors::is_many_long_plans);
            let wait = {
                let statements = Arc::clone(statements);
                let planners = Arc::clone(&self.connection.engine.shared().planners);
                let pause = shortage::pause(tries, took);
                async move {
                    if !needs_thread {
                        let turn = statements.next_turn(turn, pause, patience).await;
                        return Ok(turn.map(Some));
                    }
                    // Others may find the memory that they wait for.
                    drop(turn);
                    let room = tokio::time::timeout(patience, planners.room_for_long()).await;
                    Ok(room.ok().map(|()| None))
                }
            };
            let turn = match self.run_on_workers(&running, wait).await {
                Ok(Some(turn)) if running.interrupted().is_none() => turn,
                Ok(_) => break,
                Err(error) => {
                    ended = Err(error);
                    break;
                }
            };
            self.connection.turn.put(turn);
            tries += 1;
            running = running.again();
            guard.0 = Some(Arc::clone(&running));
            let was_alone = self.is_alone();
            let started = Instant::now();
            ended = self.run_once(&running).await;
            took = started.elapsed();
            if was_alone && self.is_alone() {
                ended = ended.map_err(errors::of_one_alone);
                break;
            }
            let may_pass = ended.as_ref().is_err_and(errors::may_pass);
            if !may_pass || !self.may_run_again(&running) {
                break;
            }
        }
        drop(self.connection.turn.take());
        (running, ended)
    }

    /// Whether a statement that has failed would not do a second time what it did already.
    fn may_run_again(&self, running: &Running) -> bool {
        shortage::may_run_again(&running.text) && !self.connection.values.lock().took_effect
    }

    pub(crate) fn run_on_workers<T: Send + 'static>(
        &self,
        running: &Arc<Running>,
        run: impl Future<Output = Result<T, MySqlError>> + Send + 'static,
    ) -> impl Future<Output = Result<T, MySqlError>> {
        run_on(self.connection.engine.runtime(), running, run)
    }

    /// Runs a statement on this thread; one that waits for something goes on on a worker.
    async fn run_light(
        &self,
        running: &Arc<Running>,
        mut run: Pin<Box<impl Future<Output = Result<Outcome, MySqlError>> + Send + 'static>>,
    ) -> Result<Outcome, MySqlError> {
        let polled = {
            let _entered = self.connection.engine.runtime().enter();
            let mut context = Context::from_waker(Waker::noop());
            catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(&mut context)))
        };
        match polled {
            Ok(Poll::Ready(ended)) => ended,
            Ok(Poll::Pending) => self.run_on_workers(running, run).await,
            Err(panic) => Err(crashed(&panic_text(panic))),
        }
    }
}

/// Work for which a statement pays with one step of its task.
const STEP: Duration = Duration::from_micros(50);
/// The steps that a task may take before it yields.
const STEPS_MAX: u128 = 128;

/// Lets the other tasks of this thread go on now and then: a task whose statements are all over at
/// once never waits for anything.
async fn share_thread(took: Duration) {
    let steps = took.as_nanos() / STEP.as_nanos() + 1;
    for _ in 0..steps.min(STEPS_MAX) {
        tokio::task::coop::consume_budget().await;
    }
}

/// Spawns a part of a statement, and waits for its end. It is spawned by the call and not by the
/// first poll, so that the future of the caller, which a connection keeps all its life, has no room
/// for the statement.
fn run_on<T: Send + 'static>(
    threads: &Handle,
    running: &Arc<Running>,
    run: impl Future<Output = Result<T, MySqlError>> + Send + 'static,
) -> impl Future<Output = Result<T, MySqlError>> {
    let task = running.spawn(threads, run);
    async move {
        let ended = task.await;
        ended.unwrap_or_else(|join| Err(crashed(&end_of_task(join))))
    }
}

fn end_of_task(join: tokio::task::JoinError) -> String {
    match join.is_panic() {
        true => panic_text(join.into_panic()),
        false => "the statement's task was stopped".to_owned(),
    }
}
