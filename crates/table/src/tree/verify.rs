//! Checks of everything that has to hold in a tree, for tests.
//!
//! **Owns** nothing. **Never** called by the tree itself.

use super::Tree;
use super::node::{
    CHILD_BYTES, HEAD_BYTES, HEADER_BYTES, HINTS, HINTS_AT, INLINE_PREFIX_AT, NODE_BYTES, Node,
    heap_bytes_of_prefix,
};
use crate::error::Result;

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
    /// Those of [`Page::read`](mayfly_space::Page::read).
    ///
    /// # Panics
    /// If something does not hold.
    pub fn verify(&self) -> Result<()> {
        let mut seen = Seen {
            pages: vec![false; self.pages.number_count()],
            levels: vec![0; self.levels.len()],
            entry_count: 0,
        };
        if let Some(level) = self.levels.len().checked_sub(1) {
            self.verify_node(self.root, level, None, None, &mut seen)?;
        }
        assert_eq!(seen.levels, self.levels, "nodes of each level");
        assert_eq!(seen.entry_count, self.entry_count, "entries");
        let reached = seen.pages.iter().filter(|&&seen| seen).count();
        assert_eq!(reached, self.pages.live_count(), "pages without a parent");
        assert!(
            self.levels.len() < 2 || self.entry_count > 0,
            "an empty tree has one leaf at most"
        );
        Ok(())
    }

    fn verify_node(
        &self,
        number: u32,
        level: usize,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        seen: &mut Seen,
    ) -> Result<()> {
        let guard = self.pages.read(number)?;
        let node = Node::new(&guard);
        assert!(
            !seen.pages[number as usize],
            "page {number} has two parents"
        );
        seen.pages[number as usize] = true;
        seen.levels[level] += 1;
        assert_eq!(node.level(), level, "level of page {number}");
        let is_only = self.levels.len() == 1;
        assert!(
            guard.len() == NODE_BYTES || is_only,
            "small pages are alone"
        );
        let payload_bytes = if level == 0 {
            self.payload_bytes
        } else {
            CHILD_BYTES
        };
        assert_eq!(node.payload_bytes(), payload_bytes, "payloads of {number}");
        verify_layout(node);
        let keys: Vec<Vec<u8>> = (0..node.count())
            .map(|position| {
                let mut key = Vec::new();
                node.copy_key(position, &mut key);
                assert_eq!(key.len(), node.key_len(position));
                let found = node.search(&key);
                assert!(found.is_equal && found.position == position, "search");
                key
            })
            .collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "order in page {number}");
        if let (Some(first), Some(last)) = (keys.first(), keys.last()) {
            assert!(low.is_none_or(|low| low <= &first[..]), "lower bound");
            assert!(high.is_none_or(|high| &last[..] < high), "upper bound");
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

fn verify_layout(node: Node<'_>) {
    let count = node.count();
    let slots_end = HEADER_BYTES + count * size_of::<u64>();
    assert!(slots_end <= node.heap_start(), "slots end before the heap");
    let prefix_len = node.prefix().len();
    let mut used = heap_bytes_of_prefix(prefix_len);
    for position in 0..count {
        let slot = node.slot(position);
        let bytes = node.payload_bytes() + slot.len().saturating_sub(HEAD_BYTES);
        assert!(slot.at() >= node.heap_start(), "inside the heap");
        assert!(slot.at() + bytes <= node.bytes().len(), "inside the page");
        used += bytes;
    }
    assert_eq!(
        node.heap_start() + used + node.dead_bytes(),
        node.bytes().len(),
        "heap bytes add up"
    );
    assert!(INLINE_PREFIX_AT < HINTS_AT && prefix_len <= node.bytes().len());
    let distance = count / (HINTS + 1);
    if distance > 0 {
        let hints = node.bytes()[HINTS_AT..HEADER_BYTES].as_chunks::<4>().0;
        for (hint, number) in hints.iter().zip(1..) {
            let head = node.slot(number * distance).head();
            assert_eq!(u32::from_le_bytes(*hint), head, "hint {number}");
        }
    }
}
