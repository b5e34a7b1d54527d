//! One connection as its user holds it.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use mayfly_space::Account;
use mayfly_sql::parse::is_on_prepared;
use mayfly_types::{CharacterSet, ErrorCode, MySqlError};
use tokio::runtime::Handle;

use crate::abandoned::abandon;
use crate::client_files::{ClientFiles, FileRequests};
use crate::client_memory::ClientMemory;
use crate::commands::Command;
use crate::connection::Connection;
use crate::errors;
use crate::kept::KeptRows;
use crate::names;
use crate::outcome::{ColumnInfo, Outcome, RowStream, crashed, panic_text};
use crate::prepared::{Prepared, PreparedCommand};
use crate::prepared_database::Away;
use crate::profile::Stage;
use crate::progress::Progress;
use crate::running::{AFTER_FAILURE, AFTER_SUCCESS, CancelHandle, EndHandle, Running};
use crate::shortage;
use crate::statement::{self, Attempt};
use crate::stats::StatementStats;
use crate::tracking::SessionChange;

/// A connection to an engine: variables, temporary tables, one statement at a time.
///
/// Dropping it drops its temporary tables.
pub struct Session {
    pub(crate) connection: Arc<Connection>,
    /// Pays for what its client sends and prepares.
    client: Account,
}

/// What a client is told of its connection beside the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Whether a transaction is open: BEGIN was given, or something was changed without autocommit.
    pub is_in_transaction: bool,
    /// Whether it is one that changes nothing.
    pub only_reads: bool,
    /// `@@autocommit`.
    pub autocommits: bool,
    /// Entries that SHOW WARNINGS would list.
    pub warnings: u16,
    /// `@@character_set_client`.
    pub client_set: CharacterSet,
    /// `@@character_set_results`, with the number of the collation that clients are told of; `None`
    /// where nothing is converted.
    pub results_set: Option<(CharacterSet, u16)>,
    /// Whether there is something to tell: [`Session::take_changes`].
    pub has_changes: bool,
}

/// Marks what a connection runs as prepared.
struct IsPrepared(Arc<Connection>);

impl IsPrepared {
    fn begin(connection: &Arc<Connection>) -> IsPrepared {
        connection.is_prepared.store(true, Ordering::Relaxed);
        IsPrepared(Arc::clone(connection))
    }
}

impl Drop for IsPrepared {
    fn drop(&mut self) {
        self.0.is_prepared.store(false, Ordering::Relaxed);
    }
}

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

/// Stops a statement whose caller has lost interest.
struct AbortOnDrop(Option<Arc<Running>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            abandon(&running);
        }
    }
}

impl Session {
    pub(crate) fn new(connection: Arc<Connection>, client: Account) -> Session {
        Session { connection, client }
    }

    /// Memory of the budget for what its client sends and reads; nothing so far.
    ///
    /// # Errors
    /// None but for a bug: it asks for no bytes.
    pub fn client_memory(&self) -> Result<ClientMemory, MySqlError> {
        ClientMemory::of(&self.client, 0)
    }

    /// The same for something that it keeps.
    pub(crate) fn keep_for_client(&self, bytes: usize) -> Result<ClientMemory, MySqlError> {
        ClientMemory::of(&self.client, bytes as u64)
    }

    /// Says that the client is another process: the files of LOAD DATA LOCAL are asked for here,
    /// while a statement runs.
    pub fn client_files(&mut self) -> FileRequests {
        let (files, requests) = ClientFiles::open();
        self.connection.take_client_files(files);
        requests
    }

    /// Runs one statement. A delimiter at its end is allowed.
    ///
    /// The statement runs on the engine's workers; the future may be polled anywhere. Dropping it
    /// stops the statement. What takes some microseconds runs in the poll itself: a statement on
    /// few rows, of a shape or a text that was seen before, or one like CREATE TABLE or COMMIT.
    ///
    /// # Errors
    /// Whatever MySQL would answer; the session stays usable.
    pub async fn execute(&mut self, statement: &str) -> Result<Outcome, MySqlError> {
        self.connection.after_abandoned().await?;
        let ended = self.run(statement).await;
        if let Ok(outcome) = &ended {
            self.connection.follow_transaction(statement, outcome);
        }
        ended
    }

    /// Runs a prepared statement, whose text this is, in its database.
    pub(crate) async fn execute_away(
        &mut self,
        prepared: &Prepared,
        text: &str,
    ) -> Result<Outcome, MySqlError> {
        self.connection.after_abandoned().await?;
        let _away = Away::enter(&self.connection, prepared.database());
        self.execute(text).await
    }

    async fn run(&mut self, statement: &str) -> Result<Outcome, MySqlError> {
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
            let error = running.interrupted().unwrap_or(error);
            running.fail(&error);
            error
        })
    }

    /// Runs a statement of a shape or a text that was seen before, on this thread.
    async fn run_at_once(&self, statement: &str) -> AtOnce {
        if self.connection.explains.load(Ordering::Relaxed) {
            return AtOnce::Unknown;
        }
        let mut attempt = statement::run_known(&self.connection, statement, None);
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
            attempt = statement::run_known(&self.connection, statement, again);
        }
        if let Attempt::Ended(ended) = attempt {
            return AtOnce::Ended(ended);
        }
        let ended = statement::run_known_table(&self.connection, statement);
        let ended = ended.or_else(|| statement::run_repeated(&self.connection, statement).map(Ok));
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

    /// The columns of the rows that a statement would return; none if it returns no rows: then its
    /// names are looked at. Nothing is run.
    ///
    /// # Errors
    /// What reading and planning the statement give.
    pub async fn describe(&self, statement: &str) -> Result<Vec<ColumnInfo>, MySqlError> {
        self.connection.after_abandoned().await?;
        if let Some(columns) = statement::known_columns(&self.connection, statement) {
            return Ok(columns);
        }
        let connection = Arc::clone(&self.connection);
        let account = connection.statement_account();
        let running = Running::look(&connection, statement, account);
        let mut guard = AbortOnDrop(Some(Arc::clone(&running)));
        let look = statement::describe(connection, Arc::clone(&running));
        let ended = self.run_on_workers(&running, look).await;
        guard.0 = None;
        running.finish();
        ended.map_err(|error| running.interrupted().unwrap_or(error))
    }

    /// Keeps the rows of a statement in the temp space, for whoever reads them piece by piece while
    /// other statements run. The statement is over then. Dropping the future stops it.
    ///
    /// # Errors
    /// Those of the statement, and those of the temp space: memory, disk, a quota.
    pub async fn keep(&self, batches: RowStream) -> Result<KeptRows, MySqlError> {
        let account = self.connection.statement_account();
        let workers = self.connection.engine.runtime().clone();
        KeptRows::of(batches, account, workers).await
    }

    /// Runs a prepared statement in the database in which it was prepared: [`Prepared::with`] gives
    /// its text.
    ///
    /// # Errors
    /// As of [`execute`](Session::execute).
    pub async fn execute_prepared(
        &mut self,
        prepared: &Prepared,
        text: &str,
    ) -> Result<Outcome, MySqlError> {
        let connection = Arc::clone(&self.connection);
        connection.engine.clients().executes();
        {
            let commands = &mut connection.local().status.commands;
            commands.add(Command::StatementExecute);
        }
        // Also where the future is dropped.
        let _is_prepared = IsPrepared::begin(&connection);
        self.execute_away(prepared, text).await
    }

    /// Counts a command on a prepared statement.
    pub fn count_prepared(&mut self, command: PreparedCommand) {
        let command = match command {
            PreparedCommand::Close => Command::StatementClose,
            PreparedCommand::Fetch => Command::StatementFetch,
            PreparedCommand::Reset => Command::StatementReset,
            PreparedCommand::LongData => Command::StatementLongData,
        };
        self.connection.count(|status| status.commands.add(command));
    }

    /// Says how many bytes have come from the client and gone to it so far.
    pub fn exchanged(&mut self, received: u64, sent: u64) {
        self.connection.exchanged(received, sent);
    }

    /// Cuts a statement at its parameters and looks at its columns.
    ///
    /// # Errors
    /// 1064, what names tables and columns that do not exist, 1461 when there are too many, and
    /// what stops planning: 1317 and 3024.
    pub async fn prepare(&mut self, statement: &str) -> Result<Prepared, MySqlError> {
        let connection = &self.connection;
        connection.count(|status| status.commands.add(Command::StatementPrepare));
        self.prepare_any(statement).await
    }

    /// The same, whatever asks for it.
    pub(crate) async fn prepare_any(&self, statement: &str) -> Result<Prepared, MySqlError> {
        self.connection.after_abandoned().await?;
        let engine = &self.connection.engine;
        let most = engine.globals().variables.number("max_prepared_stmt_count");
        let place = engine.clients().prepare(most);
        let place = place.ok_or_else(|| MySqlError::new(ErrorCode::TooManyPrepared, &[&most]))?;
        Prepared::new(self, statement, place).await
    }

    /// Ends what the connection has: its transaction, temporary tables, variables and warnings. Its
    /// number, its user and its database stay. Completes when the memory of its tables is back.
    pub async fn reset(&mut self) {
        let new = self.connection.renewed();
        let old = mem::replace(&mut self.connection, new);
        let freed = old.leave_tables();
        drop(old);
        if let Some(freed) = freed {
            let _it_does_nothing_else = freed.await;
        }
    }

    /// The state that clients are told of after each statement.
    pub fn state(&self) -> State {
        let mut local = self.connection.local();
        let settings = local.settings();
        let is_in_transaction = local.transaction.is_open();
        State {
            is_in_transaction,
            only_reads: is_in_transaction && local.only_reads(),
            has_changes: local.has_changes(),
            autocommits: settings.autocommit,
            warnings: match local.keeps_warnings {
                // They are those of the statement before.
                true => 0,
                false => u16::try_from(local.warning_count).unwrap_or(u16::MAX),
            },
            client_set: settings.client_set,
            results_set: settings.results_set,
        }
    }

    /// What has changed in the session that its client wants to know of, since this was asked last:
    /// `session_track_*`.
    pub fn take_changes(&mut self) -> Vec<SessionChange> {
        self.connection.local().take_changes()
    }

    /// Takes the character set that a client names by the number of a collation when it connects,
    /// as SET NAMES would; the engine's default for a number that means none.
    ///
    /// # Errors
    /// 1115 and 1231 for sets in which nobody can be served.
    pub fn set_client_collation(&mut self, id: u16) -> Result<(), MySqlError> {
        if let Some((set, collation)) = CharacterSet::of_collation_id(id)? {
            self.connection.local().variables.set_names(set, collation);
        }
        Ok(())
    }

    /// How long a client may say nothing, in seconds: `@@wait_timeout`.
    pub fn idle_seconds(&self) -> u64 {
        self.connection.local().settings().wait_timeout
    }

    /// How long each read of what a client sends may take, in seconds: `@@net_read_timeout`.
    pub fn read_seconds(&self) -> u64 {
        self.connection.local().settings().read_timeout
    }

    /// Says that a person waits at the client: `@@wait_timeout` is `@@interactive_timeout` then.
    pub fn wait_for_person(&mut self) {
        let mut local = self.connection.local();
        let seconds = local.variables.text("interactive_timeout");
        local.variables.put("wait_timeout", seconds);
    }

    /// Says from which port of its host the client speaks, which SHOW PROCESSLIST shows.
    pub fn set_client_port(&mut self, port: Option<u16>) {
        self.connection.local().client_port = port;
    }

    /// `@@max_allowed_packet`: the bytes of the longest command and of the longest row.
    pub fn max_packet_bytes(&self) -> usize {
        let bytes = self
            .connection
            .local()
            .variables
            .number("max_allowed_packet");
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Says whether UPDATE tells how many rows it found, instead of how many it changed.
    pub fn count_found_rows(&mut self, counts_found: bool) {
        self.connection.local().counts_found = counts_found;
    }

    /// Leaves the current database: none is selected.
    pub fn leave_database(&mut self) {
        self.connection.local().database = None;
    }

    /// Says who the user is: `CURRENT_USER()`, as `name@host`.
    pub fn set_user(&mut self, user: &str) {
        self.connection.values.lock().user = user.to_owned();
    }

    /// Says how the connection is encrypted: the version of TLS and the cipher suite.
    pub fn set_encryption(&mut self, version: &str, cipher: &str) {
        self.connection.local().encryption = Some((version.to_owned(), cipher.to_owned()));
    }

    /// Tells when somebody ends the connection.
    pub fn end_handle(&self) -> EndHandle {
        self.connection.end.clone()
    }

    fn run_on_workers<T: Send + 'static>(
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

    /// The number of the connection, as `CONNECTION_ID()` says it.
    pub fn id(&self) -> u64 {
        self.connection.id
    }

    /// The current database.
    pub fn database(&self) -> Option<String> {
        self.connection.local().database.clone()
    }

    /// A handle that stops the running statement.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.connection.cancel.clone()
    }

    /// What the last finished statement cost.
    pub fn last_stats(&self) -> StatementStats {
        self.connection.local().last
    }

    /// Looks at the running statement while the session itself is busy.
    pub fn progress_handle(&self) -> ProgressHandle {
        ProgressHandle {
            cancel: self.connection.cancel.clone(),
        }
    }

    /// How far the running statement has come.
    pub fn progress(&self) -> Progress {
        self.connection.cancel.progress()
    }

    /// Names of tables, columns, functions, variables and keywords for completion, sorted.
    pub fn names_for_completion(&self) -> Vec<String> {
        names::all(&self.connection)
    }
}

/// Reads the progress of a session's statement; cheap to clone, may be used from any thread.
#[derive(Clone)]
pub struct ProgressHandle {
    cancel: CancelHandle,
}

impl ProgressHandle {
    /// How far the running statement has come; zero between statements.
    pub fn read(&self) -> Progress {
        self.cancel.progress()
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
