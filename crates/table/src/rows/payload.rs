//! MIN and MAX of byte columns: the value travels in the payload and may change the row's length.

use super::layout::{Encoding, PayloadRule, RowLayout, row_key_len};

fn is_null(layout: &RowLayout, row: &[u8], column: usize) -> bool {
    let start = layout.key_start() + row_key_len(row);
    row[start + column / 8] & (1 << (column % 8)) != 0
}

/// One byte column of a row's payload: `None` is NULL.
fn value_of<'a>(layout: &RowLayout, row: &'a [u8], wanted: usize) -> Option<&'a [u8]> {
    let start = layout.key_start() + row_key_len(row);
    let column = &layout.payload.columns[wanted];
    if row[start + column.null_bit / 8] & (1 << (column.null_bit % 8)) != 0 {
        return None;
    }
    let mut at = start + layout.payload.fixed_bytes;
    for other in &layout.payload.columns[..wanted] {
        if other.encoding == Encoding::Bytes {
            at += length_at(row, start + other.position);
        }
    }
    Some(&row[at..at + length_at(row, start + column.position)])
}

fn length_at(row: &[u8], at: usize) -> usize {
    u32::from_le_bytes(row[at..at + 4].try_into().expect("4 bytes")) as usize
}

fn column_wins(layout: &RowLayout, column: usize, source: &[u8], target: &[u8]) -> bool {
    let rule = layout.rules[column];
    if rule == PayloadRule::First {
        return false;
    }
    if rule == PayloadRule::FirstNotNull {
        return is_null(layout, target, column) && !is_null(layout, source, column);
    }
    match (
        value_of(layout, source, column),
        value_of(layout, target, column),
    ) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(new), Some(old)) if rule == PayloadRule::Min => new < old,
        (Some(new), Some(old)) => new > old,
    }
}

/// Whether any column of `source` replaces that of `target`.
pub(crate) fn source_wins(layout: &RowLayout, source: &[u8], target: &[u8]) -> bool {
    if !layout.payload_compares {
        // Only NULLs can be replaced, and few rows have any.
        let start = layout.key_start() + row_key_len(target);
        let null_bytes = layout.rules.len().div_ceil(8);
        if target[start..start + null_bytes]
            .iter()
            .all(|byte| *byte == 0)
        {
            return false;
        }
    }
    (0..layout.rules.len()).any(|column| column_wins(layout, column, source, target))
}

/// Writes the row that `target` becomes: its header, states and key with the winning values.
pub(crate) fn merge(layout: &RowLayout, source: &[u8], target: &[u8], row: &mut Vec<u8>) {
    let section = &layout.payload;
    let start = layout.key_start() + row_key_len(target);
    row.clear();
    row.extend_from_slice(&target[..start + section.fixed_bytes]);
    for (number, column) in section.columns.iter().enumerate() {
        let wins = column_wins(layout, number, source, target);
        let winner = if wins { source } else { target };
        if column.encoding == Encoding::Bytes {
            let value = value_of(layout, winner, number).unwrap_or_default();
            let len = u32::try_from(value.len()).expect("a value is below 2 GiB");
            let at = start + column.position;
            row[at..at + 4].copy_from_slice(&len.to_le_bytes());
            row.extend_from_slice(value);
        }
        let width = column.encoding.width();
        if wins && column.encoding != Encoding::Bytes {
            let from = layout.key_start() + row_key_len(source) + column.position;
            let at = start + column.position;
            row[at..at + width].copy_from_slice(&source[from..from + width]);
        }
        if wins {
            row[start + column.null_bit / 8] &= !(1 << (column.null_bit % 8));
        }
    }
    row.resize(row.len().next_multiple_of(8), 0);
    let total = u32::try_from(row.len()).expect("a row is below 2 GiB");
    row[8..12].copy_from_slice(&total.to_le_bytes());
}
