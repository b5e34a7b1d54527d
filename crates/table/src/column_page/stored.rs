//! The values of a page as the bytes that they are, for those who have no use for arrays.
//!
//! **Owns** nothing. **Never** knows what a value means: a number is its little-endian bytes, a
//! text its own.
//!
//! Arrays cost ten allocations a column, whatever they hold. Who looks at a few rows (the entries
//! of keys, short pages that become one) reads them here.

use std::ops::Deref;

use arrow_array::RecordBatch;
use arrow_buffer::bit_mask::set_bits;
use arrow_buffer::bit_util::get_bit;

use super::decode::{Source, check, corrupt, entry_of, kind_of, part};
use super::encode::set_ones;
use super::form::Form;
use super::format::{Format, Kind};
use super::layout::{Layout, read_u32};
use super::text_codes::CodedTexts;
use super::value_bytes::ValueBytes;
use crate::error::Result;

/// A page whose values are read in place.
#[derive(Clone, Copy)]
pub(crate) struct StoredRows<'a> {
    format: &'a Format,
    bytes: &'a [u8],
    row_count: usize,
}

/// One column of a page.
#[derive(Clone, Copy)]
pub(crate) struct StoredColumn<'a> {
    kind: Kind,
    pub(super) form: Form,
    pub(super) row_count: usize,
    pub(super) null_count: usize,
    pub(super) validity: &'a [u8],
    pub(super) values: &'a [u8],
    pub(super) data: &'a [u8],
    pub(super) prefixes: &'a [u8],
}

/// The bytes of a value.
#[derive(Clone, Copy)]
pub(crate) enum StoredValue<'a> {
    /// They stand there so.
    There(&'a [u8]),
    /// Those of a narrow integer that was widened, of which some count.
    Widened([u8; 16], usize),
}

impl Deref for StoredValue<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            StoredValue::There(bytes) => bytes,
            StoredValue::Widened(bytes, count) => &bytes[..*count],
        }
    }
}

impl<'a> StoredRows<'a> {
    /// # Errors
    /// [`Error::CorruptPage`](crate::Error::CorruptPage) if the page was not written by this
    /// format.
    pub(crate) fn open(format: &'a Format, bytes: &'a [u8]) -> Result<Self> {
        Ok(Self {
            format,
            bytes,
            row_count: check(format, bytes)?,
        })
    }

    pub(super) fn format(&self) -> &'a Format {
        self.format
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// # Errors
    /// As for [`StoredRows::open`].
    #[warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "bytes of the temp file are read here"
    )]
    pub(crate) fn column(&self, column: usize) -> Result<StoredColumn<'a>> {
        let kind = kind_of(self.format, column)?;
        let rows = self.row_count;
        let (entry, form) = entry_of(self.bytes, rows, kind, column)?;
        let part = |offset: u32, len: usize| part(self.bytes, offset, len);
        let (data, prefixes): (&[u8], &[u8]) = match (kind, form) {
            (_, Form::Coded(_)) => (part(entry.data_offset, entry.data_bytes as usize)?, &[]),
            (Kind::Bytes | Kind::Text, _) => {
                let behind = entry.data_offset.saturating_add(entry.data_bytes);
                (
                    part(entry.data_offset, entry.data_bytes as usize)?,
                    part(behind, entry.prefix_bytes as usize)?,
                )
            }
            _ => (&[], &[]),
        };
        let column = StoredColumn {
            kind,
            form,
            row_count: rows,
            null_count: entry.null_count as usize,
            validity: match entry.null_count {
                0 => &[],
                _ => part(entry.validity_offset, rows.div_ceil(8))?,
            },
            values: part(entry.values_offset, entry.values_bytes as usize)?,
            data,
            prefixes,
        };
        let is_spanned = match (kind, form) {
            (_, Form::Coded(_)) => column.coded().is_some(),
            (Kind::Bytes | Kind::Text, _) => {
                column.end(0) == 0 && column.end(rows) == column.data.len()
            }
            _ => true,
        };
        match is_spanned {
            true => Ok(column),
            false => Err(corrupt("the offsets do not span the data")),
        }
    }

    /// The numbers of the rows, where the format has them.
    ///
    /// # Errors
    /// As for [`StoredRows::open`].
    pub(crate) fn numbers(&self) -> Result<StoredColumn<'a>> {
        self.column(self.format.kinds.len() - 1)
    }

    /// The columns in which rows may differ from those in the same slots of another page.
    ///
    /// # Errors
    /// As for [`StoredRows::open`].
    pub(crate) fn differing(&self, other: &StoredRows<'_>) -> Result<Columns> {
        let columns = 0..self.format.kinds.len();
        let differs = |column| Ok(!self.column(column)?.is_same(&other.column(column)?));
        columns.map(differs).collect::<Result<_>>().map(Columns)
    }

    /// Some rows, in memory of their own.
    ///
    /// # Errors
    /// As for [`Format::decode`].
    pub(crate) fn decode(&self, projection: &[usize], slots: &[u32]) -> Result<RecordBatch> {
        let source = Source::Copied(self.bytes);
        self.format.decode_slots(&source, Some(projection), slots)
    }

    /// Where a row number stands.
    ///
    /// # Errors
    /// As for [`StoredRows::open`].
    pub(crate) fn place_of(&self, number: u64) -> Result<Option<usize>> {
        let numbers = self.numbers()?;
        let (mut from, mut to) = (0, self.row_count);
        while from < to {
            let middle = from + (to - from) / 2;
            match numbers.number(middle).cmp(&number) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return Ok(Some(middle)),
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        Ok(None)
    }
}

/// Some columns of a format.
pub(crate) struct Columns(pub(super) Vec<bool>);

impl Columns {
    pub(crate) fn has(&self, column: usize) -> bool {
        self.0[column]
    }
}

impl<'a> StoredColumn<'a> {
    /// The bytes of a value, none for a bit; `None` for NULL.
    pub(crate) fn value(&self, slot: usize) -> Option<StoredValue<'a>> {
        if self.null_count > 0 && !get_bit(self.validity, slot) {
            return None;
        }
        let there = match self.kind {
            Kind::Null => return None,
            Kind::Boolean | Kind::Stream => &[],
            Kind::Fixed { width, .. } => match self.form {
                Form::Narrow(frame) => {
                    return Some(StoredValue::Widened(frame.value(self.values, slot), width));
                }
                _ => &self.values[slot * width..(slot + 1) * width],
            },
            Kind::Bytes | Kind::Text => match self.coded() {
                Some(texts) => texts.text(slot)?,
                None => &self.data[self.end(slot)..self.end(slot + 1)],
            },
        };
        Some(StoredValue::There(there))
    }

    /// A value of a column of 64-bit numbers.
    pub(crate) fn number(&self, slot: usize) -> u64 {
        match self.form {
            Form::Narrow(frame) => i128::from_le_bytes(frame.value(self.values, slot)) as u64,
            _ => u64::from_le_bytes(self.values.as_chunks().0[slot]),
        }
    }

    /// Whether all rows have the same bytes as those of another page. Equal values may have
    /// others where they are NULL.
    pub(crate) fn is_same(&self, other: &StoredColumn<'_>) -> bool {
        let is_alike =
            self.form == other.form && self.values == other.values && self.data == other.data;
        // The same numbers may be other distances from another base, and the same texts have other
        // codes.
        let may_be_same = self.form != other.form || matches!(self.form, Form::Coded(_));
        let mut slots = 0..self.row_count;
        let value_is_same = |slot| self.value(slot).as_deref() == other.value(slot).as_deref();
        self.null_count == other.null_count
            && self.validity == other.validity
            && self.row_count == other.row_count
            && (is_alike || may_be_same && slots.all(value_is_same))
    }

    /// The codes and words of a column that has some.
    pub(super) fn coded(&self) -> Option<CodedTexts<'a>> {
        match self.form {
            Form::Coded(codes) => CodedTexts::of(codes, self.values, self.data),
            _ => None,
        }
    }

    pub(super) fn end(&self, slot: usize) -> usize {
        read_u32(self.values, slot * size_of::<u32>()) as usize
    }
}

/// Pages that become one.
pub(crate) struct Joined<'a> {
    pages: Vec<StoredRows<'a>>,
    layout: Layout,
    row_count: usize,
}

impl<'a> Joined<'a> {
    /// Lays out one page that holds the rows of all pages, in order. No column may be nested, nor
    /// have narrow integers or codes.
    ///
    /// # Errors
    /// [`Error::RowTooLong`](crate::Error::RowTooLong) if they take more than 2 GiB;
    /// [`Error::CorruptPage`](crate::Error::CorruptPage) if a page was not written by this format.
    pub(crate) fn new(
        format: &'a Format,
        pages: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Joined<'a>> {
        let pages: Result<Vec<StoredRows<'a>>> =
            pages.map(|bytes| StoredRows::open(format, bytes)).collect();
        let pages = pages?;
        let row_count = pages.iter().map(|page| page.row_count).sum();
        let mut layout = Layout::new(format);
        for (index, kind) in format.kinds.iter().enumerate() {
            let (mut null_count, mut bytes) = (0, ValueBytes::default());
            for page in &pages {
                let column = page.column(index)?;
                if column.form != Form::Plain {
                    return Err(corrupt("a short page has narrow numbers or codes"));
                }
                null_count += column.null_count;
                bytes = bytes.plus(ValueBytes {
                    data: column.data.len(),
                    prefixes: column.prefixes.len(),
                });
            }
            layout.place(*kind, row_count, null_count, bytes, Form::Plain)?;
        }
        Ok(Self {
            pages,
            layout,
            row_count,
        })
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.layout.len_bytes
    }

    /// Writes the page over zeros.
    pub(crate) fn write(&self, page: &mut [u8]) -> Result<()> {
        self.layout.write(self.row_count, page);
        for (index, entry) in self.layout.entries.iter().enumerate() {
            let (mut row, mut values_at) = (0, entry.values_offset as usize);
            let mut data_at = entry.data_offset as usize;
            let mut prefixes_at = data_at + entry.data_bytes as usize;
            if matches!(self.pages[0].format.kinds[index], Kind::Bytes | Kind::Text) {
                values_at += size_of::<u32>();
            }
            for source in &self.pages {
                let column = source.column(index)?;
                let count = column.row_count;
                if entry.null_count > 0 {
                    let bits = &mut page[entry.validity_offset as usize..];
                    match column.null_count {
                        0 => set_ones(bits, row, count),
                        _ => _ = set_bits(bits, column.validity, row, 0, count),
                    }
                }
                match column.kind {
                    Kind::Null | Kind::Stream => {}
                    Kind::Boolean => {
                        let bits = &mut page[entry.values_offset as usize..];
                        set_bits(bits, column.values, row, 0, count);
                    }
                    Kind::Fixed { .. } => {
                        let end = values_at + column.values.len();
                        page[values_at..end].copy_from_slice(column.values);
                        values_at = end;
                    }
                    Kind::Bytes | Kind::Text => {
                        let base = (data_at - entry.data_offset as usize) as u32;
                        let end = values_at + count * size_of::<u32>();
                        let ends = page[values_at..end].as_chunks_mut().0;
                        for (slot, out) in ends.iter_mut().enumerate() {
                            *out = (base + column.end(slot + 1) as u32).to_le_bytes();
                        }
                        values_at = end;
                        let end = data_at + column.data.len();
                        page[data_at..end].copy_from_slice(column.data);
                        data_at = end;
                        let end = prefixes_at + column.prefixes.len();
                        page[prefixes_at..end].copy_from_slice(column.prefixes);
                        prefixes_at = end;
                    }
                }
                row += count;
            }
        }
        Ok(())
    }
}
