//! Checks the arena against itself. Used by tests, and by nobody else.

use super::{Arena, Frame, Kind, NOBODY};
use crate::{PageClass, lock};

/// What [`Arena::check`] found.
pub(crate) struct ArenaReading {
    pub(crate) owned: Vec<(Frame, u32)>,
    pub(crate) backed_bytes: u64,
    pub(crate) outside_bytes: u64,
}

impl Arena {
    /// Checks the arena against itself and says what it holds.
    pub(crate) fn check(&self) -> ArenaReading {
        let state = lock(&self.state);
        let mut owned = Vec::new();
        let mut backed_blocks = 0;
        let mut used_bytes = 0;
        let mut free_frames = [0; 5];
        for (index, block) in state.blocks.iter().enumerate() {
            let index = index as u32;
            backed_blocks += u64::from(block.kind != Kind::Unbacked);
            assert_eq!(block.kind == Kind::Free, state.free.contains(&index));
            assert_eq!(
                block.kind == Kind::Unbacked,
                state.unbacked.contains(&index)
            );
            match block.kind {
                Kind::Carved(class) => {
                    let free: u32 = block.free.iter().map(|bits| bits.count_ones()).sum();
                    assert_eq!(free, block.free_count);
                    free_frames[class.index()] += free;
                    let partial = state.classes[class.index()].partial.contains(&index);
                    assert_eq!(partial, free > 0 && !block.draining);
                    for (slot, &owner) in block.owners.iter().enumerate() {
                        let is_free = block.free[slot / 64] & (1 << (slot % 64)) != 0;
                        assert_eq!(is_free, owner == NOBODY);
                        if !is_free {
                            owned.push((self.frame_at(index, slot as u32, class), owner));
                            used_bytes += class.bytes() as u64;
                        }
                    }
                }
                Kind::RunHead { blocks } => {
                    owned.push((self.block_start(index), block.owners[0]));
                    used_bytes += u64::from(blocks) * self.block_bytes as u64;
                }
                Kind::Unbacked | Kind::Free | Kind::RunBody => {}
            }
        }
        assert_eq!(backed_blocks, state.backed_blocks);
        assert_eq!(used_bytes, self.used_bytes());
        for class in PageClass::ALL {
            assert_eq!(
                free_frames[class.index()],
                state.classes[class.index()].free_frames
            );
        }
        ArenaReading {
            owned,
            backed_bytes: backed_blocks * self.block_bytes as u64,
            outside_bytes: state.outside_bytes,
        }
    }
}
