//! Parts of batches, for encoding: what a block of encoded rows takes is outside of the budget, so
//! a batch of long values goes through it in slices.
//!
//! Values that share a buffer become copies in rows: a batch of views may be far longer as rows
//! than it is as a batch, and is measured before anything is copied.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, UInt32Array};
use arrow_select::take::take;

use super::encode::{BLOCK_BYTES, GroupInput, add_byte_lengths, bytes_at_most};
use super::layout::{Encoding, RowLayout, Section};
use super::state::StateInput;

/// The length that a row stays below; offsets inside pages have 32 bits.
const ROW_BYTES_END: u64 = 1 << 31;

/// Cuts a batch into ranges of rows whose encoded bytes are at most [`BLOCK_BYTES`], or one row.
/// Fails with the length of a row that is too long for any page.
pub(crate) fn cut(layout: &RowLayout, input: &GroupInput<'_>) -> Result<Vec<Range<usize>>, u64> {
    let whole = 0..input.rows;
    let fixed = layout.fixed_row_bytes() as u64;
    let bytes = bytes_of(&layout.key, input.key) + bytes_of(&layout.payload, input.payload);
    if fixed * input.rows as u64 + bytes <= BLOCK_BYTES as u64 {
        return Ok(Vec::from([whole]));
    }
    let mut lens = vec![fixed; input.rows];
    add_byte_lengths(&layout.key, input.key, &mut lens);
    add_byte_lengths(&layout.payload, input.payload, &mut lens);
    let mut cuts = Vec::new();
    let (mut start, mut filled) = (0, 0);
    for (row, len) in lens.iter().enumerate() {
        if *len >= ROW_BYTES_END {
            return Err(*len);
        }
        filled += len;
        if filled > BLOCK_BYTES as u64 && row > start {
            cuts.push(start..row);
            (start, filled) = (row, *len);
        }
    }
    cuts.push(start..input.rows);
    Ok(cuts)
}

/// At least the bytes of the byte columns of a section.
fn bytes_of(section: &Section, arrays: &[ArrayRef]) -> u64 {
    let columns = section.columns.iter().zip(arrays);
    columns
        .filter(|(column, _)| column.encoding == Encoding::Bytes)
        .map(|(column, array)| bytes_at_most(&column.data_type, array))
        .sum()
}

/// Some rows of a batch.
pub(crate) struct Slice {
    rows: usize,
    key: Vec<ArrayRef>,
    payload: Vec<ArrayRef>,
    states: Vec<StateInput>,
}

impl Slice {
    /// Neighbouring rows, without a copy.
    pub(crate) fn of(input: &GroupInput<'_>, rows: Range<usize>) -> Slice {
        let (start, len) = (rows.start, rows.len());
        Slice::each(input, len, |array| array.slice(start, len))
    }

    /// Rows from anywhere in the batch.
    pub(crate) fn picked(input: &GroupInput<'_>, rows: &[u32]) -> Slice {
        let indices = UInt32Array::from(rows.to_vec());
        Slice::each(input, rows.len(), |array| {
            take(array, &indices, None).expect("indices of rows of types that a row can hold")
        })
    }

    fn each(input: &GroupInput<'_>, rows: usize, pick: impl Fn(&ArrayRef) -> ArrayRef) -> Slice {
        let pick_filter = |filter: &BooleanArray| {
            let filter: ArrayRef = Arc::new(filter.clone());
            pick(&filter).as_boolean().clone()
        };
        let pick_state = |state: &StateInput| StateInput {
            values: state.values.as_ref().map(&pick),
            filter: state.filter.as_ref().map(pick_filter),
        };
        Slice {
            rows,
            key: input.key.iter().map(&pick).collect(),
            payload: input.payload.iter().map(&pick).collect(),
            states: input.states.iter().map(pick_state).collect(),
        }
    }

    pub(crate) fn input(&self) -> GroupInput<'_> {
        GroupInput {
            rows: self.rows,
            key: &self.key,
            payload: &self.payload,
            states: &self.states,
        }
    }
}
