//! The page table: a flat array with one entry per page.
//!
//! **Owns** the state of every page. **Never** owns bytes; the frame is the arena's and the slot
//! the file's.
//!
//! One 64-bit word per page says everything that a pin has to know, so that a pin is one
//! compare-and-swap:
//!
//! ```text
//!  63            32 31                    24 23  21   20    19          0
//!  +---------------+------------------------+------+------+-------------+
//!  | frame         | flags                  |state | excl | pins        |
//!  +---------------+------------------------+------+------+-------------+
//! ```
//!
//! **Source**: the page word of vmcache (Leis et al., SIGMOD 2023), with a pin count in place of
//! the version, because readers here are never optimistic.

use std::sync::atomic::{
    AtomicU8, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::NextUse;
use crate::account::Node;
use crate::arena::{Frame, Size};
use crate::codec::Codec;
use crate::lock;
use crate::sync::{self, AtomicWord, Condvar, FIRST_CHUNK, PARKING, SPINS, spin_loop};

/// Guards on the page; one while a writer holds it.
pub(crate) const PINS: u64 = 0xf_ffff;
/// A writer holds the page.
pub(crate) const EXCLUSIVE: u64 = 1 << 20;
const STATE: u64 = 7 << 21;
/// The entry belongs to no page.
pub(crate) const FREE: u64 = 0;
/// The page has a frame.
pub(crate) const RESIDENT: u64 = 1 << 21;
/// The page is on disk only.
pub(crate) const ABSENT: u64 = 2 << 21;
/// Somebody reads the page into a frame.
pub(crate) const LOADING: u64 = 3 << 21;
/// Somebody copies the page to another frame.
pub(crate) const MOVING: u64 = 4 << 21;
/// The frame differs from the disk copy, or there is none.
pub(crate) const DIRTY: u64 = 1 << 24;
/// A write of the page is under way. Together with DIRTY: changed since.
pub(crate) const WRITING: u64 = 1 << 25;
/// The background writer looks at the bytes: readers may pin, writers wait.
pub(crate) const GATHERED: u64 = 1 << 26;
/// The page is in one of the lists of `order`.
pub(crate) const LISTED: u64 = 1 << 27;
/// The page was used since second chance saw it last.
pub(crate) const REFERENCED: u64 = 1 << 28;
/// Somebody waits for the word to change.
pub(crate) const AWAITED: u64 = 1 << 29;
/// The last handle is gone; whoever holds the page in a transient state frees it.
pub(crate) const ORPHAN: u64 = 1 << 30;
/// The slot holds a copy of the page.
pub(crate) const STORED: u64 = 1 << 31;

const FRAME_SHIFT: u32 = 32;
/// What a change of residence leaves alone.
pub(crate) const FLAGS: u64 = 0xff << 24;

pub(crate) fn state(word: u64) -> u64 {
    word & STATE
}

pub(crate) fn frame(word: u64) -> Frame {
    Frame((word >> FRAME_SHIFT) as u32)
}

pub(crate) fn frame_bits(frame: Frame) -> u64 {
    u64::from(frame.0) << FRAME_SHIFT
}

/// Where the disk copy of a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) file: u16,
    pub(crate) codec: Codec,
    /// Whether the copy has been of use: the frame was given up or the copy read back.
    pub(crate) useful: bool,
    pub(crate) offset: u64,
    /// Bytes in the file, a multiple of 4 KiB.
    pub(crate) stored_bytes: u32,
    /// Bytes before padding.
    pub(crate) coded_bytes: u32,
    pub(crate) checksum: u64,
}

/// What an entry holds beside its word, under its lock.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) slot: Option<Slot>,
    pub(crate) account: Option<Arc<Node>>,
}

/// The state of one page.
pub(crate) struct Entry {
    pub(crate) word: AtomicWord,
    /// `NextUse` in 33 bits.
    next_use: AtomicU64,
    /// Class index, or the blocks of a run with the top bit set.
    size: AtomicU32,
    /// List links and the list itself; changed under the lock of `order` only.
    pub(crate) next: AtomicU32,
    pub(crate) previous: AtomicU32,
    pub(crate) list_key: AtomicU32,
    pub(crate) list: AtomicU8,
    pub(crate) beside: sync::Mutex<Beside>,
}

// Entries are outside of the budget; ARCHITECTURE.md says what they come to.
const _: () = assert!(size_of::<Entry>() <= 96);

const SECOND_CHANCE: u64 = 1 << 32;
const RUN: u32 = 1 << 31;

impl Entry {
    fn new() -> Entry {
        Entry {
            word: AtomicWord::new(FREE),
            next_use: AtomicU64::new(SECOND_CHANCE),
            size: AtomicU32::new(0),
            next: AtomicU32::new(0),
            previous: AtomicU32::new(0),
            list_key: AtomicU32::new(0),
            list: AtomicU8::new(0),
            beside: sync::Mutex::new(Beside::default()),
        }
    }

    pub(crate) fn load(&self) -> u64 {
        self.word.load(Acquire)
    }

    pub(crate) fn swap(&self, from: u64, to: u64) -> Result<u64, u64> {
        self.word.compare_exchange_weak(from, to, AcqRel, Acquire)
    }

    /// Applies `change` until it takes; `None` from it leaves the word alone. Returns the word
    /// before.
    pub(crate) fn update(&self, change: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64> {
        self.word.fetch_update(AcqRel, Acquire, change)
    }

    pub(crate) fn next_use(&self) -> NextUse {
        match self.next_use.load(Relaxed) {
            SECOND_CHANCE => NextUse::SecondChance,
            at => NextUse::At(at as u32),
        }
    }

    pub(crate) fn set_next_use(&self, next_use: NextUse) {
        let value = match next_use {
            NextUse::SecondChance => SECOND_CHANCE,
            NextUse::At(at) => u64::from(at),
        };
        self.next_use.store(value, Relaxed);
    }

    pub(crate) fn size(&self) -> Size {
        let size = self.size.load(Relaxed);
        if size & RUN != 0 {
            Size::Run {
                blocks: size & !RUN,
            }
        } else {
            Size::Class(crate::PageClass::ALL[size as usize])
        }
    }

    pub(crate) fn set_size(&self, size: Size) {
        let value = match size {
            Size::Class(class) => class.index() as u32,
            Size::Run { blocks } => blocks | RUN,
        };
        self.size.store(value, Relaxed);
    }

    pub(crate) fn account(&self) -> Option<Arc<Node>> {
        lock(&self.beside).account.clone()
    }
}

const CHUNKS: usize = 22;

#[derive(Default)]
struct Ids {
    free: Vec<u32>,
    next: u32,
}

/// The page table.
pub(crate) struct Table {
    chunks: [OnceLock<Box<[Entry]>>; CHUNKS],
    ids: Mutex<Ids>,
    parking: [(sync::Mutex<()>, Condvar); PARKING],
}

fn place(id: u32) -> (usize, usize) {
    let position = u64::from(id) + FIRST_CHUNK;
    let chunk = position.ilog2() - FIRST_CHUNK.ilog2();
    (chunk as usize, (position - (FIRST_CHUNK << chunk)) as usize)
}

impl Table {
    pub(crate) fn new() -> Table {
        Table {
            chunks: [const { OnceLock::new() }; CHUNKS],
            ids: Mutex::new(Ids::default()),
            parking: std::array::from_fn(|_| (sync::Mutex::new(()), Condvar::new())),
        }
    }

    pub(crate) fn entry(&self, id: u32) -> &Entry {
        let (chunk, offset) = place(id);
        &self.chunks[chunk]
            .get()
            .expect("ids are given out from chunks that exist")[offset]
    }

    /// An entry that no page uses.
    pub(crate) fn take_id(&self) -> u32 {
        let mut ids = lock(&self.ids);
        if let Some(id) = ids.free.pop() {
            return id;
        }
        let id = ids.next;
        ids.next = id.checked_add(1).expect("fewer than 2^32 pages of 4 KiB");
        let chunk = place(id).0;
        let len = FIRST_CHUNK << chunk;
        self.chunks[chunk].get_or_init(|| (0..len).map(|_| Entry::new()).collect());
        id
    }

    pub(crate) fn return_id(&self, id: u32) {
        lock(&self.ids).free.push(id);
    }

    /// Every id ever given out.
    pub(crate) fn ids(&self) -> std::ops::Range<u32> {
        0..lock(&self.ids).next
    }

    /// Waits until the word of `id` is no longer `word`, or a moment.
    pub(crate) fn wait(&self, id: u32, word: u64) {
        let entry = self.entry(id);
        for _ in 0..SPINS {
            if entry.load() & !AWAITED != word & !AWAITED {
                return;
            }
            spin_loop();
        }
        let (mutex, condvar) = &self.parking[id as usize % PARKING];
        let guard = lock(mutex);
        let asked = entry
            .update(|current| (current & !AWAITED == word & !AWAITED).then_some(current | AWAITED));
        if asked.is_ok() {
            // The time limit only guards against a page that waits for itself being undiagnosable.
            let waited = condvar.wait_timeout(guard, Duration::from_millis(20));
            drop(waited);
        }
    }

    /// Wakes whoever waits for `id`, if the word before the change says that somebody does.
    pub(crate) fn wake(&self, id: u32, before: u64) {
        if before & AWAITED != 0 {
            let (mutex, condvar) = &self.parking[id as usize % PARKING];
            drop(lock(mutex));
            condvar.notify_all();
        }
    }
}
