//! Keys that are one number, as their bits: what direct addressing goes by.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::DataType;

use super::layout::{Column, Encoding, RowLayout};

/// The column of a key that is one number of at most 8 bytes; `None` for other keys.
pub(crate) fn number_key(layout: &RowLayout) -> Option<&Column> {
    let [column] = layout.key.columns.as_slice() else {
        return None;
    };
    let is_number = column.data_type.is_integer() || column.data_type.is_temporal();
    let is_interval = matches!(column.data_type, DataType::Interval(_));
    let is_short = matches!(column.encoding, Encoding::Fixed(1 | 2 | 4 | 8));
    (is_number && is_short && !is_interval).then_some(column)
}

/// The number in the key section of a row, whose column is `column`.
#[inline]
pub(crate) fn number_in(key: &[u8], column: &Column) -> i64 {
    let value = &key[column.position..column.position + column.encoding.width()];
    match *value {
        [a] => i64::from(a as i8),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => i64::from_le_bytes(value.try_into().expect("numbers have up to 8 bytes")),
    }
}

/// The keys of a batch as they are compared: their bits.
#[derive(Default)]
pub(crate) struct Numbers {
    pub(crate) values: Vec<i64>,
    nulls: Option<NullBuffer>,
}

impl Numbers {
    pub(crate) fn read(&mut self, key: &ArrayRef) {
        fn widened<T: ArrowNativeType + Into<i64>>(data: &[T], out: &mut Vec<i64>) {
            out.extend(data.iter().map(|value| (*value).into()));
        }
        let (data, rows) = (key.to_data(), key.len());
        self.nulls = key.logical_nulls().filter(|n| n.null_count() > 0);
        self.values.clear();
        match key.data_type().primitive_width() {
            Some(1) => widened(&data.buffer::<i8>(0)[..rows], &mut self.values),
            Some(2) => widened(&data.buffer::<i16>(0)[..rows], &mut self.values),
            Some(4) => widened(&data.buffer::<i32>(0)[..rows], &mut self.values),
            _ => widened(&data.buffer::<i64>(0)[..rows], &mut self.values),
        }
    }

    #[inline]
    pub(crate) fn is_null(&self, row: u32) -> bool {
        let nulls = self.nulls.as_ref();
        nulls.is_some_and(|nulls| nulls.is_null(row as usize))
    }
    /// Whether any row is NULL.
    pub(crate) fn has_nulls(&self) -> bool {
        self.nulls.is_some()
    }
}
