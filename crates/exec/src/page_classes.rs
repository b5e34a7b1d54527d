//! How large the pages are that operators fill.
//!
//! Larger pages spare calls and pin more memory, so they grow with the part of the budget that an
//! operator has.

use mayfly_space::{PageClass, Space};

/// A page is at most this part of a partition's share of the budget, so that one step can read many
/// of them.
const PAGES_PER_SHARE: u64 = 256;
/// The largest page: larger ones spare few calls and pin more memory.
const PAGE_CLASS_MAX: PageClass = PageClass::K256;

/// The smallest page that is usual, whatever the share.
pub(crate) fn usual(default_class: PageClass) -> PageClass {
    default_class.min(PageClass::K16)
}

/// The pages that each of so many partitions can afford, the largest first: those that its share of
/// the budget allows, and all up to the usual one.
pub(crate) fn affordable(
    memory_bytes: u64,
    default_class: PageClass,
    partitions: usize,
) -> impl Iterator<Item = PageClass> {
    let largest = memory_bytes / partitions.max(1) as u64 / PAGES_PER_SHARE;
    let usual = usual(default_class);
    PageClass::ALL.into_iter().rev().filter(move |class| {
        *class <= PAGE_CLASS_MAX && (*class <= usual || class.bytes() as u64 <= largest)
    })
}

/// Whether so many bytes more would be in the second half of the budget, which is for those that do
/// with less.
pub(crate) fn is_crowded(space: &Space, more_bytes: u64) -> bool {
    space.memory_claimed_bytes() + more_bytes > space.memory_bytes() / 2
}
