//! Building a tree from entries that are sorted already.
//!
//! **Owns** the right edge of the tree: one pinned page a level. **Never** searches, and reads no
//! page again.
//!
//! Each leaf is filled to the part that was asked for; then the next one is begun, and a separator
//! goes to the level above, which is filled in the same way.

use mayfly_space::{Account, PageClass, WriteGuard};

use super::Tree;
use super::edit::NodeMut;
use super::key::common_len;
use super::node::{CHILD_BYTES, NODE_BYTES};
use crate::error::{Error, Result};

/// The least part of a node that may be filled, in percent; half, as after cutting.
const LEAST_FILL: u8 = 50;

/// Builds a tree from entries in ascending order of their keys.
///
/// Pins one page a level. After an error of the space nothing has changed, and the same entry may
/// be pushed again.
pub struct Builder {
    // Fixed.
    fill_percent: usize,
    // State.
    tree: Tree,
    last_key: Vec<u8>,
    // Resources.
    /// The last node of each level, leaves first.
    edge: Vec<WriteGuard>,
}

impl Tree {
    /// Builds a tree from entries in ascending order of their keys; see [`Builder`].
    ///
    /// # Errors
    /// As for [`Builder::push`], and errors among the entries. Every page is freed then.
    pub fn build<K, P>(
        account: &Account,
        payload_bytes: usize,
        fill_percent: u8,
        entries: impl IntoIterator<Item = Result<(K, P)>>,
    ) -> Result<Tree>
    where
        K: AsRef<[u8]>,
        P: AsRef<[u8]>,
    {
        let mut builder = Builder::new(account, payload_bytes, fill_percent);
        for entry in entries {
            let (key, payload) = entry?;
            builder.push(key.as_ref(), payload.as_ref())?;
        }
        Ok(builder.finish())
    }
}

impl Builder {
    /// A builder that fills nodes to `fill_percent`, between 50 and 100: full for a tree that is
    /// only read, less where more keys will come in between.
    ///
    /// # Panics
    /// If payloads have more than [`MAX_PAYLOAD_BYTES`](super::MAX_PAYLOAD_BYTES).
    pub fn new(account: &Account, payload_bytes: usize, fill_percent: u8) -> Self {
        Self {
            fill_percent: usize::from(fill_percent.clamp(LEAST_FILL, 100)),
            tree: Tree::new(account, payload_bytes),
            last_key: Vec::new(),
            edge: Vec::new(),
        }
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`] or [`Error::KeyOrder`] if the key is not above the last one,
    /// [`Error::KeyTooLong`], [`Error::PayloadWidth`], or an error of the space. The entry is not
    /// in the tree then; others may follow.
    pub fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        self.tree.check_key(key)?;
        self.tree.check_payload(payload)?;
        let entry_index = self.tree.entry_count;
        if entry_index > 0 {
            match key.cmp(&self.last_key) {
                std::cmp::Ordering::Greater => {}
                std::cmp::Ordering::Equal => return Err(Error::DuplicateKey { entry_index }),
                std::cmp::Ordering::Less => return Err(Error::KeyOrder { entry_index }),
            }
        }
        if self.edge.is_empty() {
            let mut leaf = self.tree.pages.allocate(PageClass::K4)?;
            NodeMut::format(&mut leaf, 0, self.tree.payload_bytes);
            self.tree.root = self.tree.pages.adopt(leaf.page().clone());
            self.tree.levels.push(1);
            self.edge.push(leaf);
        }
        let fill = self.fill_percent;
        // Twice at most: a larger leaf may have no room either, an empty one has it.
        while !append(&mut self.edge[0], key, payload, fill) {
            self.make_room(key)?;
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.tree.entry_count += 1;
        Ok(())
    }

    /// The tree.
    pub fn finish(self) -> Tree {
        self.tree
    }

    /// Makes the leaf larger, or begins the next one, which `key` goes to.
    fn make_room(&mut self, key: &[u8]) -> Result<()> {
        if self.edge[0].len() < NODE_BYTES {
            return self.tree.enlarge(self.tree.root, &mut self.edge[0]);
        }
        let fill = self.fill_percent;
        let separator = &key[..common_len(&self.last_key, key) + 1];
        // Every page that is needed comes first: a leaf, a node at each level that is full, and a
        // root above them if all are.
        let mut fresh = vec![self.tree.pages.allocate(PageClass::K16)?];
        let mut level = 1;
        while level < self.edge.len() && !has_room(&mut self.edge[level], separator, fill) {
            fresh.push(self.tree.pages.allocate(PageClass::K16)?);
            level += 1;
        }
        let mut root = None;
        if level == self.edge.len() {
            root = Some(self.tree.pages.allocate(PageClass::K16)?);
        }
        let mut child = 0;
        for (mut guard, level) in fresh.into_iter().zip(0..) {
            if level == 0 {
                NodeMut::format(&mut guard, level, self.tree.payload_bytes)
                    .expect_keys_near(&self.last_key, key);
            } else {
                NodeMut::format(&mut guard, level, CHILD_BYTES).set_first_child(child);
            }
            child = self.tree.pages.adopt(guard.page().clone());
            self.tree.levels[level] += 1;
            self.edge[level] = guard;
        }
        if let Some(mut guard) = root {
            NodeMut::format(&mut guard, level, CHILD_BYTES).set_first_child(self.tree.root);
            self.tree.root = self.tree.pages.adopt(guard.page().clone());
            self.tree.levels.push(1);
            self.edge.push(guard);
        }
        let is_in = append(&mut self.edge[level], separator, &child.to_le_bytes(), fill);
        assert!(is_in, "room was found or made");
        Ok(())
    }
}

/// Makes sure that `key` can be appended to a node that is filled to a part only; `false` if it
/// cannot.
fn has_room(bytes: &mut [u8], key: &[u8], fill_percent: usize) -> bool {
    NodeMut::new(bytes).make_room_at_end(key, fill_percent)
}

fn append(bytes: &mut [u8], key: &[u8], payload: &[u8], fill_percent: usize) -> bool {
    if !has_room(bytes, key, fill_percent) {
        return false;
    }
    let mut node = NodeMut::new(bytes);
    let position = node.node().count();
    node.insert(position, key, payload, false)
}
