//! The compressed protocol: packets inside frames.
//!
//! ```text
//!   frame: [length 3][sequence 1][length before 3][bytes]     length before 0: not compressed
//! ```
//!
//! A frame holds any piece of the stream of packets; frames count their own sequence numbers.
//!
//! **Source**: "Compression", "Compressed Packet"; WL#12475 (zstd).

use std::io;

use bytes::BytesMut;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::sender::PAYLOAD_BYTES_MAX;

/// The bytes before a frame.
pub(crate) const HEADER_BYTES: usize = 7;
/// Bytes below which a frame is not worth compressing: `MIN_COMPRESS_LENGTH`.
const COMPRESS_BYTES_MIN: usize = 50;
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
    frame: Vec<u8>,
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
        Ok(Compressor {
            sequence: 0,
            codec,
            frame: Vec::new(),
        })
    }

    /// Takes packets, and appends frames that hold them.
    pub(crate) fn wrap(&mut self, packets: &mut BytesMut, frames: &mut BytesMut) -> io::Result<()> {
        let plain = packets.split();
        for chunk in plain.chunks(PAYLOAD_BYTES_MAX) {
            self.frame.clear();
            if chunk.len() >= COMPRESS_BYTES_MIN {
                self.encode(chunk)?;
            }
            let is_shorter = !self.frame.is_empty() && self.frame.len() < chunk.len();
            let (body, plain_len) = match is_shorter {
                true => (self.frame.as_slice(), chunk.len()),
                false => (chunk, 0),
            };
            let [low, middle, high, ..] = body.len().to_le_bytes();
            let [plain_low, plain_middle, plain_high, ..] = plain_len.to_le_bytes();
            frames.extend_from_slice(&[low, middle, high, self.sequence]);
            frames.extend_from_slice(&[plain_low, plain_middle, plain_high]);
            frames.extend_from_slice(body);
            self.sequence = self.sequence.wrapping_add(1);
        }
        Ok(())
    }

    /// Fills `frame`; leaves it empty if that would make the bytes more.
    fn encode(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.frame.reserve(chunk.len());
        match &mut self.codec {
            Encoder::Zlib(zlib) => {
                zlib.reset();
                let status = zlib
                    .compress_vec(chunk, &mut self.frame, FlushCompress::Finish)
                    .map_err(io::Error::other)?;
                if status != Status::StreamEnd {
                    self.frame.clear();
                }
            }
            Encoder::Zstd(zstd) => {
                if zstd.compress_to_buffer(chunk, &mut self.frame).is_err() {
                    self.frame.clear();
                }
            }
        }
        Ok(())
    }
}

/// Takes packets out of frames.
pub(crate) struct Decompressor {
    codec: Decoder,
    plain: Vec<u8>,
}

enum Decoder {
    Zlib(Box<Decompress>),
    Zstd(zstd::bulk::Decompressor<'static>),
}

impl Decompressor {
    /// # Errors
    /// Those of zstd's set-up: no memory.
    pub(crate) fn new(method: Method) -> io::Result<Decompressor> {
        let codec = match method {
            Method::Zlib => Decoder::Zlib(Box::new(Decompress::new(true))),
            Method::Zstd(_) => Decoder::Zstd(zstd::bulk::Decompressor::new()?),
        };
        Ok(Decompressor {
            codec,
            plain: Vec::new(),
        })
    }

    /// Appends what a frame holds to `out`: `plain_len` bytes exactly.
    ///
    /// # Errors
    /// When the frame does not hold that.
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
        self.plain.clear();
        self.plain.reserve_exact(plain_len);
        match &mut self.codec {
            Decoder::Zlib(zlib) => {
                zlib.reset(true);
                let status = zlib
                    .decompress_vec(frame, &mut self.plain, FlushDecompress::Finish)
                    .map_err(io::Error::other)?;
                if status != Status::StreamEnd {
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
            Decoder::Zstd(zstd) => {
                zstd.decompress_to_buffer(frame, &mut self.plain)?;
            }
        }
        if self.plain.len() != plain_len {
            return Err(io::ErrorKind::InvalidData.into());
        }
        out.extend_from_slice(&self.plain);
        // A client that once sent much does not keep the room.
        if plain_len > crate::reply::FLUSH_BYTES {
            self.plain = Vec::new();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(method: Method, plain: &[u8]) {
        let mut packets = BytesMut::new();
        let mut compressor = Compressor::new(method).expect("a compressor");
        compressor
            .wrap(&mut BytesMut::from(plain), &mut packets)
            .expect("frames");
        let mut decompressor = Decompressor::new(method).expect("a decompressor");
        let mut out = BytesMut::new();
        let mut reader = crate::bytes_in::Reader::new(&packets);
        let mut sequence = 0;
        while !reader.is_empty() {
            let len = reader.u24().expect("a length");
            assert_eq!(reader.u8(), Ok(sequence));
            let plain_len = reader.u24().expect("a length");
            let frame = reader.bytes(len).expect("a frame");
            decompressor
                .unwrap(frame, plain_len, &mut out)
                .expect("what was wrapped");
            sequence += 1;
        }
        assert_eq!(&out[..], plain);
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
            for wrong_len in [1, 999, 1001] {
                let mut decompressor = Decompressor::new(method).expect("a decompressor");
                let unwrapped = decompressor.unwrap(frame, wrong_len, &mut BytesMut::new());
                assert!(unwrapped.is_err(), "{method:?} {wrong_len}");
            }
        }
    }
}
