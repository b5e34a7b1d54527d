//! The beginning of a connection: who is there, and what both sides can do.
//!
//! ```text
//!   server: greeting (capabilities, nonce, method)
//!   client: [SSL request, then TLS]  response (capabilities, user, answer to the nonce, ...)
//!   server: [method switch, more data ...]  OK or ERR
//! ```
//!
//! **Source**: "Connection Phase", "Protocol::HandshakeV10", "Protocol::HandshakeResponse41",
//! "Protocol::SSLRequest".

mod authenticate;
mod greeting;
mod response;

pub(crate) use authenticate::{Attempt, Gate};
pub(crate) use greeting::{offered, write_greeting};
pub(crate) use response::{ChangeUser, Response, is_ssl_request};

/// Bytes of the longest packet of a client that has not logged in: a user, an answer, and 64 KiB
/// of attributes, as MySQL allows.
pub(crate) const PACKET_BYTES_MAX: usize = 96 << 10;
