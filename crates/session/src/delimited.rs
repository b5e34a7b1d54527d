//! The file format of LOAD DATA: fields and lines with any terminators, quotes and escapes.
//!
//! Owns the reading of records; never knows a table.
//!
//! Source: MySQL 8.4 reference manual, "LOAD DATA Statement", field and line handling.

use std::io::{self, Read};

use mayfly_sql::statement::FileFormat;

const CHUNK_BYTES: usize = 256 << 10;

/// How fields and lines are told apart.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    field_end: Vec<u8>,
    line_end: Vec<u8>,
    line_start: Vec<u8>,
    enclosure: Option<u8>,
    escape: Option<u8>,
}

impl Shape {
    pub(crate) fn of(format: &FileFormat) -> Shape {
        let byte = |c: Option<char>| c.and_then(|c| u8::try_from(c).ok());
        Shape {
            field_end: format.field_terminator.clone().into_bytes(),
            line_end: format.line_terminator.clone().into_bytes(),
            line_start: format.line_start.clone().into_bytes(),
            enclosure: byte(format.enclosure),
            escape: byte(format.escape),
        }
    }
}

/// One record: its fields lie one after the other in one buffer.
#[derive(Debug, Default)]
pub(crate) struct Record {
    bytes: Vec<u8>,
    /// Where each field ends, and whether it is NULL.
    ends: Vec<(usize, bool)>,
}

impl Record {
    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of a field, `None` for NULL.
    pub(crate) fn field(&self, index: usize) -> Option<&[u8]> {
        let (end, is_null) = self.ends[index];
        let start = if index == 0 {
            0
        } else {
            self.ends[index - 1].0
        };
        (!is_null).then(|| &self.bytes[start..end])
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Reads records.
pub(crate) struct Records<R> {
    shape: Shape,
    reader: R,
    buffer: Vec<u8>,
    at: usize,
    ended: bool,
}

impl<R: Read> Records<R> {
    pub(crate) fn new(reader: R, shape: Shape) -> Records<R> {
        Records {
            shape,
            reader,
            buffer: Vec::new(),
            at: 0,
            ended: false,
        }
    }

    /// Skips whole lines.
    pub(crate) fn skip_lines(&mut self, count: u64) -> io::Result<()> {
        for _ in 0..count {
            loop {
                if self.matches(&self.shape.line_end.clone())? {
                    self.at += self.shape.line_end.len();
                    break;
                }
                if self.next()?.is_none() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads the next record; `false` at the end of the file.
    pub(crate) fn read(&mut self, record: &mut Record) -> io::Result<bool> {
        record.clear();
        let line_start = self.shape.line_start.clone();
        if !line_start.is_empty() {
            // Whatever stands before the start of a line is skipped, and lines without one too.
            loop {
                if self.matches(&line_start)? {
                    self.at += line_start.len();
                    break;
                }
                if self.next()?.is_none() {
                    return Ok(false);
                }
            }
        } else if self.peek()?.is_none() {
            return Ok(false);
        }
        let (field_end, line_end) = (self.shape.field_end.clone(), self.shape.line_end.clone());
        loop {
            let quoted = self.shape.enclosure.is_some() && self.peek()? == self.shape.enclosure;
            let is_null = if quoted {
                self.at += 1;
                self.quoted(record, &field_end, &line_end)?;
                false
            } else {
                self.plain(record, &field_end, &line_end)?
            };
            record.ends.push((record.bytes.len(), is_null));
            if !line_end.is_empty() && self.matches(&line_end)? {
                self.at += line_end.len();
                return Ok(true);
            }
            if !field_end.is_empty() && self.matches(&field_end)? {
                self.at += field_end.len();
                continue;
            }
            return Ok(true);
        }
    }

    /// A field without quotes; tells whether it is NULL.
    fn plain(&mut self, record: &mut Record, field: &[u8], line: &[u8]) -> io::Result<bool> {
        let start = record.bytes.len();
        let mut is_null = false;
        while !self.at_end(field, line)? {
            let Some(byte) = self.next()? else { break };
            if Some(byte) == self.shape.escape {
                match self.next()? {
                    Some(b'N') if record.bytes.len() == start => {
                        is_null = self.peek()?.is_none() || self.at_end(field, line)?;
                        if is_null {
                            break;
                        }
                        record.bytes.push(b'N');
                    }
                    Some(escaped) => record.bytes.push(unescape(escaped)),
                    None => record.bytes.push(byte),
                }
            } else {
                record.bytes.push(byte);
            }
        }
        let word_null = self.shape.enclosure.is_some() && &record.bytes[start..] == b"NULL";
        if word_null {
            record.bytes.truncate(start);
        }
        Ok(is_null || word_null)
    }

    /// A field in quotes, whose opening one has been read.
    fn quoted(&mut self, record: &mut Record, field: &[u8], line: &[u8]) -> io::Result<()> {
        while let Some(byte) = self.next()? {
            if Some(byte) == self.shape.enclosure {
                if self.peek()? == self.shape.enclosure {
                    self.at += 1;
                } else if self.peek()?.is_none() || self.at_end(field, line)? {
                    return Ok(());
                }
                record.bytes.push(byte);
            } else if Some(byte) == self.shape.escape {
                match self.next()? {
                    Some(escaped) => record.bytes.push(unescape(escaped)),
                    None => record.bytes.push(byte),
                }
            } else {
                record.bytes.push(byte);
            }
        }
        Ok(())
    }

    fn at_end(&mut self, field: &[u8], line: &[u8]) -> io::Result<bool> {
        Ok(!field.is_empty() && self.matches(field)? || !line.is_empty() && self.matches(line)?)
    }

    #[inline]
    fn peek(&mut self) -> io::Result<Option<u8>> {
        self.fill(1)?;
        Ok(self.buffer.get(self.at).copied())
    }

    #[inline]
    fn next(&mut self) -> io::Result<Option<u8>> {
        let byte = self.peek()?;
        self.at += usize::from(byte.is_some());
        Ok(byte)
    }

    #[inline]
    fn matches(&mut self, word: &[u8]) -> io::Result<bool> {
        self.fill(word.len())?;
        Ok(self.buffer[self.at..].starts_with(word))
    }

    /// Sees to it that this many bytes are in the buffer, unless the file ends before.
    #[inline]
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        if self.buffer.len() - self.at >= bytes || self.ended {
            return Ok(());
        }
        self.refill(bytes)
    }

    fn refill(&mut self, bytes: usize) -> io::Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        while self.buffer.len() < bytes && !self.ended {
            let start = self.buffer.len();
            self.buffer.resize(start + CHUNK_BYTES, 0);
            let read = self.reader.read(&mut self.buffer[start..])?;
            self.buffer.truncate(start + read);
            self.ended = read == 0;
        }
        Ok(())
    }
}

const fn unescape(byte: u8) -> u8 {
    match byte {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 26,
        other => other,
    }
}
