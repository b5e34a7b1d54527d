//! Which pages are read before a partition's turn comes.
//!
//! Partitions fill up together, so pages of many partitions were written together, one or two of
//! each. They come back with one read where they are asked for together: 64 KiB at a time a device
//! gave 0.8 GB/s, 512 KiB at a time twice that.
//!
//! **Owns** the number of the next partition to ask for. **Never** asks for more than memory is
//! free for: a request without room is dropped, and the page then read by itself, while all wait.

use std::collections::VecDeque;

use mayfly_space::Page;

/// The part of the budget that pages may take that were asked for and whose turn has not come.
const BUDGET_SHARE: u64 = 3;

/// The part of that which is asked for at least, but for partitions whose turn comes next.
const GROUP_SHARE: u64 = 2;

#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    /// The first partition that was not asked for.
    next: usize,
    /// Partitions that were, with the bytes that had to be read.
    asked: VecDeque<(usize, u64)>,
}

impl ReadAhead {
    /// The pages to ask for when the turn of partition `number` has come. `absent` gives those of a
    /// partition that have to be read, and `None` at the end or where they cannot be told now;
    /// partitions up to `near` are asked for in any case.
    pub(crate) fn pages(
        &mut self,
        number: usize,
        near: usize,
        memory_bytes: u64,
        free_bytes: u64,
        mut absent: impl FnMut(usize) -> Option<Vec<Page>>,
    ) -> Vec<Page> {
        self.next = self.next.max(number + 1);
        while self
            .asked
            .front()
            .is_some_and(|(asked, _)| *asked <= number)
        {
            self.asked.pop_front();
        }
        let most = memory_bytes / BUDGET_SHARE;
        let under_way: u64 = self.asked.iter().map(|(_, bytes)| bytes).sum();
        let room = most.saturating_sub(under_way).min(free_bytes);
        let is_worth_while = room >= most / GROUP_SHARE;
        let mut taken = 0;
        let mut pages = Vec::new();
        while self.next <= near || is_worth_while {
            let Some(found) = absent(self.next) else {
                break;
            };
            let bytes = found.iter().map(|page| page.len_bytes() as u64).sum();
            if self.next > near && taken + bytes > room {
                break;
            }
            if bytes > 0 {
                self.asked.push_back((self.next, bytes));
            }
            taken += bytes;
            pages.extend(found);
            self.next += 1;
        }
        pages
    }
}
