//! The pages of an account that limits what it keeps in memory.
//!
//! **Owns** their numbers, in the order in which they got a frame. **Never** looks at a page;
//! `room` does, and takes frames away.

use std::collections::{HashSet, VecDeque};

/// So many pages are kept in mind without a look at whether they still have a frame.
const UNTIDY_MAX: usize = 256;

/// The pages that got a frame, the oldest first. Some have lost it since, and those that got it
/// back are named again.
#[derive(Default)]
pub(crate) struct OwnPages {
    ids: VecDeque<u32>,
    /// How many were left when those that are gone were taken out.
    tidied_len: usize,
}

impl OwnPages {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Adds a page that got a frame. As long as an account is within its limit nobody takes pages
    /// out, so those without a frame go each time that the list has doubled.
    pub(crate) fn add(&mut self, id: u32, has_frame: impl Fn(u32) -> bool) {
        self.ids.push_back(id);
        if self.ids.len() > 2 * self.tidied_len.max(UNTIDY_MAX) {
            let mut seen = HashSet::new();
            self.ids.retain(|id| has_frame(*id) && seen.insert(*id));
            self.tidied_len = self.ids.len();
        }
    }

    /// Takes the oldest out.
    pub(crate) fn take_oldest(&mut self) -> Option<u32> {
        self.ids.pop_front()
    }

    /// Puts a page back that cannot go now.
    pub(crate) fn put_back(&mut self, id: u32) {
        self.ids.push_back(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "nothing is unsafe, and it takes minutes")]
    fn pages_that_are_gone_are_forgotten() {
        let mut pages = OwnPages::default();
        for id in 0..100_000 {
            pages.add(id, |other| other + 10 > id);
            assert!(pages.len() <= 2 * UNTIDY_MAX, "{}", pages.len());
        }
        // One that loses its frame and gets it back is named again and again.
        for _ in 0..100_000 {
            pages.add(7, |_| true);
            assert!(pages.len() <= 4 * UNTIDY_MAX, "{}", pages.len());
        }
    }
}
