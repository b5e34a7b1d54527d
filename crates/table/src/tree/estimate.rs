//! How many entries a range of keys holds, without counting them.
//!
//! **Owns** nothing. **Never** reads more than the ways to both ends of the range.
//!
//! Both ways are compared from the root. Below the node where they part, the children between
//! them count with the average of their level, and the leaves at both ends exactly. A range inside
//! one leaf is counted exactly.

use super::cursor::End;
use super::node::Node;
use super::{KeyRange, Tree};
use crate::error::Result;

/// Where a way goes in one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    index: usize,
    count: usize,
}

impl Tree {
    /// About how many entries the range holds.
    ///
    /// # Errors
    /// Those of [`Page::read`](mayfly_space::Page::read).
    pub fn estimate(&self, range: KeyRange<'_>) -> Result<u64> {
        if self.levels.is_empty() {
            return Ok(0);
        }
        let low = self.turns(range, End::First)?;
        let high = self.turns(range, End::Last)?;
        let leaf = self.levels.len() - 1;
        let parted = low.iter().zip(&high).position(|(low, high)| low != high);
        let Some(parted) = parted else {
            return Ok(0);
        };
        let between = |from: usize, to: usize, depth: usize| {
            let children = to.saturating_sub(from) as f64;
            children * self.entries_each(leaf - depth)
        };
        let (first, last) = (low[parted], high[parted]);
        if parted == leaf || last.index <= first.index {
            return Ok(last.index.saturating_sub(first.index) as u64);
        }
        let mut sum = between(first.index + 1, last.index, parted);
        for depth in parted + 1..=leaf {
            // In an inner node the child on the way is counted below; in a leaf there is none.
            let on_way = usize::from(depth < leaf);
            sum += between(low[depth].index + on_way, low[depth].count, depth);
            sum += between(0, high[depth].index, depth);
        }
        Ok((sum.round() as u64).min(self.entry_count))
    }

    /// The entries below each slot of a node at a level, on average; 1 for leaves.
    fn entries_each(&self, level: usize) -> f64 {
        match level.checked_sub(1) {
            None => 1.0,
            Some(below) => self.entry_count as f64 / self.levels[below] as f64,
        }
    }

    fn turns(&self, range: KeyRange<'_>, end: End) -> Result<Vec<Turn>> {
        let mut turns = Vec::with_capacity(self.levels.len());
        let mut number = self.root;
        for _ in 1..self.levels.len() {
            let guard = self.pages.read(number)?;
            let node = Node::new(&guard);
            let index = range.child_index(end, node);
            let count = node.child_count();
            turns.push(Turn { index, count });
            number = node.child(index);
        }
        let guard = self.pages.read(number)?;
        let node = Node::new(&guard);
        let index = range.leaf_index(end, node);
        let count = node.count();
        turns.push(Turn { index, count });
        Ok(turns)
    }
}
