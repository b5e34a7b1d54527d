//! Claims on memory: how they travel to the root, and what stops them.
//!
//! A claim is one atomic addition at each node on its way up, as far as it changes what that node
//! claims of its parent. A node may limit what it and its descendants claim beyond its admitted
//! minimum, in two ways: `claim_max` limits the sum, `headroom` asks for so many bytes of the whole
//! budget to stay free. A claim that exceeds a limit or the budget is added all the way first and
//! then taken back all the way: sums of nodes never differ from what stands below them for longer
//! than one call. Because another thread may be in the middle of taking its own back, the claim is
//! tried again a few times.
//!
//! **Limits are looked at before anything changes**, so that threads at a limit do not refuse each
//! other, or somebody else, by claims that cannot stay. Where no node of the chain has a limit that
//! look is left out.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use super::givers::Need;
use super::{HALF, KIB, Node};
use crate::{Error, Result};

/// How often a claim over the budget is tried again.
const ATTEMPTS: u32 = 12;
/// How often a limit is looked at. A release of others seldom helps here, and whoever has a limit
/// can do with less.
const LOOKS: u32 = 3;

/// Minimum and inner sum of a node, in KiB.
fn halves(word: u64) -> (u64, u64) {
    (word >> 32, word & HALF)
}

impl Node {
    pub(super) fn limit_bytes(&self) -> u64 {
        self.limit_kib * KIB
    }

    /// Whether the node may have this inner sum. What was admitted it may have in any case.
    fn allows(&self, minimum: u64, inner: u64) -> bool {
        inner <= self.claim_max_kib.max(minimum)
    }

    /// Changes the inner sum, here and as far up as it matters; returns whether every limit on the
    /// way and the budget hold. With `is_bound`, the limits of nodes count, and not the budget
    /// alone.
    fn change(&self, change_kib: i64, is_bound: bool) -> bool {
        let mut change = change_kib;
        let (mut fits, mut headroom) = (true, 0);
        for node in self.chain() {
            if change == 0 {
                return fits;
            }
            let (minimum, inner) = halves(node.claim.fetch_add(change as u64, AcqRel));
            let inner_after = inner.wrapping_add_signed(change);
            let after = minimum.max(inner_after);
            change = after as i64 - minimum.max(inner) as i64;
            if is_bound {
                fits &= node.allows(minimum, inner_after);
                if change > 0 {
                    headroom = headroom.max(node.headroom_kib);
                }
            }
            if node.parent.is_none() {
                return fits && after + headroom <= node.limit_kib;
            }
        }
        fits
    }

    /// Whether a claim would exceed no limit of a node on its way.
    fn limits_allow(&self, more_kib: u64) -> bool {
        let mut more = more_kib;
        let mut headroom = 0;
        for node in self.chain() {
            let (minimum, inner) = halves(node.claim.load(Acquire));
            if !node.allows(minimum, inner + more) {
                return false;
            }
            let before = minimum.max(inner);
            more = minimum.max(inner + more) - before;
            if more == 0 {
                return true;
            }
            headroom = headroom.max(node.headroom_kib);
            if node.parent.is_none() {
                return headroom == 0 || before + more + headroom <= node.limit_kib;
            }
        }
        true
    }

    /// Changes the minimum; returns as [`Node::change`].
    fn change_minimum(&self, change_kib: i64, is_bound: bool) -> bool {
        let (minimum, inner) = halves(self.claim.fetch_add((change_kib << 32) as u64, AcqRel));
        let after = minimum.wrapping_add_signed(change_kib).max(inner);
        let change = after as i64 - minimum.max(inner) as i64;
        let Some(parent) = &self.parent else {
            return after <= self.limit_kib;
        };
        parent.change(change, is_bound)
    }

    /// Whether an addition to the minimum would exceed no limit of a node above.
    fn limits_allow_minimum(&self, more_kib: u64) -> bool {
        let (minimum, inner) = halves(self.claim.load(Acquire));
        let more = (minimum + more_kib).max(inner) - minimum.max(inner);
        let parent = self.parent.as_ref();
        more == 0 || parent.is_none_or(|parent| parent.limits_allow(more))
    }

    /// What is claimed beyond the admitted minimum.
    pub(crate) fn beyond_minimum_bytes(&self) -> u64 {
        let (minimum, inner) = halves(self.claim.load(Acquire));
        inner.saturating_sub(minimum) * KIB
    }

    /// Claims `bytes`, rounded up to KiB, if they are free.
    pub(crate) fn claim_free(&self, bytes: u64) -> Result<()> {
        let kib = bytes.div_ceil(KIB);
        let may = || !self.is_limited || self.limits_allow(kib);
        match self.attempt(kib, may, |kib| self.change(kib, kib > 0)) {
            true => Ok(()),
            false => Err(self.exceeded(bytes)),
        }
    }

    /// Claims `bytes`, rounded up to KiB.
    pub(crate) fn claim(&self, bytes: u64) -> Result<()> {
        let claim = || self.claim_free(bytes).is_ok();
        self.claim_free(bytes).or_else(|refused| {
            let takes = self.takes_memory && self.claim_of_givers(bytes, Need::More, claim);
            if takes { Ok(()) } else { Err(refused) }
        })
    }

    /// Makes a change that `may` be tried, and takes it back where it does not fit.
    fn attempt(&self, kib: u64, may: impl Fn() -> bool, change: impl Fn(i64) -> bool) -> bool {
        if kib > self.limit_kib {
            return false;
        }
        for attempt in 0..ATTEMPTS {
            if may() {
                if change(kib as i64) {
                    return true;
                }
                change(-(kib as i64));
            } else if attempt + 1 == LOOKS {
                return false;
            }
            if attempt > 1 {
                std::thread::yield_now();
            }
        }
        false
    }

    pub(crate) fn unclaim(&self, bytes: u64) {
        self.change(-(bytes.div_ceil(KIB) as i64), false);
    }

    pub(crate) fn exceeded(&self, asked_bytes: u64) -> Error {
        let limit_bytes = self.limit_bytes();
        let available_bytes = limit_bytes.saturating_sub(self.root_claim_bytes());
        Error::BudgetExceeded {
            asked_bytes,
            available_bytes,
            limit_bytes,
        }
    }

    pub(crate) fn root_claim_bytes(&self) -> u64 {
        self.root().claim_kib() * KIB
    }

    /// What the node claims of its parent, or the root of the budget.
    pub(super) fn claim_kib(&self) -> u64 {
        let (minimum, inner) = halves(self.claim.load(Acquire));
        minimum.max(inner)
    }

    /// Adds to the minimum. Limits do not count: an account cannot go on without it.
    pub(crate) fn admit(&self, minimum_bytes: u64) -> Result<()> {
        let change = |kib| self.change_minimum(kib, false);
        let claim = || self.attempt(minimum_bytes.div_ceil(KIB), || true, change);
        match claim() || self.claim_of_givers(minimum_bytes, Need::Admission, claim) {
            true => Ok(()),
            false => Err(Error::MinimumNotMet {
                needed_bytes: minimum_bytes,
                limit_bytes: self.limit_bytes(),
            }),
        }
    }

    /// Adds to the minimum as far as the limits of the nodes above allow.
    pub(crate) fn admit_within_limits(&self, bytes: u64) -> Result<()> {
        let kib = bytes.div_ceil(KIB);
        let may = || !self.is_limited || self.limits_allow_minimum(kib);
        match self.attempt(kib, may, |kib| self.change_minimum(kib, kib > 0)) {
            true => Ok(()),
            false => Err(self.exceeded(bytes)),
        }
    }

    pub(crate) fn dismiss(&self, minimum_bytes: u64) {
        self.change_minimum(-(minimum_bytes.div_ceil(KIB) as i64), false);
    }
}
