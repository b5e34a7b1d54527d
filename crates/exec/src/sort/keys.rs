//! Normalised keys: bytes whose order is the order of the rows.
//!
//! Owns: the encoder of a sort's keys. Never: decides about memory.
//!
//! Source: the row format of `arrow-row`. Keys of fixed width that fit into the prefix of an
//! entry (or of a cursor) need no row bytes once the prefix is taken.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::Result;

use super::spec::SortSpec;

/// Encodes the keys of batches that have the inner schema of a sort.
pub(super) struct KeyEncoder {
    converter: RowConverter,
    positions: Vec<usize>,
    /// Bytes of every key, when all columns have a fixed width.
    fixed_bytes: Option<usize>,
}

/// Bytes of a value in the row format, when all values of the type take the same.
fn fixed_bytes(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Boolean => Some(2),
        DataType::FixedSizeBinary(width) => Some(1 + usize::try_from(*width).ok()?),
        other => other.primitive_width().map(|width| 1 + width),
    }
}

impl KeyEncoder {
    pub(super) fn new(spec: &SortSpec) -> Result<Self> {
        let types = || {
            spec.keys
                .iter()
                .map(|(index, _)| spec.inner.field(*index).data_type())
        };
        let fields = types()
            .zip(&spec.keys)
            .map(|(data_type, (_, options))| {
                SortField::new_with_options(data_type.clone(), *options)
            })
            .collect();
        Ok(Self {
            converter: RowConverter::new(fields)?,
            positions: spec.keys.iter().map(|(index, _)| *index).collect(),
            fixed_bytes: types().map(fixed_bytes).sum(),
        })
    }

    /// Whether `bytes` of a key always decide its place.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        self.fixed_bytes.is_some_and(|fixed| fixed <= bytes)
    }

    /// An empty buffer for [`Self::append`].
    pub(super) fn empty(&self) -> Rows {
        self.converter.empty_rows(0, 0)
    }

    /// The keys of a batch.
    pub(super) fn encode(&self, batch: &RecordBatch) -> Result<Rows> {
        Ok(self.converter.convert_columns(&self.columns(batch))?)
    }

    /// Replaces the content of `rows` with the keys of a batch.
    pub(super) fn encode_into(&self, batch: &RecordBatch, rows: &mut Rows) -> Result<()> {
        rows.clear();
        Ok(self.converter.append(rows, &self.columns(batch))?)
    }

    /// The values of one key, as columns of one row.
    pub(super) fn decode(&self, key: &[u8]) -> Result<Vec<ArrayRef>> {
        Ok(self
            .converter
            .convert_rows([self.converter.parser().parse(key)])?)
    }

    /// Bytes of every key, when all take the same.
    pub(super) fn fixed_bytes(&self) -> Option<usize> {
        self.fixed_bytes
    }

    fn columns(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        self.positions
            .iter()
            .map(|&index| ArrayRef::clone(batch.column(index)))
            .collect()
    }
}

/// Bytes of a key that a cursor compares as one integer.
pub(super) const HEAD_BYTES: usize = 16;

/// The first bytes of a key, zero-padded, as an integer of the same order.
#[inline]
pub(super) fn head(key: &[u8]) -> u128 {
    if let Some(bytes) = key.first_chunk::<HEAD_BYTES>() {
        return u128::from_be_bytes(*bytes);
    }
    let mut padded = [0_u8; HEAD_BYTES];
    padded[..key.len()].copy_from_slice(key);
    u128::from_be_bytes(padded)
}
