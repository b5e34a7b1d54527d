//! The background writer: makes dirty pages clean before anybody needs their frames.
//!
//! **Owns** one thread and the transfers it has under way. **Never** takes a frame away; a
//! written page stays in memory until somebody needs the room.
//!
//! It starts when 11/16 of the budget are in use, writes farthest next use first, and stops when
//! a quarter of the budget is free or clean: so that at the limit victims are there without
//! waiting. Pages of one next use are written together in extents of up to 1 MiB, contiguous in
//! the file, from their frames and without a copy. While nobody waits it keeps few transfers
//! under way, because on two cores it takes time from the threads that make progress; when
//! somebody waits it works at full depth. Its thread has the priority of all others: a lower one
//! cannot be raised again when somebody waits.
//!
//! **Source**: the page provider of LeanStore (ICDE 2018), with a known order in place of a
//! cooling stage. **Cost**: `docs/decisions/0001-space-constants.md`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::account::count;
use crate::arena::Frame;
use crate::codec::{self, Chooser, Codec, Observed};
use crate::core::Core;
use crate::file::SECTOR;
use crate::guard::Transient;
use crate::io::{Queue, Scratch, Transfer};
use crate::table::Slot;
use crate::{Error, Operation, Result, lock};

/// The most bytes written in one transfer.
pub(crate) const EXTENT_BYTES: usize = 1 << 20;
/// Transfers under way while nobody waits.
const QUIET_DEPTH: usize = 2;
/// Transfers under way while somebody waits.
const URGENT_DEPTH: usize = 8;
/// How long the writer rests when it found nothing to write for those who wait.
const BARREN_PAUSE: Duration = Duration::from_micros(50);
/// Share of the budget that is made clean at once while somebody waits.
const URGENT_SHARE: u64 = 8;

struct Part {
    id: u32,
    frame: Frame,
    len: usize,
    /// Where its coded bytes begin in the scratch memory.
    scratch_offset: usize,
    slot: Slot,
}

/// Pages on their way.
struct Flight {
    parts: Vec<Part>,
    /// The number of the write that they belong to.
    write: u64,
}

pub(crate) struct Writer<'a> {
    core: &'a Core,
    queue: Box<dyn Queue>,
    /// Pages are written beyond the quota of their account, because others need the memory.
    overdraw: bool,
    flying: HashMap<u64, Flight>,
    next_tag: u64,
    chooser: Chooser,
    /// Bytes written, and how long at least one transfer was under way.
    device_bytes: u64,
    device_busy: Duration,
    busy_since: Option<Instant>,
    /// When memory and file space that were not used are given back next.
    period_end: Instant,
}

/// Ends the waiting of everybody when the writer ends, a panic in it included.
struct LastWord<'a>(&'a Core);

impl Drop for LastWord<'_> {
    fn drop(&mut self) {
        lock(&self.0.room.state).stop = true;
        self.0.room.changed.notify_all();
    }
}

/// The body of the writer's thread.
pub(crate) fn run(core: &Core) {
    let _last = LastWord(core);
    let mut writer = Writer::new(core, Arc::clone(&core.backend).queue());
    while writer.wait_for_work() {
        writer.round();
    }
    while writer.queue.in_flight() > 0 {
        writer.collect(true);
    }
}

impl<'a> Writer<'a> {
    pub(crate) fn new(core: &'a Core, queue: Box<dyn Queue>) -> Writer<'a> {
        Writer {
            core,
            queue,
            overdraw: false,
            flying: HashMap::new(),
            next_tag: 0,
            chooser: Chooser::new(core.options.compression),
            device_bytes: 0,
            device_busy: Duration::ZERO,
            busy_since: None,
            period_end: Instant::now() + core.period(),
        }
    }

    /// Sleeps until there is something to do; `false` when the space closes.
    fn wait_for_work(&mut self) -> bool {
        let room = &self.core.room;
        let mut state = lock(&room.state);
        loop {
            if self.period_end <= Instant::now() {
                drop(state);
                self.core.end_period(&|| self.core.is_work_waiting());
                self.period_end = Instant::now() + self.core.period();
                // There may be work that came meanwhile, and the next period be over as well.
                state = lock(&room.state);
            }
            if state.stop {
                return false;
            }
            if state.urgent > 0
                || !state.requests.is_empty()
                || self.queue.in_flight() > 0
                || self.core.should_clean()
            {
                return true;
            }
            let left = self.period_end.saturating_duration_since(Instant::now());
            room.writer_sleeps.store(true, Relaxed);
            let waited = room.work.wait_timeout(state, left);
            room.writer_sleeps.store(false, Relaxed);
            (state, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Submits what there is to write and takes note of what is written.
    pub(crate) fn round(&mut self) {
        let (urgent, requests) = {
            let mut state = lock(&self.core.room.state);
            self.overdraw = state.overdrawing > 0;
            (state.urgent > 0, std::mem::take(&mut state.requests))
        };
        let submitted = self.submit_requests(&requests) + self.submit_ordered(urgent);
        let depth = if urgent { URGENT_DEPTH } else { QUIET_DEPTH };
        let wait = self.queue.in_flight() >= depth || submitted == 0;
        let finished = self.collect(wait);
        if urgent && submitted + finished == 0 && self.queue.in_flight() == 0 {
            lock(&self.core.room.state).barren += 1;
            self.core.room.changed.notify_all();
            // Leaves the processor to those who were just told.
            std::thread::sleep(BARREN_PAUSE);
        }
        if self.chooser.is_due() {
            self.chooser.observe(self.observed());
        }
    }

    /// Begins to write these pages, as far as they are dirty and unpinned; returns how many.
    pub(crate) fn submit_requests(&mut self, requests: &[u32]) -> usize {
        let mut submitted = 0;
        for &id in requests {
            let core = self.core;
            if let Some(frame) = core.order.gather_page(&core.arena, &core.table, id) {
                self.write(vec![(id, frame)]);
                submitted += 1;
            }
        }
        submitted
    }

    fn submit_ordered(&mut self, urgent: bool) -> usize {
        let core = self.core;
        let mut submitted = 0;
        let depth = if urgent { URGENT_DEPTH } else { QUIET_DEPTH };
        while self.queue.in_flight() < depth && (urgent && self.is_short() || core.should_clean()) {
            let (extent, patience) = (core.extent_bytes(), core.patience_bytes());
            let pages = core
                .order
                .gather_dirty(&core.arena, &core.table, extent, patience);
            if pages.is_empty() {
                break;
            }
            self.write(pages);
            submitted += 1;
        }
        submitted
    }

    /// Whether those who wait need more than is clean and under way: without this bound a waiter
    /// that is slow to wake up would have everything written, near pages included.
    fn is_short(&self) -> bool {
        let flying = self.flying.values().flat_map(|flight| &flight.parts);
        let flying = flying.map(|part| part.len as u64);
        let coming = self.core.order.clean_bytes() + flying.sum::<u64>();
        let least = 2 * self.core.extent_bytes() as u64;
        coming < least.max(self.core.options.memory_bytes / URGENT_SHARE)
    }

    /// Codes, places and submits pages that were gathered.
    fn write(&mut self, pages: Vec<(u32, Frame)>) {
        let next = self.chooser.next();
        let mut parts = Vec::with_capacity(pages.len());
        let codec_of = |id| {
            let node = self.core.table.entry(id).account();
            let own = node.and_then(|node| node.compression());
            self.chooser.of_page(next, own)
        };
        let codecs: Vec<(Codec, bool)> = pages.iter().map(|&(id, _)| codec_of(id)).collect();
        let is_raw = codecs.iter().all(|(codec, _)| *codec == Codec::Raw);
        let mut scratch = (!is_raw).then(|| self.scratch_for(&pages));
        let mut scratch_used = 0;
        // What was tried because the chooser said so, what is left of it, and how long it took.
        let (mut tried, mut stored, mut took) = (0, 0, Duration::ZERO);
        for ((id, frame), (codec, is_told)) in pages.into_iter().zip(codecs) {
            let page = Transient::new(self.core, id, frame);
            let bytes = page.gathered();
            let mut slot = Slot {
                file: 0,
                codec: Codec::Raw,
                useful: false,
                offset: 0,
                stored_bytes: bytes.len() as u32,
                coded_bytes: bytes.len() as u32,
                checksum: codec::checksum(bytes),
            };
            let scratch_offset = scratch_used;
            if let Some(scratch) = &mut scratch
                && codec != Codec::Raw
                && bytes.len() >= codec::SMALLEST_PAGE
            {
                let started = Instant::now();
                let out = &mut scratch.bytes_mut()[scratch_used..];
                if let Some(coded) = codec::encode(codec, bytes, out) {
                    let padded = coded.next_multiple_of(SECTOR as usize);
                    if padded < bytes.len() {
                        slot.codec = codec;
                        slot.coded_bytes = coded as u32;
                        slot.stored_bytes = padded as u32;
                        scratch_used += padded;
                    }
                }
                if is_told {
                    tried += bytes.len();
                    stored += slot.stored_bytes as usize;
                    took += started.elapsed();
                }
            }
            parts.push(Part {
                id,
                frame,
                len: bytes.len(),
                scratch_offset,
                slot,
            });
        }
        self.chooser.coded(tried, stored, took);
        self.place(parts, scratch);
    }

    fn scratch_for(&self, pages: &[(u32, Frame)]) -> Scratch {
        let core = self.core;
        let len = |id| core.arena.len_of(core.table.entry(id).size());
        // Each page is coded behind the padded ones before it, so only the last needs the bound.
        let bytes: usize = pages.iter().map(|&(id, _)| len(id)).sum();
        let longest = pages.iter().map(|&(id, _)| len(id)).max().unwrap_or(0);
        Scratch::new(bytes + codec::bound(longest) + SECTOR as usize)
    }

    /// Finds file space for pages and submits them; pages without space stay dirty. A page that
    /// a quota refuses is the affair of those below the quota: they are waked, and it is no
    /// failure of the writer.
    fn place(&mut self, mut parts: Vec<Part>, scratch: Option<Scratch>) {
        let core = self.core;
        let write = {
            let mut state = lock(&core.room.state);
            state.writes_begun += 1;
            state.writes_begun
        };
        let mut refused = false;
        parts.retain(|part| {
            let node = core
                .table
                .entry(part.id)
                .account()
                .expect("not freed while written");
            let stored = u64::from(part.slot.stored_bytes);
            let is_taken = node.take_disk(stored, self.overdraw).is_ok();
            if !is_taken {
                refused = true;
                count(&node.tally.write_failures, 1);
                core.finish_write(part.id, None);
            }
            is_taken
        });
        if refused {
            // Taken once, so that nobody who has just looked misses it.
            drop(lock(&core.room.state));
            core.room.changed.notify_all();
        }
        let mut scratch = scratch.map(Arc::new);
        let mut rest = parts;
        while !rest.is_empty() {
            let (taken, place) = match self.take_space(&rest) {
                Ok(found) => found,
                Err(error) => {
                    for part in rest {
                        self.refuse(part, None);
                    }
                    self.failed(error, write);
                    return;
                }
            };
            let later = rest.split_off(taken);
            self.submit(rest, write, place, &mut scratch, later.is_empty());
            rest = later;
        }
    }

    /// Space for as many of the first parts as fit in one piece.
    fn take_space(&self, parts: &[Part]) -> Result<(usize, (u16, u64))> {
        let files = &self.core.files;
        let bytes = |parts: &[Part]| {
            parts
                .iter()
                .map(|part| u64::from(part.slot.stored_bytes))
                .sum()
        };
        let mut count = parts.len();
        // Rather shorter extents than a longer file once a quarter of it is free.
        let free = files.allocated_bytes() - files.used_bytes();
        while count > 1
            && files.longest_free() < bytes(&parts[..count])
            && free > files.allocated_bytes() / 4
            && free > 4 * EXTENT_BYTES as u64
        {
            count /= 2;
        }
        loop {
            match files.take(bytes(&parts[..count])) {
                Ok(place) => return Ok((count, place)),
                Err(_) if count > 1 => count /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    fn submit(
        &mut self,
        mut parts: Vec<Part>,
        write: u64,
        (file, start): (u16, u64),
        scratch: &mut Option<Arc<Scratch>>,
        last: bool,
    ) {
        let core = self.core;
        let mut offset = start;
        let mut segments = Vec::with_capacity(parts.len());
        for part in &mut parts {
            part.slot.file = file;
            part.slot.offset = offset;
            offset += u64::from(part.slot.stored_bytes);
            match (part.slot.codec, scratch.as_ref()) {
                (Codec::Raw, _) | (_, None) => {
                    segments.push(Transient::new(core, part.id, part.frame).segment());
                }
                (_, Some(scratch)) => {
                    let len = part.slot.stored_bytes as usize;
                    segments.push(scratch.segment(part.scratch_offset, len));
                }
            }
            core.end_gather(part.id);
        }
        let keep = if last {
            scratch.take()
        } else {
            scratch.clone()
        };
        let tag = self.next_tag;
        self.next_tag += 1;
        let transfer = Transfer {
            handle: Arc::clone(core.files.handle(file)),
            write: true,
            offset: start,
            segments,
            scratch: keep,
            tag,
        };
        self.busy_since.get_or_insert_with(Instant::now);
        self.flying.insert(tag, Flight { parts, write });
        match core.faults().map(|faults| faults.before(Operation::Write)) {
            Some(Err(error)) => self.finish(transfer, Err(error)),
            _ => self.queue.submit(transfer),
        }
    }

    /// Takes note of finished transfers; returns how many.
    pub(crate) fn collect(&mut self, wait: bool) -> usize {
        let mut done = Vec::new();
        self.queue.collect(wait, &mut done);
        let count = done.len();
        for (transfer, result) in done {
            self.finish(transfer, result);
        }
        if self.queue.in_flight() == 0
            && let Some(since) = self.busy_since.take()
        {
            self.device_busy += since.elapsed();
        }
        count
    }

    fn finish(&mut self, transfer: Transfer, result: std::io::Result<()>) {
        let Flight { mut parts, write } = self
            .flying
            .remove(&transfer.tag)
            .expect("one end for each transfer");
        let result = match result {
            Ok(()) => Ok(()),
            // The first reason is the one worth reporting.
            Err(error) => self
                .write_elsewhere(&mut parts, transfer)
                .map_err(|_| error),
        };
        match result {
            Ok(()) => {
                for part in &parts {
                    self.written(part);
                }
                lock(&self.core.room.state).completions += 1;
            }
            Err(source) => {
                let dir = self.core.files.dir(parts[0].slot.file).to_path_buf();
                let bytes = parts.iter().map(|part| part.len as u64).sum();
                for part in parts {
                    let slot = part.slot;
                    self.refuse(part, Some(slot));
                }
                // Where file space is not promised, a write is the first to meet a full disk.
                self.failed(Error::of_file("write", dir, bytes, source), write);
            }
        }
        self.core.room.changed.notify_all();
    }

    /// Tries a failed write once more, at another place of the file.
    fn write_elsewhere(&self, parts: &mut [Part], mut transfer: Transfer) -> std::io::Result<()> {
        let core = self.core;
        let total = transfer.bytes();
        let place = core.files.take(total);
        let (file, start) = place.map_err(|_| std::io::ErrorKind::StorageFull)?;
        transfer.handle = Arc::clone(core.files.handle(file));
        transfer.offset = start;
        let result = match core.faults().map(|faults| faults.before(Operation::Write)) {
            Some(Err(error)) => Err(error),
            _ => core.backend.run(&transfer),
        };
        if result.is_err() {
            core.files.give(file, start, total);
            return result;
        }
        let mut offset = start;
        for part in parts {
            let len = u64::from(part.slot.stored_bytes);
            core.files.give(part.slot.file, part.slot.offset, len);
            part.slot.file = file;
            part.slot.offset = offset;
            offset += len;
        }
        Ok(())
    }

    fn written(&mut self, part: &Part) {
        let core = self.core;
        let node = core
            .table
            .entry(part.id)
            .account()
            .expect("not freed while written");
        let stored = u64::from(part.slot.stored_bytes);
        count(&node.tally.pages_written, 1);
        count(&node.tally.bytes_written, part.len as u64);
        if core.files.handle(part.slot.file).direct {
            count(&node.tally.device_bytes_written, stored);
        }
        self.device_bytes += stored;
        core.finish_write(part.id, Some(part.slot));
        if let Some((limited, limit)) = node.resident_limit()
            && limited.resident_bytes() > limit
        {
            core.evict_one(part.id);
        }
    }

    /// Leaves a page dirty in memory and gives back what its write had taken.
    fn refuse(&self, part: Part, slot: Option<Slot>) {
        let core = self.core;
        let node = core
            .table
            .entry(part.id)
            .account()
            .expect("not freed while written");
        if let Some(slot) = slot {
            core.files
                .give(slot.file, slot.offset, u64::from(slot.stored_bytes));
        }
        node.return_disk(u64::from(part.slot.stored_bytes));
        core.finish_write(part.id, None);
    }

    fn failed(&self, error: Error, write: u64) {
        count(&self.core.root.tally.write_failures, 1);
        let mut state = lock(&self.core.room.state);
        state.failures += 1;
        state.last_failed_write = state.last_failed_write.max(write);
        state.error = Some(error);
        drop(state);
        self.core.room.changed.notify_all();
    }

    fn observed(&self) -> Observed {
        let running = self
            .busy_since
            .map_or(Duration::ZERO, |since| since.elapsed());
        Observed {
            wait_nanos: self.core.root.counters().wait_nanos,
            device_bytes: self.device_bytes,
            device_busy_nanos: (self.device_busy + running).as_nanos() as u64,
            processor_nanos: processor_nanos(),
        }
    }
}

/// Processor time of the whole process.
pub(crate) fn processor_nanos() -> u64 {
    #[cfg(not(miri))]
    {
        use rustix::time::{ClockId, clock_gettime};
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
    #[cfg(miri)]
    0
}
