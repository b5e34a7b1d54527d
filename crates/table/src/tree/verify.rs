//! Checks of everything that has to hold in a tree, for tests.
//!
//! **Owns** nothing. **Never** called by the tree itself.

use super::Tree;
use super::node::{
    CHILD_BYTES, HEAD_BYTES, HEADER_BYTES, HINTS, HINTS_AT, INLINE_PREFIX_AT, NODE_BYTES, Node,
    heap_bytes_of_prefix,
};
use crate::error::{Result, ensure};

/// What has been met on the way through a tree.
struct Seen {
    pages: Vec<bool>,
    levels: Vec<u64>,
    entry_count: u64,
}

impl Tree {
    /// Checks the order of all keys, the bounds that separators set, heights, counts, the layout
    /// of every page, and that each page of the tree is reached once.
    ///
    /// # Errors
    /// [`Error::CorruptPage`](crate::Error::CorruptPage) says what does not hold; those of
    /// [`Page::read`](mayfly_space::Page::read).
    pub fn verify(&self) -> Result<()> {
        let mut seen = Seen {
            pages: vec![false; self.pages.number_count()],
            levels: vec![0; self.levels.len()],
            entry_count: 0,
        };
        if let Some(level) = self.levels.len().checked_sub(1) {
            self.verify_node(self.root, level, None, None, &mut seen)?;
        }
        ensure(seen.levels == self.levels, "a tree with other levels")?;
        ensure(
            seen.entry_count == self.entry_count,
            "a tree with another count of entries",
        )?;
        let reached = seen.pages.iter().filter(|&&seen| seen).count();
        ensure(
            reached == self.pages.live_count(),
            "a page of a tree without a parent",
        )?;
        ensure(
            self.levels.len() < 2 || self.entry_count > 0,
            "an empty tree with more than a leaf",
        )
    }

    fn verify_node(
        &self,
        number: u32,
        level: usize,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        seen: &mut Seen,
    ) -> Result<()> {
        let place = seen.pages.get_mut(number as usize);
        let is_first = place.is_some_and(|seen| !std::mem::replace(seen, true));
        ensure(is_first, "a page of a tree with two parents or none")?;
        let guard = self.pages.read(number)?;
        let node = Node::new(&guard);
        seen.levels[level] += 1;
        ensure(node.level() == level, "a node of another level")?;
        let is_only = self.levels.len() == 1;
        ensure(
            guard.len() == NODE_BYTES || is_only,
            "a small node that is not alone",
        )?;
        let payload_bytes = if level == 0 {
            self.payload_bytes
        } else {
            CHILD_BYTES
        };
        ensure(
            node.payload_bytes() == payload_bytes,
            "a node with payloads of another width",
        )?;
        verify_layout(node)?;
        let mut keys: Vec<Vec<u8>> = Vec::with_capacity(node.count());
        for position in 0..node.count() {
            let mut key = Vec::new();
            node.copy_key(position, &mut key);
            ensure(
                key.len() == node.key_len(position),
                "a key of another length",
            )?;
            let found = node.search(&key);
            ensure(
                found.is_equal && found.position == position,
                "a key that a search does not find",
            )?;
            keys.push(key);
        }
        ensure(keys.is_sorted_by(|a, b| a < b), "keys out of order")?;
        if let (Some(first), Some(last)) = (keys.first(), keys.last()) {
            ensure(
                low.is_none_or(|low| low <= &first[..]),
                "a key below its separator",
            )?;
            ensure(
                high.is_none_or(|high| &last[..] < high),
                "a key above its separator",
            )?;
        }
        if level == 0 {
            seen.entry_count += keys.len() as u64;
            return Ok(());
        }
        for index in 0..node.child_count() {
            let below = index.checked_sub(1).map(|at| &keys[at][..]).or(low);
            let above = keys.get(index).map(|key| &key[..]).or(high);
            self.verify_node(node.child(index), level - 1, below, above, seen)?;
        }
        Ok(())
    }
}

fn verify_layout(node: Node<'_>) -> Result<()> {
    let count = node.count();
    let slots_end = HEADER_BYTES + count * size_of::<u64>();
    ensure(
        slots_end <= node.heap_start(),
        "slots of a node behind its heap",
    )?;
    let prefix_len = node.prefix().len();
    let mut used = heap_bytes_of_prefix(prefix_len);
    for position in 0..count {
        let slot = node.slot(position);
        let bytes = node.payload_bytes() + slot.len().saturating_sub(HEAD_BYTES);
        ensure(
            slot.at() >= node.heap_start() && slot.at() + bytes <= node.bytes().len(),
            "an entry outside of the heap",
        )?;
        used += bytes;
    }
    ensure(
        node.heap_start() + used + node.dead_bytes() == node.bytes().len(),
        "a heap of other bytes than its entries",
    )?;
    ensure(
        INLINE_PREFIX_AT < HINTS_AT && prefix_len <= node.bytes().len(),
        "a prefix outside of its node",
    )?;
    let distance = count / (HINTS + 1);
    if distance > 0 {
        let hints = node.bytes()[HINTS_AT..HEADER_BYTES].as_chunks::<4>().0;
        for (hint, number) in hints.iter().zip(1..) {
            let head = node.slot(number * distance).head();
            ensure(u32::from_le_bytes(*hint) == head, "a hint of another key")?;
        }
    }
    Ok(())
}
