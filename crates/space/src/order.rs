//! The order in which pages lose their frames.
//!
//! **Owns** the lists of unpinned resident pages. **Never** does I/O and never frees a frame; it
//! picks pages and changes their word.
//!
//! ```text
//!  clean, by next use   0: a-b   3: c     7: d-e-f        evict from the back: free
//!  dirty, by next use   0:       3: g-h   7: i-j-k        write from the back
//!  clean, second chance l-m-n-o                           evict what was not used since
//!  dirty, second chance p-q-r                             write what was not used since
//!  refused              s-t                               the quota is used up, or the disk
//! ```
//!
//! The processing order of operator pages is known, so the farthest next use first is exactly
//! the best order (Belady, 1966). Pages are listed when their last guard goes and stay listed
//! when they are pinned again: only whoever meets a pinned page in a list takes it out, so that
//! pins touch no lock. The links live in the page table; everything is constant time but the
//! search for the last key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, Release},
};

use crate::NextUse;
use crate::account::Node;
use crate::arena::{Arena, Frame, Size};
use crate::lock;
use crate::sync::Mutex;
use crate::table::{
    self, ABSENT, DIRTY, Entry, FLAGS, GATHERED, LISTED, ORPHAN, PINS, REFERENCED, RESIDENT,
    STORED, Table, WRITING,
};

const NONE: u32 = u32::MAX;

/// Bytes of one next use that are worth a write, and later a read, of their own.
const RUN_BYTES: usize = 256 << 10;

/// Next uses among which one is chosen to be written: as many as an aggregate has partitions. Pages
/// of a sorted run have each one of its own.
const NEXT_USES_LOOKED_AT: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    AtClean = 1,
    AtDirty = 2,
    ClockClean = 3,
    ClockDirty = 4,
    Refused = 5,
}

const KINDS: [Kind; 5] = [
    Kind::AtClean,
    Kind::AtDirty,
    Kind::ClockClean,
    Kind::ClockDirty,
    Kind::Refused,
];

#[derive(Debug, Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
    len: u32,
}

const EMPTY: List = List {
    head: NONE,
    tail: NONE,
    len: 0,
};

struct Lists {
    at_clean: BTreeMap<u32, List>,
    at_dirty: BTreeMap<u32, List>,
    clock_clean: List,
    clock_dirty: List,
    refused: List,
}

/// The lists.
pub(crate) struct Order {
    lists: Mutex<Lists>,
    clean_bytes: AtomicU64,
    dirty_bytes: AtomicU64,
    refused_pages: AtomicU64,
}

/// The frame of a page that is on disk only from here on. The page itself may be read in again,
/// or freed, at any moment.
pub(crate) struct Evicted {
    pub(crate) frame: Frame,
    pub(crate) size: Size,
    pub(crate) account: Arc<Node>,
}

impl Order {
    pub(crate) fn new() -> Order {
        Order {
            lists: Mutex::new(Lists {
                at_clean: BTreeMap::new(),
                at_dirty: BTreeMap::new(),
                clock_clean: EMPTY,
                clock_dirty: EMPTY,
                refused: EMPTY,
            }),
            clean_bytes: AtomicU64::new(0),
            dirty_bytes: AtomicU64::new(0),
            refused_pages: AtomicU64::new(0),
        }
    }

    /// Bytes listed as evictable for free; pages pinned since are still counted.
    pub(crate) fn clean_bytes(&self) -> u64 {
        self.clean_bytes.load(Relaxed)
    }

    /// Bytes listed as needing a write before they can go.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.dirty_bytes.load(Relaxed)
    }

    pub(crate) fn refused_pages(&self) -> u64 {
        self.refused_pages.load(Relaxed)
    }

    /// Lists a page unless it is listed, pinned or gone.
    pub(crate) fn list(&self, arena: &Arena, table: &Table, id: u32) {
        let mut lists = lock(&self.lists);
        let entry = table.entry(id);
        let set = entry.update(|word| {
            let listable =
                table::state(word) == RESIDENT && word & (PINS | LISTED | WRITING | ORPHAN) == 0;
            listable.then_some(word | LISTED)
        });
        if let Ok(word) = set {
            let kind = kind_for(entry, word);
            self.push(&mut lists, arena, table, id, kind);
        }
    }

    /// Lists a page whose write was refused; it is tried again after [`Order::forgive`].
    pub(crate) fn list_refused(&self, arena: &Arena, table: &Table, id: u32) {
        let mut lists = lock(&self.lists);
        let set = table.entry(id).update(|word| {
            let listable = table::state(word) == RESIDENT && word & (PINS | LISTED | ORPHAN) == 0;
            listable.then_some(word | LISTED)
        });
        if set.is_ok() {
            self.push(&mut lists, arena, table, id, Kind::Refused);
        }
    }

    /// Makes refused pages candidates for writing again.
    pub(crate) fn forgive(&self, arena: &Arena, table: &Table) {
        if self.refused_pages() == 0 {
            return;
        }
        let mut lists = lock(&self.lists);
        while lists.refused.head != NONE {
            let id = lists.refused.head;
            self.remove(&mut lists, arena, table, id);
            let entry = table.entry(id);
            let kind = kind_for(entry, entry.load());
            self.push(&mut lists, arena, table, id, kind);
        }
    }

    /// Takes a page out of its list, if it is in one.
    pub(crate) fn unlist(&self, arena: &Arena, table: &Table, id: u32) {
        let mut lists = lock(&self.lists);
        let entry = table.entry(id);
        let cleared = entry.update(|word| (word & LISTED != 0).then_some(word & !LISTED));
        if cleared.is_ok() {
            self.remove(&mut lists, arena, table, id);
        }
    }

    /// Puts a listed page where its next use belongs.
    pub(crate) fn relist(&self, arena: &Arena, table: &Table, id: u32) {
        let mut lists = lock(&self.lists);
        let entry = table.entry(id);
        let word = entry.load();
        if word & LISTED != 0 {
            self.remove(&mut lists, arena, table, id);
            self.push(&mut lists, arena, table, id, kind_for(entry, word));
        }
    }

    /// Takes the frame of the clean page that is needed last; with `beyond`, only of pages that
    /// are needed later than that, or that second chance gives up.
    pub(crate) fn evict_clean(
        &self,
        arena: &Arena,
        table: &Table,
        beyond: Option<u32>,
    ) -> Option<Evicted> {
        let mut lists = lock(&self.lists);
        while let Some((&key, &list)) = lists.at_clean.last_key_value() {
            if beyond.is_some_and(|limit| key <= limit) {
                break;
            }
            if let Some(evicted) = self.take_clean(&mut lists, arena, table, list.head) {
                return Some(evicted);
            }
        }
        let mut chances = 2 * lists.clock_clean.len;
        while lists.clock_clean.head != NONE && chances > 0 {
            chances -= 1;
            let id = lists.clock_clean.head;
            if self.second_chance(&mut lists, arena, table, id) {
                continue;
            }
            if let Some(evicted) = self.take_clean(&mut lists, arena, table, id) {
                return Some(evicted);
            }
        }
        None
    }

    /// Evicts one listed page if it is clean and unpinned.
    pub(crate) fn evict_page(&self, arena: &Arena, table: &Table, id: u32) -> Option<Evicted> {
        let mut lists = lock(&self.lists);
        let word = table.entry(id).load();
        if word & LISTED == 0 || word & DIRTY != 0 {
            return None;
        }
        self.take_clean(&mut lists, arena, table, id)
    }

    /// Moves a page that was used since its last turn to the end of its list.
    fn second_chance(&self, lists: &mut Lists, arena: &Arena, table: &Table, id: u32) -> bool {
        let entry = table.entry(id);
        let used = entry.update(|word| {
            (word & REFERENCED != 0 && word & PINS == 0).then_some(word & !REFERENCED)
        });
        if let Ok(word) = used {
            self.remove(lists, arena, table, id);
            self.push(lists, arena, table, id, kind_for(entry, word));
        }
        used.is_ok()
    }

    /// Evicts a page from a clean list, or puts it where it belongs.
    fn take_clean(
        &self,
        lists: &mut Lists,
        arena: &Arena,
        table: &Table,
        id: u32,
    ) -> Option<Evicted> {
        let entry = table.entry(id);
        self.remove(lists, arena, table, id);
        loop {
            let word = entry.load();
            let to = if word & PINS != 0 || table::state(word) != RESIDENT {
                // Whoever holds the page lists it again.
                word & !LISTED
            } else if word & DIRTY != 0 || word & STORED == 0 {
                self.push(lists, arena, table, id, kind_for(entry, word));
                return None;
            } else {
                ABSENT | (word & FLAGS & !(LISTED | REFERENCED))
            };
            if table::state(to) != ABSENT {
                if entry.swap(word, to).is_ok() {
                    return None;
                }
                continue;
            }
            let account = entry.account().expect("a resident page has an account");
            let evicted = Evicted {
                frame: table::frame(word),
                size: entry.size(),
                account,
            };
            if let Some(slot) = lock(&entry.beside).slot.as_mut() {
                slot.useful = true;
            }
            if entry.swap(word, to).is_ok() {
                return Some(evicted);
            }
        }
    }

    /// Collects dirty pages to write together, up to `limit_bytes`: pages of one next use while
    /// there are any, then of another. Each is left [`WRITING`] and [`GATHERED`], clean unless it
    /// is changed again.
    ///
    /// The farthest next use goes first, but where it has few pages it waits for more of them: what
    /// is read together is written together, and a device reads single pages at half its speed.
    /// Pages that wait so take at most `patience_bytes`.
    pub(crate) fn gather_dirty(
        &self,
        arena: &Arena,
        table: &Table,
        limit_bytes: usize,
        patience_bytes: usize,
    ) -> Vec<(u32, Frame)> {
        let mut lists = lock(&self.lists);
        let mut gathered = Vec::new();
        let mut bytes = 0;
        // Cold pages of unknown next use first: once written they are free to drop for good.
        let mut chances = lists.clock_dirty.len.min(64);
        while bytes < limit_bytes && chances > 0 && lists.clock_dirty.head != NONE {
            chances -= 1;
            let id = lists.clock_dirty.head;
            if !self.second_chance(&mut lists, arena, table, id) {
                bytes += self.take_dirty(&mut lists, arena, table, id, &mut gathered);
            }
        }
        if gathered.is_empty() {
            while bytes < limit_bytes
                && let Some(key) = key_to_write(&lists, arena, table, patience_bytes)
            {
                while bytes < limit_bytes
                    && let Some(list) = lists.at_dirty.get(&key)
                {
                    let id = list.head;
                    bytes += self.take_dirty(&mut lists, arena, table, id, &mut gathered);
                }
            }
        }
        // Nothing cold and nothing ordered: the hot ones are all there is.
        while gathered.is_empty() && lists.clock_dirty.head != NONE {
            let id = lists.clock_dirty.head;
            self.take_dirty(&mut lists, arena, table, id, &mut gathered);
        }
        gathered
    }

    /// Gathers one page for writing if it is dirty and unpinned.
    pub(crate) fn gather_page(&self, arena: &Arena, table: &Table, id: u32) -> Option<Frame> {
        let mut lists = lock(&self.lists);
        let word = table.entry(id).load();
        if word & LISTED == 0 || word & DIRTY == 0 {
            return None;
        }
        let mut gathered = Vec::new();
        self.take_dirty(&mut lists, arena, table, id, &mut gathered);
        gathered.pop().map(|(_, frame)| frame)
    }

    fn take_dirty(
        &self,
        lists: &mut Lists,
        arena: &Arena,
        table: &Table,
        id: u32,
        gathered: &mut Vec<(u32, Frame)>,
    ) -> usize {
        let entry = table.entry(id);
        self.remove(lists, arena, table, id);
        loop {
            let word = entry.load();
            let busy = word & PINS != 0 || table::state(word) != RESIDENT;
            if !busy && word & DIRTY == 0 {
                self.push(lists, arena, table, id, kind_for(entry, word));
                return 0;
            }
            let to = match busy {
                true => word & !LISTED,
                false => (word & !(LISTED | DIRTY)) | WRITING | GATHERED,
            };
            if entry.swap(word, to).is_ok() {
                if busy {
                    return 0;
                }
                gathered.push((id, table::frame(word)));
                return arena.len_of(entry.size());
            }
        }
    }

    fn push(&self, lists: &mut Lists, arena: &Arena, table: &Table, id: u32, kind: Kind) {
        let entry = table.entry(id);
        let key = match entry.next_use() {
            NextUse::At(at) => at,
            NextUse::SecondChance => 0,
        };
        entry.list.store(kind as u8, Relaxed);
        entry.list_key.store(key, Relaxed);
        let list = lists.list(kind, key);
        entry.previous.store(list.tail, Relaxed);
        entry.next.store(NONE, Release);
        let tail = list.tail;
        list.tail = id;
        list.len += 1;
        match tail {
            NONE => list.head = id,
            tail => table.entry(tail).next.store(id, Relaxed),
        }
        let bytes = arena.len_of(entry.size()) as u64;
        match kind {
            Kind::AtClean | Kind::ClockClean => self.clean_bytes.fetch_add(bytes, Relaxed),
            Kind::AtDirty | Kind::ClockDirty => self.dirty_bytes.fetch_add(bytes, Relaxed),
            Kind::Refused => self.refused_pages.fetch_add(1, Relaxed),
        };
    }

    fn remove(&self, lists: &mut Lists, arena: &Arena, table: &Table, id: u32) {
        let entry = table.entry(id);
        let listed = entry.list.swap(0, Relaxed);
        let kind = KINDS[usize::from(listed)
            .checked_sub(1)
            .expect("the page is in a list")];
        let key = entry.list_key.load(Relaxed);
        let (previous, next) = (entry.previous.load(Relaxed), entry.next.load(Relaxed));
        if previous != NONE {
            table.entry(previous).next.store(next, Relaxed);
        }
        if next != NONE {
            table.entry(next).previous.store(previous, Relaxed);
        }
        let list = lists.list(kind, key);
        if previous == NONE {
            list.head = next;
        }
        if next == NONE {
            list.tail = previous;
        }
        list.len -= 1;
        let empty = list.len == 0;
        let bytes = arena.len_of(entry.size()) as u64;
        match kind {
            Kind::AtClean | Kind::ClockClean => self.clean_bytes.fetch_sub(bytes, Relaxed),
            Kind::AtDirty | Kind::ClockDirty => self.dirty_bytes.fetch_sub(bytes, Relaxed),
            Kind::Refused => self.refused_pages.fetch_sub(1, Relaxed),
        };
        match kind {
            Kind::AtClean if empty => drop(lists.at_clean.remove(&key)),
            Kind::AtDirty if empty => drop(lists.at_dirty.remove(&key)),
            _ => {}
        }
    }

    /// Checks the lists against the words of their pages.
    pub(crate) fn check(&self, arena: &Arena, table: &Table) {
        let lists = lock(&self.lists);
        let mut listed = 0;
        let mut bytes = [0u64; 6];
        let mut walk = |kind: Kind, key: u32, list: &List| {
            let mut id = list.head;
            let mut previous = NONE;
            let mut len = 0;
            while id != NONE {
                let entry = table.entry(id);
                assert_eq!(entry.list.load(Relaxed), kind as u8);
                if matches!(kind, Kind::AtClean | Kind::AtDirty) {
                    assert_eq!(entry.list_key.load(Relaxed), key);
                }
                assert_eq!(entry.previous.load(Relaxed), previous);
                assert_ne!(entry.load() & LISTED, 0, "a page in a list says so");
                assert_eq!(table::state(entry.load()), RESIDENT);
                assert_eq!(entry.load() & (WRITING | GATHERED), 0);
                bytes[kind as usize] += arena.len_of(entry.size()) as u64;
                previous = id;
                id = entry.next.load(Relaxed);
                len += 1;
            }
            assert_eq!(list.tail, previous);
            assert_eq!(list.len, len);
            listed += len;
        };
        for (&key, list) in &lists.at_clean {
            walk(Kind::AtClean, key, list);
        }
        for (&key, list) in &lists.at_dirty {
            walk(Kind::AtDirty, key, list);
        }
        walk(Kind::ClockClean, 0, &lists.clock_clean);
        walk(Kind::ClockDirty, 0, &lists.clock_dirty);
        assert_eq!(bytes[1] + bytes[3], self.clean_bytes());
        assert_eq!(bytes[2] + bytes[4], self.dirty_bytes());
        assert_eq!(u64::from(lists.refused.len), self.refused_pages());
        let words = table
            .ids()
            .filter(|&id| table.entry(id).load() & LISTED != 0)
            .count();
        assert_eq!(words, (listed + lists.refused.len) as usize);
    }
}

impl Lists {
    fn list(&mut self, kind: Kind, key: u32) -> &mut List {
        match kind {
            Kind::AtClean => self.at_clean.entry(key).or_insert(EMPTY),
            Kind::AtDirty => self.at_dirty.entry(key).or_insert(EMPTY),
            Kind::ClockClean => &mut self.clock_clean,
            Kind::ClockDirty => &mut self.clock_dirty,
            Kind::Refused => &mut self.refused,
        }
    }
}

fn kind_for(entry: &Entry, word: u64) -> Kind {
    let clean = word & DIRTY == 0 && word & STORED != 0;
    match (entry.next_use(), clean) {
        (NextUse::At(_), true) => Kind::AtClean,
        (NextUse::At(_), false) => Kind::AtDirty,
        (NextUse::SecondChance, true) => Kind::ClockClean,
        (NextUse::SecondChance, false) => Kind::ClockDirty,
    }
}

/// The next use whose pages are written next: the farthest that has [`RUN_BYTES`] of them, or the
/// one that has most among the farthest that take `patience_bytes` together.
fn key_to_write(lists: &Lists, arena: &Arena, table: &Table, patience_bytes: usize) -> Option<u32> {
    let mut passed = 0;
    let mut most = (0, None);
    for (key, list) in lists.at_dirty.iter().rev().take(NEXT_USES_LOOKED_AT) {
        // Pages of one next use are of one size, or nearly so.
        let bytes = list.len as usize * arena.len_of(table.entry(list.head).size());
        if bytes > most.0 {
            most = (bytes, Some(*key));
        }
        passed += bytes;
        if bytes >= RUN_BYTES || passed >= patience_bytes {
            break;
        }
    }
    most.1
}
