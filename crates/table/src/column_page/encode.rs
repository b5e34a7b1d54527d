//! From arrays to the bytes of a page.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{Array, GenericByteArray, GenericByteViewArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::bit_mask::set_bits;
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat;

use super::fixed_bytes::fixed_bytes;
use super::form::Form;
use super::format::{Format, Kind, Rows};
use super::frame::Span;
use super::layout::{Entry, Layout, expect_u32};
use super::sizes::{PREFIX_BYTES, PREFIXED_BYTES, align};
use super::text_codes::{TextDictionary, TextShare};
use super::value_bytes::{ValueBytes, value_bytes};
use crate::error::Result;
use crate::owned::owned_where;

/// Bytes that a view holds in itself.
const INLINE_BYTES: usize = 12;
/// At most this part of the texts of a nested column belongs to other rows than those of the page.
const UNUSED_PART: usize = 8;
const OFFSET_BYTES: usize = size_of::<i32>();

/// Rows whose place in a page is known; the page can be allocated and written.
#[derive(Debug)]
pub struct Prepared<'a> {
    format: &'a Format,
    segments: &'a [Rows],
    layout: Layout,
    /// The nested columns, by their place.
    streams: Vec<(usize, Vec<u8>)>,
    /// The columns of texts that have codes, by their place.
    dictionaries: Vec<(usize, TextDictionary)>,
    texts: TextShare,
    wide_bytes: usize,
    row_count: usize,
}

impl<'a> Prepared<'a> {
    /// Lays out one page that holds all rows of all segments, in order, with integers as narrow as
    /// the format wants them, and codes for texts that repeat.
    ///
    /// # Errors
    /// [`Error::RowTooLong`] if they take more than 2 GiB; [`Error::Arrow`] if Arrow cannot encode
    /// a nested column.
    pub fn new(format: &'a Format, segments: &'a [Rows]) -> Result<Self> {
        Self::laid_out(format, segments, format.narrows())
    }

    /// The same with numbers as wide as their types, and all texts: pages of few rows, which soon
    /// become one by copying bytes.
    ///
    /// # Errors
    /// As for [`Prepared::new`].
    pub(crate) fn wide(format: &'a Format, segments: &'a [Rows]) -> Result<Self> {
        Self::laid_out(format, segments, false)
    }

    fn laid_out(format: &'a Format, segments: &'a [Rows], narrows: bool) -> Result<Self> {
        let row_count = segments.iter().map(Rows::row_count).sum();
        let mut prepared = Self {
            format,
            segments,
            layout: Layout::new(format),
            streams: Vec::new(),
            dictionaries: Vec::new(),
            texts: TextShare::default(),
            wide_bytes: 0,
            row_count,
        };
        for column in 0..format.kinds.len() {
            prepared.place(column, narrows)?;
        }
        Ok(prepared)
    }

    /// The bytes that the page must have.
    pub fn len_bytes(&self) -> usize {
        self.layout.len_bytes
    }

    /// What texts take in the page of what they take as they are; nested values count as such.
    pub(crate) fn texts(&self) -> TextShare {
        self.texts
    }

    /// About what the rows take with numbers as wide as their types and all their texts.
    pub(crate) fn wide_bytes(&self) -> usize {
        self.wide_bytes.max(self.layout.len_bytes)
    }

    pub(crate) fn format(&self) -> &'a Format {
        self.format
    }

    /// The rows that the page holds.
    pub(crate) fn rows(&self) -> &'a [Rows] {
        self.segments
    }

    fn columns(&self, column: usize) -> impl Iterator<Item = &'a dyn Array> {
        self.segments
            .iter()
            .map(move |s| s.columns[column].as_ref())
    }

    fn place(&mut self, column: usize, narrows: bool) -> Result<()> {
        let kind = self.format.kinds[column];
        let mut form = Form::Plain;
        if narrows {
            let spans = self.columns(column).map(|a| kind.span(a, 0, a.len()));
            form = kind.narrow(spans.fold(Span::EMPTY, Span::plus));
        }
        let null_count = match kind.holds_nulls() {
            true => self.columns(column).map(|a| a.null_count()).sum(),
            false => 0,
        };
        let rows = self.row_count;
        let plain_bytes = match kind {
            Kind::Bytes | Kind::Text => {
                let columns = self.columns(column);
                let bytes = columns.map(|a| value_bytes(a, 0, a.len()));
                bytes.fold(ValueBytes::default(), ValueBytes::plus)
            }
            Kind::Stream => {
                let bytes = encode_stream(self.format, column, self.columns(column))?;
                let data = bytes.len();
                self.streams.push((column, bytes));
                ValueBytes { data, prefixes: 0 }
            }
            _ => ValueBytes::default(),
        };
        let mut bytes = plain_bytes;
        if narrows
            && self.format.codes(column)
            && let Some((codes, dictionary)) =
                TextDictionary::of(self.columns(column), rows, plain_bytes)
        {
            form = Form::Coded(codes);
            bytes = ValueBytes {
                data: dictionary.words_bytes(),
                prefixes: 0,
            };
            self.dictionaries.push((column, dictionary));
        }
        let wide_bytes = kind.values_bytes(rows, Form::Plain) + plain_bytes.sum();
        self.wide_bytes += wide_bytes;
        if matches!(kind, Kind::Bytes | Kind::Text | Kind::Stream) {
            self.texts.plain_bytes += wide_bytes;
            self.texts.stored_bytes += kind.values_bytes(rows, form) + bytes.sum();
        }
        self.layout.place(kind, rows, null_count, bytes, form)
    }

    /// Writes the page; what follows the rows is filled with zeros.
    ///
    /// # Panics
    /// If the page is shorter than [`Prepared::len_bytes`].
    pub fn write(&self, page: &mut [u8]) {
        assert!(
            page.len() >= self.len_bytes(),
            "the page was allocated for these rows"
        );
        self.layout.write(self.row_count, page);
        for (column, entry) in self.layout.entries.iter().enumerate() {
            self.write_column(column, entry, page);
        }
        page[self.len_bytes()..].fill(0);
    }

    fn write_column(&self, column: usize, entry: &Entry, page: &mut [u8]) {
        if entry.null_count > 0 {
            let bits = area(page, entry.validity_offset, self.row_count.div_ceil(8));
            bits.fill(0);
            let mut row = 0;
            for array in self.columns(column) {
                match array.nulls() {
                    Some(nulls) => {
                        let bytes = nulls.validity();
                        set_bits(bits, bytes, row, nulls.offset(), nulls.len());
                    }
                    None => set_ones(bits, row, array.len()),
                }
                row += array.len();
            }
        }
        let values_bytes = entry.values_bytes as usize;
        let kind = self.format.kinds[column];
        let form = entry.form(kind).expect("it was placed as this kind");
        match kind {
            Kind::Null => {}
            Kind::Boolean => {
                let bits = area(page, entry.values_offset, values_bytes);
                bits.fill(0);
                let mut row = 0;
                for array in self.columns(column) {
                    let values = array.as_boolean().values();
                    set_bits(bits, values.values(), row, values.offset(), values.len());
                    row += values.len();
                }
            }
            Kind::Fixed { width, .. } => {
                let mut out = area(page, entry.values_offset, values_bytes);
                for array in self.columns(column) {
                    let (head, rest) = out.split_at_mut(kind.values_bytes(array.len(), form));
                    fixed_bytes(array, width, |bytes| match form {
                        Form::Narrow(frame) => frame.write(bytes, head),
                        _ => head.copy_from_slice(bytes),
                    });
                    out = rest;
                }
            }
            Kind::Bytes | Kind::Text if matches!(form, Form::Coded(_)) => {
                let dictionary = of_column(&self.dictionaries, column);
                let words_bytes = entry.data_bytes as usize;
                // Codes and words are neighbours but for padding, so one area holds both.
                let gap = (entry.data_offset - entry.values_offset) as usize;
                let all = area(page, entry.values_offset, gap + words_bytes);
                let (codes, words) = all.split_at_mut(gap);
                codes[values_bytes..].fill(0);
                dictionary.write(&mut codes[..values_bytes], words);
            }
            Kind::Bytes | Kind::Text => {
                // Offsets and data are neighbours but for padding, so one area holds all.
                let data_bytes = entry.data_bytes as usize;
                let gap = (entry.data_offset - entry.values_offset) as usize;
                let all_bytes = gap + data_bytes + entry.prefix_bytes as usize;
                let all = area(page, entry.values_offset, all_bytes);
                let (offsets, data) = all.split_at_mut(gap);
                let (data, prefixes) = data.split_at_mut(data_bytes);
                let (first, ends) = offsets[..values_bytes].split_at_mut(OFFSET_BYTES);
                first.fill(0);
                let mut out = BytesOut {
                    ends: ends.chunks_exact_mut(OFFSET_BYTES),
                    data,
                    prefixes: prefixes.as_chunks_mut().0.iter_mut(),
                    len: 0,
                };
                for array in self.columns(column) {
                    write_bytes(array, &mut out);
                }
                debug_assert_eq!(out.len, data_bytes);
                debug_assert_eq!(out.prefixes.len(), 0);
            }
            Kind::Stream => {
                let bytes = of_column(&self.streams, column);
                area(page, entry.values_offset, values_bytes).copy_from_slice(bytes);
            }
        }
    }
}

/// What was prepared for a column.
fn of_column<T>(prepared: &[(usize, T)], column: usize) -> &T {
    let found = prepared.iter().find(|(place, _)| *place == column);
    &found.expect("it was prepared when it was placed").1
}

/// One buffer's bytes; the padding behind it is filled with zeros.
fn area(page: &mut [u8], offset: u32, len_bytes: usize) -> &mut [u8] {
    let from = offset as usize;
    let padded = align(from + len_bytes).min(page.len());
    page[from + len_bytes..padded].fill(0);
    &mut page[from..from + len_bytes]
}

pub(super) fn set_ones(bits: &mut [u8], from: usize, count: usize) {
    let end = from + count;
    let (first_full, last_full) = (from.div_ceil(8), end / 8);
    if first_full < last_full {
        bits[first_full..last_full].fill(0xFF);
    }
    let edges = (from..end.min(first_full * 8)).chain((last_full * 8).max(from)..end);
    for bit in edges {
        bits[bit / 8] |= 1 << (bit % 8);
    }
}

/// Where the values of a column go.
struct BytesOut<'a> {
    ends: std::slice::ChunksExactMut<'a, u8>,
    data: &'a mut [u8],
    prefixes: std::slice::IterMut<'a, [u8; PREFIX_BYTES]>,
    len: usize,
}

impl BytesOut<'_> {
    #[inline]
    fn push_end(&mut self) {
        let slot = self
            .ends
            .next()
            .expect("there is an end offset for each row");
        slot.copy_from_slice(&expect_u32(self.len).to_le_bytes());
    }

    #[inline]
    fn push_prefix(&mut self, prefix: [u8; PREFIX_BYTES]) {
        let slot = self.prefixes.next();
        *slot.expect("there is a prefix for each long value") = prefix;
    }
}

fn write_bytes(column: &dyn Array, out: &mut BytesOut<'_>) {
    match column.data_type() {
        DataType::Utf8 => write_offsets(column.as_string::<i32>(), out),
        DataType::LargeUtf8 => write_offsets(column.as_string::<i64>(), out),
        DataType::Binary => write_offsets(column.as_binary::<i32>(), out),
        DataType::LargeBinary => write_offsets(column.as_binary::<i64>(), out),
        DataType::Utf8View => write_views(column.as_string_view(), out),
        DataType::BinaryView => write_views(column.as_binary_view(), out),
        other => unreachable!("{other} is not stored as bytes"),
    }
}

fn write_offsets<T: ByteArrayType>(array: &GenericByteArray<T>, out: &mut BytesOut<'_>) {
    let offsets = array.value_offsets();
    let first = offsets[0].as_usize();
    let last = offsets[array.len()].as_usize();
    let base = out.len;
    let data = &array.value_data()[first..last];
    out.data[base..base + data.len()].copy_from_slice(data);
    for end in &offsets[1..] {
        out.len = base + end.as_usize() - first;
        out.push_end();
    }
    if out.prefixes.len() > 0 {
        for [start, end] in offsets.array_windows() {
            let value = &data[start.as_usize() - first..end.as_usize() - first];
            if value.len() > PREFIXED_BYTES {
                let prefix = value.first_chunk();
                out.push_prefix(*prefix.expect("a long value has four bytes"));
            }
        }
    }
}

fn write_views<T: ByteViewType>(array: &GenericByteViewArray<T>, out: &mut BytesOut<'_>) {
    let nulls: Option<&NullBuffer> = array.nulls().filter(|nulls| nulls.null_count() > 0);
    let buffers = array.data_buffers();
    for (row, view) in array.views().iter().enumerate() {
        if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
            let len = view_len(*view);
            let from = out.len;
            if len <= INLINE_BYTES {
                let value = &view.to_le_bytes()[4..];
                // Copying all 12 bytes is faster than copying `len`; the next value overwrites
                // the excess.
                match out.data.get_mut(from..from + INLINE_BYTES) {
                    Some(slot) => slot.copy_from_slice(value),
                    None => out.data[from..from + len].copy_from_slice(&value[..len]),
                }
            } else {
                let buffer = (view >> 64) as u32 as usize;
                let offset = (view >> 96) as usize;
                let value = &buffers[buffer].as_slice()[offset..offset + len];
                out.data[from..from + len].copy_from_slice(value);
            }
            out.len += len;
        }
        out.push_end();
    }
    if out.prefixes.len() > 0 {
        let long = |view: &&u128| view_len(**view) > PREFIXED_BYTES;
        for (row, view) in array
            .views()
            .iter()
            .enumerate()
            .filter(|(_, view)| long(view))
        {
            if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                out.push_prefix(((view >> 32) as u32).to_le_bytes());
            }
        }
    }
}

/// The IPC stream of one column.
fn encode_stream<'a>(
    format: &Format,
    column: usize,
    segments: impl Iterator<Item = &'a dyn Array>,
) -> Result<Vec<u8>> {
    let segments: Vec<&dyn Array> = segments.collect();
    // A stream holds whole the buffers of its views, of which a slice needs a part.
    let is_wide = |used: usize, held: usize| held - held / UNUSED_PART > used;
    let array = owned_where(&concat(&segments)?, &is_wide);
    // The values decide whether there are nulls, not the declaration.
    let field = Field::new(
        format.schema.field(column).name(),
        array.data_type().clone(),
        true,
    );
    let options = RecordBatchOptions::new().with_row_count(Some(array.len()));
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new_with_options(schema, vec![array], &options)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}

/// The length of a view's value: its lower 32 bits.
fn view_len(view: u128) -> usize {
    (view & u128::from(u32::MAX)) as usize
}

#[cfg(test)]
mod tests {
    use super::set_ones;

    #[test]
    fn ones_are_set_in_the_range_and_nowhere_else() {
        for from in 0..20 {
            for count in 0..40 {
                let mut bits = [0u8; 8];
                set_ones(&mut bits, from, count);
                for bit in 0..64 {
                    let expect = (from..from + count).contains(&bit);
                    assert_eq!(
                        bits[bit / 8] >> (bit % 8) & 1 == 1,
                        expect,
                        "{from} {count}"
                    );
                }
            }
        }
    }
}
