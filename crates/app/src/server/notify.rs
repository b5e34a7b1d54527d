//! What the service manager is told (`Type=notify` of systemd).
//!
//! **Owns** the protocol: a datagram to the socket that `NOTIFY_SOCKET` names, a path or, after an
//! `@`, an abstract name. Without the variable nobody is told.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Clients may come.
pub const READY: &str = "READY=1";
/// The server ends.
pub const STOPPING: &str = "STOPPING=1";

/// Tells the service manager, if there is one. Whom it cannot reach finds out by waiting.
pub fn tell(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let bytes = name.as_encoded_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let sent = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, state, "the service manager cannot be told");
    }
}
