//! The rows of a batch that a condition leaves open.
//!
//! Owns: [`Selection`], and how bits of few rows become bits of all. Never: evaluates anything.

use arrow::array::BooleanArray;
use arrow::buffer::{BooleanBuffer, Buffer};

/// The open rows of a batch: those for which all terms so far are true.
#[derive(Debug)]
pub(crate) enum Selection {
    All,
    Some { bits: BooleanBuffer, count: usize },
    None,
}

impl Selection {
    /// Those whose bits are set.
    pub(crate) fn of(bits: BooleanBuffer) -> Selection {
        match bits.count_set_bits() {
            0 => Selection::None,
            count if count == bits.len() => Selection::All,
            count => Selection::Some { bits, count },
        }
    }

    /// Those of the rows with set bits that are open where they stand alone, as in `few`.
    pub(crate) fn of_few(bits: BooleanBuffer, few: Selection) -> Selection {
        match few {
            Selection::All => Selection::of(bits),
            Selection::Some { bits: open, .. } => Selection::of(scattered(&bits, &open)),
            Selection::None => Selection::None,
        }
    }

    /// How many of the rows of the batch are open.
    pub(crate) fn count(&self, rows: usize) -> usize {
        match self {
            Selection::All => rows,
            Selection::Some { count, .. } => *count,
            Selection::None => 0,
        }
    }

    /// A bit for each of the rows of the batch.
    pub(crate) fn bits(self, rows: usize) -> BooleanBuffer {
        match self {
            Selection::All => BooleanBuffer::new_set(rows),
            Selection::Some { bits, .. } => bits,
            Selection::None => BooleanBuffer::new_unset(rows),
        }
    }

    /// Those of them whose bits are set.
    pub(crate) fn and(self, bits: BooleanBuffer) -> Selection {
        match self {
            Selection::All => Selection::of(bits),
            Selection::Some { bits: before, .. } => Selection::of(&before & &bits),
            Selection::None => Selection::None,
        }
    }

    /// A bit for each of the rows of the batch; `None` where all of them are open.
    pub(crate) fn mask(self, rows: usize) -> Option<BooleanArray> {
        match self {
            Selection::All => None,
            open => Some(BooleanArray::new(open.bits(rows), None)),
        }
    }
}

/// The rows among the set bits that `passing` chooses by their number.
fn scattered(bits: &BooleanBuffer, passing: &BooleanBuffer) -> BooleanBuffer {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(rows: usize, is_set: impl FnMut(usize) -> bool) -> BooleanBuffer {
        BooleanBuffer::collect_bool(rows, is_set)
    }

    #[test]
    fn bits_of_few_rows_become_bits_of_all() {
        for rows in [0, 1, 63, 64, 65, 127, 128, 500] {
            for step in [1, 2, 3, 64, 501] {
                // Bits that do not begin with a word are those of a slice.
                let open = bits(rows + 5, |row| row >= 5 && (row - 5) % step == 0).slice(5, rows);
                let count = open.count_set_bits();
                for chosen in 1..4 {
                    let passing = bits(count, |place| place % chosen == 0);
                    let is_expected = |row: usize| {
                        row.is_multiple_of(step) && (row / step).is_multiple_of(chosen)
                    };
                    let found = scattered(&open, &passing);
                    assert_eq!(found, bits(rows, is_expected), "{rows}, {step}, {chosen}");
                }
            }
        }
    }

    #[test]
    fn open_rows_are_counted_and_closed() {
        let half = bits(100, |row| row % 2 == 0);
        let third = bits(100, |row| row % 3 == 0);
        let open = Selection::All.and(half.clone());
        assert_eq!(open.count(100), 50);
        let open = open.and(third);
        assert_eq!(open.count(100), 17);
        assert_eq!(open.bits(100), bits(100, |row| row % 6 == 0));
        assert!(matches!(Selection::of(bits(100, |_| true)), Selection::All));
        assert!(matches!(
            Selection::of(half.clone()).and(!&half),
            Selection::None
        ));
        assert_eq!(Selection::All.count(7), 7);
        assert_eq!(Selection::None.count(7), 0);
        assert!(Selection::All.mask(7).is_none());
        assert_eq!(Selection::None.mask(7).unwrap().true_count(), 0);
        // Every third one of the rows with even numbers.
        let few = Selection::of(bits(50, |place| place % 3 == 0));
        let open = Selection::of_few(half.clone(), few);
        assert_eq!(open.bits(100), bits(100, |row| row % 6 == 0));
        assert_eq!(
            Selection::of_few(half.clone(), Selection::All).bits(100),
            half
        );
        assert!(matches!(
            Selection::of_few(half, Selection::None),
            Selection::None
        ));
    }
}
