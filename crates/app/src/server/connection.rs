//! One client: its commands are statements of a session.

use std::borrow::Cow;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use mayfly_session::{
    ClientMemory, Cut, EndHandle, FileRequest, FileRequests, KeptRows, Outcome, Prepared,
    PreparedCommand, Session, SessionChange as Change, State, Statements, client_text, statements,
};
use mayfly_types::{CharacterSet, ErrorCode, MySqlError};
use mayfly_wire::{
    Answered, ColumnDefinition, Connection, Cursor, Failure, Login, Memory, OpenCursor, Parameter,
    Peer, Prepared as Described, RecordBatch, Refresh, Reply, ServerStatus, SessionChange,
    StatementCommand, Summary, TextEncoding,
};

use super::columns::{Value, definition};
use super::shared::{Place, Shared};
use super::{log, refresh};

/// Bytes of a text that are looked at for its next statement before others of the thread go on.
const LOOKED_AT_BYTES: usize = 64 << 10;
/// Bytes of a text beyond which a copy is paid for, and leaves something to tidy up.
const LONG_BYTES: usize = 64 << 10;
/// Bytes in UTF-8 of the longest character that another set spells with one.
const BYTES_OF_BYTE_MAX: usize = 3;
/// Bytes of a piece of a client's file that is handed to a statement.
const FILE_PIECE_BYTES: usize = 64 << 10;
/// Parameters of a statement that can be told to a client.
const PARAMETERS_MAX: usize = u16::MAX as usize;

/// A client that has logged in.
pub struct Client {
    // fixed
    shared: Arc<Shared>,
    end: EndHandle,
    // state
    is_interactive: bool,
    session: Session,
    /// What it sends is in this character set.
    set: CharacterSet,
    /// The files that it asks for.
    files: FileRequests,
    // resources
    _place: Place,
}

impl Client {
    pub async fn open(
        shared: Arc<Shared>,
        place: Place,
        login: &Login,
    ) -> Result<Client, MySqlError> {
        let mut session = shared.engine.connect_as(u64::from(login.connection_id));
        let mut client = Client {
            files: session.client_files(),
            end: session.end_handle(),
            shared,
            is_interactive: login.interactive,
            session,
            set: CharacterSet::default(),
            _place: place,
        };
        client.begin(login).await?;
        Ok(client)
    }

    /// Makes the session that of a login.
    async fn begin(&mut self, login: &Login) -> Result<(), MySqlError> {
        let user = format!("{}@{}", login.user, login.peer.host());
        self.session.set_user(&user);
        if let Peer::Tcp(address) = login.peer {
            self.session.set_client_port(Some(address.port()));
        }
        if login.interactive {
            self.session.wait_for_person();
        }
        self.session.count_found_rows(login.found_rows);
        if let Some(tls) = &login.tls {
            self.session.set_encryption(&tls.version, &tls.cipher);
        }
        self.session.set_client_collation(login.collation_id)?;
        self.set = self.session.state().client_set;
        if let Some(database) = login.database.as_deref().filter(|name| !name.is_empty()) {
            self.change_database(database).await?;
        }
        Ok(())
    }

    async fn change_database(&mut self, name: &[u8]) -> Result<(), MySqlError> {
        let name = self.set.decode(name)?.replace('`', "``");
        self.session.execute(&format!("USE `{name}`")).await?;
        Ok(())
    }

    /// Runs statements that stand in one text.
    async fn run_all(&mut self, text: &[u8], reply: &mut Reply) -> Answered {
        let mut text = text;
        // mysqlslap sends the end of its own strings too.
        while let Some(before) = text.strip_suffix(b"\0") {
            text = before;
        }
        if !reply.allows_multi_statements() {
            return self.run(text, false, reply).await;
        }
        let mut has_ansi_quotes = self.session.state().has_ansi_quotes;
        let mut cuts = statements(text, has_ansi_quotes);
        let mut next = next_statement(&mut cuts).await;
        while let Some(range) = next {
            next = next_statement(&mut cuts).await;
            let statement = text.get(range).unwrap_or_default();
            self.run(statement, next.is_some(), reply).await?;
            if let Some(following) = &next
                && self.session.state().has_ansi_quotes != has_ansi_quotes
            {
                // The statement changed how the rest of the text is read.
                has_ansi_quotes = !has_ansi_quotes;
                text = text.get(following.start..).unwrap_or_default();
                cuts = statements(text, has_ansi_quotes);
                next = next_statement(&mut cuts).await;
            }
        }
        Ok(())
    }

    /// Reads a text that was sent; what pays for it comes with it, where it is a long copy.
    fn read_text<'t>(
        &self,
        bytes: &'t [u8],
    ) -> Result<(Cow<'t, str>, Option<ClientMemory>), MySqlError> {
        if bytes.len() <= LONG_BYTES {
            return Ok((client_text(bytes, self.set)?, None));
        }
        if self.set == CharacterSet::Utf8mb4
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return Ok((Cow::Borrowed(text), None));
        }
        let mut held = self.session.client_memory()?;
        held.resize(bytes.len().saturating_mul(BYTES_OF_BYTE_MAX) as u64)?;
        let read = client_text(bytes, self.set)?;
        held.resize(match &read {
            Cow::Borrowed(_) => 0,
            Cow::Owned(text) => text.capacity() as u64,
        })?;
        Ok((read, Some(held)))
    }

    /// Takes the character sets that the session has from here on; gives its state.
    fn look(&mut self, reply: &mut Reply) -> State {
        let state = self.session.state();
        self.set = state.client_set;
        reply.set_text_encoding(encoding(&state));
        state
    }

    /// Runs the text of a statement, which may be that of a prepared one, and fetches the files
    /// that it asks for meanwhile.
    async fn executed(
        &mut self,
        text: &str,
        prepared: Option<&Prepared>,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        // What an earlier statement asked for, and ended without.
        while self.files.try_recv().is_ok() {}
        let session = &mut self.session;
        let mut executed = pin!(async {
            match prepared {
                Some(prepared) => session.execute_prepared(prepared, text).await,
                None => session.execute(text).await,
            }
        });
        loop {
            tokio::select! {
                biased;
                ended = &mut executed => return Ok(ended?),
                Some(request) = self.files.recv() => fetch(request, reply, &self.end).await?,
            }
        }
    }

    async fn run(&mut self, statement: &[u8], leads: bool, reply: &mut Reply) -> Answered {
        if statement.len() > LONG_BYTES {
            self.shared.has_let_go.store(true, Ordering::Relaxed);
        }
        let (read, _held) = self.read_text(statement)?;
        let executed = self.executed(&read, None, reply).await;
        // Of several assignments the first may have been made.
        let state = self.look(reply);
        self.answer(executed?, leads, &state, reply).await?;
        // What follows in the text sends bytes of its own.
        if leads {
            self.session
                .exchanged(reply.bytes_received(), reply.bytes_sent());
        }
        Ok(())
    }

    /// Sends the result of a statement.
    async fn answer(
        &mut self,
        outcome: Outcome,
        leads: bool,
        state: &State,
        reply: &mut Reply,
    ) -> Answered {
        let more = match leads {
            true => ServerStatus::MORE_RESULTS_EXISTS,
            false => ServerStatus::empty(),
        };
        match outcome {
            Outcome::Done {
                affected_rows,
                last_insert_id,
                warnings,
                info,
            } => {
                let summary = Summary {
                    affected_rows,
                    last_insert_id,
                    status: status(state) | more,
                    warnings,
                    info,
                    changes: self.told(state, reply),
                };
                reply.done(&summary).await
            }
            Outcome::Rows {
                columns,
                mut batches,
            } => {
                let columns: Vec<ColumnDefinition> = columns.iter().map(definition).collect();
                let tells = reply.tells_changes(true);
                let described = reply.rows(&columns, status(state));
                let mut rows = unless_ended(&self.end, described).await?;
                while let Some(batch) = batches.next().await {
                    let batch = batch?;
                    unless_ended(&self.end, rows.push_batch(&batch)).await?;
                }
                let state = self.session.state();
                let summary = Summary {
                    status: status(&state) | more,
                    warnings: state.warnings,
                    changes: match tells {
                        true if state.has_changes => Connection::changes(self),
                        _ => Vec::new(),
                    },
                    ..Summary::default()
                };
                rows.finish(&summary).await
            }
        }
    }

    /// A prepared statement with the values that a client sent for it.
    fn text_of(
        &self,
        statement: &Prepared,
        parameters: &[Parameter<'_>],
    ) -> Result<String, MySqlError> {
        let values = parameters.iter().map(|sent| Value::of(sent, self.set));
        let values: Vec<Value<'_>> = values.collect();
        let values: Vec<_> = values.iter().map(Value::parameter).collect();
        statement.with(&values)
    }

    /// What a client is told of its session with an answer that has no rows.
    fn told(&mut self, state: &State, reply: &Reply) -> Vec<SessionChange> {
        match state.has_changes && reply.tells_changes(false) {
            true => Connection::changes(self),
            false => Vec::new(),
        }
    }

    /// The end of a command that is no statement.
    fn summary(&mut self) -> Summary {
        Summary {
            changes: Connection::changes(self),
            ..Summary::new(self.status())
        }
    }
}

/// The memory that the protocol takes for a client, paid from the budget.
struct OfBudget(ClientMemory);

impl Memory for OfBudget {
    fn resize(&mut self, bytes: usize) -> Result<(), MySqlError> {
        self.0.resize(bytes as u64)
    }
}

/// The rows of a cursor.
pub struct Fetched(KeptRows);

impl Cursor for Fetched {
    async fn next(&mut self, rows_max: usize) -> Result<Option<RecordBatch>, MySqlError> {
        self.0.next(rows_max).await
    }
}

impl Connection for Client {
    type Statement = Prepared;
    type Cursor = Fetched;

    fn status(&self) -> ServerStatus {
        status(&self.session.state())
    }

    fn changes(&mut self) -> Vec<SessionChange> {
        let changes = self.session.take_changes();
        changes.into_iter().map(told_change).collect()
    }

    fn heard(&mut self, command: StatementCommand) {
        let command = match command {
            StatementCommand::Close => PreparedCommand::Close,
            StatementCommand::Fetch => PreparedCommand::Fetch,
            StatementCommand::Reset => PreparedCommand::Reset,
            StatementCommand::SendLongData => PreparedCommand::LongData,
            _ => return,
        };
        self.session.count_prepared(command);
    }

    fn exchanged(&mut self, received: u64, sent: u64) {
        self.session.exchanged(received, sent);
    }

    fn text_encoding(&self) -> TextEncoding {
        encoding(&self.session.state())
    }

    async fn query(&mut self, query: &[u8], reply: &mut Reply) -> Answered {
        self.run_all(query, reply).await
    }

    async fn prepare(&mut self, statement: &[u8]) -> Result<Described<Prepared>, MySqlError> {
        let (read, _held) = self.read_text(statement)?;
        let prepared = self.session.prepare(&read).await?;
        // More than the protocol can count are refused by it.
        let parameter_count = prepared
            .parameter_count()
            .min(PARAMETERS_MAX.saturating_add(1));
        Ok(Described {
            parameter_count,
            columns: prepared.columns().iter().map(definition).collect(),
            warnings: 0,
            statement: prepared,
        })
    }

    async fn execute(
        &mut self,
        statement: &mut Prepared,
        parameters: &[Parameter<'_>],
        reply: &mut Reply,
    ) -> Answered {
        let text = self.text_of(statement, parameters)?;
        let mut executed = self.executed(&text, Some(statement), reply).await;
        let state = self.look(reply);
        if let Ok(Outcome::Rows { columns, .. }) = &mut executed {
            statement.label(columns);
        }
        self.answer(executed?, false, &state, reply).await
    }

    /// The rows are kept before the first is read, as MySQL does: what other statements do to their
    /// tables does not concern them, and they hold no memory that others wait for.
    async fn open_cursor(
        &mut self,
        statement: &mut Prepared,
        parameters: &[Parameter<'_>],
        reply: &mut Reply,
    ) -> Result<Option<OpenCursor<Fetched>>, Failure> {
        let text = self.text_of(statement, parameters)?;
        let executed = self.executed(&text, Some(statement), reply).await;
        let state = self.look(reply);
        match executed? {
            Outcome::Rows {
                mut columns,
                batches,
            } => {
                statement.label(&mut columns);
                let kept = self.session.keep(batches).await?;
                Ok(Some(OpenCursor {
                    columns: columns.iter().map(definition).collect(),
                    warnings: self.session.state().warnings,
                    cursor: Fetched(kept),
                }))
            }
            done @ Outcome::Done { .. } => {
                self.answer(done, false, &state, reply).await?;
                Ok(None)
            }
        }
    }

    async fn use_database(&mut self, name: &[u8]) -> Result<Summary, MySqlError> {
        self.change_database(name).await?;
        Ok(self.summary())
    }

    async fn list_fields(
        &mut self,
        table: &[u8],
        // The shell asks for all columns; nobody is known to send a pattern.
        _pattern: &[u8],
    ) -> Result<Vec<ColumnDefinition>, MySqlError> {
        let name = self.set.decode(table)?.replace('`', "``");
        let query = format!("SELECT * FROM `{name}` LIMIT 0");
        let columns = self.session.describe(&query).await?;
        let columns = columns.iter().map(|column| ColumnDefinition {
            default_value: Some(None),
            ..definition(column)
        });
        Ok(columns.collect())
    }

    async fn refresh(&mut self, what: Refresh) -> Result<Summary, MySqlError> {
        for statement in refresh::statements(what) {
            self.session.execute(&statement).await?;
        }
        Ok(self.summary())
    }

    async fn process_list(&mut self, reply: &mut Reply) -> Answered {
        self.run(b"SHOW PROCESSLIST", false, reply).await
    }

    fn debug(&mut self) {
        log::state(&self.shared.engine);
    }

    fn statistics(&mut self) -> String {
        self.shared.engine.statistics()
    }

    async fn kill(&mut self, connection_id: u32) -> Result<Summary, MySqlError> {
        self.session
            .execute(&format!("KILL {connection_id}"))
            .await?;
        Ok(Summary::new(self.status()))
    }

    async fn reset(&mut self) -> Result<Summary, MySqlError> {
        self.session.reset().await;
        if self.is_interactive {
            self.session.wait_for_person();
        }
        self.set = self.session.state().client_set;
        Ok(Summary::new(self.status()))
    }

    async fn change_user(&mut self, login: &Login) -> Result<Summary, MySqlError> {
        self.session.reset().await;
        self.session.leave_database();
        self.begin(login).await?;
        Ok(self.summary())
    }

    fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.session.idle_seconds())
    }

    fn read_timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.session.read_seconds()))
    }

    fn max_packet_bytes(&self) -> Option<usize> {
        Some(self.session.max_packet_bytes())
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        let memory = self.session.client_memory();
        memory
            .ok()
            .map(|memory| Box::new(OfBudget(memory)) as Box<dyn Memory>)
    }

    async fn killed(&self) {
        self.end.wait().await;
    }
}

/// Where the next statement of a text stands. Others of this thread wait meanwhile, but not long.
async fn next_statement(cuts: &mut Statements<'_>) -> Option<Range<usize>> {
    loop {
        match cuts.next_within(LOOKED_AT_BYTES) {
            Cut::Statement(range) => return Some(range),
            Cut::End => return None,
            Cut::Unfinished => tokio::task::yield_now().await,
        }
    }
}

/// Sends what the client may take its time to read; stops when the connection is told to end.
async fn unless_ended<T>(
    end: &EndHandle,
    sending: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        sent = sending => sent,
        () = end.wait() => Err(MySqlError::new(ErrorCode::QueryInterrupted, &[]).into()),
    }
}

/// Hands a file of the client over to the statement that asks for it, until either has enough.
async fn fetch(request: FileRequest, reply: &mut Reply, end: &EndHandle) -> Result<(), Failure> {
    let mut file = match reply.local_infile(request.name.as_bytes()).await {
        Ok(file) => file,
        Err(Failure::Statement(error)) => {
            // Where it is gone, it does not want to know.
            let _gone = request.pieces.send(Err(error)).await;
            return Ok(());
        }
        Err(failure) => return Err(failure),
    };
    loop {
        let piece = tokio::select! {
            biased;
            piece = file.next() => piece?,
            // The statement has ended.
            () = request.pieces.closed() => return Ok(()),
            // The client may take its time to send.
            () = end.wait() => {
                return Err(MySqlError::new(ErrorCode::QueryInterrupted, &[]).into());
            }
        };
        let Some(piece) = piece else {
            let _gone = request.pieces.send(Ok(Vec::new())).await;
            return Ok(());
        };
        // A packet is as long as the client makes it; what waits for the statement is not.
        for part in piece.chunks(FILE_PIECE_BYTES) {
            if request.pieces.send(Ok(part.to_vec())).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// A change of the session as the protocol tells it.
fn told_change(change: Change) -> SessionChange {
    match change {
        Change::Variable { name, value } => SessionChange::SystemVariable {
            name: name.to_owned(),
            value,
        },
        Change::Schema(name) => SessionChange::Schema(name),
        Change::State => SessionChange::State,
        Change::TransactionState(state) => SessionChange::TransactionState(state),
        Change::TransactionCharacteristics(statements) => {
            SessionChange::TransactionCharacteristics(statements)
        }
    }
}

/// The flags of a state.
fn status(state: &State) -> ServerStatus {
    let flag = |is_set: bool, flag: ServerStatus| match is_set {
        true => flag,
        false => ServerStatus::empty(),
    };
    flag(state.autocommits, ServerStatus::AUTOCOMMIT)
        | flag(state.is_in_transaction, ServerStatus::IN_TRANS)
        | flag(state.only_reads, ServerStatus::IN_TRANS_READONLY)
        | flag(state.has_ansi_quotes, ServerStatus::ANSI_QUOTES)
}

/// How the client reads its results.
fn encoding(state: &State) -> TextEncoding {
    match state.results_set {
        Some((set, collation_id)) => TextEncoding::with_collation(set, collation_id),
        None => TextEncoding::UNCONVERTED,
    }
}
