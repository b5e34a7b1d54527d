//! Compressed text files: what their decompressors take is granted before they take it.
//!
//! The writer of a file chooses how far back it refers, up to gigabytes, and who reads it keeps as
//! much. Up to 4 MiB are free, as gzip and bzip2 never take more; windows of zstd and dictionaries
//! of xz beyond it are reserved from the budget of the statement.
//!
//! **Source**: RFC 8878, "Zstandard Compression", section 3.1.1.1; `lzma_memlimit_set` of liblzma.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::sync::Arc;

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use liblzma::stream::{Action, CONCATENATED, Error as XzError, Status, Stream};
use zstd::stream::read::Decoder;

use crate::errors;

/// What a decompressor may take without being granted it.
const FREE_BYTES: u64 = 4 << 20;
/// How exactly the need of xz is found.
const STEP_BYTES: u64 = 64 << 10;
/// The first bytes of a frame of zstd.
const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// The longest header of a frame.
const HEADER_BYTES: usize = 18;
/// The smallest window that zstd lets one set as its limit.
const WINDOW_LOG_MIN: u32 = 10;
const MIB: u64 = 1 << 20;

/// Reads a file that may be compressed.
///
/// # Errors
/// If it cannot be read, or its decompressor gets no memory.
pub(super) fn reader(
    file: File,
    compression: FileCompressionType,
    path: &str,
    pool: &Arc<dyn MemoryPool>,
) -> io::Result<Box<dyn Read + Send>> {
    let window = Window {
        path: path.to_owned(),
        granted_bytes: FREE_BYTES,
        memory: MemoryConsumer::new("windows of compressed files").register(pool),
    };
    if compression == FileCompressionType::ZSTD {
        Ok(Box::new(ZstdReader::new(file, window)?))
    } else if compression == FileCompressionType::XZ {
        Ok(Box::new(XzReader::new(file, window)?))
    } else {
        let reader = compression.convert_read(file);
        reader.map_err(|error| io::Error::other(error.to_string()))
    }
}

/// The memory of one decompressor.
struct Window {
    path: String,
    granted_bytes: u64,
    memory: MemoryReservation,
}

impl Window {
    /// Asks for what the decompressor needs from here on.
    fn grow_to(&mut self, bytes: u64) -> io::Result<()> {
        let missing = bytes.saturating_sub(self.granted_bytes);
        if missing == 0 {
            return Ok(());
        }
        let granted = self
            .memory
            .try_grow(usize::try_from(missing).unwrap_or(usize::MAX));
        granted.map_err(|error| {
            let mut error = errors::from_plan(&error);
            let (path, need) = (&self.path, bytes.div_ceil(MIB));
            let text = format!("; decompressing file '{path}' takes {need} MiB");
            error.message.push_str(&text);
            io::Error::other(error)
        })?;
        self.granted_bytes = bytes;
        Ok(())
    }
}

/// A file behind those of its next bytes that were looked at.
type Peeked = Chain<Cursor<Vec<u8>>, BufReader<File>>;

/// Looks at the next bytes: as many as a header has, or the file has left.
fn peeked(file: Peeked) -> io::Result<Peeked> {
    let (mut seen, mut file) = file.into_inner();
    let mut head = Vec::with_capacity(HEADER_BYTES);
    seen.read_to_end(&mut head)?;
    let missing = HEADER_BYTES.saturating_sub(head.len()) as u64;
    file.by_ref().take(missing).read_to_end(&mut head)?;
    Ok(Cursor::new(head).chain(file))
}

/// Reads a file of zstd frame by frame, since each has a window of its own.
struct ZstdReader {
    /// `None` at the end of the file.
    frame: Option<Decoder<'static, Peeked>>,
    window: Window,
}

impl ZstdReader {
    fn new(file: File, window: Window) -> io::Result<ZstdReader> {
        let file = Cursor::new(Vec::new()).chain(BufReader::new(file));
        let mut reader = ZstdReader {
            frame: None,
            window,
        };
        reader.begin_frame(file)?;
        Ok(reader)
    }

    fn begin_frame(&mut self, file: Peeked) -> io::Result<()> {
        let file = peeked(file)?;
        let header = file.get_ref().0.get_ref();
        if header.is_empty() {
            return Ok(());
        }
        let window_bytes = window_bytes(header).unwrap_or_default();
        self.window.grow_to(window_bytes)?;
        let limit = window_bytes.checked_next_power_of_two();
        let limit = limit.map_or(u64::BITS, u64::trailing_zeros);
        let mut frame = Decoder::with_buffer(file)?.single_frame();
        frame.window_log_max(limit.max(WINDOW_LOG_MIN))?;
        self.frame = Some(frame);
        Ok(())
    }
}

impl Read for ZstdReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(frame) = self.frame.as_mut().filter(|_| !out.is_empty()) {
            let read = frame.read(out)?;
            if read > 0 {
                return Ok(read);
            }
            if let Some(frame) = self.frame.take() {
                self.begin_frame(frame.finish())?;
            }
        }
        Ok(0)
    }
}

/// The window that the header of a frame asks for; `None` if it is none, which its decoder tells.
fn window_bytes(header: &[u8]) -> Option<u64> {
    let (descriptor, rest) = header.strip_prefix(&MAGIC)?.split_first()?;
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let window = rest.first()?;
        let base = 1_u64.checked_shl(u32::from(window >> 3).checked_add(10)?)?;
        let step = base.checked_div(8)?;
        return base.checked_add(step.checked_mul(u64::from(window & 7))?);
    }
    // The whole content is the window.
    let dictionary_bytes = [0, 1, 2, 4].get(usize::from(descriptor & 3))?;
    let (content_bytes, more) = match descriptor >> 6 {
        0 => (1, 0),
        1 => (2, 256),
        2 => (4, 0),
        _ => (8, 0),
    };
    let content = rest.get(*dictionary_bytes..)?.get(..content_bytes)?;
    let mut number = [0; 8];
    number.get_mut(..content_bytes)?.copy_from_slice(content);
    u64::from_le_bytes(number).checked_add(more)
}

/// Reads a file of xz; its decoder tells when it needs more memory, and goes on with it.
struct XzReader {
    file: BufReader<File>,
    stream: Stream,
    window: Window,
}

impl XzReader {
    fn new(file: File, window: Window) -> io::Result<XzReader> {
        Ok(XzReader {
            file: BufReader::new(file),
            stream: Stream::new_auto_decoder(FREE_BYTES, CONCATENATED)?,
            window,
        })
    }

    /// Finds what the decoder needs, and asks for it. A limit that is too small is refused.
    fn raise_limit(&mut self) -> io::Result<()> {
        let mut too_small = self.stream.memlimit();
        let mut enough = too_small.saturating_mul(2);
        while self.stream.set_memlimit(enough).is_err() {
            if enough == u64::MAX {
                return Err(XzError::MemLimit.into());
            }
            too_small = enough;
            enough = enough.saturating_mul(2);
        }
        while enough.saturating_sub(too_small) > STEP_BYTES {
            let middle = too_small.midpoint(enough);
            match self.stream.set_memlimit(middle) {
                Ok(()) => enough = middle,
                Err(_) => too_small = middle,
            }
        }
        self.window.grow_to(enough)?;
        Ok(self.stream.set_memlimit(enough)?)
    }
}

impl Read for XzReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let input = self.file.fill_buf()?;
            let is_end = input.is_empty();
            let action = match is_end {
                true => Action::Finish,
                false => Action::Run,
            };
            let before = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.process(input, out, action);
            let consumed = self.stream.total_in().saturating_sub(before.0);
            let read = self.stream.total_out().saturating_sub(before.1);
            self.file
                .consume(usize::try_from(consumed).unwrap_or(usize::MAX));
            let read = usize::try_from(read).unwrap_or(usize::MAX);
            let has_ended = match status {
                Err(XzError::MemLimit) => {
                    self.raise_limit()?;
                    false
                }
                Ok(Status::StreamEnd) => true,
                Ok(_) if is_end && read == 0 => {
                    let error = io::ErrorKind::UnexpectedEof;
                    return Err(io::Error::new(error, "the xz stream has no end"));
                }
                Ok(_) => false,
                Err(error) => return Err(error.into()),
            };
            if read > 0 || has_ended {
                return Ok(read);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_their_windows() {
        let check = |header: &[u8], expect: Option<u64>| {
            assert_eq!(window_bytes(header), expect, "{header:02x?}");
        };
        let frame = |rest: &[u8]| [MAGIC.as_slice(), rest].concat();
        check(&frame(&[0x00, 0x00]), Some(1 << 10));
        check(&frame(&[0x04, 0x58]), Some(2 << 20));
        check(&frame(&[0x04, 0x8B]), Some((1 << 27) + (3 << 24)));
        check(&frame(&[0x20, 0x07]), Some(7));
        check(&frame(&[0x60, 0x01, 0x02]), Some(0x201 + 256));
        check(&frame(&[0xA1, 0x55, 0, 0, 0, 0x40]), Some(1 << 30));
        check(&frame(&[0xE0, 0, 0, 0, 0, 1, 0, 0, 0]), Some(1 << 32));
        check(&frame(&[0xE0, 0, 0]), None);
        check(&frame(&[]), None);
        check(&[0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0], None);
    }
}
