//! One connection as its user holds it.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mayfly_space::Account;
use mayfly_types::{CharacterSet, MySqlError};

use crate::abandoned::AbortOnDrop;
use crate::client_files::{ClientFiles, FileRequests};
use crate::client_memory::ClientMemory;
use crate::column_info::ColumnInfo;
use crate::commands::Command;
use crate::connection::Connection;
use crate::engine::Engine;
use crate::kept::KeptRows;
use crate::outcome::{Outcome, RowStream};
use crate::prepared::{Prepared, PreparedCommand};
use crate::prepared_database::Away;
use crate::progress::Progress;
use crate::running::{CancelHandle, EndHandle, Running};
use crate::stats::StatementStats;
use crate::tracking::SessionChange;
use crate::{names, statement};

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
    /// Whether double quotes enclose names: ANSI_QUOTES in `@@sql_mode`.
    pub has_ansi_quotes: bool,
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

impl Engine {
    /// Opens a session.
    pub fn connect(&self) -> Session {
        self.connect_as(self.next_connection_id())
    }

    /// Opens a session that has a number already, from [`Engine::next_connection_id`].
    pub fn connect_as(&self, id: u64) -> Session {
        let (connection, client) = self.open_connection(id);
        Session::new(connection, client)
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
        let statement = self.connection.in_backticks(statement);
        self.execute_read(&statement).await
    }

    /// Runs a statement whose names stand in backticks.
    async fn execute_read(&mut self, statement: &str) -> Result<Outcome, MySqlError> {
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
        self.execute_read(text).await
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
        ended.map_err(|error| running.shown_error(error))
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
            has_ansi_quotes: settings.has_ansi_quotes,
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
