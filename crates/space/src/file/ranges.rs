//! Ranges of one temp file: those that are free, or those that are holes.
//!
//! **Owns** which bytes of the file they are. **Never** touches the file. Ranges are taken by best
//! fit, so that long ranges stay long, and joined with their neighbours when they return.

use std::collections::{BTreeMap, BTreeSet};

/// A set of ranges that neither overlap nor touch.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    by_offset: BTreeMap<u64, u64>,
    by_len: BTreeSet<(u64, u64)>,
    bytes: u64,
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

    /// Takes `len` bytes of the shortest range that has as many.
    pub(crate) fn take(&mut self, len: u64) -> Option<u64> {
        let &(found, offset) = self.by_len.range((len, 0)..).next()?;
        self.remove(offset, found);
        if found > len {
            self.insert(offset + len, found - len);
        }
        self.bytes -= len;
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
        self.bytes += len;
    }

    /// Takes the beginning of the first range of at least `least` bytes, at most `most` of them.
    /// Returns where it begins and its length.
    pub(crate) fn take_first(&mut self, least: u64, most: u64) -> Option<(u64, u64)> {
        let mut ranges = self.by_offset.iter();
        let (&offset, &found) = ranges.find(|(_, len)| **len >= least)?;
        let len = found.min(most.max(least));
        self.remove(offset, found);
        if found > len {
            self.insert(offset + len, found - len);
        }
        self.bytes -= len;
        Some((offset, len))
    }

    /// Takes the end of the last range, at most `most` bytes. Returns where it begins and its
    /// length.
    pub(crate) fn take_last(&mut self, most: u64) -> Option<(u64, u64)> {
        let (&offset, &found) = self.by_offset.last_key_value()?;
        let len = found.min(most);
        self.remove(offset, found);
        if found > len {
            self.insert(offset, found - len);
        }
        self.bytes -= len;
        Some((offset + found - len, len))
    }

    /// Takes the whole range that begins at `offset`, and returns its length; nothing if there is
    /// none.
    pub(crate) fn take_at(&mut self, offset: u64) -> u64 {
        let len = self.by_offset.get(&offset).copied().unwrap_or(0);
        if len > 0 {
            self.remove(offset, len);
            self.bytes -= len;
        }
        len
    }

    /// Takes the last range if it ends at `end`, and returns its length; nothing if it does not.
    pub(crate) fn take_ending_at(&mut self, end: u64) -> u64 {
        match self.by_offset.last_key_value() {
            Some((&offset, &len)) if offset + len == end => self.take_at(offset),
            _ => 0,
        }
    }

    /// The length of the range that begins at `offset`.
    pub(crate) fn len_at(&self, offset: u64) -> u64 {
        self.by_offset.get(&offset).copied().unwrap_or(0)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
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
        assert_eq!((ranges.longest(), ranges.bytes()), (100, 100));
    }

    #[test]
    fn ranges_are_taken_from_either_end() {
        let mut ranges = Ranges::default();
        for (offset, len) in [(0, 10), (20, 40), (70, 30)] {
            ranges.give(offset, len);
        }
        assert_eq!(ranges.take_first(20, 25), Some((20, 25)));
        assert_eq!(ranges.take_first(20, 25), Some((70, 25)));
        assert_eq!(ranges.take_first(20, 25), None);
        assert_eq!(ranges.take_last(3), Some((97, 3)));
        assert_eq!(ranges.take_last(100), Some((95, 2)));
        assert_eq!((ranges.take_at(46), ranges.len_at(45)), (0, 15));
        assert_eq!(
            (ranges.take_ending_at(61), ranges.take_ending_at(60)),
            (0, 15)
        );
        assert_eq!(ranges.bytes(), 10);
    }
}
