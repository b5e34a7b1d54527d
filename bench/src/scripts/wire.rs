//! A client of the MySQL protocol that waits for nothing but the server.
//!
//! Owns: connecting over a Unix socket as `root` without a password, and text queries. It writes
//! one packet and reads the reply, without prepared statements, metadata or conversions: what a
//! server takes less than this, no client of it sees.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html>

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// What the client can: long password, database at once, protocol 4.1, transactions, the hashed
/// password of 4.1, named authentication.
const CAPABILITIES: u32 = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
/// `utf8mb4_general_ci`.
const CHARACTER_SET: u8 = 45;
/// The largest packet, which is also the largest that is not continued by another.
const MOST_PACKET_BYTES: usize = 0xFF_FFFF;
const COM_QUERY: u8 = 3;
/// No single statement of a benchmark takes longer on a server that is alive.
const PATIENCE: Duration = Duration::from_secs(300);

/// A connection.
pub(crate) struct Client {
    stream: BufReader<UnixStream>,
    packet: Vec<u8>,
    sequence: u8,
}

impl Client {
    /// Connects; an empty `database` chooses none.
    pub(crate) fn connect(socket: &Path, database: &str) -> Result<Self, String> {
        let stream = UnixStream::connect(socket).map_err(|error| error.to_string())?;
        stream
            .set_read_timeout(Some(PATIENCE))
            .map_err(|error| error.to_string())?;
        let mut client = Self {
            stream: BufReader::with_capacity(1 << 16, stream),
            packet: Vec::new(),
            sequence: 0,
        };
        client.read()?;
        client.greet(database)?;
        client.authenticate()?;
        Ok(client)
    }

    fn greet(&mut self, database: &str) -> Result<(), String> {
        if self.packet.first() != Some(&10) {
            return Err(self.unexpected());
        }
        let mut reply = Vec::new();
        reply.extend_from_slice(&CAPABILITIES.to_le_bytes());
        reply.extend_from_slice(&0xFF_FFFF_u32.to_le_bytes());
        reply.push(CHARACTER_SET);
        reply.extend_from_slice(&[0; 23]);
        // The user, no password, the database, how the missing password would be hashed.
        reply.extend_from_slice(b"root\0\0");
        reply.extend_from_slice(database.as_bytes());
        reply.extend_from_slice(b"\0mysql_native_password\0");
        self.write(&reply)
    }

    fn authenticate(&mut self) -> Result<(), String> {
        loop {
            self.read()?;
            match self.packet.first() {
                Some(0x00) => return Ok(()),
                // More data of the method, such as that its quick way was good enough.
                Some(0x01) => {}
                Some(0xFE) => {
                    // Another method is asked for; each has its own form of no password.
                    let native = self.packet[1..].starts_with(b"mysql_native_password\0");
                    self.write(if native { b"" } else { b"\0" })?;
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// Runs a statement and reads its reply to the end: rows of tab-separated text.
    pub(crate) fn query(&mut self, statement: &str) -> Result<Vec<String>, String> {
        let length = statement.len() + 1;
        if length >= MOST_PACKET_BYTES {
            return Err("a statement is longer than a packet".to_owned());
        }
        self.sequence = 0;
        self.packet.clear();
        self.packet
            .extend_from_slice(&u32::try_from(length).expect("checked above").to_le_bytes());
        self.packet[3] = 0;
        self.packet.push(COM_QUERY);
        self.packet.extend_from_slice(statement.as_bytes());
        self.stream
            .get_mut()
            .write_all(&self.packet)
            .map_err(|error| error.to_string())?;
        self.read()?;
        match self.packet.first() {
            Some(0x00) => Ok(Vec::new()),
            Some(0xFF | 0xFB) | None => Err(self.unexpected()),
            Some(_) => self.rows(),
        }
    }

    fn rows(&mut self) -> Result<Vec<String>, String> {
        let mut rows = Vec::new();
        // The columns, then the rows, each ended by a packet of its own.
        for part in 0..2 {
            loop {
                self.read()?;
                match self.packet.first() {
                    Some(0xFF) | None => return Err(self.unexpected()),
                    Some(0xFE) if self.packet.len() < 9 => break,
                    Some(_) if part == 0 => {}
                    Some(_) => rows.push(self.row()?),
                }
            }
        }
        Ok(rows)
    }

    /// The row in the packet.
    fn row(&self) -> Result<String, String> {
        let mut rest = &self.packet[..];
        let mut cells = Vec::new();
        while let Some((first, after)) = rest.split_first() {
            let bytes = |count: usize| {
                let digits = after.get(..count)?;
                let length = digits
                    .iter()
                    .rev()
                    .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
                Some((length, &after[count..]))
            };
            let (length, after) = match first {
                0xFB => {
                    cells.push("NULL".to_owned());
                    rest = after;
                    continue;
                }
                0xFC => bytes(2),
                0xFD => bytes(3),
                0xFE => bytes(8),
                length => Some((usize::from(*length), after)),
            }
            .ok_or("a row ends early")?;
            let cell = after.get(..length).ok_or("a row ends early")?;
            cells.push(String::from_utf8_lossy(cell).into_owned());
            rest = &after[length..];
        }
        Ok(cells.join("\t"))
    }

    /// What the server said instead of the expected.
    fn unexpected(&self) -> String {
        match self.packet.first() {
            Some(0xFF) => {
                // Code, mark and SQL state come before the message; before the handshake, only
                // the code.
                let skip = if self.packet.get(3) == Some(&b'#') {
                    9
                } else {
                    3
                };
                String::from_utf8_lossy(self.packet.get(skip..).unwrap_or_default()).into_owned()
            }
            _ => "the server does not speak the protocol of MySQL 4.1".to_owned(),
        }
    }

    fn write(&mut self, payload: &[u8]) -> Result<(), String> {
        let length = u32::try_from(payload.len()).expect("a short packet");
        let mut bytes = length.to_le_bytes().to_vec();
        bytes[3] = self.sequence;
        bytes.extend_from_slice(payload);
        self.stream
            .get_mut()
            .write_all(&bytes)
            .map_err(|error| error.to_string())
    }

    fn read(&mut self) -> Result<(), String> {
        let mut header = [0; 4];
        let mut fill = |bytes: &mut [u8]| {
            self.stream
                .read_exact(bytes)
                .map_err(|error| format!("the server has gone: {error}"))
        };
        fill(&mut header)?;
        let [a, b, c, sequence] = header;
        let length = u32::from_le_bytes([a, b, c, 0]);
        self.packet.resize(length as usize, 0);
        fill(&mut self.packet)?;
        self.sequence = sequence.wrapping_add(1);
        Ok(())
    }
}
