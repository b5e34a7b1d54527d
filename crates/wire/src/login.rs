//! Who comes in: the words of the handshake that a server sees.

use std::net::SocketAddr;

use crate::auth::Secret;

/// Where a client comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Peer {
    /// Over TCP.
    Tcp(SocketAddr),
    /// Over a Unix socket, from a process of that user of the operating system (SO_PEERCRED).
    Unix {
        /// The user's number.
        user_id: u32,
    },
}

impl Peer {
    /// The host as error 1045 and `USER()` say it.
    pub fn host(&self) -> String {
        match self {
            Peer::Tcp(address) if !self.is_loopback() => address.ip().to_canonical().to_string(),
            _ => "localhost".to_owned(),
        }
    }

    /// Whether the client is on the same machine.
    pub(crate) fn is_loopback(&self) -> bool {
        match self {
            Peer::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Peer::Unix { .. } => true,
        }
    }

    /// Whether nobody between can read along.
    pub(crate) fn is_private(&self) -> bool {
        matches!(self, Peer::Unix { .. })
    }
}

/// How a user proves who it is.
#[derive(Clone, Debug)]
pub struct Account {
    /// What its password is compared with.
    pub secret: Secret,
    /// A user of the operating system whose processes need no password over a Unix socket.
    pub socket_user_id: Option<u32>,
}

/// A user that has proved who it is, with what its client asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Login {
    /// The number that the greeting named.
    pub connection_id: u32,
    /// Name of the user.
    pub user: String,
    /// Where the client comes from.
    pub peer: Peer,
    /// The database to begin in.
    pub database: Option<Vec<u8>>,
    /// Number of the collation whose character set the client speaks and wants to read, as
    /// `information_schema.COLLATIONS.ID`; 0 to 255 from the handshake, any from COM_CHANGE_USER.
    pub collation_id: u16,
    /// What the client tells about itself, in its order: `_client_name`, `program_name`, ...
    pub attributes: Vec<(String, String)>,
    /// Whether `interactive_timeout` holds instead of `wait_timeout`.
    pub interactive: bool,
    /// Whether UPDATE counts the rows that it found instead of those that it changed.
    pub found_rows: bool,
    /// Whether function names may be followed by spaces (`sql_mode` IGNORE_SPACE).
    pub ignore_space: bool,
    /// The version and cipher suite of TLS, if the connection is encrypted.
    pub tls: Option<TlsInfo>,
}

/// What `Ssl_version` and `Ssl_cipher` say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsInfo {
    /// `TLSv1.3` or `TLSv1.2`.
    pub version: String,
    /// Name of the cipher suite.
    pub cipher: String,
}
