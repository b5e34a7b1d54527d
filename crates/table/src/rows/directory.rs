//! The directory of a hash table: hashes to row references, 8 bytes a slot.
//!
//! A slot holds the upper half of the hash as a tag and a row reference plus one; zero is empty.
//! The slot number is made of the hash bits below those that chose the partition, so it follows
//! from the tag: growing reads the old slots in order and touches no row. Linear probing; load at
//! most 5/8. Directories are rebuilt per partition and never written out.
//!
//! With hashes like random numbers the longest probe of a table grows with the logarithm of its
//! groups. A directory takes note when one is far beyond that; its table then chooses another hash.

use mayfly_space::{Account, Error, Reservation};

use super::segment::or_short;

/// Slots of the smallest directory: 512 bytes.
const SLOT_BITS_MIN: u32 = 6;

/// Probes of directories from this size on (64 KiB) look ahead: below, all is in cache anyway.
const LARGE_SLOT_BITS_MIN: u32 = 13;

/// A longer probe than this does not happen by chance: with 16 M slots in use as far as they may be
/// it has a probability below 1e-13 (the tail of linear probing at load 5/8 is `exp(-0.095 n)`).
pub(crate) const PROBE_SLOTS_MAX: usize = 512;

pub(crate) struct Directory {
    slots: Vec<u64>,
    slot_bits: u32,
    /// Upper hash bits that are the same for all rows here.
    level_bits: u32,
    groups: usize,
    /// The most slots between the place of a hash and the slot that it was given.
    longest_probe: usize,
    memory: Reservation,
}

/// Where a probe ended.
pub(crate) enum Probe {
    /// A row with this key is there.
    Found(u32),
    /// No row with this key; this slot is free for it.
    Vacant(usize),
}

impl Directory {
    /// A directory with room for `groups`, `None` where memory is short.
    pub(crate) fn new(
        account: &Account,
        level_bits: u32,
        groups: usize,
    ) -> Result<Option<Directory>, Error> {
        let slot_bits = slot_bits_for(groups);
        let Some(memory) = or_short(account.reserve(bytes_of(slot_bits)))? else {
            return Ok(None);
        };
        let slots = vec![0; 1 << slot_bits];
        Ok(Some(Directory {
            slots,
            slot_bits,
            level_bits,
            groups: 0,
            longest_probe: 0,
            memory,
        }))
    }

    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Forgets every row; keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(0);
        self.groups = 0;
        self.longest_probe = 0;
    }

    /// Whether probes are so long that the hashes cannot be like random ones.
    pub(crate) fn is_crowded(&self) -> bool {
        self.longest_probe > PROBE_SLOTS_MAX
    }

    #[cfg(test)]
    pub(crate) fn longest_probe(&self) -> usize {
        self.longest_probe
    }

    /// Places all rows anew by other hashes, of which `level_bits` are the same for all; false
    /// where memory is short.
    pub(crate) fn place_by(
        &mut self,
        level_bits: u32,
        hash_of: impl Fn(u32) -> u64,
    ) -> Result<bool, Error> {
        let bytes = bytes_of(self.slot_bits);
        // Both directories exist for a moment.
        if or_short(self.memory.try_resize(2 * bytes))?.is_none() {
            return Ok(false);
        }
        let empty = vec![0; self.slots.len()];
        let entries = std::mem::replace(&mut self.slots, empty);
        self.level_bits = level_bits;
        self.longest_probe = 0;
        self.groups = 0;
        for entry in entries.into_iter().filter(|entry| *entry != 0) {
            let hash = hash_of(row_of(entry));
            if let Probe::Vacant(slot) = self.probe(hash, |_| false) {
                self.insert(slot, hash, row_of(entry));
            }
        }
        self.memory.try_resize(bytes)?;
        Ok(true)
    }

    /// Makes room for `more` groups; false where memory is short.
    pub(crate) fn reserve(
        &mut self,
        more: usize,
        hash_of: impl Fn(u32) -> u64,
    ) -> Result<bool, Error> {
        let slot_bits = slot_bits_for(self.groups + more);
        if slot_bits <= self.slot_bits {
            return Ok(true);
        }
        // Both directories exist for a moment.
        let both = bytes_of(slot_bits) + bytes_of(self.slot_bits);
        if or_short(self.memory.try_resize(both))?.is_none() {
            return Ok(false);
        }
        let mut slots = vec![0u64; 1 << slot_bits];
        let mask = slots.len() - 1;
        let from_tag = slot_bits + self.level_bits <= 32;
        for entry in self.slots.iter().filter(|entry| **entry != 0) {
            let hash = if from_tag {
                *entry
            } else {
                hash_of(row_of(*entry))
            };
            let mut slot = slot_of(hash, self.level_bits, slot_bits);
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = *entry;
        }
        self.slots = slots;
        self.slot_bits = slot_bits;
        // Rows that are close together now are found so when the next ones come.
        self.longest_probe = 0;
        self.memory.try_resize(bytes_of(slot_bits))?;
        Ok(true)
    }

    /// Whether probes wait for memory, so that it pays to look ahead.
    pub(crate) fn is_large(&self) -> bool {
        self.slot_bits >= LARGE_SLOT_BITS_MIN
    }

    /// Whether there are others for rows with other hash bits.
    pub(crate) fn is_part(&self) -> bool {
        self.level_bits > 0
    }

    /// Goes with each probe as far as tags tell: gives the slots at which probes go on, and the
    /// rows that keys will be compared with. Slots are loaded before the first of them is looked
    /// at, so that the misses of many probes overlap; the caller may touch the rows in the same
    /// way.
    ///
    /// What is inserted later does not invalidate `starts`: it fills slots that are vacant now, at
    /// which a probe stands still or has not come to.
    pub(crate) fn look_ahead(
        &self,
        hashes: impl Iterator<Item = u64> + Clone,
        starts: &mut Vec<usize>,
        candidates: &mut Vec<u32>,
    ) {
        starts.clear();
        let slot_of = |hash| slot_of(hash, self.level_bits, self.slot_bits);
        starts.extend(hashes.clone().map(slot_of));
        let sum = starts.iter().fold(0, |sum, slot| sum ^ self.slots[*slot]);
        std::hint::black_box(sum);
        let mask = self.slots.len() - 1;
        candidates.clear();
        candidates.resize(starts.len(), 0);
        let mut count = 0;
        for (start, hash) in starts.iter_mut().zip(hashes) {
            let mut slot = *start;
            let entry = loop {
                let entry = self.slots[slot & mask];
                if entry == 0 || entry >> 32 == hash >> 32 {
                    break entry;
                }
                slot += 1;
            };
            *start = slot & mask;
            // Without a jump: whether a key is new is not to be foretold.
            candidates[count] = (entry as u32).wrapping_sub(1);
            count += usize::from(entry != 0);
        }
        candidates.truncate(count);
    }

    /// Looks a key up; `same` compares with the row behind a reference.
    #[inline]
    pub(crate) fn probe(&self, hash: u64, same: impl FnMut(u32) -> bool) -> Probe {
        self.probe_from(None, hash, same)
    }

    /// As [`Directory::probe`], from the slot on that looking ahead came to, if it did.
    #[inline]
    pub(crate) fn probe_from(
        &self,
        start: Option<usize>,
        hash: u64,
        mut same: impl FnMut(u32) -> bool,
    ) -> Probe {
        let mask = self.slots.len() - 1;
        let mut slot = start.unwrap_or_else(|| slot_of(hash, self.level_bits, self.slot_bits));
        loop {
            let entry = self.slots[slot & mask];
            if entry == 0 {
                return Probe::Vacant(slot & mask);
            }
            if entry >> 32 == hash >> 32 && same(row_of(entry)) {
                return Probe::Found(row_of(entry));
            }
            slot += 1;
        }
    }

    /// Fills a vacant slot; the caller has reserved room.
    #[inline]
    pub(crate) fn insert(&mut self, slot: usize, hash: u64, row: u32) {
        self.slots[slot] = (hash >> 32 << 32) | u64::from(row + 1);
        self.groups += 1;
        let place = slot_of(hash, self.level_bits, self.slot_bits);
        let probe = slot.wrapping_sub(place) & (self.slots.len() - 1);
        self.longest_probe = self.longest_probe.max(probe);
    }

    /// Points the slot of a row to another place of it.
    pub(crate) fn relocate(&mut self, hash: u64, from: u32, to: u32) {
        let mask = self.slots.len() - 1;
        let mut slot = slot_of(hash, self.level_bits, self.slot_bits);
        let old = (hash >> 32 << 32) | u64::from(from + 1);
        while self.slots[slot & mask] != old {
            slot += 1;
        }
        self.slots[slot & mask] = (hash >> 32 << 32) | u64::from(to + 1);
    }
}

fn row_of(entry: u64) -> u32 {
    (entry as u32) - 1
}

fn slot_of(hash: u64, level_bits: u32, slot_bits: u32) -> usize {
    ((hash << level_bits) >> (64 - slot_bits)) as usize
}

fn slot_bits_for(groups: usize) -> u32 {
    let slots = (groups * 8 / 5 + 1).next_power_of_two();
    slots.trailing_zeros().max(SLOT_BITS_MIN)
}

fn bytes_of(slot_bits: u32) -> u64 {
    8 << slot_bits
}

/// Bytes that a directory for this many groups takes.
pub(crate) fn directory_bytes(groups: usize) -> u64 {
    bytes_of(slot_bits_for(groups))
}
