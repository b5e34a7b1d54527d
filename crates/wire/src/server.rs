//! What a server must be for the protocol to speak for it: three traits and their words.
//!
//! [`Server`] exists once, [`Connection`] once a client, [`Cursor`] once for each statement whose
//! rows a client takes in parts. Futures are `Send`, may wait as long as they like, and are dropped
//! when the client goes away: dropping one stops its statement.
//!
//! An answer is written into a [`Reply`], not returned, so that rows flow while they are computed
//! and a row by a key goes from its table into the buffer of the socket without a batch between.

use std::time::Duration;

use arrow_array::RecordBatch;
use mayfly_types::MySqlError;

use crate::column::ColumnDefinition;
use crate::encoding::TextEncoding;
use crate::error::{ConnectionError, Failure};
use crate::flags::Refresh;
use crate::login::{Account, Login, Peer};
use crate::memory::Memory;
use crate::parameters::Parameter;
use crate::reply::Reply;
use crate::summary::{SessionChange, Summary};

/// The result of writing an answer.
pub type Answered = Result<(), Failure>;

/// A server: who may come in, and what a client gets when it is in.
pub trait Server: Send + Sync + 'static {
    /// What a connection has from its beginning to its end.
    type Place: Send + 'static;
    /// One client that has logged in.
    type Connection: Connection;

    /// Looks at a client that has just connected; gives the number that `CONNECTION_ID()` will say
    /// and what [`connect`](Server::connect) gets. Nothing is known of the client but where it
    /// comes from, so this must cost little, and should not count against `max_connections`: how
    /// many clients may be in the handshake is the endpoint's business.
    ///
    /// # Errors
    /// 1040 when there is no room, 1130 when nobody may come from there, 1053 while the server
    /// stops. The client gets the error instead of a greeting.
    fn admit(&self, peer: &Peer) -> Result<(u32, Self::Place), MySqlError>;

    /// Looks up how a user proves who it is; `None` if there is no such user for that peer. The
    /// client cannot tell the difference between this and a wrong password.
    fn account(&self, user: &str, peer: &Peer) -> impl Future<Output = Option<Account>> + Send;

    /// Hears how a connection ended that its client did not end in order. Without a login nobody
    /// has come in.
    fn ended(&self, peer: &Peer, login: Option<&Login>, error: &ConnectionError) {
        let _ = (peer, login, error);
    }

    /// Opens the connection of a user who has proved its identity, in the database that the login
    /// names.
    ///
    /// # Errors
    /// 1040 when there is no room, 1049 for a database that does not exist, 1044 for one that the
    /// user may not use, and what else a server may refuse. The client gets the error and is
    /// disconnected.
    fn connect(
        &self,
        place: Self::Place,
        login: &Login,
    ) -> impl Future<Output = Result<Self::Connection, MySqlError>> + Send;
}

/// The connection of one client. Commands come one at a time.
///
/// Methods that answer through a [`Reply`] must answer once: [`Reply::done`], or
/// [`Reply::rows`] with [`Rows::finish`](crate::Rows::finish), or an error. After a summary whose
/// status has [`MORE_RESULTS_EXISTS`](crate::ServerStatus::MORE_RESULTS_EXISTS) another answer
/// follows in the same call.
pub trait Connection: Send {
    /// A prepared statement. Dropping it closes it.
    type Statement: Send;
    /// The open result of a prepared statement, [`NoCursor`] if there are none.
    type Cursor: Cursor;

    /// The flags for answers that no statement gives, such as that to COM_PING.
    fn status(&self) -> crate::ServerStatus;

    /// What the client is told of its session with the answer to its login.
    fn changes(&mut self) -> Vec<SessionChange> {
        Vec::new()
    }

    /// How texts are written to a client that has just logged in, was reset or changed its user:
    /// `character_set_results`. Statements that change it tell the [`Reply`].
    fn text_encoding(&self) -> TextEncoding {
        TextEncoding::default()
    }

    /// COM_QUERY. The text is as the client sent it, in its `character_set_client`; more than one
    /// statement is allowed in it if [`Reply::allows_multi_statements`].
    ///
    /// # Errors
    /// Those of the statement, which the client gets in an ERR packet, in the middle of rows too.
    fn query(&mut self, text: &[u8], reply: &mut Reply) -> impl Future<Output = Answered> + Send;

    /// COM_STMT_PREPARE.
    ///
    /// # Errors
    /// Those of the statement, or 1461 when there are too many.
    fn prepare(
        &mut self,
        text: &[u8],
    ) -> impl Future<Output = Result<Prepared<Self::Statement>, MySqlError>> + Send;

    /// COM_STMT_EXECUTE. There are as many parameters as [`Prepared::parameter_count`] says.
    ///
    /// # Errors
    /// As for [`query`](Connection::query).
    fn execute(
        &mut self,
        statement: &mut Self::Statement,
        parameters: &[Parameter<'_>],
        reply: &mut Reply,
    ) -> impl Future<Output = Answered> + Send;

    /// COM_STMT_EXECUTE by a client that would like to fetch the rows piece by piece.
    ///
    /// `Some` opens a cursor, and nothing may have been written to the reply; `None` says that the
    /// statement was answered as by [`execute`](Connection::execute), which clients must be ready
    /// for. The default does the latter. A cursor must not need the connection: other statements
    /// run while it is open.
    ///
    /// # Errors
    /// As for [`query`](Connection::query).
    fn open_cursor(
        &mut self,
        statement: &mut Self::Statement,
        parameters: &[Parameter<'_>],
        reply: &mut Reply,
    ) -> impl Future<Output = Result<Option<OpenCursor<Self::Cursor>>, Failure>> + Send {
        async move {
            self.execute(statement, parameters, reply).await?;
            Ok(None)
        }
    }

    /// Hears of a command on a prepared statement that needs nothing to be done; it may be one of a
    /// statement that there is not.
    fn heard(&mut self, command: StatementCommand) {
        let _ = command;
    }

    /// Hears how many bytes have come from the client and gone to it so far: with each command, and
    /// when its answer is ready to be sent.
    fn exchanged(&mut self, received: u64, sent: u64) {
        let _ = (received, sent);
    }

    /// COM_STMT_CLOSE: the client will not use the statement again.
    fn close_statement(&mut self, statement: Self::Statement) {
        drop(statement);
    }

    /// COM_INIT_DB.
    ///
    /// # Errors
    /// 1049 and 1044 as for USE.
    fn use_database(
        &mut self,
        name: &[u8],
    ) -> impl Future<Output = Result<Summary, MySqlError>> + Send;

    /// COM_FIELD_LIST: the columns of a table whose names match a pattern of LIKE (empty: all),
    /// with their default values as [`ColumnDefinition::default_value`].
    ///
    /// # Errors
    /// 1146 and the like.
    fn list_fields(
        &mut self,
        table: &[u8],
        pattern: &[u8],
    ) -> impl Future<Output = Result<Vec<ColumnDefinition>, MySqlError>> + Send;

    /// COM_REFRESH: FLUSH, or RESET, of what the flags name; nothing for none.
    ///
    /// # Errors
    /// Those of the statements.
    fn refresh(
        &mut self,
        what: Refresh,
    ) -> impl Future<Output = Result<Summary, MySqlError>> + Send;

    /// COM_PROCESS_INFO: answers with the rows of SHOW PROCESSLIST.
    ///
    /// # Errors
    /// As for [`query`](Connection::query).
    fn process_list(&mut self, reply: &mut Reply) -> impl Future<Output = Answered> + Send;

    /// COM_DEBUG: the server writes into its log what shows its state.
    fn debug(&mut self);

    /// COM_STATISTICS: `Uptime: 3  Threads: 1  Questions: 2  Slow queries: 0  Opens: 0  ...`.
    fn statistics(&mut self) -> String;

    /// COM_PROCESS_KILL: ends the connection with that number.
    ///
    /// # Errors
    /// 1094 when there is none, 1095 when it is not the client's.
    fn kill(
        &mut self,
        connection_id: u32,
    ) -> impl Future<Output = Result<Summary, MySqlError>> + Send;

    /// COM_RESET_CONNECTION: rolls back, drops temporary tables, locks, variables and user
    /// variables; the login and the database stay. Prepared statements are dropped by the caller.
    ///
    /// # Errors
    /// Any; the client gets it and stays connected.
    fn reset(&mut self) -> impl Future<Output = Result<Summary, MySqlError>> + Send;

    /// COM_CHANGE_USER after the new user has proved its identity: all that
    /// [`reset`](Connection::reset) does, and the login's user, character set and database.
    ///
    /// # Errors
    /// 1049, 1044; the client gets it and is disconnected.
    fn change_user(
        &mut self,
        login: &Login,
    ) -> impl Future<Output = Result<Summary, MySqlError>> + Send;

    /// How long the client may say nothing: `wait_timeout`, or `interactive_timeout` for a login
    /// with [`Login::interactive`]. Asked before each command.
    fn idle_timeout(&self) -> Duration {
        Duration::from_secs(28_800)
    }

    /// `net_read_timeout`: how long the next bytes of a packet that has begun, or of a file, may
    /// take; `None`: that of the settings. Asked before each command.
    fn read_timeout(&self) -> Option<Duration> {
        None
    }

    /// `max_allowed_packet`: bytes of the longest command, row, and of the long data that wait for
    /// a prepared statement; `None`: those of the settings. Asked after a login, a reset and a
    /// change of the user.
    fn max_packet_bytes(&self) -> Option<usize> {
        None
    }

    /// What pays for the memory that the client makes the protocol take: long packets, long data
    /// and long rows. Asked once, after the login; nobody pays by default, and nothing is refused.
    fn memory(&self) -> Option<Box<dyn Memory>> {
        None
    }

    /// Completes when the connection has been told to end: KILL. It is closed then, without a
    /// word; the client reads only the error of a statement that killed its own connection. Must
    /// be safe to drop and to call again.
    fn killed(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// What a client learns of a statement when it is prepared.
#[derive(Debug)]
pub struct Prepared<S> {
    /// The statement, for [`Connection::execute`].
    pub statement: S,
    /// How many `?` it has. MySQL tells the types of some; clients use the count.
    pub parameter_count: usize,
    /// The columns of its result; empty if it has none. An execution may give others.
    pub columns: Vec<ColumnDefinition>,
    /// Entries that `SHOW WARNINGS` would list.
    pub warnings: u16,
}

/// A command on a prepared statement, to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatementCommand {
    /// COM_STMT_CLOSE.
    Close,
    /// COM_STMT_FETCH.
    Fetch,
    /// COM_STMT_RESET.
    Reset,
    /// COM_STMT_SEND_LONG_DATA.
    SendLongData,
}

/// A result that waits to be fetched.
#[derive(Debug)]
pub struct OpenCursor<C> {
    /// One entry for each column of its batches, in order.
    pub columns: Vec<ColumnDefinition>,
    /// Entries that `SHOW WARNINGS` would list.
    pub warnings: u16,
    /// The rows.
    pub cursor: C,
}

/// Rows that are given when they are asked for. Dropping it closes it.
pub trait Cursor: Send {
    /// The next rows, `None` after the last: at most `rows_max` of them, and at least one. What is
    /// not asked for need not be held.
    ///
    /// # Errors
    /// Those of the statement; the cursor is closed then.
    fn next(
        &mut self,
        rows_max: usize,
    ) -> impl Future<Output = Result<Option<RecordBatch>, MySqlError>> + Send;
}

/// The cursor of a connection that opens none.
#[derive(Debug)]
pub enum NoCursor {}

impl Cursor for NoCursor {
    async fn next(&mut self, _rows_max: usize) -> Result<Option<RecordBatch>, MySqlError> {
        match *self {}
    }
}
