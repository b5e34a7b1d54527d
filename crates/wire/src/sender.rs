//! Packets on their way out: headers, sequence numbers, compression, one buffer.
//!
//! ```text
//!   packet: [length 3][sequence 1][payload]     payload of 16 MiB and more: several packets, the
//!                                               last one shorter than 16 MiB - 1, maybe empty
//! ```
//!
//! **Source**: "MySQL Packets", `net_serv.cc`.

use std::io;
use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use mayfly_types::MySqlError;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::clock::within;
use crate::compression::Compressor;
use crate::memory::{FREE_BYTES, Share};

/// The bytes before a payload.
pub(crate) const HEADER_BYTES: usize = 4;
/// The longest payload of one packet; one this long says that another follows.
pub(crate) const PAYLOAD_BYTES_MAX: usize = (1 << 24) - 1;
/// The room that a buffer keeps while a command is answered: two flushes.
const KEPT_BYTES: usize = 64 << 10;
/// The room that it keeps between commands: `net_buffer_length`.
const IDLE_BYTES: usize = 16 << 10;

/// The way to the client.
pub(crate) struct Sender {
    // fixed
    write_timeout: Duration,
    // state
    sequence: u8,
    /// Bytes that were sent.
    sent_bytes: u64,
    /// The room that the buffers had when they were last sent.
    room_bytes: usize,
    /// Bytes of packets up to which the buffer may grow without asking.
    granted_bytes: usize,
    // resources
    stream: Box<dyn AsyncWrite + Send + Unpin>,
    /// Whole packets, and at its end the one that is being written.
    out: BytesMut,
    /// Packets in frames.
    frames: BytesMut,
    compressor: Option<Compressor>,
    /// What the buffers hold of the connection's memory.
    share: Share,
}

impl Sender {
    pub(crate) fn new(
        stream: Box<dyn AsyncWrite + Send + Unpin>,
        write_timeout: Duration,
        share: Share,
    ) -> Sender {
        Sender {
            write_timeout,
            sequence: 0,
            sent_bytes: 0,
            room_bytes: 0,
            granted_bytes: FREE_BYTES,
            stream,
            out: BytesMut::new(),
            frames: BytesMut::new(),
            compressor: None,
            share,
        }
    }

    /// The share of the connection's memory.
    pub(crate) fn share(&self) -> &Share {
        &self.share
    }

    /// Makes room for a long value.
    ///
    /// # Errors
    /// Where the connection's memory has none.
    #[inline]
    pub(crate) fn make_room(&mut self, bytes: usize) -> Result<(), MySqlError> {
        match self.out.len().saturating_add(bytes) {
            needed if needed <= self.granted_bytes => Ok(()),
            needed => self.ask_for(needed),
        }
    }

    #[cold]
    fn ask_for(&mut self, needed: usize) -> Result<(), MySqlError> {
        // Rows of middle size fill a buffer too, whose growth doubles it.
        let wanted = needed
            .saturating_add(FREE_BYTES)
            .max(self.out.capacity().saturating_mul(2));
        // A packet of 16 MiB and more is copied into several; frames are another copy, made of one.
        let copies = if self.compressor.is_some() { 4 } else { 2 };
        self.share.resize(wanted.saturating_mul(copies))?;
        self.out.reserve(wanted.saturating_sub(self.out.len()));
        self.granted_bytes = wanted;
        Ok(())
    }

    /// From the next packet on everything is compressed.
    pub(crate) fn compress(&mut self, compressor: Compressor) {
        self.compressor = Some(compressor);
    }

    /// The number of the next packet.
    pub(crate) fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Answers continue the numbers of the command.
    pub(crate) fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Answers continue the numbers of the command's frames, and their packets begin at that
    /// number too, then go on by themselves: `net_flush` brings the two together when the turn
    /// changes.
    pub(crate) fn set_compressed_sequence(&mut self, sequence: u8) {
        if let Some(compressor) = &mut self.compressor {
            compressor.sequence = sequence;
            self.sequence = sequence;
        }
    }

    pub(crate) fn compressed_sequence(&self) -> u8 {
        self.compressor
            .as_ref()
            .map_or(0, |compressor| compressor.sequence)
    }

    /// Bytes of packets that have not been sent.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.out.len()
    }

    /// Bytes so far, sent or not.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.sent_bytes.saturating_add(self.waiting_bytes() as u64)
    }

    /// Adds a packet.
    pub(crate) fn packet(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let start = self.begin();
        write(&mut self.out);
        self.end(start);
    }

    /// Begins a packet; its payload is appended to [`payload`](Sender::payload).
    pub(crate) fn begin(&mut self) -> usize {
        let start = self.out.len();
        self.out.put_u32_le(0);
        start
    }

    pub(crate) fn payload(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    /// The bytes of the payload of the packet that began at `start`.
    pub(crate) fn payload_len(&self, start: usize) -> usize {
        self.out.len().saturating_sub(start + HEADER_BYTES)
    }

    /// Takes back the packet that began at `start`.
    pub(crate) fn abandon(&mut self, start: usize) {
        self.out.truncate(start);
    }

    /// Ends the packet that began at `start`: writes its header.
    pub(crate) fn end(&mut self, start: usize) {
        let len = self.payload_len(start);
        if len >= PAYLOAD_BYTES_MAX {
            self.end_long(start);
            return;
        }
        let header = header(len, self.next());
        if let Some(place) = self.out.get_mut(start..start + HEADER_BYTES) {
            place.copy_from_slice(&header);
        }
    }

    fn end_long(&mut self, start: usize) {
        let payload = self.out.split_off(start + HEADER_BYTES);
        self.out.truncate(start);
        for chunk in payload.chunks(PAYLOAD_BYTES_MAX) {
            let header = header(chunk.len(), self.next());
            self.out.extend_from_slice(&header);
            self.out.extend_from_slice(chunk);
        }
        if payload.len().is_multiple_of(PAYLOAD_BYTES_MAX) {
            let header = header(0, self.next());
            self.out.extend_from_slice(&header);
        }
    }

    fn next(&mut self) -> u8 {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        sequence
    }

    /// Sends everything; waits while the client does not read. Dropped amid that, what was not
    /// sent is sent by the next flush.
    ///
    /// # Errors
    /// Those of the stream, and `TimedOut` when it takes nothing for `write_timeout`.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if let Some(compressor) = &mut self.compressor {
            compressor.wrap(&mut self.out, &mut self.frames)?;
        }
        let waiting = match self.compressor {
            Some(_) => &mut self.frames,
            None => &mut self.out,
        };
        if waiting.is_empty() {
            return Ok(());
        }
        // Sending moves the beginning of the buffer, which its capacity does not count.
        let capacity = waiting.capacity();
        self.room_bytes = self.room_bytes.max(capacity);
        while !waiting.is_empty() {
            match within(self.write_timeout, self.stream.write(waiting)).await {
                Some(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Some(Ok(count)) => {
                    waiting.advance(count);
                    self.sent_bytes += count as u64;
                }
                Some(Err(error)) => return Err(error),
                None => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        if capacity > KEPT_BYTES {
            *waiting = BytesMut::new();
        }
        if self.granted_bytes > FREE_BYTES {
            // Also that which is behind the frames.
            self.out = BytesMut::new();
            self.granted_bytes = FREE_BYTES;
            self.share.shrink(0);
        }
        within(self.write_timeout, self.stream.flush())
            .await
            .unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Keeps little memory while nobody asks for anything.
    pub(crate) fn rest(&mut self) {
        if self.room_bytes > IDLE_BYTES && self.out.is_empty() && self.frames.is_empty() {
            (self.out, self.frames) = (BytesMut::new(), BytesMut::new());
            self.room_bytes = 0;
        }
    }

    /// Tells the client that nothing more comes.
    pub(crate) async fn close(&mut self) {
        let closing = within(self.write_timeout, self.stream.shutdown());
        // A client that is gone already does not need to be told.
        drop(closing.await);
    }
}

pub(crate) fn header(len: usize, sequence: u8) -> [u8; HEADER_BYTES] {
    let [low, middle, high, ..] = len.to_le_bytes();
    [low, middle, high, sequence]
}
