//! Bytes of batches, and batches that keep alive little more than their rows.
//!
//! Owns: the bytes that a copy of a batch would take, and the copies of what its texts point to.
//! Never: reserves memory; who keeps a batch does.
//!
//! A slice of a batch, or a selection of its rows, shares the buffers of all its texts. One that is
//! kept for long is copied first if it keeps much alive that it does not show.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, RecordBatch};
use arrow::datatypes::DataType;
use datafusion::common::Result;

use crate::batches::batch_of;

/// Strings of up to this many bytes live in the view itself.
const INLINE_BYTES: u32 = 12;
/// Bytes that a view takes beside what it points to.
const VIEW_BYTES: usize = 16;

/// Bytes of a column that a copy of it would take.
fn column_bytes(column: &dyn Array) -> usize {
    let views = match column.data_type() {
        DataType::Utf8View => column.as_string_view().views(),
        DataType::BinaryView => column.as_binary_view().views(),
        _ => return column.to_data().get_slice_memory_size().unwrap_or_default(),
    };
    let nulls = if column.nulls().is_some() {
        column.len() / 8 + 1
    } else {
        0
    };
    nulls + views.len() * VIEW_BYTES + outline_bytes(views)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a view's length is its lower 32 bits"
)]
fn outline_bytes(views: &[u128]) -> usize {
    views
        .iter()
        .map(|&view| view as u32)
        .filter(|&len| len > INLINE_BYTES)
        .map(|len| len as usize)
        .sum()
}

/// Bytes that a copy of a batch would take.
pub(crate) fn batch_bytes(batch: &RecordBatch) -> usize {
    batch
        .columns()
        .iter()
        .map(|column| column_bytes(column.as_ref()))
        .sum()
}

/// How much more than its own strings a column may keep alive before it is copied.
const WASTE_FACTOR: usize = 2;
/// Bytes of waste that are not worth a copy.
const WASTE_BYTES_MIN: usize = 4096;

/// A batch that keeps alive little more than its own rows.
pub(crate) fn compact(batch: RecordBatch) -> Result<RecordBatch> {
    copy_views(batch, |used, held| {
        held > WASTE_FACTOR * used + WASTE_BYTES_MIN
    })
}

/// A batch that shares no string buffer with anything, pages least of all.
pub(crate) fn detach(batch: RecordBatch) -> Result<RecordBatch> {
    copy_views(batch, |_, held| held > 0)
}

fn copy_views(batch: RecordBatch, must: impl Fn(usize, usize) -> bool) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let (schema, mut columns, _) = batch.into_parts();
    for column in &mut columns {
        let held = |buffers: &[arrow::buffer::Buffer]| -> usize {
            buffers.iter().map(arrow::buffer::Buffer::capacity).sum()
        };
        let copied: Option<ArrayRef> = match column.data_type() {
            DataType::Utf8View => {
                let array = column.as_string_view();
                must(outline_bytes(array.views()), held(array.data_buffers()))
                    .then(|| Arc::new(array.gc()) as ArrayRef)
            }
            DataType::BinaryView => {
                let array: &BinaryViewArray = column.as_binary_view();
                must(outline_bytes(array.views()), held(array.data_buffers()))
                    .then(|| Arc::new(array.gc()) as ArrayRef)
            }
            _ => None,
        };
        if let Some(copied) = copied {
            *column = copied;
        }
    }
    batch_of(&schema, columns, rows)
}
