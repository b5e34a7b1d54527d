//! A hash table whose rows live in pages: one row a group, states merged in place.
//!
//! All pages of a table are pinned while it is one; withdrawing it drops the directory and unpins
//! them, and what is left are rows that any later pass can merge again. `adopt` builds a directory
//! over pages as they are.
//!
//! A row that becomes longer moves, and where there is no room for it the row that would make it
//! longer does not go in: that is shortage of memory as any other. What it leaves behind is got
//! back when more of the pages is dead than alive.
//!
//! Rows are placed by the first hash of their keys, which they carry. A table whose probes become
//! too long places all of them anew by the second one, which is computed from the key each time.

mod lookup;
mod pages;
mod targets;

pub(crate) use lookup::Found;
pub(crate) use targets::Targets;

use std::sync::Arc;

use super::Error;
use super::compact::compact;
use super::direct::Direct;
use super::directory::{Directory, Probe};
use super::drain::Drain;
use super::encode::{KeysView, RowsView, same_bytes};
use super::hash::Level;
use super::layout::{ROW_ALIGN, forward, forwarded_to, row_hash, row_is_dead};
use super::numbered_row::{number_of, numbered_row};
use super::payload;
use super::segment::{OpenSegment, Segment, Shape, walk};
use super::short_keys::ShortKeys;
use super::state::merge_state;

/// Buffers that a worker keeps between calls.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) offsets: Vec<u32>,
    pub(crate) hashes: Vec<u64>,
    pairs: Vec<(u32, u32)>,
    ahead: Ahead,
    row: Vec<u8>,
}

/// What looking ahead found; empty where all is in the cache.
#[derive(Default)]
struct Ahead {
    /// The slots at which probes go on.
    starts: Vec<usize>,
    /// Rows that keys will be compared with.
    rows: Vec<u32>,
}

impl Ahead {
    #[inline]
    fn start(&self, at: usize) -> Option<usize> {
        self.starts.get(at).copied()
    }
}

/// Keys that are looked up together: their slots and rows stay in the first-level cache meanwhile,
/// and are more than it loads at a time.
const WINDOW_ROWS: usize = 128;

pub(crate) struct RowTable {
    shape: Arc<Shape>,
    segments: Vec<OpenSegment>,
    /// The page that takes the next row.
    filling: usize,
    directory: Directory,
    /// Whether rows are placed by the second hash of their keys.
    by_second: bool,
    /// Beside the directory where the key is one number; a cache of what it knows.
    direct: Option<Direct>,
    /// The same for few groups whose keys are short.
    short: Option<ShortKeys>,
    groups_max: usize,
    /// Bytes of its pages.
    bytes: usize,
    /// What they may be; a table that is only a cache keeps to little.
    bytes_max: usize,
    /// Bytes of rows that moved away since the room of such rows was last got back.
    dead_bytes: usize,
    /// When to look whether that is worth while.
    dead_bytes_max: usize,
    /// Whether rows are linked with others of their key.
    has_doubles: bool,
}

impl RowTable {
    /// An empty table, `None` where memory is short.
    pub(crate) fn new(
        shape: &Arc<Shape>,
        level: Level,
        groups_expected: usize,
        groups_max: usize,
    ) -> Result<Option<RowTable>, Error> {
        let shared_bits = level.shared_bits();
        let directory = Directory::new(&shape.account, shared_bits, groups_expected)?;
        Ok(directory.map(|directory| RowTable {
            shape: Arc::clone(shape),
            segments: Vec::new(),
            filling: 0,
            directory,
            by_second: level.is_second(),
            direct: None,
            short: None,
            groups_max,
            bytes: 0,
            bytes_max: usize::MAX,
            dead_bytes: 0,
            dead_bytes_max: shape.page_class.bytes(),
            has_doubles: false,
        }))
    }

    /// The table as a worker's own: with a limit to the bytes of its pages, and, where keys are
    /// numbers or short, found without encoding them.
    pub(crate) fn for_worker(self, bytes_max: usize) -> Result<RowTable, Error> {
        let Shape {
            layout, account, ..
        } = &*self.shape;
        let direct = Direct::for_layout(layout, account, bytes_max);
        let short = match direct {
            None => ShortKeys::for_layout(layout, account)?,
            Some(_) => None,
        };
        Ok(RowTable {
            bytes_max,
            direct,
            short,
            ..self
        })
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn shape_arc(&self) -> Arc<Shape> {
        Arc::clone(&self.shape)
    }

    pub(crate) fn groups(&self) -> usize {
        self.directory.groups()
    }

    /// Bytes of its pages and its directories.
    pub(crate) fn held_bytes(&self) -> u64 {
        let direct = self.direct.as_ref().map_or(0, Direct::held_bytes);
        self.bytes as u64 + self.directory.held_bytes() + direct
    }

    pub(crate) fn segments(&self) -> &[OpenSegment] {
        &self.segments
    }

    /// Empties the table and keeps its directory and its pages, but for those of large rows.
    pub(crate) fn clear(&mut self) {
        self.directory.clear();
        if let Some(direct) = &mut self.direct {
            direct.clear();
        }
        if let Some(short) = &mut self.short {
            short.clear();
        }
        self.filling = 0;
        self.dead_bytes = 0;
        let page_bytes = self.shape.page_class.bytes();
        self.segments.retain(|s| s.guard.len() <= page_bytes);
        self.bytes = 0;
        for segment in &mut self.segments {
            segment.used = 0;
            segment.rows = 0;
            self.bytes += segment.guard.len();
        }
    }

    /// Gives up the directory and unpins the pages.
    pub(crate) fn withdraw(self, next_use: u32) -> impl Iterator<Item = Segment> {
        self.segments
            .into_iter()
            .filter(|s| s.rows > 0)
            .map(move |s| s.close(next_use))
    }

    /// Merges the selected rows in, in order. Returns how many went in: fewer than asked where
    /// memory is short or the table is full.
    pub(crate) fn upsert(
        &mut self,
        rows: RowsView<'_>,
        selection: &[u32],
        scratch: &mut Scratch,
    ) -> Result<usize, Error> {
        let mut taken = 0;
        scratch.pairs.clear();
        if !self.reserve(selection.len())? {
            return Ok(0);
        }
        for window in selection.chunks(WINDOW_ROWS) {
            if !self.begin_window()? {
                break;
            }
            let in_window = self.upsert_window(rows, window, scratch)?;
            taken += in_window;
            if in_window < window.len() {
                break;
            }
        }
        self.merge_pairs(rows, &scratch.pairs);
        Ok(taken)
    }

    fn upsert_window(
        &mut self,
        rows: RowsView<'_>,
        window: &[u32],
        scratch: &mut Scratch,
    ) -> Result<usize, Error> {
        let shape = Arc::clone(&self.shape);
        let key_start = shape.layout.key_start();
        let hashes = window.iter().map(|index| rows.hashes[*index as usize]);
        self.look_ahead(hashes, &mut scratch.ahead);
        for (taken, index) in window.iter().enumerate() {
            if self.dead_bytes > self.dead_bytes_max {
                self.reclaim(scratch);
                // The groups are in other slots.
                scratch.ahead.starts.clear();
            }
            let row = &rows.bytes[rows.offsets[*index as usize] as usize..];
            let key = shape.layout.key_of(row);
            let hash = self.placing_hash(rows.hashes[*index as usize], key);
            let start = scratch.ahead.start(taken);
            match self
                .directory
                .probe_from(start, hash, |r| self.same_key(r, key, key_start))
            {
                Probe::Found(target) if shape.layout.payload_is_first => {
                    scratch.pairs.push((*index, target));
                }
                Probe::Found(target) => {
                    // One at a time: it may be the last one that there is memory for.
                    if !self.merge_row(row, target, &mut scratch.row)? {
                        return Ok(taken);
                    }
                }
                Probe::Vacant(slot) => {
                    if self.groups() >= self.groups_max {
                        return Ok(taken);
                    }
                    let Some(reference) = self.append(&row[..shape.layout.row_len(row)])? else {
                        return Ok(taken);
                    };
                    self.directory.insert(slot, hash, reference);
                }
            }
        }
        Ok(window.len())
    }

    /// Brings the slots and rows that probes will look at into the cache, all misses at once, and
    /// tells where the probes begin; nothing where all is in the cache.
    fn look_ahead(&self, hashes: impl Iterator<Item = u64> + Clone, ahead: &mut Ahead) {
        ahead.starts.clear();
        // A table of a join is one of many that are probed in turn.
        let is_large = self.directory.is_large()
            || (self.shape.layout.has_links() && self.directory.is_part());
        if !is_large || self.by_second {
            return;
        }
        let Ahead { starts, rows } = ahead;
        self.directory.look_ahead(hashes, starts, rows);
        // The header may end one cache line and the key begin the next.
        let key_start = self.shape.layout.key_start();
        let sum = rows.iter().fold(0, |sum, reference| {
            let row = row_at(&self.shape, &self.segments, *reference);
            sum ^ row[0] ^ row[key_start]
        });
        std::hint::black_box(sum);
    }

    fn reserve(&mut self, more: usize) -> Result<bool, Error> {
        let more = more.min(self.groups_max - self.groups());
        let (shape, segments, by_second) = (&self.shape, &self.segments, self.by_second);
        let reserved = self.directory.reserve(more, |reference| {
            let row = row_at(shape, segments, reference);
            match by_second {
                false => row_hash(row),
                true => second_hash(shape, row),
            }
        });
        Ok(reserved?)
    }

    /// Looks around before some more rows: whether they are still wanted, and whether they can be
    /// placed as those before. False where memory is short.
    fn begin_window(&mut self) -> Result<bool, Error> {
        self.shape.stop.check()?;
        if !self.directory.is_crowded() || self.by_second {
            return Ok(true);
        }
        let (shape, segments) = (&self.shape, &self.segments);
        let placed = self.directory.place_by(0, |reference| {
            second_hash(shape, row_at(shape, segments, reference))
        })?;
        self.by_second |= placed;
        Ok(placed)
    }

    /// The hash that places a row, by its key and the first hash of that.
    #[inline]
    fn placing_hash(&self, hash: u64, key: &[u8]) -> u64 {
        if self.by_second {
            return self.shape.hasher.second_hash(key);
        }
        hash
    }

    /// The most slots that were looked at for a row.
    #[cfg(test)]
    pub(crate) fn longest_probe(&self) -> usize {
        self.directory.longest_probe()
    }

    fn same_key(&self, reference: u32, key: &[u8], key_start: usize) -> bool {
        let row = row_at(&self.shape, &self.segments, reference);
        // A section says its own length, so one cannot be the head of another.
        row.get(key_start..key_start + key.len())
            .is_some_and(|found| same_bytes(found, key))
    }

    /// Copies a row behind the others; `None` where memory is short.
    fn append(&mut self, row: &[u8]) -> Result<Option<u32>, Error> {
        // Behind the page being filled there may be empty ones, kept by `clear`.
        while self
            .segments
            .get(self.filling)
            .is_some_and(|s| !s.has_room(row.len()))
        {
            if self.segments[self.filling].rows == 0 {
                // Too small for this row even when empty: the row's own page goes before it.
                break;
            }
            self.filling += 1;
        }
        if self
            .segments
            .get(self.filling)
            .is_none_or(|s| !s.has_room(row.len()))
        {
            let bytes = row.len().max(self.shape.page_class.bytes());
            if self.segments.len() >= self.shape.pages_max() || self.bytes + bytes > self.bytes_max
            {
                return Ok(None);
            }
            let Some(segment) = self.shape.open(row.len())? else {
                return Ok(None);
            };
            self.bytes += segment.guard.len();
            self.segments.insert(self.filling, segment);
        }
        let offset = self.segments[self.filling].push(row);
        Ok(Some(reference_to(&self.shape, self.filling, offset)))
    }

    /// Merges rows whose payload stays as it is, which takes no memory.
    fn merge_pairs(&mut self, rows: RowsView<'_>, pairs: &[(u32, u32)]) {
        let shape = Arc::clone(&self.shape);
        for slot in &shape.layout.states {
            for (index, target) in pairs {
                let source = &rows.bytes[rows.offsets[*index as usize] as usize..];
                let (segment, offset) = place_of(&shape, *target);
                merge_state(slot, source, &mut self.segments[segment].guard[offset..]);
            }
        }
    }

    /// Merges one row whose payload may change the length of the target. Where there is no room for
    /// a target that grows, nothing is merged, and the answer is false.
    fn merge_row(
        &mut self,
        source: &[u8],
        mut target: u32,
        merged: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let shape = Arc::clone(&self.shape);
        while row_is_dead(row_at(&shape, &self.segments, target)) {
            // The pages were indexed before an earlier row moved the group.
            target = forwarded_to(row_at(&shape, &self.segments, target));
        }
        let old = row_at(&shape, &self.segments, target);
        if payload::source_wins(&shape.layout, source, old) {
            payload::merge(&shape.layout, source, old, merged);
            let room = shape.layout.row_len(old);
            if merged.len() <= room {
                let (segment, offset) = place_of(&shape, target);
                let row = &mut self.segments[segment].guard[offset..];
                row[..merged.len()].copy_from_slice(merged);
                // The row keeps its room.
                shape.layout.set_row_len(row, room);
            } else {
                let Some(moved) = self.append(merged)? else {
                    return Ok(false);
                };
                let key = shape.layout.key_of(source);
                let hash = self.placing_hash(row_hash(source), key);
                self.directory.relocate(hash, target, moved);
                let (segment, offset) = place_of(&shape, target);
                // For pairs that still name the old place.
                forward(&mut self.segments[segment].guard[offset..], moved);
                self.dead_bytes += room;
                target = moved;
            }
        }
        let (segment, offset) = place_of(&shape, target);
        for slot in &shape.layout.states {
            merge_state(slot, source, &mut self.segments[segment].guard[offset..]);
        }
        Ok(true)
    }

    /// Gets the room of dead rows back when it is more than that of living ones: memory follows the
    /// groups, however often they grow. Every reference to a row changes.
    fn reclaim(&mut self, scratch: &mut Scratch) {
        let rows: usize = self.segments.iter().map(|page| page.used as usize).sum();
        if self.dead_bytes * 2 <= rows {
            // Looked at again when as much has died once more as is alive.
            self.dead_bytes_max = rows - self.dead_bytes;
            return;
        }
        let groups = self.groups();
        let layout = &self.shape.layout;
        self.segments = compact(layout, std::mem::take(&mut self.segments));
        self.filling = self.segments.len().saturating_sub(1);
        self.bytes = self.segments.iter().map(|page| page.guard.len()).sum();
        self.directory.clear();
        self.direct = None;
        self.short = None;
        for (number, page) in self.segments.iter().enumerate() {
            let Scratch {
                offsets, hashes, ..
            } = &mut *scratch;
            walk(layout, &page.guard, page.used, offsets, hashes);
            for (offset, hash) in offsets.iter().zip(hashes.iter()) {
                let hash = match self.by_second {
                    false => *hash,
                    true => second_hash(&self.shape, page.row(*offset as usize)),
                };
                // No two rows have one key.
                if let Probe::Vacant(slot) = self.directory.probe(hash, |_| false) {
                    let reference = reference_to(&self.shape, number, *offset);
                    self.directory.insert(slot, hash, reference);
                }
            }
        }
        assert_eq!(self.groups(), groups, "living rows are the groups");
        self.dead_bytes = 0;
        self.dead_bytes_max = self.shape.page_class.bytes();
    }

    /// Appends the group number of each key to `numbers`, giving new keys the next one; the
    /// layout's only state is that number. False where memory is short.
    pub(crate) fn number(
        &mut self,
        keys: KeysView<'_>,
        numbers: &mut Vec<u32>,
        scratch: &mut Scratch,
    ) -> Result<bool, Error> {
        let shape = Arc::clone(&self.shape);
        let key_start = shape.layout.key_start();
        if !self.reserve(keys.hashes.len())? {
            return Ok(false);
        }
        for (window, hashes) in keys.hashes.chunks(WINDOW_ROWS).enumerate() {
            if !self.begin_window()? {
                return Ok(false);
            }
            self.look_ahead(hashes.iter().copied(), &mut scratch.ahead);
            for (at, first_hash) in hashes.iter().enumerate() {
                let key = keys.key(window * WINDOW_ROWS + at);
                let hash = self.placing_hash(*first_hash, key);
                let start = scratch.ahead.start(at);
                match self
                    .directory
                    .probe_from(start, hash, |r| self.same_key(r, key, key_start))
                {
                    Probe::Found(found) => {
                        let row = row_at(&shape, &self.segments, found);
                        numbers.push(number_of(&shape.layout, row));
                    }
                    Probe::Vacant(slot) => {
                        let number =
                            u32::try_from(self.groups()).expect("below 2^32 groups a part");
                        numbered_row(&shape.layout, &mut scratch.row, *first_hash, key, number);
                        let Some(reference) = self.append(&scratch.row)? else {
                            return Ok(false);
                        };
                        self.directory.insert(slot, hash, reference);
                        numbers.push(number);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Reads the groups out; pages are freed behind the reader.
    pub(crate) fn drain(self) -> Drain {
        Drain::new(self.shape, self.segments, Vec::new())
    }
}

fn reference_to(shape: &Shape, segment: usize, offset: u32) -> u32 {
    let segment = u32::try_from(segment).expect("a partition has below 2^19 pages");
    (segment << shape.offset_bits) | (offset / ROW_ALIGN as u32)
}

fn place_of(shape: &Shape, reference: u32) -> (usize, usize) {
    let mask = (1u32 << shape.offset_bits) - 1;
    (
        (reference >> shape.offset_bits) as usize,
        (reference & mask) as usize * ROW_ALIGN,
    )
}

/// The second hash of the key of a row.
fn second_hash(shape: &Shape, row: &[u8]) -> u64 {
    shape.hasher.second_hash(shape.layout.key_of(row))
}

fn row_at<'a>(shape: &Shape, segments: &'a [OpenSegment], reference: u32) -> &'a [u8] {
    let (segment, offset) = place_of(shape, reference);
    segments[segment].row(offset)
}
