//! Changes of a tree: the leaf that is held between them, and the calls for single ones.
//!
//! **Owns** one pinned page while keys fall into it. **Never** holds an inner node between calls.

use mayfly_space::WriteGuard;

use super::edit::NodeMut;
use super::node::Node;
use super::{Payload, Tree};
use crate::error::Result;

/// A leaf that is pinned for changes.
pub(super) struct Held {
    pub(super) number: u32,
    pub(super) guard: WriteGuard,
}

/// Makes many changes: the leaf of the last one stays pinned, so that changes in or near key
/// order cost no pins.
///
/// Pins one page between calls, and inside an insertion that cuts nodes two or three a level.
pub struct Writer<'t> {
    tree: &'t mut Tree,
    held: Option<Held>,
}

impl Tree {
    /// A writer.
    pub fn writer(&mut self) -> Writer<'_> {
        Writer {
            tree: self,
            held: None,
        }
    }

    /// Inserts an entry. If there is one of this key, nothing changes and its payload is returned.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`](crate::Error::KeyTooLong),
    /// [`Error::PayloadWidth`](crate::Error::PayloadWidth), or an error of the space. The tree is
    /// then as it was.
    pub fn insert(&mut self, key: &[u8], payload: &[u8]) -> Result<Option<Payload>> {
        self.insert_held(&mut None, key, payload)
    }

    /// Changes the payload of a key and returns the one before; `None`, and no change, if there
    /// is no such key.
    ///
    /// # Errors
    /// As for [`Tree::insert`]. The tree is then as it was.
    pub fn update(&mut self, key: &[u8], payload: &[u8]) -> Result<Option<Payload>> {
        self.update_held(&mut None, key, payload)
    }

    /// Removes an entry and returns its payload; `None` if there is no such key. Allocates
    /// nothing but the copies of a fork, and pins what [`Tree::get`] pins.
    ///
    /// # Errors
    /// An error of the space if the leaf or the way to it cannot be read. The tree is then as it
    /// was.
    pub fn remove(&mut self, key: &[u8]) -> Result<Option<Payload>> {
        self.remove_held(&mut None, key)
    }

    /// Makes the leaf that `key` belongs to the one that is held. The tree is not empty.
    pub(super) fn hold(&mut self, held: &mut Option<Held>, key: &[u8]) -> Result<()> {
        let (number, above) = match self.hint.leaf_of(key) {
            Some(leaf) => (leaf, None),
            None => {
                // Its pin goes before others come.
                *held = None;
                self.descend(key)?
            }
        };
        if held.as_ref().is_none_or(|held| held.number != number) {
            *held = None;
            let guard = self.pages.move_to_write(above, number)?;
            *held = Some(Held { number, guard });
        }
        Ok(())
    }

    fn update_held(
        &mut self,
        held: &mut Option<Held>,
        key: &[u8],
        payload: &[u8],
    ) -> Result<Option<Payload>> {
        self.check_payload(payload)?;
        if self.is_empty() {
            return Ok(None);
        }
        self.hold(held, key)?;
        let guard = &mut held.as_mut().expect("the leaf is held").guard;
        let node = Node::new(guard);
        let found = node.search(key);
        if !found.is_equal {
            return Ok(None);
        }
        let before = Payload::new(node.payload(found.position));
        NodeMut::new(guard).set_payload(found.position, payload);
        Ok(Some(before))
    }
}

impl Writer<'_> {
    /// As [`Tree::insert`].
    ///
    /// # Errors
    /// As for [`Tree::insert`].
    pub fn insert(&mut self, key: &[u8], payload: &[u8]) -> Result<Option<Payload>> {
        self.tree.insert_held(&mut self.held, key, payload)
    }

    /// As [`Tree::update`].
    ///
    /// # Errors
    /// As for [`Tree::update`].
    pub fn update(&mut self, key: &[u8], payload: &[u8]) -> Result<Option<Payload>> {
        self.tree.update_held(&mut self.held, key, payload)
    }

    /// As [`Tree::remove`].
    ///
    /// # Errors
    /// As for [`Tree::remove`].
    pub fn remove(&mut self, key: &[u8]) -> Result<Option<Payload>> {
        self.tree.remove_held(&mut self.held, key)
    }

    /// Removes the entries of ascending keys and counts those that went in `done`: all of them, or
    /// those before the first key that has no entry.
    ///
    /// # Errors
    /// As for [`Tree::remove`]; what was counted has gone.
    pub fn remove_sorted<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        done: &mut usize,
    ) -> Result<()> {
        self.tree.remove_sorted(&mut self.held, keys, done)
    }

    /// The tree as it is at this moment. Gives the held leaf back first, since reading a page that
    /// is held for changes would wait for ever.
    pub fn tree(&mut self) -> &Tree {
        self.held = None;
        self.tree
    }
}
