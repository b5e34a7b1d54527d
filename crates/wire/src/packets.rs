//! The packets that end an answer: OK, EOF, ERR.

use bytes::BytesMut;
use mayfly_types::MySqlError;

use crate::bytes_out::{put_bytes, put_length, put_u8, put_u16};
use crate::encoding::TextEncoding;
use crate::flags::ServerStatus;
use crate::summary::{SessionChange, Summary};

/// First byte of an OK packet.
pub(crate) const OK: u8 = 0x00;
/// First byte of an EOF packet, and of the OK packet that stands for it.
pub(crate) const EOF: u8 = 0xFE;
/// First byte of an ERR packet.
pub(crate) const ERR: u8 = 0xFF;
/// The bytes of an error's text that clients have room for: `MYSQL_ERRMSG_SIZE`.
const MESSAGE_BYTES_MAX: usize = 512;

/// Kinds of session changes: `enum_session_state_type`.
mod change {
    pub(super) const SYSTEM_VARIABLES: u8 = 0;
    pub(super) const SCHEMA: u8 = 1;
    pub(super) const STATE_CHANGE: u8 = 2;
    pub(super) const TRANSACTION_CHARACTERISTICS: u8 = 4;
    pub(super) const TRANSACTION_STATE: u8 = 5;
}

/// An OK packet. MySQL writes the text with its length whatever the client can do.
pub(crate) fn write_ok(out: &mut BytesMut, header: u8, summary: &Summary, tracks: bool) {
    let tells = tracks && !summary.changes.is_empty();
    let status = match tells {
        true => summary.status | ServerStatus::SESSION_STATE_CHANGED,
        false => summary.status.without(ServerStatus::SESSION_STATE_CHANGED),
    };
    put_u8(out, header);
    put_length(out, summary.affected_rows);
    put_length(out, summary.last_insert_id);
    put_u16(out, status.bits());
    put_u16(out, summary.warnings);
    if tells || !summary.info.is_empty() {
        put_bytes(out, summary.info.as_bytes());
    }
    if tells {
        let mut changes = BytesMut::new();
        for change in &summary.changes {
            write_change(&mut changes, change);
        }
        put_bytes(out, &changes);
    }
}

fn write_change(out: &mut BytesMut, change: &SessionChange) {
    let mut data = BytesMut::new();
    let kind = match change {
        SessionChange::SystemVariable { name, value } => {
            put_bytes(&mut data, name.as_bytes());
            put_bytes(&mut data, value.as_bytes());
            change::SYSTEM_VARIABLES
        }
        SessionChange::Schema(name) => {
            put_bytes(&mut data, name.as_bytes());
            change::SCHEMA
        }
        SessionChange::State => {
            // Alone without a length of its own.
            data.extend_from_slice(b"1");
            change::STATE_CHANGE
        }
        SessionChange::TransactionState(state) => {
            put_bytes(&mut data, state.as_bytes());
            change::TRANSACTION_STATE
        }
        SessionChange::TransactionCharacteristics(statements) => {
            put_bytes(&mut data, statements.as_bytes());
            change::TRANSACTION_CHARACTERISTICS
        }
    };
    put_u8(out, kind);
    put_bytes(out, &data);
}

/// An EOF packet.
pub(crate) fn write_eof(out: &mut BytesMut, warnings: u16, status: ServerStatus) {
    put_u8(out, EOF);
    put_u16(out, warnings);
    put_u16(out, status.bits());
}

/// An ERR packet.
pub(crate) fn write_error(out: &mut BytesMut, error: &MySqlError, encoding: TextEncoding) {
    put_u8(out, ERR);
    put_u16(out, error.code);
    out.extend_from_slice(b"#");
    out.extend_from_slice(error.sqlstate.as_bytes());
    out.extend_from_slice(&encoding.encode_message(shortened(&error.message)));
}

/// An ERR packet instead of a greeting: it has no SQLSTATE, since nothing is known of the client.
pub(crate) fn write_error_before_greeting(out: &mut BytesMut, error: &MySqlError) {
    put_u8(out, ERR);
    put_u16(out, error.code);
    out.extend_from_slice(shortened(&error.message).as_bytes());
}

fn shortened(message: &str) -> &str {
    let end = message.floor_char_boundary(MESSAGE_BYTES_MAX - 1);
    message.get(..end).unwrap_or(message)
}
