//! Giving back what a period of time did not need: memory to the kernel, file space to the device.
//!
//! **Owns** the length of a period. **Never** takes anything from a page: pages that stand in the
//! way of a block are moved to another frame, and holes are made in files where no page lies.
//!
//! Arena and files note the most that was in use at once. At the end of each period, what they have
//! beyond that goes back. So it does not matter what a server does at the moment when somebody
//! looks, and a server at work gives back what a large statement took before.
//!
//! **Cost**: a look at each period; one copy of a page at most for each that stands alone in a
//! block, one system call for each block and each piece of a file.

use std::time::Duration;

use crate::core::Core;

/// Periods until something has gone back that is no longer used: it may have been in use at the
/// beginning of the first one.
const PERIODS: u32 = 2;
/// Periods are no shorter, or ending them would be all that is done.
const PERIOD_MIN: Duration = Duration::from_millis(1);
/// They are no longer either: a hundred years, which clocks can count.
const PERIOD_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

impl Core {
    /// The length of a period.
    pub(crate) fn period(&self) -> Duration {
        (self.options.idle_trim / PERIODS).clamp(PERIOD_MIN, PERIOD_MAX)
    }

    /// Ends a period. Stops early, and leaves the rest to the next one, as soon as `is_needed` says
    /// that the caller has something more urgent to do.
    pub(crate) fn end_period(&self, is_needed: &dyn Fn() -> bool) {
        let unused = self.arena.end_period();
        let mut failed_compactions = 0;
        while self.arena.free_block_bytes() < unused
            && !is_needed()
            && let Some(class) = self.arena.fragmented_class(failed_compactions)
        {
            failed_compactions += u32::from(!self.compact(class));
        }
        self.arena.give_back(unused);
        self.files.end_period(is_needed);
    }
}
