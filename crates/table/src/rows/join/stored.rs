//! The columns of rows that found partners.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_schema::ArrowError;
use arrow_select::nullif::nullif;

use super::super::decode::decode_columns;
use super::super::layout::RowLayout;

/// Where a column of a row is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stored {
    /// It is this column of the key.
    Key(usize),
    /// It is this column of the payload.
    Payload(usize),
}

/// Decodes columns of rows, in the order of `columns`; where `is_absent`, a row is NULL throughout.
pub(crate) fn decode_stored(
    layout: &RowLayout,
    rows: &[&[u8]],
    is_absent: Option<&BooleanArray>,
    columns: &[Stored],
) -> Result<Vec<ArrayRef>, ArrowError> {
    let wants_key = |at: usize| columns.contains(&Stored::Key(at));
    let wants_payload = |at: usize| columns.contains(&Stored::Payload(at));
    let mut found: Vec<(Stored, ArrayRef)> = Vec::with_capacity(columns.len());
    if columns
        .iter()
        .any(|column| matches!(column, Stored::Key(_)))
    {
        let starts = vec![layout.key_start(); rows.len()];
        let arrays = decode_columns(&layout.key, rows, &starts, wants_key)?;
        let places = (0..layout.key.columns.len()).filter(|at| wants_key(*at));
        found.extend(places.map(Stored::Key).zip(arrays));
    }
    if columns
        .iter()
        .any(|column| matches!(column, Stored::Payload(_)))
    {
        let starts: Vec<usize> = rows.iter().map(|row| layout.payload_start(row)).collect();
        let arrays = decode_columns(&layout.payload, rows, &starts, wants_payload)?;
        let places = (0..layout.payload.columns.len()).filter(|at| wants_payload(*at));
        found.extend(places.map(Stored::Payload).zip(arrays));
    }
    let array_of = |column: &Stored| {
        let array = found.iter().find(|(place, _)| place == column);
        let (_, array) = array.expect("every column that is wanted was decoded");
        match is_absent {
            Some(is_absent) => nullif(array, is_absent),
            None => Ok(Arc::clone(array)),
        }
    };
    columns.iter().map(array_of).collect()
}
