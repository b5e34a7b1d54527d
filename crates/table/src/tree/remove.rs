//! Removal, which never allocates; only a fork copies the pages that it changes.
//!
//! **Owns** nothing between calls. **Never** fails for what only tidies up: a leaf that became
//! empty stays if the page of its parent cannot be had, and neighbours are merged only if both are
//! in memory.
//!
//! **Cost**: an entry that goes from the front of a leaf moves all slots behind it. Where many go,
//! in the order of their keys, those of a leaf go at once.

use super::edit::{NodeMut, merged};
use super::node::{NODE_BYTES, Node};
use super::writer::Held;
use super::{Payload, Tree};
use crate::error::Result;

/// A leaf with less than this part of its capacity in use looks for a neighbour to be merged with,
const SPARSE_PART: usize = 4;
/// each time its count is a multiple of this, because looking costs three pins.
const LOOK_EVERY: usize = 16;
/// Merged leaves leave this part of their capacity free, so that they are not cut again soon.
const FREE_PART: usize = 4;

impl Tree {
    pub(super) fn remove_held(
        &mut self,
        held: &mut Option<Held>,
        key: &[u8],
    ) -> Result<Option<Payload>> {
        if self.is_empty() {
            return Ok(None);
        }
        self.hold(held, key)?;
        let leaf = held.as_mut().expect("the leaf is held");
        let node = Node::new(&leaf.guard);
        let found = node.search(key);
        if !found.is_equal {
            return Ok(None);
        }
        let payload = Payload::new(node.payload(found.position));
        let mut node = NodeMut::new(&mut leaf.guard);
        node.remove(found.position);
        self.entry_count -= 1;
        if self.entry_count == 0 {
            *held = None;
            self.clear();
            return Ok(Some(payload));
        }
        let node = node.node();
        let is_sparse = node.used_bytes() < node.capacity() / SPARSE_PART;
        if node.count() == 0 {
            let number = leaf.number;
            *held = None;
            // What cannot be read stays, and the next change finds out why.
            let _stays = self.unlink(number, key);
        } else if is_sparse && node.count().is_multiple_of(LOOK_EVERY) && self.levels.len() > 1 {
            let _stays = self.merge(held, key);
        }
        Ok(Some(payload))
    }

    /// Removes the entries of ascending keys, those of a leaf at once, and counts them in `done`.
    /// Ends at the first key that has no entry.
    pub(super) fn remove_sorted<'k>(
        &mut self,
        held: &mut Option<Held>,
        keys: impl Iterator<Item = &'k [u8]>,
        done: &mut usize,
    ) -> Result<()> {
        let mut positions = Vec::new();
        let mut last: &[u8] = &[];
        for key in keys {
            let mut found = held
                .as_ref()
                .map(|leaf| Node::new(&leaf.guard).search(key))
                .filter(|found| found.is_equal);
            if found.is_none() {
                *done += self.remove_positions(held, &mut positions, last);
                if self.is_empty() {
                    return Ok(());
                }
                self.hold(held, key)?;
                let leaf = held.as_ref().expect("the leaf is held");
                found = Some(Node::new(&leaf.guard).search(key));
            }
            let found = found.filter(|found| {
                let is_next = positions.last().is_none_or(|last| found.position > *last);
                found.is_equal && is_next
            });
            let Some(found) = found else {
                break;
            };
            positions.push(found.position);
            last = key;
        }
        *done += self.remove_positions(held, &mut positions, last);
        Ok(())
    }

    /// Removes entries of the held leaf, of which `key` is one; how many they were.
    fn remove_positions(
        &mut self,
        held: &mut Option<Held>,
        positions: &mut Vec<usize>,
        key: &[u8],
    ) -> usize {
        let count = positions.len();
        let Some(leaf) = held.as_mut().filter(|_| count > 0) else {
            return 0;
        };
        let mut node = NodeMut::new(&mut leaf.guard);
        node.remove_all(positions);
        positions.clear();
        self.entry_count -= count as u64;
        let node = node.node();
        if self.entry_count == 0 {
            *held = None;
            self.clear();
        } else if node.count() == 0 {
            let number = leaf.number;
            *held = None;
            // As for one entry.
            let _stays = self.unlink(number, key);
        } else if node.used_bytes() < node.capacity() / SPARSE_PART && self.levels.len() > 1 {
            let _stays = self.merge(held, key);
        }
        count
    }

    /// Frees an empty leaf and the ancestors that lead to nothing else.
    fn unlink(&mut self, leaf: u32, key: &[u8]) -> Result<()> {
        self.find_path(key)?;
        debug_assert_eq!(self.hint.leaf(), Some(leaf));
        let mut empty = 1;
        for step in self.path.iter().rev() {
            let guard = self.pages.read(step.number)?;
            if Node::new(&guard).child_count() > 1 {
                break;
            }
            empty += 1;
        }
        // Some node on the way leads to the entries that are left.
        let step = self.path[self.path.len() - empty];
        let mut guard = self.pages.write(step.number)?;
        NodeMut::new(&mut guard).remove_child(step.index);
        drop(guard);
        self.pages.release(leaf);
        self.levels[0] -= 1;
        for level in 1..empty {
            let inner = self.path[self.path.len() - level];
            self.pages.release(inner.number);
            self.levels[level] -= 1;
        }
        self.forget_way();
        self.lower_root()
    }

    /// Makes the only child of the root the root.
    fn lower_root(&mut self) -> Result<()> {
        while self.levels.len() > 1 {
            let guard = self.pages.read(self.root)?;
            let node = Node::new(&guard);
            if node.child_count() > 1 {
                return Ok(());
            }
            let child = node.child(0);
            drop(guard);
            self.pages.release(self.root);
            self.root = child;
            self.levels.pop();
        }
        Ok(())
    }

    /// Merges the held leaf with a neighbour under the same parent, if that is in memory and both
    /// fit into one page.
    fn merge(&mut self, held: &mut Option<Held>, key: &[u8]) -> Result<()> {
        self.find_path(key)?;
        let step = *self.path.last().expect("there is a level above");
        let Some(leaf) = held else { return Ok(()) };
        let parent = self.pages.read(step.number)?;
        let node = Node::new(&parent);
        let index = step.index;
        let neighbours = [index.checked_sub(1), Some(index + 1)];
        let mut chosen = None;
        for other in neighbours.into_iter().flatten() {
            if other >= node.child_count() {
                continue;
            }
            let number = node.child(other);
            if !self.pages.page(number).is_resident() {
                continue;
            }
            let guard = self.pages.read(number)?;
            let (here, there) = (Node::new(&leaf.guard), Node::new(&guard));
            let (left, right) = if other < index {
                (there, here)
            } else {
                (here, there)
            };
            let (bytes, prefix_len) = merged(left, right);
            if bytes <= left.capacity() - left.capacity() / FREE_PART {
                chosen = Some((other, number, prefix_len));
                break;
            }
        }
        drop(parent);
        let Some((other, number, prefix_len)) = chosen else {
            return Ok(());
        };
        let mut parent = self.pages.write(step.number)?;
        let other_guard = self.pages.read(number)?;
        let (mut copy, there) = ([0; NODE_BYTES], Node::new(&other_guard));
        let copy = &mut copy[..leaf.guard.len()];
        copy.copy_from_slice(&leaf.guard);
        let here = Node::new(copy);
        let (left, right) = if other < index {
            (there, here)
        } else {
            (here, there)
        };
        let mut node = NodeMut::format(&mut leaf.guard, 0, self.payload_bytes);
        let parts = [(left, 0..left.count()), (right, 0..right.count())];
        node.append_all(&parts, prefix_len);
        drop(other_guard);
        // The page of this leaf stays. It takes the place of the left one of both.
        let mut parent_node = NodeMut::new(&mut parent);
        if other < index {
            parent_node.set_child(other, leaf.number);
            parent_node.remove_child(index);
        } else {
            parent_node.remove_child(other);
        }
        drop(parent);
        self.pages.release(number);
        self.levels[0] -= 1;
        self.forget_way();
        self.lower_root()
    }

    /// Forgets the way to the leaf of the last change: nodes on it have moved or gone.
    fn forget_way(&mut self) {
        self.path.clear();
        self.hint.forget();
    }
}
