//! The header and the directory of a page: where its columns lie.

use super::form::Form;
use super::format::{Format, Kind};
use super::frame::Frame;
use super::sizes::{ENTRY_BYTES, HEADER_BYTES, align};
use super::text_codes::TextCodes;
use super::value_bytes::ValueBytes;
use crate::error::{Error, Result};

/// What is added to the tag of a kind where the values of a page have a form of their own: integers
/// that are distances from a base, texts that are codes.
const FORM_TAG: u32 = 8;
pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"MFCP");
/// Most bytes of a page: what its 32-bit offsets, which Arrow reads as signed, can address.
const PAGE_BYTES_MAX: usize = i32::MAX as usize;

/// One column of a page's directory; offsets are in bytes from the start of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: u32,
    pub(super) null_count: u32,
    /// Zero if no value is null.
    pub(super) validity_offset: u32,
    pub(super) values_offset: u32,
    pub(super) values_bytes: u32,
    /// Of narrow integers, the lower half of their base.
    pub(super) data_offset: u32,
    /// Of narrow integers, the upper half of their base. The data of texts that are codes are the
    /// words with their ends.
    pub(super) data_bytes: u32,
    /// Behind the data, without padding. Of narrow integers, the bytes of one; of texts that are
    /// codes, the number of words.
    pub(super) prefix_bytes: u32,
}

/// Where the columns of a page lie.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) entries: Vec<Entry>,
    pub(super) len_bytes: usize,
}

impl Layout {
    /// A page without columns yet.
    pub(super) fn new(format: &Format) -> Self {
        Self {
            entries: Vec::with_capacity(format.kinds.len()),
            len_bytes: align(HEADER_BYTES + ENTRY_BYTES * format.kinds.len()),
        }
    }

    /// Places the next column. `bytes` are those of texts, or of the words of codes.
    pub(super) fn place(
        &mut self,
        kind: Kind,
        rows: usize,
        null_count: usize,
        bytes: ValueBytes,
        form: Form,
    ) -> Result<()> {
        let mut entry = Entry {
            kind: kind.tag(),
            null_count: narrow(null_count)?,
            ..Entry::default()
        };
        if null_count > 0 {
            (entry.validity_offset, _) = self.take(rows.div_ceil(8))?;
        }
        let values_bytes = match kind {
            Kind::Null => None,
            Kind::Stream => Some(bytes.data),
            _ => Some(kind.values_bytes(rows, form)),
        };
        if let Some(bytes) = values_bytes {
            (entry.values_offset, entry.values_bytes) = self.take(bytes)?;
        }
        if matches!(kind, Kind::Bytes | Kind::Text) {
            (entry.data_offset, _) = self.take(bytes.sum())?;
            entry.data_bytes = narrow(bytes.data)?;
            entry.prefix_bytes = narrow(bytes.prefixes)?;
        }
        entry.set_form(form);
        self.entries.push(entry);
        Ok(())
    }

    fn take(&mut self, len_bytes: usize) -> Result<(u32, u32)> {
        let offset = self.len_bytes;
        let end = offset.saturating_add(len_bytes);
        let place = (narrow(offset)?, narrow(len_bytes)?);
        narrow(end)?;
        self.len_bytes = align(end);
        Ok(place)
    }

    /// Writes header and directory.
    pub(super) fn write(&self, row_count: usize, page: &mut [u8]) {
        let directory_bytes = HEADER_BYTES + ENTRY_BYTES * self.entries.len();
        page[..align(directory_bytes)].fill(0);
        let words = [
            MAGIC,
            expect_u32(row_count),
            expect_u32(self.entries.len()),
            expect_u32(self.len_bytes),
        ];
        for (slot, word) in page.chunks_exact_mut(size_of::<u32>()).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        let slots = page[HEADER_BYTES..directory_bytes].chunks_exact_mut(ENTRY_BYTES);
        for (slot, entry) in slots.zip(&self.entries) {
            entry.write(slot);
        }
    }
}

pub(super) fn narrow(bytes: usize) -> Result<u32> {
    u32::try_from(bytes)
        .ok()
        .filter(|_| bytes <= PAGE_BYTES_MAX)
        .ok_or(Error::RowTooLong {
            row_bytes: bytes as u64,
            limit_bytes: PAGE_BYTES_MAX as u64,
        })
}

pub(super) fn expect_u32(value: usize) -> u32 {
    u32::try_from(value).expect("a page's numbers are below 2 GiB")
}

impl Entry {
    fn set_form(&mut self, form: Form) {
        match form {
            Form::Plain => return,
            Form::Narrow(Frame { base, width, .. }) => {
                (self.data_offset, self.data_bytes) = (base as u32, (base >> 32) as u32);
                self.prefix_bytes = width as u32;
            }
            Form::Coded(codes) => self.prefix_bytes = codes.words() as u32,
        }
        self.kind |= FORM_TAG;
    }

    /// How the values of a column of a kind stand.
    ///
    /// # Errors
    /// If the column is stored in another way.
    pub(super) fn form(&self, kind: Kind) -> Result<Form> {
        if self.kind == kind.tag() {
            return Ok(Form::Plain);
        }
        let count = self.prefix_bytes as usize;
        let form = match kind {
            _ if self.kind != kind.tag() | FORM_TAG => None,
            Kind::Fixed {
                width,
                sign: Some(sign),
            } => {
                let base = i64::from(self.data_offset) | i64::from(self.data_bytes) << 32;
                Frame::checked(base, count, width, sign).map(Form::Narrow)
            }
            Kind::Bytes | Kind::Text => TextCodes::of(count).map(Form::Coded),
            _ => None,
        };
        form.ok_or(Error::CorruptPage {
            what: "a column is stored in another way",
        })
    }

    pub(super) fn write(&self, out: &mut [u8]) {
        let words = [
            self.kind,
            self.null_count,
            self.validity_offset,
            self.values_offset,
            self.values_bytes,
            self.data_offset,
            self.data_bytes,
            self.prefix_bytes,
        ];
        for (slot, word) in out.chunks_exact_mut(size_of::<u32>()).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// The entry of a column; `None` if the page ends before it.
    #[warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "bytes of the temp file are read here"
    )]
    pub(super) fn of(page: &[u8], column: usize) -> Option<Self> {
        let directory = page.get(HEADER_BYTES..)?;
        let entry = directory.as_chunks::<ENTRY_BYTES>().0.get(column)?;
        let mut words = entry.as_chunks().0.iter().map(|w| u32::from_le_bytes(*w));
        Some(Self {
            kind: words.next()?,
            null_count: words.next()?,
            validity_offset: words.next()?,
            values_offset: words.next()?,
            values_bytes: words.next()?,
            data_offset: words.next()?,
            data_bytes: words.next()?,
            prefix_bytes: words.next()?,
        })
    }
}

pub(super) fn read_u32(bytes: &[u8], offset: usize) -> u32 {
    let mut word = [0; size_of::<u32>()];
    word.copy_from_slice(&bytes[offset..offset + size_of::<u32>()]);
    u32::from_le_bytes(word)
}
