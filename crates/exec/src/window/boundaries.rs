//! Rows whose keys differ from those of the row before: where partitions and peers begin.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array, make_comparator};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{SortOptions, partition, take};
use arrow::util::bit_util;
use datafusion::common::Result;

/// Compares each row with the one before, over the ends of batches.
pub(super) struct Boundaries {
    columns: Vec<usize>,
    /// The keys of the last row that was seen.
    last: Option<Vec<ArrayRef>>,
}

impl Boundaries {
    /// Of keys that are these columns.
    pub(super) fn new(columns: Vec<usize>) -> Self {
        Self {
            columns,
            last: None,
        }
    }

    /// A bit for each row that comes next, set where the keys change; the very first row changes
    /// them. There is at least one row.
    pub(super) fn find(&mut self, columns: &[ArrayRef], rows: usize) -> Result<BooleanBuffer> {
        let mut bits = vec![0_u8; rows.div_ceil(8)];
        let keys: Vec<ArrayRef> = { self.columns.iter() }
            .map(|column| Arc::clone(&columns[*column]))
            .collect();
        if !keys.is_empty() {
            for range in partition(&keys)?.ranges() {
                bit_util::set_bit(&mut bits, range.start);
            }
        }
        let changes = match &self.last {
            None => true,
            Some(last) => differs(last, &keys)?,
        };
        match changes {
            true => bit_util::set_bit(&mut bits, 0),
            false => bit_util::unset_bit(&mut bits, 0),
        }
        let end = UInt32Array::from_iter_values([(rows - 1) as u32]);
        let last = keys.iter().map(|key| Ok(take(key, &end, None)?));
        self.last = Some(last.collect::<Result<_>>()?);
        Ok(BooleanBuffer::new(bits.into(), 0, rows))
    }
}

/// Whether the first rows of keys differ.
fn differs(left: &[ArrayRef], right: &[ArrayRef]) -> Result<bool> {
    for (left, right) in left.iter().zip(right) {
        if make_comparator(left, right, SortOptions::default())?(0, 0).is_ne() {
            return Ok(true);
        }
    }
    Ok(false)
}
