//! What a node is, and how it is searched.
//!
//! **Owns** the layout of the page. **Never** changes one; that is `edit`.
//!
//! ```text
//!  0        64       128                                                16 KiB (a first leaf: 4)
//!  +--------+--------+---------+---------+--      --+------------------------+
//!  | header | hints  | slot 0  | slot 1  |   room   | heap: payload, rest    |
//!  +--------+--------+---------+---------+--      --+------------------------+
//!                    | rest at, length, head
//!  header: level, count, prefix of all keys, first child, where the heap starts
//!  hint i: the head of every 17th part of the slots, so that a search begins in two lines
//!  slot:   the first four bytes after the prefix (head), the length after the prefix, and where
//!          the payload lies with the bytes after the head behind it
//! ```
//!
//! Slots are sorted by key. In an inner node the key of slot `i` is the least key that may be in
//! the child of slot `i`, which is the payload; smaller keys than those of slot 0 are in the first
//! child. There are no fences and no links between siblings: a cursor knows its way from above,
//! and an emptied node goes without touching its neighbours.
//!
//! **Source**: Graefe, "Modern B-Tree Techniques" (2011), 3.2 to 3.5; Leis et al., "LeanStore"
//! (ICDE 2018) for heads and hints. Here the head's bytes are not repeated in the heap, and the
//! prefix is what the keys have in common at this moment, which is more than their fences would.

use super::key::{MAX_KEY_BYTES, common_len, split_row_id};

/// Bytes of a full-sized node.
pub(super) const NODE_BYTES: usize = 16 << 10;
/// Bytes of the leaf that a tree begins with.
const FIRST_LEAF_BYTES: usize = 4 << 10;
/// Header and hints.
pub(super) const HEADER_BYTES: usize = 128;
pub(super) const SLOT_BYTES: usize = 8;
/// Bytes of a key that lie in its slot.
pub(super) const HEAD_BYTES: usize = 4;
/// The payload of an inner node: the number of a child.
pub(super) const CHILD_BYTES: usize = 4;
pub(super) const HINTS: usize = 16;
/// Slots among which smaller ones are counted: what lies between two hints of a full node.
const COUNTED_SLOTS: usize = 64;
pub(super) const HINTS_AT: usize = 64;
/// A prefix of up to so many bytes lies in the header.
pub(super) const INLINE_PREFIX_BYTES: usize = HINTS_AT - INLINE_PREFIX_AT;
pub(super) const INLINE_PREFIX_AT: usize = 24;

/// Where the fields of the header are.
pub(super) mod field {
    pub(crate) const LEVEL: usize = 0;
    pub(crate) const PAYLOAD_BYTES: usize = 1;
    pub(crate) const COUNT: usize = 2;
    /// The lowest byte of the heap in use.
    pub(crate) const HEAP_START: usize = 4;
    /// Bytes of the heap that no slot points to.
    pub(crate) const DEAD_BYTES: usize = 6;
    pub(crate) const PREFIX_LEN: usize = 8;
    pub(crate) const PREFIX_AT: usize = 10;
    /// Where the last entry was inserted.
    pub(crate) const LAST_INSERT: usize = 12;
    /// How many insertions came one behind the other; negative: one before the other.
    pub(crate) const RUN: usize = 14;
    pub(crate) const FIRST_CHILD: usize = 16;
}

// The longest keys leave room for a prefix and three entries, so that a split always makes room: a
// half has at most half of the node and of the entry that comes, one entry that does not divide
// evenly, and the part of the node by which a cut may be off the middle.
const _: () = assert!(HEADER_BYTES + 4 * (MAX_KEY_BYTES + 16 + SLOT_BYTES) <= NODE_BYTES);
// The first leaf of a tree has a page of 4 KiB.
const _: () = assert!(HEADER_BYTES + MAX_KEY_BYTES + 16 + SLOT_BYTES <= FIRST_LEAF_BYTES);

/// A node to be read.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    bytes: &'a [u8],
    /// The beginning of the same bytes: reads at known places need no check.
    header: &'a [u8; HEADER_BYTES],
}

/// What is at a position, without the prefix of the node.
#[derive(Clone, Copy)]
pub(super) struct Slot(u64);

/// Where a key is, or would have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) position: usize,
    pub(super) is_equal: bool,
}

/// A key without the prefix of a node.
#[derive(Clone, Copy)]
struct Probe<'a> {
    head: u32,
    len: usize,
    tail: &'a [u8],
}

impl<'a> Probe<'a> {
    fn new(suffix: &'a [u8]) -> Self {
        Self {
            head: head_of(suffix),
            len: suffix.len(),
            tail: tail_of(suffix),
        }
    }
}

impl Slot {
    pub(super) fn new(head: u32, len: usize, at: usize) -> Self {
        debug_assert!(len <= MAX_KEY_BYTES && at < 1 << 16);
        Self(u64::from(head) << 32 | (len as u64) << 16 | at as u64)
    }

    pub(super) fn from_bytes(bytes: [u8; SLOT_BYTES]) -> Self {
        Self(u64::from_le_bytes(bytes))
    }

    pub(super) fn to_bytes(self) -> [u8; SLOT_BYTES] {
        self.0.to_le_bytes()
    }

    pub(super) fn head(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Bytes of the key after the prefix.
    pub(super) fn len(self) -> usize {
        usize::from((self.0 >> 16) as u16)
    }

    /// Bytes of the key in the heap.
    pub(super) fn tail_len(self) -> usize {
        self.len().saturating_sub(HEAD_BYTES)
    }

    /// Where the payload is.
    pub(super) fn at(self) -> usize {
        usize::from(self.0 as u16)
    }
}

/// The first four bytes as a number of the same order; short keys are padded with zeros.
pub(super) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<HEAD_BYTES>() {
        Some(head) => u32::from_be_bytes(*head),
        None => {
            let mut head = [0; HEAD_BYTES];
            head[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(head)
        }
    }
}

pub(super) fn tail_of(suffix: &[u8]) -> &[u8] {
    suffix.get(HEAD_BYTES..).unwrap_or_default()
}

impl<'a> Node<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let header = bytes.first_chunk().expect("no page is smaller");
        Self { bytes, header }
    }

    pub(super) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    fn u16_at(self, at: usize) -> u16 {
        u16::from_le_bytes([self.header[at], self.header[at + 1]])
    }

    fn size_at(self, at: usize) -> usize {
        usize::from(self.u16_at(at))
    }

    fn u32_at(self, at: usize) -> u32 {
        let bytes = self.bytes[at..].first_chunk().expect("inside the page");
        u32::from_le_bytes(*bytes)
    }

    /// Zero for a leaf.
    pub(super) fn level(self) -> usize {
        usize::from(self.header[field::LEVEL])
    }

    pub(super) fn payload_bytes(self) -> usize {
        usize::from(self.header[field::PAYLOAD_BYTES])
    }

    pub(super) fn count(self) -> usize {
        self.size_at(field::COUNT)
    }

    pub(super) fn heap_start(self) -> usize {
        self.size_at(field::HEAP_START)
    }

    pub(super) fn dead_bytes(self) -> usize {
        self.size_at(field::DEAD_BYTES)
    }

    pub(super) fn last_insert(self) -> usize {
        self.size_at(field::LAST_INSERT)
    }

    pub(super) fn run(self) -> i16 {
        self.u16_at(field::RUN).cast_signed()
    }

    pub(super) fn prefix(self) -> &'a [u8] {
        let at = self.size_at(field::PREFIX_AT);
        &self.bytes[at..at + self.size_at(field::PREFIX_LEN)]
    }

    pub(super) fn slots(self) -> &'a [[u8; SLOT_BYTES]] {
        let end = HEADER_BYTES + self.count() * SLOT_BYTES;
        self.bytes[HEADER_BYTES..end].as_chunks().0
    }

    pub(super) fn slot(self, position: usize) -> Slot {
        Slot::from_bytes(self.slots()[position])
    }

    pub(super) fn payload(self, position: usize) -> &'a [u8] {
        let at = self.slot(position).at();
        &self.bytes[at..at + self.payload_bytes()]
    }

    /// The bytes after the head.
    pub(super) fn tail(self, slot: Slot) -> &'a [u8] {
        let at = slot.at() + self.payload_bytes();
        &self.bytes[at..at + slot.tail_len()]
    }

    /// The last eight bytes of the key at a position, where it ends with a row id.
    pub(super) fn row_id(self, position: usize) -> Option<u64> {
        let slot = self.slot(position);
        if let Some(row_id) = self.tail(slot).last_chunk() {
            return Some(u64::from_be_bytes(*row_id));
        }
        let mut key = Vec::with_capacity(self.key_len(position));
        self.copy_key(position, &mut key);
        split_row_id(&key).map(|(_, row_id)| row_id)
    }

    pub(super) fn key_len(self, position: usize) -> usize {
        self.size_at(field::PREFIX_LEN) + self.slot(position).len()
    }

    /// Puts the key at a position together.
    pub(super) fn copy_key(self, position: usize, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.prefix());
        let slot = self.slot(position);
        let head = slot.head().to_be_bytes();
        key.extend_from_slice(&head[..slot.len().min(HEAD_BYTES)]);
        if slot.len() > HEAD_BYTES {
            key.extend_from_slice(self.tail(slot));
        }
    }

    /// How many children an inner node has.
    pub(super) fn child_count(self) -> usize {
        self.count() + 1
    }

    /// The child at an index, from 0 to the count of slots.
    pub(super) fn child(self, index: usize) -> u32 {
        match index.checked_sub(1) {
            None => self.u32_at(field::FIRST_CHILD),
            Some(position) => self.u32_at(self.slot(position).at()),
        }
    }

    /// The index of the child that `key` belongs to.
    pub(super) fn child_index(self, key: &[u8]) -> usize {
        let found = self.search(key);
        found.position + usize::from(found.is_equal)
    }

    /// Free bytes between slots and heap.
    pub(super) fn room(self) -> usize {
        self.heap_start() - (HEADER_BYTES + self.count() * SLOT_BYTES)
    }

    /// Bytes of slots and heap in use.
    pub(super) fn used_bytes(self) -> usize {
        self.capacity() - self.room() - self.dead_bytes()
    }

    pub(super) fn capacity(self) -> usize {
        self.bytes.len() - HEADER_BYTES
    }

    /// What an entry takes when a key has `len` bytes after the prefix.
    pub(super) fn entry_bytes(self, len: usize) -> usize {
        SLOT_BYTES + self.payload_bytes() + len.saturating_sub(HEAD_BYTES)
    }

    /// What all entries would take with a prefix of another length.
    pub(super) fn bytes_with_prefix(self, prefix_len: usize) -> usize {
        let stored_prefix = self.size_at(field::PREFIX_LEN);
        let fixed = prefix_len + HEAD_BYTES;
        let tails: usize = self
            .slots()
            .iter()
            .map(|&slot| (stored_prefix + Slot::from_bytes(slot).len()).saturating_sub(fixed))
            .sum();
        heap_bytes_of_prefix(prefix_len) + self.count() * self.entry_bytes(0) + tails
    }

    /// The longest prefix of all keys, of `key` too if there is one.
    pub(super) fn common_prefix_len(self, key: Option<&[u8]>) -> usize {
        let count = self.count();
        if count == 0 {
            return 0;
        }
        let prefix = self.prefix();
        if let Some(key) = key
            && !key.starts_with(prefix)
        {
            return common_len(prefix, key);
        }
        let suffix = key.map(|key| &key[prefix.len()..]);
        prefix.len() + self.common_suffix_len(suffix)
    }

    fn common_suffix_len(self, suffix: Option<&[u8]>) -> usize {
        let (first, last) = (self.slot(0), self.slot(self.count() - 1));
        let mut differ = first.head() ^ last.head();
        let mut len = first.len().min(last.len());
        if let Some(suffix) = suffix {
            differ |= first.head() ^ head_of(suffix);
            len = len.min(suffix.len());
        }
        if differ != 0 || len <= HEAD_BYTES {
            return len.min(differ.leading_zeros() as usize / 8);
        }
        let tail = self.tail(first);
        let mut common = common_len(tail, self.tail(last));
        if let Some(suffix) = suffix {
            common = common.min(common_len(tail, tail_of(suffix)));
        }
        HEAD_BYTES + common
    }

    /// Where `key` belongs if insertions go on as they did.
    pub(super) fn expected(self, key: &[u8]) -> Option<usize> {
        let run = self.run();
        let position = self.last_insert() + usize::from(run > 0);
        let slots = self.slots();
        if run == 0 || position > slots.len() {
            return None;
        }
        let probe = Probe::new(key.strip_prefix(self.prefix())?);
        let is_behind = position == 0 || self.order(slots[position - 1], probe).is_lt();
        let is_before = || match slots.get(position) {
            Some(slot) => self.order(*slot, probe).is_gt(),
            None => true,
        };
        (is_behind && is_before()).then_some(position)
    }

    /// How the key of a slot compares with a probe.
    fn order(self, slot: [u8; SLOT_BYTES], probe: Probe<'_>) -> std::cmp::Ordering {
        let slot = Slot::from_bytes(slot);
        let heads = slot.head().cmp(&probe.head);
        heads.then_with(|| self.order_behind_heads(slot, probe))
    }

    /// How the key of a slot compares with a probe of the same head.
    fn order_behind_heads(self, slot: Slot, probe: Probe<'_>) -> std::cmp::Ordering {
        let lengths = slot.len().cmp(&probe.len);
        // Where the head is all there is, `memcmp` is not called for no bytes: with it a cursor
        // over integers took six times as long (it may read under an empty mask, which is slow
        // where no memory lies).
        if slot.tail_len() == 0 || probe.tail.is_empty() {
            return lengths;
        }
        self.tail(slot).cmp(probe.tail).then(lengths)
    }

    /// Where `key` is or belongs.
    pub(super) fn search(self, key: &[u8]) -> Found {
        let prefix = self.prefix();
        let Some(suffix) = key.strip_prefix(prefix) else {
            let position = if key < prefix { 0 } else { self.count() };
            return Found {
                position,
                is_equal: false,
            };
        };
        let probe = Probe::new(suffix);
        let slots = self.slots();
        let (from, to) = self.narrow(probe.head, slots.len());
        let first = from + lower_bound(&slots[from..to], probe.head);
        self.search_equal_heads(probe, slots, first)
    }

    /// Where the slots with this head begin, at the narrowest that the hints say.
    fn narrow(self, head: u32, count: usize) -> (usize, usize) {
        let distance = count / (HINTS + 1);
        if distance == 0 {
            return (0, count);
        }
        let hints = self.bytes[HINTS_AT..HINTS_AT + HINTS * 4]
            .as_chunks::<4>()
            .0;
        let below: usize = hints
            .iter()
            .map(|&hint| usize::from(u32::from_le_bytes(hint) < head))
            .sum();
        let to = if below < HINTS {
            (below + 1) * distance
        } else {
            count
        };
        (below * distance, to)
    }

    /// The search goes on among the slots whose head is that of the probe.
    fn search_equal_heads(
        self,
        probe: Probe<'_>,
        slots: &[[u8; SLOT_BYTES]],
        first: usize,
    ) -> Found {
        let mut found = Found {
            position: first,
            is_equal: false,
        };
        let head_at = |position: usize| {
            slots
                .get(position)
                .map(|&slot| Slot::from_bytes(slot).head())
        };
        if head_at(first) != Some(probe.head) {
            return found;
        }
        let mut end = first + 1;
        if head_at(end) == Some(probe.head) {
            end +=
                slots[end..].partition_point(|&slot| Slot::from_bytes(slot).head() == probe.head);
        }
        let mut from = first;
        while from < end {
            let middle = from + (end - from) / 2;
            let slot = Slot::from_bytes(slots[middle]);
            match self.order_behind_heads(slot, probe) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => end = middle,
                std::cmp::Ordering::Equal => {
                    found.position = middle;
                    found.is_equal = true;
                    return found;
                }
            }
        }
        found.position = from;
        found
    }
}

/// What a prefix takes of the heap.
pub(super) fn heap_bytes_of_prefix(prefix_len: usize) -> usize {
    if prefix_len > INLINE_PREFIX_BYTES {
        prefix_len
    } else {
        0
    }
}

/// How many slots have a smaller head. Counting reads all lines of the range at once, where a
/// binary search waits for one after the other: between hints there are five of them at most.
fn lower_bound(slots: &[[u8; SLOT_BYTES]], head: u32) -> usize {
    let least = u64::from(head) << 32;
    let (mut from, mut len) = (0, slots.len());
    while len > COUNTED_SLOTS {
        let half = len / 2;
        let is_smaller = Slot::from_bytes(slots[from + half - 1]).0 < least;
        from += if is_smaller { half } else { 0 };
        len -= half;
    }
    let smaller = slots[from..from + len]
        .iter()
        .map(|&slot| u64::from(Slot::from_bytes(slot).0 < least));
    from + smaller.sum::<u64>() as usize
}
