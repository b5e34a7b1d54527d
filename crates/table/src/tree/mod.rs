//! A B+tree over pages of the temp space: the index of a table.
//!
//! **Owns** the pages of its nodes and the order of the keys in them. **Never** knows what a key
//! means or whose row a payload names, and takes no lock: one writer (`&mut self`) or any number of
//! readers (`&self`); who shares a tree brings the lock of the table.
//!
//! ```text
//!            +----------- inner: separators ------------+      level 1
//!            | first child |  k  |  p  |  t  |          |
//!            +------|---------|-----|-----|-------------+
//!                   v         v     v     v        children are numbers of pages
//!                 +-----+  +-----+ ...                         level 0
//!                 |a c f|  |k m n|     leaves: keys and payloads, sorted slots
//!                 +-----+  +-----+
//! ```
//!
//! Nodes are pages of 16 KiB like any other of the space: what nobody reads leaves memory when
//! room is needed and comes back when it is searched. An empty tree has no page, one of a few
//! rows a page of 4 KiB.
//!
//! Keys are byte strings of up to [`MAX_KEY_BYTES`] that compare as bytes, and differ. An index
//! that is not unique ends its keys with the row id ([`append_row_id`]) and has payloads of no
//! bytes; a unique one has the row id as its payload.
//!
//! # Ways in
//!
//! - [`Tree::get`], [`Tree::insert`], [`Tree::update`], [`Tree::remove`]: one key. The tree
//!   remembers which leaf the last change was in, and goes there at once while keys fall into it.
//! - [`Writer`]: many changes; the leaf stays pinned between them.
//! - [`Cursor`]: many reads; the way from the root stays pinned, one page a level.
//! - [`Builder`]: all entries at once, sorted.
//! - [`Tree::fork`]: reading the tree as it is now while it changes, or changing it while others
//!   read it as it is. Pages are copied when they are first changed.
//!
//! # Errors leave the tree as it was
//!
//! An insertion first decides what has to be cut, then pins and allocates every page that takes
//! part, and then changes them, which cannot fail. A removal allocates nothing (but the copies that
//! a fork makes); nodes that became empty are freed and small neighbours merged if the pages for it
//! are there, and otherwise stay, which is allowed. Inner nodes are not merged, only freed with
//! their last child.
//!
//! # Cost
//!
//! A search in a node reads two lines of header and hints, the slots between two hints at once,
//! and the entry. `mayfly bench tables` measures it against four dependent loads from memory: 10
//! million random keys of 8 bytes take 256 MiB, and a search among them about as long as those
//! loads (0.7 us on a machine that needs 160 ns a load). A cursor finds sorted keys in 25 to 40 ns
//! each. Ascending and descending insertions leave full leaves, random ones two thirds full. With a
//! quarter of the tree in memory, the time of random changes is that of reading pages.
//!
//! # Source
//!
//! Bayer and McCreight (1972) for the tree; Graefe, "Modern B-Tree Techniques" (2011); Leis et
//! al., "LeanStore" (ICDE 2018) for the node; Bayer and Unterauer, "Prefix B-Trees" (1977) for
//! separators. Nodes that are only freed when empty, and merged when that is free of cost, follow
//! Johnson and Shasha, "B-Trees with Inserts and Deletes: Why Free-at-Empty is Better than
//! Merge-at-Half" (1993).

mod build;
mod cursor;
mod cut;
mod edit;
mod estimate;
mod hint;
mod insert;
mod key;
mod node;
mod pages;
mod range;
mod remove;
mod verify;
mod writer;

pub use build::Builder;
pub use cursor::Cursor;
pub use key::{MAX_KEY_BYTES, MAX_PAYLOAD_BYTES, Payload, append_row_id, split_row_id};
pub use range::{KeyRange, Range};
pub use writer::Writer;

use mayfly_space::{Account, PageClass, ReadGuard};

use crate::error::{Error, Result};
use hint::Hint;
use node::Node;
use pages::Pages;

/// A B+tree. Dropping it frees every page.
pub struct Tree {
    // Fixed.
    payload_bytes: usize,
    // State.
    /// The number of the root's page; of no meaning while there is none.
    root: u32,
    /// Nodes at each level, leaves first; empty while the tree is.
    levels: Vec<u64>,
    entry_count: u64,
    hint: Hint,
    /// The way to the leaf of the last descent, from the root; empty when it is not known.
    path: Vec<Step>,
    // Resources.
    pages: Pages,
}

/// An inner node on the way to a leaf, and which of its children comes next.
#[derive(Debug, Clone, Copy)]
struct Step {
    number: u32,
    index: usize,
}

/// The shape of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TreeStatistics {
    /// Levels, leaves included; 0 for an empty tree.
    pub height: usize,
    /// Nodes that lead to others.
    pub inner_pages: u64,
    /// Nodes that hold entries.
    pub leaf_pages: u64,
    /// Entries.
    pub entries: u64,
}

impl Tree {
    /// An empty tree whose payloads have `payload_bytes` each: 8 for row ids, 0 for none.
    ///
    /// # Panics
    /// If that is more than [`MAX_PAYLOAD_BYTES`].
    pub fn new(account: &Account, payload_bytes: usize) -> Self {
        assert!(payload_bytes <= MAX_PAYLOAD_BYTES, "payloads are narrow");
        Self {
            payload_bytes,
            root: 0,
            levels: Vec::new(),
            entry_count: 0,
            hint: Hint::default(),
            path: Vec::new(),
            pages: Pages::new(account.clone()),
        }
    }

    /// The number of entries.
    pub fn len(&self) -> u64 {
        self.entry_count
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entry_count == 0
    }

    /// The bytes of each payload.
    pub fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// The account that the pages belong to.
    pub fn account(&self) -> &Account {
        self.pages.account()
    }

    /// The shape of the tree; costs nothing.
    pub fn statistics(&self) -> TreeStatistics {
        TreeStatistics {
            height: self.levels.len(),
            inner_pages: self.levels.iter().skip(1).sum(),
            leaf_pages: self.levels.first().copied().unwrap_or(0),
            entries: self.entry_count,
        }
    }

    /// Bytes of its pages, in memory or not; costs nothing.
    pub fn bytes(&self) -> u64 {
        match self.levels.len() {
            0 => 0,
            // A root that is a leaf may be a small page.
            1 => self.pages.page(self.root).len_bytes() as u64,
            _ => self.pages.live_count() as u64 * PageClass::K16.bytes() as u64,
        }
    }

    /// The payload of a key. Pins one page at a time.
    ///
    /// # Errors
    /// Those of [`Page::read`](mayfly_space::Page::read).
    pub fn get(&self, key: &[u8]) -> Result<Option<Payload>> {
        if self.levels.is_empty() {
            return Ok(None);
        }
        let mut guard = self.pages.read(self.root)?;
        for _ in 1..self.levels.len() {
            let node = Node::new(&guard);
            let child = node.child(node.child_index(key));
            guard = self.pages.move_to(guard, child)?;
        }
        let node = Node::new(&guard);
        let found = node.search(key);
        Ok(found
            .is_equal
            .then(|| Payload::new(node.payload(found.position))))
    }

    /// Whether there is an entry of this key.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// A tree with the same entries. Neither sees the changes of the other: a page that both have
    /// is copied before one of them changes it.
    pub fn fork(&self) -> Tree {
        Tree {
            payload_bytes: self.payload_bytes,
            root: self.root,
            levels: self.levels.clone(),
            entry_count: self.entry_count,
            hint: Hint::default(),
            path: Vec::new(),
            pages: self.pages.fork(),
        }
    }

    /// Removes all entries and frees all pages.
    pub fn clear(&mut self) {
        self.levels.clear();
        self.path.clear();
        self.hint.forget();
        self.entry_count = 0;
        self.pages.clear();
    }

    /// Goes down to the leaf of `key` and remembers the way; does not read the leaf. Returns the
    /// pin on its parent, to be moved on.
    fn descend(&mut self, key: &[u8]) -> Result<(u32, Option<ReadGuard>)> {
        let records = self.hint.begin();
        self.path.clear();
        let (mut number, mut held) = (self.root, None::<ReadGuard>);
        for _ in 1..self.levels.len() {
            let pinned = match held.take() {
                Some(guard) => self.pages.move_to(guard, number),
                None => self.pages.read(number),
            };
            let guard = match pinned {
                Ok(guard) => guard,
                Err(error) => {
                    self.path.clear();
                    self.hint.forget();
                    return Err(error);
                }
            };
            let node = Node::new(&guard);
            let index = node.child_index(key);
            if records {
                if index > 0 {
                    node.copy_key(index - 1, self.hint.low_mut());
                }
                if index < node.count() {
                    node.copy_key(index, self.hint.high_mut());
                }
            }
            self.path.push(Step { number, index });
            number = node.child(index);
            held = Some(guard);
        }
        self.hint.end(number);
        Ok((number, held))
    }

    /// Makes the way to the leaf of `key` known.
    fn find_path(&mut self, key: &[u8]) -> Result<()> {
        if self.path.len() + 1 != self.levels.len() {
            self.descend(key)?;
        }
        Ok(())
    }

    fn check_key(&self, key: &[u8]) -> Result<()> {
        if key.len() > MAX_KEY_BYTES {
            return Err(Error::KeyTooLong {
                key_bytes: key.len(),
                limit_bytes: MAX_KEY_BYTES,
            });
        }
        Ok(())
    }

    fn check_payload(&self, payload: &[u8]) -> Result<()> {
        if payload.len() != self.payload_bytes {
            return Err(Error::PayloadWidth {
                expected_bytes: self.payload_bytes,
                found_bytes: payload.len(),
            });
        }
        Ok(())
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree")
            .field("payload_bytes", &self.payload_bytes)
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}
