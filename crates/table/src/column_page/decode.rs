//! From the bytes of a page to arrays.

#![warn(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "bytes of the temp file are read here"
)]

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BinaryViewArray, BooleanArray,
    DictionaryArray, FixedSizeBinaryArray, LargeBinaryArray, NullArray, PrimitiveArray,
    RecordBatch, RecordBatchOptions, UInt32Array, downcast_primitive,
    types::ArrowDictionaryKeyType,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_ipc::reader::StreamReader;
use arrow_schema::DataType;
use arrow_select::take::take;
use bytes::Bytes;

use super::distinct_texts::{DistinctTexts, with_nulls};
use super::form::Form;
use super::format::{Format, Kind, Rows};
use super::frame::Frame;
use super::layout::{Entry, MAGIC, read_u32};
use super::sizes::ALIGNMENT;
use super::sizes::PREFIX_BYTES;
use super::sizes::{ENTRY_BYTES, HEADER_BYTES, align};
use super::text_codes::{CodedTexts, TextCodes};
use crate::error::{Error, Result};
use crate::owned::own_bytes;
use crate::text::{coded_views, picked_views, text, text_view, views, words};

/// A buffer that is at most this part of a page is copied: the numbers of rows whose texts fill the
/// page would keep all of it in memory, and a copy of so little costs no more than a pin.
const COPIED_PART: usize = 64;

/// The bytes of a page, and whether arrays may point into them.
#[derive(Debug)]
pub enum Source<'a> {
    /// The arrays point into these bytes and keep them alive, and with them the pin of a page,
    /// where what they hold is more than a small part of it.
    Shared(Bytes),
    /// The arrays own copies of what they hold.
    Copied(&'a [u8]),
}

impl Source<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Source::Shared(bytes) => bytes,
            Source::Copied(bytes) => bytes,
        }
    }

    fn buffer(&self, offset: u32, len_bytes: usize) -> Result<Buffer> {
        let slice = part(self.bytes(), offset, len_bytes)?;
        let is_worth_a_pin = len_bytes > self.bytes().len() / COPIED_PART;
        match self {
            Source::Shared(bytes)
                if is_worth_a_pin && slice.as_ptr().addr().is_multiple_of(ALIGNMENT) =>
            {
                Ok(Buffer::from(bytes.slice_ref(slice)))
            }
            _ => {
                let mut copy = MutableBuffer::with_capacity(len_bytes);
                copy.extend_from_slice(slice);
                Ok(copy.into())
            }
        }
    }
}

impl Format {
    /// The rows of a page, with the columns of the projection only.
    ///
    /// # Errors
    /// [`Error::CorruptPage`] or [`Error::Arrow`] if the page was not written by this format.
    ///
    /// # Panics
    /// If a column of the projection does not exist.
    pub fn decode(&self, source: &Source<'_>, projection: Option<&[usize]>) -> Result<RecordBatch> {
        let page = Page::open(self, source)?;
        let columns: Result<Vec<ArrayRef>> = match projection {
            Some(columns) => columns.iter().map(|&c| page.column(c)).collect(),
            None => (0..self.kinds.len()).map(|c| page.column(c)).collect(),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(page.row_count));
        let schema = self.projected_schema(projection);
        Ok(RecordBatch::try_new_with_options(
            schema, columns?, &options,
        )?)
    }

    /// Some rows of a page, in memory of their own, in the order of their slots. Costs as much as
    /// the rows that are asked for, not as those of the page.
    ///
    /// # Errors
    /// As for [`Format::decode`].
    ///
    /// # Panics
    /// If a column of the projection, or a slot, does not exist.
    pub(crate) fn decode_slots(
        &self,
        source: &Source<'_>,
        projection: Option<&[usize]>,
        slots: &[u32],
    ) -> Result<RecordBatch> {
        let page = Page::open(self, source)?;
        let columns: Result<Vec<ArrayRef>> = match projection {
            Some(columns) => columns.iter().map(|&c| page.column_of(c, slots)).collect(),
            None => { 0..self.kinds.len() }
                .map(|c| page.column_of(c, slots))
                .collect(),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        let schema = self.projected_schema(projection);
        Ok(RecordBatch::try_new_with_options(
            schema, columns?, &options,
        )?)
    }

    /// One column of all rows of a page.
    ///
    /// # Errors
    /// As for [`Format::decode`].
    ///
    /// # Panics
    /// If the column does not exist.
    pub(crate) fn decode_column(&self, source: &Source<'_>, column: usize) -> Result<ArrayRef> {
        Page::open(self, source)?.column(column)
    }

    /// One column of some rows of a page, in memory of its own, in the order of their slots.
    ///
    /// # Errors
    /// As for [`Format::decode`].
    ///
    /// # Panics
    /// If the column, or a slot, does not exist.
    pub(crate) fn decode_column_slots(
        &self,
        source: &Source<'_>,
        column: usize,
        slots: &[u32],
    ) -> Result<ArrayRef> {
        Page::open(self, source)?.column_of(column, slots)
    }

    /// A bit for each row of a page whose integer lies in a range: none for NULL. `None` where the
    /// integers of the page are not narrow, and are best compared as they stand.
    ///
    /// # Errors
    /// As for [`Format::decode`].
    ///
    /// # Panics
    /// If the column does not exist.
    pub(crate) fn rows_within(
        &self,
        source: &Source<'_>,
        column: usize,
        range: &RangeInclusive<i128>,
    ) -> Result<Option<BooleanBuffer>> {
        let found = |frame: Frame, distances: &[u8]| frame.within(distances, range);
        Page::open(self, source)?.rows_found(column, false, found)
    }

    /// A bit for each row of a page whose integer passes a test, which is told its lower 64 bits;
    /// that of NULL is given. `None` where the integers of the page are not narrow.
    ///
    /// # Errors
    /// As for [`Format::decode`].
    ///
    /// # Panics
    /// If the column does not exist.
    pub(crate) fn rows_passing(
        &self,
        source: &Source<'_>,
        column: usize,
        null_passes: bool,
        test: impl Fn(i64) -> bool,
    ) -> Result<Option<BooleanBuffer>> {
        let found = |frame: Frame, distances: &[u8]| frame.passing(distances, test);
        Page::open(self, source)?.rows_found(column, null_passes, found)
    }

    /// The different texts of a column, where the page has codes of them.
    ///
    /// # Errors
    /// As for [`Format::decode`].
    ///
    /// # Panics
    /// If the column does not exist.
    pub(crate) fn distinct_texts(
        &self,
        source: &Source<'_>,
        column: usize,
    ) -> Result<Option<DistinctTexts>> {
        Page::open(self, source)?.distinct_texts(column)
    }

    /// The rows of a page as they are stored, for moving them to another page.
    pub(crate) fn decode_stored(&self, source: &Source<'_>) -> Result<Rows> {
        let page = Page::open(self, source)?;
        let columns: Result<Vec<ArrayRef>> =
            (0..self.kinds.len()).map(|c| page.stored(c)).collect();
        let columns = columns?;
        let streams = self.kinds.iter().zip(&columns);
        let stream_bytes: usize = streams
            .filter(|(kind, _)| **kind == Kind::Stream)
            .map(|(_, column)| own_bytes(column.as_ref()))
            .sum();
        Ok(Rows {
            columns,
            row_count: page.row_count,
            stream_row_bytes: stream_bytes.div_ceil(page.row_count.max(1)),
        })
    }
}

struct Page<'a> {
    format: &'a Format,
    source: &'a Source<'a>,
    row_count: usize,
}

impl<'a> Page<'a> {
    fn open(format: &'a Format, source: &'a Source<'a>) -> Result<Self> {
        let row_count = check(format, source.bytes())?;
        Ok(Self {
            format,
            source,
            row_count,
        })
    }

    /// The entry of a column, and how its values stand.
    fn entry(&self, column: usize) -> Result<(Entry, Form)> {
        entry_of(
            self.source.bytes(),
            self.row_count,
            self.kind(column)?,
            column,
        )
    }

    fn kind(&self, column: usize) -> Result<Kind> {
        kind_of(self.format, column)
    }

    fn nulls(&self, entry: &Entry) -> Result<Option<NullBuffer>> {
        if entry.null_count == 0 {
            return Ok(None);
        }
        let rows = self.row_count;
        let bits = self
            .source
            .buffer(entry.validity_offset, rows.div_ceil(8))?;
        let nulls = NullBuffer::new(BooleanBuffer::new(bits, 0, rows));
        if nulls.null_count() != entry.null_count as usize {
            return Err(corrupt("the nulls do not add up"));
        }
        Ok(Some(nulls))
    }

    /// Which of some values are NULL.
    fn nulls_of(&self, entry: &Entry, slots: &[u32]) -> Result<Option<NullBuffer>> {
        let picked = self.nulls(entry)?.map(|nulls| {
            let is_valid = |index: usize| {
                let slot = slots.get(index).map(|slot| *slot as usize);
                slot.is_some_and(|slot| slot < nulls.len() && nulls.is_valid(slot))
            };
            NullBuffer::new(BooleanBuffer::collect_bool(slots.len(), is_valid))
        });
        Ok(picked.filter(|nulls| nulls.null_count() > 0))
    }

    /// Offsets and data of a column of [`Kind::Bytes`] or [`Kind::Text`].
    fn bytes(&self, entry: &Entry) -> Result<(OffsetBuffer<i32>, Buffer)> {
        let offset_count = self.row_count.saturating_add(1);
        let offsets = self
            .source
            .buffer(entry.values_offset, entry.values_bytes as usize)?;
        let offsets: ScalarBuffer<i32> = ScalarBuffer::new(offsets, 0, offset_count);
        let offsets =
            crate::text::offsets(offsets).ok_or(corrupt("the offsets are not in order"))?;
        let ends = offsets.first().zip(offsets.last());
        if ends.map(|(start, end)| (*start, end.as_usize())) != Some((0, entry.data_bytes as usize))
        {
            return Err(corrupt("the offsets do not span the data"));
        }
        let data = self
            .source
            .buffer(entry.data_offset, entry.data_bytes as usize)?;
        Ok((offsets, data))
    }

    /// The prefixes of long values of a column of [`Kind::Bytes`] or [`Kind::Text`].
    fn prefixes(&self, entry: &Entry) -> Result<&'a [[u8; PREFIX_BYTES]]> {
        let from = entry.data_offset.saturating_add(entry.data_bytes);
        let prefixes = part(self.source.bytes(), from, entry.prefix_bytes as usize)?;
        Ok(prefixes.as_chunks().0)
    }

    /// Some values of a column, in memory of their own.
    fn column_of(&self, column: usize, slots: &[u32]) -> Result<ArrayRef> {
        match self.format.schema.field(column).data_type() {
            views @ (DataType::Utf8View | DataType::BinaryView) => {
                as_views(views, self.views(column, slots)?)
            }
            plain if plain.is_primitive() => self.numbers(column, plain, slots),
            _ => {
                let places = UInt32Array::from(slots.to_vec());
                Ok(take(&self.column(column)?, &places, None)?)
            }
        }
    }

    /// Some values of a column of numbers.
    fn numbers(&self, column: usize, data_type: &DataType, slots: &[u32]) -> Result<ArrayRef> {
        let (entry, form) = self.entry(column)?;
        let Kind::Fixed { width, .. } = self.kind(column)? else {
            return Err(corrupt("a column of numbers is stored in another way"));
        };
        let bytes = self.source.bytes();
        let values = part(bytes, entry.values_offset, entry.values_bytes as usize)?;
        let picked = match (form, width) {
            (Form::Narrow(frame), _) => frame.read_slots(values, slots),
            (Form::Coded(_), _) => None,
            (Form::Plain, 1) => picked::<1>(values, slots),
            (Form::Plain, 2) => picked::<2>(values, slots),
            (Form::Plain, 4) => picked::<4>(values, slots),
            (Form::Plain, 8) => picked::<8>(values, slots),
            (Form::Plain, 16) => picked::<16>(values, slots),
            (Form::Plain, 32) => picked::<32>(values, slots),
            _ => None,
        };
        let picked = picked.ok_or(corrupt("a value lies outside of its column"))?;
        let nulls = self.nulls_of(&entry, slots)?;
        fixed(data_type, picked, slots.len(), nulls)
    }

    /// What is found in the distances of a column, and a given bit for NULL.
    fn rows_found(
        &self,
        column: usize,
        null_passes: bool,
        find: impl FnOnce(Frame, &[u8]) -> BooleanBuffer,
    ) -> Result<Option<BooleanBuffer>> {
        let (entry, form) = self.entry(column)?;
        let Form::Narrow(frame) = form else {
            return Ok(None);
        };
        let bytes = self.source.bytes();
        let distances = part(bytes, entry.values_offset, entry.values_bytes as usize)?;
        let found = find(frame, distances);
        let nulls = self.nulls(&entry)?;
        Ok(Some(with_nulls(found, nulls.as_ref(), null_passes)))
    }

    /// Some values of a column of texts or binary values.
    fn views(&self, column: usize, slots: &[u32]) -> Result<BinaryViewArray> {
        let (entry, form) = self.entry(column)?;
        let nulls = self.nulls_of(&entry, slots)?;
        let views = match form {
            Form::Coded(codes) => {
                let texts = coded_texts(self.source.bytes(), &entry, codes)?;
                let words: Option<Vec<u32>> =
                    slots.iter().map(|slot| texts.word_of(*slot)).collect();
                words.and_then(|words| picked_views(texts.ends, texts.data, &words, nulls))
            }
            _ => {
                let bytes = self.source.bytes();
                let offsets = part(bytes, entry.values_offset, entry.values_bytes as usize)?;
                let data = part(bytes, entry.data_offset, entry.data_bytes as usize)?;
                picked_views(offsets.as_chunks().0, data, slots, nulls)
            }
        };
        views.ok_or(corrupt("a value lies outside of its column"))
    }

    /// All values of a column that has codes.
    fn coded(
        &self,
        data_type: &DataType,
        entry: &Entry,
        codes: TextCodes,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let (texts, data) = self.coded_texts(entry, codes)?;
        let views = coded_views(texts.ends, data, texts.codes, nulls);
        let views = views.ok_or(corrupt("a code is that of no word"))?;
        as_views(data_type, views)
    }

    /// The codes and words of a column that has some, and a buffer of the data of the words.
    fn coded_texts(&self, entry: &Entry, codes: TextCodes) -> Result<(CodedTexts<'a>, Buffer)> {
        let texts = coded_texts(self.source.bytes(), entry, codes)?;
        let words_end = entry.data_offset.saturating_add(entry.data_bytes);
        let data_offset = words_end.saturating_sub(texts.data.len() as u32);
        let data = self.source.buffer(data_offset, texts.data.len())?;
        Ok((texts, data))
    }

    fn distinct_texts(&self, column: usize) -> Result<Option<DistinctTexts>> {
        let (entry, form) = self.entry(column)?;
        let Form::Coded(codes) = form else {
            return Ok(None);
        };
        let nulls = self.nulls(&entry)?;
        let (texts, data) = self.coded_texts(&entry, codes)?;
        let words = words(texts.ends, data, nulls.is_some());
        let words = words.ok_or(corrupt("a word lies outside of its column"))?;
        if texts.codes.greatest() >= codes.words() {
            return Err(corrupt("a code is that of no word"));
        }
        Ok(Some(DistinctTexts {
            texts: as_views(self.format.schema.field(column).data_type(), words)?,
            codes: self
                .source
                .buffer(entry.values_offset, entry.values_bytes as usize)?,
            code_bytes: codes.width(),
            nulls,
        }))
    }

    /// A column as its declared type.
    fn column(&self, column: usize) -> Result<ArrayRef> {
        let field = self.format.schema.field(column);
        let declared = field.data_type();
        if self.kind(column)? == Kind::Stream {
            return self.stream(&self.entry(column)?.0);
        }
        match declared {
            DataType::Dictionary(keys, values) => dictionary(keys, self.plain(column, values)?),
            plain => self.plain(column, plain),
        }
    }

    /// A column as it is stored: text and binary values of all types as `Binary`, those that have
    /// codes as views, of which many show one text.
    fn stored(&self, column: usize) -> Result<ArrayRef> {
        let declared = self.format.schema.field(column).data_type();
        match (self.kind(column)?, declared) {
            (Kind::Stream, _) => self.stream(&self.entry(column)?.0),
            (Kind::Bytes | Kind::Text, _) => match self.entry(column)?.1 {
                Form::Coded(_) => self.plain(column, &DataType::BinaryView),
                _ => self.plain(column, &DataType::Binary),
            },
            (_, DataType::Dictionary(_, values)) => self.plain(column, values),
            (_, plain) => self.plain(column, plain),
        }
    }

    fn plain(&self, column: usize, data_type: &DataType) -> Result<ArrayRef> {
        let (entry, form) = self.entry(column)?;
        let nulls = self.nulls(&entry)?;
        let rows = self.row_count;
        match self.kind(column)? {
            Kind::Null => Ok(Arc::new(NullArray::new(rows))),
            Kind::Boolean => {
                let bits = self.source.buffer(entry.values_offset, rows.div_ceil(8))?;
                let bits = BooleanBuffer::new(bits, 0, rows);
                Ok(Arc::new(BooleanArray::new(bits, nulls)))
            }
            Kind::Fixed { .. } => {
                let len_bytes = entry.values_bytes as usize;
                let values = match form {
                    Form::Narrow(frame) => {
                        frame.read(part(self.source.bytes(), entry.values_offset, len_bytes)?)
                    }
                    _ => self.source.buffer(entry.values_offset, len_bytes)?,
                };
                fixed(data_type, values, rows, nulls)
            }
            Kind::Bytes | Kind::Text => {
                if let Form::Coded(codes) = form {
                    return self.coded(data_type, &entry, codes, nulls);
                }
                let (offsets, data) = self.bytes(&entry)?;
                bytes(data_type, offsets, data, self.prefixes(&entry)?, nulls)
            }
            Kind::Stream => unreachable!("streams hold their own types"),
        }
    }

    fn stream(&self, entry: &Entry) -> Result<ArrayRef> {
        let bytes = self.source.bytes();
        let stream = part(bytes, entry.values_offset, entry.values_bytes as usize)?;
        let batch = StreamReader::try_new(stream, None)?.next();
        let batch = batch.ok_or(corrupt("a stream is empty"))??;
        if batch.num_rows() != self.row_count || batch.num_columns() != 1 {
            return Err(corrupt("a stream has another shape"));
        }
        Ok(Arc::clone(batch.column(0)))
    }
}

/// Some values of a fixed width; `None` if one lies elsewhere.
fn picked<const WIDTH: usize>(values: &[u8], slots: &[u32]) -> Option<Buffer> {
    let values: &[[u8; WIDTH]] = values.as_chunks().0;
    let mut picked = MutableBuffer::with_capacity(slots.len().saturating_mul(WIDTH));
    for slot in slots {
        picked.extend_from_slice(values.get(*slot as usize)?);
    }
    Some(picked.into())
}

/// Looks at the header of a page; returns how many rows it has.
pub(super) fn check(format: &Format, bytes: &[u8]) -> Result<usize> {
    let directory_bytes = ENTRY_BYTES.saturating_mul(format.kinds.len());
    if bytes.len() < align(HEADER_BYTES.saturating_add(directory_bytes)) {
        return Err(corrupt("the page is shorter than its directory"));
    }
    if read_u32(bytes, 0) != MAGIC {
        return Err(corrupt("the page is not a column page"));
    }
    if read_u32(bytes, 8) as usize != format.kinds.len() {
        return Err(corrupt("the page has another number of columns"));
    }
    if read_u32(bytes, 12) as usize > bytes.len() {
        return Err(corrupt("the page is shorter than its rows"));
    }
    Ok(read_u32(bytes, 4) as usize)
}

/// The entry of a column in the directory of a page.
pub(super) fn entry(bytes: &[u8], column: usize) -> Result<Entry> {
    Entry::of(bytes, column).ok_or(corrupt("the page is shorter than its directory"))
}

/// How a format stores a column.
pub(super) fn kind_of(format: &Format, column: usize) -> Result<Kind> {
    let kind = format.kinds.get(column).copied();
    kind.ok_or(corrupt("the page has another number of columns"))
}

/// The entry of a column of a kind, whose values are as many as the rows, and how they stand.
pub(super) fn entry_of(
    bytes: &[u8],
    row_count: usize,
    kind: Kind,
    column: usize,
) -> Result<(Entry, Form)> {
    let entry = entry(bytes, column)?;
    let form = entry.form(kind)?;
    let values_bytes = kind.values_bytes(row_count, form);
    match kind == Kind::Stream || entry.values_bytes as usize == values_bytes {
        true => Ok((entry, form)),
        false => Err(corrupt("a column has another width")),
    }
}

/// The codes and words of a column that has some.
pub(super) fn coded_texts<'a>(
    bytes: &'a [u8],
    entry: &Entry,
    codes: TextCodes,
) -> Result<CodedTexts<'a>> {
    let of_rows = part(bytes, entry.values_offset, entry.values_bytes as usize)?;
    let words = part(bytes, entry.data_offset, entry.data_bytes as usize)?;
    CodedTexts::of(codes, of_rows, words).ok_or(corrupt("words are fewer than their number"))
}

/// A part of a page.
pub(super) fn part(bytes: &[u8], offset: u32, len_bytes: usize) -> Result<&[u8]> {
    let from = bytes.get(offset as usize..);
    let part = from.and_then(|from| from.get(..len_bytes));
    part.ok_or(corrupt("a buffer lies outside of the page"))
}

pub(super) fn corrupt(what: &'static str) -> Error {
    Error::CorruptPage { what }
}

fn fixed(
    data_type: &DataType,
    values: Buffer,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    macro_rules! primitive {
        ($type:ty) => {{
            let values = ScalarBuffer::new(values, 0, rows);
            let array = PrimitiveArray::<$type>::try_new(values, nulls)?;
            Ok(Arc::new(array.with_data_type(data_type.clone())))
        }};
    }
    downcast_primitive! {
        data_type => (primitive),
        DataType::FixedSizeBinary(width) => {
            Ok(Arc::new(FixedSizeBinaryArray::try_new(*width, values, nulls)?))
        }
        other => unreachable!("{other} has no fixed width"),
    }
}

fn bytes(
    data_type: &DataType,
    offsets: OffsetBuffer<i32>,
    data: Buffer,
    prefixes: &[[u8; PREFIX_BYTES]],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let views = |offsets: &OffsetBuffer<i32>, data, nulls| {
        let views = views(offsets, data, prefixes, nulls);
        views.ok_or(corrupt("the prefixes are not those of the long values"))
    };
    let wide = |offsets: &OffsetBuffer<i32>| {
        let offsets: Vec<i64> = offsets.iter().map(|end| i64::from(*end)).collect();
        OffsetBuffer::new(offsets.into())
    };
    Ok(match data_type {
        DataType::Utf8 => Arc::new(text(BinaryArray::try_new(offsets, data, nulls)?)),
        DataType::LargeUtf8 => {
            let array = LargeBinaryArray::try_new(wide(&offsets), data, nulls)?;
            Arc::new(text(array))
        }
        DataType::Utf8View => Arc::new(text_view(views(&offsets, data, nulls)?)),
        DataType::Binary => Arc::new(BinaryArray::try_new(offsets, data, nulls)?),
        DataType::LargeBinary => Arc::new(LargeBinaryArray::try_new(wide(&offsets), data, nulls)?),
        DataType::BinaryView => Arc::new(views(&offsets, data, nulls)?),
        other => unreachable!("{other} is not stored as bytes"),
    })
}

/// Views as an array of a type.
fn as_views(data_type: &DataType, views: BinaryViewArray) -> Result<ArrayRef> {
    match data_type {
        DataType::Utf8View => Ok(Arc::new(text_view(views))),
        DataType::BinaryView => Ok(Arc::new(views)),
        _ => Err(corrupt("a column has codes that has no views")),
    }
}

/// A dictionary array in which each row has a value of its own.
fn dictionary(keys: &DataType, values: ArrayRef) -> Result<ArrayRef> {
    match keys {
        DataType::Int8 => counted::<Int8Type>(values),
        DataType::Int16 => counted::<Int16Type>(values),
        DataType::Int32 => counted::<Int32Type>(values),
        DataType::Int64 => counted::<Int64Type>(values),
        DataType::UInt8 => counted::<UInt8Type>(values),
        DataType::UInt16 => counted::<UInt16Type>(values),
        DataType::UInt32 => counted::<UInt32Type>(values),
        DataType::UInt64 => counted::<UInt64Type>(values),
        other => unreachable!("{other} is not a key of dictionaries"),
    }
}

fn counted<K: ArrowDictionaryKeyType>(values: ArrayRef) -> Result<ArrayRef> {
    let keys = (0..values.len()).map(<K as ArrowPrimitiveType>::Native::from_usize);
    let keys: Option<Vec<_>> = keys.collect();
    let keys = keys.ok_or(corrupt("a page of a dictionary has more rows than keys"))?;
    let keys = PrimitiveArray::<K>::try_new(keys.into(), values.nulls().cloned())?;
    Ok(Arc::new(DictionaryArray::try_new(keys, values)?))
}
