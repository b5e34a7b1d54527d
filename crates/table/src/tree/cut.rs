//! Where a full node is cut in two.
//!
//! **Owns** nothing. **Never** changes a node: a cut is chosen before anything changes.
//!
//! Three cases. Insertions that follow each other cut where they are, so that what lies behind
//! them stays full: an ascending load leaves full nodes. A key that would shorten the prefix too
//! much, at an end of the node, is cut off alone. All others cut in the middle, within a few
//! positions of it where the separator is shortest.
//!
//! **Source**: Bayer and Unterauer, "Prefix B-Trees" (1977) for separators; InnoDB for runs of
//! insertions.

use super::key::common_len;
use super::node::Node;

/// Insertions in a row from which on more of them are expected.
const RUN_MIN: usize = 8;
/// How far from the middle a shorter separator is looked for: a part of the node, and at most so
/// many entries.
const WINDOW_PART: usize = 16;
const WINDOW_MAX: usize = 8;

/// How a leaf and an entry that does not fit into it become two leaves.
#[derive(Debug, Clone)]
pub(super) struct LeafCut {
    /// The entries from here on go to the right.
    pub(super) at: usize,
    /// Whether the entry goes to the left.
    pub(super) entry_left: bool,
    /// Above all keys on the left, at most the first on the right.
    pub(super) separator: Vec<u8>,
}

/// How an inner node and a separator that does not fit into it become two nodes.
#[derive(Debug, Clone)]
pub(super) struct InnerCut {
    /// Which of all separators goes up: an index among those of the node with the one that comes.
    pub(super) index: usize,
    /// The separator that goes up.
    pub(super) separator: Vec<u8>,
}

/// A full node with the entry that comes at its position.
struct Coming<'a> {
    node: Node<'a>,
    position: usize,
    key: &'a [u8],
}

impl Coming<'_> {
    /// Entries with the one that comes.
    fn count(&self) -> usize {
        self.node.count() + 1
    }

    fn bytes(&self, index: usize) -> usize {
        let prefix_len = self.node.prefix().len();
        let len = if index == self.position {
            self.key.len().saturating_sub(prefix_len)
        } else {
            let stored = index - usize::from(index > self.position);
            self.node.slot(stored).len()
        };
        self.node.entry_bytes(len)
    }

    fn copy_key(&self, index: usize, key: &mut Vec<u8>) {
        if index == self.position {
            key.clear();
            key.extend_from_slice(self.key);
        } else {
            let stored = index - usize::from(index > self.position);
            self.node.copy_key(stored, key);
        }
    }

    /// Whether insertions come one behind the other, or one before the other.
    fn is_run(&self) -> bool {
        let run = self.node.run();
        let last = self.node.last_insert();
        let enough = RUN_MIN.min(self.node.count() / 2).max(1);
        let goes_on = if run > 0 {
            self.position == last + 1
        } else {
            self.position == last
        };
        goes_on && usize::from(run.unsigned_abs()) >= enough
    }

    /// Whether the entry has to be cut off alone.
    fn is_alone(&self) -> bool {
        !self.key.starts_with(self.node.prefix())
    }

    /// The index whose entry holds the middle byte.
    fn middle(&self) -> usize {
        let total: usize = (0..self.count()).map(|index| self.bytes(index)).sum();
        let mut before = 0;
        for index in 0..self.count() {
            let bytes = self.bytes(index);
            if before + bytes / 2 >= total / 2 {
                return index;
            }
            before += bytes;
        }
        self.count() - 1
    }

    /// The indexes near `middle`, without the first, that cut almost as evenly.
    fn window(&self, middle: usize) -> std::ops::RangeInclusive<usize> {
        let most = self.node.capacity() / WINDOW_PART;
        let (mut low, mut shift) = (middle, 0);
        while low > 1 && middle - low < WINDOW_MAX {
            shift += self.bytes(low - 1);
            if shift > most {
                break;
            }
            low -= 1;
        }
        let (mut high, mut shift) = (middle, 0);
        while high + 1 < self.count() && high - middle < WINDOW_MAX {
            shift += self.bytes(high);
            if shift > most {
                break;
            }
            high += 1;
        }
        low..=high
    }

    /// The shortest key above the entry before `index` and not above the one at it.
    fn separator(&self, index: usize) -> Vec<u8> {
        let (mut low, mut high) = (Vec::new(), Vec::new());
        self.copy_key(index - 1, &mut low);
        self.copy_key(index, &mut high);
        high.truncate(common_len(&low, &high) + 1);
        high
    }
}

/// Cuts a leaf that `key` does not fit into. The leaf is not empty.
pub(super) fn leaf_cut(node: Node<'_>, position: usize, key: &[u8]) -> LeafCut {
    let coming = Coming {
        node,
        position,
        key,
    };
    let count = node.count();
    if coming.is_alone() || coming.is_run() {
        let entry_left = match position {
            0 => true,
            _ if position == count => false,
            _ => {
                let bytes = |index: usize| node.entry_bytes(node.slot(index).len());
                let left: usize = (0..position).map(bytes).sum();
                let right: usize = (position..count).map(bytes).sum();
                left <= right
            }
        };
        return LeafCut {
            at: position,
            entry_left,
            separator: coming.separator(position + usize::from(entry_left)),
        };
    }
    let middle = coming.middle().clamp(1, count);
    let (index, separator) = coming
        .window(middle)
        .map(|index| (index, coming.separator(index)))
        .min_by_key(|(index, separator)| (separator.len(), index.abs_diff(middle)))
        .expect("the window holds the middle");
    let entry_left = position < index;
    LeafCut {
        at: index - usize::from(entry_left),
        entry_left,
        separator,
    }
}

/// Cuts an inner node that the separator `key` does not fit into.
pub(super) fn inner_cut(node: Node<'_>, position: usize, key: &[u8]) -> InnerCut {
    let coming = Coming {
        node,
        position,
        key,
    };
    let count = node.count();
    let mut separator = Vec::new();
    let mut index = position;
    if !coming.is_alone() && !coming.is_run() {
        let middle = coming.middle().clamp(1, count);
        let mut shortest = usize::MAX;
        for candidate in coming.window(middle) {
            let bytes = coming.bytes(candidate);
            let is_nearer = candidate.abs_diff(middle) < index.abs_diff(middle);
            if bytes < shortest || (bytes == shortest && is_nearer) {
                (index, shortest) = (candidate, bytes);
            }
        }
    }
    coming.copy_key(index, &mut separator);
    InnerCut { index, separator }
}
