//! MIN and MAX of byte columns: the value travels in the payload and may change the row's length.

use super::layout::{Column, Encoding, PayloadRule, ROW_ALIGN, RowLayout, length_at};

/// Whether a column of the payload that starts at `start` is NULL.
fn is_null(column: &Column, row: &[u8], start: usize) -> bool {
    column
        .null_bit
        .is_some_and(|bit| row[start + bit / 8] & (1 << (bit % 8)) != 0)
}

/// One byte column of a row's payload: `None` is NULL.
fn value_of<'a>(layout: &RowLayout, row: &'a [u8], wanted: usize) -> Option<&'a [u8]> {
    let start = layout.payload_start(row);
    let column = &layout.payload.columns[wanted];
    if is_null(column, row, start) {
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

fn column_wins(layout: &RowLayout, column: usize, source: &[u8], target: &[u8]) -> bool {
    let rule = layout.rules[column];
    if rule == PayloadRule::First {
        return false;
    }
    if rule == PayloadRule::FirstNotNull {
        let null = |row| {
            is_null(
                &layout.payload.columns[column],
                row,
                layout.payload_start(row),
            )
        };
        return null(target) && !null(source);
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
        let start = layout.payload_start(target);
        if target[start..start + layout.payload.null_bytes]
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
    let start = layout.payload_start(target);
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
            let from = layout.payload_start(source) + column.position;
            let at = start + column.position;
            row[at..at + width].copy_from_slice(&source[from..from + width]);
        }
        if let Some(bit) = column.null_bit.filter(|_| wins) {
            row[start + bit / 8] &= !(1 << (bit % 8));
        }
    }
    let len = row.len().next_multiple_of(ROW_ALIGN);
    row.resize(len, 0);
    layout.set_row_len(row, len);
}
