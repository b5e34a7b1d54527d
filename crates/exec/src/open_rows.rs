//! The rows of a batch that a condition leaves.
//!
//! Owns: [`Open`], and how bits of few rows become bits of all. Never: evaluates anything.

use arrow::array::BooleanArray;
use arrow::buffer::{BooleanBuffer, Buffer};

/// The rows of a batch for which all terms so far are true.
#[derive(Debug)]
pub(crate) enum Open {
    All,
    Some { bits: BooleanBuffer, count: usize },
    None,
}

impl Open {
    /// Those whose bits are set.
    pub(crate) fn of(bits: BooleanBuffer) -> Open {
        match bits.count_set_bits() {
            0 => Open::None,
            count if count == bits.len() => Open::All,
            count => Open::Some { bits, count },
        }
    }

    /// A bit for each of the rows of the batch.
    pub(crate) fn bits(self, rows: usize) -> BooleanBuffer {
        match self {
            Open::All => BooleanBuffer::new_set(rows),
            Open::Some { bits, .. } => bits,
            Open::None => BooleanBuffer::new_unset(rows),
        }
    }

    /// Those of them whose bits are set.
    pub(crate) fn and(self, bits: BooleanBuffer) -> Open {
        match self {
            Open::All => Open::of(bits),
            Open::Some { bits: before, .. } => Open::of(&before & &bits),
            Open::None => Open::None,
        }
    }

    /// A bit for each of the rows of the batch; `None` where all of them are open.
    pub(crate) fn mask(self, rows: usize) -> Option<BooleanArray> {
        match self {
            Open::All => None,
            open => Some(BooleanArray::new(open.bits(rows), None)),
        }
    }
}

/// The rows among the set bits that `passing` chooses by their number.
pub(crate) fn scattered(bits: &BooleanBuffer, passing: &BooleanBuffer) -> BooleanBuffer {
    let mut words = vec![0_u64; bits.len().div_ceil(64)];
    for (row, passes) in bits.set_indices().zip(passing) {
        if let Some(word) = words.get_mut(row / 64) {
            *word |= u64::from(passes) << (row % 64);
        }
    }
    for word in &mut words {
        *word = word.to_le();
    }
    BooleanBuffer::new(Buffer::from_vec(words), 0, bits.len())
}
