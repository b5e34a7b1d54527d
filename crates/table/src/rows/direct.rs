//! Direct addressing: a number as key finds its group without a hash and without a comparison.
//!
//! Keys that number something (a customer, a part, a day) lie close together. Where such a number
//! is the whole key, an array over the range of the keys holds the references of the groups: one
//! load a row in the place of encoding, hashing, a slot and a comparison with the row.
//!
//! **Owns** that array. **Never** knows more than the hash table: what is not found here is looked
//! up there, and what was found there is entered here. It comes into being once most rows are
//! found by their hash, so keys that hardly repeat never pay for it.
//!
//! **Cost.** 4 bytes for each number of the range, at most [`NUMBERS_A_GROUP`] times the groups.
//! 6 M rows of 200,000 groups with a count take 0.4 of the time that they take by hash, 24 M of
//! 800,000 groups without one 0.3 (`group_speed`, alternating runs).
//!
//! **Source**: direct-address tables (Cormen et al., "Introduction to Algorithms", 11.1); what
//! DuckDB calls a perfect hash aggregate, but learned from the rows and not from statistics.

use arrow_array::ArrayRef;
use arrow_buffer::ArrowNativeType;
use mayfly_space::{Account, Error, Reservation};

use super::layout::RowLayout;
use super::numbers::{Numbers, number_key};
use super::segment::or_short;

/// Numbers of the range for each group, at most: 64 bytes a group, as much as row and slot take.
const NUMBERS_A_GROUP: u64 = 16;

/// Rows that are looked up by hash between two looks at whether the array pays.
const LOOK_ROWS: usize = 1 << 15;

/// The array pays when at least one in this many rows is found by its hash.
const FOUND_SHARE_MIN: usize = 2;

/// Part of the range that is added on either side: keys that are yet to come.
const MARGIN_SHARE: u64 = 8;

/// References of groups by the number that is their key.
pub(crate) struct Direct {
    account: Account,
    bytes_max: u64,
    /// The number of the first slot.
    base: i64,
    /// A row reference plus one for each number; zero is unknown. Empty until it pays.
    slots: Vec<u32>,
    memory: Option<Reservation>,
    /// Least and greatest key that was found by its hash.
    seen: Option<(i64, i64)>,
    /// Rows that were looked up by their hash since the last look, and those that were found.
    looked_up: usize,
    found: usize,
    numbers: Numbers,
}

impl Direct {
    /// For a layout whose key is one number; `None` for others.
    pub(crate) fn for_layout(
        layout: &RowLayout,
        account: &Account,
        bytes_max: usize,
    ) -> Option<Direct> {
        number_key(layout).map(|_| Direct {
            account: account.clone(),
            bytes_max: bytes_max as u64,
            base: 0,
            slots: Vec::new(),
            memory: None,
            seen: None,
            looked_up: 0,
            found: 0,
            numbers: Numbers::default(),
        })
    }

    pub(crate) fn is_in_use(&self) -> bool {
        !self.slots.is_empty()
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, Reservation::bytes)
    }

    /// The difference between the least and the greatest key that was found by its hash.
    pub(crate) fn range(&self) -> Option<u64> {
        let (least, greatest) = self.seen?;
        Some(greatest.abs_diff(least))
    }

    /// Forgets every group.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(0);
    }

    /// Appends the rows whose group it knows to `known`, with the reference, and the others to
    /// `rest`.
    pub(crate) fn find(
        &mut self,
        key: &ArrayRef,
        known: &mut Vec<(u32, u32)>,
        rest: &mut Vec<u32>,
    ) {
        self.numbers.read(key);
        let (base, len) = (self.base, self.slots.len() as u64);
        let slot_of = |number: i64| number.wrapping_sub(base) as u64;
        for (row, number) in (0..).zip(&self.numbers.values) {
            let slot = slot_of(*number);
            let reference = if slot < len && !self.numbers.is_null(row) {
                self.slots[slot.as_usize()]
            } else {
                0
            };
            if reference == 0 {
                rest.push(row);
            } else {
                known.push((row, reference - 1));
            }
        }
    }

    /// Takes note of rows of a batch that were looked up by their hash, and of those of them,
    /// `known`, that have a group.
    ///
    /// # Errors
    /// Of the temp space, but for shortage of memory.
    pub(crate) fn learn(
        &mut self,
        key: &ArrayRef,
        looked_up: usize,
        known: &[(u32, u32)],
        groups: usize,
    ) -> Result<(), Error> {
        self.looked_up += looked_up;
        self.found += known.len();
        if known.is_empty() || self.is_too_wide() {
            return Ok(());
        }
        self.numbers.read(key);
        let valid = |row: u32| !self.numbers.is_null(row);
        for (row, _) in known.iter().filter(|(row, _)| valid(*row)) {
            let number = self.numbers.values[*row as usize];
            let (least, greatest) = self.seen.unwrap_or((number, number));
            self.seen = Some((least.min(number), greatest.max(number)));
        }
        if self.looked_up >= LOOK_ROWS {
            if self.found * FOUND_SHARE_MIN >= self.looked_up {
                self.cover(groups)?;
            }
            (self.looked_up, self.found) = (0, 0);
        }
        for (row, reference) in known {
            if self.numbers.is_null(*row) {
                continue;
            }
            let number = self.numbers.values[*row as usize];
            let slot = number.wrapping_sub(self.base) as u64;
            if let Some(entry) = self.slots.get_mut(slot.as_usize()) {
                *entry = reference + 1;
            }
        }
        Ok(())
    }

    /// Whether no array can come into being any more: what was seen never gets closer together.
    fn is_too_wide(&self) -> bool {
        let entry = size_of::<u32>() as u64;
        !self.is_in_use()
            && self
                .range()
                .is_some_and(|range| range > self.bytes_max / entry)
    }

    /// Makes the array cover what was seen, where that is dense enough and there is memory.
    fn cover(&mut self, groups: usize) -> Result<(), Error> {
        let (Some((least, greatest)), Some(range)) = (self.seen, self.range()) else {
            return Ok(());
        };
        let margin = range / MARGIN_SHARE + 1;
        let len = range.saturating_add(2 * margin);
        let bytes = len.saturating_mul(size_of::<u32>() as u64);
        let is_covered =
            least >= self.base && greatest.abs_diff(self.base) < self.slots.len() as u64;
        let is_dense = range <= NUMBERS_A_GROUP * groups as u64 && bytes <= self.bytes_max;
        if (self.is_in_use() && is_covered) || !is_dense {
            return Ok(());
        }
        self.slots = Vec::new();
        self.memory = None;
        let Some(memory) = or_short(self.account.reserve(bytes))? else {
            return Ok(());
        };
        self.memory = Some(memory);
        self.slots = vec![0; len.as_usize()];
        self.base = least.saturating_sub_unsigned(margin);
        Ok(())
    }
}
