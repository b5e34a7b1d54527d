//! One statement while it runs: its account, its report, its tasks, and how it is stopped.
//!
//! Owns the abort handles of the statement's tasks. Statistics are taken once, by whoever comes
//! first: the task that ends, or the reader that lets go.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use datafusion::physical_plan::ExecutionPlan;
use mayfly_exec::Report;
use mayfly_space::{Account, Counters};
use mayfly_sql::spelling;
use mayfly_table::rows::StopFlag;
use mayfly_types::{ErrorCode, MySqlError};
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};

use crate::connection::Connection;
use crate::digests::DigestCell;
use crate::lock::lock;
use crate::pending::{Pending, notified_unless};
use crate::planning::Planning;
use crate::profile::{Marks, Stage};
use crate::progress::{self, Progress};
use crate::reads::Reads;
use crate::shortage::Place;
use crate::stats::{Ended, StatementStats};

/// How long a statement that failed waits for its tasks to let go.
pub(crate) const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// The same for one that ended well: rows that the client still reads may hold pages.
pub(crate) const AFTER_SUCCESS: Duration = Duration::from_millis(5);

/// Stops the statement that a session runs; cheap to clone, may be used from any thread.
#[derive(Clone, Default)]
pub struct CancelHandle {
    current: Arc<Mutex<Option<Arc<Running>>>>,
}

impl CancelHandle {
    /// Makes the running statement end with error 1317. Does nothing between statements.
    pub fn cancel(&self) {
        // Under the lock: a statement that starts again takes the place of itself.
        if let Some(running) = lock(&self.current).as_ref() {
            running.give_up();
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        self.running()
            .map(|running| running.progress())
            .unwrap_or_default()
    }

    pub(crate) fn running(&self) -> Option<Arc<Running>> {
        lock(&self.current).clone()
    }

    /// Takes a statement that begins, which may be one that was stopped before it starts again.
    fn set(&self, running: &Arc<Running>, before: Option<&Running>) {
        let mut current = lock(&self.current);
        if before.is_some_and(|before| before.cancelled.load(Ordering::SeqCst)) {
            running.give_up();
        }
        *current = Some(Arc::clone(running));
    }

    fn clear(&self, running: &Running) {
        let mut current = lock(&self.current);
        if current
            .as_ref()
            .is_some_and(|other| std::ptr::eq(Arc::as_ptr(other), running))
        {
            *current = None;
        }
    }
}

/// Tells that a connection is to end: KILL. Cheap to clone, may be used from any thread.
#[derive(Clone, Default)]
pub struct EndHandle(Arc<End>);

#[derive(Default)]
struct End {
    is_set: AtomicBool,
    notify: tokio::sync::Notify,
}

impl EndHandle {
    /// Whether the connection is to end.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::SeqCst)
    }

    /// Completes when the connection is to end.
    pub async fn wait(&self) {
        notified_unless(&self.0.notify, || self.is_set()).await;
    }

    pub(crate) fn set(&self) {
        self.0.is_set.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }
}

pub(crate) struct Running {
    // fixed
    connection: Arc<Connection>,
    started: Instant,
    /// Whether it has been started before.
    is_again: bool,
    is_prepared: bool,
    /// Whether it is only looked at, and not run: then it is not counted.
    is_looked_at: bool,
    pub(crate) text: String,
    /// The digest of the text, where one like it has been seen.
    digest: DigestCell,
    pub(crate) account: Account,
    pub(crate) report: Arc<Report>,
    // state
    stage: AtomicU8,
    /// The stages so far, where the statement is profiled.
    marks: Mutex<Option<Marks>>,
    place: Mutex<Option<Place>>,
    /// Rows returned or affected.
    rows: AtomicU64,
    is_query: AtomicBool,
    /// Whether it is to end, for whatever reason: functions that wait look at it.
    stop: Arc<AtomicBool>,
    cancelled: AtomicBool,
    timed_out: AtomicBool,
    /// Why it ended to make room for others.
    made_room: OnceLock<MySqlError>,
    finished: AtomicBool,
    /// Whether its error is listed.
    failed: AtomicBool,
    /// Whether it waited for its turn to change a table before it became a task.
    has_waited: AtomicBool,
    /// Accounts of the tables that the statement names, and what they had moved before it.
    written: Mutex<Vec<(Account, Counters)>>,
    plan: Mutex<Option<Arc<dyn ExecutionPlan>>>,
    /// What was read: what the plan had read when it was let go, where slow statements are logged,
    /// and what was fetched without one.
    reads: Mutex<Reads>,
    tasks: Mutex<Vec<AbortHandle>>,
    /// Those of the tasks that are not gone.
    pending: Pending,
    /// What frees the tables that it dropped.
    freeing: Mutex<Vec<JoinHandle<()>>>,
    /// Ends it when its time is over.
    timer: Mutex<Option<AbortHandle>>,
    pub(crate) planning: Arc<Planning>,
}

/// How a statement begins.
enum Beginning<'a> {
    First,
    /// As one that has failed, and was not finished.
    Again(&'a Running),
    /// It is only looked at.
    Look,
}

impl Running {
    pub(crate) fn begin(
        connection: &Arc<Connection>,
        text: &str,
        account: Account,
    ) -> Arc<Running> {
        let is_profiled = connection.local().settings().profiling;
        let marks = is_profiled.then(Marks::default);
        connection.values.lock().took_effect = false;
        let running = Running::start(connection, text, account, &Beginning::First, marks);
        running.enter(Stage::Starting);
        running
    }

    /// A statement that is looked at: it is neither counted nor logged nor profiled.
    pub(crate) fn look(connection: &Arc<Connection>, text: &str, account: Account) -> Arc<Running> {
        connection.values.lock().took_effect = false;
        Running::start(connection, text, account, &Beginning::Look, None)
    }

    /// Starts a statement again that failed and was not finished.
    pub(crate) fn again(&self) -> Arc<Running> {
        let account = self.connection.statement_account();
        let marks = lock(&self.marks).take();
        let again = Beginning::Again(self);
        let again = Running::start(&self.connection, &self.text, account, &again, marks);
        again.enter(Stage::Starting);
        again
    }

    fn start(
        connection: &Arc<Connection>,
        text: &str,
        account: Account,
        beginning: &Beginning<'_>,
        marks: Option<Marks>,
    ) -> Arc<Running> {
        let before = match beginning {
            Beginning::Again(before) => Some(*before),
            Beginning::First | Beginning::Look => None,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let limit_ms = connection.local().settings().planning_max_ms;
        let planning = Planning::new(Arc::clone(&stop), &account, limit_ms);
        let running = Arc::new(Running {
            connection: Arc::clone(connection),
            started: before.map_or_else(Instant::now, |before| before.started),
            is_again: before.is_some(),
            is_prepared: connection.is_prepared.load(Ordering::Relaxed),
            is_looked_at: matches!(beginning, Beginning::Look),
            stage: AtomicU8::new(Stage::default() as u8),
            marks: Mutex::new(marks),
            place: Mutex::new(Some(connection.engine.shared().statements.enter())),
            text: text.to_owned(),
            digest: DigestCell::new(),
            account,
            report: Arc::new(Report::default()),
            rows: AtomicU64::new(0),
            is_query: AtomicBool::new(false),
            stop,
            cancelled: AtomicBool::new(false),
            timed_out: AtomicBool::new(false),
            made_room: OnceLock::new(),
            finished: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            has_waited: AtomicBool::new(false),
            written: Mutex::new(Vec::new()),
            plan: Mutex::new(None),
            reads: Mutex::default(),
            tasks: Mutex::new(Vec::new()),
            pending: Pending::default(),
            freeing: Mutex::default(),
            timer: Mutex::default(),
            planning: Arc::new(planning),
        });
        connection.values.lock().stop = Arc::clone(&running.stop);
        connection.cancel.set(&running, before);
        running
    }

    /// Spawns a task of the statement; it is stopped at once if the statement has been stopped
    /// already.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        threads: &Handle,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let counted = self.pending.enter();
        let task = threads.spawn(async move {
            // Dropped behind all that the work has.
            let _counted = counted;
            work.await
        });
        let handle = task.abort_handle();
        lock(&self.tasks).push(handle.clone());
        if self.stop.load(Ordering::SeqCst) {
            handle.abort();
        }
        task
    }

    /// Waits until no task of the statement does anything any more.
    pub(crate) async fn tasks_gone(&self) {
        self.pending.none_left().await;
    }

    /// Whether they are all gone.
    pub(crate) fn has_no_tasks(&self) -> bool {
        self.pending.is_none()
    }

    /// What counts it among the statements that run, which whoever takes it goes on with.
    pub(crate) fn take_place(&self) -> Option<Place> {
        lock(&self.place).take()
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Stops the statement, which then ends with error 1317.
    pub(crate) fn give_up(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.abort();
    }

    /// Stops the statement, which then ends with error 1038: the process has so many bytes of
    /// memory, more than its limit. `why` this statement ends follows in the message. `false` where
    /// it ends for that already.
    pub(crate) fn end_for_memory(&self, resident_bytes: u64, limit_bytes: u64, why: &str) -> bool {
        let message = format!(
            "The server has {} MiB of memory, more than its limit of {} MiB; {why}",
            resident_bytes >> 20,
            limit_bytes >> 20
        );
        let error = MySqlError::with_message(ErrorCode::OutOfSortMemory, message);
        // It says what was said first.
        let is_first = self.made_room.set(error).is_ok();
        self.abort();
        is_first
    }

    /// Stops the tasks of the statement, functions that wait included.
    pub(crate) fn abort(&self) {
        self.stop.store(true, Ordering::SeqCst);
        for task in lock(&self.tasks).iter() {
            task.abort();
        }
    }

    /// The flag that is raised when the statement is to end, for whatever reason.
    pub(crate) fn stop_flag(&self) -> StopFlag {
        StopFlag::from(Arc::clone(&self.stop))
    }

    /// Takes the digest from one that is like it.
    pub(crate) fn share_digest(&self, cell: &DigestCell) {
        let digest = self.connection.digest(cell, &self.text);
        let _may_have_it = self.digest.set(Arc::clone(digest));
    }

    /// Says that it is known, and waits for its turn to change a table.
    pub(crate) fn begin_waiting(&self) {
        self.has_waited.store(true, Ordering::Relaxed);
    }

    /// Whether it is known, and has waited for its turn in vain.
    pub(crate) fn has_waited(&self) -> bool {
        self.has_waited.load(Ordering::Relaxed)
    }

    /// Whether the statement has been started before: it is counted already.
    pub(crate) fn is_again(&self) -> bool {
        self.is_again
    }

    /// Whether it is the execution of a prepared statement.
    pub(crate) fn is_prepared(&self) -> bool {
        self.is_prepared
    }

    /// Says what the statement does from now on.
    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
        if let Some(marks) = lock(&self.marks).as_mut() {
            marks.enter(stage, &self.account.counters());
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        Stage::of(self.stage.load(Ordering::Relaxed))
    }

    /// Keeps the statement out of SHOW PROFILES.
    pub(crate) fn hide(&self) {
        *lock(&self.marks) = None;
    }

    /// Says that it does not run any more.
    pub(crate) fn leave(&self) {
        drop(self.take_place());
    }

    /// Ends the statement after a time, as `max_execution_time` asks.
    pub(crate) fn end_after(self: &Arc<Self>, limit: Duration) {
        let rest = limit.saturating_sub(self.started.elapsed());
        let running = Arc::downgrade(self);
        let timer = tokio::spawn(async move {
            tokio::time::sleep(rest).await;
            if let Some(running) = running.upgrade() {
                running.timed_out.store(true, Ordering::SeqCst);
                running.abort();
            }
        });
        *lock(&self.timer) = Some(timer.abort_handle());
    }

    pub(crate) fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Counts rows that were read from a table, by a key, and returned.
    pub(crate) fn has_fetched(&self, rows: u64) {
        self.add_rows(rows);
        lock(&self.reads).rows += rows;
    }

    /// Counts what a table that the statement names moves to and from disk.
    pub(crate) fn also_count(&self, account: &Account) {
        self.also_count_since(account, account.counters());
    }

    /// Counts what an account moved since it had `before`; once, if that is asked for again.
    pub(crate) fn also_count_since(&self, account: &Account, before: Counters) {
        let mut written = lock(&self.written);
        if !written.iter().any(|(other, _)| other.is(account)) {
            written.push((account.clone(), before));
        }
    }

    pub(crate) fn mark_query(&self) {
        self.is_query.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_plan(&self, plan: &Arc<dyn ExecutionPlan>) {
        *lock(&self.plan) = Some(Arc::clone(plan));
        self.planning.is_made();
    }

    /// Lets the plan go.
    fn take_plan(&self) {
        self.planning.end();
        let plan = lock(&self.plan).take();
        if let Some(plan) = plan {
            *lock(&self.reads) = Reads::of_plan(&plan);
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        let plan = lock(&self.plan).clone();
        let counters = self.account.counters();
        Progress {
            rows_read: plan.as_ref().map_or(0, progress::rows_read),
            rows_total: plan.as_ref().and_then(progress::rows_to_read),
            temp_bytes_written: counters.bytes_written,
            phase: self.stage().name(),
            memory_bytes: counters.resident_bytes + counters.reserved_bytes,
            disk_bytes: counters.disk_bytes_used,
            elapsed: self.started.elapsed(),
        }
    }

    /// The time that the statement has taken so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// What its account counts so far, with what the tables moved meanwhile that it names.
    pub(crate) fn counters(&self) -> Counters {
        let mut counters = self.account.counters();
        for (account, before) in lock(&self.written).iter() {
            let after = account.counters();
            counters.add_moved(&after, before);
            counters.peak_bytes = counters.peak_bytes.max(after.resident_bytes);
        }
        counters
    }

    /// The error of a statement that was stopped from outside.
    pub(crate) fn interrupted(&self) -> Option<MySqlError> {
        if self.cancelled.load(Ordering::SeqCst) {
            Some(MySqlError::new(ErrorCode::QueryInterrupted, &[]))
        } else if self.timed_out.load(Ordering::SeqCst) {
            Some(MySqlError::new(ErrorCode::QueryTimeout, &[]))
        } else {
            self.made_room.get().cloned()
        }
    }

    /// The error that a client gets for one of the statement: that of who stopped it comes first,
    /// and names are spelled as its text spells them.
    pub(crate) fn shown_error(&self, error: MySqlError) -> MySqlError {
        let error = self.interrupted().unwrap_or(error);
        spelling::as_written(error, &self.text)
    }

    /// Says that the tables that it dropped are being freed: it is over when they are.
    pub(crate) fn ends_after(&self, freed: JoinHandle<()>) {
        lock(&self.freeing).push(freed);
    }

    /// Waits until the tables that it dropped are freed, and until nothing that worked for the
    /// statement holds its memory any more, the latter at most `patience`. A task that was stopped
    /// ends only with the step that it is in.
    pub(crate) async fn let_go(&self, patience: Duration) {
        self.enter(Stage::RemovingTmpTable);
        self.take_plan();
        let freeing = std::mem::take(&mut *lock(&self.freeing));
        for freed in freeing {
            let _it_does_nothing_else = freed.await;
        }
        let started = Instant::now();
        let mut turns = 0;
        while self.account.holders() > 1 && started.elapsed() < patience {
            turns += 1;
            if turns < 16 {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// Ends the statement with an error, which SHOW WARNINGS then lists; once, if told again.
    pub(crate) fn fail(&self, error: &MySqlError) {
        self.finish_as(true);
        if !self.failed.swap(true, Ordering::SeqCst) {
            self.connection.failed(error);
        }
    }

    /// Takes the statistics and lets the statement go; the second call does nothing.
    pub(crate) fn finish(&self) {
        self.finish_as(false);
    }

    fn finish_as(&self, is_failed: bool) {
        if self.finished.swap(true, Ordering::SeqCst) {
            return;
        }
        // What was stopped has failed, also where its last task comes here before the error does.
        let is_failed = is_failed || self.interrupted().is_some();
        self.enter(Stage::QueryEnd);
        self.take_plan();
        lock(&self.tasks).clear();
        // It would wait on, whatever time that is.
        if let Some(timer) = lock(&self.timer).take() {
            timer.abort();
        }
        self.leave();
        drop(self.connection.turn.take());
        if self.is_looked_at {
            self.connection.take_warnings();
            self.connection.cancel.clear(self);
            return;
        }
        let rows = self.rows.load(Ordering::Relaxed);
        let tables = self.report.tables();
        let counters = self.counters();
        lock(&self.written).clear();
        let stats = StatementStats::new(self.started.elapsed(), rows, &tables, &counters);
        let marks = lock(&self.marks).take();
        let stages = marks.map_or(Vec::new(), |marks| marks.costs(&counters));
        self.connection.statement_finished(&Ended {
            text: &self.text,
            digest: &self.digest,
            is_failed,
            stats,
            is_query: self.is_query.load(Ordering::Relaxed),
            reads: Reads {
                tables: self.report.reads(),
                ..*lock(&self.reads)
            },
            tables: &tables,
            counters: &counters,
            stages: &stages,
        });
        self.connection.cancel.clear(self);
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use crate::engine::{Engine, EngineOptions};
    use crate::outcome::Outcome;
    use crate::session::Session;

    async fn run(session: &mut Session, sql: &str) {
        if let Outcome::Rows { mut batches, .. } = session.execute(sql).await.unwrap() {
            while let Some(batch) = batches.next().await {
                batch.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn a_limit_of_time_ends_with_its_statement() {
        let engine = Engine::open(EngineOptions {
            memory_bytes: 64 << 20,
            ..EngineOptions::default()
        });
        let engine = engine.unwrap();
        let mut session = engine.connect();
        run(&mut session, "SET max_execution_time = 1000000000").await;
        for number in 0..100 {
            // No two are alike: what is known may have no limit of this kind.
            let sql = format!("SELECT COUNT(*) + {number} FROM (SELECT {number} AS n) t");
            run(&mut session, &sql).await;
        }
        // A task that is stopped ends soon; one that waits on does not.
        for _ in 0..60_000 {
            if engine.runtime().metrics().num_alive_tasks() < 100 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        panic!("the limits of statements that have ended wait on");
    }
}
