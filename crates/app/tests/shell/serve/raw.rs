//! A client that shows the packets of answers as they are.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::running::Server;

/// Passwords of 4.1, flags of columns, a database at login, the protocol of 4.1, status of
/// transactions, scrambles of 20 bytes, several statements and results, named methods.
const COMMON: u32 = 1 | 4 | 8 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 16 | 1 << 17 | 1 << 19;
/// OK packets tell of changes to the session.
pub const TRACKS: u32 = 1 << 23;
/// An OK packet ends rows.
pub const NO_EOF: u32 = 1 << 24;
/// A person waits.
pub const INTERACTIVE: u32 = 1 << 10;

pub struct Raw {
    stream: TcpStream,
    sequence: u8,
    ends_with_ok: bool,
    /// The answer to the login.
    pub login: Vec<u8>,
}

/// The answer to a statement.
pub struct Answer {
    /// The definitions of columns, none without rows.
    pub columns: Vec<Vec<u8>>,
    pub rows: Vec<Vec<u8>>,
    /// OK, EOF or ERR.
    pub end: Vec<u8>,
}

impl Raw {
    pub fn connect(server: &Server, capabilities: u32) -> Raw {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).expect("it listens");
        let limit = Some(Duration::from_secs(20));
        stream.set_read_timeout(limit).expect("a limit");
        let mut raw = Raw {
            stream,
            sequence: 0,
            ends_with_ok: capabilities & NO_EOF != 0,
            login: Vec::new(),
        };
        raw.read();
        let mut response = (COMMON | capabilities).to_le_bytes().to_vec();
        response.extend_from_slice(&(1_u32 << 24).to_le_bytes());
        response.push(45);
        response.extend_from_slice(&[0; 23]);
        response.extend_from_slice(b"root\0\0test\0mysql_native_password\0");
        raw.send(1, &response);
        raw.login = raw.read();
        while raw.login[0] == 0xFE {
            let sequence = raw.sequence;
            raw.send(sequence, b"");
            raw.login = raw.read();
        }
        raw
    }

    pub fn send(&mut self, sequence: u8, payload: &[u8]) {
        let mut packet = u32::try_from(payload.len()).unwrap().to_le_bytes().to_vec();
        packet[3] = sequence;
        packet.extend_from_slice(payload);
        self.stream.write_all(&packet).expect("it reads");
    }

    pub fn read(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).expect("a packet");
        self.sequence = header[3].wrapping_add(1);
        header[3] = 0;
        let mut payload = vec![0; u32::from_le_bytes(header) as usize];
        self.stream.read_exact(&mut payload).expect("its payload");
        payload
    }

    /// Sends a command.
    pub fn command(&mut self, number: u8, payload: &[u8]) {
        self.send(0, &[&[number], payload].concat());
    }

    /// Runs one statement.
    pub fn query(&mut self, statement: &str) -> Answer {
        self.command(3, statement.as_bytes());
        self.answer()
    }

    pub fn answer(&mut self) -> Answer {
        let first = self.read();
        let mut answer = Answer {
            columns: Vec::new(),
            rows: Vec::new(),
            end: Vec::new(),
        };
        if matches!(first[0], 0 | 0xFF) {
            answer.end = first;
            return answer;
        }
        for _ in 0..first[0] {
            answer.columns.push(self.read());
        }
        if !self.ends_with_ok {
            self.read();
        }
        loop {
            let packet = self.read();
            let is_end = packet[0] == 0xFE && (self.ends_with_ok || packet.len() < 9);
            if is_end || packet[0] == 0xFF {
                answer.end = packet;
                return answer;
            }
            answer.rows.push(packet);
        }
    }
}

impl Answer {
    /// The words of a row.
    pub fn row(&self, index: usize) -> Vec<String> {
        let (mut rest, mut words) = (self.rows[index].as_slice(), Vec::new());
        while !rest.is_empty() {
            let word = if rest[0] == 0xFB {
                rest = &rest[1..];
                "NULL".to_owned()
            } else {
                String::from_utf8_lossy(counted(&mut rest)).into_owned()
            };
            words.push(word);
        }
        words
    }
}

/// Takes bytes with their length before them.
pub fn counted<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let len = number(rest) as usize;
    let (bytes, behind) = rest.split_at(len);
    *rest = behind;
    bytes
}

fn number(rest: &mut &[u8]) -> u64 {
    let (width, skipped) = match rest[0] {
        0xFC => (2, 1),
        0xFD => (3, 1),
        0xFE => (8, 1),
        _ => (1, 0),
    };
    let bytes = &rest[skipped..skipped + width];
    let mut value = [0; 8];
    value[..width].copy_from_slice(bytes);
    *rest = &rest[skipped + width..];
    u64::from_le_bytes(value)
}

/// What an OK packet says.
pub struct OkPacket {
    pub affected: u64,
    pub insert_id: u64,
    pub status: u16,
    /// The changes of the session, in the form `kind:bytes`.
    pub changes: Vec<String>,
}

impl OkPacket {
    pub fn parse(packet: &[u8]) -> OkPacket {
        assert_ne!(packet[0], 0xFF, "{}", String::from_utf8_lossy(packet));
        let mut rest = &packet[1..];
        let (affected, insert_id) = (number(&mut rest), number(&mut rest));
        let status = u16::from_le_bytes([rest[0], rest[1]]);
        rest = &rest[4..];
        if !rest.is_empty() {
            counted(&mut rest);
        }
        let mut changes = Vec::new();
        if !rest.is_empty() {
            let mut all = counted(&mut rest);
            while !all.is_empty() {
                let kind = all[0];
                all = &all[1..];
                let mut data = counted(&mut all);
                let mut words = Vec::new();
                while !data.is_empty() && kind != 2 {
                    words.push(String::from_utf8_lossy(counted(&mut data)).into_owned());
                }
                words.push(String::from_utf8_lossy(data).into_owned());
                changes.push(format!("{kind}:{}", words.join("=").trim_end_matches('=')));
            }
        }
        assert!(rest.is_empty());
        assert_eq!(status & 0x4000 != 0, !changes.is_empty());
        OkPacket {
            affected,
            insert_id,
            status,
            changes,
        }
    }
}
