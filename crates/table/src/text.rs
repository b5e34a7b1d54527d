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

#![allow(unsafe_code)]

use arrow_array::{
    BinaryViewArray, GenericBinaryArray, GenericStringArray, OffsetSizeTrait, StringViewArray,
};

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

fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}
