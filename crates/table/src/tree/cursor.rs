//! Reading near one place of a tree again and again.
//!
//! **Owns** pins on the way from the root to a leaf: one page a level. **Never** outlives a change
//! of the tree, which its borrow sees to.
//!
//! A search begins in the leaf at hand: keys between its first and its last are found there
//! without a look at any other page. Others go down from the root, but only pin what was not on the
//! way before. Neighbouring leaves are found through the inner nodes, and asked for ahead when
//! several are read in a row.

use mayfly_space::ReadGuard;

use super::Tree;
use super::node::Node;
use crate::error::Result;

/// Leaves that are asked for ahead of a scan: 64 KiB, of which the device reads neighbours at once.
const AHEAD: usize = 4;

/// A place between the entries of a tree or at one of them.
///
/// Pins one page a level, see [`TreeStatistics::height`](super::TreeStatistics::height). After an
/// error it is at no entry; any call that seeks may be tried again.
pub struct Cursor<'t> {
    // Fixed.
    tree: &'t Tree,
    // State.
    /// From the root; as many as there are inner levels, once a leaf is pinned.
    path: Vec<Pinned>,
    leaf: Option<Pinned>,
    is_at_entry: bool,
    /// Leaves passed in one direction since the last search.
    passed: usize,
    key: Vec<u8>,
}

/// A pinned node, and the child that the way goes on to or the position in a leaf.
struct Pinned {
    number: u32,
    guard: ReadGuard,
    index: usize,
}

impl Pinned {
    fn node(&self) -> Node<'_> {
        Node::new(&self.guard)
    }
}

/// Which end of a node a way goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
}

impl Tree {
    /// A cursor at no entry.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            tree: self,
            path: Vec::new(),
            leaf: None,
            is_at_entry: false,
            passed: 0,
            key: Vec::new(),
        }
    }
}

impl Cursor<'_> {
    /// Whether the cursor is at an entry.
    pub fn is_at_entry(&self) -> bool {
        self.is_at_entry
    }

    /// The key of the entry; empty if the cursor is at none.
    pub fn key(&mut self) -> &[u8] {
        self.key.clear();
        if self.is_at_entry
            && let Some(leaf) = &self.leaf
        {
            leaf.node().copy_key(leaf.index, &mut self.key);
        }
        &self.key
    }

    /// The payload of the entry; empty if the cursor is at none.
    pub fn payload(&self) -> &[u8] {
        match &self.leaf {
            Some(leaf) if self.is_at_entry => leaf.node().payload(leaf.index),
            _ => &[],
        }
    }

    /// Goes to the first entry whose key is not below `key`; returns whether it is `key` itself.
    ///
    /// # Errors
    /// Those of [`Page::read`](mayfly_space::Page::read).
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        if let Some(leaf) = &mut self.leaf {
            let node = Node::new(&leaf.guard);
            let found = node.search(key);
            if found.is_equal || (1..node.count()).contains(&found.position) {
                leaf.index = found.position;
                self.is_at_entry = true;
                return Ok(found.is_equal);
            }
        }
        self.passed = 0;
        self.descend(|node| node.child_index(key))?;
        let Some(leaf) = &mut self.leaf else {
            return Ok(false);
        };
        let node = Node::new(&leaf.guard);
        let found = node.search(key);
        leaf.index = found.position;
        self.is_at_entry = found.position < node.count();
        if !self.is_at_entry {
            self.neighbour(End::First)?;
        }
        Ok(found.is_equal)
    }

    /// Goes to the last entry whose key is below `key`; returns whether there is one.
    ///
    /// # Errors
    /// As for [`Cursor::seek`].
    pub fn seek_before(&mut self, key: &[u8]) -> Result<bool> {
        self.passed = 0;
        self.descend(|node| node.child_index(key))?;
        let Some(leaf) = &mut self.leaf else {
            return Ok(false);
        };
        let position = Node::new(&leaf.guard).search(key).position;
        self.is_at_entry = position > 0;
        if self.is_at_entry {
            leaf.index = position - 1;
        } else {
            self.neighbour(End::Last)?;
        }
        Ok(self.is_at_entry)
    }

    /// Goes to the first entry; returns whether there is one.
    ///
    /// # Errors
    /// As for [`Cursor::seek`].
    pub fn seek_first(&mut self) -> Result<bool> {
        self.seek_end(End::First)
    }

    /// Goes to the last entry; returns whether there is one.
    ///
    /// # Errors
    /// As for [`Cursor::seek`].
    pub fn seek_last(&mut self) -> Result<bool> {
        self.seek_end(End::Last)
    }

    fn seek_end(&mut self, end: End) -> Result<bool> {
        self.passed = 0;
        self.descend(|node| end.child_index(node))?;
        self.enter(end)
    }

    /// Goes to the next entry; returns whether there is one. Stays at none when it is at none.
    ///
    /// # Errors
    /// As for [`Cursor::seek`].
    pub fn next_entry(&mut self) -> Result<bool> {
        match &mut self.leaf {
            Some(leaf) if self.is_at_entry => {
                leaf.index += 1;
                if leaf.index < Node::new(&leaf.guard).count() {
                    return Ok(true);
                }
                self.neighbour(End::First)
            }
            _ => Ok(false),
        }
    }

    /// Goes to the entry before; returns whether there is one. Stays at none when it is at none.
    ///
    /// # Errors
    /// As for [`Cursor::seek`].
    pub fn previous_entry(&mut self) -> Result<bool> {
        match &mut self.leaf {
            Some(leaf) if self.is_at_entry => {
                if leaf.index > 0 {
                    leaf.index -= 1;
                    return Ok(true);
                }
                self.neighbour(End::Last)
            }
            _ => Ok(false),
        }
    }

    /// The node of the leaf at hand and the position in it, if the cursor is at an entry.
    pub(super) fn place(&self) -> Option<(Node<'_>, usize)> {
        let leaf = self.leaf.as_ref().filter(|_| self.is_at_entry)?;
        Some((leaf.node(), leaf.index))
    }

    /// Makes the leaf at hand count as a place, even if it is empty; returns whether there is one.
    pub(super) fn stand(&mut self) -> bool {
        self.is_at_entry = self.leaf.is_some();
        self.is_at_entry
    }

    /// Goes down from the root, by the child that `choose` says, keeping the pins that the new way
    /// shares with the old.
    pub(super) fn descend(&mut self, choose: impl Fn(Node<'_>) -> usize) -> Result<()> {
        self.is_at_entry = false;
        let result = self.try_descend(choose);
        result.inspect_err(|_| self.let_go())
    }

    /// Forgets a way that was not finished.
    fn let_go(&mut self) {
        self.path.clear();
        self.leaf = None;
    }

    fn try_descend(&mut self, choose: impl Fn(Node<'_>) -> usize) -> Result<()> {
        let mut number = self.tree.root;
        for depth in 1..self.tree.levels.len() {
            if self
                .path
                .get(depth - 1)
                .is_none_or(|at| at.number != number)
            {
                self.path.truncate(depth);
                self.pin_inner(depth - 1, number)?;
            }
            let step = &mut self.path[depth - 1];
            step.index = choose(Node::new(&step.guard));
            number = step.node().child(step.index);
        }
        if !self.tree.levels.is_empty() && self.leaf.as_ref().is_none_or(|at| at.number != number) {
            self.pin_leaf(number)?;
        }
        Ok(())
    }

    /// Pins an inner node at a depth, in the place of the last one pinned if that is there.
    fn pin_inner(&mut self, depth: usize, number: u32) -> Result<()> {
        let before = if self.path.len() > depth {
            self.path.pop()
        } else {
            None
        };
        let guard = match before {
            Some(step) => self.tree.pages.move_to(step.guard, number)?,
            None => self.tree.pages.read(number)?,
        };
        self.path.push(Pinned {
            number,
            guard,
            index: 0,
        });
        Ok(())
    }

    /// Pins a leaf in the place of the one before.
    fn pin_leaf(&mut self, number: u32) -> Result<()> {
        let guard = match self.leaf.take() {
            Some(leaf) => self.tree.pages.move_to(leaf.guard, number)?,
            None => self.tree.pages.read(number)?,
        };
        self.leaf = Some(Pinned {
            number,
            guard,
            index: 0,
        });
        Ok(())
    }

    /// Goes to an end of the leaf at hand, or on to further leaves while they are empty.
    fn enter(&mut self, end: End) -> Result<bool> {
        self.is_at_entry = false;
        let Some(leaf) = &mut self.leaf else {
            return Ok(false);
        };
        let count = Node::new(&leaf.guard).count();
        if count == 0 {
            return self.neighbour(end);
        }
        leaf.index = match end {
            End::First => 0,
            End::Last => count - 1,
        };
        self.is_at_entry = true;
        Ok(true)
    }

    /// Goes to the nearest entry in the leaves behind the one at hand (first end) or before it
    /// (last end).
    pub(super) fn neighbour(&mut self, end: End) -> Result<bool> {
        self.is_at_entry = false;
        loop {
            match self.try_neighbour(end) {
                Ok(Some(0)) => {}
                Ok(Some(_)) => return self.enter(end),
                Ok(None) => return Ok(false),
                Err(error) => {
                    self.let_go();
                    return Err(error);
                }
            }
        }
    }

    /// Pins the leaf beside the one at hand and returns how many entries it has.
    fn try_neighbour(&mut self, end: End) -> Result<Option<usize>> {
        let turn = self
            .path
            .iter()
            .rposition(|step| end.beside(step.index, step.node()).is_some());
        let Some(turn) = turn else {
            return Ok(None);
        };
        self.path.truncate(turn + 1);
        let step = &mut self.path[turn];
        let beside = end.beside(step.index, Node::new(&step.guard));
        step.index = beside.expect("the way turns where it can");
        let mut number = step.node().child(step.index);
        for depth in turn + 1..self.tree.levels.len() - 1 {
            self.pin_inner(depth, number)?;
            let step = self.path.last_mut().expect("just pinned");
            step.index = end.child_index(Node::new(&step.guard));
            number = step.node().child(step.index);
        }
        self.look_ahead(end);
        self.pin_leaf(number)?;
        Ok(self.leaf.as_ref().map(|leaf| leaf.node().count()))
    }

    /// Asks for the leaves that come next, once several have been passed.
    fn look_ahead(&mut self, end: End) {
        self.passed += 1;
        let Some(step) = self.path.last() else {
            return;
        };
        if self.passed < 2 {
            return;
        }
        let mut index = step.index;
        for _ in 0..AHEAD {
            let Some(beside) = end.beside(index, step.node()) else {
                return;
            };
            index = beside;
            self.tree.pages.page(step.node().child(index)).prefetch();
        }
    }
}

impl End {
    /// The child at this end.
    fn child_index(self, node: Node<'_>) -> usize {
        match self {
            End::First => 0,
            End::Last => node.child_count() - 1,
        }
    }

    /// The child that a way takes which comes from the child at `index` and enters the next one at
    /// this end.
    fn beside(self, index: usize, node: Node<'_>) -> Option<usize> {
        match self {
            End::First => Some(index + 1).filter(|&next| next < node.child_count()),
            End::Last => index.checked_sub(1),
        }
    }
}
