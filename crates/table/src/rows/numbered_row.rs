//! Rows that hold a key and its number, of a [`GroupNumbering`](super::GroupNumbering).

use super::layout::{ROW_ALIGN, RowLayout};
use super::state::get;

/// Writes the row that holds a key and its number.
pub(crate) fn numbered_row(
    layout: &RowLayout,
    row: &mut Vec<u8>,
    hash: u64,
    key: &[u8],
    number: u32,
) {
    row.clear();
    row.extend_from_slice(&hash.to_le_bytes());
    let len = (layout.key_start() + key.len()).next_multiple_of(ROW_ALIGN);
    row.resize(layout.key_start(), 0);
    row.extend_from_slice(key);
    row.resize(len, 0);
    layout.set_row_len(row, len);
    let at = layout.states[0].offset;
    row[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// The number in a row that [`numbered_row`] wrote.
pub(crate) fn number_of(layout: &RowLayout, row: &[u8]) -> u32 {
    u32::from_le_bytes(get(row, layout.states[0].offset))
}
