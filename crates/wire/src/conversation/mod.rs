//! The commands of one client, one after the other.
//!
//! A statement and the watch over its client are polled on the same task: first the statement, and
//! only if it waits the socket. A statement that answers at once costs one read, one write and no
//! more than that.

mod prepared;

use std::io;

use bytes::Bytes;
use mayfly_types::{ErrorCode, MySqlError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::clock::within;
use crate::command::{Command, statement_of_long_data};
use crate::endpoint::{Endpoint, Opened, Stopping, end};
use crate::error::{ConnectionError, Failure, idle_disconnect, malformed_packet, unknown_command};
use crate::login::{Login, Peer};
use crate::packets;
use crate::receiver::{self, ReceiveError, Refused, SharedReceiver, lock};
use crate::reply::Reply;
use crate::server::{Connection, Server, StatementCommand};
use crate::statements::Statements;
use crate::summary::{Format, Summary};

/// MULTI_STATEMENTS_ON of COM_SET_OPTION; off is 1.
const MULTI_STATEMENTS_ON: u16 = 0;
const MULTI_STATEMENTS_OFF: u16 = 1;

/// ER_CONNECTION_KILLED of MariaDB: the answer to a statement that kills its own connection.
const CONNECTION_KILLED: u16 = 1927;

type StatementsOf<S> = Statements<
    <<S as Server>::Connection as Connection>::Statement,
    <<S as Server>::Connection as Connection>::Cursor,
>;

/// A client that has logged in.
pub(crate) struct Conversation<'e, S: Server> {
    // fixed
    endpoint: &'e Endpoint<S>,
    // state
    connection: S::Connection,
    login: Login,
    statements: StatementsOf<S>,
    // resources
    reply: Reply,
    receiver: SharedReceiver,
}

/// What ends the wait for a command.
enum Event {
    Packet(Result<Option<Bytes>, ReceiveError>),
    /// A part of a packet has come.
    Begun,
    Killed,
    Stopping,
}

/// What follows a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Command,
    End,
}

impl<S: Server> Endpoint<S> {
    /// Speaks with a client until it goes. Dropping the future closes the connection.
    ///
    /// Runs on the caller's task; only hashing a password goes elsewhere.
    ///
    /// # Errors
    /// How the connection ended if the client did not end it in order; there is nothing left to do
    /// but to log it.
    pub async fn serve<T>(&self, stream: T, peer: Peer) -> Result<(), ConnectionError>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        match self.let_in(stream, &peer).await {
            Ok(None) => Ok(()),
            Ok(Some(opened)) => {
                let mut conversation = Conversation::new(self, opened);
                let ended = conversation.run().await;
                if let Err(error) = &ended {
                    self.server.ended(&peer, Some(conversation.login()), error);
                }
                ended
            }
            Err(error) => {
                self.server.ended(&peer, None, &error);
                Err(error)
            }
        }
    }
}

impl<'e, S: Server> Conversation<'e, S> {
    fn new(endpoint: &'e Endpoint<S>, opened: Opened<S::Connection>) -> Conversation<'e, S> {
        let Opened {
            connection,
            login,
            reply,
        } = opened;
        Conversation {
            endpoint,
            connection,
            login,
            statements: Statements::new(
                endpoint.settings.max_statements,
                reply.sender.share().another(),
            ),
            receiver: reply.receiver(),
            reply,
        }
    }

    /// Until the client or the server ends it.
    async fn run(&mut self) -> Result<(), ConnectionError> {
        let ended = self.converse().await;
        self.tell_exchanged();
        ended
    }

    fn tell_exchanged(&mut self) {
        let (received, sent) = (self.reply.bytes_received(), self.reply.bytes_sent());
        self.connection.exchanged(received, sent);
    }

    async fn converse(&mut self) -> Result<(), ConnectionError> {
        let mut stopping = self.endpoint.stopping();
        loop {
            {
                let mut receiver = lock(&self.receiver);
                receiver.set_sequence(0);
                receiver.set_compressed_sequence(0);
            }
            let read_timeout = self.connection.read_timeout();
            self.reply.read_timeout = read_timeout.unwrap_or(self.endpoint.settings.read_timeout);
            let packet = match self.next_command(&mut stopping).await {
                Some(Event::Packet(Ok(Some(packet)))) => packet,
                Some(Event::Packet(Ok(None))) => return Ok(()),
                Some(Event::Packet(Err(ReceiveError::Refused(refused)))) => {
                    self.pass_over(refused).await?;
                    continue;
                }
                Some(Event::Packet(Err(error))) => return Err(self.refuse(error).await),
                // `next_command` waits for the rest.
                Some(Event::Begun) => continue,
                // Without a word, as MariaDB.
                Some(Event::Killed) => {
                    self.reply.sender.close().await;
                    return Ok(());
                }
                Some(Event::Stopping) => {
                    self.say(&MySqlError::new(ErrorCode::ServerShutdown, &[]))
                        .await;
                    return Ok(());
                }
                None => {
                    self.say(&idle_disconnect()).await;
                    return Err(ConnectionError::IdleTimeout);
                }
            };
            self.reply.take_turn_to_write();
            self.tell_exchanged();
            let obeyed = tokio::select! {
                biased;
                obeyed = self.obey(&packet) => obeyed,
                _ = stopping.wait_for(|stopping| *stopping == Stopping::Now) => {
                    Err(Failure::Protocol(MySqlError::new(ErrorCode::ServerShutdown, &[])))
                }
            };
            let is_killed = obeyed.is_err() && self.is_killed().await;
            let next = match obeyed {
                Ok(next) => next,
                // Who kills itself is told so.
                Err(Failure::Statement(error)) if is_killed && error.code != CONNECTION_KILLED => {
                    self.reply.sender.close().await;
                    return Ok(());
                }
                Err(Failure::Statement(error)) if error.code == CONNECTION_KILLED => {
                    let _told = end(&mut self.reply, Failure::Protocol(error)).await;
                    return Ok(());
                }
                Err(Failure::Statement(error)) => {
                    if !self.pass_over_file(&mut stopping).await? {
                        self.reply.sender.close().await;
                        return Ok(());
                    }
                    self.reply.write_error(&error);
                    Next::Command
                }
                Err(failure) => return Err(end(&mut self.reply, failure).await),
            };
            drop(packet);
            self.tell_exchanged();
            self.reply.sender.flush().await?;
            self.reply.sender.rest();
            if next == Next::End {
                self.reply.sender.close().await;
                return Ok(());
            }
        }
    }

    /// Waits for a command: for its first bytes as long as a client may be idle, and then as long
    /// as the client goes on sending; `None` for a client that says nothing.
    async fn next_command(&mut self, stopping: &mut watch::Receiver<Stopping>) -> Option<Event> {
        let event = async {
            // Before the client's packet: one that never pauses must end too.
            if *stopping.borrow() != Stopping::No {
                return Event::Stopping;
            }
            tokio::select! {
                biased;
                () = self.connection.killed() => Event::Killed,
                packet = receiver::beginning_of_packet(&self.receiver) => {
                    packet.map_or(Event::Begun, Event::Packet)
                }
                _ = stopping.wait_for(|stopping| *stopping != Stopping::No) => Event::Stopping,
            }
        };
        let event = within(self.connection.idle_timeout(), event).await;
        if !matches!(event, Some(Event::Begun)) {
            return event;
        }
        let limit = self.reply.read_timeout;
        Some(tokio::select! {
            biased;
            () = self.connection.killed() => Event::Killed,
            packet = receiver::rest_of_packet(&self.receiver, limit) => Event::Packet(packet),
            _ = stopping.wait_for(|stopping| *stopping != Stopping::No) => Event::Stopping,
        })
    }

    /// Who the client is.
    pub(crate) fn login(&self) -> &Login {
        &self.login
    }

    async fn is_killed(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.connection.killed() => true,
            () = std::future::ready(()) => false,
        }
    }

    /// Does what a command says; its answer, if it gives one, is in the buffer then.
    async fn obey(&mut self, packet: &[u8]) -> Result<Next, Failure> {
        let command = Command::parse(packet).map_err(MySqlError::from)?;
        match command {
            Command::Query(text) => {
                self.reply.begin_command(Format::Text);
                let answer = self.connection.query(text, &mut self.reply);
                watched(&self.receiver, answer).await??;
                self.reply.check_ended()?;
            }
            Command::StmtExecute {
                id,
                wants_cursor,
                parameters,
            } => self.execute(id, wants_cursor, parameters).await?,
            Command::StmtFetch { id, row_count } => self.fetch(id, row_count).await?,
            Command::StmtPrepare(text) => self.prepare(text).await?,
            Command::StmtSendLongData {
                id,
                parameter,
                data,
            } => {
                self.connection.heard(StatementCommand::SendLongData);
                let max = self.reply.max_packet_bytes;
                self.statements.add_long_data(id, parameter, data, max);
            }
            Command::StmtReset(id) => self.reset_statement(id)?,
            Command::StmtClose(id) => {
                self.connection.heard(StatementCommand::Close);
                if let Some(statement) = self.statements.remove(id) {
                    drop(statement.cursor);
                    self.connection.close_statement(statement.prepared);
                }
            }
            Command::Ping => self.ok(packets::OK),
            Command::InitDb(name) => {
                let used = self.connection.use_database(name);
                let summary = watched(&self.receiver, used).await??;
                self.finish(&summary);
            }
            Command::FieldList { table, pattern } => {
                let listed = self.connection.list_fields(table, pattern);
                let columns = watched(&self.receiver, listed).await??;
                let listed = self.reply.write_bare_definitions(&columns);
                unless_killed(self.connection.killed(), listed).await?;
                self.ok(packets::EOF);
            }
            Command::Refresh(what) => {
                let refreshed = self.connection.refresh(what);
                let summary = watched(&self.receiver, refreshed).await??;
                self.finish(&summary);
            }
            Command::ProcessInfo => {
                self.reply.begin_command(Format::Text);
                let answer = self.connection.process_list(&mut self.reply);
                watched(&self.receiver, answer).await??;
                self.reply.check_ended()?;
            }
            Command::Debug => {
                self.connection.debug();
                self.ok(packets::EOF);
            }
            Command::Statistics => {
                let text = self.connection.statistics();
                let write = |out: &mut bytes::BytesMut| out.extend_from_slice(text.as_bytes());
                self.reply.sender.packet(write);
            }
            Command::ProcessKill(connection_id) => {
                let summary = self.connection.kill(connection_id).await?;
                self.finish(&summary);
            }
            Command::SetOption(option) => {
                self.reply.multi_statements = match option {
                    MULTI_STATEMENTS_ON => true,
                    MULTI_STATEMENTS_OFF => false,
                    _ => return Err(unknown_command().into()),
                };
                self.ok(packets::EOF);
            }
            Command::ResetConnection => {
                self.close_statements();
                let reset = self.connection.reset();
                let reset = watched(&self.receiver, reset).await?;
                self.begin_session();
                self.finish(&reset?);
            }
            Command::ChangeUser(rest) => {
                let endpoint = self.endpoint;
                let changed = endpoint.change_user(&mut self.reply, rest, &self.login);
                self.login = Box::pin(changed).await?;
                self.close_statements();
                let changed = self.connection.change_user(&self.login).await;
                self.begin_session();
                self.finish(&changed.map_err(Failure::Protocol)?);
            }
            Command::Quit => return Ok(Next::End),
            Command::Unknown => return Err(unknown_command().into()),
        }
        Ok(Next::Command)
    }

    /// Reads what is left of a file whose statement has failed, as long as the client sends it:
    /// `false` if the connection has to end before.
    async fn pass_over_file(
        &mut self,
        stopping: &mut watch::Receiver<Stopping>,
    ) -> Result<bool, Failure> {
        if !self.reply.file_is_open {
            return Ok(true);
        }
        tokio::select! {
            biased;
            () = self.connection.killed() => Ok(false),
            _ = stopping.wait_for(|stopping| *stopping == Stopping::Now) => Ok(false),
            finished = self.reply.finish_file() => finished.map(|()| true),
        }
    }

    /// Takes what a session has from its beginning.
    fn begin_session(&mut self) {
        let max = self.connection.max_packet_bytes();
        let max = max.unwrap_or(self.endpoint.settings.max_packet_bytes);
        self.reply.set_max_packet_bytes(max);
        let encoding = self.connection.text_encoding();
        self.reply.set_text_encoding(encoding);
    }

    fn close_statements(&mut self) {
        for statement in self.statements.take_all() {
            drop(statement.cursor);
            self.connection.close_statement(statement.prepared);
        }
    }

    /// The answer to a command that only had to be obeyed.
    fn ok(&mut self, header: u8) {
        let summary = Summary::new(self.connection.status());
        self.reply.end_result(&summary, header);
    }

    fn finish(&mut self, summary: &Summary) {
        self.reply.end_result(summary, packets::OK);
    }

    /// Answers a command that there was no memory for.
    async fn pass_over(&mut self, refused: Refused) -> Result<(), ConnectionError> {
        self.reply.take_turn_to_write();
        self.tell_exchanged();
        match statement_of_long_data(&refused.head) {
            // Nobody waits for an answer to this.
            Some(id) => {
                self.connection.heard(StatementCommand::SendLongData);
                self.statements.refuse_long_data(id, refused.error);
            }
            None => self.reply.write_error(&refused.error),
        }
        self.reply.sender.flush().await?;
        self.reply.sender.rest();
        Ok(())
    }

    /// Ends with a client whose packet could not be read. One that sends too much is still
    /// writing, and reads what is wrong only when it is through.
    async fn refuse(&mut self, error: ReceiveError) -> ConnectionError {
        self.reply.take_turn_to_write();
        let too_large = matches!(error, ReceiveError::TooLarge);
        if too_large {
            let sequence = self.reply.sender.sequence();
            self.reply.sender.set_sequence(sequence.wrapping_add(1));
        }
        let ended = end(&mut self.reply, error.into()).await;
        if too_large {
            let limit = self.endpoint.settings.read_timeout;
            let _in_time = within(limit, receiver::drain(&self.receiver)).await;
        }
        ended
    }

    /// Tells an idle client why nothing more comes. MySQL does so since 8.0.24.
    async fn say(&mut self, error: &MySqlError) {
        self.reply.sender.set_sequence(0);
        self.reply.sender.set_compressed_sequence(0);
        self.reply.write_error(error);
        // A client that is gone does not need to know.
        let _sent = self.reply.sender.flush().await;
        self.reply.sender.close().await;
    }
}

/// Runs what a client waits for; stops it when the client goes away.
async fn watched<T>(
    receiver: &SharedReceiver,
    future: impl Future<Output = T>,
) -> Result<T, io::Error> {
    tokio::select! {
        biased;
        value = future => Ok(value),
        () = receiver::gone(receiver) => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Sends what a client may take its time to read; stops when the connection is killed.
async fn unless_killed(
    killed: impl Future<Output = ()>,
    sending: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    tokio::select! {
        biased;
        sent = sending => sent,
        () = killed => Err(MySqlError::new(ErrorCode::QueryInterrupted, &[]).into()),
    }
}

impl From<crate::bytes_in::Malformed> for Failure {
    fn from(_: crate::bytes_in::Malformed) -> Failure {
        Failure::Statement(malformed_packet())
    }
}
