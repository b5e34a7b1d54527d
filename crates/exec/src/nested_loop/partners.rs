//! Which rows have found a partner.

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::BooleanBuffer;

/// A bit for each row of a batch.
pub(super) struct Partners(BooleanBufferBuilder);

impl Partners {
    /// None of so many rows.
    pub(super) fn none(rows: usize) -> Partners {
        let mut bits = BooleanBufferBuilder::new(rows);
        bits.append_n(rows, false);
        Partners(bits)
    }

    pub(super) fn has(&self, row: usize) -> bool {
        self.0.get_bit(row)
    }

    pub(super) fn add(&mut self, row: usize) {
        self.0.set_bit(row, true);
    }

    /// Adds those of `found`, whose first bit is that of row `from`.
    ///
    /// Arrow 59's `apply_bitwise_binary_op` clears bits behind the range, where that does not end
    /// with a byte.
    pub(super) fn add_all(&mut self, from: usize, found: &BooleanBuffer) {
        let whole = match from % 8 {
            0 => found.len() / 8,
            _ => 0,
        };
        let bytes = self.0.as_slice_mut()[from / 8..].iter_mut().take(whole);
        for (byte, found) in bytes.zip(found.sliced().as_slice()) {
            *byte |= found;
        }
        let rest = found.slice(whole * 8, found.len() - whole * 8);
        for row in rest.set_indices() {
            self.0.set_bit(from + whole * 8 + row, true);
        }
    }

    /// Adds those of another one of as many rows.
    pub(super) fn add_those_of(&mut self, other: &Partners) {
        let bytes = self.0.as_slice_mut().iter_mut();
        for (byte, other) in bytes.zip(other.0.as_slice()) {
            *byte |= other;
        }
    }

    /// The same rows where they came from: `places` has the place of each among so many rows.
    pub(super) fn at(&self, places: &[u32], rows: usize) -> Partners {
        let mut found = Partners::none(rows);
        for row in self.bits().set_indices() {
            found.add(places[row] as usize);
        }
        found
    }

    pub(super) fn have_all(&self) -> bool {
        let bytes = self.0.as_slice().iter();
        bytes.map(|byte| byte.count_ones() as usize).sum::<usize>() == self.0.len()
    }

    /// The bits as they are.
    pub(super) fn bits(&self) -> BooleanBuffer {
        self.0.finish_cloned()
    }
}
