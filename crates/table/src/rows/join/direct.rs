//! Direct addressing of the tables of a join: a number as key finds its rows without a hash.
//!
//! Keys that number something lie close together. Where such a number is the whole key and every
//! row is in a table, an array over the range of the keys holds the first row of each: a load in
//! the place of encoding, hashing, a slot and a comparison.
//!
//! **Owns** that array. **Never** stands alone: the tables link the rows of one key. **Cost.** 4
//! bytes for each number of the range, and two passes over the rows when it is built. **Source.**
//! As of [`direct`](super::super::direct).

use arrow_buffer::ArrowNativeType;

use super::super::Error;
use super::super::numbers::{Numbers, number_in, number_key};
use super::super::segment::Shape;
use super::extra::ExtraMemory;
use super::row_ref::RowRef;
use super::table::JoinTable;

/// Numbers of the range for each row, at most: an array that is no larger than a directory.
const NUMBERS_A_ROW: u64 = 8;

/// An entry is the number of a table above a reference of so many bits, plus one; zero is no row.
const REFERENCE_BITS: u32 = 26;

/// The first row of each number.
pub(crate) struct DirectHeads {
    /// The number of the first entry.
    base: i64,
    entries: Vec<u32>,
    _memory: ExtraMemory,
}

impl DirectHeads {
    /// The array over some tables, by their numbers; `None` where keys are no numbers, or too far
    /// from one another, or memory is short.
    pub(crate) fn build(
        shape: &Shape,
        tables: &[(usize, &JoinTable)],
    ) -> Result<Option<DirectHeads>, Error> {
        let layout = &shape.layout;
        let Some(column) = number_key(layout) else {
            return Ok(None);
        };
        let rows: u64 = tables
            .iter()
            .map(|(_, table)| table.row_count() as u64)
            .sum();
        let is_dense = |least: i64, greatest: i64| {
            greatest.abs_diff(least) < rows.saturating_mul(NUMBERS_A_ROW)
        };
        let mut bounds: Option<(i64, i64)> = None;
        let mut fits = true;
        for (_, table) in tables {
            table.each_row(|reference, row| {
                let key = layout.key_of(row);
                fits &= reference < (1 << REFERENCE_BITS) - 1;
                if layout.key_is_known(key) {
                    let number = number_in(key, column);
                    let (least, greatest) = bounds.unwrap_or((number, number));
                    bounds = Some((least.min(number), greatest.max(number)));
                }
            })?;
            if !fits || bounds.is_some_and(|(least, greatest)| !is_dense(least, greatest)) {
                return Ok(None);
            }
        }
        let (Some((least, greatest)), true) = (bounds, tables.len() <= 1 << (32 - REFERENCE_BITS))
        else {
            return Ok(None);
        };
        let len = greatest.abs_diff(least) + 1;
        let Some(memory) = ExtraMemory::reserve(&shape.account, 4 * len)? else {
            return Ok(None);
        };
        let mut entries = vec![0u32; len.as_usize()];
        for (number_of_table, table) in tables {
            let above = (*number_of_table as u32) << REFERENCE_BITS;
            table.each_row(|reference, row| {
                let key = layout.key_of(row);
                if layout.key_is_known(key) {
                    let at = number_in(key, column).wrapping_sub(least) as u64;
                    let entry = &mut entries[at.as_usize()];
                    // The first row of a key is the one that the others are linked to.
                    if *entry == 0 {
                        *entry = (above | reference) + 1;
                    }
                }
            })?;
        }
        Ok(Some(DirectHeads {
            base: least,
            entries,
            _memory: memory,
        }))
    }

    /// The first row of each number of a batch.
    pub(crate) fn find(&self, numbers: &Numbers, heads: &mut Vec<RowRef>) {
        let len = self.entries.len() as u64;
        heads.clear();
        heads.extend((0..).zip(&numbers.values).map(|(row, number)| {
            let at = number.wrapping_sub(self.base) as u64;
            if at >= len || numbers.is_null(row) {
                return RowRef::NONE;
            }
            match self.entries[at.as_usize()].checked_sub(1) {
                Some(entry) => {
                    let reference = entry & ((1 << REFERENCE_BITS) - 1);
                    RowRef::new((entry >> REFERENCE_BITS) as usize, reference)
                }
                None => RowRef::NONE,
            }
        }));
    }
}
