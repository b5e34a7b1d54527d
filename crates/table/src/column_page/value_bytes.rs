//! How many bytes the values of a column take in a page.

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{Array, GenericByteArray, GenericByteViewArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use super::sizes::{PREFIX_BYTES, PREFIXED_BYTES};

/// The bytes of the text or binary values of some rows.
pub(super) fn value_bytes(column: &dyn Array, from: usize, row_count: usize) -> ValueBytes {
    match column.data_type() {
        DataType::Utf8 => offset_bytes(column.as_string::<i32>(), from, row_count),
        DataType::LargeUtf8 => offset_bytes(column.as_string::<i64>(), from, row_count),
        DataType::Binary => offset_bytes(column.as_binary::<i32>(), from, row_count),
        DataType::LargeBinary => offset_bytes(column.as_binary::<i64>(), from, row_count),
        DataType::Utf8View => view_bytes(column.as_string_view(), from, row_count),
        DataType::BinaryView => view_bytes(column.as_binary_view(), from, row_count),
        other => unreachable!("{other} is not stored as bytes"),
    }
}

fn offset_bytes<T: ByteArrayType>(
    array: &GenericByteArray<T>,
    from: usize,
    row_count: usize,
) -> ValueBytes {
    let offsets = &array.value_offsets()[from..=from + row_count];
    let prefixed = T::Offset::usize_as(PREFIXED_BYTES);
    let is_long = |[start, end]: &[T::Offset; 2]| u32::from(*end - *start > prefixed);
    let longs: u32 = offsets.array_windows().map(is_long).sum();
    ValueBytes {
        data: offsets[row_count].as_usize() - offsets[0].as_usize(),
        prefixes: longs as usize * PREFIX_BYTES,
    }
}

fn view_bytes<T: ByteViewType>(
    array: &GenericByteViewArray<T>,
    from: usize,
    row_count: usize,
) -> ValueBytes {
    let views = &array.views()[from..from + row_count];
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => bytes_of_lens(views.iter().map(|view| *view as u32)),
        Some(nulls) => {
            let valid = views.iter().zip(from..);
            let lens = valid.map(|(view, row)| match nulls.is_valid(row) {
                true => *view as u32,
                false => 0,
            });
            bytes_of_lens(lens)
        }
    }
}

/// Counts in the widths that the compiler makes vectors of.
fn bytes_of_lens(lens: impl Iterator<Item = u32>) -> ValueBytes {
    let (data, longs) = lens.fold((0_u64, 0_u64), |(data, longs), len| {
        let is_long = len > PREFIXED_BYTES as u32;
        (data + u64::from(len), longs + u64::from(is_long))
    });
    ValueBytes {
        data: data as usize,
        prefixes: longs as usize * PREFIX_BYTES,
    }
}

/// The bytes of text or binary values, or of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ValueBytes {
    pub(super) data: usize,
    pub(super) prefixes: usize,
}

impl ValueBytes {
    pub(super) fn sum(self) -> usize {
        self.data + self.prefixes
    }

    pub(super) fn plus(self, other: ValueBytes) -> ValueBytes {
        ValueBytes {
            data: self.data + other.data,
            prefixes: self.prefixes + other.prefixes,
        }
    }
}
