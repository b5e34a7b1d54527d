//! Bytes of batches, and batches that keep alive little more than their rows.
//!
//! Owns: the bytes that a copy of a batch would take, and the copies of what its texts point to.
//! Never: reserves memory; who keeps a batch does.
//!
//! A slice of a batch, or a selection of its rows, shares the buffers of all its texts. One that is
//! kept for long is copied first if it keeps much alive that it does not show.

use arrow::array::RecordBatch;
use datafusion::common::Result;
use mayfly_table::owned::{own_bytes, owned_where};

use crate::batches::batch_of;

/// Bytes that a copy of a batch would take.
pub(crate) fn batch_bytes(batch: &RecordBatch) -> usize {
    batch
        .columns()
        .iter()
        .map(|column| own_bytes(column.as_ref()))
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
        *column = owned_where(column, &must);
    }
    batch_of(&schema, columns, rows)
}
