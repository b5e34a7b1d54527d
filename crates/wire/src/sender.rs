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
    /// The most room that a buffer has had since both were last given back: sending moves its
    /// beginning, which its capacity does not count.
    room_bytes: usize,
    /// Bytes of packets up to which the buffer may grow without asking.
    granted_bytes: usize,
    // resources
    stream: Box<dyn AsyncWrite + Send + Unpin>,
    /// Whole packets, and at its end the one that is being written.
    out: BytesMut,
    /// The frame that is being sent.
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
        // A packet of 16 MiB and more is copied into several.
        self.share.resize(wanted.saturating_mul(2))?;
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
        self.out.len().saturating_sub(payload_at(start))
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
        if let Some(place) = self.out.get_mut(start..payload_at(start)) {
            place.copy_from_slice(&header);
        }
    }

    fn end_long(&mut self, start: usize) {
        let payload = self.out.split_off(payload_at(start));
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
        if self.out.is_empty() && self.frames.is_empty() {
            return Ok(());
        }
        self.room_bytes = self.room_bytes.max(self.out.capacity());
        loop {
            let waiting = match &mut self.compressor {
                Some(compressor) => {
                    if self.frames.is_empty() {
                        compressor.wrap(&mut self.out, &mut self.frames)?;
                        self.room_bytes = self.room_bytes.max(self.frames.capacity());
                    }
                    &mut self.frames
                }
                None => &mut self.out,
            };
            if waiting.is_empty() {
                break;
            }
            match within(self.write_timeout, self.stream.write(waiting)).await {
                Some(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Some(Ok(count)) => {
                    waiting.advance(count);
                    self.sent_bytes = self.sent_bytes.saturating_add(count as u64);
                }
                Some(Err(error)) => return Err(error),
                None => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        if self.room_bytes > KEPT_BYTES || self.granted_bytes > FREE_BYTES {
            (self.out, self.frames) = (BytesMut::new(), BytesMut::new());
            self.room_bytes = 0;
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

/// Where the payload of the packet that began at `start` begins.
fn payload_at(start: usize) -> usize {
    start.saturating_add(HEADER_BYTES)
}

pub(crate) fn header(len: usize, sequence: u8) -> [u8; HEADER_BYTES] {
    let [low, middle, high, ..] = len.to_le_bytes();
    [low, middle, high, sequence]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compression::Method;
    use crate::compression::tests::plain_of;

    #[tokio::test]
    async fn a_long_packet_leaves_no_buffer_behind() {
        for method in [None, Some(Method::Zlib), Some(Method::Zstd(3))] {
            let sink = Box::new(tokio::io::sink());
            let mut sender = Sender::new(sink, Duration::MAX, Share::unpaid());
            if let Some(method) = method {
                sender.compress(Compressor::new(method).expect("a compressor"));
            }
            sender.packet(|out| out.put_bytes(7, 3 << 20));
            sender.flush().await.expect("a sink takes all");
            let kept = (sender.out.capacity(), sender.frames.capacity());
            assert_eq!(kept, (0, 0), "{method:?}");
            assert_eq!(sender.waiting_bytes(), 0);
        }
    }

    /// Of what waits behind a client that does not read, one frame is made at a time.
    #[tokio::test]
    async fn frames_are_made_as_they_are_sent() {
        let (mut client, ours) = tokio::io::duplex(1000);
        let mut sender = Sender::new(Box::new(ours), Duration::MAX, Share::unpaid());
        sender.compress(Compressor::new(Method::Zlib).expect("a compressor"));
        let noise: Vec<u8> = (0..1_u32 << 20)
            .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[1])
            .collect();
        sender.packet(|out| out.extend_from_slice(&noise));
        tokio::select! {
            biased;
            _ = sender.flush() => panic!("nobody reads"),
            () = std::future::ready(()) => {}
        }
        assert!(sender.frames.capacity() < 2 * crate::compression::FRAME_BYTES_MAX);
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            tokio::io::AsyncReadExt::read_to_end(&mut client, &mut all)
                .await
                .map(|_| all)
        });
        // The next flush goes on where the first was dropped.
        sender.flush().await.expect("it is read");
        drop(sender);
        let all = reading.await.expect("no panic").expect("an end");
        let plain = plain_of(Method::Zlib, &all);
        assert_eq!(&plain[HEADER_BYTES..], &noise[..]);
    }
}
