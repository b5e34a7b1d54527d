//! The bytes of a client, and what becomes of them: shared by the targets.

use std::sync::LazyLock;

use mayfly_wire::{Capabilities, ConnectionError, Endpoint, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};

use super::parrot::Parrot;

/// Bytes of the longest command, row, and of the long data that wait for a statement.
pub const PACKET_BYTES_MAX: usize = 64 << 10;
/// Statements that a client may prepare.
pub const STATEMENTS_MAX: usize = 20;

/// What a client needs to be served at all.
pub const LEAST: Capabilities = Capabilities::PROTOCOL_41.with(Capabilities::SECURE_CONNECTION);

pub static ENDPOINT: LazyLock<Endpoint<Parrot>> = LazyLock::new(|| {
    let mut settings = Settings::new("8.4.0-Parrot");
    settings.local_infile = true;
    settings.max_packet_bytes = PACKET_BYTES_MAX;
    settings.max_statements = STATEMENTS_MAX;
    Endpoint::new(Parrot::new(), settings)
});

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
}

/// What a client does when it has said everything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It closes its side, so that the server never waits for it, but stops what still runs.
    Closes,
    /// It waits for the server, which was told to end.
    Waits,
}

/// Sends bytes and reads all answers.
pub fn speak(sent: &[u8], then: Then) -> (Result<(), ConnectionError>, Vec<u8>) {
    RUNTIME.with(|runtime| runtime.block_on(exchange(sent, then)))
}

async fn exchange(sent: &[u8], then: Then) -> (Result<(), ConnectionError>, Vec<u8>) {
    let endpoint = &*ENDPOINT;
    let (ours, theirs) = tokio::io::duplex(4 << 10);
    let (mut read, mut write) = tokio::io::split(ours);
    let serve = endpoint.serve(theirs, endpoint.server().next_peer());
    let say = async {
        // The server may have gone.
        let _sent = write.write_all(sent).await;
        if then == Then::Closes {
            let _closed = write.shutdown().await;
        }
    };
    let hear = async {
        let mut answers = Vec::new();
        let _read = read.read_to_end(&mut answers).await;
        answers
    };
    let (how, (), answers) = tokio::join!(serve, say, hear);
    (how, answers)
}

/// The payloads of packets. Whatever is sent, the server sends whole packets, but for the last to a
/// client that was gone.
///
/// # Panics
/// If it does not.
pub fn payloads<'a>(
    mut answers: &'a [u8],
    ended: &Result<(), ConnectionError>,
) -> Vec<(u8, &'a [u8])> {
    let was_gone = matches!(ended, Err(ConnectionError::Transport(_)));
    let mut payloads = Vec::new();
    while let Some((header, rest)) = answers.split_first_chunk::<4>() {
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        if was_gone && len > rest.len() {
            return payloads;
        }
        assert!(
            len <= rest.len(),
            "a packet of {len} bytes of {}: {ended:?}",
            rest.len()
        );
        payloads.push((header[3], &rest[..len]));
        answers = &rest[len..];
    }
    assert!(answers.is_empty() || was_gone, "the beginning of a header");
    payloads
}

/// The response to the greeting of a user without a password.
pub fn response(capabilities: Capabilities) -> Vec<u8> {
    let mut packet = capabilities.bits().to_le_bytes().to_vec();
    packet.extend_from_slice(&(1_u32 << 24).to_le_bytes());
    packet.push(8);
    packet.extend_from_slice(&[0; 23]);
    packet.extend_from_slice(b"root\0");
    packet.push(0);
    if capabilities.contains(Capabilities::CONNECT_WITH_DB) {
        packet.extend_from_slice(b"test\0");
    }
    if capabilities.contains(Capabilities::PLUGIN_AUTH) {
        packet.extend_from_slice(b"mysql_native_password\0");
    }
    if capabilities.contains(Capabilities::CONNECT_ATTRS) {
        packet.extend_from_slice(b"\x04\x01a\x01b");
    }
    if capabilities.contains(Capabilities::ZSTD_COMPRESSION_ALGORITHM) {
        packet.push(3);
    }
    packet
}

pub fn push_packet(out: &mut Vec<u8>, number: u8, payload: &[u8]) {
    let header = payload.len() as u32 | u32::from(number) << 24;
    out.extend_from_slice(&header.to_le_bytes());
    out.extend_from_slice(payload);
}
