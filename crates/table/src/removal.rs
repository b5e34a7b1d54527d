//! Rows of a snapshot that a statement removes.

use std::collections::BTreeMap;

/// A row of a snapshot: which batch, and which slot of it.
pub(crate) fn row_id(batch: usize, slot: u32) -> u64 {
    (batch as u64) << 32 | u64::from(slot)
}

/// The batch and the slot of a row.
pub(crate) fn split_row_id(id: u64) -> (usize, u32) {
    ((id >> 32) as usize, id as u32)
}

pub(crate) fn is_same_batch(left: &u64, right: &u64) -> bool {
    split_row_id(*left).0 == split_row_id(*right).0
}

/// Slots of a batch, one bit each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots(pub(crate) Vec<u64>);

impl Slots {
    /// Adds a slot; whether it was not there.
    pub(crate) fn insert(&mut self, slot: u32) -> bool {
        let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(crate) fn count(&self) -> u64 {
        let words = self.0.iter();
        words.map(|word| u64::from(word.count_ones())).sum()
    }

    pub(crate) fn contains(&self, slot: u32) -> bool {
        let word = self.0.get(slot as usize / 64);
        word.is_some_and(|word| word & (1 << (slot % 64)) != 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let words = self.0.iter().enumerate().filter(|(_, word)| **word != 0);
        words.flat_map(|(index, word)| {
            let bits = (0..64).filter(move |bit| word & (1 << bit) != 0);
            bits.map(move |bit| index as u32 * 64 + bit)
        })
    }
}

impl FromIterator<u32> for Slots {
    fn from_iter<I: IntoIterator<Item = u32>>(slots: I) -> Self {
        let mut all = Slots::default();
        for slot in slots {
            all.insert(slot);
        }
        all
    }
}

/// Rows that leave a table, by the batches of the snapshot that they were seen in.
#[derive(Debug, Default)]
pub(crate) struct Removal {
    pub(crate) slots: BTreeMap<usize, Slots>,
    pub(crate) row_count: u64,
}
