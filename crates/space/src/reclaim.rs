//! Giving back what a period of time did not need: memory to the kernel, file space to the device.
//!
//! **Owns** the length of a period. **Never** takes anything from a page: pages that stand in the
//! way of a block are moved to another frame, and holes are made in files where no page lies.
//!
//! Arena and files note the most that was in use at once. At the end of each period, what they have
//! beyond that goes back. So it does not matter what a server does at the moment when somebody
//! looks, and a server at work gives back what a large statement took before.
//!
//! A server that always works at its limit has no moment without work. Each period gives back a few
//! blocks and pieces of files all the same, some ten milliseconds of the writer's time at most.
//!
//! What the program's heaps keep goes back as well, once a period, when nobody waits for the
//! writer.
//!
//! **Cost**: a look at each period; one copy of a page at most for each that stands alone in a
//! block, one system call for each block and each piece of a file; some milliseconds for the heaps.

use std::time::Duration;

use crate::core::Core;
use crate::program;

/// Periods until something has gone back that is no longer used: it may have been in use at the
/// beginning of the first one.
const PERIODS: u32 = 2;
/// Blocks that a period empties at least, whatever else there is to do.
const BLOCKS_MIN: u32 = 16;
/// Periods are no shorter, or ending them would be all that is done.
const PERIOD_MIN: Duration = Duration::from_millis(1);
/// They are no longer either: a hundred years, which clocks can count.
const PERIOD_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

impl Core {
    /// The length of a period.
    pub(crate) fn period(&self) -> Duration {
        (self.options.idle_trim / PERIODS).clamp(PERIOD_MIN, PERIOD_MAX)
    }

    /// Ends a period. Where `is_needed` says that the caller has something more urgent to do, it
    /// stops when it has done the least, and leaves the rest to the next one.
    pub(crate) fn end_period(&self, is_needed: &dyn Fn() -> bool) {
        let unused = self.arena.end_period();
        let (mut compactions, mut failed_compactions) = (0, 0);
        while self.arena.free_block_bytes() < unused
            && (compactions < BLOCKS_MIN || !is_needed())
            && let Some(class) = self.arena.fragmented_class(failed_compactions)
        {
            compactions += 1;
            failed_compactions += u32::from(!self.compact(class));
        }
        self.arena.give_back(unused);
        self.files.end_period(is_needed);
        if !is_needed() {
            self.trim_heaps(&program::HEAPS);
        }
    }
}

// The model of the page word compiles this file too, and opens no space outside of a model.
#[cfg(all(test, not(page_word_model)))]
mod tests {
    use crate::{AccountOptions, Page, PageClass, Space, SpaceOptions};

    /// Somebody always waits for the writer; memory goes back all the same.
    #[test]
    fn a_period_at_the_limit_gives_some_memory_back() {
        let space = Space::open(SpaceOptions {
            memory_bytes: 32 << 20,
            idle_trim: std::time::Duration::MAX,
            ..SpaceOptions::default()
        });
        let space = space.expect("the options are valid");
        let account = space.root().child("test", AccountOptions::default());
        let page = || {
            let guard = account.allocate(PageClass::K64).expect("there is room");
            guard.page().clone()
        };
        let pages: Vec<Page> = (0..80).map(|_| page()).collect();
        let full = space.backed_bytes();
        // Each tenth stays, so that no block that has one is free.
        let kept: Vec<Page> = pages.into_iter().step_by(10).collect();
        // The pages were in use when the first of them began.
        for _ in 0..4 {
            space.core().end_period(&|| true);
        }
        let left = space.backed_bytes();
        assert!(left <= full / 5, "{left} of {full} bytes");
        assert_eq!(kept.len(), 8);
        space.verify();
    }
}
