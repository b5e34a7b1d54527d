//! The background reader: brings pages in ahead of their use.
//!
//! **Owns** one thread, the queue of pages asked for and the reads under way. **Never** takes a
//! frame from a page that is needed earlier than the one it reads, and drops a request when
//! there is no room: a pin reads the page itself then.
//!
//! Pages are read in the order of the file, neighbours together: what was written as one extent
//! comes back with one read.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};

use crate::arena::Frame;
use crate::codec::Codec;
use crate::core::{Core, read_target};
use crate::guard::Transient;
use crate::io::{Queue, Transfer};
use crate::page::Page;
use crate::table::{self, ABSENT, FLAGS, LOADING, Slot};
use crate::{Error, NextUse, Operation, lock};

/// The most bytes read in one transfer.
const READ_BYTES: usize = 1 << 20;
/// Transfers under way.
const DEPTH: usize = 16;
/// The part of the budget that reads under way may take.
const FLYING_SHARE: u64 = 8;
/// Requests looked at together, so that neighbours meet.
const BATCH: usize = 256;

#[derive(Default)]
struct State {
    pages: VecDeque<Page>,
    stop: bool,
}

/// What is asked of the reader.
#[derive(Default)]
pub(crate) struct Requests {
    state: Mutex<State>,
    asked: Condvar,
    /// Pages asked for and not yet dealt with.
    pub(crate) pending: AtomicU32,
}

impl Requests {
    pub(crate) fn push(&self, page: Page) {
        self.pending.fetch_add(1, Relaxed);
        let mut state = lock(&self.state);
        state.pages.push_back(page);
        drop(state);
        self.asked.notify_one();
    }

    pub(crate) fn stop(&self) {
        lock(&self.state).stop = true;
        self.asked.notify_one();
    }
}

struct Load {
    page: Page,
    slot: Slot,
    frame: Frame,
}

fn bytes_of(loads: &[Load]) -> usize {
    loads.iter().map(|load| load.page.len_bytes()).sum()
}

pub(crate) struct Reader<'a> {
    core: &'a Core,
    requests: &'a Requests,
    queue: Box<dyn Queue>,
    flying: HashMap<u64, Vec<Load>>,
    /// Bytes of the reads under way.
    flying_bytes: usize,
    next_tag: u64,
}

/// The body of the reader's thread.
pub(crate) fn run(core: &Core, requests: &Requests) {
    let mut reader = Reader::new(core, requests, Arc::clone(&core.backend).queue());
    loop {
        let pages: Vec<Page> = {
            let mut state = lock(&requests.state);
            while state.pages.is_empty() && !state.stop && reader.queue.in_flight() == 0 {
                let waited = requests.asked.wait(state);
                state = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
            }
            if state.stop && reader.queue.in_flight() == 0 {
                return;
            }
            let count = if state.stop {
                0
            } else {
                state.pages.len().min(BATCH)
            };
            state.pages.drain(..count).collect()
        };
        let idle = pages.is_empty();
        reader.start(pages);
        reader.collect(idle || reader.queue.in_flight() >= DEPTH);
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(core: &'a Core, requests: &'a Requests, queue: Box<dyn Queue>) -> Reader<'a> {
        Reader {
            core,
            requests,
            queue,
            flying: HashMap::new(),
            flying_bytes: 0,
            next_tag: 0,
        }
    }

    /// Begins to load what is absent and has room.
    pub(crate) fn start(&mut self, pages: Vec<Page>) {
        let mut wanted = Vec::with_capacity(pages.len());
        for page in pages {
            let slot = lock(&self.core.table.entry(page.inner().id).beside).slot;
            match slot {
                Some(slot) => wanted.push((page, slot)),
                None => {
                    drop(page);
                    self.dealt_with(1);
                }
            }
        }
        wanted.sort_by_key(|(_, slot)| (slot.file, slot.offset));
        let mut group: Vec<Load> = Vec::new();
        let mut group_bytes = 0;
        for (page, _) in wanted {
            let Some(load) = self.begin(page) else {
                self.dealt_with(1);
                continue;
            };
            let joins = group.last().is_some_and(|last| {
                let end = last.slot.offset + u64::from(last.slot.stored_bytes);
                last.slot.codec == Codec::Raw
                    && load.slot.codec == Codec::Raw
                    && (last.slot.file, end) == (load.slot.file, load.slot.offset)
                    && group_bytes + load.slot.stored_bytes as usize <= READ_BYTES
            });
            if !joins && !group.is_empty() {
                self.submit(std::mem::take(&mut group));
                group_bytes = 0;
            }
            group_bytes += load.slot.stored_bytes as usize;
            group.push(load);
        }
        if !group.is_empty() {
            self.submit(group);
        }
    }

    fn dealt_with(&self, count: usize) {
        self.requests.pending.fetch_sub(count as u32, Relaxed);
    }

    /// Puts an absent page into the loading state, with a frame.
    fn begin(&self, page: Page) -> Option<Load> {
        let core = self.core;
        let inner = page.inner();
        let entry = core.table.entry(inner.id);
        let begun =
            entry.update(|word| (table::state(word) == ABSENT).then_some((word & FLAGS) | LOADING));
        begun.ok()?;
        inner.node.came_back(inner.len as u64);
        core.loading.fetch_add(1, Relaxed);
        let key = match entry.next_use() {
            NextUse::At(at) => at,
            NextUse::SecondChance => u32::MAX,
        };
        match core.frame_ahead(inner.id, entry.size(), key, &inner.node) {
            Some(frame) => {
                // The slot of a loading page stays as it is.
                let slot = lock(&entry.beside).slot.expect("an absent page is on disk");
                Some(Load { page, slot, frame })
            }
            None => {
                core.abandon_load(inner);
                None
            }
        }
    }

    fn submit(&mut self, loads: Vec<Load>) {
        let core = self.core;
        // What is being read can be taken by nobody.
        let bytes = bytes_of(&loads);
        let most = (core.options.memory_bytes / FLYING_SHARE) as usize;
        while self.queue.in_flight() >= DEPTH
            || (self.queue.in_flight() > 0 && self.flying_bytes + bytes > most)
        {
            self.collect(true);
        }
        self.flying_bytes += bytes;
        let first = loads[0].slot;
        let mut scratch = None;
        let segments = loads
            .iter()
            .map(|load| {
                let bytes = Transient::new(core, load.page.inner().id, load.frame);
                let (segment, own) = read_target(&load.slot, &bytes);
                scratch = own.map(Arc::new);
                segment
            })
            .collect();
        let tag = self.next_tag;
        self.next_tag += 1;
        let transfer = Transfer {
            handle: Arc::clone(core.files.handle(first.file)),
            write: false,
            offset: first.offset,
            segments,
            scratch,
            tag,
        };
        self.flying.insert(tag, loads);
        match core.faults().map(|faults| faults.before(Operation::Read)) {
            Some(Err(error)) => self.finish(&transfer, Err(error)),
            _ => self.queue.submit(transfer),
        }
    }

    /// Takes note of what is read; waits for at least one read that is under way if `wait`.
    pub(crate) fn collect(&mut self, wait: bool) {
        let mut done = Vec::new();
        self.queue.collect(wait, &mut done);
        for (transfer, result) in done {
            self.finish(&transfer, result);
        }
    }

    fn finish(&mut self, transfer: &Transfer, result: std::io::Result<()>) {
        let core = self.core;
        let loads = self
            .flying
            .remove(&transfer.tag)
            .expect("one end for each transfer");
        self.flying_bytes -= bytes_of(&loads);
        let ok = result.is_ok();
        for load in &loads {
            let page = load.page.inner();
            // An error is met again by whoever pins the page, and reported there.
            let result: Result<(), Option<Error>> = if ok {
                let mut bytes = Transient::new(core, page.id, load.frame);
                let scratch = transfer.scratch.as_deref();
                core.deliver(&load.slot, &mut bytes, scratch).map_err(Some)
            } else {
                Err(None)
            };
            if result.is_ok() {
                core.count_read(&page.node, &load.slot, page.len);
            }
            core.finish_prefetch(page, load.frame, result.is_ok());
        }
        // The handles go first: dropping the last one frees the page, which is part of dealing
        // with it.
        let count = loads.len();
        drop(loads);
        self.dealt_with(count);
    }
}
