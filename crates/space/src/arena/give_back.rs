//! Giving memory of the arena back to the kernel.
//!
//! **Owns** nothing; the arena says which blocks are free. **Never** moves a page: blocks that are
//! free in part are emptied by `room`.
//!
//! What a period of time did not need is given back at its end: the arena notes the most that was
//! in use, so it does not matter what happens at the moment when somebody looks.

use super::{Arena, Kind, State};
use crate::{PageClass, lock};

impl Arena {
    /// Begins a period. Returns the bytes that are backed and that the one before never used.
    pub(crate) fn end_period(&self) -> u64 {
        let mut state = lock(&self.state);
        let most_used = std::mem::replace(&mut state.most_used_bytes, self.used_bytes());
        (state.backed_blocks * self.block_bytes as u64).saturating_sub(most_used)
    }

    /// Bytes of blocks that are backed by memory, in use or not.
    pub(crate) fn backed_bytes(&self) -> u64 {
        lock(&self.state).backed_blocks * self.block_bytes as u64
    }

    /// Bytes of free blocks.
    pub(crate) fn free_block_bytes(&self) -> u64 {
        lock(&self.state).free.len() as u64 * self.block_bytes as u64
    }

    pub(super) fn give_blocks_back(&self, state: &mut State, blocks: u64) {
        for _ in 0..blocks {
            let Some(index) = state.free.pop_last() else {
                return;
            };
            self.unback(state, index);
        }
    }

    pub(super) fn unback(&self, state: &mut State, index: u32) {
        self.memory
            .give_back(index as usize * self.block_bytes, self.block_bytes);
        Self::mark_given_back(state, index);
    }

    fn mark_given_back(state: &mut State, index: u32) {
        state.blocks[index as usize].kind = Kind::Unbacked;
        state.backed_blocks -= 1;
        state.unbacked.insert(index);
    }

    /// Gives free blocks back to the kernel, at most so many bytes, from the end of the range.
    /// Those of a huge page in which nothing is in use go with one call: block by block, what they
    /// become again would be small memory pages.
    pub(crate) fn give_back(&self, bytes_max: u64) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        for class in PageClass::ALL {
            for index in Vec::from_iter(state.classes[class.index()].partial.iter().copied()) {
                self.release_if_free(state, index, class);
            }
        }
        let count = state.blocks.len() as u32;
        let huge_page = |block: &u32| block / self.blocks_together;
        let blocks_max = usize::try_from(bytes_max / self.block_bytes as u64);
        let kept = state
            .free
            .len()
            .saturating_sub(blocks_max.unwrap_or(usize::MAX));
        let free = Vec::from_iter(state.free.iter().copied().skip(kept));
        for free in free.chunk_by(|a, b| huge_page(a) == huge_page(b)) {
            let first = huge_page(&free[0]) * self.blocks_together;
            let end = count.min(first + self.blocks_together);
            let is_kept = |index: u32| match state.blocks[index as usize].kind {
                Kind::Unbacked => false,
                Kind::Free => !free.contains(&index),
                Kind::Carved(_) | Kind::RunHead { .. } | Kind::RunBody => true,
            };
            let is_in_use = (first..end).any(is_kept);
            if !is_in_use {
                // With one call, or the kernel would keep what small pages need.
                self.memory.give_back(
                    first as usize * self.block_bytes,
                    (end - first) as usize * self.block_bytes,
                );
            }
            for index in free {
                state.free.remove(index);
                match is_in_use {
                    true => self.unback(state, *index),
                    false => Self::mark_given_back(state, *index),
                }
            }
        }
    }
}
