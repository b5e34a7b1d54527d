//! The state of a space, and what happens to one page: pin, unpin, load, free.
//!
//! **Owns** the parts of the space and the transitions of the page word. **Never** starts a
//! thread and never makes room; see `room` and `writer`.
//!
//! ```text
//!            allocate                        evict, if clean
//!   free ----------------> resident --------------------------> absent
//!    ^                     |   ^  ^                                |
//!    |     last handle     |   |  +---- loading <--- pin ----------+
//!    +---------------------+   +- moving (to another frame)
//! ```

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use crate::account::{Node, count};
use crate::arena::{Arena, Frame, Size};
use crate::background::Background;
use crate::codec::{self, Codec};
use crate::file::Files;
use crate::guard::Transient;
use crate::io::{Backend, Scratch, Transfer};
use crate::order::Order;
use crate::page::PageInner;
use crate::room::Room;
use crate::table::{
    self, ABSENT, AWAITED, DIRTY, EXCLUSIVE, Entry, FLAGS, FREE, GATHERED, LISTED, LOADING, MOVING,
    ORPHAN, PINS, REFERENCED, RESIDENT, STORED, Slot, Table, WRITING,
};
use crate::{Error, Faults, Operation, Result, SpaceOptions, lock};

/// The background writer looks at the bytes. Miri sees the whole write as a plain read of them.
const LOOKED_AT: u64 = if cfg!(miri) {
    GATHERED | WRITING
} else {
    GATHERED
};

/// Counts the time that a thread stood waiting for a page to be read.
fn count_read_wait(node: &Node, started: Instant) {
    let nanos = started.elapsed().as_nanos();
    count(&node.tally.read_wait_nanos, nanos as u64);
}

/// The state of a space.
pub(crate) struct Core {
    pub(crate) options: SpaceOptions,
    pub(crate) arena: Arena,
    pub(crate) table: Table,
    pub(crate) order: Order,
    pub(crate) files: Files,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) root: Arc<Node>,
    pub(crate) room: Room,
    /// Held by the one thread that empties a block.
    pub(crate) compaction: Mutex<()>,
    /// Pages being read ahead, into frames that nobody claims.
    pub(crate) loading: AtomicU32,
    pub(crate) device_start: Option<(u64, u64)>,
    /// Those that have a [`Share`](crate::Share).
    pub(crate) sharers: Arc<AtomicU64>,
    /// For the writer's thread, which starts when there is something for it to do.
    pub(crate) me: Weak<Core>,
    pub(crate) writer: Background,
}

impl Core {
    pub(crate) fn faults(&self) -> Option<&dyn Faults> {
        self.options.faults.as_deref()
    }

    pub(crate) fn check_grant(&self, node: &Node, bytes: u64) -> Result<()> {
        match self.faults().map(|faults| faults.before(Operation::Grant)) {
            Some(Err(_)) => Err(node.exceeded(bytes)),
            _ => Ok(()),
        }
    }

    /// Pins a page, reading it in if it must be. Returns its frame.
    pub(crate) fn pin(&self, page: &PageInner, exclusive: bool) -> Result<Frame> {
        self.pin_claimed(page, exclusive, false)
    }

    /// Pins a page. If `claimed`, the caller has claimed its bytes and leaves the claim to the pin,
    /// or to the budget if the pin has no use for it.
    pub(crate) fn pin_claimed(
        &self,
        page: &PageInner,
        exclusive: bool,
        mut claimed: bool,
    ) -> Result<Frame> {
        let entry = self.table.entry(page.id);
        let len = page.len as u64;
        // The first pin of a page claims its bytes; a claim is never held while waiting.
        loop {
            let word = entry.load();
            let pins = word & PINS;
            let resident = table::state(word) == RESIDENT;
            let blocked = match table::state(word) {
                RESIDENT if exclusive => word & (EXCLUSIVE | LOOKED_AT) != 0 || pins != 0,
                RESIDENT => word & EXCLUSIVE != 0 || pins == PINS,
                ABSENT => false,
                _ => true,
            };
            if blocked {
                if std::mem::take(&mut claimed) {
                    page.node.unclaim(len);
                }
                match table::state(word) {
                    LOADING => self.wait_for_read(page, word),
                    _ => self.table.wait(page.id, word),
                }
                continue;
            }
            if pins == 0 && !claimed {
                page.node.claim(len)?;
                claimed = true;
            }
            let to = match (resident, exclusive) {
                (false, _) => (word & FLAGS) | LOADING,
                (true, true) => (word & !STORED) | EXCLUSIVE | DIRTY | 1,
                (true, false) => word + 1,
            };
            if entry.swap(word, to).is_err() {
                continue;
            }
            if !resident {
                return self
                    .load(page, entry, exclusive)
                    .inspect_err(|_| page.node.unclaim(len));
            }
            if pins == 0 {
                page.node.pinned(len);
            } else if claimed {
                page.node.unclaim(len);
            }
            if exclusive && word & STORED != 0 {
                self.drop_copy(entry, &page.node, page.len);
            }
            return Ok(table::frame(word));
        }
    }

    /// Waits for a page that another thread reads.
    #[cold]
    fn wait_for_read(&self, page: &PageInner, word: u64) {
        let started = Instant::now();
        self.table.wait(page.id, word);
        count_read_wait(&page.node, started);
    }

    /// Pins a page that the caller has pinned for reading already.
    pub(crate) fn pin_again(&self, page: &PageInner) {
        let entry = self.table.entry(page.id);
        loop {
            let word = entry.load();
            if word & PINS == PINS {
                std::thread::yield_now();
            } else if entry.swap(word, word + 1).is_ok() {
                return;
            }
        }
    }

    /// Turns a shared pin into an exclusive one once it is the only pin.
    pub(crate) fn upgrade(&self, page: &PageInner) {
        let entry = self.table.entry(page.id);
        loop {
            let word = entry.load();
            if word & PINS != 1 || word & LOOKED_AT != 0 {
                self.table.wait(page.id, word);
                continue;
            }
            let to = (word & !STORED) | EXCLUSIVE | DIRTY;
            if entry.swap(word, to).is_err() {
                continue;
            }
            if word & STORED != 0 {
                self.drop_copy(entry, &page.node, page.len);
            }
            return;
        }
    }

    /// Turns an exclusive pin into a shared one.
    pub(crate) fn downgrade(&self, page: &PageInner) {
        let entry = self.table.entry(page.id);
        let before = entry.update(|word| Some(word & !(EXCLUSIVE | AWAITED)));
        self.table.wake(page.id, before.unwrap_or_else(|word| word));
    }

    /// Takes a pin away. The page is not listed if `going`: its last handle goes with the guard.
    /// Returns whether it was the last pin, whose claim is left to the caller: it may be given up
    /// only when others can have the frame, so after a handle that goes.
    pub(crate) fn unpin(&self, page: &PageInner, exclusive: bool, going: bool) -> bool {
        let entry = self.table.entry(page.id);
        let before = entry.update(|word| {
            let to = (word - 1) | REFERENCED;
            // Writers wait for the last pin to go, an upgrade for all but its own.
            let wakes = to & PINS <= 1;
            let to = if exclusive { to & !EXCLUSIVE } else { to };
            Some(if wakes { to & !AWAITED } else { to })
        });
        let before = before.unwrap_or_else(|word| word);
        let was_last = before & PINS == 1;
        if before & PINS <= 2 {
            self.table.wake(page.id, before);
        }
        if was_last {
            page.node.unpinned(page.len as u64);
            if before & (LISTED | WRITING) == 0 && !going {
                self.order.list(&self.arena, &self.table, page.id);
            }
        }
        was_last
    }

    /// Gives up the disk copy of a page that no longer has the STORED flag.
    pub(crate) fn drop_copy(&self, entry: &Entry, node: &Node, len: usize) {
        let slot = lock(&entry.beside).slot.take();
        if let Some(slot) = slot {
            if !slot.useful {
                count(&node.tally.wasted_write_bytes, len as u64);
            }
            self.release_slot(node, &slot);
        }
    }

    pub(crate) fn release_slot(&self, node: &Node, slot: &Slot) {
        self.files
            .give(slot.file, slot.offset, u64::from(slot.stored_bytes));
        node.return_disk(u64::from(slot.stored_bytes));
        self.order.forgive(&self.arena, &self.table);
    }

    /// Gives back the frame of a page. The account counts it no longer when others can have it, so
    /// that the accounts together never count more than there is.
    pub(crate) fn release_frame(&self, node: &Node, frame: Frame, size: Size) {
        node.evicted(self.arena.len_of(size) as u64);
        self.arena.free(frame, size);
    }

    /// Frees a page whose last handle is gone, or leaves that to whoever holds it.
    pub(crate) fn free_page(&self, id: u32) {
        let entry = self.table.entry(id);
        loop {
            let word = entry.load();
            debug_assert_eq!(word & PINS, 0, "guards hold a handle");
            if word & WRITING != 0 || matches!(table::state(word), MOVING | LOADING) {
                if entry.swap(word, word | ORPHAN).is_ok() {
                    return;
                }
            } else if word & LISTED != 0 {
                self.order.unlist(&self.arena, &self.table, id);
            } else if entry.swap(word, FREE).is_ok() {
                self.free_entry(id, word);
                return;
            }
        }
    }

    /// Ends the transient state of a page that the caller holds: the page gets the word that `next`
    /// makes of its own, or is freed if its last handle went meanwhile. Returns the word before;
    /// `None` if the page was freed.
    ///
    /// One exchange decides. A page that left the state first and was freed afterwards could be
    /// taken by somebody else in between, who would find it orphaned and free it as well.
    fn leave(&self, id: u32, next: impl Fn(u64) -> u64) -> Option<u64> {
        let entry = self.table.entry(id);
        loop {
            let word = entry.load();
            let left = next(word & !AWAITED);
            if word & ORPHAN == 0 {
                if entry.swap(word, left).is_ok() {
                    self.table.wake(id, word);
                    return Some(word);
                }
            } else if word & LISTED != 0 {
                self.order.unlist(&self.arena, &self.table, id);
            } else if entry.swap(word, FREE).is_ok() {
                self.free_entry(id, left);
                return None;
            }
        }
    }

    /// Frees what an entry held when its word became free; `word` is what it was before, or would
    /// have become.
    fn free_entry(&self, id: u32, word: u64) {
        let entry = self.table.entry(id);
        let beside = std::mem::take(&mut *lock(&entry.beside));
        let node = beside.account.expect("a page has an account");
        let size = entry.size();
        match table::state(word) {
            RESIDENT => self.release_frame(&node, table::frame(word), size),
            _ => node.came_back(self.arena.len_of(size) as u64),
        }
        count(&node.tally.pages_freed, 1);
        if let Some(slot) = beside.slot {
            if !slot.useful {
                count(
                    &node.tally.wasted_write_bytes,
                    self.arena.len_of(size) as u64,
                );
            }
            self.release_slot(&node, &slot);
        }
        entry.set_next_use(crate::NextUse::SecondChance);
        self.table.return_id(id);
    }

    /// Reads a page that the caller has put in the loading state, and pins it.
    fn load(&self, page: &PageInner, entry: &Entry, exclusive: bool) -> Result<Frame> {
        page.node.came_back(page.len as u64);
        let result = self
            .check_grant(&page.node, page.len as u64)
            .and_then(|()| self.frame_for(page.id, entry.size(), &page.node))
            .and_then(|frame| {
                self.read_page(page, entry, frame)
                    .inspect_err(|_| self.release_frame(&page.node, frame, entry.size()))
                    .map(|()| frame)
            });
        if result.is_err() {
            page.node.went_away(page.len as u64);
        }
        let left = self.leave(page.id, |word| match result {
            Err(_) => ABSENT | (word & FLAGS),
            Ok(frame) if exclusive => {
                let flags = word & FLAGS & !STORED;
                RESIDENT | EXCLUSIVE | DIRTY | 1 | flags | table::frame_bits(frame)
            }
            Ok(frame) => RESIDENT | 1 | (word & FLAGS) | table::frame_bits(frame),
        });
        debug_assert!(left.is_some(), "whoever pins a page has a handle on it");
        if result.is_ok() {
            page.node.pinned(page.len as u64);
            count(&page.node.tally.read_misses, 1);
            if exclusive {
                self.drop_copy(entry, &page.node, page.len);
            }
        }
        result
    }

    fn read_page(&self, page: &PageInner, entry: &Entry, frame: Frame) -> Result<()> {
        let slot = lock(&entry.beside).slot.expect("an absent page is on disk");
        let mut bytes = Transient::new(self, page.id, frame);
        let (segment, scratch) = read_target(&slot, &bytes);
        let transfer = Transfer {
            handle: Arc::clone(self.files.handle(slot.file)),
            write: false,
            offset: slot.offset,
            segments: vec![segment],
            scratch: scratch.map(Arc::new),
            tag: 0,
        };
        let result = match self.faults().map(|faults| faults.before(Operation::Read)) {
            Some(Err(error)) => Err(error),
            _ => {
                let started = Instant::now();
                let read = self.backend.run(&transfer);
                count_read_wait(&page.node, started);
                read
            }
        };
        result.map_err(|source| self.io_error("read", slot.file, source))?;
        self.deliver(&slot, &mut bytes, transfer.scratch.as_deref())?;
        self.count_read(&page.node, &slot, page.len);
        if let Some(slot) = lock(&entry.beside).slot.as_mut() {
            slot.useful = true;
        }
        Ok(())
    }

    pub(crate) fn count_read(&self, node: &Node, slot: &Slot, len: usize) {
        count(&node.tally.bytes_read, len as u64);
        if self.files.handle(slot.file).direct {
            count(&node.tally.device_bytes_read, u64::from(slot.stored_bytes));
        }
    }

    pub(crate) fn io_error(
        &self,
        operation: &'static str,
        file: u16,
        source: std::io::Error,
    ) -> Error {
        Error::Io {
            operation,
            dir: self.files.dir(file).to_path_buf(),
            source,
        }
    }

    /// Decodes what was read for a page and checks it.
    pub(crate) fn deliver(
        &self,
        slot: &Slot,
        bytes: &mut Transient<'_>,
        scratch: Option<&Scratch>,
    ) -> Result<()> {
        let page = bytes.loading();
        if let (Some(faults), Codec::Raw) = (self.faults(), slot.codec) {
            faults.after_read(page);
        }
        let decoded = match (slot.codec, scratch) {
            (Codec::Raw, _) => true,
            (_, None) => false,
            (codec, Some(scratch)) if let Some(faults) = self.faults() => {
                let mut coded = scratch.bytes()[..slot.coded_bytes as usize].to_vec();
                faults.after_read(&mut coded);
                codec::decode(codec, &coded, page)
            }
            (codec, Some(scratch)) => {
                codec::decode(codec, &scratch.bytes()[..slot.coded_bytes as usize], page)
            }
        };
        if decoded && codec::checksum(page) == slot.checksum {
            return Ok(());
        }
        Err(Error::Corrupt {
            dir: self.files.dir(slot.file).to_path_buf(),
            offset: slot.offset,
            len_bytes: u64::from(slot.stored_bytes),
        })
    }

    /// Ends a background read of a page.
    pub(crate) fn finish_prefetch(&self, page: &PageInner, frame: Frame, ok: bool) {
        if !ok {
            self.release_frame(&page.node, frame, self.table.entry(page.id).size());
            self.abandon_load(page);
            return;
        }
        let entry = self.table.entry(page.id);
        count(&page.node.tally.prefetched_pages, 1);
        if let Some(slot) = lock(&entry.beside).slot.as_mut() {
            slot.useful = true;
        }
        let left = self.leave(page.id, |word| {
            RESIDENT | REFERENCED | (word & FLAGS) | table::frame_bits(frame)
        });
        if left.is_some() {
            self.order.list(&self.arena, &self.table, page.id);
        }
        self.loading.fetch_sub(1, Relaxed);
    }

    /// Puts a page that could not be read ahead back to being absent.
    pub(crate) fn abandon_load(&self, page: &PageInner) {
        page.node.went_away(page.len as u64);
        self.leave(page.id, |word| ABSENT | (word & FLAGS));
        self.loading.fetch_sub(1, Relaxed);
    }

    /// Ends the look of the background writer at a page; writers may pin it from here on.
    pub(crate) fn end_gather(&self, id: u32) {
        let entry = self.table.entry(id);
        let before = entry.update(|word| Some(word & !(GATHERED | AWAITED)));
        self.table.wake(id, before.unwrap_or_else(|word| word));
    }

    /// Ends a write of a page, with the slot that holds it or without one.
    pub(crate) fn finish_write(&self, id: u32, slot: Option<Slot>) {
        let entry = self.table.entry(id);
        let node = entry.account().expect("a page being written is not freed");
        let len = self.arena.len_of(entry.size());
        lock(&entry.beside).slot = slot;
        let left = self.leave(id, |word| {
            let to = word & !(WRITING | GATHERED);
            match slot {
                Some(_) if word & DIRTY == 0 => to | STORED,
                _ => to | DIRTY,
            }
        });
        let Some(before) = left else { return };
        if before & DIRTY != 0 {
            self.drop_copy(entry, &node, len);
        }
        if slot.is_some() {
            self.order.list(&self.arena, &self.table, id);
        } else {
            self.order.list_refused(&self.arena, &self.table, id);
        }
    }

    /// Moves an unpinned page to another frame of its class; `false` when it cannot be.
    pub(crate) fn relocate(&self, id: u32, from: Frame) -> bool {
        let entry = self.table.entry(id);
        let begun = entry.update(|word| {
            let here = table::frame(word) == from && is_movable(word);
            here.then_some(word ^ RESIDENT ^ MOVING)
        });
        if begun.is_err() {
            return false;
        }
        let size = entry.size();
        let to = self.arena.allocate(size, id, false);
        if let Some(to) = to {
            Transient::new(self, id, from).copy_to(to);
        }
        let place = table::frame_bits(to.unwrap_or(from));
        let left = self.leave(id, |word| RESIDENT | (word & FLAGS) | place);
        if to.is_some() {
            self.arena.free(from, size);
        }
        if left.is_some() {
            self.order.list(&self.arena, &self.table, id);
        }
        to.is_some()
    }
}

/// Whether a page may change its frame.
pub(crate) fn is_movable(word: u64) -> bool {
    table::state(word) == RESIDENT && word & (PINS | EXCLUSIVE | WRITING | GATHERED) == 0
}

/// Where the bytes of a slot are read to: the frame, or scratch memory to decode from.
pub(crate) fn read_target(
    slot: &Slot,
    bytes: &Transient<'_>,
) -> (crate::io::Segment, Option<Scratch>) {
    if slot.codec == Codec::Raw {
        return (bytes.segment(), None);
    }
    let scratch = Scratch::new(slot.stored_bytes as usize);
    (scratch.segment(0, scratch.len()), Some(scratch))
}
