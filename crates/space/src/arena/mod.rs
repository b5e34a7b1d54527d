//! The frame arena: one address range, cut into superblocks, carved into frames.
//!
//! **Owns** which bytes of the range are a frame, of which page, and how much of the range is
//! backed by memory. **Never** looks into a frame and never evicts; it says `None` when nothing
//! fits, and the space makes room.
//!
//! ```text
//!  range   | block | block | block | block | ...        backed blocks + outside bytes <= limit
//!            64K x 32 free    run of two blocks          (outside: reservations)
//! ```
//!
//! A block is carved into frames of one class when the first of them is needed and returns to
//! the free blocks when the last one is freed, without a system call. A class as large as a
//! block or larger is a run of neighbouring blocks. Frames come from the lowest block that has
//! one, which keeps the others empty enough to be re-carved. The range is several times larger
//! than the budget because addresses are free and runs need neighbours.
//!
//! Blocks are 2 MiB, so that each is one huge page; smaller budgets use smaller blocks, because
//! a class never shares a block with another one, and have several of them in a huge page.
//!
//! **Cost** of a frame: one lock and a bit search, `measure::frames`.

mod check;
mod give_back;
mod memory;

use std::collections::{BTreeSet, BinaryHeap};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::PageClass;
use crate::lock;
pub(crate) use memory::{Frame, GRANULE, Memory};

/// No page owns the frame.
const NOBODY: u32 = u32::MAX;

/// Budgets from which memory is asked for in huge pages, of which several blocks may share one.
/// They are less work for the processor and for the device too, to which a page of 64 KiB is one
/// piece then and not sixteen.
const HUGE_PAGES_FROM: u64 = 8 << 20;

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// How many times the budget the address range is.
const RANGE_FACTOR: usize = 4;

/// The length of a page's frame: a class, or a whole number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Class(PageClass),
    Run { blocks: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unbacked,
    Free,
    Carved(PageClass),
    RunHead { blocks: u32 },
    RunBody,
}

struct Block {
    kind: Kind,
    /// One bit per frame, set while the frame is free.
    free: Vec<u64>,
    free_count: u32,
    owners: Vec<u32>,
    /// Set while a compaction empties the block: no frame is handed out from it.
    draining: bool,
}

#[derive(Default)]
struct ClassState {
    partial: BTreeSet<u32>,
    free_frames: u32,
}

struct State {
    blocks: Vec<Block>,
    classes: [ClassState; 5],
    free: BTreeSet<u32>,
    unbacked: BTreeSet<u32>,
    backed_blocks: u64,
    outside_bytes: u64,
    /// The most bytes of frames in use at once since [`Arena::end_period`].
    most_used_bytes: u64,
}

/// The frame arena.
pub(crate) struct Arena {
    memory: Memory,
    block_bytes: usize,
    /// Blocks that share a huge page.
    blocks_together: u32,
    limit_bytes: u64,
    slack_bytes: u64,
    state: Mutex<State>,
    /// Bytes of frames that pages own.
    used_bytes: AtomicU64,
    outside_bytes: AtomicU64,
    /// The most bytes outside at once since [`Arena::forget_kept`].
    outside_bytes_max: AtomicU64,
}

/// The block size for a budget.
pub(crate) fn block_bytes_for(memory_bytes: u64) -> usize {
    match memory_bytes {
        0..0x40_0000 => 64 << 10,
        0x40_0000..0x400_0000 => 256 << 10,
        _ => 2 << 20,
    }
}

impl Arena {
    pub(crate) fn new(memory_bytes: u64) -> io::Result<Arena> {
        let block_bytes = block_bytes_for(memory_bytes);
        let is_huge = memory_bytes >= HUGE_PAGES_FROM;
        let budget = usize::try_from(memory_bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        let factor = if cfg!(miri) { 2 } else { RANGE_FACTOR };
        let range = budget
            .checked_mul(factor)
            .and_then(|range| range.checked_next_multiple_of(block_bytes))
            .ok_or(io::ErrorKind::InvalidInput)?;
        let count = u32::try_from(range / block_bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        let blocks = (0..count)
            .map(|_| Block {
                kind: Kind::Unbacked,
                free: Vec::new(),
                free_count: 0,
                owners: Vec::new(),
                draining: false,
            })
            .collect();
        Ok(Arena {
            memory: Memory::reserve(range, is_huge)?,
            block_bytes,
            blocks_together: match is_huge {
                true => HUGE_PAGE_BYTES.div_ceil(block_bytes) as u32,
                false => 1,
            },
            limit_bytes: memory_bytes,
            slack_bytes: (memory_bytes / 8).max(2 * block_bytes as u64),
            state: Mutex::new(State {
                blocks,
                classes: Default::default(),
                free: BTreeSet::new(),
                unbacked: (0..count).collect(),
                backed_blocks: 0,
                outside_bytes: 0,
                most_used_bytes: 0,
            }),
            used_bytes: AtomicU64::new(0),
            outside_bytes: AtomicU64::new(0),
            outside_bytes_max: AtomicU64::new(0),
        })
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What may be backed beyond the limit when pinned pages are scattered.
    pub(crate) fn slack_bytes(&self) -> u64 {
        self.slack_bytes
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        self.block_bytes as u64
    }

    /// The size that holds `len` bytes: the smallest class, or a run of blocks.
    pub(crate) fn size_for(&self, len: usize) -> Size {
        match PageClass::holding(len) {
            Some(class) => Size::Class(class),
            None => {
                let blocks = len.div_ceil(self.block_bytes.max(PageClass::M1.bytes()))
                    * (self.block_bytes.max(PageClass::M1.bytes()) / self.block_bytes);
                Size::Run {
                    blocks: u32::try_from(blocks).unwrap_or(u32::MAX),
                }
            }
        }
    }

    pub(crate) fn len_of(&self, size: Size) -> usize {
        match size {
            Size::Class(class) => class.bytes(),
            Size::Run { blocks } => blocks as usize * self.block_bytes,
        }
    }

    /// The blocks a size takes as a run; `None` when it is a part of a block.
    fn run_blocks(&self, size: Size) -> Option<u32> {
        match size {
            Size::Run { blocks } => Some(blocks),
            Size::Class(class) if class.bytes() > self.block_bytes => {
                Some((class.bytes() / self.block_bytes) as u32)
            }
            Size::Class(_) => None,
        }
    }

    /// Bytes of frames in use.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Relaxed)
    }

    /// Bytes of memory that no page uses and that is not given back.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.backed_bytes().saturating_sub(self.used_bytes())
    }

    /// Bytes in use in and outside the arena.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.used_bytes.load(Relaxed) + self.outside_bytes.load(Relaxed)
    }

    /// Whether so many bytes more could be in use if nothing was scattered.
    pub(crate) fn fits(&self, bytes: u64) -> bool {
        self.held_bytes().saturating_add(bytes) <= self.limit_bytes
    }

    /// A frame for `owner`, or `None` if nothing of that size is free within the limit. With
    /// `beyond`, what is backed may take the slack too; what is in use may not.
    pub(crate) fn allocate(&self, size: Size, owner: u32, beyond: bool) -> Option<Frame> {
        let mut state = lock(&self.state);
        if !self.fits(self.len_of(size) as u64) {
            return None;
        }
        let frame = match (self.run_blocks(size), size) {
            (Some(blocks), _) => self.allocate_run(&mut state, blocks, owner, beyond),
            (None, Size::Class(class)) => self.allocate_part(&mut state, class, owner, beyond),
            (None, Size::Run { .. }) => None,
        }?;
        let len = self.len_of(size) as u64;
        let used = self.used_bytes.fetch_add(len, Relaxed) + len;
        state.most_used_bytes = state.most_used_bytes.max(used);
        Some(frame)
    }

    fn allocate_part(
        &self,
        state: &mut State,
        class: PageClass,
        owner: u32,
        beyond: bool,
    ) -> Option<Frame> {
        let index = match state.classes[class.index()].partial.first() {
            Some(&index) => index,
            None => {
                let index = self.take_block(state, beyond)?;
                self.carve(state, index, class);
                index
            }
        };
        let block = &mut state.blocks[index as usize];
        let word = block
            .free
            .iter()
            .position(|&bits| bits != 0)
            .expect("partial has a free frame");
        let bit = block.free[word].trailing_zeros();
        block.free[word] &= !(1 << bit);
        let slot = word as u32 * 64 + bit;
        block.owners[slot as usize] = owner;
        block.free_count -= 1;
        let class_state = &mut state.classes[class.index()];
        class_state.free_frames -= 1;
        if block.free_count == 0 {
            class_state.partial.remove(&index);
        }
        Some(self.frame_at(index, slot, class))
    }

    fn carve(&self, state: &mut State, index: u32, class: PageClass) {
        let frames = self.block_bytes / class.bytes();
        let block = &mut state.blocks[index as usize];
        block.kind = Kind::Carved(class);
        block.free.clear();
        block.free.resize(frames.div_ceil(64), 0);
        for frame in 0..frames {
            block.free[frame / 64] |= 1 << (frame % 64);
        }
        block.free_count = frames as u32;
        block.owners.clear();
        block.owners.resize(frames, NOBODY);
        let class_state = &mut state.classes[class.index()];
        class_state.partial.insert(index);
        class_state.free_frames += frames as u32;
    }

    /// One free block, backed within the limit.
    fn take_block(&self, state: &mut State, beyond: bool) -> Option<u32> {
        if let Some(index) = state.free.pop_first() {
            return Some(index);
        }
        if self.blocks_owed(state, self.block_bytes as u64, beyond) > 0 {
            return None;
        }
        let index = state.unbacked.pop_first()?;
        state.backed_blocks += 1;
        Some(index)
    }

    /// The free blocks that must go back to the kernel so that `bytes` more can be held. More than
    /// the bytes ask for where what is held lies in the slack already.
    fn blocks_owed(&self, state: &State, bytes: u64, beyond: bool) -> u64 {
        let held = state.backed_blocks * self.block_bytes as u64 + state.outside_bytes;
        let slack = if beyond { self.slack_bytes } else { 0 };
        held.saturating_add(bytes)
            .saturating_sub(self.limit_bytes + slack)
            .div_ceil(self.block_bytes as u64)
    }

    fn allocate_run(
        &self,
        state: &mut State,
        blocks: u32,
        owner: u32,
        beyond: bool,
    ) -> Option<Frame> {
        let head = find_run(state, blocks)?;
        let run = head..head + blocks;
        let reused = run.clone().filter(|i| state.free.contains(i)).count() as u64;
        let fresh = u64::from(blocks) - reused;
        let owed = match fresh {
            0 => 0,
            fresh => self.blocks_owed(state, fresh * self.block_bytes as u64, beyond),
        };
        if owed > state.free.len() as u64 - reused {
            return None;
        }
        for index in run {
            if !state.free.remove(&index) {
                state.unbacked.remove(&index);
                state.backed_blocks += 1;
            }
            state.blocks[index as usize].kind = Kind::RunBody;
        }
        self.give_blocks_back(state, owed);
        let block = &mut state.blocks[head as usize];
        block.kind = Kind::RunHead { blocks };
        block.owners.clear();
        block.owners.push(owner);
        Some(self.block_start(head))
    }

    fn block_start(&self, index: u32) -> Frame {
        Frame(index * (self.block_bytes / GRANULE) as u32)
    }

    fn frame_at(&self, index: u32, slot: u32, class: PageClass) -> Frame {
        Frame(self.block_start(index).0 + slot * (class.bytes() / GRANULE) as u32)
    }

    fn locate(&self, frame: Frame) -> (u32, u32) {
        let per_block = (self.block_bytes / GRANULE) as u32;
        (frame.0 / per_block, frame.0 % per_block)
    }

    /// Takes a frame back.
    pub(crate) fn free(&self, frame: Frame, size: Size) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let (index, granule) = self.locate(frame);
        match (self.run_blocks(size), size) {
            (Some(blocks), _) => {
                let head = &state.blocks[index as usize];
                assert_eq!(
                    head.kind,
                    Kind::RunHead { blocks },
                    "freeing a run that is none"
                );
                for index in index..index + blocks {
                    self.block_is_free(state, index);
                }
            }
            (None, Size::Class(class)) => {
                let slot = granule / (class.bytes() / GRANULE) as u32;
                let block = &mut state.blocks[index as usize];
                assert_eq!(
                    block.kind,
                    Kind::Carved(class),
                    "freeing a frame of another class"
                );
                let mask = 1 << (slot % 64);
                assert_eq!(
                    block.free[slot as usize / 64] & mask,
                    0,
                    "freeing a free frame"
                );
                block.free[slot as usize / 64] |= mask;
                block.owners[slot as usize] = NOBODY;
                block.free_count += 1;
                let class_state = &mut state.classes[class.index()];
                class_state.free_frames += 1;
                let frames = (self.block_bytes / class.bytes()) as u32;
                // The last block of a class stays carved: its next frame is likely to follow.
                let last = frames > 1 && class_state.partial.len() <= 1;
                if block.free_count == frames && !last {
                    class_state.free_frames -= frames;
                    class_state.partial.remove(&index);
                    self.block_is_free(state, index);
                } else if block.free_count == 1 && !block.draining {
                    class_state.partial.insert(index);
                }
            }
            (None, Size::Run { .. }) => unreachable!("a run always has blocks"),
        }
        self.used_bytes.fetch_sub(self.len_of(size) as u64, Relaxed);
    }

    fn block_is_free(&self, state: &mut State, index: u32) {
        let block = &mut state.blocks[index as usize];
        block.kind = Kind::Free;
        block.draining = false;
        state.free.insert(index);
        // The slack is given back as soon as it can be.
        if self.blocks_owed(state, 0, false) > 0 {
            state.free.remove(&index);
            self.unback(state, index);
        }
    }

    /// Takes `bytes` from the limit for memory outside the arena, giving free blocks back to the
    /// kernel for it; `false` when there is not enough of either.
    pub(crate) fn take_outside(&self, bytes: u64, beyond: bool) -> bool {
        let mut state = lock(&self.state);
        let owed = self.blocks_owed(&state, bytes, beyond);
        if owed > state.free.len() as u64 || beyond && !self.fits(bytes) {
            return false;
        }
        self.give_blocks_back(&mut state, owed);
        state.outside_bytes += bytes;
        self.outside_bytes.store(state.outside_bytes, Relaxed);
        self.outside_bytes_max
            .fetch_max(state.outside_bytes, Relaxed);
        true
    }

    pub(crate) fn return_outside(&self, bytes: u64) {
        let mut state = lock(&self.state);
        state.outside_bytes -= bytes;
        self.outside_bytes.store(state.outside_bytes, Relaxed);
    }

    /// Whether an allocator outside may keep more than `bytes` of what came back, and that does not
    /// fit into the limit beside the pages here.
    pub(crate) fn keeps_outside_more_than(&self, bytes: u64) -> bool {
        let most = self.outside_bytes_max.load(Relaxed);
        let returned = most.saturating_sub(self.outside_bytes.load(Relaxed));
        returned > bytes && (self.used_bytes() + most).saturating_sub(self.limit_bytes) > bytes
    }

    /// The allocator has given back what it kept.
    pub(crate) fn forget_kept(&self) {
        let state = lock(&self.state);
        self.outside_bytes_max.store(state.outside_bytes, Relaxed);
    }

    /// A class whose free frames add up to more than `blocks` blocks, if any.
    pub(crate) fn fragmented_class(&self, blocks: u32) -> Option<PageClass> {
        let state = lock(&self.state);
        PageClass::ALL.into_iter().find(|class| {
            let frames = (self.block_bytes / class.bytes()) as u32;
            frames > 1 && state.classes[class.index()].free_frames >= frames * (blocks + 1)
        })
    }

    /// Starts emptying the block of `class` with the fewest frames in use for which `movable`
    /// says yes to every owner. Returns its frames in use with their owners.
    pub(crate) fn begin_drain(
        &self,
        class: PageClass,
        movable: impl Fn(u32) -> bool,
    ) -> Option<(u32, Vec<(Frame, u32)>)> {
        let mut state = lock(&self.state);
        let partial = state.classes[class.index()].partial.iter();
        let by_free_count = partial.map(|&index| (state.blocks[index as usize].free_count, index));
        // A heap, because the first one will nearly always do.
        let mut candidates = BinaryHeap::from_iter(by_free_count);
        let chosen = loop {
            let (_, index) = candidates.pop()?;
            let mut owners = state.blocks[index as usize].owners.iter();
            if owners.all(|&owner| owner == NOBODY || movable(owner)) {
                break index;
            }
        };
        state.classes[class.index()].partial.remove(&chosen);
        let block = &mut state.blocks[chosen as usize];
        block.draining = true;
        let owned = block
            .owners
            .iter()
            .enumerate()
            .filter(|&(_, &owner)| owner != NOBODY)
            .map(|(slot, &owner)| (self.frame_at(chosen, slot as u32, class), owner))
            .collect();
        Some((chosen, owned))
    }

    /// Ends emptying a block, successful or not. Returns whether the block is free.
    pub(crate) fn end_drain(&self, index: u32) -> bool {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let block = &mut state.blocks[index as usize];
        if let (true, Kind::Carved(class)) = (block.draining, block.kind) {
            block.draining = false;
            if block.free_count > 0 {
                state.classes[class.index()].partial.insert(index);
            }
            return self.release_if_free(state, index, class);
        }
        true
    }

    /// Makes a carved block a free one if none of its frames is in use.
    fn release_if_free(&self, state: &mut State, index: u32, class: PageClass) -> bool {
        let frames = (self.block_bytes / class.bytes()) as u32;
        let free = state.blocks[index as usize].free_count == frames;
        if free {
            state.classes[class.index()].free_frames -= frames;
            state.classes[class.index()].partial.remove(&index);
            self.block_is_free(state, index);
        }
        free
    }
}

/// The head of the lowest run of free blocks; one that is backed already if there is any.
fn find_run(state: &State, blocks: u32) -> Option<u32> {
    let search = |usable: &dyn Fn(Kind) -> bool| {
        let mut length = 0;
        for (index, block) in state.blocks.iter().enumerate() {
            length = if usable(block.kind) { length + 1 } else { 0 };
            if length == blocks {
                return Some(index as u32 + 1 - blocks);
            }
        }
        None
    };
    search(&|kind| kind == Kind::Free)
        .or_else(|| search(&|kind| matches!(kind, Kind::Free | Kind::Unbacked)))
}

#[cfg(test)]
mod tests;
