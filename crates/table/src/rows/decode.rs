//! Finished rows back into Arrow columns.
//!
//! Values are copied out, so a batch that travels up the plan holds no page.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, GenericBinaryArray, OffsetSizeTrait, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};

use super::layout::{Column, Encoding, RowLayout, Section, length_at};
use super::state;
use crate::text::{text, text_view};

/// The columns of finished groups, all of one length.
#[derive(Debug, Clone)]
pub struct GroupColumns {
    /// Number of groups.
    pub rows: usize,
    /// The group columns.
    pub key: Vec<ArrayRef>,
    /// The carried columns.
    pub payload: Vec<ArrayRef>,
    /// For each state its arrays: one, or count, mean and squares for moments.
    pub states: Vec<Vec<ArrayRef>>,
}

/// Decodes rows; each slice starts at its row and reaches at least to its end.
pub(crate) fn decode(layout: &RowLayout, rows: &[&[u8]]) -> Result<GroupColumns, ArrowError> {
    let key_start = layout.key_start();
    let starts: Vec<usize> = vec![key_start; rows.len()];
    let key = decode_section(&layout.key, rows, &starts)?;
    let payload = decode_payload(layout, rows)?;
    let states = layout
        .states
        .iter()
        .map(|slot| state::decode_state(slot, rows))
        .collect();
    Ok(GroupColumns {
        rows: rows.len(),
        key,
        payload,
        states,
    })
}

/// Decodes the payload alone.
pub(crate) fn decode_payload(
    layout: &RowLayout,
    rows: &[&[u8]],
) -> Result<Vec<ArrayRef>, ArrowError> {
    if layout.payload.columns.is_empty() {
        return Ok(Vec::new());
    }
    let starts: Vec<usize> = rows.iter().map(|row| layout.payload_start(row)).collect();
    decode_section(&layout.payload, rows, &starts)
}

fn decode_section(
    section: &Section,
    rows: &[&[u8]],
    starts: &[usize],
) -> Result<Vec<ArrayRef>, ArrowError> {
    decode_columns(section, rows, starts, |_| true)
}

/// Decodes those columns of a section that are wanted.
pub(crate) fn decode_columns(
    section: &Section,
    rows: &[&[u8]],
    starts: &[usize],
    is_wanted: impl Fn(usize) -> bool,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let mut cursors: Vec<usize> = if section.has_bytes {
        starts
            .iter()
            .map(|start| start + section.fixed_bytes)
            .collect()
    } else {
        Vec::new()
    };
    let mut arrays = Vec::new();
    for (at, column) in section.columns.iter().enumerate() {
        if is_wanted(at) {
            arrays.push(decode_column(column, rows, starts, &mut cursors)?);
        } else if column.encoding == Encoding::Bytes {
            for ((row, start), cursor) in rows.iter().zip(starts).zip(&mut cursors) {
                *cursor += length_at(row, start + column.position);
            }
        }
    }
    Ok(arrays)
}

/// Decodes one column; `cursors` lie where its bytes are, if it has bytes, and move behind them.
fn decode_column(
    column: &Column,
    rows: &[&[u8]],
    starts: &[usize],
    cursors: &mut [usize],
) -> Result<ArrayRef, ArrowError> {
    let nulls = decode_nulls(column, rows, starts);
    match column.encoding {
        Encoding::Bytes => decode_bytes(column, rows, starts, cursors, nulls),
        Encoding::Boolean => {
            let at = |(row, start): (&&[u8], &usize)| row[start + column.position] != 0;
            let values: BooleanBuffer = rows.iter().zip(starts).map(at).collect();
            Ok(Arc::new(BooleanArray::new(values, nulls)) as ArrayRef)
        }
        Encoding::SmallDecimal => {
            let at = |(row, start): (&&[u8], &usize)| {
                let at = start + column.position;
                i128::from(i64::from_le_bytes(state::get(row, at)))
            };
            let digits: Vec<i128> = rows.iter().zip(starts).map(at).collect();
            let data = ArrayData::builder(column.data_type.clone())
                .len(rows.len())
                .nulls(nulls)
                .add_buffer(Buffer::from_vec(digits))
                .build()?;
            Ok(make_array(data))
        }
        Encoding::Fixed(1) => decode_fixed::<1>(column, rows, starts, nulls),
        Encoding::Fixed(2) => decode_fixed::<2>(column, rows, starts, nulls),
        Encoding::Fixed(4) | Encoding::Float32 => decode_fixed::<4>(column, rows, starts, nulls),
        Encoding::Fixed(8) | Encoding::Float64 => decode_fixed::<8>(column, rows, starts, nulls),
        Encoding::Fixed(16) => decode_fixed::<16>(column, rows, starts, nulls),
        Encoding::Fixed(_) => decode_fixed::<32>(column, rows, starts, nulls),
    }
}

fn decode_nulls(column: &Column, rows: &[&[u8]], starts: &[usize]) -> Option<NullBuffer> {
    let null_bit = column.null_bit?;
    let (byte, bit) = (null_bit / 8, 1u8 << (null_bit % 8));
    let is_null = |(row, start): (&&[u8], &usize)| row[start + byte] & bit != 0;
    if !rows.iter().zip(starts).any(is_null) {
        return None;
    }
    let valid: BooleanBuffer = rows.iter().zip(starts).map(|pair| !is_null(pair)).collect();
    Some(NullBuffer::new(valid))
}

fn decode_fixed<const W: usize>(
    column: &Column,
    rows: &[&[u8]],
    starts: &[usize],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let mut values = MutableBuffer::with_capacity(rows.len() * W);
    for (row, start) in rows.iter().zip(starts) {
        let at = start + column.position;
        let value: [u8; W] = row[at..at + W].try_into().expect("W bytes");
        values.extend_from_slice(&value);
    }
    let data = ArrayData::builder(column.data_type.clone())
        .len(rows.len())
        .nulls(nulls)
        .add_buffer(values.into())
        .build()?;
    Ok(make_array(data))
}

fn decode_bytes(
    column: &Column,
    rows: &[&[u8]],
    starts: &[usize],
    cursors: &mut [usize],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let mut slices = Vec::with_capacity(rows.len());
    for ((row, start), cursor) in rows.iter().zip(starts).zip(cursors) {
        let at = start + column.position;
        let len = length_at(row, at);
        slices.push(&row[*cursor..*cursor + len]);
        *cursor += len;
    }
    Ok(match column.data_type {
        DataType::Utf8View => Arc::new(text_view(byte_views(&slices, nulls)?)),
        DataType::BinaryView => Arc::new(byte_views(&slices, nulls)?),
        DataType::Utf8 => Arc::new(text(byte_offsets::<i32>(&slices, nulls)?)),
        DataType::LargeUtf8 => Arc::new(text(byte_offsets::<i64>(&slices, nulls)?)),
        DataType::LargeBinary => Arc::new(byte_offsets::<i64>(&slices, nulls)?),
        _ => Arc::new(byte_offsets::<i32>(&slices, nulls)?),
    })
}

fn byte_offsets<O: OffsetSizeTrait>(
    slices: &[&[u8]],
    nulls: Option<NullBuffer>,
) -> Result<GenericBinaryArray<O>, ArrowError> {
    let offsets = OffsetBuffer::<O>::from_lengths(slices.iter().map(|s| s.len()));
    let values: Vec<u8> = slices.concat();
    GenericBinaryArray::try_new(offsets, Buffer::from_vec(values), nulls)
}

fn byte_views(slices: &[&[u8]], nulls: Option<NullBuffer>) -> Result<BinaryViewArray, ArrowError> {
    let mut buffers: Vec<Buffer> = Vec::new();
    let long = slices
        .iter()
        .filter(|s| s.len() > 12)
        .map(|s| s.len())
        .sum::<usize>();
    let mut bytes: Vec<u8> = Vec::with_capacity(long.min(VIEW_BUFFER_BYTES));
    let mut views: Vec<u128> = Vec::with_capacity(slices.len());
    for slice in slices {
        let mut raw = [0u8; 16];
        let len = u32::try_from(slice.len()).expect("a value is below 2 GiB");
        raw[..4].copy_from_slice(&len.to_le_bytes());
        if slice.len() <= 12 {
            raw[4..4 + slice.len()].copy_from_slice(slice);
        } else {
            if !bytes.is_empty() && bytes.len() + slice.len() > VIEW_BUFFER_BYTES {
                buffers.push(Buffer::from_vec(std::mem::take(&mut bytes)));
            }
            let buffer = u32::try_from(buffers.len()).expect("few buffers a batch");
            let offset = u32::try_from(bytes.len()).expect("a buffer is below 2 GiB");
            raw[4..8].copy_from_slice(&slice[..4]);
            raw[8..12].copy_from_slice(&buffer.to_le_bytes());
            raw[12..16].copy_from_slice(&offset.to_le_bytes());
            bytes.extend_from_slice(slice);
        }
        views.push(u128::from_le_bytes(raw));
    }
    if !bytes.is_empty() {
        buffers.push(Buffer::from_vec(bytes));
    }
    BinaryViewArray::try_new(ScalarBuffer::from(views), buffers, nulls)
}

/// Text of a batch is cut into buffers of about this size: one allocation each for usual batches,
/// and far from the 2 GiB that a view can address.
const VIEW_BUFFER_BYTES: usize = 64 << 20;
