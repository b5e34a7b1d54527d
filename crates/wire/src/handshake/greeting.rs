//! The server's first packet.

use bytes::BytesMut;

use crate::auth::Nonce;
use crate::bytes_out::{put_terminated, put_u8, put_u16, put_u32};
use crate::flags::{Capabilities, ServerStatus};
use crate::settings::Settings;

const PROTOCOL_VERSION: u8 = 10;
/// Bytes of the nonce in the first of its two places.
const NONCE_HEAD_BYTES: usize = 8;

/// Exactly what is served.
pub(crate) fn offered(settings: &Settings) -> Capabilities {
    let mut offered = Capabilities::LONG_PASSWORD
        | Capabilities::FOUND_ROWS
        | Capabilities::LONG_FLAG
        | Capabilities::CONNECT_WITH_DB
        | Capabilities::ODBC
        | Capabilities::IGNORE_SPACE
        | Capabilities::PROTOCOL_41
        | Capabilities::INTERACTIVE
        | Capabilities::TRANSACTIONS
        | Capabilities::SECURE_CONNECTION
        | Capabilities::MULTI_STATEMENTS
        | Capabilities::MULTI_RESULTS
        | Capabilities::PS_MULTI_RESULTS
        | Capabilities::PLUGIN_AUTH
        | Capabilities::CONNECT_ATTRS
        | Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA
        | Capabilities::SESSION_TRACK
        | Capabilities::DEPRECATE_EOF;
    if settings.tls.is_some() {
        offered = offered | Capabilities::SSL;
    }
    if settings.local_infile {
        offered = offered | Capabilities::LOCAL_FILES;
    }
    if settings.compression {
        offered = offered | Capabilities::COMPRESS | Capabilities::ZSTD_COMPRESSION_ALGORITHM;
    }
    offered
}

/// Appends the payload.
pub(crate) fn write_greeting(
    out: &mut BytesMut,
    settings: &Settings,
    connection_id: u32,
    nonce: &Nonce,
) {
    let (head, tail) = nonce
        .split_at_checked(NONCE_HEAD_BYTES)
        .unwrap_or((nonce, &[]));
    let [low, high] = halves(offered(settings).bits());
    put_u8(out, PROTOCOL_VERSION);
    put_terminated(out, settings.version.as_bytes());
    put_u32(out, connection_id);
    put_terminated(out, head);
    put_u16(out, low);
    put_u8(out, settings.collation_id);
    put_u16(out, ServerStatus::AUTOCOMMIT.bits());
    put_u16(out, high);
    // The nonce and its zero.
    put_u8(
        out,
        u8::try_from(nonce.len().saturating_add(1)).unwrap_or(u8::MAX),
    );
    out.extend_from_slice(&[0; 10]);
    put_terminated(out, tail);
    put_terminated(out, settings.default_method.name().as_bytes());
}

fn halves(bits: u32) -> [u16; 2] {
    let [first, second, third, fourth] = bits.to_le_bytes();
    [
        u16::from_le_bytes([first, second]),
        u16::from_le_bytes([third, fourth]),
    ]
}
