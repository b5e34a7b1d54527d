//! Packets on their way in.
//!
//! Nothing is reserved because a header promises it: buffers grow with the bytes that have come,
//! and no packet grows beyond `max_packet_bytes`. While a statement runs the same receiver watches
//! for a client that goes away ([`poll_gone`](Receiver::poll_gone)); what comes in meanwhile is
//! kept, up to a limit, for the next command.
//!
//! **Source**: "MySQL Packets", "Compressed Packet".

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::bytes_in::Reader;
use crate::clock::within;
use crate::compression::Decompressor;
use crate::error::{
    ConnectionError, Failure, cannot_uncompress, packet_too_large, packets_out_of_order,
};
use crate::sender::{HEADER_BYTES, PAYLOAD_BYTES_MAX};

/// Room for a read when nothing is known of what comes: most commands are shorter.
const READ_BYTES: usize = 4 << 10;
/// Room for a read inside a long packet.
const LONG_READ_BYTES: usize = 256 << 10;
/// Bytes that are kept while a statement runs; a client that sends more is not read from.
const AHEAD_BYTES_MAX: usize = 64 << 10;
/// The room that a buffer keeps between commands: `net_buffer_length`.
const KEPT_BYTES: usize = 16 << 10;

/// Why there is no packet.
#[derive(Debug)]
pub(crate) enum ReceiveError {
    TooLarge,
    OutOfOrder,
    CannotUncompress,
    Transport(io::Error),
}

impl From<io::Error> for ReceiveError {
    fn from(error: io::Error) -> ReceiveError {
        ReceiveError::Transport(error)
    }
}

impl From<ReceiveError> for Failure {
    fn from(error: ReceiveError) -> Failure {
        match error {
            ReceiveError::TooLarge => Failure::Protocol(packet_too_large()),
            ReceiveError::OutOfOrder => Failure::Protocol(packets_out_of_order()),
            ReceiveError::CannotUncompress => Failure::Protocol(cannot_uncompress()),
            ReceiveError::Transport(error) => Failure::Transport(error),
        }
    }
}

impl From<ReceiveError> for ConnectionError {
    fn from(error: ReceiveError) -> ConnectionError {
        Failure::from(error).into()
    }
}

/// The way from the client.
pub(crate) struct Receiver {
    // fixed
    max_packet_bytes: usize,
    // state
    sequence: u8,
    compressed_sequence: u8,
    at_end: bool,
    /// Bytes that came so far.
    received_bytes: u64,
    /// A file is being received: its reader is the one that waits for bytes.
    pub(crate) claimed: bool,
    // resources
    stream: Box<dyn AsyncRead + Send + Unpin>,
    /// As it came from the client.
    raw: BytesMut,
    /// Whole packets taken out of `raw`, if that is compressed.
    plain: BytesMut,
    /// The beginning of a payload of several packets.
    partial: Option<BytesMut>,
    decompressor: Option<Decompressor>,
}

/// The receiver between the reader of commands and whoever reads a file.
pub(crate) type SharedReceiver = Arc<Mutex<Receiver>>;

/// Locks; the lock is held for single polls, on one task.
pub(crate) fn lock(receiver: &SharedReceiver) -> MutexGuard<'_, Receiver> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What comes next from a client.
pub(crate) enum Received {
    /// A packet, `None` if the client closed before it.
    Packet(Result<Option<Bytes>, ReceiveError>),
    /// A part of one.
    Part,
}

/// Waits for the next packet, or for a part of it.
pub(crate) async fn next_part(receiver: &SharedReceiver) -> Received {
    let before = lock(receiver).received_bytes;
    poll_fn(|context| {
        let mut receiver = lock(receiver);
        match receiver.poll_packet(context) {
            Poll::Ready(packet) => Poll::Ready(Received::Packet(packet)),
            Poll::Pending if receiver.received_bytes > before => Poll::Ready(Received::Part),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Waits for the next packet. Each read may take as long as `limit`: a long packet that makes
/// progress may take its time, one that stops may not.
///
/// # Errors
/// `TimedOut` when a read takes longer.
pub(crate) async fn next_packet(
    receiver: &SharedReceiver,
    limit: Duration,
) -> Result<Option<Bytes>, ReceiveError> {
    loop {
        match within(limit, next_part(receiver)).await {
            Some(Received::Packet(packet)) => return packet,
            Some(Received::Part) => {}
            None => return Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        }
    }
}

/// Waits until the client is gone.
pub(crate) async fn gone(receiver: &SharedReceiver) {
    poll_fn(|context| lock(receiver).poll_gone(context)).await;
}

/// Reads and forgets until the client closes: one that is still writing would otherwise not read
/// why it is refused.
pub(crate) async fn drain(receiver: &SharedReceiver) {
    poll_fn(|context| lock(receiver).poll_drain(context)).await;
}

impl Receiver {
    pub(crate) fn new(
        stream: Box<dyn AsyncRead + Send + Unpin>,
        max_packet_bytes: usize,
    ) -> Receiver {
        Receiver {
            max_packet_bytes,
            sequence: 0,
            compressed_sequence: 0,
            at_end: false,
            received_bytes: 0,
            claimed: false,
            stream,
            raw: BytesMut::new(),
            plain: BytesMut::new(),
            partial: None,
            decompressor: None,
        }
    }

    /// A client that has logged in may send longer packets.
    pub(crate) fn set_max_packet_bytes(&mut self, max_packet_bytes: usize) {
        self.max_packet_bytes = max_packet_bytes;
    }

    /// Bytes that came from the client so far, compressed if they were.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// From the next packet on everything is compressed.
    pub(crate) fn decompress(&mut self, decompressor: Decompressor) {
        self.decompressor = Some(decompressor);
    }

    /// The number that the next packet must have.
    pub(crate) fn sequence(&self) -> u8 {
        self.sequence
    }

    pub(crate) fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    pub(crate) fn compressed_sequence(&self) -> u8 {
        self.compressed_sequence
    }

    pub(crate) fn set_compressed_sequence(&mut self, sequence: u8) {
        self.compressed_sequence = sequence;
    }

    /// The payload of the next packet, `None` if the client closed before it.
    pub(crate) fn poll_packet(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ReceiveError>> {
        loop {
            if let Some(payload) = self.take_packet()? {
                return Poll::Ready(Ok(Some(payload)));
            }
            if self.at_end {
                let is_between =
                    self.raw.is_empty() && self.plain.is_empty() && self.partial.is_none();
                return Poll::Ready(match is_between {
                    true => Ok(None),
                    false => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                });
            }
            ready!(self.poll_fill(context))?;
        }
    }

    /// Ready when the client has closed or broken the connection. What it sends is kept; beyond
    /// the limit nobody looks.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while !self.claimed && self.raw.len() < AHEAD_BYTES_MAX {
            if self.at_end || ready!(self.poll_fill(context)).is_err() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while !self.at_end {
            self.raw.clear();
            if ready!(self.poll_fill(context)).is_err() {
                break;
            }
        }
        Poll::Ready(())
    }

    /// Reads once.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.raw.is_empty() && self.raw.capacity() > KEPT_BYTES && self.partial.is_none() {
            self.raw = BytesMut::new();
        }
        let room = match self.missing_bytes() {
            missing if missing > READ_BYTES => missing.min(LONG_READ_BYTES),
            _ => READ_BYTES,
        };
        self.raw.reserve(room);
        let polled = pin!(self.stream.read_buf(&mut self.raw)).poll(context);
        polled.map_ok(|count| {
            self.at_end |= count == 0;
            self.received_bytes = self.received_bytes.saturating_add(count as u64);
        })
    }

    /// How many bytes the packet that has begun still needs, as far as its header is there.
    fn missing_bytes(&self) -> usize {
        let header_bytes = match self.decompressor {
            Some(_) => crate::compression::HEADER_BYTES,
            None => HEADER_BYTES,
        };
        let promised = read_u24(&self.raw).map_or(0, |len| len.saturating_add(header_bytes));
        promised.saturating_sub(self.raw.len())
    }

    /// A payload that has come whole.
    fn take_packet(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        loop {
            let Some(chunk) = self.take_chunk()? else {
                return Ok(None);
            };
            let is_last = chunk.len() < PAYLOAD_BYTES_MAX;
            match (self.partial.take(), is_last) {
                (None, true) => return Ok(Some(chunk.freeze())),
                (None, false) => self.partial = Some(chunk),
                (Some(mut begun), _) => {
                    begun.extend_from_slice(&chunk);
                    if is_last {
                        return Ok(Some(begun.freeze()));
                    }
                    self.partial = Some(begun);
                }
            }
        }
    }

    /// One packet, which may be a part of a payload.
    fn take_chunk(&mut self) -> Result<Option<BytesMut>, ReceiveError> {
        loop {
            let from = match self.decompressor {
                Some(_) => &mut self.plain,
                None => &mut self.raw,
            };
            if let Some(len) = read_u24(from)
                && let Some(sequence) = from.get(3).copied()
            {
                let begun = self.partial.as_ref().map_or(0, BytesMut::len);
                if begun.saturating_add(len) > self.max_packet_bytes {
                    return Err(ReceiveError::TooLarge);
                }
                // Compressed, only the numbers of frames count: `my_net_read`.
                if self.decompressor.is_none() && sequence != self.sequence {
                    return Err(ReceiveError::OutOfOrder);
                }
                if from.len() >= HEADER_BYTES.saturating_add(len) {
                    from.advance(HEADER_BYTES);
                    self.sequence = sequence.wrapping_add(1);
                    let payload = from.split_to(len);
                    if len > KEPT_BYTES {
                        // What follows lies in the same memory, and would hold all of it.
                        *from = BytesMut::from(from.as_ref());
                    }
                    return Ok(Some(payload));
                }
            }
            if !self.unwrap_frame()? {
                return Ok(None);
            }
        }
    }

    /// Decompresses one frame, if it is there whole and compression is on.
    fn unwrap_frame(&mut self) -> Result<bool, ReceiveError> {
        let Some(decompressor) = &mut self.decompressor else {
            return Ok(false);
        };
        let mut reader = Reader::new(&self.raw);
        let header = (|| {
            let len = reader.u24()?;
            let sequence = reader.u8()?;
            let plain_len = reader.u24()?;
            Ok::<_, crate::bytes_in::Malformed>((len, sequence, plain_len))
        })();
        let Ok((len, sequence, plain_len)) = header else {
            return Ok(false);
        };
        if sequence != self.compressed_sequence {
            return Err(ReceiveError::OutOfOrder);
        }
        let Ok(frame) = reader.bytes(len) else {
            return Ok(false);
        };
        decompressor
            .unwrap(frame, plain_len, &mut self.plain)
            .map_err(|_| ReceiveError::CannotUncompress)?;
        self.compressed_sequence = sequence.wrapping_add(1);
        let taken = crate::compression::HEADER_BYTES.saturating_add(len);
        self.raw.advance(taken);
        Ok(true)
    }
}

fn read_u24(bytes: &[u8]) -> Option<usize> {
    Reader::new(bytes).u24().ok()
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// Each part begins a new time limit, so that only the pauses between them count.
    #[tokio::test]
    async fn parts_of_a_packet_are_seen() {
        let (mut ours, theirs) = tokio::io::duplex(64);
        let receiver = Arc::new(Mutex::new(Receiver::new(Box::new(theirs), 1 << 20)));
        for part in [&b"\x03\0"[..], b"\0\0", b"ab"] {
            ours.write_all(part).await.expect("there is room");
            let received = next_part(&receiver).await;
            assert!(matches!(received, Received::Part));
        }
        ours.write_all(b"c").await.expect("there is room");
        match next_part(&receiver).await {
            Received::Packet(Ok(Some(packet))) => assert_eq!(packet, &b"abc"[..]),
            _ => panic!("the packet is whole"),
        }
    }

    #[tokio::test]
    async fn a_read_that_takes_too_long_is_an_error() {
        let (mut ours, theirs) = tokio::io::duplex(64);
        let receiver = Arc::new(Mutex::new(Receiver::new(Box::new(theirs), 1 << 20)));
        ours.write_all(b"\x03\0\0\0a").await.expect("there is room");
        let received = next_packet(&receiver, Duration::from_millis(20)).await;
        let Err(ReceiveError::Transport(error)) = received else {
            panic!("the packet is not whole");
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
