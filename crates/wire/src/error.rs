//! What can go wrong between a client and the server.
//!
//! Errors of a statement are the client's to read; errors of the connection end it. The numbers
//! that only the protocol itself reports stand here, next to those of `mayfly-types`.

use std::io;

use mayfly_types::MySqlError;

/// Why an answer was not given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The statement failed; the client gets this error and stays connected.
    #[error(transparent)]
    Statement(#[from] MySqlError),
    /// The client cannot be reached any more; the connection ends.
    #[error("the connection failed: {0}")]
    Transport(#[from] io::Error),
    /// The client broke the protocol in a way that leaves nothing to agree on. It gets this error,
    /// then the connection ends.
    #[error(transparent)]
    Protocol(MySqlError),
}

/// How a connection ended, if not by COM_QUIT or by closing between two commands.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The client was told this and disconnected: refused, not authenticated, out of protocol.
    #[error(transparent)]
    Refused(#[from] MySqlError),
    /// Reading or writing failed, or the client closed in the middle of something.
    #[error("the connection failed: {0}")]
    Transport(#[from] io::Error),
    /// The handshake took longer than `connect_timeout`.
    #[error("the handshake was not finished in time")]
    HandshakeTimeout,
    /// Too many clients were in the handshake, and this was the oldest of its host.
    #[error("the handshake was not finished when others came")]
    Displaced,
    /// The client said nothing for `wait_timeout`.
    #[error("the client was idle for longer than wait_timeout")]
    IdleTimeout,
}

impl From<Failure> for ConnectionError {
    fn from(failure: Failure) -> ConnectionError {
        match failure {
            Failure::Statement(error) | Failure::Protocol(error) => ConnectionError::Refused(error),
            Failure::Transport(error) => ConnectionError::Transport(error),
        }
    }
}

fn error(code: u16, sqlstate: &'static str, message: impl Into<String>) -> MySqlError {
    MySqlError {
        code,
        sqlstate,
        message: message.into(),
    }
}

/// 1040: for [`Server::admit`](crate::Server::admit) when there is no room.
pub fn too_many_connections() -> MySqlError {
    error(1040, "08004", "Too many connections")
}

pub(crate) fn bad_handshake() -> MySqlError {
    error(1043, "08S01", "Bad handshake")
}

pub(crate) fn access_denied(user: &str, host: &str, with_password: bool) -> MySqlError {
    let answer = if with_password { "YES" } else { "NO" };
    error(
        1045,
        "28000",
        format!("Access denied for user '{user}'@'{host}' (using password: {answer})"),
    )
}

pub(crate) fn unknown_command() -> MySqlError {
    error(1047, "08S01", "Unknown command")
}

pub(crate) fn internal(what: &str) -> MySqlError {
    error(1105, "HY000", format!("internal error: {what}"))
}

pub(crate) fn packet_too_large() -> MySqlError {
    error(
        1153,
        "08S01",
        "Got a packet bigger than 'max_allowed_packet' bytes",
    )
}

pub(crate) fn packets_out_of_order() -> MySqlError {
    error(1156, "08S01", "Got packets out of order")
}

pub(crate) fn cannot_uncompress() -> MySqlError {
    error(1157, "08S01", "Couldn't uncompress communication packet")
}

pub(crate) fn wrong_arguments(of: &str) -> MySqlError {
    error(1210, "HY000", format!("Incorrect arguments to {of}"))
}

pub(crate) fn not_supported(what: &str) -> MySqlError {
    error(
        1235,
        "42000",
        format!("This version of MySQL doesn't yet support '{what}'"),
    )
}

pub(crate) fn unknown_statement(id: u32, of: &str) -> MySqlError {
    error(
        1243,
        "HY000",
        format!("Unknown prepared statement handler ({id}) given to {of}"),
    )
}

pub(crate) fn old_protocol() -> MySqlError {
    error(
        1251,
        "08004",
        "Client does not support authentication protocol requested by server; \
         consider upgrading MySQL client",
    )
}

pub(crate) fn no_open_cursor(id: u32) -> MySqlError {
    error(
        1421,
        "HY000",
        format!("The statement ({id}) has no open cursor."),
    )
}

/// As MySQL 8.0 says it.
pub(crate) fn long_data_too_long() -> MySqlError {
    error(
        1105,
        "HY000",
        "Parameter of prepared statement which is set through mysql_send_long_data() is longer \
         than 'max_allowed_packet' bytes",
    )
}

pub(crate) fn too_many_statements(max: usize) -> MySqlError {
    error(
        1461,
        "42000",
        format!("Can't create more than max_prepared_stmt_count statements (current value: {max})"),
    )
}

pub(crate) fn malformed_packet() -> MySqlError {
    error(1835, "HY000", "Malformed communication packet.")
}

pub(crate) fn secure_transport_required() -> MySqlError {
    error(
        3159,
        "HY000",
        "Connections using insecure transport are prohibited while \
         --require_secure_transport=ON.",
    )
}

pub(crate) fn local_infile_disabled() -> MySqlError {
    error(
        3948,
        "42000",
        "Loading local data is disabled; this must be enabled on both the client and server sides",
    )
}

pub(crate) fn idle_disconnect() -> MySqlError {
    error(
        4031,
        "HY000",
        "The client was disconnected by the server because of inactivity. See wait_timeout and \
         interactive_timeout for configuring this behavior.",
    )
}
