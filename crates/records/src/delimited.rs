//! The file format of LOAD DATA: fields and lines with any terminators, quotes and escapes.
//!
//! Bytes are pushed in as they come, and records are taken out: whoever waits for a client waits
//! between two pushes and holds nothing. A record that has not come whole is read again when twice
//! as much of it is there, so each byte is looked at a few times at most.
//!
//! **Source**: MySQL 8.4 reference manual, "LOAD DATA Statement", field and line handling.

use memchr::{memchr, memchr2, memchr3};

use crate::chunk::{Limits, Reserve};
use crate::error::Error;
use crate::lines::{ends_line, line_ends};

/// Bytes of records that need no grant.
const FREE_BYTES: usize = 1 << 20;

/// What separates fields and lines.
#[derive(Clone, Debug)]
pub struct Delimiters {
    /// Behind each field but the last; never empty.
    pub field_end: Vec<u8>,
    /// Behind each line; never empty.
    pub line_end: Vec<u8>,
    /// In front of each line.
    pub line_start: Vec<u8>,
    /// Around fields.
    pub enclosure: Option<u8>,
    /// In front of bytes that mean something else.
    pub escape: Option<u8>,
}

/// One record: its fields lie one after the other in one buffer.
#[derive(Debug)]
pub struct Record {
    bytes: Vec<u8>,
    /// Where each field that is kept ends, and whether it is NULL.
    ends: Vec<(usize, bool)>,
    /// Fields that are kept. A record of delimiters alone would take many times its length.
    fields_max: usize,
    count: usize,
    is_unterminated: bool,
    lines: u64,
}

impl Record {
    /// A record that keeps so many of its fields, and counts the others.
    pub fn keeping(fields_max: usize) -> Record {
        Record {
            bytes: Vec::new(),
            ends: Vec::new(),
            fields_max,
            count: 0,
            is_unterminated: false,
            lines: 0,
        }
    }

    /// Whether the file ends within a quote of this record.
    pub fn is_unterminated(&self) -> bool {
        self.is_unterminated
    }

    /// How many lines it takes though nothing says that they belong together: the file ends before
    /// its line does, or before its quote. 0 for a record with an end.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// How many fields it has, also those that are not kept.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The bytes of a field, `None` for NULL and for a field that it does not have or keep.
    pub fn field(&self, index: usize) -> Option<&[u8]> {
        let (end, is_null) = *self.ends.get(index)?;
        let before = index
            .checked_sub(1)
            .and_then(|before| self.ends.get(before));
        let start = before.map_or(0, |(end, _)| *end);
        self.bytes.get(start..end).filter(|_| !is_null)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.count = 0;
        self.is_unterminated = false;
        self.lines = 0;
    }

    /// Ends the field whose bytes begin at `start`.
    fn end_field(&mut self, start: usize, is_null: bool) {
        if self.count >= self.fields_max || is_null {
            self.bytes.truncate(start);
        }
        if self.count < self.fields_max {
            self.ends.push((self.bytes.len(), is_null));
        }
        self.count = self.count.saturating_add(1);
    }
}

/// What follows a call of [`Delimited::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A record was read.
    Record,
    /// Bytes are to be pushed, or the end is to be told.
    NeedsBytes,
    /// There are no more records.
    End,
}

/// Takes records out of the bytes of a file.
pub struct Delimited<M> {
    delimiters: Delimiters,
    limits: Limits,
    memory: M,
    buffer: Vec<u8>,
    /// Where the next record begins.
    at: usize,
    /// The line that begins there.
    line: u64,
    /// So many bytes are to be there before a record is tried again.
    wanted: usize,
    granted: usize,
    lines_to_skip: u64,
    /// Whether the file ended within the lines to skip.
    has_skipped_all: bool,
    /// Whether the last byte that was let go of is a carriage return, whose line feed may follow.
    is_behind_return: bool,
    /// Whether bytes of a line were let go of, and not its end.
    is_within_line: bool,
    /// Whether the start of the line was found that `at` stands behind.
    has_start: bool,
    has_ended: bool,
}

/// The buffer ends before it is known what follows.
struct Short;

impl<M: Reserve> Delimited<M> {
    /// A reader that skips some lines first.
    pub fn new(
        delimiters: Delimiters,
        lines_to_skip: u64,
        limits: Limits,
        memory: M,
    ) -> Delimited<M> {
        Delimited {
            has_start: delimiters.line_start.is_empty(),
            delimiters,
            limits,
            memory,
            buffer: Vec::new(),
            at: 0,
            line: 1,
            wanted: 0,
            granted: 0,
            lines_to_skip,
            has_skipped_all: false,
            is_behind_return: false,
            is_within_line: false,
            has_ended: false,
        }
    }

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// If the record that they belong to is too long, or gets no memory.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.buffer.drain(..self.at.min(self.buffer.len()));
        self.at = 0;
        let len = self.buffer.len().saturating_add(bytes.len());
        if len > self.buffer.capacity() {
            self.widen(len)?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Makes room for so many bytes, and then some; long records ask for it.
    fn widen(&mut self, bytes: usize) -> Result<(), Error> {
        let most = self.limits.record_bytes_max.saturating_add(FREE_BYTES);
        let capacity = bytes.max(bytes.saturating_mul(2).min(most));
        if capacity > FREE_BYTES && capacity > self.granted {
            let more = capacity.saturating_sub(self.granted);
            let more = more.saturating_mul(self.limits.copies);
            let line = self.line;
            let granted = self.memory.grow(more);
            granted.map_err(|cause| Error::Memory { line, cause })?;
            self.granted = capacity;
        }
        let more = capacity.saturating_sub(self.buffer.len());
        self.buffer.reserve_exact(more);
        Ok(())
    }

    /// No more bytes follow.
    pub fn finish(&mut self) {
        self.has_ended = true;
        self.wanted = 0;
    }

    /// How many lines were read, the last one also where it has no end.
    pub fn lines(&self) -> u64 {
        let ended = self.line.saturating_sub(1);
        ended.saturating_add(u64::from(self.is_within_line))
    }

    /// Whether the lines to skip were all that there is, and more: the file ended first.
    pub fn has_skipped_all(&self) -> bool {
        self.has_skipped_all
    }

    /// Reads the next record.
    ///
    /// # Errors
    /// [`Error::RecordTooLong`].
    pub fn read(&mut self, record: &mut Record) -> Result<Step, Error> {
        let left = self.buffer.len().saturating_sub(self.at);
        if left < self.wanted {
            return Ok(Step::NeedsBytes);
        }
        if self.skip_lines().is_err() || self.find_start().is_err() {
            return Ok(Step::NeedsBytes);
        }
        let left = self.buffer.len().saturating_sub(self.at);
        // Without a start there is no record; with one, an empty rest is a line without a byte.
        if self.has_ended && (!self.has_start || left == 0 && self.delimiters.line_start.is_empty())
        {
            return Ok(Step::End);
        }
        record.clear();
        if left > record.bytes.capacity() {
            record.bytes.reserve_exact(left);
        }
        let mut scan = Scan {
            bytes: self.buffer.get(self.at..).unwrap_or_default(),
            at: 0,
            is_last: self.has_ended,
            delimiters: &self.delimiters,
            loose_ends: 0,
        };
        match scan.record(record) {
            Ok(()) => {
                let taken = scan.at;
                self.check_length(taken)?;
                self.take(taken);
                self.has_start = self.delimiters.line_start.is_empty();
                self.wanted = 0;
                Ok(Step::Record)
            }
            Err(Short) => {
                self.check_length(left)?;
                let most = self.limits.record_bytes_max.saturating_add(1);
                self.wanted = left.saturating_mul(2).min(most);
                Ok(Step::NeedsBytes)
            }
        }
    }

    fn check_length(&self, bytes: usize) -> Result<(), Error> {
        match bytes > self.limits.record_bytes_max {
            true => Err(Error::RecordTooLong {
                line: self.line,
                limit_bytes: self.limits.record_bytes_max,
                in_quotes: false,
            }),
            false => Ok(()),
        }
    }

    /// Lets go of bytes that were read.
    fn take(&mut self, bytes: usize) {
        let end = self.at.saturating_add(bytes).min(self.buffer.len());
        let taken = self.buffer.get(self.at..end).unwrap_or_default();
        // A line feed behind the return that was counted ends the same line.
        let is_same = self.is_behind_return && taken.first() == Some(&b'\n');
        let lines = line_ends(taken).saturating_sub(u64::from(is_same));
        if let Some(last) = taken.last() {
            self.is_behind_return = *last == b'\r';
            self.is_within_line = !matches!(last, b'\n' | b'\r');
        }
        self.line = self.line.saturating_add(lines);
        self.at = end;
    }

    /// Skips whole lines: quotes in them mean nothing, escapes do.
    fn skip_lines(&mut self) -> Result<(), Short> {
        while self.lines_to_skip > 0 {
            let (end, escape) = (self.delimiters.line_end.clone(), self.delimiters.escape);
            self.lines_to_skip = match self.skip_past(&end, escape)? {
                true => self.lines_to_skip.saturating_sub(1),
                false => {
                    self.has_skipped_all = true;
                    0
                }
            };
        }
        Ok(())
    }

    /// Skips past the first `word` that no escape takes a byte of, or to the end of the file; tells
    /// whether the word was there.
    fn skip_past(&mut self, word: &[u8], escape: Option<u8>) -> Result<bool, Short> {
        let rest = self.buffer.get(self.at..).unwrap_or_default();
        let mut at = 0_usize;
        let is_found = loop {
            let behind = rest.get(at..).unwrap_or_default();
            let found = match (word.first(), escape) {
                (Some(first), Some(escape)) => memchr2(*first, escape, behind),
                (Some(first), None) => memchr(*first, behind),
                (None, _) => None,
            };
            let Some(found) = found else {
                at = rest.len();
                break false;
            };
            at = at.saturating_add(found);
            let behind = behind.get(found..).unwrap_or_default();
            if escape.is_some() && behind.first().copied() == escape {
                // What it escapes may not be there yet.
                if behind.len() < 2 {
                    break false;
                }
                at = at.saturating_add(2);
            } else if behind.starts_with(word) {
                break true;
            } else if word.starts_with(behind) {
                // The word may have begun.
                break false;
            } else {
                at = at.saturating_add(1);
            }
        };
        if is_found {
            self.take(at.saturating_add(word.len()));
            return Ok(true);
        }
        if self.has_ended {
            self.take(rest.len());
            return Ok(false);
        }
        self.take(at);
        Err(Short)
    }

    /// Skips what stands before the start of a line, and lines without one.
    fn find_start(&mut self) -> Result<(), Short> {
        if !self.has_start {
            let start = self.delimiters.line_start.clone();
            self.has_start = self.skip_past(&start, None)?;
        }
        Ok(())
    }
}

/// Reads one record from the beginning of some bytes.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether nothing follows them.
    is_last: bool,
    delimiters: &'a Delimiters,
    /// Ends of lines in fields without quotes, where the file may end before the record does.
    loose_ends: u64,
}

impl Scan<'_> {
    fn record(&mut self, record: &mut Record) -> Result<(), Short> {
        loop {
            let enclosure = self.delimiters.enclosure;
            let is_quoted = enclosure.is_some() && self.peek()? == enclosure;
            let start = record.bytes.len();
            let from = self.at;
            let has_null = match is_quoted {
                true => {
                    self.skip(1);
                    self.quoted(record)?
                }
                false => self.plain(record)?,
            };
            // The letter of an escaped N is there too.
            let is_null = has_null && record.bytes.len() == start.saturating_add(1);
            let is_word = !is_quoted
                && enclosure.is_some()
                && record.bytes.get(start..) == Some(b"NULL".as_slice());
            record.end_field(start, is_null || is_word);
            if self.is_last && (!is_quoted || record.is_unterminated) {
                let ends = self.ends_since(from);
                self.loose_ends = self.loose_ends.saturating_add(ends);
            }
            if self.matches(&self.delimiters.line_end)? {
                self.skip(self.delimiters.line_end.len());
                return Ok(());
            }
            if !self.matches(&self.delimiters.field_end)? {
                record.lines = self.lines();
                return Ok(());
            }
            self.skip(self.delimiters.field_end.len());
        }
    }

    /// Ends of lines in a field that was read from there on, but for those that are escaped.
    fn ends_since(&self, from: usize) -> u64 {
        let field = self.bytes.get(from..self.at).unwrap_or_default();
        let (mut ends, mut is_escaped) = (0_u64, false);
        for (at, byte) in field.iter().enumerate() {
            let is_end = matches!(byte, b'\n' | b'\r') && !is_escaped && ends_line(field, at);
            ends = ends.saturating_add(u64::from(is_end));
            // An escape behind an escape stands for itself.
            is_escaped = !is_escaped && Some(*byte) == self.delimiters.escape;
        }
        ends
    }

    /// The lines of a record that has no end: the end of its last line begins no other one.
    fn lines(&self) -> u64 {
        let last = self.at.checked_sub(1).and_then(|last| self.bytes.get(last));
        let is_ended = self.loose_ends > 0 && matches!(last, Some(b'\n' | b'\r'));
        let lines = self.loose_ends.saturating_add(1);
        lines.saturating_sub(u64::from(is_ended))
    }

    /// A field without quotes; tells whether an N was escaped in it.
    fn plain(&mut self, record: &mut Record) -> Result<bool, Short> {
        let mut has_null = false;
        loop {
            self.copy_usual(record);
            if self.is_at_end()? {
                break;
            }
            let Some(byte) = self.next()? else { break };
            match Some(byte) == self.delimiters.escape {
                true => has_null |= self.escaped(byte, record)?,
                false => record.bytes.push(byte),
            }
        }
        Ok(has_null)
    }

    /// What stands behind an escape; tells whether it is an N. An escape that is a quote too only
    /// stands for itself, when it is doubled.
    fn escaped(&mut self, escape: u8, record: &mut Record) -> Result<bool, Short> {
        let is_quote = self.delimiters.enclosure == Some(escape);
        match self.peek()? {
            Some(byte) if !is_quote || byte == escape => {
                self.skip(1);
                record.bytes.push(unescape(byte));
                Ok(byte == b'N')
            }
            _ => {
                record.bytes.push(escape);
                Ok(false)
            }
        }
    }

    /// Copies the bytes in front of the first that may mean something.
    fn copy_usual(&mut self, record: &mut Record) {
        let first = |word: &[u8]| word.first().copied();
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some((field, line)) =
            first(&self.delimiters.field_end).zip(first(&self.delimiters.line_end))
        else {
            return;
        };
        let found = match self.delimiters.escape {
            Some(escape) => memchr3(field, line, escape, rest),
            None => memchr2(field, line, rest),
        };
        let usual = rest.get(..found.unwrap_or(rest.len()));
        let usual = usual.unwrap_or_default();
        record.bytes.extend_from_slice(usual);
        self.skip(usual.len());
    }

    /// A field in quotes, whose opening one was read; tells whether an N was escaped in it. One
    /// without a closing quote keeps its opening one.
    fn quoted(&mut self, record: &mut Record) -> Result<bool, Short> {
        let start = record.bytes.len();
        let enclosure = self.delimiters.enclosure;
        let mut has_null = false;
        while let Some(byte) = self.next()? {
            if Some(byte) == enclosure {
                if self.peek()? == enclosure {
                    self.skip(1);
                } else if self.peek()?.is_none() || self.is_at_end()? {
                    return Ok(has_null);
                }
                record.bytes.push(byte);
            } else if Some(byte) == self.delimiters.escape {
                has_null |= self.escaped(byte, record)?;
            } else {
                record.bytes.push(byte);
            }
        }
        record.is_unterminated = true;
        if let Some(quote) = enclosure {
            record.bytes.insert(start, quote);
        }
        Ok(has_null)
    }

    fn is_at_end(&self) -> Result<bool, Short> {
        Ok(self.matches(&self.delimiters.field_end)? || self.matches(&self.delimiters.line_end)?)
    }

    fn peek(&self) -> Result<Option<u8>, Short> {
        match self.bytes.get(self.at) {
            Some(byte) => Ok(Some(*byte)),
            None if self.is_last => Ok(None),
            None => Err(Short),
        }
    }

    fn next(&mut self) -> Result<Option<u8>, Short> {
        let byte = self.peek()?;
        self.skip(usize::from(byte.is_some()));
        Ok(byte)
    }

    fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    /// Whether a word stands here.
    fn matches(&self, word: &[u8]) -> Result<bool, Short> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match rest.len() < word.len() && !self.is_last && word.starts_with(rest) {
            true => Err(Short),
            false => Ok(rest.starts_with(word)),
        }
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
