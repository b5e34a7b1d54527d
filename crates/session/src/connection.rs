//! The state of one connection.
//!
//! Owns variables, temporary tables, warnings and counters of a session, and the DataFusion state
//! with our functions, rules and operators. Statements lock it for moments only.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::session_state::SessionState;
use datafusion::physical_plan::ExecutionPlan;
use mayfly_exec::{MaterializedRows, StatementContext};
use mayfly_space::{Account, AccountOptions, Counters};
use mayfly_sql::ansi;
use mayfly_sql::digest::Digest;
use mayfly_sql::functions::{LockHolder, SessionValues, Values};
use mayfly_table::Table;
use mayfly_types::{ErrorCode, Level, MySqlError, Warning};

use crate::client_files::ClientFiles;
use crate::digests::{DigestCell, Once, remembered};
use crate::engine::Engine;
use crate::local::Local;
use crate::pending::Pending;
use crate::profile::{Cost, Stage};
use crate::reads::Reads;
use crate::running::{CancelHandle, EndHandle, Running};
use crate::shortage::TurnOfConnection;
use crate::stats::{Ended, StatementStats};
use crate::status::{RowChanges, Status};
use crate::tracks::TransactionInfo;
use crate::variables::{Variables, time_zone_seconds};
use crate::waiting::WaitingPlace;
use crate::{errors, meaning};

pub(crate) struct Connection {
    // fixed
    pub(crate) engine: Engine,
    pub(crate) id: u64,
    pub(crate) state: Result<SessionState, MySqlError>,
    pub(crate) aggregates: Arc<HashSet<String>>,
    // state
    pub(crate) cancel: CancelHandle,
    /// Statements that nobody waits for, and that are not gone.
    pub(crate) abandoned: Pending,
    /// Set when somebody ends the connection.
    pub(crate) end: EndHandle,
    pub(crate) values: SessionValues,
    /// The turn of its statement among those that start again for want of memory.
    pub(crate) turn: Arc<TurnOfConnection>,
    /// Where files of the client come from, if it is another process.
    client_files: Mutex<Option<ClientFiles>>,
    /// Whether the client wants to know of its transaction.
    pub(crate) follows_transaction: AtomicBool,
    /// Whether slow statements are explained in their log.
    pub(crate) explains: AtomicBool,
    /// Whether the statement that runs was prepared.
    pub(crate) is_prepared: AtomicBool,
    /// Whether the database is still that of a prepared statement, which was abandoned.
    pub(crate) is_left_away: AtomicBool,
    local: Mutex<Local>,
    // resources
    pub(crate) account: Account,
}

impl Connection {
    pub(crate) fn open(engine: Engine, id: u64) -> Arc<Connection> {
        Self::open_with(engine, id, EndHandle::default())
    }

    /// A text of the client as it is read: under ANSI_QUOTES names in double quotes stand in
    /// backticks.
    pub(crate) fn in_backticks<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // Most texts have none, and need not ask the variables.
        match text.contains('"') && self.local().settings().has_ansi_quotes {
            true => ansi::read(text),
            false => Cow::Borrowed(text),
        }
    }

    /// A connection in the place of this one, as if it had just been opened by the same user in
    /// the same database.
    pub(crate) fn renewed(&self) -> Arc<Connection> {
        let new = Self::open_with(self.engine.clone(), self.id, self.end.clone());
        {
            let (mut new, old) = (new.local(), self.local());
            let home = old.home.as_ref().map(|home| &home.0);
            new.database.clone_from(home.unwrap_or(&old.database));
            new.counts_found = old.counts_found;
            new.encryption.clone_from(&old.encryption);
            new.client_port = old.client_port;
            new.traffic = old.traffic;
        }
        let user = self.values.lock().user.clone();
        new.values.lock().user = user;
        if let Some(files) = self.client_files() {
            new.take_client_files(files);
        }
        self.engine.register(&new);
        self.release_locks();
        new
    }

    pub(crate) fn open_with(engine: Engine, id: u64, end: EndHandle) -> Arc<Connection> {
        let quota = engine
            .globals()
            .variables
            .quota("max_tmp_session_space_usage");
        let options = AccountOptions {
            disk_quota_bytes: quota,
            ..AccountOptions::default()
        };
        let account = engine
            .space()
            .root()
            .child(&format!("session {id}"), options);
        let values = SessionValues::default();
        let turn = Arc::new(TurnOfConnection::default());
        {
            let mut values = values.lock();
            values.locks = LockHolder::new(&engine.shared().named_locks, id);
            values.waiting = Some(Arc::new(WaitingPlace {
                room: Arc::clone(&engine.shared().waiting_room),
                turn: Arc::clone(&turn),
            }));
        }
        let state = meaning::state(&engine, &values).map_err(|error| errors::from_plan(&error));
        if let Ok(state) = &state {
            let memory = Arc::clone(&state.runtime_env().memory_pool);
            values.lock().session_memory = Some(memory);
        }
        let aggregates = state
            .as_ref()
            .map(mayfly_sql::plan::aggregate_names)
            .unwrap_or_default();
        let variables = Variables::of_session(&engine.globals().variables);
        let connection = Arc::new(Connection {
            engine,
            id,
            state,
            aggregates: Arc::new(aggregates),
            cancel: CancelHandle::default(),
            abandoned: Pending::default(),
            end,
            values,
            turn,
            client_files: Mutex::default(),
            follows_transaction: AtomicBool::default(),
            explains: AtomicBool::default(),
            is_prepared: AtomicBool::default(),
            is_left_away: AtomicBool::default(),
            local: Mutex::new(Local::new(variables)),
            account,
        });
        connection.look_at_settings();
        connection
    }

    /// Takes what statements ask before they look at anything else from the variables.
    pub(crate) fn look_at_settings(&self) {
        let settings = self.local().settings();
        let follows = settings.tracks.transaction != TransactionInfo::Off;
        self.follows_transaction.store(follows, Ordering::Relaxed);
        let is_logged = self.engine.shared().slow_log.is_some();
        let explains = is_logged && settings.slow.tells_explain;
        self.explains.store(explains, Ordering::Relaxed);
    }

    /// Gives back the locks of GET_LOCK. What still runs for the connection may hold it on.
    fn release_locks(&self) {
        let locks = self.values.lock().locks.clone();
        locks.release_all();
    }

    pub(crate) fn client_files(&self) -> Option<ClientFiles> {
        let files = self.client_files.lock();
        files.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn take_client_files(&self, files: ClientFiles) {
        let here = self.client_files.lock();
        *here.unwrap_or_else(PoisonError::into_inner) = Some(files);
    }

    pub(crate) fn local(&self) -> MutexGuard<'_, Local> {
        self.local.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> Result<&SessionState, MySqlError> {
        self.state.as_ref().map_err(Clone::clone)
    }

    /// The account that pays for one statement.
    pub(crate) fn statement_account(&self) -> Account {
        let options = AccountOptions {
            disk_quota_bytes: self.local().settings().statement_quota_bytes,
            ..AccountOptions::default()
        };
        self.account.child("statement", options)
    }

    /// Whether a change waits for COMMIT.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.local().is_in_transaction()
    }

    /// Makes sure that a change of a table can be rolled back, if it is one that can.
    ///
    /// # Errors
    /// 1792 for a shared table in a READ ONLY transaction.
    pub(crate) fn before_change(&self, table: &Arc<Table>) -> Result<(), MySqlError> {
        let mut local = self.local();
        if local.only_reads() && !local.temporary.has(table) {
            return Err(MySqlError::new(ErrorCode::ReadOnlyTransaction, &[]));
        }
        if !local.is_in_transaction() || !local.temporary.has(table) {
            return Ok(());
        }
        let saved = local.transaction.save(table);
        saved.map_err(|error| errors::from_table(&error))
    }

    /// Counts rows that changed, and remembers those that ROLLBACK cannot undo.
    pub(crate) fn changed_rows(&self, table: &Arc<Table>, changes: RowChanges) {
        self.count(|status| status.changes += changes);
        let mut local = self.local();
        local.end_single();
        // Nobody else knows a table that is being made: it goes with the statement.
        let is_shared = || {
            let dictionary = &self.engine.shared().dictionary;
            dictionary.has(table)
        };
        if changes.any() && local.is_in_transaction() && !local.temporary.has(table) && is_shared()
        {
            local.transaction.has_changed_shared();
        }
    }

    /// Most resident bytes of one temporary table: the smaller of the two variables, if set.
    pub(crate) fn temp_table_cap(&self) -> Option<u64> {
        let local = self.local();
        let cap = local
            .variables
            .number("tmp_table_size")
            .min(local.variables.number("max_heap_table_size"));
        (cap != u64::MAX).then_some(cap)
    }

    fn recursion_depth_max(&self) -> u64 {
        self.local().variables.number("cte_max_recursion_depth")
    }

    /// Tells the functions about the session, and begins a list of warnings.
    pub(crate) fn begin_statement(&self, keeps_warnings: bool) {
        self.local().status.questions += 1;
        self.begin_looking(keeps_warnings);
    }

    /// The same for a statement that is only looked at: nobody counts it.
    pub(crate) fn begin_looking(&self, keeps_warnings: bool) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut local = self.local();
        local.keeps_warnings = keeps_warnings;
        if !keeps_warnings {
            local.warnings.clear();
            local.warning_count = 0;
        }
        let is_known = local.told_version == Some(local.variables.version());
        if !is_known {
            local.told_version = Some(local.variables.version());
            let timestamp = local.variables.text("timestamp");
            let fixed = timestamp.parse().unwrap_or(0.0);
            local.fixed_now_micros = (fixed > 0.0).then_some((fixed * 1e6) as i64);
        }
        let clock = || i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        self.values
            .begin(local.fixed_now_micros.unwrap_or_else(clock));
        let mut values = self.values.lock();
        self.tell_database(&local, &mut values.database);
        values.row_count = local.row_count;
        values.found_rows = local.found_rows;
        if !is_known {
            values.connection_id = self.id;
            tell(&mut values, &local.variables);
        }
    }

    /// The context in which the plan of a statement runs.
    pub(crate) fn task_context(
        &self,
        running: &Running,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<TaskContext>, DataFusionError> {
        let context = StatementContext {
            account: running.account.clone(),
            report: Arc::clone(&running.report),
            table_resident_max_bytes: self.temp_table_cap(),
            recursion_depth_max: Some(self.recursion_depth_max()),
            stop: running.stop_flag(),
        };
        let state = self.state().map_err(mayfly_sql::plan::raise)?;
        let batch_rows = mayfly_exec::batch_rows(plan, state.config_options());
        self.task_context_with(context, Some(batch_rows))
    }

    /// The context in which a plan of few rows runs on an account.
    pub(crate) fn task_context_of(
        &self,
        context: StatementContext,
    ) -> Result<Arc<TaskContext>, DataFusionError> {
        self.task_context_with(context, None)
    }

    fn task_context_with(
        &self,
        context: StatementContext,
        batch_rows: Option<usize>,
    ) -> Result<Arc<TaskContext>, DataFusionError> {
        let state = self.state().map_err(mayfly_sql::plan::raise)?;
        let runtime = mayfly_exec::runtime(&context.account, Some(state.runtime_env().as_ref()))?;
        self.values.lock().plan_memory = Some(Arc::downgrade(&runtime.memory_pool));
        let config = state.config().clone();
        let mut config = config
            .with_extension(Arc::new(context))
            .with_extension(Arc::new(MaterializedRows::default()));
        if let Some(rows) = batch_rows.filter(|rows| *rows != config.batch_size()) {
            config = config.with_batch_size(rows);
        }
        Ok(Arc::new(TaskContext::new(
            None,
            state.session_id().to_owned(),
            config,
            state.scalar_functions().clone(),
            state.higher_order_functions().clone(),
            state.aggregate_functions().clone(),
            state.window_functions().clone(),
            runtime,
        )))
    }

    /// Adds an entry to SHOW WARNINGS.
    pub(crate) fn warn(&self, warning: Warning) {
        // Among those of functions, in the order in which they come.
        self.values.note(warning);
    }

    /// Takes the warnings that functions raised into the session's list.
    pub(crate) fn take_warnings(&self) -> u64 {
        let (warnings, count) = {
            let mut values = self.values.lock();
            let count = std::mem::take(&mut values.warning_count);
            (std::mem::take(&mut values.warnings), count)
        };
        let mut local = self.local();
        let kept = warnings.len() as u64;
        for warning in warnings {
            local.add_warning(warning);
        }
        local.warning_count += count.saturating_sub(kept);
        local.warning_count
    }

    pub(crate) fn failed(&self, error: &MySqlError) {
        self.take_warnings();
        let mut local = self.local();
        local.row_count = -1;
        local.add_warning(Warning {
            level: Level::Error,
            error: error.clone(),
        });
    }

    /// Adds the cost of a statement to the counters.
    pub(crate) fn statement_finished(&self, ended: &Ended<'_>) {
        let warnings = self.take_warnings();
        let Ended { stats, tables, .. } = *ended;
        let sent = if ended.is_query { stats.rows } else { 0 };
        let (is_slow, waited) = self.log_if_slow(ended);
        {
            let status = &mut self.engine.globals().status;
            status.questions += 1;
            status.slow_queries += u64::from(is_slow);
            status.add_statement(ended, sent);
        }
        let digest = self.digest(ended.digest, ended.text);
        let mut local = self.local();
        let own_warnings = if local.keeps_warnings { 0 } else { warnings };
        let once = Once::new(ended, own_warnings, waited);
        let digests = &self.engine.shared().digests;
        digests.count(local.database.as_deref(), digest, &once);
        local.status.slow_queries += u64::from(is_slow);
        local.status.add_statement(ended, sent);
        local.last = stats;
        local.last_tables = tables.to_vec();
        let settings = local.settings();
        if settings.profiling && !ended.stages.is_empty() {
            let duration = Duration::from_secs_f64(stats.elapsed_ms / 1000.0);
            let stages = ended.stages.to_vec();
            local
                .profiles
                .add(ended.text, duration, stages, settings.profiles_max);
        }
        if ended.is_query {
            local.found_rows = local.calculated_rows.take().unwrap_or(stats.rows);
            local.row_count = -1;
        }
    }

    /// The digest of a statement, remembered by others like it.
    pub(crate) fn digest<'a>(&self, cell: &'a DigestCell, text: &str) -> &'a Arc<Digest> {
        remembered(cell, || self.digest_of_text(text))
    }

    /// The digest of a text that runs in the database of now. It may be a long one: it is not read
    /// under the lock.
    fn digest_of_text(&self, text: &str) -> Arc<Digest> {
        let (key, ansi_quotes, database) = {
            let mut local = self.local();
            let ansi_quotes = local.settings().has_ansi_quotes;
            match local.digests.get(text, ansi_quotes) {
                Ok(known) => return known,
                Err(key) => (key, ansi_quotes, local.database.clone()),
            }
        };
        let digest = Digest::of(text, ansi_quotes);
        let all = &self.engine.shared().digests;
        let digest = all.shared(database.as_deref(), digest);
        self.local().digests.keep(key, &digest);
        digest
    }

    /// Ends a statement that ran on the thread that asked, and had no beginning of its own.
    pub(crate) fn ended_at_once(
        &self,
        ended: &Ended<'_>,
        affected: u64,
        error: Option<&MySqlError>,
    ) {
        {
            let mut local = self.local();
            local.warnings.clear();
            local.warning_count = 0;
            local.calculated_rows = None;
            local.status.questions += 1;
            local.row_count = i64::try_from(affected).unwrap_or(i64::MAX);
            if error.is_none() {
                local.end_single();
            }
        }
        // Too short for more than one stage.
        let took = Duration::from_secs_f64(ended.stats.elapsed_ms / 1000.0);
        let stages = [Cost::of_time(Stage::Executing, took)];
        self.statement_finished(&Ended {
            stages: &stages,
            ..*ended
        });
        if let Some(error) = error {
            self.failed(error);
        }
    }

    /// The same for a statement that met no rows.
    pub(crate) fn told_at_once(
        &self,
        text: &str,
        digest: &DigestCell,
        started: Instant,
        error: Option<&MySqlError>,
    ) {
        let nothing = Counters::default();
        let told = Ended {
            text,
            digest,
            is_failed: error.is_some(),
            stats: StatementStats::new(started.elapsed(), 0, &[], &nothing),
            is_query: false,
            reads: Reads::default(),
            tables: &[],
            counters: &nothing,
            stages: &[],
        };
        self.ended_at_once(&told, 0, error);
    }

    /// Counts in the session's and in the engine's status.
    pub(crate) fn count(&self, change: impl Fn(&mut Status)) {
        change(&mut self.engine.globals().status);
        change(&mut self.local().status);
    }
}

/// Tells the functions what they read of the variables.
fn tell(values: &mut Values, variables: &Variables) {
    values.version = crate::version::VERSION.to_owned();
    values.time_zone_seconds = time_zone_seconds(&variables.text("time_zone")).unwrap_or(0);
    values.group_concat_max_bytes = variables.number("group_concat_max_len");
    values.max_packet_bytes = variables.number("max_allowed_packet");
    let week = variables.number("default_week_format");
    values.default_week_format = u8::try_from(week).unwrap_or(0);
    let digits = variables.number("div_precision_increment");
    values.division_digits = u8::try_from(digits).unwrap_or(4);
    values.warn_on_division_by_zero = variables.has_mode("ERROR_FOR_DIVISION_BY_ZERO");
    values.warnings_shown = variables.number("max_error_count");
    values.pipes_as_concat = variables.has_mode("PIPES_AS_CONCAT");
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.log_unanswered();
        self.release_locks();
        self.engine.forget(self.id);
        drop(self.leave_tables());
    }
}
