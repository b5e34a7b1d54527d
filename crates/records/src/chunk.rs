//! Cuts a file into chunks of whole records.
//!
//! Owns the buffer of what was read and not handed on. A record that is longer than a chunk makes
//! the buffer twice as long, up to a limit; what that takes is granted before. A splitter goes on
//! where it stopped, so a record of any length is looked at once.

use std::io::Read;

use memchr::{memchr_iter, memchr2};

use crate::array::Misplaced;
use crate::error::Error;
use crate::lines::line_ends;
use crate::split::{Format, Splitter};

/// Bytes of a usual chunk: some thousand records of usual length, which stay in the cache of a
/// core.
const CHUNK_BYTES: usize = 256 << 10;
/// Bytes that one step reads.
const STEP_BYTES: usize = CHUNK_BYTES;
/// UTF-8's byte order mark.
const MARK: &[u8] = &[0xEF, 0xBB, 0xBF];

/// Grants the memory of long records.
pub trait Reserve: Sized {
    /// Asks for so many bytes more.
    ///
    /// # Errors
    /// Why there are none.
    fn grow(&mut self, bytes: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

    /// Moves what was granted into one of its own, which gives it back when it is dropped.
    fn take(&mut self) -> Self;
}

/// Grants everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl Reserve for Unlimited {
    fn grow(&mut self, _bytes: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }

    fn take(&mut self) -> Unlimited {
        Unlimited
    }
}

/// How long records may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the longest record.
    pub record_bytes_max: usize,
    /// Bytes that are reserved for each byte of a long record: the record itself, and the copies
    /// that whoever reads it makes.
    pub copies: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            record_bytes_max: 64 << 20,
            copies: 2,
        }
    }
}

/// Whole records, as they stand in the file.
#[derive(Debug)]
pub struct Chunk<M> {
    pub(crate) bytes: Vec<u8>,
    /// Where the next record begins.
    pub(crate) at: usize,
    /// The line that begins there.
    pub(crate) line: u64,
    /// What was granted for it.
    _memory: M,
}

impl<M> Chunk<M> {
    /// Whether all records were read.
    pub fn is_read(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The buffer of a chunk that was read, to be used again.
    pub fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }
}

/// What follows a call of [`ChunkReader::step`].
#[derive(Debug)]
pub enum ChunkStep<M> {
    /// The next chunk.
    Chunk(Chunk<M>),
    /// More is to be read until there is one: another step, before which others may have their
    /// turn.
    Reading,
    /// There are no more chunks.
    End,
}

/// Reads chunks.
pub struct ChunkReader<R, M> {
    reader: R,
    memory: M,
    limits: Limits,
    splitter: Splitter,
    buffer: Vec<u8>,
    /// Bytes that the buffer should hold before it is looked at.
    wanted: usize,
    /// Bytes that were granted for the buffer.
    granted: usize,
    /// The line on which the buffer begins.
    line: u64,
    /// Lines in front of the first record that are still to be skipped.
    skipped: u64,
    has_begun: bool,
    has_ended: bool,
    /// A buffer that was used.
    spare: Vec<u8>,
}

impl<R: Read, M: Reserve> ChunkReader<R, M> {
    /// Reads a file from its beginning.
    pub fn new(reader: R, format: Format, limits: Limits, memory: M) -> ChunkReader<R, M> {
        ChunkReader {
            reader,
            memory,
            limits,
            splitter: Splitter::new(format),
            buffer: Vec::new(),
            wanted: usual_bytes(limits),
            granted: 0,
            line: 1,
            skipped: 0,
            has_begun: false,
            has_ended: false,
            spare: Vec::new(),
        }
    }

    /// The same, but for so many lines at the beginning, whatever they hold.
    #[must_use]
    pub fn without_lines(self, lines: u64) -> ChunkReader<R, M> {
        ChunkReader {
            skipped: lines,
            ..self
        }
    }

    /// The next chunk, `None` at the end of the file: as many steps as that takes.
    ///
    /// # Errors
    /// As for [`ChunkReader::step`].
    pub fn next_chunk(&mut self) -> Result<Option<Chunk<M>>, Error> {
        loop {
            match self.step()? {
                ChunkStep::Chunk(chunk) => return Ok(Some(chunk)),
                ChunkStep::Reading => {}
                ChunkStep::End => return Ok(None),
            }
        }
    }

    /// Reads a part of the next chunk. A usual one takes a single step.
    ///
    /// # Errors
    /// If the file cannot be read, a record is too long, or the last one has no end.
    pub fn step(&mut self) -> Result<ChunkStep<M>, Error> {
        // What was granted for the chunk before belongs to that chunk.
        self.grant(self.wanted)?;
        self.fill()?;
        if self.buffer.len() < self.wanted && !self.has_ended {
            return Ok(ChunkStep::Reading);
        }
        if self.skipped > 0 {
            self.skip_lines();
            return Ok(ChunkStep::Reading);
        }
        let scanned = self.splitter.scan(&mut self.buffer, self.has_ended);
        let cut = scanned.map_err(|misplaced| self.misplaced(misplaced))?;
        if cut > 0 {
            return Ok(ChunkStep::Chunk(self.emit(cut)));
        }
        if self.has_ended {
            return match self.buffer.is_empty() && self.splitter.may_end() {
                true => Ok(ChunkStep::End),
                false => Err(Error::Unterminated {
                    line: self.line,
                    what: self.splitter.unfinished(),
                }),
            };
        }
        self.widen()?;
        Ok(ChunkStep::Reading)
    }

    /// Gives back the buffer of a chunk that was read.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() <= usual_bytes(self.limits).saturating_mul(2) {
            self.spare = buffer;
        }
    }

    /// Reads on towards what the buffer should hold, or to the end of the file.
    fn fill(&mut self) -> Result<(), Error> {
        let missing = self.wanted.saturating_sub(self.buffer.len());
        if missing > 0 && !self.has_ended {
            self.buffer.reserve_exact(missing);
            let part_bytes = missing.min(STEP_BYTES);
            let mut part = self.reader.by_ref().take(part_bytes as u64);
            let read = part.read_to_end(&mut self.buffer)?;
            self.has_ended = read < part_bytes;
        }
        if !self.has_begun {
            self.has_begun = true;
            if self.buffer.starts_with(MARK) {
                self.buffer.drain(..MARK.len());
            }
        }
        Ok(())
    }

    /// Drops the lines of the buffer that are to be skipped. The end of one that is longer is
    /// looked for in what is read next.
    fn skip_lines(&mut self) {
        let mut at: usize = 0;
        while self.skipped > 0 {
            let rest = self.buffer.get(at..).unwrap_or_default();
            let Some(found) = memchr2(b'\n', b'\r', rest) else {
                at = self.buffer.len();
                break;
            };
            let end = at.saturating_add(found);
            let is_return = rest.get(found) == Some(&b'\r');
            at = end.saturating_add(1);
            let follows = self.buffer.get(at);
            if is_return && follows.is_none() && !self.has_ended {
                // A line feed may follow.
                at = end;
                break;
            }
            let is_pair = is_return && follows == Some(&b'\n');
            at = at.saturating_add(usize::from(is_pair));
            self.skipped = self.skipped.saturating_sub(1);
            self.line = self.line.saturating_add(1);
        }
        self.buffer.drain(..at);
        if self.has_ended && self.buffer.is_empty() {
            self.skipped = 0;
        }
    }

    /// The error of what stands between the objects of an array.
    fn misplaced(&self, misplaced: Misplaced) -> Error {
        let before = self.buffer.get(..misplaced.at).unwrap_or_default();
        let lines = memchr_iter(b'\n', before).count() as u64;
        Error::BadJson {
            line: self.line.saturating_add(lines),
            expected: misplaced.expected,
        }
    }

    /// Makes room for a record that is longer than the buffer.
    fn widen(&mut self) -> Result<(), Error> {
        let max = self.limits.record_bytes_max;
        if self.buffer.len() > max {
            return Err(Error::RecordTooLong {
                line: self.line,
                limit_bytes: max,
                in_quotes: self.splitter.is_in_quotes(),
            });
        }
        // One byte more than the limit tells that a record is too long.
        self.wanted = self.wanted.saturating_mul(2).min(max.saturating_add(1));
        Ok(())
    }

    /// Asks for the memory of a buffer, unless it is a usual one.
    fn grant(&mut self, buffer_bytes: usize) -> Result<(), Error> {
        if buffer_bytes > usual_bytes(self.limits) && buffer_bytes > self.granted {
            let more = buffer_bytes.saturating_sub(self.granted);
            let more = more.saturating_mul(self.limits.copies);
            let line = self.line;
            let granted = self.memory.grow(more);
            granted.map_err(|cause| Error::Memory { line, cause })?;
            self.granted = buffer_bytes;
        }
        Ok(())
    }

    /// Hands on what stands before `cut`, and keeps the rest.
    fn emit(&mut self, cut: usize) -> Chunk<M> {
        let usual = usual_bytes(self.limits);
        let rest = self.buffer.get(cut..).unwrap_or_default();
        let mut kept = std::mem::take(&mut self.spare);
        kept.clear();
        kept.reserve_exact(usual.max(rest.len()));
        kept.extend_from_slice(rest);
        let mut bytes = std::mem::replace(&mut self.buffer, kept);
        bytes.truncate(cut);
        self.wanted = usual.max(self.buffer.len());
        self.granted = 0;
        self.splitter.cut(cut);
        let line = self.line;
        let lines = match self.splitter.format() {
            // A record ends behind CRLF or in front of it, never within.
            Format::Csv(_) => line_ends(&bytes),
            Format::Json => memchr_iter(b'\n', &bytes).count() as u64,
        };
        self.line = self.line.saturating_add(lines);
        Chunk {
            bytes,
            at: 0,
            line,
            _memory: self.memory.take(),
        }
    }
}

/// Bytes of a usual chunk where records are no longer than the limit.
fn usual_bytes(limits: Limits) -> usize {
    CHUNK_BYTES.min(limits.record_bytes_max.saturating_add(1))
}
