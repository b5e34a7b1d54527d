//! The free ranges of one temp file.
//!
//! **Owns** which bytes of the file no page uses. **Never** touches the file. Ranges are taken by
//! best fit, so that long ranges stay long, and joined with their neighbours when they return.

use std::collections::{BTreeMap, BTreeSet};

/// The free ranges.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    by_offset: BTreeMap<u64, u64>,
    by_len: BTreeSet<(u64, u64)>,
    free_bytes: u64,
}

impl Ranges {
    fn insert(&mut self, offset: u64, len: u64) {
        self.by_offset.insert(offset, len);
        self.by_len.insert((len, offset));
    }

    fn remove(&mut self, offset: u64, len: u64) {
        self.by_offset.remove(&offset);
        self.by_len.remove(&(len, offset));
    }

    /// Takes `len` bytes.
    pub(crate) fn take(&mut self, len: u64) -> Option<u64> {
        let &(found, offset) = self.by_len.range((len, 0)..).next()?;
        self.remove(offset, found);
        if found > len {
            self.insert(offset + len, found - len);
        }
        self.free_bytes -= len;
        Some(offset)
    }

    /// Returns `len` bytes at `offset`.
    pub(crate) fn give(&mut self, offset: u64, len: u64) {
        let (mut start, mut total) = (offset, len);
        if let Some((&before, &before_len)) = self.by_offset.range(..offset).next_back() {
            assert!(before + before_len <= offset, "returning free bytes");
            if before + before_len == offset {
                self.remove(before, before_len);
                start = before;
                total += before_len;
            }
        }
        if let Some((&after, &after_len)) = self.by_offset.range(offset..).next() {
            assert!(offset + len <= after, "returning free bytes");
            if offset + len == after {
                self.remove(after, after_len);
                total += after_len;
            }
        }
        self.insert(start, total);
        self.free_bytes += len;
    }

    /// Takes the free range that ends at `end`, if there is one, and returns its length.
    pub(crate) fn take_tail(&mut self, end: u64) -> u64 {
        match self.by_offset.last_key_value() {
            Some((&offset, &len)) if offset + len == end => {
                self.remove(offset, len);
                self.free_bytes -= len;
                len
            }
            _ => 0,
        }
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        self.free_bytes
    }

    pub(crate) fn longest(&self) -> u64 {
        self.by_len.last().map_or(0, |&(len, _)| len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_fit() {
        let mut ranges = Ranges::default();
        ranges.give(0, 100);
        assert_eq!(ranges.take(30), Some(0));
        assert_eq!(ranges.take(30), Some(30));
        assert_eq!(ranges.take(50), None);
        ranges.give(0, 30);
        // The best fit is the range of 30, not the one of 40.
        assert_eq!(ranges.take(25), Some(0));
        ranges.give(0, 25);
        ranges.give(30, 30);
        assert_eq!((ranges.longest(), ranges.free_bytes()), (100, 100));
        assert_eq!(ranges.take_tail(100), 100);
        assert_eq!(ranges.free_bytes(), 0);
    }
}
