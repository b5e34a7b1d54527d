//! How a node is changed.
//!
//! **Owns** the bytes of one page while it lasts. **Never** allocates: what does not fit is
//! refused, and the node stays as it was.
//!
//! Removing leaves dead bytes in the heap. A node that has no room between slots and heap is
//! rebuilt in place if that makes enough room: without the dead bytes, and with the longest prefix
//! that its keys have at this moment. A key that does not share the prefix shortens it.
//!
//! **Cost**: insertion moves half of the slots, 2 KiB of a full leaf of short keys. Rebuilding
//! copies each entry once, about 10 ns each, and happens about once in the life of a leaf.

use std::ops::Range;

use super::key::MAX_KEY_BYTES;
use super::node::{
    HEAD_BYTES, HEADER_BYTES, HINTS, HINTS_AT, INLINE_PREFIX_AT, INLINE_PREFIX_BYTES, NODE_BYTES,
    Node, SLOT_BYTES, Slot, field, head_of, heap_bytes_of_prefix, tail_of,
};

/// How a key fits into a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// Between slots and heap.
    Now,
    /// After rebuilding with this prefix.
    Rebuilt { prefix_len: usize },
    /// Not at all.
    No,
}

/// What must be free after rebuilding a node, so that it is not rebuilt again soon: a part of its
/// capacity.
const SLACK_PART: usize = 32;

impl Node<'_> {
    /// How `key` fits. With `slack`, rebuilding has to be worth it.
    pub(super) fn fit(self, key: &[u8], slack: bool) -> Fit {
        let prefix = self.prefix();
        let shares = key.starts_with(prefix);
        if shares && self.room() >= self.entry_bytes(key.len() - prefix.len()) {
            return Fit::Now;
        }
        let prefix_len = self.common_prefix_len(Some(key));
        let entry = self.entry_bytes(key.len() - prefix_len);
        let slack = if slack {
            self.capacity() / SLACK_PART
        } else {
            0
        };
        if self.bytes_with_prefix(prefix_len) + entry + slack <= self.capacity() {
            Fit::Rebuilt { prefix_len }
        } else {
            Fit::No
        }
    }
}

/// A node to be changed.
pub(super) struct NodeMut<'a> {
    bytes: &'a mut [u8],
}

impl<'a> NodeMut<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes }
    }

    /// Makes an empty node of a page with any content.
    pub(super) fn format(bytes: &'a mut [u8], level: usize, payload_bytes: usize) -> Self {
        bytes[..HEADER_BYTES].fill(0);
        bytes[field::LEVEL] = u8::try_from(level).expect("trees are not that high");
        bytes[field::PAYLOAD_BYTES] = u8::try_from(payload_bytes).expect("payloads are narrow");
        let mut node = Self { bytes };
        node.empty();
        node
    }

    pub(super) fn node(&self) -> Node<'_> {
        Node::new(self.bytes)
    }

    fn set_u16(&mut self, at: usize, value: usize) {
        let value = u16::try_from(value).expect("pages have less than 64 KiB");
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    /// Forgets all entries and the prefix.
    fn empty(&mut self) {
        self.set_u16(field::COUNT, 0);
        self.set_u16(field::HEAP_START, self.bytes.len());
        self.set_u16(field::DEAD_BYTES, 0);
        self.set_u16(field::PREFIX_LEN, 0);
        self.set_u16(field::PREFIX_AT, INLINE_PREFIX_AT);
    }

    /// Gives an empty node a prefix.
    fn set_prefix(&mut self, prefix: &[u8]) {
        debug_assert_eq!(self.node().count(), 0);
        let mut at = INLINE_PREFIX_AT;
        if prefix.len() > INLINE_PREFIX_BYTES {
            at = self.bytes.len() - prefix.len();
            self.set_u16(field::HEAP_START, at);
        }
        self.set_u16(field::PREFIX_LEN, prefix.len());
        self.set_u16(field::PREFIX_AT, at);
        self.bytes[at..at + prefix.len()].copy_from_slice(prefix);
    }

    /// Gives an empty node the prefix that keys behind `neighbour` and `key`, or before them, will
    /// likely have, so that it need not be rebuilt for it. The last byte that both have is left
    /// out: it is the next to change.
    pub(super) fn expect_keys_near(&mut self, neighbour: &[u8], key: &[u8]) {
        let prefix_len = super::key::common_len(neighbour, key).saturating_sub(1);
        self.set_prefix(&key[..prefix_len]);
    }

    pub(super) fn set_first_child(&mut self, child: u32) {
        let at = field::FIRST_CHILD;
        self.bytes[at..at + 4].copy_from_slice(&child.to_le_bytes());
    }

    /// Says how insertions went on in the node that this one was split from.
    pub(super) fn set_run(&mut self, run: i16, last_insert: usize) {
        self.bytes[field::RUN..field::RUN + 2].copy_from_slice(&run.to_le_bytes());
        self.set_u16(field::LAST_INSERT, last_insert);
    }

    /// Inserts an entry, rebuilding the node if it must be; `false` if the entry does not fit.
    pub(super) fn insert(
        &mut self,
        position: usize,
        key: &[u8],
        payload: &[u8],
        slack: bool,
    ) -> bool {
        match self.node().fit(key, slack) {
            Fit::Now => {}
            Fit::Rebuilt { prefix_len } => self.rebuild(prefix_len),
            Fit::No => return false,
        }
        let (last, run) = (self.node().last_insert(), self.node().run());
        let run = if position == last + 1 {
            run.max(0).saturating_add(1)
        } else if position == last {
            run.min(0).saturating_sub(1)
        } else {
            0
        };
        self.set_run(run, position);
        let prefix_len = self.node().prefix().len();
        self.open_slot(position);
        self.write_entry(position, &key[prefix_len..], payload);
        self.refresh_hints(position, self.node().count() - 1);
        true
    }

    /// Makes sure that `key` can be appended without using more than a part of the node, rebuilding
    /// it if that helps; `false` if it cannot.
    pub(super) fn make_room_at_end(&mut self, key: &[u8], fill_percent: usize) -> bool {
        let node = self.node();
        let prefix = node.prefix();
        let most = node.capacity() * fill_percent / 100;
        let shares = key.starts_with(prefix);
        if shares {
            let entry = node.entry_bytes(key.len() - prefix.len());
            if node.count() == 0 || (node.used_bytes() + entry <= most && node.room() >= entry) {
                return true;
            }
        }
        let prefix_len = node.common_prefix_len(Some(key));
        let entry = node.entry_bytes(key.len() - prefix_len);
        let slack = if shares {
            node.capacity() / SLACK_PART
        } else {
            0
        };
        if node.bytes_with_prefix(prefix_len) + entry + slack > most {
            return false;
        }
        self.rebuild(prefix_len);
        true
    }

    /// Moves slots to make place for one.
    fn open_slot(&mut self, position: usize) {
        let count = self.node().count();
        let (from, end) = (slot_at(position), slot_at(count));
        self.bytes.copy_within(from..end, from + SLOT_BYTES);
        self.set_u16(field::COUNT, count + 1);
    }

    /// Writes payload and tail to the heap, and the slot.
    fn write_entry(&mut self, position: usize, suffix: &[u8], payload: &[u8]) {
        let tail = tail_of(suffix);
        let at = self.node().heap_start() - payload.len() - tail.len();
        let tail_at = at + payload.len();
        self.bytes[at..tail_at].copy_from_slice(payload);
        self.bytes[tail_at..tail_at + tail.len()].copy_from_slice(tail);
        self.set_u16(field::HEAP_START, at);
        self.write_slot(position, Slot::new(head_of(suffix), suffix.len(), at));
    }

    fn write_slot(&mut self, position: usize, slot: Slot) {
        let at = slot_at(position);
        self.bytes[at..at + SLOT_BYTES].copy_from_slice(&slot.to_bytes());
    }

    pub(super) fn remove(&mut self, position: usize) {
        let node = self.node();
        let (slot, count) = (node.slot(position), node.count());
        if count == 1 {
            self.empty();
            return;
        }
        let bytes = node.payload_bytes() + slot.tail_len();
        if slot.at() == node.heap_start() {
            self.set_u16(field::HEAP_START, slot.at() + bytes);
        } else {
            self.set_u16(field::DEAD_BYTES, node.dead_bytes() + bytes);
        }
        self.bytes
            .copy_within(slot_at(position + 1)..slot_at(count), slot_at(position));
        self.set_u16(field::COUNT, count - 1);
        self.refresh_hints(position, count);
    }

    /// Removes the entries at ascending positions. Slots move once, whatever the number of entries.
    pub(super) fn remove_all(&mut self, positions: &[usize]) {
        let node = self.node();
        let (before, payload_bytes) = (node.count(), node.payload_bytes());
        let Some(&first) = positions.first() else {
            return;
        };
        if positions.len() == before {
            self.empty();
            return;
        }
        let gone = positions.iter().map(|position| node.slot(*position));
        let bytes: usize = gone.map(|slot| payload_bytes + slot.tail_len()).sum();
        self.set_u16(field::DEAD_BYTES, node.dead_bytes() + bytes);
        let ends = positions[1..].iter().copied().chain([before]);
        let mut to = first;
        for (position, end) in positions.iter().zip(ends) {
            let stay = position + 1..end;
            self.bytes
                .copy_within(slot_at(stay.start)..slot_at(stay.end), slot_at(to));
            to += stay.len();
        }
        self.set_u16(field::COUNT, to);
        self.refresh_hints(first, before);
    }

    /// Removes the entries from `count` on.
    pub(super) fn truncate(&mut self, count: usize) {
        let node = self.node();
        let before = node.count();
        if count == 0 {
            self.empty();
            return;
        }
        let payload_bytes = node.payload_bytes();
        let removed: usize = node.slots()[count..]
            .iter()
            .map(|&slot| payload_bytes + Slot::from_bytes(slot).tail_len())
            .sum();
        self.set_u16(field::DEAD_BYTES, node.dead_bytes() + removed);
        self.set_u16(field::COUNT, count);
        self.refresh_hints(0, before);
    }

    pub(super) fn set_payload(&mut self, position: usize, payload: &[u8]) {
        let at = self.node().slot(position).at();
        self.bytes[at..at + payload.len()].copy_from_slice(payload);
    }

    /// Puts another child in the place of one.
    pub(super) fn set_child(&mut self, index: usize, child: u32) {
        match index.checked_sub(1) {
            Some(position) => self.set_payload(position, &child.to_le_bytes()),
            None => self.set_first_child(child),
        }
    }

    /// Removes a child of an inner node that has others.
    pub(super) fn remove_child(&mut self, index: usize) {
        match index.checked_sub(1) {
            Some(position) => self.remove(position),
            None => {
                self.set_first_child(self.node().child(1));
                self.remove(0);
            }
        }
    }

    /// Writes all entries anew, with a prefix that all keys have.
    fn rebuild(&mut self, prefix_len: usize) {
        let mut copy = [0; NODE_BYTES];
        let copy = &mut copy[..self.bytes.len()];
        copy.copy_from_slice(self.bytes);
        let node = Node::new(copy);
        self.empty();
        self.append_all(&[(node, 0..node.count())], prefix_len);
    }

    /// Fills an empty node with entries of other nodes, whose keys are ascending over all and have
    /// `prefix_len` bytes in common.
    pub(super) fn append_all(&mut self, sources: &[(Node<'_>, Range<usize>)], prefix_len: usize) {
        let mut key = [0; MAX_KEY_BYTES];
        let mut position = 0;
        for (node, range) in sources {
            let stored = node.prefix();
            key[..stored.len()].copy_from_slice(stored);
            for index in range.clone() {
                let slot = node.slot(index);
                let end = stored.len() + slot.len();
                let head = slot.head().to_be_bytes();
                let head_len = slot.len().min(HEAD_BYTES);
                key[stored.len()..stored.len() + head_len].copy_from_slice(&head[..head_len]);
                key[stored.len() + head_len..end].copy_from_slice(node.tail(slot));
                if position == 0 {
                    self.set_prefix(&key[..prefix_len]);
                }
                self.set_u16(field::COUNT, position + 1);
                self.write_entry(position, &key[prefix_len..end], node.payload(index));
                position += 1;
            }
        }
        self.refresh_hints(0, 0);
    }

    /// Fills an empty node with part of another.
    pub(super) fn append_part(&mut self, source: Node<'_>, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let mut prefix_len = common_len_of(source, range.start, source, range.end - 1);
        prefix_len = prefix_len.min(NODE_BYTES);
        self.append_all(&[(source, range)], prefix_len);
    }

    /// Brings the hints up to date after slots from `position` on have changed, when there were
    /// `count_before` of them.
    fn refresh_hints(&mut self, position: usize, count_before: usize) {
        let parts = HINTS + 1;
        let distance = self.node().count() / parts;
        if distance == 0 {
            return;
        }
        let first = if distance == count_before / parts {
            (position / distance).saturating_sub(1)
        } else {
            0
        };
        let (header, rest) = self.bytes.split_at_mut(HEADER_BYTES);
        let hints = header[HINTS_AT..].as_chunks_mut::<4>().0;
        let slots = rest.as_chunks::<SLOT_BYTES>().0;
        for (hint, index) in hints.iter_mut().zip(1..).skip(first) {
            let head = Slot::from_bytes(slots[index * distance]).head();
            *hint = head.to_le_bytes();
        }
    }
}

fn slot_at(position: usize) -> usize {
    HEADER_BYTES + position * SLOT_BYTES
}

/// What the keys at two positions have in common.
pub(super) fn common_len_of(left: Node<'_>, at: usize, right: Node<'_>, to: usize) -> usize {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    left.copy_key(at, &mut first);
    right.copy_key(to, &mut last);
    super::key::common_len(&first, &last)
}

/// What the entries of two neighbours would take in one node, and the prefix they would have.
pub(super) fn merged(left: Node<'_>, right: Node<'_>) -> (usize, usize) {
    if left.count() == 0 || right.count() == 0 {
        let full = if left.count() == 0 { right } else { left };
        let prefix_len = full.prefix().len();
        return (full.bytes_with_prefix(prefix_len), prefix_len);
    }
    let prefix_len = common_len_of(left, 0, right, right.count() - 1);
    let bytes = left.bytes_with_prefix(prefix_len) + right.bytes_with_prefix(prefix_len);
    (bytes - heap_bytes_of_prefix(prefix_len), prefix_len)
}
