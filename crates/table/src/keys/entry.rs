//! The values of a row in a key, as an error shows them: of a column that the key keeps the
//! beginning of, no more than that.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryViewArray, RecordBatch, StringViewArray};
use arrow_schema::DataType;

use crate::error::Result;

/// Cuts a row, which has the columns of a key, to the prefixes of that.
///
/// # Errors
/// None but for a bug.
pub fn entry(
    row: &RecordBatch,
    prefixes: impl IntoIterator<Item = Option<u32>>,
) -> Result<RecordBatch> {
    let cut = |(values, prefix): (&ArrayRef, Option<u32>)| match prefix {
        Some(prefix) => beginning(values, prefix as usize),
        None => Arc::clone(values),
    };
    let columns = row.columns().iter().zip(prefixes).map(cut).collect();
    Ok(RecordBatch::try_new(row.schema(), columns)?)
}

fn beginning(values: &ArrayRef, length: usize) -> ArrayRef {
    match values.data_type() {
        DataType::Utf8View => {
            let texts = values.as_string_view().iter();
            let cut = texts.map(|text| {
                let text: String = text?.chars().take(length).collect();
                Some(text)
            });
            Arc::new(cut.collect::<StringViewArray>())
        }
        DataType::BinaryView => {
            let values = values.as_binary_view().iter();
            let cut = values.map(|bytes| bytes.map(|bytes| &bytes[..length.min(bytes.len())]));
            Arc::new(cut.collect::<BinaryViewArray>())
        }
        _ => Arc::clone(values),
    }
}
