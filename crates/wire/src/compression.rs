//! The compressed protocol: packets inside frames.
//!
//! ```text
//!   frame: [length 3][sequence 1][length before 3][bytes]     length before 0: not compressed
//! ```
//!
//! A frame holds any piece of the stream of packets; frames count their own sequence numbers.
//!
//! Neither direction keeps a buffer of its own: frames are made in the sender's buffer, from no
//! more than [`FRAME_BYTES_MAX`] at a time, and unpacked into the receiver's, in room that the
//! receiver has been granted.
//!
//! **Source**: "Compression", "Compressed Packet"; WL#12475 (zstd).

use std::io;

use bytes::{Buf, BytesMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// The bytes before a frame.
pub(crate) const HEADER_BYTES: usize = 7;
/// Bytes below which a frame is not worth compressing: `MIN_COMPRESS_LENGTH`.
const COMPRESS_BYTES_MIN: usize = 50;
/// Bytes of packets that one of our frames holds. Longer frames would be hardly shorter together,
/// and would have to lie whole in memory; clients take frames of any length.
pub(crate) const FRAME_BYTES_MAX: usize = 64 << 10;
/// zlib's usual level, as MySQL's.
const ZLIB_LEVEL: u32 = 6;
/// The client asks for a level; above this one it would buy little with much of the time of other
/// clients.
const ZSTD_LEVEL_MAX: u8 = 6;

/// What the two sides agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Zlib,
    /// With the level that the client asks for, 1 to 22.
    Zstd(u8),
}

/// Wraps packets into frames.
pub(crate) struct Compressor {
    pub(crate) sequence: u8,
    codec: Encoder,
}

enum Encoder {
    Zlib(Box<Compress>),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    /// # Errors
    /// Those of zstd's set-up: no memory.
    pub(crate) fn new(method: Method) -> io::Result<Compressor> {
        let codec = match method {
            Method::Zlib => {
                Encoder::Zlib(Box::new(Compress::new(Compression::new(ZLIB_LEVEL), true)))
            }
            Method::Zstd(level) => Encoder::Zstd(zstd::bulk::Compressor::new(i32::from(
                level.clamp(1, ZSTD_LEVEL_MAX),
            ))?),
        };
        Ok(Compressor { sequence: 0, codec })
    }

    /// Takes the first of some packets, and appends one frame that holds them; none if there are
    /// no packets.
    pub(crate) fn wrap(&mut self, packets: &mut BytesMut, frames: &mut BytesMut) -> io::Result<()> {
        let plain_len = packets.len().min(FRAME_BYTES_MAX);
        let plain = packets.get(..plain_len).unwrap_or_default();
        if plain.is_empty() {
            return Ok(());
        }
        let start = frames.len();
        let body_at = start.saturating_add(HEADER_BYTES);
        frames.resize(body_at.saturating_add(plain_len), 0);
        let body = frames.get_mut(body_at..).unwrap_or_default();
        let (body_len, told_len) = match self.encode(plain, body)? {
            Some(len) if len < plain_len => (len, plain_len),
            _ => {
                body.copy_from_slice(plain);
                (plain_len, 0)
            }
        };
        frames.truncate(body_at.saturating_add(body_len));
        let [low, middle, high, ..] = body_len.to_le_bytes();
        let [told_low, told_middle, told_high, ..] = told_len.to_le_bytes();
        if let Some(header) = frames.get_mut(start..body_at) {
            header.copy_from_slice(&[
                low,
                middle,
                high,
                self.sequence,
                told_low,
                told_middle,
                told_high,
            ]);
        }
        self.sequence = self.sequence.wrapping_add(1);
        packets.advance(plain_len);
        Ok(())
    }

    /// Compresses into `body`; gives the length, or `None` if that has no room for it.
    fn encode(&mut self, plain: &[u8], body: &mut [u8]) -> io::Result<Option<usize>> {
        if plain.len() < COMPRESS_BYTES_MIN {
            return Ok(None);
        }
        match &mut self.codec {
            Encoder::Zlib(zlib) => {
                zlib.reset();
                let status = zlib
                    .compress(plain, body, FlushCompress::Finish)
                    .map_err(io::Error::other)?;
                let len = usize::try_from(zlib.total_out()).ok();
                Ok(len.filter(|_| status == Status::StreamEnd))
            }
            Encoder::Zstd(zstd) => Ok(zstd.compress_to_buffer(plain, body).ok()),
        }
    }
}

/// Takes packets out of frames.
pub(crate) enum Decompressor {
    Zlib(Box<Decompress>),
    Zstd(zstd::bulk::Decompressor<'static>),
}

impl Decompressor {
    /// # Errors
    /// Those of zstd's set-up: no memory.
    pub(crate) fn new(method: Method) -> io::Result<Decompressor> {
        Ok(match method {
            Method::Zlib => Decompressor::Zlib(Box::new(Decompress::new(true))),
            Method::Zstd(_) => Decompressor::Zstd(zstd::bulk::Decompressor::new()?),
        })
    }

    /// Appends what a frame holds to `out`: `plain_len` bytes exactly, for which the caller has
    /// made room. Nothing is unpacked beyond them, whatever the frame would become.
    ///
    /// # Errors
    /// When the frame does not hold that; `out` is as it was then.
    pub(crate) fn unwrap(
        &mut self,
        frame: &[u8],
        plain_len: usize,
        out: &mut BytesMut,
    ) -> io::Result<()> {
        if plain_len == 0 {
            out.extend_from_slice(frame);
            return Ok(());
        }
        let start = out.len();
        out.resize(start.saturating_add(plain_len), 0);
        let place = out.get_mut(start..).unwrap_or_default();
        let unpacked = self.decode(frame, place);
        if !matches!(unpacked, Ok(len) if len == plain_len) {
            out.truncate(start);
            unpacked?;
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(())
    }

    /// Fills `place`, at most; gives the length.
    fn decode(&mut self, frame: &[u8], place: &mut [u8]) -> io::Result<usize> {
        match self {
            Decompressor::Zlib(zlib) => {
                zlib.reset(true);
                let status = zlib
                    .decompress(frame, place, FlushDecompress::Finish)
                    .map_err(io::Error::other)?;
                match (status, usize::try_from(zlib.total_out())) {
                    (Status::StreamEnd, Ok(len)) => Ok(len),
                    _ => Err(io::ErrorKind::InvalidData.into()),
                }
            }
            Decompressor::Zstd(zstd) => zstd.decompress_to_buffer(frame, place),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What frames hold, which are numbered from 0 on.
    pub(crate) fn plain_of(method: Method, frames: &[u8]) -> BytesMut {
        let mut decompressor = Decompressor::new(method).expect("a decompressor");
        let mut plain = BytesMut::new();
        let mut reader = crate::bytes_in::Reader::new(frames);
        let mut sequence = 0_u8;
        while !reader.is_empty() {
            let len = reader.u24().expect("a length");
            assert_eq!(reader.u8(), Ok(sequence));
            let plain_len = reader.u24().expect("a length");
            let frame = reader.bytes(len).expect("a frame");
            decompressor
                .unwrap(frame, plain_len, &mut plain)
                .expect("what was wrapped");
            sequence = sequence.wrapping_add(1);
        }
        plain
    }

    fn round_trip(method: Method, plain: &[u8]) {
        let mut packets = BytesMut::new();
        let mut compressor = Compressor::new(method).expect("a compressor");
        let mut waiting = BytesMut::from(plain);
        while !waiting.is_empty() {
            let before = packets.len();
            compressor
                .wrap(&mut waiting, &mut packets)
                .expect("a frame");
            assert!(packets.len() - before <= HEADER_BYTES + FRAME_BYTES_MAX);
        }
        assert_eq!(&plain_of(method, &packets)[..], plain);
    }

    #[test]
    fn frames_hold_what_was_put_in() {
        let long: Vec<u8> = (0..20_000_000_u32).map(|n| (n / 7 % 251) as u8).collect();
        for method in [Method::Zlib, Method::Zstd(3)] {
            for plain in [&b"short"[..], &[7; 100], &long[..70_000], &long] {
                round_trip(method, plain);
            }
        }
    }

    #[test]
    fn a_frame_that_promises_another_length_is_an_error() {
        for method in [Method::Zlib, Method::Zstd(3)] {
            let mut packets = BytesMut::new();
            let mut compressor = Compressor::new(method).expect("a compressor");
            compressor
                .wrap(&mut BytesMut::from(&[7_u8; 1000][..]), &mut packets)
                .expect("a frame");
            let frame = &packets[HEADER_BYTES..];
            let mut decompressor = Decompressor::new(method).expect("a decompressor");
            for wrong_len in [1, 999, 1001] {
                let mut out = BytesMut::from(&b"before"[..]);
                let unwrapped = decompressor.unwrap(frame, wrong_len, &mut out);
                assert!(unwrapped.is_err(), "{method:?} {wrong_len}");
                assert_eq!(&out[..], b"before");
            }
            // One that was wrong leaves nothing behind for the next.
            let mut out = BytesMut::new();
            let unwrapped = decompressor.unwrap(frame, 1000, &mut out);
            unwrapped.expect("the length is right");
            assert_eq!(&out[..], [7; 1000]);
        }
    }

    /// A thousand times as long as its frame, of which the header admits a little.
    #[test]
    fn a_bomb_stops_at_the_length_that_its_header_claims() {
        const CLAIMED_BYTES: usize = 1000;
        let plain = vec![0_u8; 8 << 20];
        let mut zlib_frame = Vec::with_capacity(plain.len());
        Compress::new(Compression::best(), true)
            .compress_vec(&plain, &mut zlib_frame, FlushCompress::Finish)
            .expect("a stream");
        let zstd_frame = zstd::bulk::compress(&plain, 3).expect("a frame");
        for (method, frame) in [(Method::Zlib, zlib_frame), (Method::Zstd(3), zstd_frame)] {
            assert!(frame.len() < plain.len() / 500, "{method:?}");
            let mut decompressor = Decompressor::new(method).expect("a decompressor");
            let mut out = BytesMut::with_capacity(CLAIMED_BYTES);
            let room = out.capacity();
            let unwrapped = decompressor.unwrap(&frame, CLAIMED_BYTES, &mut out);
            assert!(unwrapped.is_err(), "{method:?}");
            assert_eq!((out.len(), out.capacity()), (0, room), "{method:?}");
        }
    }
}
