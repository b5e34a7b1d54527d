//! Packets on their way in.
//!
//! Nothing is reserved because a packet's header promises it: a buffer is at most twice as long as
//! what has come, beyond the little that is free, and no packet grows beyond `max_packet_bytes`.
//! What a compressed frame says that it becomes is granted before it is unpacked. While a statement
//! runs the same receiver watches for a client that goes away ([`poll_gone`](Receiver::poll_gone));
//! what comes in meanwhile is kept, up to a limit, for the next command.
//!
//! A packet that the connection's memory has no room for is read to its end and forgotten
//! ([`ReceiveError::Refused`]): the client gets an error and may send its next command. Only a
//! compressed frame cannot be passed over, since packets end anywhere in it.
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
use mayfly_types::MySqlError;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::bytes_in::Reader;
use crate::clock::within;
use crate::compression::Decompressor;
use crate::error::{
    ConnectionError, Failure, cannot_uncompress, packet_too_large, packets_out_of_order,
};
use crate::memory::{FREE_BYTES, Share};
use crate::sender::{HEADER_BYTES, PAYLOAD_BYTES_MAX};

/// Room for a read when nothing is known of what comes: most commands are shorter.
const READ_BYTES: usize = 4 << 10;
/// Bytes that are kept while a statement runs; a client that sends more is not read from.
const AHEAD_BYTES_MAX: usize = 64 << 10;
/// The room that a buffer keeps between commands: `net_buffer_length`.
const KEPT_BYTES: usize = 16 << 10;
/// What a client that is amid a packet has to send within `net_read_timeout`.
const PROGRESS_BYTES: u64 = 4 << 10;
/// Bytes of a refused packet that tell which command it was, and of what.
const HEAD_BYTES: usize = 16;

/// Why there is no packet.
#[derive(Debug)]
pub(crate) enum ReceiveError {
    TooLarge,
    OutOfOrder,
    CannotUncompress,
    /// There was no memory for a packet, which has been read and forgotten.
    Refused(Refused),
    /// There was no memory for a compressed frame.
    FrameRefused(MySqlError),
    Transport(io::Error),
}

/// A packet that there was no memory for.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) error: MySqlError,
    /// How its payload began.
    pub(crate) head: Bytes,
}

/// What is left of a packet that is forgotten.
struct Forgetting {
    refused: Refused,
    /// Bytes of its payload, as far as headers have said.
    total_bytes: usize,
    /// Bytes of this part of it that have not come.
    missing_bytes: usize,
    /// Whether another part follows.
    goes_on: bool,
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
            ReceiveError::Refused(refused) => Failure::Statement(refused.error),
            ReceiveError::FrameRefused(error) => Failure::Protocol(error),
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
    /// The most room that `raw` has had since it was made: what is taken from its beginning still
    /// lies in its memory, which its capacity does not count.
    raw_room_bytes: usize,
    /// What frames in `raw` held, if that is compressed.
    plain: BytesMut,
    /// The same of `plain`.
    plain_room_bytes: usize,
    /// The beginning of a payload of several packets.
    partial: Option<BytesMut>,
    /// A packet that is read only to be forgotten.
    forgetting: Option<Forgetting>,
    decompressor: Option<Decompressor>,
    /// What it holds of the connection's memory.
    share: Share,
    /// Bytes of a long packet that was given out, which lives until the next is asked for.
    given_bytes: usize,
}

/// The receiver between the reader of commands and whoever reads a file.
pub(crate) type SharedReceiver = Arc<Mutex<Receiver>>;

/// Locks; the lock is held for single polls, on one task.
pub(crate) fn lock(receiver: &SharedReceiver) -> MutexGuard<'_, Receiver> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the next packet.
async fn next_packet(receiver: &SharedReceiver) -> Result<Option<Bytes>, ReceiveError> {
    poll_fn(|context| lock(receiver).poll_packet(context)).await
}

/// Waits for the next packet; `None` once a part of it has come and the rest has not. What follows
/// is for [`rest_of_packet`].
pub(crate) async fn beginning_of_packet(
    receiver: &SharedReceiver,
) -> Option<Result<Option<Bytes>, ReceiveError>> {
    poll_fn(|context| {
        let mut receiver = lock(receiver);
        match receiver.poll_packet(context) {
            Poll::Ready(packet) => Poll::Ready(Some(packet)),
            Poll::Pending if receiver.has_begun() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Waits for a packet of a client that has one to send; an error if it pauses for longer than
/// `limit`. A few bytes now and then are a pause too, a long packet over a slow line is none.
pub(crate) async fn rest_of_packet(
    receiver: &SharedReceiver,
    limit: Duration,
) -> Result<Option<Bytes>, ReceiveError> {
    loop {
        let before = lock(receiver).total_bytes();
        if let Some(packet) = within(limit, next_packet(receiver)).await {
            return packet;
        }
        let came = lock(receiver).total_bytes().saturating_sub(before);
        if came < PROGRESS_BYTES {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
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
            raw_room_bytes: 0,
            plain: BytesMut::new(),
            plain_room_bytes: 0,
            partial: None,
            forgetting: None,
            decompressor: None,
            share: Share::unpaid(),
            given_bytes: 0,
        }
    }

    /// Its share of the connection's memory.
    pub(crate) fn share(&self) -> &Share {
        &self.share
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
        if self.given_bytes > 0 {
            self.given_bytes = 0;
            self.count_held();
        }
        loop {
            if self.forgetting.is_none()
                && let Some(payload) = self.take_packet()?
            {
                return Poll::Ready(Ok(Some(payload)));
            }
            // All of what is forgotten from here on may have come.
            if let Some(refused) = self.forget()? {
                return Poll::Ready(Err(ReceiveError::Refused(refused)));
            }
            if self.forgetting.is_none() || self.decompressor.is_some() {
                self.make_room()?;
            }
            if self.at_end {
                return Poll::Ready(match self.has_begun() {
                    false => Ok(None),
                    true => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                });
            }
            ready!(self.poll_fill(context))?;
        }
    }

    /// Whether a part of a packet has come.
    fn has_begun(&self) -> bool {
        !self.raw.is_empty()
            || !self.plain.is_empty()
            || self.partial.is_some()
            || self.forgetting.is_some()
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
        if self.raw.is_empty() && self.raw_room_bytes > KEPT_BYTES && self.partial.is_none() {
            self.set_raw(BytesMut::new());
            self.count_held();
        }
        let room = match self.forgetting {
            Some(_) => KEPT_BYTES,
            None => READ_BYTES,
        };
        // The room that a long packet has been granted is filled to its end: to ask the buffer for
        // more there would double it.
        let (len, capacity) = (self.raw.len(), self.raw.capacity());
        if len <= KEPT_BYTES || len == capacity {
            self.raw.reserve(room);
            self.raw_room_bytes = self.raw_room_bytes.max(self.raw.capacity());
        }
        let polled = pin!(self.stream.read_buf(&mut self.raw)).poll(context);
        polled.map_ok(|count| {
            self.at_end |= count == 0;
            self.received_bytes = self.received_bytes.saturating_add(count as u64);
        })
    }

    /// Makes room for more of a long packet. Where there is none, the packet is forgotten.
    fn make_room(&mut self) -> Result<(), ReceiveError> {
        let missing = self.missing_bytes();
        let (len, capacity) = (self.raw.len(), self.raw.capacity());
        let has_header = len >= HEADER_BYTES;
        let is_short = len.saturating_add(missing) <= KEPT_BYTES;
        if !has_header || is_short || capacity.saturating_sub(len) >= missing.min(READ_BYTES) {
            return Ok(());
        }
        // Twice as much, so that each byte is copied once, but nothing behind the packet's end.
        let wanted = capacity.saturating_mul(2).max(FREE_BYTES);
        let wanted = wanted.min(len.saturating_add(missing));
        match self.hold_more(wanted) {
            Ok(()) => {
                self.set_raw(with_capacity(&self.raw, wanted));
                self.count_held();
                Ok(())
            }
            Err(error) if self.decompressor.is_some() => {
                // The error's frame follows the one that is refused.
                self.compressed_sequence = self.compressed_sequence.wrapping_add(1);
                Err(ReceiveError::FrameRefused(error))
            }
            Err(error) => {
                let Some(len) = read_u24(&self.raw) else {
                    return Ok(());
                };
                let came = self.raw.len().saturating_sub(HEADER_BYTES);
                self.sequence = self.sequence.wrapping_add(1);
                let begun = std::mem::take(&mut self.raw);
                self.raw_room_bytes = 0;
                let first = begun.get(HEADER_BYTES..).unwrap_or_default();
                self.begin_to_forget(error, first, len, len.saturating_sub(came));
                Ok(())
            }
        }
    }

    /// Forgets the packet whose last part so far has `len` bytes, of which some are missing.
    fn begin_to_forget(&mut self, error: MySqlError, last: &[u8], len: usize, missing: usize) {
        let partial = self.partial.take();
        let first = partial.as_deref().unwrap_or(last);
        let head = first.get(..HEAD_BYTES).unwrap_or(first);
        let before = partial.as_ref().map_or(0, BytesMut::len);
        self.forgetting = Some(Forgetting {
            refused: Refused {
                error,
                head: Bytes::copy_from_slice(head),
            },
            total_bytes: before.saturating_add(len),
            missing_bytes: missing,
            goes_on: len >= PAYLOAD_BYTES_MAX,
        });
        drop(partial);
        self.count_held();
    }

    /// Lets go of what has come of a packet that is forgotten; gives what it was when all of it
    /// has.
    fn forget(&mut self) -> Result<Option<Refused>, ReceiveError> {
        while let Some(forgetting) = &mut self.forgetting {
            let from = match self.decompressor {
                Some(_) => &mut self.plain,
                None => &mut self.raw,
            };
            let came = forgetting.missing_bytes.min(from.len());
            from.advance(came);
            forgetting.missing_bytes = forgetting.missing_bytes.saturating_sub(came);
            if forgetting.missing_bytes == 0 && !forgetting.goes_on {
                return Ok(self.forgetting.take().map(|forgotten| forgotten.refused));
            }
            let mut header = Reader::new(from);
            let (Ok(len), Ok(sequence), 0) = (header.u24(), header.u8(), forgetting.missing_bytes)
            else {
                match self.unwrap_frame()? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            if self.decompressor.is_none() && sequence != self.sequence {
                return Err(ReceiveError::OutOfOrder);
            }
            forgetting.total_bytes = forgetting.total_bytes.saturating_add(len);
            if forgetting.total_bytes > self.max_packet_bytes {
                return Err(ReceiveError::TooLarge);
            }
            forgetting.missing_bytes = len;
            forgetting.goes_on = len >= PAYLOAD_BYTES_MAX;
            self.sequence = sequence.wrapping_add(1);
            from.advance(HEADER_BYTES);
        }
        Ok(None)
    }

    fn held_bytes(&self) -> usize {
        let partial = self.partial.as_ref().map_or(0, BytesMut::capacity);
        [self.raw_room_bytes, self.plain_room_bytes, partial]
            .into_iter()
            .fold(self.given_bytes, usize::saturating_add)
    }

    /// Asks for memory beside what it holds.
    fn hold_more(&mut self, bytes: usize) -> Result<(), MySqlError> {
        let held = self.held_bytes().saturating_add(bytes);
        self.share.resize(held.saturating_sub(FREE_BYTES))
    }

    /// Gives back what it does not hold any more.
    fn count_held(&mut self) {
        let held = self.held_bytes().saturating_sub(FREE_BYTES);
        self.share.shrink(held);
    }

    fn set_raw(&mut self, raw: BytesMut) {
        self.raw_room_bytes = raw.capacity();
        self.raw = raw;
    }

    fn set_plain(&mut self, plain: BytesMut) {
        self.plain_room_bytes = plain.capacity();
        self.plain = plain;
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
                (None, false) => {
                    self.given_bytes = 0;
                    self.partial = Some(chunk);
                }
                (Some(begun), _) => {
                    let Some(begun) = self.append(begun, &chunk) else {
                        return Ok(None);
                    };
                    self.given_bytes = 0;
                    if is_last {
                        self.given_bytes = begun.capacity();
                        self.count_held();
                        return Ok(Some(begun.freeze()));
                    }
                    self.partial = Some(begun);
                    self.count_held();
                }
            }
        }
    }

    /// A payload with another part of it; `None` where there is no memory for that, and it is
    /// forgotten.
    fn append(&mut self, mut begun: BytesMut, chunk: &[u8]) -> Option<BytesMut> {
        let len = begun.len().saturating_add(chunk.len());
        let capacity = begun.capacity();
        if len > capacity {
            let wanted = capacity.saturating_mul(2).min(self.max_packet_bytes);
            let wanted = wanted.max(len);
            // Both are there while bytes are copied, and the part itself.
            let all = [capacity, wanted, chunk.len()].into_iter();
            if let Err(error) = self.hold_more(all.fold(0, usize::saturating_add)) {
                self.partial = Some(begun);
                self.begin_to_forget(error, chunk, chunk.len(), 0);
                return None;
            }
            begun = with_capacity(&begun, wanted);
        }
        begun.extend_from_slice(chunk);
        Some(begun)
    }

    /// One packet, which may be a part of a payload.
    fn take_chunk(&mut self) -> Result<Option<BytesMut>, ReceiveError> {
        loop {
            let is_compressed = self.decompressor.is_some();
            let (from, room_bytes) = match is_compressed {
                true => (&mut self.plain, self.plain_room_bytes),
                false => (&mut self.raw, self.raw_room_bytes),
            };
            if let Some(len) = read_u24(from)
                && let Some(sequence) = from.get(3).copied()
            {
                let begun = self.partial.as_ref().map_or(0, BytesMut::len);
                if begun.saturating_add(len) > self.max_packet_bytes {
                    return Err(ReceiveError::TooLarge);
                }
                // Compressed, only the numbers of frames count: `my_net_read`.
                if !is_compressed && sequence != self.sequence {
                    return Err(ReceiveError::OutOfOrder);
                }
                if from.len() >= HEADER_BYTES.saturating_add(len) {
                    from.advance(HEADER_BYTES);
                    self.sequence = sequence.wrapping_add(1);
                    let payload = from.split_to(len);
                    // What follows lies in the same memory, and would hold all of it. Copied only
                    // where it is no more than what was taken, each byte is copied a few times.
                    if len > KEPT_BYTES && from.len() <= len {
                        let rest = BytesMut::from(from.as_ref());
                        match is_compressed {
                            true => self.set_plain(rest),
                            false => self.set_raw(rest),
                        }
                        self.given_bytes = room_bytes;
                        self.count_held();
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
        if self.decompressor.is_none() {
            return Ok(false);
        }
        if self.plain.is_empty() && self.plain_room_bytes > KEPT_BYTES {
            self.set_plain(BytesMut::new());
            self.count_held();
        }
        let mut reader = Reader::new(&self.raw);
        let (Ok(len), Ok(sequence), Ok(plain_len)) = (reader.u24(), reader.u8(), reader.u24())
        else {
            return Ok(false);
        };
        if sequence != self.compressed_sequence {
            return Err(ReceiveError::OutOfOrder);
        }
        if reader.len() < len {
            return Ok(false);
        }
        // Also the number of an error about this frame follows it.
        self.compressed_sequence = sequence.wrapping_add(1);
        self.make_plain_room(match plain_len {
            0 => len,
            _ => plain_len,
        })
        .map_err(ReceiveError::FrameRefused)?;
        let end = crate::compression::HEADER_BYTES.saturating_add(len);
        let frame = self.raw.get(crate::compression::HEADER_BYTES..end);
        let (Some(decompressor), Some(frame)) = (&mut self.decompressor, frame) else {
            return Ok(false);
        };
        decompressor
            .unwrap(frame, plain_len, &mut self.plain)
            .map_err(|_| ReceiveError::CannotUncompress)?;
        self.raw.advance(end);
        if len > KEPT_BYTES {
            // The room of a long frame goes with it.
            self.set_raw(BytesMut::from(self.raw.as_ref()));
        }
        self.count_held();
        Ok(true)
    }

    /// Makes room for what a frame holds, of which only the frame's header tells.
    ///
    /// # Errors
    /// Where the connection's memory has none.
    fn make_plain_room(&mut self, bytes: usize) -> Result<(), MySqlError> {
        let (len, capacity) = (self.plain.len(), self.plain.capacity());
        let needed = len.saturating_add(bytes);
        if needed <= capacity {
            return Ok(());
        }
        // Twice as much where a packet comes in many frames, but nothing behind the packet's end.
        let packet = read_u24(&self.plain).map_or(0, |len| len.saturating_add(HEADER_BYTES));
        let wanted = capacity.saturating_mul(2).min(packet);
        let wanted = wanted.max(needed).max(READ_BYTES);
        self.hold_more(wanted)?;
        self.set_plain(with_capacity(&self.plain, wanted));
        Ok(())
    }
}

/// The same bytes with room for so many.
fn with_capacity(bytes: &[u8], capacity: usize) -> BytesMut {
    let mut grown = BytesMut::with_capacity(capacity);
    grown.extend_from_slice(bytes);
    grown
}

fn read_u24(bytes: &[u8]) -> Option<usize> {
    Reader::new(bytes).u24().ok()
}

#[cfg(test)]
mod tests;
