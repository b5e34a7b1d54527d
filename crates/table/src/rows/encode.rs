//! Arrow columns into rows: one scratch block a batch, column by column.
//!
//! **Cost.** Each value is copied once; there is no type switch inside a loop over rows. The block
//! stays in the second-level cache (8,192 rows of 64 bytes are 512 KiB): batches of longer rows
//! come in [`slices`](super::slices).

use std::ops::AddAssign;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, ByteArrayType, ByteViewType, LargeBinaryType, LargeUtf8Type, StringViewType,
    Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, GenericByteArray, GenericByteViewArray,
};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use super::hash::KeyHasher;
use super::layout::{Column, Encoding, ROW_ALIGN, RowLayout, Section};
use super::state::{self, StateInput};

/// One batch of input for an aggregate: everything has the same number of rows.
#[derive(Debug, Clone, Copy)]
pub struct GroupInput<'a> {
    /// Number of rows.
    pub rows: usize,
    /// The group columns, in the types of the layout.
    pub key: &'a [ArrayRef],
    /// The carried columns.
    pub payload: &'a [ArrayRef],
    /// One argument for each state.
    pub states: &'a [StateInput],
}

/// Encoded rows, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct RowBlock {
    pub(crate) bytes: Vec<u8>,
    pub(crate) offsets: Vec<u32>,
    pub(crate) hashes: Vec<u64>,
    key_lens: Vec<u32>,
    totals: Vec<u32>,
    cursors: Vec<u32>,
}

/// Rows somewhere in memory: a block or a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsView<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) offsets: &'a [u32],
    pub(crate) hashes: &'a [u64],
}

/// The key sections of rows, nothing else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeysView<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) offsets: &'a [u32],
    pub(crate) lens: &'a [u32],
    pub(crate) hashes: &'a [u64],
}

impl<'a> KeysView<'a> {
    #[inline]
    pub(crate) fn key(&self, row: usize) -> &'a [u8] {
        let start = self.offsets[row] as usize;
        &self.bytes[start..start + self.lens[row] as usize]
    }

    #[inline]
    pub(crate) fn are_equal(&self, a: u32, b: u32) -> bool {
        let (a, b) = (a as usize, b as usize);
        self.hashes[a] == self.hashes[b]
            && self.lens[a] == self.lens[b]
            && same_bytes(self.key(a), self.key(b))
    }
}

/// Compares two keys of one length; short ones without a call.
#[inline]
pub(crate) fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    let word = |bytes: &[u8], at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
    };
    match a.len() {
        // Two words that overlap in the middle.
        len @ 8..=16 => word(a, 0) == word(b, 0) && word(a, len - 8) == word(b, len - 8),
        _ => a == b,
    }
}

impl RowBlock {
    /// Replaces the block's rows by the keys of `input` alone, to look them up.
    pub(crate) fn encode_keys(
        &mut self,
        layout: &RowLayout,
        hasher: &KeyHasher,
        input: &GroupInput<'_>,
    ) -> KeysView<'_> {
        self.measure_keys(layout, input);
        self.offsets.clear();
        let mut end = 0u32;
        for len in &self.key_lens {
            self.offsets.push(end);
            end += len;
        }
        self.write_keys(layout, input, end, 0);
        self.hashes.clear();
        let keys = self.offsets.iter().zip(&self.key_lens);
        self.hashes.extend(keys.map(|(start, len)| {
            let start = *start as usize;
            hasher.hash(&self.bytes[start..start + *len as usize])
        }));
        self.keys_view()
    }

    /// The keys that [`RowBlock::encode_keys`] wrote.
    pub(crate) fn keys_view(&self) -> KeysView<'_> {
        KeysView {
            bytes: &self.bytes,
            offsets: &self.offsets,
            lens: &self.key_lens,
            hashes: &self.hashes,
        }
    }

    pub(crate) fn view(&self) -> RowsView<'_> {
        RowsView {
            bytes: &self.bytes,
            offsets: &self.offsets,
            hashes: &self.hashes,
        }
    }

    /// Replaces the block's rows by those of `input`.
    pub(crate) fn encode(
        &mut self,
        layout: &RowLayout,
        hasher: &KeyHasher,
        input: &GroupInput<'_>,
    ) {
        let key_start = layout.key_start();
        self.measure_keys(layout, input);
        self.totals.clear();
        self.totals
            .resize(input.rows, fixed(key_start + layout.payload.fixed_bytes));
        add_byte_lengths(&layout.payload, input.payload, &mut self.totals);

        self.offsets.clear();
        let mut end = 0u32;
        for (total, key_len) in self.totals.iter_mut().zip(&self.key_lens) {
            self.offsets.push(end);
            *total = (*total + key_len).next_multiple_of(ROW_ALIGN as u32);
            end += *total;
        }
        self.write_keys(layout, input, end, fixed(key_start));
        if !layout.payload.columns.is_empty() {
            let key_lens = std::mem::take(&mut self.key_lens);
            self.fill_cursors(|row| fixed(key_start) + key_lens[row]);
            self.key_lens = key_lens;
            encode_section(
                &layout.payload,
                input.payload,
                &mut self.bytes,
                &self.offsets,
                &mut self.cursors,
            );
        }
        state::encode_states(&layout.states, input.states, &mut self.bytes, &self.offsets);

        self.hashes.clear();
        for (row, offset) in self.offsets.iter().enumerate() {
            let row_bytes = &mut self.bytes[*offset as usize..][..self.totals[row] as usize];
            let key_len = self.key_lens[row];
            let hash = hasher.hash(&row_bytes[key_start..key_start + key_len as usize]);
            row_bytes[..8].copy_from_slice(&hash.to_le_bytes());
            layout.set_row_len(row_bytes, self.totals[row] as usize);
            self.hashes.push(hash);
        }
    }

    fn measure_keys(&mut self, layout: &RowLayout, input: &GroupInput<'_>) {
        self.key_lens.clear();
        self.key_lens
            .resize(input.rows, fixed(layout.key.fixed_bytes));
        add_byte_lengths(&layout.key, input.key, &mut self.key_lens);
    }

    /// Makes room for rows of some bytes and writes their keys, each so far behind the start of its
    /// row.
    fn write_keys(
        &mut self,
        layout: &RowLayout,
        input: &GroupInput<'_>,
        bytes: u32,
        key_start: u32,
    ) {
        self.bytes.clear();
        self.bytes.resize(bytes as usize, 0);
        self.fill_cursors(|_| key_start);
        encode_section(
            &layout.key,
            input.key,
            &mut self.bytes,
            &self.offsets,
            &mut self.cursors,
        );
    }

    /// Gives back what a row took that was longer than a block.
    pub(crate) fn shrink(&mut self) {
        if self.bytes.capacity() > 2 * BLOCK_BYTES {
            self.bytes = Vec::new();
        }
    }

    /// Points each row's cursor at the start of a section, counted from the start of the row.
    fn fill_cursors(&mut self, start: impl Fn(usize) -> u32) {
        self.cursors.clear();
        self.cursors.extend((0..self.offsets.len()).map(start));
    }
}

fn fixed(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("the fixed part of a row is a few kilobytes at most")
}

/// Adds the lengths of byte columns to those of their rows. With 32 bits for batches that
/// [`cut`](super::slices::cut) has seen: all of their rows together are below 2 GiB.
pub(crate) fn add_byte_lengths<L: From<u32> + AddAssign>(
    section: &Section,
    arrays: &[ArrayRef],
    lens: &mut [L],
) {
    for (column, array) in section.columns.iter().zip(arrays) {
        if column.encoding == Encoding::Bytes {
            for_each_bytes(&column.data_type, array, |row, value| {
                let len = u32::try_from(value.len()).expect("a value is below 2 GiB");
                lens[row] += L::from(len);
            });
        }
    }
}

/// At least the bytes of all values of a byte column, without looking at them one by one where the
/// type allows it.
pub(crate) fn bytes_at_most(data_type: &DataType, array: &ArrayRef) -> u64 {
    fn between<T: ByteArrayType>(array: &GenericByteArray<T>) -> u64 {
        let offsets = array.value_offsets();
        let len = offsets[array.len()].as_usize() - offsets[0].as_usize();
        len as u64
    }
    // The length is the lower part of a view.
    let of_views = |views: &[u128]| views.iter().map(|view| u64::from(*view as u32)).sum();
    match data_type {
        DataType::Utf8 => between::<Utf8Type>(array.as_bytes()),
        DataType::LargeUtf8 => between::<LargeUtf8Type>(array.as_bytes()),
        DataType::Binary => between::<BinaryType>(array.as_bytes()),
        DataType::LargeBinary => between::<LargeBinaryType>(array.as_bytes()),
        DataType::Utf8View => of_views(array.as_string_view().views()),
        _ => of_views(array.as_binary_view().views()),
    }
}

/// Calls `each` with every row and its bytes; NULL counts as no bytes.
fn for_each_bytes(data_type: &DataType, array: &ArrayRef, each: impl FnMut(usize, &[u8])) {
    match data_type {
        DataType::Utf8 => for_each_offset::<Utf8Type>(array.as_bytes(), each),
        DataType::LargeUtf8 => for_each_offset::<LargeUtf8Type>(array.as_bytes(), each),
        DataType::Binary => for_each_offset::<BinaryType>(array.as_bytes(), each),
        DataType::LargeBinary => for_each_offset::<LargeBinaryType>(array.as_bytes(), each),
        DataType::Utf8View => for_each_view::<StringViewType>(array.as_byte_view(), each),
        _ => for_each_view::<arrow_array::types::BinaryViewType>(
            array.as_byte_view() as &BinaryViewArray,
            each,
        ),
    }
}

fn for_each_offset<T: ByteArrayType>(
    array: &GenericByteArray<T>,
    mut each: impl FnMut(usize, &[u8]),
) {
    for row in 0..array.len() {
        if array.is_valid(row) {
            let value: &T::Native = array.value(row);
            each(row, value.as_ref());
        }
    }
}

fn for_each_view<T: ByteViewType + ?Sized>(
    array: &GenericByteViewArray<T>,
    mut each: impl FnMut(usize, &[u8]),
) {
    let buffers = array.data_buffers();
    let nulls = array.nulls();
    for (row, view) in array.views().iter().enumerate() {
        if nulls.is_some_and(|n| n.is_null(row)) {
            continue;
        }
        let raw = view.to_le_bytes();
        let len = u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]) as usize;
        if len <= 12 {
            each(row, &raw[4..4 + len]);
        } else {
            let buffer = u32::from_le_bytes([raw[8], raw[9], raw[10], raw[11]]) as usize;
            let offset = u32::from_le_bytes([raw[12], raw[13], raw[14], raw[15]]) as usize;
            each(row, &buffers[buffer][offset..offset + len]);
        }
    }
}

/// Writes a section; `cursors` hold its start in each row.
fn encode_section(
    section: &Section,
    arrays: &[ArrayRef],
    block: &mut [u8],
    offsets: &[u32],
    cursors: &mut [u32],
) {
    for (column, array) in section.columns.iter().zip(arrays) {
        encode_nulls(column, array, block, offsets, cursors);
        match column.encoding {
            Encoding::Fixed(1) => encode_fixed::<1>(column, array, block, offsets, cursors),
            Encoding::Fixed(2) => encode_fixed::<2>(column, array, block, offsets, cursors),
            Encoding::Fixed(4) => encode_fixed::<4>(column, array, block, offsets, cursors),
            Encoding::Fixed(8) => encode_fixed::<8>(column, array, block, offsets, cursors),
            Encoding::Fixed(16) => encode_fixed::<16>(column, array, block, offsets, cursors),
            Encoding::Fixed(_) => encode_fixed::<32>(column, array, block, offsets, cursors),
            Encoding::SmallDecimal => {
                let values = array.as_primitive::<arrow_array::types::Decimal128Type>();
                // At most 18 digits: the value is an i64.
                let value = |row: usize| (values.value(row) as i64).to_le_bytes();
                encode_values(column, array, block, offsets, cursors, value);
            }
            Encoding::Boolean => {
                let array: &BooleanArray = array.as_boolean();
                let value = |row: usize| [u8::from(array.value(row))];
                encode_values(column, array, block, offsets, cursors, value);
            }
            Encoding::Float32 => {
                let values = array.as_primitive::<arrow_array::types::Float32Type>();
                let value = |row: usize| canonical_f32(values.value(row)).to_le_bytes();
                encode_values(column, array, block, offsets, cursors, value);
            }
            Encoding::Float64 => {
                let values = array.as_primitive::<arrow_array::types::Float64Type>();
                let value = |row: usize| canonical_f64(values.value(row)).to_le_bytes();
                encode_values(column, array, block, offsets, cursors, value);
            }
            Encoding::Bytes => {}
        }
    }
    if section.has_bytes {
        encode_byte_columns(section, arrays, block, offsets, cursors);
    }
}

fn encode_byte_columns(
    section: &Section,
    arrays: &[ArrayRef],
    block: &mut [u8],
    offsets: &[u32],
    cursors: &mut [u32],
) {
    // From here a cursor walks through the bytes; lengths are written relative to the section,
    // whose start the first column remembers.
    let starts: Vec<u32> = cursors.to_vec();
    for cursor in cursors.iter_mut() {
        *cursor += fixed(section.fixed_bytes);
    }
    for (column, array) in section.columns.iter().zip(arrays) {
        if column.encoding != Encoding::Bytes {
            continue;
        }
        for_each_bytes(&column.data_type, array, |row, value| {
            let base = offsets[row] as usize;
            let len = u32::try_from(value.len()).expect("a value is below 2 GiB");
            let at = base + starts[row] as usize + column.position;
            block[at..at + 4].copy_from_slice(&len.to_le_bytes());
            let at = base + cursors[row] as usize;
            block[at..at + value.len()].copy_from_slice(value);
            cursors[row] += len;
        });
    }
}

fn encode_nulls(
    column: &Column,
    array: &ArrayRef,
    block: &mut [u8],
    offsets: &[u32],
    cursors: &[u32],
) {
    let Some(nulls) = array.nulls().filter(|n| n.null_count() > 0) else {
        return;
    };
    let null_bit = column
        .null_bit
        .expect("a column that is never NULL has no NULL");
    let (byte, bit) = (null_bit / 8, 1u8 << (null_bit % 8));
    for (row, (offset, cursor)) in offsets.iter().zip(cursors).enumerate() {
        if nulls.is_null(row) {
            block[(*offset + *cursor) as usize + byte] |= bit;
        }
    }
}

/// Copies values of `W` bytes straight from the array's buffer.
fn encode_fixed<const W: usize>(
    column: &Column,
    array: &ArrayRef,
    block: &mut [u8],
    offsets: &[u32],
    cursors: &[u32],
) {
    let data = array.to_data();
    let values = &data.buffers()[0].as_slice()[data.offset() * W..];
    encode_values(column, array, block, offsets, cursors, |row| {
        let bytes: [u8; W] = values[row * W..row * W + W].try_into().expect("W bytes");
        bytes
    });
}

fn encode_values<const W: usize>(
    column: &Column,
    array: &dyn Array,
    block: &mut [u8],
    offsets: &[u32],
    cursors: &[u32],
    value: impl Fn(usize) -> [u8; W],
) {
    let nulls = array.nulls().filter(|n| n.null_count() > 0);
    for (row, (offset, cursor)) in offsets.iter().zip(cursors).enumerate() {
        if nulls.is_some_and(|n| n.is_null(row)) {
            continue;
        }
        let at = (*offset + *cursor) as usize + column.position;
        block[at..at + W].copy_from_slice(&value(row));
    }
}

fn canonical_f32(value: f32) -> f32 {
    if value.is_nan() {
        f32::NAN
    } else {
        value + 0.0
    }
}

fn canonical_f64(value: f64) -> f64 {
    if value.is_nan() {
        f64::NAN
    } else {
        value + 0.0
    }
}

/// Bytes of encoded rows that are at hand at once, unless a single row is longer: as much as a
/// second-level cache holds, and 128 bytes a row of a usual batch.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;
