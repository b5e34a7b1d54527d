//! Groups of short keys that repeat: one word a column finds them, without encoding or a hash of
//! bytes.
//!
//! Flags, states, kinds and small numbers are the keys of most aggregates with few groups. Each
//! value that fits seven bytes with its length, or eight without one, is one word, equal exactly
//! where the values are; the words of a row are looked up in a small cache of references.
//!
//! **Owns** that cache. **Never** knows more than the hash table: what is not found here is looked
//! up there, and what was found there is entered here.
//!
//! **Cost.** 4 bytes and a word a column for each slot, in the first-level cache as long as groups
//! are few; beyond [`GROUPS_MAX`] it is not asked.

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, Decimal128Type, Utf8Type};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::OffsetBuffer;
use arrow_schema::DataType;
use mayfly_space::{Account, Error, Reservation};

use super::layout::{Encoding, RowLayout};
use super::segment::or_short;

/// Groups up to which the cache is asked.
const GROUPS_MAX: usize = 256;

/// Slots: four for each group.
const SLOT_BITS: u32 = GROUPS_MAX.ilog2() + 2;

/// Slots that are looked at for a key.
const PROBES: usize = 4;

/// Batches after which keys are looked up here again, when less than half of a batch was found.
const SKIPPED_BATCHES: u32 = 64;

/// Columns of a key at most.
const COLUMNS_MAX: usize = 4;

/// Bytes of a text that fit a word beside its length.
const TEXT_BYTES_MAX: usize = 7;

/// The bits of a view in which the length and the text of one that fits a word are.
const SHORT_VIEW: u128 = (1 << 88) - 1;

/// The word of a NULL among texts, whose length no text has.
const NULL_TEXT: u64 = u64::MAX;

/// References of groups by their short keys.
pub(crate) struct ShortKeys {
    columns: usize,
    /// The words of each slot's key.
    keys: Vec<u64>,
    /// A row reference plus one for each slot; zero is vacant.
    references: Vec<u32>,
    /// The words of the batch at hand, row by row, and the rows that have none.
    words: Vec<u64>,
    is_long: Vec<bool>,
    is_empty: bool,
    batches_to_skip: u32,
    _memory: Reservation,
}

impl ShortKeys {
    /// For a layout whose keys may be short; `None` for others and where memory is short.
    ///
    /// # Errors
    /// Of the temp space, but for shortage of memory.
    pub(crate) fn for_layout(
        layout: &RowLayout,
        account: &Account,
    ) -> Result<Option<ShortKeys>, Error> {
        let columns = layout.key.columns.len();
        let may_be_short = layout.key.columns.iter().all(|column| {
            let encoding = column.encoding;
            matches!(encoding, Encoding::Fixed(1 | 2 | 4 | 8) | Encoding::Bytes)
                || matches!(encoding, Encoding::Boolean | Encoding::SmallDecimal)
        });
        if !(1..=COLUMNS_MAX).contains(&columns) || !may_be_short {
            return Ok(None);
        }
        let bytes = (columns * size_of::<u64>() + size_of::<u32>()) << SLOT_BITS;
        let memory = or_short(account.reserve(bytes as u64))?;
        Ok(memory.map(|memory| ShortKeys {
            columns,
            keys: vec![0; columns << SLOT_BITS],
            references: vec![0; 1 << SLOT_BITS],
            words: Vec::new(),
            is_long: Vec::new(),
            is_empty: true,
            batches_to_skip: 0,
            _memory: memory,
        }))
    }

    #[cfg(test)]
    pub(crate) fn is_in_use(&self) -> bool {
        !self.is_empty && self.batches_to_skip == 0
    }

    /// Forgets every group.
    pub(crate) fn clear(&mut self) {
        self.references.fill(0);
        self.is_empty = true;
    }

    /// Appends the rows whose group it knows to `known`, with the reference, and the others to
    /// `rest`. False where it does not look, since groups are too many or keys too long.
    pub(crate) fn find(
        &mut self,
        key: &[ArrayRef],
        groups: usize,
        known: &mut Vec<(u32, u32)>,
        rest: &mut Vec<u32>,
    ) -> bool {
        if self.batches_to_skip > 0 || self.is_empty || groups > GROUPS_MAX {
            self.batches_to_skip = self.batches_to_skip.saturating_sub(1);
            return false;
        }
        self.read(key);
        match self.columns {
            1 => self.find_words::<1>(known, rest),
            2 => self.find_words::<2>(known, rest),
            3 => self.find_words::<3>(known, rest),
            _ => self.find_words::<4>(known, rest),
        }
        if known.len() < rest.len() {
            self.batches_to_skip = SKIPPED_BATCHES;
        }
        true
    }

    fn find_words<const N: usize>(&self, known: &mut Vec<(u32, u32)>, rest: &mut Vec<u32>) {
        let (words, _) = self.words.as_chunks::<N>();
        let (keys, _) = self.keys.as_chunks::<N>();
        for ((row, words), is_long) in (0..).zip(words).zip(&self.is_long) {
            let mut slot = slot_of(words);
            let mut found = 0;
            for _ in 0..PROBES {
                let reference = self.references[slot];
                if reference == 0 {
                    break;
                }
                if keys[slot] == *words {
                    found = reference;
                    break;
                }
                slot = (slot + 1) & ((1 << SLOT_BITS) - 1);
            }
            if found == 0 || *is_long {
                rest.push(row);
            } else {
                known.push((row, found - 1));
            }
        }
    }

    /// Takes note of rows of a batch whose group was found by its hash.
    pub(crate) fn learn(&mut self, key: &[ArrayRef], groups: usize, known: &[(u32, u32)]) {
        if known.is_empty() || self.batches_to_skip > 0 || groups > GROUPS_MAX {
            return;
        }
        self.read(key);
        let mut last = None;
        for (row, reference) in known {
            // Rows of one group often come together, and it is entered once.
            if last.replace(*reference) == Some(*reference) || self.is_long[*row as usize] {
                continue;
            }
            let from = *row as usize * self.columns;
            let words = &self.words[from..from + self.columns];
            let home = slot_of(words);
            let slots = (home..home + PROBES).map(|slot| slot & ((1 << SLOT_BITS) - 1));
            let key_of = |slot: usize| slot * self.columns..(slot + 1) * self.columns;
            let is_free =
                |slot: &usize| self.references[*slot] == 0 || self.keys[key_of(*slot)] == *words;
            let slot = slots.clone().find(is_free).unwrap_or(home);
            let place = key_of(slot);
            self.keys[place].copy_from_slice(words);
            self.references[slot] = reference + 1;
            self.is_empty = false;
        }
    }

    /// Reads the words of a batch.
    fn read(&mut self, key: &[ArrayRef]) {
        let rows = key.first().map_or(0, |array| array.len());
        self.words.clear();
        self.words.resize(rows * self.columns, 0);
        self.is_long.clear();
        self.is_long.resize(rows, false);
        for (number, array) in key.iter().enumerate() {
            let mut column = WordColumn {
                words: &mut self.words,
                is_long: &mut self.is_long,
                columns: self.columns,
                number,
            };
            column.read(array);
        }
    }
}

/// The slot at which a key is looked for first.
#[inline]
fn slot_of(words: &[u64]) -> usize {
    // Multiplicative hashing (Knuth, volume 3, 6.4) by the golden ratio; turned, so that what one
    // word did to the upper bits reaches the next product.
    let mix =
        |hash: u64, word: &u64| (hash.rotate_right(32) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (words.iter().fold(0, mix) >> (64 - SLOT_BITS)) as usize
}

/// One column of the words of a batch.
struct WordColumn<'a> {
    words: &'a mut [u64],
    is_long: &'a mut [bool],
    columns: usize,
    number: usize,
}

impl WordColumn<'_> {
    fn read(&mut self, array: &ArrayRef) {
        match array.data_type() {
            DataType::Utf8View => self.views(array.as_string_view().views()),
            DataType::BinaryView => self.views(array.as_binary_view().views()),
            DataType::Utf8 => {
                let array = array.as_bytes::<Utf8Type>();
                self.texts(array.offsets(), array.values());
            }
            DataType::LargeUtf8 => {
                let array = array.as_string::<i64>();
                self.texts(array.offsets(), array.values());
            }
            DataType::Binary => {
                let array = array.as_bytes::<BinaryType>();
                self.texts(array.offsets(), array.values());
            }
            DataType::LargeBinary => {
                let array = array.as_binary::<i64>();
                self.texts(array.offsets(), array.values());
            }
            DataType::Boolean => {
                let array = array.as_boolean();
                self.fill((0..array.len()).map(|row| u64::from(array.value(row))));
            }
            DataType::Decimal128(_, _) => {
                let values = array.as_primitive::<Decimal128Type>().values();
                // At most 18 digits: the value is an i64.
                self.fill(values.iter().map(|value| *value as u64));
            }
            _ => self.numbers(array),
        }
        self.nulls(array);
    }

    fn fill(&mut self, words: impl Iterator<Item = u64>) {
        let places = self.words[self.number..].iter_mut();
        for (place, word) in places.step_by(self.columns).zip(words) {
            *place = word;
        }
    }

    fn numbers(&mut self, array: &ArrayRef) {
        let (data, rows) = (array.to_data(), array.len());
        match array.data_type().primitive_width() {
            Some(1) => self.fill(data.buffer::<u8>(0)[..rows].iter().map(|v| u64::from(*v))),
            Some(2) => self.fill(data.buffer::<u16>(0)[..rows].iter().map(|v| u64::from(*v))),
            Some(4) => self.fill(data.buffer::<u32>(0)[..rows].iter().map(|v| u64::from(*v))),
            _ => self.fill(data.buffer::<u64>(0)[..rows].iter().copied()),
        }
    }

    /// A short view has its length in the lower four bytes and its text, filled up with zeros,
    /// behind them.
    fn views(&mut self, views: &[u128]) {
        let len_of = |view: &u128| *view as u32;
        for (view, is_long) in views.iter().zip(&mut *self.is_long) {
            *is_long |= len_of(view) as usize > TEXT_BYTES_MAX;
        }
        // Of a text that is longer the word may be anything.
        let word = |view: &u128| ((view & SHORT_VIEW) >> 32) as u64 | u64::from(len_of(view)) << 56;
        self.fill(views.iter().map(word));
    }

    fn texts<O: OffsetSizeTrait>(&mut self, offsets: &OffsetBuffer<O>, values: &[u8]) {
        for (row, ends) in offsets.windows(2).enumerate() {
            let text = &values[ends[0].as_usize()..ends[1].as_usize()];
            let mut bytes = [0; 8];
            match bytes
                .get_mut(..text.len())
                .filter(|_| text.len() <= TEXT_BYTES_MAX)
            {
                Some(head) => {
                    head.copy_from_slice(text);
                    bytes[TEXT_BYTES_MAX] = text.len() as u8;
                    self.words[row * self.columns + self.number] = u64::from_le_bytes(bytes);
                }
                None => self.is_long[row] = true,
            }
        }
    }

    /// NULL is a word of its own among texts; among numbers, which need all words, the row counts
    /// as long.
    fn nulls(&mut self, array: &ArrayRef) {
        let Some(nulls) = array.logical_nulls().filter(|n| n.null_count() > 0) else {
            return;
        };
        let is_text = matches!(Encoding::of(array.data_type()), Some(Encoding::Bytes));
        let rows = (0..nulls.len()).filter(|row| nulls.is_null(*row));
        for row in rows {
            if is_text {
                self.words[row * self.columns + self.number] = NULL_TEXT;
            } else {
                self.is_long[row] = true;
            }
        }
    }
}
