//! Values that went by a moment ago: dropped before they cost a row of a set of distinct values.
//!
//! Owns [`Recent`], a small table without chains: a slot holds the value that was last put there.
//! Never: decides that a value is new; what it lets through may have been seen before.
//!
//! **Cost.** 2 ns a number and 10 ns a text, where encoding a row and finding it takes 60; it rests
//! while few values repeat.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{DataType, UInt32Type};
use datafusion::common::Result;
use mayfly_space::{Account, Error as SpaceError, Reservation};

use super::functions::select;
use crate::error::space_error;

/// Bytes of a table in a large budget: it stays in the second-level cache.
const TABLE_BYTES_MAX: u64 = 64 << 10;
/// All tables together stay a small part of a small budget.
const TABLES_PER_MEMORY: u64 = 1 << 10;

/// Bytes that a slot keeps of a text, its length included; longer ones are let through.
const CELL_BYTES: usize = 64;

/// Rows after which it looks at what it is good for ...
const WATCHED_ROWS: usize = 1 << 14;
/// ... and rows that it lets through when fewer than one of so many was dropped.
const RESTING_ROWS: usize = 1 << 18;
const DROPPED_MIN: usize = 4;

/// One thread's table of the values of one column, for each owner of them.
pub(super) struct Recent {
    slots: Vec<Slot>,
    /// The text of each slot; empty for numbers.
    cells: Vec<[u8; CELL_BYTES]>,
    watched: usize,
    dropped: usize,
    resting: usize,
    _memory: Reservation,
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Slot {
    /// The number, or the hash of the text.
    value: u64,
    /// The owner, whether the value is NULL, and that there is one.
    tag: u64,
}

impl Recent {
    /// An empty table; `None` for values that it cannot hold, and where memory is short.
    pub(super) fn new(types: &[DataType], account: &Account) -> Result<Option<Recent>> {
        let [data_type] = types else {
            return Ok(None);
        };
        let slot_bytes = match data_type.primitive_width() {
            Some(..=16) => size_of::<Slot>(),
            None if is_text(data_type) => size_of::<Slot>() + CELL_BYTES,
            _ => return Ok(None),
        };
        let bytes = (account.space().memory_bytes() / TABLES_PER_MEMORY).min(TABLE_BYTES_MAX);
        let slots = 1 << (bytes as usize / slot_bytes).max(2).ilog2();
        let cells = if is_text(data_type) { slots } else { 0 };
        match account.reserve((slots * slot_bytes) as u64) {
            Ok(memory) => Ok(Some(Recent {
                slots: vec![Slot::default(); slots],
                cells: vec![[0; CELL_BYTES]; cells],
                watched: 0,
                dropped: 0,
                resting: 0,
                _memory: memory,
            })),
            Err(SpaceError::BudgetExceeded { .. }) => Ok(None),
            Err(error) => Err(space_error(error)),
        }
    }

    /// Drops rows whose owner (the first column) and value (the second) went by.
    pub(super) fn drop_repeats(&mut self, columns: &mut [ArrayRef]) -> Result<()> {
        let [owners, values] = &*columns else {
            return Ok(());
        };
        let rows = values.len();
        if self.resting > 0 {
            self.resting = self.resting.saturating_sub(rows);
            return Ok(());
        }
        let owners = owners.as_primitive::<UInt32Type>().values();
        let new = match values.data_type() {
            DataType::Utf8View => self.new_texts(owners, values.as_string_view().iter()),
            DataType::Utf8 => self.new_texts(owners, values.as_string::<i32>().iter()),
            DataType::BinaryView => self.new_texts(owners, values.as_binary_view().iter()),
            DataType::Binary => self.new_texts(owners, values.as_binary::<i32>().iter()),
            other => match other.primitive_width() {
                Some(1) => self.new_numbers::<1>(owners, values),
                Some(2) => self.new_numbers::<2>(owners, values),
                Some(4) => self.new_numbers::<4>(owners, values),
                Some(8) => self.new_numbers::<8>(owners, values),
                Some(16) => self.new_numbers::<16>(owners, values),
                _ => return Ok(()),
            },
        };
        self.watched += rows;
        self.dropped += rows - new.true_count();
        if self.watched >= WATCHED_ROWS {
            if self.dropped * DROPPED_MIN < self.watched {
                self.resting = RESTING_ROWS;
            }
            (self.watched, self.dropped) = (0, 0);
        }
        select(columns, &new)
    }

    fn new_numbers<const W: usize>(&mut self, owners: &[u32], values: &ArrayRef) -> BooleanArray {
        let data = values.to_data();
        let bytes = &data.buffers()[0].as_slice()[data.offset() * W..];
        let is_new = |row: usize| {
            let is_null = values.is_null(row);
            let value = match is_null {
                true => Some(0),
                false => short(&bytes[row * W..row * W + W]),
            };
            let Some(value) = value else {
                return true;
            };
            let found = Slot::new(value, owners[row], is_null);
            let place = found.place(self.slots.len());
            let slot = &mut self.slots[place];
            let new = *slot != found;
            *slot = found;
            new
        };
        BooleanArray::new(BooleanBuffer::collect_bool(values.len(), is_new), None)
    }

    fn new_texts<T: AsRef<[u8]>>(
        &mut self,
        owners: &[u32],
        values: impl Iterator<Item = Option<T>>,
    ) -> BooleanArray {
        let is_new = |(value, owner): (Option<T>, &u32)| {
            let is_null = value.is_none();
            let text = value.as_ref().map_or(&[][..], |value| value.as_ref());
            if text.len() >= CELL_BYTES {
                return true;
            }
            let found = Slot::new(mix(text), *owner, is_null);
            let place = found.place(self.slots.len());
            let (slot, cell) = (&mut self.slots[place], &mut self.cells[place]);
            let len = usize::from(cell[0]);
            if *slot == found && cell[1..=len] == *text {
                return false;
            }
            *slot = found;
            cell[0] = text.len() as u8;
            cell[1..=text.len()].copy_from_slice(text);
            true
        };
        let new: BooleanBuffer = values.zip(owners).map(is_new).collect();
        BooleanArray::new(new, None)
    }
}

fn is_text(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, Utf8, Utf8View};
    matches!(data_type, Utf8View | Utf8 | BinaryView | Binary)
}

impl Slot {
    fn new(value: u64, owner: u32, is_null: bool) -> Slot {
        let tag = u64::from(owner) << 2 | u64::from(is_null) << 1 | 1;
        Slot { value, tag }
    }

    /// Where it goes among `slots`, a power of two of at least 2.
    fn place(self, slots: usize) -> usize {
        let mixed = (self.value ^ self.tag.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - slots.trailing_zeros())) as usize
    }
}

/// A number for a text: it only chooses a slot.
fn mix(text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain(std::iter::once(&last));
    words.fold(text.len() as u64, |mixed, word| {
        let mixed = (mixed ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    })
}

/// The bytes of a value as a number; `None` where 64 bits cannot tell it from others.
fn short(bytes: &[u8]) -> Option<u64> {
    let (low, high) = bytes.split_at(bytes.len().min(8));
    let mut word = [0; 8];
    word[..low.len()].copy_from_slice(low);
    let value = u64::from_le_bytes(word);
    let sign = if value as i64 >= 0 { 0 } else { 0xff };
    high.iter().all(|byte| *byte == sign).then_some(value)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Decimal128Array, Int32Array, StringViewArray, UInt32Array};
    use mayfly_space::{Space, SpaceOptions};

    use super::*;

    fn left(recent: &mut Recent, owners: &[u32], values: ArrayRef) -> Vec<String> {
        let owners: ArrayRef = Arc::new(UInt32Array::from(owners.to_vec()));
        let mut columns = [owners, values];
        recent.drop_repeats(&mut columns).unwrap();
        let owners = columns[0].as_primitive::<UInt32Type>().values().to_vec();
        let texts = (0..columns[1].len()).map(|row| {
            let value = columns[1].slice(row, 1);
            format!("{} {value:?}", owners[row])
        });
        texts.collect()
    }

    #[test]
    fn only_the_same_value_of_the_same_owner_is_dropped() {
        let space = Space::open(SpaceOptions::default()).unwrap();
        let mut recent = Recent::new(&[DataType::Int32], space.root())
            .unwrap()
            .unwrap();
        let values = || Arc::new(Int32Array::from(vec![Some(0), None, Some(-1), Some(0)]));
        assert_eq!(left(&mut recent, &[0, 0, 0, 0], values()).len(), 3);
        assert_eq!(left(&mut recent, &[0, 0, 0, 1], values()).len(), 1);
        assert_eq!(left(&mut recent, &[1, 1, 1, 1], values()).len(), 2);

        let wide = DataType::Decimal128(38, 0);
        let mut recent = Recent::new(&[wide], space.root()).unwrap().unwrap();
        // The first two are equal in their low halves; the last two are too long to be held.
        let (low, high) = (u64::MAX, 1i128 << 64);
        let values = || {
            let values = vec![i128::from(low), -1, high, high];
            Arc::new(Decimal128Array::from(values))
        };
        assert_eq!(left(&mut recent, &[0; 4], values()).len(), 4);
        assert_eq!(left(&mut recent, &[0; 4], values()).len(), 3);

        let mut recent = Recent::new(&[DataType::Utf8View], space.root())
            .unwrap()
            .unwrap();
        let long = "x".repeat(CELL_BYTES);
        let texts = [Some("a"), None, Some(""), Some(&long[1..]), Some(&long)];
        let values = || Arc::new(StringViewArray::from_iter(texts));
        assert_eq!(left(&mut recent, &[0; 5], values()).len(), 5);
        // A text that a cell cannot hold is let through each time.
        assert_eq!(left(&mut recent, &[0; 5], values()).len(), 1);
        assert_eq!(left(&mut recent, &[7; 5], values()).len(), 5);
    }
}
