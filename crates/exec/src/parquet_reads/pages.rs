//! The headers of the pages of a Parquet file: how long pages are when they are decompressed.
//!
//! Owns: as much of Thrift's compact protocol as a page header needs. Never: reads what a page
//! holds. A header that makes no sense ends the walk; whoever decodes the page will say so.
//!
//! **Source**: "Apache Parquet: File Format", `parquet.thrift`; "Thrift compact protocol".

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

/// Types of fields and elements.
const STOP: u8 = 0;
const BOOLEANS: [u8; 2] = [1, 2];
const BYTE: u8 = 3;
const INTEGERS: [u8; 3] = [4, 5, 6];
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LISTS: [u8; 2] = [9, 10];
const STRUCT: u8 = 12;

/// Fields of `PageHeader`, the first ones.
const PAGE_TYPE: u64 = 1;
const UNCOMPRESSED_BYTES: u64 = 2;
const COMPRESSED_BYTES: u64 = 3;
/// The type of a page that holds a dictionary.
const DICTIONARY_PAGE: u64 = 2;

/// Structs and lists in each other that a header has: statistics in the header of a data page.
const DEPTH_MAX: usize = 4;
/// What a size in a header may be, which is a number of 32 bits.
const SIZE_MAX: u64 = i32::MAX as u64;

/// Pages of a column, decompressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pages {
    /// Bytes of the dictionary.
    pub(super) dictionary_bytes: u64,
    /// Bytes of the longest page of values.
    pub(super) longest_bytes: u64,
    /// Pages of values.
    pub(super) count: u64,
}

impl Pages {
    /// The pages that lie one behind the other in `bytes`.
    pub(super) fn of(mut bytes: &[u8]) -> Pages {
        let mut pages = Pages::default();
        while let Some((page, rest)) = next(bytes) {
            if page.is_dictionary {
                pages.dictionary_bytes = pages.dictionary_bytes.saturating_add(page.bytes);
            } else {
                pages.longest_bytes = pages.longest_bytes.max(page.bytes);
                pages.count = pages.count.saturating_add(1);
            }
            bytes = rest;
        }
        pages
    }

    /// Takes more pages of the same column in.
    pub(super) fn add(&mut self, more: &Pages) {
        self.dictionary_bytes = (self.dictionary_bytes).saturating_add(more.dictionary_bytes);
        self.longest_bytes = self.longest_bytes.max(more.longest_bytes);
        self.count = self.count.saturating_add(more.count);
    }
}

struct Page {
    is_dictionary: bool,
    /// Decompressed.
    bytes: u64,
}

/// The page at the beginning of `bytes`, and what comes behind it.
fn next(bytes: &[u8]) -> Option<(Page, &[u8])> {
    let mut header = Reader { bytes };
    let (mut kind, mut bytes, mut stored_bytes) = (None, None, None);
    header.structure(0, &mut |field, value| match field {
        PAGE_TYPE => kind = Some(value),
        UNCOMPRESSED_BYTES => bytes = Some(value),
        COMPRESSED_BYTES => stored_bytes = Some(value),
        _ => {}
    })?;
    let stored_bytes = usize::try_from(stored_bytes?).ok()?;
    let page = Page {
        is_dictionary: kind? == DICTIONARY_PAGE,
        bytes: bytes?,
    };
    Some((page, header.bytes.get(stored_bytes..)?))
}

/// What is left of a header.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    /// Seven bits a byte, the lowest first.
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A number that is not negative, as sizes are; its sign is the lowest bit.
    fn size(&mut self) -> Option<u64> {
        let value = self.varint()?;
        let size = value >> 1;
        (value & 1 == 0 && size <= SIZE_MAX).then_some(size)
    }

    /// A structure, of which `see` is told the sizes at the outermost level.
    fn structure(&mut self, depth: usize, see: &mut dyn FnMut(u64, u64)) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut field = 0;
        loop {
            let head = self.byte()?;
            let kind = head & 0x0F;
            if kind == STOP {
                return Some(());
            }
            field = match head >> 4 {
                0 => self.varint()? >> 1,
                step => field.saturating_add(u64::from(step)),
            };
            if depth == 0 && INTEGERS.contains(&kind) && field <= COMPRESSED_BYTES {
                see(field, self.size()?);
            } else {
                self.value(kind, depth)?;
            }
        }
    }

    /// Skips a value.
    fn value(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            // A field that is true or false has no more bytes.
            _ if BOOLEANS.contains(&kind) => Some(()),
            BYTE => self.skip(1),
            _ if INTEGERS.contains(&kind) => self.varint().map(|_| ()),
            DOUBLE => self.skip(8),
            BINARY => {
                let length = self.varint()?;
                self.skip(length)
            }
            _ if LISTS.contains(&kind) => self.list(depth),
            STRUCT => self.structure(depth.saturating_add(1), &mut |_, _| ()),
            _ => None,
        }
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            few => u64::from(few),
        };
        let kind = head & 0x0F;
        for _ in 0..count {
            match BOOLEANS.contains(&kind) {
                true => self.skip(1)?,
                false => self.value(kind, depth.saturating_add(1))?,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pages as `parquet.thrift` writes them: a dictionary of 300 bytes, and a page of values
    /// of 70,000 with statistics.
    fn pages() -> Vec<u8> {
        let mut bytes = vec![
            0x15, 4, 0x15, 0xD8, 4, 0x15, 4, 0x4C, 0x15, 2, 0x15, 0, 0, 0,
        ];
        bytes.extend([9, 9]);
        bytes.extend([
            0x15, 0, 0x15, 0xE0, 0xC5, 8, 0x15, 6, 0x2C, 0x15, 2, 0x15, 0, 0x15, 6,
        ]);
        bytes.extend([0x15, 6, 0x1C, 0x18, 2, 7, 7, 0x18, 1, 7, 0, 0, 0]);
        bytes.extend([9, 9, 9]);
        bytes
    }

    #[test]
    fn headers_tell_how_long_pages_are() {
        let expected = Pages {
            dictionary_bytes: 300,
            longest_bytes: 70_000,
            count: 1,
        };
        assert_eq!(Pages::of(&pages()), expected);
    }

    #[test]
    fn sizes_that_no_page_has_end_the_walk() {
        let header = |size: [u8; 6]| {
            let mut bytes = vec![0x15, 0, 0x15];
            bytes.extend(size);
            bytes.extend([0x15, 0, 0]);
            bytes
        };
        // 2^31 - 1, written twice as large as sizes are, and 2^31.
        let most = header([0xFE, 0xFF, 0xFF, 0xFF, 0x8F, 0]);
        assert_eq!(Pages::of(&most).longest_bytes, i32::MAX as u64);
        let more = header([0x80, 0x80, 0x80, 0x80, 0x90, 0]);
        assert_eq!(Pages::of(&more), Pages::default());
    }

    #[test]
    fn what_is_no_header_ends_the_walk() {
        let whole = pages();
        for length in 0..whole.len() {
            let found = Pages::of(&whole[..length]);
            assert_eq!(found.count, 0, "{length}");
        }
        assert_eq!(Pages::of(&[0xFF; 100]), Pages::default());
        assert_eq!(Pages::of(&[0x1C; 100]), Pages::default());
        // Lists in lists, deeper than any stack.
        assert_eq!(Pages::of(&vec![0x19; 4 << 20]), Pages::default());
    }
}
