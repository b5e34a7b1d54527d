//! Text that comes back from a page, without looking at its characters again.
//!
//! Arrow's text arrays promise UTF-8, and their safe constructors read every byte to see that it
//! is so. What is read from a page has been such an array before: reading it again costs a pass
//! over memory that a scan, a sort or a GROUP BY which only carries the text does not need. It was
//! half of the time of a GROUP BY over a table of long texts
//! (`docs/decisions/0005-text-is-trusted.md`).
//!
//! **T1.** Bytes of a text column reach a page or a row only from an array of a text type:
//! `column_page` admits text for text and nothing else and marks the column in the page, and
//! `rows` encodes a column by downcasting to the type that it is decoded as. Values are stored
//! whole and returned whole, between the ends at which they were stored.
//!
//! **T2.** Nobody changes them in between: pages are written once, rows move as they are, and what
//! comes back from a file has passed its checksum. Nothing outside of this crate can have bytes of
//! its own decoded.
//!
//! **T3.** The first bytes of a long value stand in its page once more, for its view. The encoder
//! takes them from the value, or from a view of it, so they are compared with it no more: a scan
//! that has no use for a long text does not wait for its memory.

#![allow(unsafe_code)]

use arrow_array::{
    BinaryViewArray, GenericBinaryArray, GenericStringArray, OffsetSizeTrait, StringViewArray,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};

use crate::column_page::{Codes, PREFIX_BYTES, PREFIXED_BYTES};

/// The bytes of a view that hold a short value.
const INLINE_BYTES: usize = 12;

/// At most so many bytes of values share a buffer: Arrow's views tell where they begin in 32 bits,
/// of which its other languages read one as a sign.
const BUFFER_BYTES: usize = i32::MAX as usize;

/// The text that bytes from a page or a row are. **Cost**: none.
pub(crate) fn text<O: OffsetSizeTrait>(bytes: GenericBinaryArray<O>) -> GenericStringArray<O> {
    debug_assert!(bytes.iter().flatten().all(is_utf8));
    let (offsets, values, nulls) = bytes.into_parts();
    // SAFETY: T1 and T2: between two offsets lies what was one value of a text array. The offsets
    // are in order and within the values, because they come from an array.
    unsafe { GenericStringArray::new_unchecked(offsets, values, nulls) }
}

/// The text that bytes from a page or a row are. **Cost**: none.
pub(crate) fn text_view(bytes: BinaryViewArray) -> StringViewArray {
    debug_assert!(bytes.iter().flatten().all(is_utf8));
    // SAFETY: T1 and T2: each view shows what was one value of a text array.
    unsafe { bytes.to_string_view_unchecked() }
}

/// The offsets of values; `None` if they are not in order. **Cost**: that of
/// [`OffsetBuffer::new`], which would panic.
pub(crate) fn offsets(ends: ScalarBuffer<i32>) -> Option<OffsetBuffer<i32>> {
    let is_in_order = ends.first().is_some_and(|first| *first >= 0)
        && ends.array_windows().all(|[start, end]| start <= end);
    // SAFETY: they are some, not negative and in order, as was just seen.
    is_in_order.then(|| unsafe { OffsetBuffer::new_unchecked(ends) })
}

/// The views of values that lie in a page between offsets; `None` if the offsets do not lie in the
/// data or the prefixes are not as many as the long values. **Cost**: long values are not read.
pub(crate) fn views(
    offsets: &OffsetBuffer<i32>,
    data: Buffer,
    prefixes: &[[u8; PREFIX_BYTES]],
    nulls: Option<NullBuffer>,
) -> Option<BinaryViewArray> {
    let row_count = offsets.len() - 1;
    let is_spanned = offsets[row_count].as_usize() <= data.len();
    if !is_spanned || nulls.as_ref().is_some_and(|nulls| nulls.len() != row_count) {
        return None;
    }
    touch_short(offsets, &data);
    let mut prefixes = prefixes.iter();
    let mut views: Vec<u128> = Vec::with_capacity(row_count);
    for [start, end] in offsets.array_windows() {
        let (start, len) = (start.as_usize(), end.as_usize() - start.as_usize());
        let bytes = &data[start..start + len];
        views.push(if len > PREFIXED_BYTES {
            long_view(*prefixes.next()?, 0, start, len)
        } else if len > INLINE_BYTES {
            long_view(*bytes.first_chunk()?, 0, start, len)
        } else if len > 0 {
            short_view(&data[start..], len)
        } else {
            0
        });
    }
    if prefixes.next().is_some() {
        return None;
    }
    debug_assert!(
        BinaryViewArray::try_new(views.clone().into(), vec![data.clone()], nulls.clone()).is_ok()
    );
    // SAFETY: each view lies between two offsets, which are in order and within the only buffer,
    // and shows the first bytes of its value: by T3 where they were not read just now.
    Some(unsafe { BinaryViewArray::new_unchecked(views.into(), vec![data], nulls) })
}

/// The views of some values that lie in a page between offsets, in memory of their own; `None` if
/// one does not lie in the data. **Cost**: no call for a short value, which lies in its view.
pub(crate) fn picked_views(
    offsets: &[[u8; size_of::<u32>()]],
    data: &[u8],
    slots: &[u32],
    nulls: Option<NullBuffer>,
) -> Option<BinaryViewArray> {
    picked_views_in(offsets, data, slots, nulls, BUFFER_BYTES)
}

/// The same; a buffer of more bytes than so many has one value.
fn picked_views_in(
    offsets: &[[u8; size_of::<u32>()]],
    data: &[u8],
    slots: &[u32],
    nulls: Option<NullBuffer>,
    buffer_bytes: usize,
) -> Option<BinaryViewArray> {
    if nulls
        .as_ref()
        .is_some_and(|nulls| nulls.len() != slots.len())
    {
        return None;
    }
    let mut full: Vec<Buffer> = Vec::new();
    let mut long: Vec<u8> = Vec::new();
    let mut views: Vec<u128> = Vec::with_capacity(slots.len());
    for (row, slot) in slots.iter().enumerate() {
        let ends: &[_; 2] = offsets.get(*slot as usize..)?.first_chunk()?;
        let [start, end] = ends.map(|end| u32::from_le_bytes(end) as usize);
        let bytes = data.get(start..end)?;
        let len = bytes.len();
        let is_null = || nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        views.push(if len > INLINE_BYTES && !is_null() {
            // A slot may be picked often, so that all values are more than the data.
            if long.len() + len > buffer_bytes && !long.is_empty() {
                full.push(Buffer::from_vec(std::mem::take(&mut long)));
            }
            let view = long_view(*bytes.first_chunk()?, full.len(), long.len(), len);
            long.extend_from_slice(bytes);
            view
        } else if len > 0 && len <= INLINE_BYTES {
            short_view(&data[start..], len)
        } else {
            0
        });
    }
    if !long.is_empty() {
        full.push(Buffer::from_vec(long));
    }
    let buffers = full;
    debug_assert!(
        BinaryViewArray::try_new(views.clone().into(), buffers.clone(), nulls.clone()).is_ok()
    );
    // SAFETY: a view of a long value shows bytes that were copied for it to the buffer that was
    // filled then, and the first of them. It begins within `i32::MAX` bytes of the buffer, as its
    // 32 bits can tell. Any other view holds its value, or none.
    Some(unsafe { BinaryViewArray::new_unchecked(views.into(), buffers, nulls) })
}

/// The views of all rows, each of which has one of some values that lie between ends; `None` if a
/// code or an end lies elsewhere. **Cost**: a copy of a view for each row; no value is read but
/// once.
pub(crate) fn coded_views(
    ends: &[[u8; size_of::<u32>()]],
    data: Buffer,
    codes: Codes<'_>,
    nulls: Option<NullBuffer>,
) -> Option<BinaryViewArray> {
    let words = word_views(ends, &data)?;
    if codes.greatest() >= words.len() {
        return None;
    }
    let word = |code: usize| words[code];
    let views: Vec<u128> = match codes {
        Codes::Bytes(codes) => codes.iter().map(|code| word(usize::from(*code))).collect(),
        Codes::Pairs(codes) => {
            let codes = codes.iter().map(|code| u16::from_le_bytes(*code));
            codes.map(|code| word(usize::from(code))).collect()
        }
    };
    if nulls
        .as_ref()
        .is_some_and(|nulls| nulls.len() != views.len())
    {
        return None;
    }
    Some(shown(views, buffers_of(&words, data), nulls))
}

/// The views of values that lie between ends, and of a NULL behind them if one is asked for; `None`
/// if an end lies elsewhere.
pub(crate) fn words(
    ends: &[[u8; size_of::<u32>()]],
    data: Buffer,
    with_null: bool,
) -> Option<BinaryViewArray> {
    let mut views = word_views(ends, &data)?;
    let buffers = buffers_of(&views, data);
    let words = views.len();
    let nulls = with_null.then(|| {
        views.push(0);
        NullBuffer::new(BooleanBuffer::collect_bool(words + 1, |word| word < words))
    });
    Some(shown(views, buffers, nulls))
}

/// A view for each value that lies between ends.
fn word_views(ends: &[[u8; size_of::<u32>()]], data: &[u8]) -> Option<Vec<u128>> {
    let mut words: Vec<u128> = Vec::with_capacity(ends.len());
    for [start, end] in ends.array_windows() {
        let [start, end] = [start, end].map(|end| u32::from_le_bytes(*end) as usize);
        let bytes = data.get(start..end)?;
        words.push(match bytes.len() {
            0 => 0,
            len if len <= INLINE_BYTES => short_view(&data[start..], len),
            len => long_view(*bytes.first_chunk()?, 0, start, len),
        });
    }
    Some(words)
}

/// The data of words, if one does not lie within its view: a page is not kept for others.
fn buffers_of(words: &[u128], data: Buffer) -> Vec<Buffer> {
    let is_long = |view: &u128| *view as u32 as usize > INLINE_BYTES;
    match words.iter().any(is_long) {
        true => vec![data],
        false => Vec::new(),
    }
}

/// Views that are some of those of words, or empty ones, over the buffers of the words.
fn shown(views: Vec<u128>, buffers: Vec<Buffer>, nulls: Option<NullBuffer>) -> BinaryViewArray {
    debug_assert!(
        BinaryViewArray::try_new(views.clone().into(), buffers.clone(), nulls.clone()).is_ok()
    );
    // SAFETY: each view is empty or that of a word, which `word_views` made: it holds its value, or
    // lies within the only buffer and begins with the bytes that stand there. There is a validity
    // bit for each view, as both callers see to.
    unsafe { BinaryViewArray::new_unchecked(views.into(), buffers, nulls) }
}

/// Values whose lines are loaded together.
const TOUCHED_ROWS: usize = 256;

/// Loads the lines of the values that are read, where they lie apart between long ones. Views that
/// are made one by one wait for one line after the other: what the processor can look ahead has one
/// or two such values. Picked out, ten are loaded at a time.
fn touch_short(offsets: &OffsetBuffer<i32>, data: &[u8]) {
    if data.len() / offsets.len() < PREFIXED_BYTES {
        return;
    }
    let mut starts = [0_usize; TOUCHED_ROWS];
    let mut sum = 0;
    let mut from = 0;
    while from + 1 < offsets.len() {
        let window = &offsets[from..offsets.len().min(from + TOUCHED_ROWS + 1)];
        let mut count = 0;
        for [start, end] in window.array_windows() {
            // Without a jump, which would be foretold wrongly at each of the few.
            starts[count] = start.as_usize();
            let len = (end - start) as u32;
            count += usize::from(len.wrapping_sub(1) < PREFIXED_BYTES as u32);
        }
        sum = starts[..count]
            .iter()
            .fold(sum, |sum, start| sum ^ data[*start]);
        from += TOUCHED_ROWS;
    }
    std::hint::black_box(sum);
}

/// The view of a value in a buffer, the first of which has the number 0.
#[inline]
fn long_view(prefix: [u8; PREFIX_BYTES], buffer: usize, start: usize, len: usize) -> u128 {
    let prefix = u128::from(u32::from_le_bytes(prefix));
    (start as u128) << 96 | (buffer as u128) << 64 | prefix << 32 | len as u128
}

/// The view of a value that it holds, at the head of some bytes.
#[inline]
fn short_view(bytes: &[u8], len: usize) -> u128 {
    let value = match bytes.first_chunk() {
        // What follows the value is read with it, which is faster than copying its length.
        Some(bytes) => u128::from_le_bytes(*bytes) & VALUE_MASKS[len],
        None => {
            let mut value = [0; size_of::<u128>()];
            value[..len].copy_from_slice(&bytes[..len]);
            u128::from_le_bytes(value)
        }
    };
    value << 32 | len as u128
}

/// The bits of a value, by its length.
const VALUE_MASKS: [u128; INLINE_BYTES + 1] = {
    let mut masks = [0; INLINE_BYTES + 1];
    let mut len = 0;
    while len <= INLINE_BYTES {
        masks[len] = (1 << (8 * len)) - 1;
        len += 1;
    }
    masks
};

fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::picked_views_in;

    #[test]
    fn values_that_are_picked_often_fill_several_buffers() {
        let data = b"shorta long value of some bytesanother one of bytes";
        let ends = [0_u32, 5, 31, 31, 51];
        assert_eq!(data.len(), 51);
        let offsets = ends.map(u32::to_le_bytes);
        let slots = [1, 3, 0, 1, 2, 3, 1];
        for buffer_bytes in [1, 26, 46, 47, 72, 1000] {
            let picked = picked_views_in(&offsets, data, &slots, None, buffer_bytes).unwrap();
            for (row, slot) in slots.iter().enumerate() {
                let [start, end] = [ends[*slot as usize], ends[*slot as usize + 1]];
                let value = &data[start as usize..end as usize];
                assert_eq!(picked.value(row), value, "{buffer_bytes} {row}");
            }
            let fits = |bytes: usize| bytes <= buffer_bytes.max(26);
            assert!({ picked.data_buffers().iter() }.all(|buffer| fits(buffer.len())));
        }
    }

    #[test]
    fn values_outside_of_the_data_are_refused() {
        let offsets = [0_u32, 5, 60].map(u32::to_le_bytes);
        assert!(picked_views_in(&offsets, b"short", &[0], None, 100).is_some());
        assert!(picked_views_in(&offsets, b"short", &[1], None, 100).is_none());
        assert!(picked_views_in(&offsets, b"short", &[2], None, 100).is_none());
    }
}
