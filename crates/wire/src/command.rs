//! Commands: the first byte of a packet, and what follows it.
//!
//! **Source**: "Command Phase", `enum_server_command`.

use crate::bytes_in::{Malformed, Reader};
use crate::flags::Refresh;

const QUIT: u8 = 0x01;
const INIT_DB: u8 = 0x02;
const QUERY: u8 = 0x03;
const FIELD_LIST: u8 = 0x04;
const REFRESH: u8 = 0x07;
const STATISTICS: u8 = 0x09;
const PROCESS_INFO: u8 = 0x0A;
const PROCESS_KILL: u8 = 0x0C;
const DEBUG: u8 = 0x0D;
const PING: u8 = 0x0E;
const CHANGE_USER: u8 = 0x11;
const STMT_PREPARE: u8 = 0x16;
const STMT_EXECUTE: u8 = 0x17;
const STMT_SEND_LONG_DATA: u8 = 0x18;
const STMT_CLOSE: u8 = 0x19;
const STMT_RESET: u8 = 0x1A;
const SET_OPTION: u8 = 0x1B;
const STMT_FETCH: u8 = 0x1C;
const RESET_CONNECTION: u8 = 0x1F;

/// `CURSOR_TYPE_READ_ONLY` of COM_STMT_EXECUTE; the other kinds have never been served.
const CURSOR_READ_ONLY: u8 = 0x01;

/// Bytes of the longest command that is no statement and brings no values: a COM_CHANGE_USER is
/// as long as a handshake. Names beyond would be copied into errors and logins that nobody pays
/// for.
const SHORT_BYTES_MAX: usize = crate::handshake::PACKET_BYTES_MAX;

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command<'a> {
    Quit,
    InitDb(&'a [u8]),
    Query(&'a [u8]),
    FieldList {
        table: &'a [u8],
        pattern: &'a [u8],
    },
    Refresh(Refresh),
    Statistics,
    ProcessInfo,
    ProcessKill(u32),
    Debug,
    Ping,
    /// With what follows the byte.
    ChangeUser(&'a [u8]),
    StmtPrepare(&'a [u8]),
    StmtExecute {
        id: u32,
        wants_cursor: bool,
        parameters: &'a [u8],
    },
    StmtSendLongData {
        id: u32,
        parameter: u16,
        data: &'a [u8],
    },
    StmtClose(u32),
    StmtReset(u32),
    SetOption(u16),
    StmtFetch {
        id: u32,
        row_count: u32,
    },
    ResetConnection,
    /// One that is not served: an error, never an OK.
    Unknown,
}

impl<'a> Command<'a> {
    pub(crate) fn parse(packet: &'a [u8]) -> Result<Command<'a>, Malformed> {
        let mut reader = Reader::new(packet);
        let number = reader.u8()?;
        let may_be_long = matches!(
            number,
            QUERY | STMT_PREPARE | STMT_EXECUTE | STMT_SEND_LONG_DATA
        );
        if packet.len() > SHORT_BYTES_MAX && !may_be_long {
            return Err(Malformed);
        }
        Ok(match number {
            QUIT => Command::Quit,
            INIT_DB => Command::InitDb(reader.rest()),
            QUERY => Command::Query(reader.rest()),
            FIELD_LIST => Command::FieldList {
                table: reader.terminated()?,
                pattern: reader.rest(),
            },
            // Servers read one byte, and none as 0.
            REFRESH => {
                let bits = reader.rest().first().copied().unwrap_or_default();
                Command::Refresh(Refresh::from_bits(bits))
            }
            STATISTICS => Command::Statistics,
            PROCESS_INFO => Command::ProcessInfo,
            PROCESS_KILL => Command::ProcessKill(reader.u32()?),
            DEBUG => Command::Debug,
            PING => Command::Ping,
            CHANGE_USER => Command::ChangeUser(reader.rest()),
            STMT_PREPARE => Command::StmtPrepare(reader.rest()),
            STMT_EXECUTE => {
                let id = reader.u32()?;
                let flags = reader.u8()?;
                let _iterations = reader.u32()?;
                Command::StmtExecute {
                    id,
                    wants_cursor: flags & CURSOR_READ_ONLY != 0,
                    parameters: reader.rest(),
                }
            }
            STMT_SEND_LONG_DATA => Command::StmtSendLongData {
                id: reader.u32()?,
                parameter: reader.u16()?,
                data: reader.rest(),
            },
            STMT_CLOSE => Command::StmtClose(reader.u32()?),
            STMT_RESET => Command::StmtReset(reader.u32()?),
            SET_OPTION => Command::SetOption(reader.u16()?),
            STMT_FETCH => Command::StmtFetch {
                id: reader.u32()?,
                row_count: reader.u32()?,
            },
            RESET_CONNECTION => Command::ResetConnection,
            _ => Command::Unknown,
        })
    }
}

/// The statement that a packet sends long data for, by the beginning of the packet.
pub(crate) fn statement_of_long_data(head: &[u8]) -> Option<u32> {
    match Command::parse(head) {
        Ok(Command::StmtSendLongData { id, .. }) => Some(id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        assert!(matches!(
            Command::parse(b"\x03SELECT 1"),
            Ok(Command::Query(b"SELECT 1"))
        ));
        assert!(matches!(
            Command::parse(b"\x04t\0a%"),
            Ok(Command::FieldList {
                table: b"t",
                pattern: b"a%"
            })
        ));
        assert!(matches!(
            Command::parse(b"\x17\x07\0\0\0\x01\x01\0\0\0rest"),
            Ok(Command::StmtExecute {
                id: 7,
                wants_cursor: true,
                parameters: b"rest"
            })
        ));
        for (packet, what) in [
            (&b"\x07"[..], Refresh::empty()),
            (b"\x07\x12", Refresh::LOGS | Refresh::STATUS),
            (b"\x07\x04\x01", Refresh::TABLES),
        ] {
            let read = Command::parse(packet);
            assert!(matches!(read, Ok(Command::Refresh(bits)) if bits == what));
        }
        assert!(matches!(Command::parse(b"\x08"), Ok(Command::Unknown)));
        assert!(matches!(Command::parse(b"\xFF"), Ok(Command::Unknown)));
    }

    #[test]
    fn short_packets_are_malformed() {
        for packet in [
            &b""[..],
            b"\x04t",
            b"\x0C\x01",
            b"\x17\x07\0\0\0",
            b"\x1C\x01\0\0\0",
        ] {
            assert!(Command::parse(packet).is_err(), "{packet:?}");
        }
    }

    #[test]
    fn only_statements_and_values_may_be_long() {
        for number in 0..=u8::MAX {
            let mut packet = vec![0; SHORT_BYTES_MAX + 1];
            packet[0] = number;
            let is_read = matches!(
                Command::parse(&packet),
                Ok(Command::Query(_)
                    | Command::StmtPrepare(_)
                    | Command::StmtExecute { .. }
                    | Command::StmtSendLongData { .. })
            );
            assert_eq!(is_read, matches!(number, 0x03 | 0x16 | 0x17 | 0x18));
            packet.pop();
            let read = Command::parse(&packet);
            assert!(read.is_ok(), "{number}");
        }
    }
}
