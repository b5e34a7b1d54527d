//! Values written over others where those stand.
//!
//! **Owns** which bytes of a page become others. **Never** moves a value: a number takes the place
//! of a number, if it is not too far from those of its page where they are narrow, and a text that
//! of one as long, or of any where the page has codes and the text has one; NULL comes and goes
//! where the column has a bit for it.
//!
//! Edits are made from the page as it is, which may be pinned by readers, and written later, when
//! nobody else sees it: writing them cannot fail.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::bit_util::get_bit;
use arrow_schema::DataType;

use super::Columns;
use super::decode::entry;
use super::fixed_bytes::fixed_bytes;
use super::form::Form;
use super::format::Kind;
use super::layout::Entry;
use super::sizes::{ENTRY_BYTES, HEADER_BYTES};
use super::sizes::{PREFIX_BYTES, PREFIXED_BYTES};
use super::stored::{StoredColumn, StoredRows};
use super::text_codes::TextCodes;
use crate::error::Result;

/// Where the number of NULLs stands in an entry of the directory.
const NULL_COUNT_OFFSET: usize = size_of::<u32>();

/// What becomes of some bytes of a page.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    /// Where bytes go, and how many of `bytes`, one after the other.
    places: Vec<(usize, usize)>,
    bytes: Vec<u8>,
    /// Bits by the number of their byte, with their mask.
    bits: Vec<(usize, u8, bool)>,
    /// Where numbers stand, and what is added to them.
    counts: Vec<(usize, i32)>,
}

impl Edits {
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of values and bits that change.
    pub(crate) fn len(&self) -> usize {
        self.places.len() + self.bits.len()
    }

    /// What they take on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.places.capacity() * size_of::<(usize, usize)>()
            + self.bits.capacity() * size_of::<(usize, u8, bool)>()
    }

    /// Writes the values.
    ///
    /// # Panics
    /// If this is not the page that they were made for.
    pub(crate) fn write(&self, page: &mut [u8]) {
        let mut bytes = &self.bytes[..];
        for (at, len) in &self.places {
            let (value, rest) = bytes.split_at(*len);
            page[*at..at + len].copy_from_slice(value);
            bytes = rest;
        }
        for (at, mask, is_set) in &self.bits {
            match is_set {
                true => page[*at] |= mask,
                false => page[*at] &= !mask,
            }
        }
        for (at, difference) in &self.counts {
            if let Some(count) = page[*at..].first_chunk_mut() {
                let sum = u32::from_le_bytes(*count).wrapping_add_signed(*difference);
                *count = sum.to_le_bytes();
            }
        }
    }

    fn set_bytes(&mut self, at: usize, value: &[u8]) {
        self.places.push((at, value.len()));
        self.bytes.extend_from_slice(value);
    }

    fn set_bit(&mut self, area: usize, bit: usize, value: bool) {
        self.bits.push((area + bit / 8, 1 << (bit % 8), value));
    }
}

/// A column of a page, and where its buffers stand.
struct Target<'a> {
    stored: StoredColumn<'a>,
    entry: Entry,
    column: usize,
}

impl StoredRows<'_> {
    /// What it takes to give some rows other values in a column; `None` if those do not fit where
    /// the old ones stand. Values that are there already take nothing.
    ///
    /// # Errors
    /// As for [`StoredRows::open`].
    pub(crate) fn edit(
        &self,
        column: usize,
        slots: &[u32],
        values: &ArrayRef,
        edits: &mut Edits,
    ) -> Result<Option<()>> {
        let target = Target {
            stored: self.column(column)?,
            entry: entry(self.bytes(), column)?,
            column,
        };
        if self.format().schema().field(column).data_type() != values.data_type() {
            return Ok(None);
        }
        Ok(match (self.format().kinds[column], values.data_type()) {
            (Kind::Boolean, _) => target.set_booleans(slots, values, edits),
            (Kind::Fixed { width, .. }, data_type)
                if !matches!(data_type, DataType::Dictionary(..)) =>
            {
                fixed_bytes(values.as_ref(), width, |new| {
                    let value = |row: usize| &new[row * width..(row + 1) * width];
                    target.set_numbers(slots, values.as_ref(), value, edits)
                })
            }
            (Kind::Text, DataType::Utf8View) => {
                let texts = values.as_string_view();
                target.set_texts(
                    slots,
                    values.as_ref(),
                    |row| texts.value(row).as_bytes(),
                    edits,
                )
            }
            (Kind::Bytes, DataType::BinaryView) => {
                let texts = values.as_binary_view();
                target.set_texts(slots, values.as_ref(), |row| texts.value(row), edits)
            }
            _ => None,
        })
    }
}

impl Target<'_> {
    fn set_numbers<'v>(
        &self,
        slots: &[u32],
        new: &dyn Array,
        value: impl Fn(usize) -> &'v [u8],
        edits: &mut Edits,
    ) -> Option<()> {
        for (row, slot) in slots.iter().map(|slot| *slot as usize).enumerate() {
            let is_null = new.is_null(row);
            self.set_null(slot, is_null, edits)?;
            let (old, value) = (self.stored.value(slot), value(row));
            if is_null || old.as_deref() == Some(value) {
                continue;
            }
            let values = self.entry.values_offset as usize;
            match self.stored.form {
                Form::Narrow(frame) => {
                    let distance = frame.distance(value)?;
                    let at = values + slot * frame.width;
                    edits.set_bytes(at, &distance[..frame.width]);
                }
                _ => edits.set_bytes(values + slot * value.len(), value),
            }
        }
        Some(())
    }

    fn set_booleans(&self, slots: &[u32], new: &ArrayRef, edits: &mut Edits) -> Option<()> {
        let values = new.as_boolean();
        for (row, slot) in slots.iter().map(|slot| *slot as usize).enumerate() {
            self.set_null(slot, new.is_null(row), edits)?;
            let value = values.value(row);
            if new.is_valid(row) && self.stored.bit(slot) != value {
                edits.set_bit(self.entry.values_offset as usize, slot, value);
            }
        }
        Some(())
    }

    fn set_texts<'v>(
        &self,
        slots: &[u32],
        new: &dyn Array,
        value: impl Fn(usize) -> &'v [u8],
        edits: &mut Edits,
    ) -> Option<()> {
        if let Form::Coded(codes) = self.stored.form {
            return self.set_codes(codes, slots, new, value, edits);
        }
        let data = self.entry.data_offset as usize;
        for (row, slot) in slots.iter().map(|slot| *slot as usize).enumerate() {
            let is_null = new.is_null(row);
            let value = if is_null { &[] } else { value(row) };
            let (place, old) = self.stored.text(slot);
            if value.len() != old.len() {
                return None;
            }
            self.set_null(slot, is_null, edits)?;
            if value == old {
                continue;
            }
            edits.set_bytes(data + place, value);
            if value.len() > PREFIXED_BYTES && value[..PREFIX_BYTES] != old[..PREFIX_BYTES] {
                let prefixes = data + self.entry.data_bytes as usize;
                let place = prefixes + self.stored.longs_before(slot) * PREFIX_BYTES;
                edits.set_bytes(place, &value[..PREFIX_BYTES]);
            }
        }
        Some(())
    }

    /// The codes of texts that rows of the page have; `None` where one has none. What stands where
    /// a NULL comes to be stays.
    fn set_codes<'v>(
        &self,
        form: TextCodes,
        slots: &[u32],
        new: &dyn Array,
        value: impl Fn(usize) -> &'v [u8],
        edits: &mut Edits,
    ) -> Option<()> {
        let texts = self.stored.coded()?;
        // Rows often get the same text.
        let mut last: Option<(&[u8], usize)> = None;
        for (row, slot) in slots.iter().map(|slot| *slot as usize).enumerate() {
            let is_null = new.is_null(row);
            self.set_null(slot, is_null, edits)?;
            if is_null {
                continue;
            }
            let value = value(row);
            let code = match last {
                Some((text, code)) if text == value => code,
                _ => texts.code(value)?,
            };
            last = Some((value, code));
            if texts.codes.get(slot) != Some(code) {
                let at = self.entry.values_offset as usize + slot * form.width();
                edits.set_bytes(at, &code.to_le_bytes()[..form.width()]);
            }
        }
        Some(())
    }

    /// Notes whether a row has NULL; `None` where the column has no bits for that.
    fn set_null(&self, slot: usize, is_null: bool, edits: &mut Edits) -> Option<()> {
        if self.stored.is_null(slot) == is_null {
            return Some(());
        }
        // All bits are set where NULLs went.
        let area = self.entry.validity_offset as usize;
        if area == 0 {
            return None;
        }
        edits.set_bit(area, slot, !is_null);
        let at = HEADER_BYTES + self.column * ENTRY_BYTES + NULL_COUNT_OFFSET;
        edits.counts.push((at, if is_null { 1 } else { -1 }));
        Some(())
    }
}

impl StoredColumn<'_> {
    fn is_null(&self, slot: usize) -> bool {
        self.null_count > 0 && !get_bit(self.validity, slot)
    }

    fn bit(&self, slot: usize) -> bool {
        get_bit(self.values, slot)
    }

    /// Where a text stands in the data, and its bytes; none for NULL.
    fn text(&self, slot: usize) -> (usize, &[u8]) {
        let (from, to) = (self.end(slot), self.end(slot + 1));
        (from, &self.data[from..to])
    }

    /// The values before a slot that have a prefix.
    fn longs_before(&self, slot: usize) -> usize {
        if self.prefixes.len() == self.row_count * PREFIX_BYTES {
            return slot;
        }
        let is_long = |slot: &usize| self.end(slot + 1) - self.end(*slot) > PREFIXED_BYTES;
        (0..slot).filter(is_long).count()
    }
}

impl Columns {
    /// Some of the columns of a format.
    pub(crate) fn of(columns: impl Iterator<Item = usize>, count: usize) -> Columns {
        let mut all = vec![false; count];
        columns.for_each(|column| all[column] = true);
        Columns(all)
    }

    /// Those of either.
    pub(crate) fn add(&mut self, others: &Columns) {
        let columns = self.0.iter_mut().zip(&others.0);
        columns.for_each(|(has, other)| *has |= other);
    }
}
