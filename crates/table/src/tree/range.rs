//! Reading the entries of a range of keys, in order or against it.
//!
//! **Owns** a cursor. **Never** compares the key of each entry with a bound: one search a leaf says
//! how many of its entries belong to the range.

use std::ops::Bound;

use super::cursor::{Cursor, End};
use super::node::Node;
use super::{Payload, Tree};
use crate::error::Result;

/// From where to where keys reach.
#[derive(Debug, Clone, Copy)]
pub struct KeyRange<'k> {
    /// The lower bound.
    pub low: Bound<&'k [u8]>,
    /// The upper bound.
    pub high: Bound<&'k [u8]>,
}

/// The entries of a range of keys, one after the other.
///
/// Pins what a [`Cursor`] pins. After an error it has ended.
pub struct Range<'t, 'k> {
    cursor: Cursor<'t>,
    range: KeyRange<'k>,
    /// Where it begins and which end of each leaf it enters by.
    from: End,
    /// The positions in the leaf at hand that are still to come.
    left: std::ops::Range<usize>,
    /// Whether there may be entries in further leaves.
    goes_on: bool,
    has_begun: bool,
    key: Vec<u8>,
}

impl<'k> KeyRange<'k> {
    /// All keys.
    pub const ALL: KeyRange<'static> = KeyRange {
        low: Bound::Unbounded,
        high: Bound::Unbounded,
    };

    /// The keys of a node that belong to the range.
    fn positions(&self, node: Node<'_>) -> std::ops::Range<usize> {
        let low = match self.low {
            Bound::Unbounded => 0,
            Bound::Included(key) => node.search(key).position,
            Bound::Excluded(key) => node.child_index(key),
        };
        let high = match self.high {
            Bound::Unbounded => node.count(),
            Bound::Included(key) => node.child_index(key),
            Bound::Excluded(key) => node.search(key).position,
        };
        low..high.max(low)
    }

    /// The child where the range begins or ends. It may hold no entry of the range.
    pub(super) fn child_index(&self, from: End, node: Node<'_>) -> usize {
        let bound = match from {
            End::First => self.low,
            End::Last => self.high,
        };
        match (bound, from) {
            (Bound::Included(key) | Bound::Excluded(key), _) => node.child_index(key),
            (Bound::Unbounded, End::First) => 0,
            (Bound::Unbounded, End::Last) => node.child_count() - 1,
        }
    }

    /// Where in a leaf the range begins or ends.
    pub(super) fn leaf_index(&self, from: End, node: Node<'_>) -> usize {
        let positions = self.positions(node);
        match from {
            End::First => positions.start,
            End::Last => positions.end,
        }
    }
}

impl Tree {
    /// The entries of a range, smallest key first.
    pub fn range<'k>(&self, range: KeyRange<'k>) -> Range<'_, 'k> {
        Range::new(self.cursor(), range, End::First)
    }

    /// The entries of a range, largest key first.
    pub fn range_reversed<'k>(&self, range: KeyRange<'k>) -> Range<'_, 'k> {
        Range::new(self.cursor(), range, End::Last)
    }
}

impl<'t, 'k> Range<'t, 'k> {
    fn new(cursor: Cursor<'t>, range: KeyRange<'k>, from: End) -> Self {
        Self {
            cursor,
            range,
            from,
            left: 0..0,
            goes_on: true,
            has_begun: false,
            key: Vec::new(),
        }
    }

    /// The next entry: key and payload. `None` at the end.
    ///
    /// # Errors
    /// Those of [`Page::read`](mayfly_space::Page::read).
    pub fn next_entry(&mut self) -> Result<Option<(&[u8], Payload)>> {
        let Some(position) = self.advance()? else {
            return Ok(None);
        };
        let (node, _) = self.cursor.place().expect("a position is in a leaf");
        node.copy_key(position, &mut self.key);
        Ok(Some((&self.key, Payload::new(node.payload(position)))))
    }

    /// The payload of the next entry, for those who have no use for its key. `None` at the end.
    ///
    /// # Errors
    /// As for [`Range::next_entry`].
    pub fn next_payload(&mut self) -> Result<Option<Payload>> {
        let Some(position) = self.advance()? else {
            return Ok(None);
        };
        let (node, _) = self.cursor.place().expect("a position is in a leaf");
        Ok(Some(Payload::new(node.payload(position))))
    }

    /// Adds the row ids of the entries of the next leaf: payloads, or the ends of keys where there
    /// is no payload. Returns whether there were any; `false` at the end.
    ///
    /// # Errors
    /// As for [`Range::next_entry`].
    pub fn next_row_ids(&mut self, row_ids: &mut Vec<u64>) -> Result<bool> {
        if !self.find_left()? {
            return Ok(false);
        }
        let (node, _) = self.cursor.place().expect("a position is in a leaf");
        let left = std::mem::replace(&mut self.left, 0..0);
        let is_payload = node.payload_bytes() == size_of::<u64>();
        let row_id = |position: usize| match is_payload {
            true => node
                .payload(position)
                .as_array()
                .map(|id| u64::from_le_bytes(*id)),
            false => node.row_id(position),
        };
        match self.from {
            End::First => row_ids.extend(left.filter_map(row_id)),
            End::Last => row_ids.extend(left.rev().filter_map(row_id)),
        }
        Ok(true)
    }

    fn advance(&mut self) -> Result<Option<usize>> {
        if !self.find_left()? {
            return Ok(None);
        }
        Ok(match self.from {
            End::First => self.left.next(),
            End::Last => self.left.next_back(),
        })
    }

    /// Sees to it that positions are left; whether there are.
    fn find_left(&mut self) -> Result<bool> {
        while self.left.is_empty() {
            if !self.goes_on {
                return Ok(false);
            }
            // An error ends the range.
            self.goes_on = false;
            self.next_leaf()?;
        }
        Ok(true)
    }

    /// Finds the positions of the next leaf that belong to the range.
    fn next_leaf(&mut self) -> Result<()> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let is_there = if is_first {
            let (range, from) = (self.range, self.from);
            self.cursor.descend(|node| range.child_index(from, node))?;
            self.cursor.stand()
        } else {
            self.cursor.neighbour(self.from)?
        };
        let Some((node, _)) = self.cursor.place().filter(|_| is_there) else {
            return Ok(());
        };
        self.left = self.range.positions(node);
        // The first leaf may lie wholly before the range; a later one ends it unless all of its
        // entries belong.
        self.goes_on = match self.from {
            End::First => self.left.end == node.count(),
            End::Last => self.left.start == 0,
        };
        Ok(())
    }
}
