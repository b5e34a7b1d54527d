//! Making room: eviction, compaction, and waiting for the writer.
//!
//! **Owns** the meeting point of threads that need memory and the background writer. **Never**
//! lets anybody wait for another's pins: it waits only for writes and reads under way.
//!
//! Whoever needs a frame, or memory outside the arena, goes round until it fits:
//!
//! 1. take what is free;
//! 2. if a class has a block's worth of free frames, empty its emptiest block into the others
//!    (unpinned pages have no pointers into them) so that the block can be carved anew;
//! 3. evict the clean page that is needed last: no I/O;
//! 4. wait for the writer, which then works at full depth;
//! 5. when there is nothing to write either, use the slack that stands for fragmentation;
//! 6. have those who hold memory for speed give some up: what they pin here and there keeps the
//!    rest in pieces that are no block;
//! 7. report what the last write failed of, or that the budget is used up.
//!
//! Who asks has a claim, and all claims together fit. So where the bytes do not fit, others hold
//! frames without a claim: pages on their way into memory or to another frame, or unpinned ones on
//! their way into a list. Those are waited for. Whoever gives a claim up leaves the frame where
//! others find it first.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::account::{Node, count};
use crate::arena::{Frame, Size};
use crate::core::{Core, is_movable};
use crate::order::Evicted;
use crate::program::{self, Pace};
use crate::{Error, PageClass, Result, lock};

/// Share of the budget in use at which the writer starts: 11/16, about 70 %.
const START_SIXTEENTHS: u64 = 11;
/// Share of the budget that the writer keeps free or clean once it has started.
const READY_SIXTEENTHS: u64 = 4;
/// Share of the budget in pages that wait to be written with others.
const PATIENCE_SHARE: u64 = 8;
/// Memory in use from which the writer's thread exists, to give idle memory back in the end.
const WRITER_BYTES: u64 = 8 << 20;
/// Share of the budget in use at which lent memory is taken back from the program's code.
const CODE_SHARE: u64 = 8;
/// What the heaps of the program may keep of memory that reservations have returned while pages
/// need it: a share of the budget ...
const KEPT_SHARE: u64 = 16;
/// ... or so much: giving back takes up to some milliseconds, and using the memory again a fault a
/// page.
const KEPT_BYTES_MIN: u64 = 4 << 20;
/// How often a thread looks again after the writer found nothing to write.
const BARREN_ROUNDS: u32 = 4;
/// The same while frames are held that nobody claims.
const UNCLAIMED_ROUNDS: u32 = 10_000;
/// How often others are asked for memory while none of it becomes free, some 15 ms in all.
const ASKED_MAX: u32 = 64;

/// What the writer and those who wait for it tell each other.
#[derive(Default)]
pub(crate) struct RoomState {
    /// Extents written.
    pub(crate) completions: u64,
    /// Extents that the disk refused or failed.
    pub(crate) failures: u64,
    /// How often the writer has begun to write pages.
    pub(crate) writes_begun: u64,
    /// The number of the latest of these writes that failed.
    pub(crate) last_failed_write: u64,
    /// Rounds in which the writer found nothing to write.
    pub(crate) barren: u64,
    /// Why the disk refused an extent last; of interest while there are refused pages.
    pub(crate) error: Option<Error>,
    /// Threads waiting.
    pub(crate) urgent: u32,
    /// Those of them for whom pages are written beyond the quota of their account.
    pub(crate) overdrawing: u32,
    /// Pages to write whatever the order says.
    pub(crate) requests: Vec<u32>,
    pub(crate) stop: bool,
}

/// The meeting point.
#[derive(Default)]
pub(crate) struct Room {
    pub(crate) state: Mutex<RoomState>,
    /// Signalled when the counts of the state change.
    pub(crate) changed: Condvar,
    /// Signalled when the writer has something to do.
    pub(crate) work: Condvar,
    pub(crate) writer_sleeps: AtomicBool,
    /// The program's code may be in memory that the budget needs later.
    pub(crate) code_is_lent: AtomicBool,
}

/// A thread that waits for room, however often.
struct Waiting<'n> {
    node: &'n Node,
    bytes: u64,
    /// Looks since something was written.
    rounds: u32,
    /// Quotas other than the server's and its own refuse nothing meanwhile.
    overdraws: bool,
    /// Writes that had begun when it came: what they meet may be over.
    writes_before: Option<u64>,
    /// How often others were asked to give memory up, and what all had claimed the last time.
    asked: u32,
    claimed_before: u64,
}

impl<'n> Waiting<'n> {
    fn new(node: &'n Node, bytes: u64) -> Waiting<'n> {
        Waiting {
            node,
            bytes,
            rounds: 0,
            overdraws: false,
            writes_before: None,
            asked: 0,
            claimed_before: u64::MAX,
        }
    }
}

enum Waited {
    Again,
    /// A write failed, or a page was refused whose quota is that of who waits.
    Failed(Option<Error>),
    /// There is nothing to write.
    Barren(Option<Error>),
}

impl Core {
    fn limit_bytes(&self) -> u64 {
        self.options.memory_bytes
    }

    /// Whether the writer should clean pages ahead of need.
    pub(crate) fn should_clean(&self) -> bool {
        let held = self.arena.held_bytes();
        let limit = self.limit_bytes();
        if held * 16 < limit * START_SIXTEENTHS {
            return false;
        }
        let ready = limit.saturating_sub(held) + self.order.clean_bytes();
        let extent = self.extent_bytes() as u64;
        ready * 16 < limit * READY_SIXTEENTHS && self.order.dirty_bytes() >= extent
    }

    /// How many bytes of pages are written together.
    pub(crate) fn extent_bytes(&self) -> usize {
        crate::writer::EXTENT_BYTES
            .min((self.limit_bytes() / 32) as usize)
            .max(64 << 10)
    }

    /// How many bytes of pages may wait for more pages of the same next use.
    pub(crate) fn patience_bytes(&self) -> usize {
        (self.limit_bytes() / PATIENCE_SHARE) as usize
    }

    /// Makes the program's code leave memory when the budget begins to be used.
    fn take_code_back(&self) {
        let code_is_lent = &self.room.code_is_lent;
        if code_is_lent.load(Relaxed)
            && self.arena.held_bytes() >= self.limit_bytes() / CODE_SHARE
            && program::give_code_back_in_time()
        {
            code_is_lent.store(false, Relaxed);
        }
    }

    /// Makes the allocator let go of what reservations have returned, once pages take its place:
    /// counted once, it would be in memory twice.
    fn take_heaps_back(&self) {
        let kept_max = (self.limit_bytes() / KEPT_SHARE).max(KEPT_BYTES_MIN);
        if self.arena.keeps_outside_more_than(kept_max) {
            self.trim_heaps(&program::NEEDED_HEAPS);
        }
    }

    /// Makes the allocator let go of what it keeps of freed memory, if that is due.
    pub(crate) fn trim_heaps(&self, pace: &Pace) {
        if program::give_heaps_back_in_time(pace) {
            self.arena.forget_kept();
        }
    }

    /// Wakes the writer if it sleeps and has something to do ahead of need.
    fn nudge(&self) {
        self.take_code_back();
        self.take_heaps_back();
        if !self.writer.is_started() {
            if self.arena.held_bytes() >= WRITER_BYTES || self.should_clean() {
                // Whoever cannot do without it is told why it does not start.
                let _later = self.start_writer();
            }
        } else if self.room.writer_sleeps.load(Relaxed) && self.should_clean() {
            drop(lock(&self.room.state));
            self.room.work.notify_one();
        }
    }

    /// Whether the writer has nothing to do; wakes it if it has.
    pub(crate) fn writer_rests(&self) -> bool {
        if !self.writer.is_started() {
            return true;
        }
        let state = lock(&self.room.state);
        let idle = state.urgent == 0 && state.requests.is_empty() && !self.should_clean();
        if !idle {
            self.room.work.notify_one();
        }
        idle && self.room.writer_sleeps.load(Relaxed)
    }

    /// Whether the writer is wanted for more than giving back what is not used.
    pub(crate) fn is_work_waiting(&self) -> bool {
        let state = lock(&self.room.state);
        state.stop || state.urgent > 0 || !state.requests.is_empty() || self.should_clean()
    }

    /// Starts the writer's thread unless it runs.
    fn start_writer(&self) -> Result<()> {
        if self.writer.is_started() {
            return Ok(());
        }
        let core = self
            .me
            .upgrade()
            .expect("whoever calls this holds the core");
        self.writer
            .start("mayfly-writer", self.faults(), move || {
                crate::writer::run(&core)
            })
            .map_err(|source| self.io_error("starting to write", 0, source))
    }

    /// A frame for a page, whatever has to give way.
    pub(crate) fn frame_for(&self, id: u32, size: Size, node: &Node) -> Result<Frame> {
        let len = self.arena.len_of(size) as u64;
        let frame = match self.arena.allocate(size, id, false) {
            Some(frame) => frame,
            None => self.make_room(node, len, |beyond| self.arena.allocate(size, id, beyond))?,
        };
        node.resident(len);
        self.nudge();
        if let Some((limited, limit)) = node.resident_limit() {
            let has_frame = |id| self.has_frame(limited, id);
            lock(&limited.own_pages).add(id, has_frame);
            self.enforce(limited, limit);
        }
        Ok(frame)
    }

    /// A frame for a page that is read ahead of its use: nothing needed earlier gives way.
    pub(crate) fn frame_ahead(&self, id: u32, size: Size, key: u32, node: &Node) -> Option<Frame> {
        if let Some((limited, limit)) = node.resident_limit()
            && limited.resident_bytes() + self.arena.len_of(size) as u64 > limit
        {
            return None;
        }
        loop {
            if let Some(frame) = self.arena.allocate(size, id, false) {
                node.resident(self.arena.len_of(size) as u64);
                return Some(frame);
            }
            let evicted = self
                .order
                .evict_clean(&self.arena, &self.table, Some(key))?;
            self.take_frame(evicted);
        }
    }

    /// Takes memory outside the arena.
    pub(crate) fn take_outside(&self, node: &Node, bytes: u64) -> Result<()> {
        let attempt = |beyond| self.arena.take_outside(bytes, beyond).then_some(());
        if attempt(false).is_none() {
            self.make_room(node, bytes, attempt)?;
        }
        node.reserved(bytes);
        self.nudge();
        Ok(())
    }

    /// Whether others give memory up, or it is worth waiting for what they gave before. That may be
    /// in use still, by this very thread at worst: so there is an end where claims do not fall.
    fn others_give(&self, waiting: &mut Waiting<'_>) -> bool {
        let claimed = waiting.node.root_claim_bytes();
        if waiting.asked >= ASKED_MAX && claimed >= waiting.claimed_before {
            return false;
        }
        waiting.asked += 1;
        waiting.claimed_before = claimed;
        // More each time: the first one's may not be free before long.
        let blocks = u64::from(waiting.asked);
        waiting
            .node
            .take_for_room(blocks * self.arena.block_bytes())
            > 0
    }

    fn take_frame(&self, evicted: Evicted) {
        count(&evicted.account.tally.evictions, 1);
        self.release_frame(&evicted.account, evicted.frame, evicted.size);
        let bytes = self.arena.len_of(evicted.size) as u64;
        evicted.account.went_away(bytes);
    }

    #[cold]
    fn make_room<T>(
        &self,
        node: &Node,
        bytes: u64,
        attempt: impl Fn(bool) -> Option<T>,
    ) -> Result<T> {
        let mut failed_compactions = 0;
        let mut waiting = Waiting::new(node, bytes);
        loop {
            if let Some(found) = attempt(false) {
                return Ok(found);
            }
            if let Some(class) = self.arena.fragmented_class(failed_compactions) {
                failed_compactions += u32::from(!self.compact(class));
                continue;
            }
            if let Some(evicted) = self.order.evict_clean(&self.arena, &self.table, None) {
                self.take_frame(evicted);
                continue;
            }
            let waited = self.wait_for_writer(&mut waiting);
            let is_barren = matches!(waited, Waited::Barren(_));
            match waited {
                Waited::Again => failed_compactions = 0,
                Waited::Failed(error) | Waited::Barren(error) => {
                    if let Some(found) = attempt(false).or_else(|| attempt(true)) {
                        return Ok(found);
                    }
                    // Others' quotas keep their pages in memory, which is no reason to fail here.
                    if is_barren && !waiting.overdraws && self.order.refused_pages() > 0 {
                        waiting.overdraws = true;
                        waiting.rounds = 0;
                        continue;
                    }
                    if is_barren && self.others_give(&mut waiting) {
                        waiting.rounds = 0;
                        continue;
                    }
                    return Err(error.unwrap_or_else(|| node.exceeded(bytes)));
                }
            }
        }
    }

    /// Empties a block of a class into the other blocks of the class.
    pub(crate) fn compact(&self, class: PageClass) -> bool {
        let only = lock(&self.compaction);
        let movable = |id| is_movable(self.table.entry(id).load());
        let Some((block, owned)) = self.arena.begin_drain(class, movable) else {
            return false;
        };
        for (frame, id) in owned {
            if !self.relocate(id, frame) {
                break;
            }
        }
        let freed = self.arena.end_drain(block);
        drop(only);
        freed
    }

    /// Waits until something was written or cannot be.
    fn wait_for_writer(&self, waiting: &mut Waiting<'_>) -> Waited {
        let node = waiting.node;
        if waiting.rounds == 0 {
            // Whatever refused these pages may be over.
            self.order.forgive(&self.arena, &self.table);
        }
        waiting.rounds += 1;
        if let Err(error) = self.start_writer() {
            return Waited::Failed(Some(error));
        }
        let started = Instant::now();
        let refusals = node.quota_refusals();
        let mut state = lock(&self.room.state);
        let (completions, failures, barren) = (state.completions, state.failures, state.barren);
        let writes_before = *waiting.writes_before.get_or_insert(state.writes_begun);
        state.urgent += 1;
        state.overdrawing += u32::from(waiting.overdraws);
        self.room.work.notify_one();
        let mut refused = None;
        while !state.stop
            && (state.completions, state.failures, state.barren) == (completions, failures, barren)
        {
            refused = node.refused_since(&refusals);
            if refused.is_some() {
                break;
            }
            let waited = self.room.changed.wait(state);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state.urgent -= 1;
        state.overdrawing -= u32::from(waiting.overdraws);
        let error = state.error.as_ref().map(Error::duplicate);
        let written = state.completions != completions;
        let failed = state.failures != failures;
        let is_of_before = failed && state.last_failed_write <= writes_before;
        let stop = state.stop;
        drop(state);
        count(&node.tally.waits, 1);
        count(&node.tally.wait_nanos, started.elapsed().as_nanos() as u64);
        if written {
            waiting.rounds = 1;
            return Waited::Again;
        }
        if let Some(refused) = refused.or_else(|| node.refused_since(&refusals)) {
            return Waited::Failed(Some(refused));
        }
        if is_of_before && !stop {
            // What was on its way when this thread came met a failure that may be over.
            waiting.rounds = 0;
            return Waited::Again;
        }
        if failed || stop {
            return Waited::Failed(error);
        }
        let is_refused = self.order.refused_pages() > 0;
        let is_unclaimed = self.loading.load(Relaxed) > 0 || !self.arena.fits(waiting.bytes);
        let rounds_max = match is_unclaimed && !is_refused {
            true => UNCLAIMED_ROUNDS,
            false => BARREN_ROUNDS,
        };
        if waiting.rounds < rounds_max {
            std::thread::sleep(Duration::from_micros(50));
            return Waited::Again;
        }
        Waited::Barren(error.filter(|_| is_refused))
    }

    /// Evicts pages of an account that has more of them in memory than it may.
    fn enforce(&self, node: &Node, limit_bytes: u64) {
        let mut tries = lock(&node.own_pages).len().min(256);
        let mut requests = Vec::new();
        while node.resident_bytes() > limit_bytes && tries > 0 {
            tries -= 1;
            let Some(id) = lock(&node.own_pages).take_oldest() else {
                break;
            };
            if self.has_frame(node, id) && !self.evict_one(id) {
                lock(&node.own_pages).put_back(id);
                requests.push(id);
            }
        }
        if !requests.is_empty() {
            let _later = self.start_writer();
            let mut state = lock(&self.room.state);
            state.requests.append(&mut requests);
            self.room.work.notify_one();
            drop(state);
        }
        if node.resident_bytes() > 2 * limit_bytes + (4 << 20) {
            let _progress = self.wait_for_writer(&mut Waiting {
                rounds: 1,
                ..Waiting::new(node, 0)
            });
        }
    }

    /// Whether a page is of this account or of one below it, and has a frame or is about to.
    fn has_frame(&self, node: &Node, id: u32) -> bool {
        let entry = self.table.entry(id);
        let is_own = |account: &Node| account.chain().any(|above| std::ptr::eq(above, node));
        let account = entry.account();
        let is_absent = crate::table::state(entry.load()) == crate::table::ABSENT;
        account.is_some_and(|account| is_own(&account)) && !is_absent
    }

    /// Evicts one page if it is clean and unpinned.
    pub(crate) fn evict_one(&self, id: u32) -> bool {
        match self.order.evict_page(&self.arena, &self.table, id) {
            Some(evicted) => {
                self.take_frame(evicted);
                true
            }
            None => false,
        }
    }
}
