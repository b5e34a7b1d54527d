//! What an endpoint is told once.

use std::time::Duration;

use crate::auth::Method;
use crate::tls::Tls;

/// The settings of an [`Endpoint`](crate::Endpoint). Names are those of MySQL's variables where
/// there is one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// `version`: clients choose what they send by it.
    pub version: String,
    /// `default_authentication_plugin`: what the greeting names, and how a user that does not
    /// exist is asked for its password. Users of another method are recognised as existing.
    pub default_method: Method,
    /// The collation that the greeting names.
    pub collation_id: u8,
    /// `max_allowed_packet`: bytes of the longest command, row, and of the long data that wait for
    /// a prepared statement.
    pub max_packet_bytes: usize,
    /// `connect_timeout`: how long the whole handshake may take.
    pub connect_timeout: Duration,
    /// Clients that may be in the handshake at once. One more makes the oldest go, of the host that
    /// has most of them there.
    pub max_pending_logins: usize,
    /// `net_read_timeout`: how long each read may take from a client that has to send something:
    /// the rest of a packet, or a file.
    pub read_timeout: Duration,
    /// `net_write_timeout`: how long a client may not read.
    pub write_timeout: Duration,
    /// Prepared statements that one connection may hold.
    pub max_statements: usize,
    /// `local_infile`: whether clients may be asked for files.
    pub local_infile: bool,
    /// `protocol_compression_algorithms`: whether zlib and zstd are offered.
    pub compression: bool,
    /// `require_secure_transport`: refuse TCP without TLS.
    pub require_secure_transport: bool,
    /// The certificate and key, if TLS is offered.
    pub tls: Option<Tls>,
}

impl Settings {
    /// MySQL's defaults for a server of that version, without TLS and LOCAL INFILE.
    pub fn new(version: impl Into<String>) -> Settings {
        Settings {
            version: version.into(),
            default_method: Method::CachingSha2,
            collation_id: 255,
            max_packet_bytes: 64 << 20,
            connect_timeout: Duration::from_secs(10),
            max_pending_logins: 128,
            read_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            max_statements: 16_382,
            local_infile: false,
            compression: true,
            require_secure_transport: false,
            tls: None,
        }
    }
}
