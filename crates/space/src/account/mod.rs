//! Accounts: who uses how much, and the one budget.
//!
//! **Owns** the tree of accounts, their counters, quotas and claims on memory. **Never** evicts:
//! it only says whether a claim fits.
//!
//! The claim of an account is the larger of its admitted minimum and what it has pinned and
//! reserved, its children's claims included:
//!
//! ```text
//!  claim(node) = max(minimum(node), own pins + own reservations + sum of claim(children))
//!  claim(root) <= memory_bytes
//! ```
//!
//! Minimum and inner sum share one 64-bit word in KiB, so that a change of either is one atomic
//! addition whose result says by how much the claim changed. Only that change travels to the
//! parent: inside an admitted minimum it is zero, which makes such a pin cheap, and certain.

mod claims;
mod givers;
mod gives_memory;

use std::collections::HashMap;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, Weak};

use crate::own_pages::OwnPages;
use crate::{AccountOptions, Compression, Counters, Error, Result, lock};

pub use gives_memory::GivesMemory;

const KIB: u64 = 1024;
const HALF: u64 = 0xffff_ffff;

/// Counters that only grow; kept per node and summed over descendants when read.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) pages_allocated: AtomicU64,
    pub(crate) bytes_allocated: AtomicU64,
    pub(crate) pages_freed: AtomicU64,
    pub(crate) evictions: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) device_bytes_written: AtomicU64,
    pub(crate) device_bytes_read: AtomicU64,
    pub(crate) wasted_write_bytes: AtomicU64,
    pub(crate) pages_written: AtomicU64,
    pub(crate) read_misses: AtomicU64,
    pub(crate) prefetched_pages: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) wait_nanos: AtomicU64,
    pub(crate) read_wait_nanos: AtomicU64,
    pub(crate) write_failures: AtomicU64,
    pub(crate) files_created: AtomicU64,
}

impl Tally {
    fn all(&self) -> [&AtomicU64; 17] {
        [
            &self.pages_allocated,
            &self.bytes_allocated,
            &self.pages_freed,
            &self.evictions,
            &self.bytes_written,
            &self.bytes_read,
            &self.device_bytes_written,
            &self.device_bytes_read,
            &self.wasted_write_bytes,
            &self.pages_written,
            &self.read_misses,
            &self.prefetched_pages,
            &self.waits,
            &self.wait_nanos,
            &self.read_wait_nanos,
            &self.write_failures,
            &self.files_created,
        ]
    }

    fn fold_into(&self, other: &Tally) {
        for (from, to) in self.all().into_iter().zip(other.all()) {
            to.fetch_add(from.load(Relaxed), Relaxed);
        }
    }
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Relaxed);
}

/// The givers of a space.
#[derive(Default)]
struct Givers(Mutex<Vec<Giver>>);

struct Giver {
    node: Weak<Node>,
    operator: Weak<dyn GivesMemory>,
}

/// A node of the account tree.
pub(crate) struct Node {
    id: u64,
    name: String,
    parent: Option<Arc<Node>>,
    /// The budget; the root's only.
    limit_kib: u64,
    /// Minimum (upper half) and inner sum (lower half), in KiB.
    claim: AtomicU64,
    pinned_bytes: AtomicU64,
    /// These seven include descendants.
    held_bytes: AtomicU64,
    /// Bytes of pages that are on disk only. Below zero for the moment in which one is read back by
    /// whoever was faster than the thread that evicted it.
    away_bytes: AtomicI64,
    /// The most that was held and away together.
    live_peak_bytes: AtomicU64,
    reserved_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    disk_bytes: AtomicU64,
    disk_peak_bytes: AtomicU64,
    /// `u64::MAX` for none.
    disk_quota_bytes: AtomicU64,
    /// How often the quota of this node refused a page.
    quota_refusals: AtomicU64,
    /// Pages were written beyond the quota of this node, and may still be.
    is_overdrawn: AtomicBool,
    resident_max_bytes: Option<u64>,
    /// The most that this node and its descendants claim; `u64::MAX` for no limit.
    claim_max_kib: u64,
    /// What claims of this node and its descendants leave free of the whole budget.
    headroom_kib: u64,
    /// Whether this node or one above it has one of these two limits.
    is_limited: bool,
    /// Whether claims that do not fit take memory of others.
    takes_memory: bool,
    /// `None` for the space's own.
    compression: Option<Compression>,
    /// Pages of a node with a resident limit.
    pub(crate) own_pages: Mutex<OwnPages>,
    /// The root's only.
    givers: Givers,
    pub(crate) tally: Tally,
    next_child: AtomicU64,
    children: Mutex<HashMap<u64, Weak<Node>>>,
}

impl Node {
    pub(crate) fn new_root(limit_bytes: u64, disk_quota_bytes: Option<u64>) -> Arc<Node> {
        let options = AccountOptions {
            disk_quota_bytes,
            ..AccountOptions::default()
        };
        Arc::new(Node::new(
            0,
            "server".to_owned(),
            None,
            limit_bytes / KIB,
            options,
        ))
    }

    fn new(
        id: u64,
        name: String,
        parent: Option<Arc<Node>>,
        limit_kib: u64,
        options: AccountOptions,
    ) -> Node {
        let is_limited = options.claim_max_bytes.is_some()
            || options.headroom_bytes > 0
            || parent.as_ref().is_some_and(|parent| parent.is_limited);
        Node {
            id,
            name,
            parent,
            limit_kib,
            claim: AtomicU64::new(0),
            pinned_bytes: AtomicU64::new(0),
            held_bytes: AtomicU64::new(0),
            away_bytes: AtomicI64::new(0),
            live_peak_bytes: AtomicU64::new(0),
            reserved_bytes: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
            disk_bytes: AtomicU64::new(0),
            disk_peak_bytes: AtomicU64::new(0),
            disk_quota_bytes: AtomicU64::new(options.disk_quota_bytes.unwrap_or(u64::MAX)),
            quota_refusals: AtomicU64::new(0),
            is_overdrawn: AtomicBool::new(false),
            resident_max_bytes: options.resident_max_bytes,
            claim_max_kib: options
                .claim_max_bytes
                .map_or(u64::MAX, |bytes| bytes / KIB),
            headroom_kib: options.headroom_bytes.div_ceil(KIB),
            is_limited,
            takes_memory: options.takes_memory,
            compression: options.compression,
            own_pages: Mutex::default(),
            givers: Givers::default(),
            tally: Tally::default(),
            next_child: AtomicU64::new(0),
            children: Mutex::new(HashMap::new()),
        }
    }

    pub(crate) fn child(self: &Arc<Node>, name: &str, options: AccountOptions) -> Arc<Node> {
        let id = self.next_child.fetch_add(1, Relaxed);
        let parent = Some(Arc::clone(self));
        let options = AccountOptions {
            compression: options.compression.or(self.compression),
            takes_memory: options.takes_memory || self.takes_memory,
            ..options
        };
        let child = Arc::new(Node::new(
            id,
            name.to_owned(),
            parent,
            self.limit_kib,
            options,
        ));
        lock(&self.children).insert(id, Arc::downgrade(&child));
        child
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// This node and its ancestors.
    pub(crate) fn chain(&self) -> impl Iterator<Item = &Node> {
        std::iter::successors(Some(self), |node| node.parent.as_deref())
    }

    fn root(&self) -> &Node {
        self.chain().last().expect("a chain has at least its start")
    }

    /// Somebody who may be asked for memory of this account; forgotten once it is gone.
    pub(crate) fn may_take_from(self: &Arc<Node>, operator: Weak<dyn GivesMemory>) {
        self.root().givers.add(self, operator);
    }

    pub(crate) fn pinned(&self, bytes: u64) {
        self.pinned_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn unpinned(&self, bytes: u64) {
        self.pinned_bytes.fetch_sub(bytes, Relaxed);
    }

    fn hold(&self, bytes: u64) {
        for node in self.chain() {
            let held = node.held_bytes.fetch_add(bytes, Relaxed) + bytes;
            if held > node.peak_bytes.load(Relaxed) {
                node.peak_bytes.fetch_max(held, Relaxed);
            }
            let live = held.saturating_add_signed(node.away_bytes.load(Relaxed));
            if live > node.live_peak_bytes.load(Relaxed) {
                node.live_peak_bytes.fetch_max(live, Relaxed);
            }
        }
    }

    /// A page of this account got a frame.
    pub(crate) fn resident(&self, bytes: u64) {
        self.hold(bytes);
    }

    /// A page of this account lost its frame.
    pub(crate) fn evicted(&self, bytes: u64) {
        for node in self.chain() {
            node.held_bytes.fetch_sub(bytes, Relaxed);
        }
    }

    /// A page of this account is on disk only from here on.
    pub(crate) fn went_away(&self, bytes: u64) {
        for node in self.chain() {
            node.away_bytes.fetch_add(bytes as i64, Relaxed);
        }
    }

    /// A page that was on disk only is read back, or is no more.
    pub(crate) fn came_back(&self, bytes: u64) {
        for node in self.chain() {
            node.away_bytes.fetch_sub(bytes as i64, Relaxed);
        }
    }

    pub(crate) fn reserved(&self, bytes: u64) {
        for node in self.chain() {
            node.reserved_bytes.fetch_add(bytes, Relaxed);
        }
        self.hold(bytes);
    }

    pub(crate) fn unreserved(&self, bytes: u64) {
        for node in self.chain() {
            node.held_bytes.fetch_sub(bytes, Relaxed);
            node.reserved_bytes.fetch_sub(bytes, Relaxed);
        }
    }

    /// Resident and reserved bytes with descendants.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Relaxed)
    }

    /// The most memory that the account can have: the least of the limits above it.
    pub(crate) fn memory_limit_bytes(&self) -> u64 {
        let limit_kib = |node: &Node| {
            let resident_kib = node
                .resident_max_bytes
                .map_or(u64::MAX, |bytes| bytes / KIB);
            resident_kib.min(node.claim_max_kib)
        };
        let limits = self.chain().map(limit_kib);
        limits.fold(self.limit_kib, u64::min).saturating_mul(KIB)
    }

    /// The nearest node that limits its resident bytes, with the limit.
    pub(crate) fn resident_limit(&self) -> Option<(&Node, u64)> {
        self.chain()
            .find_map(|node| Some((node, node.resident_max_bytes?)))
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        self.held_bytes
            .load(Relaxed)
            .saturating_sub(self.reserved_bytes.load(Relaxed))
    }

    /// Takes disk space from every quota of the chain. With `beyond`, quotas other than the root's
    /// do not refuse it, but their accounts are overdrawn.
    pub(crate) fn take_disk(&self, bytes: u64, beyond: bool) -> Result<()> {
        for (depth, node) in self.chain().enumerate() {
            let used = node.disk_bytes.fetch_add(bytes, AcqRel) + bytes;
            let limit_bytes = node.disk_quota_bytes.load(Relaxed);
            if used > limit_bytes && beyond && node.parent.is_some() {
                node.is_overdrawn.store(true, Release);
            } else if used > limit_bytes {
                for node in self.chain().take(depth + 1) {
                    node.disk_bytes.fetch_sub(bytes, Relaxed);
                }
                node.quota_refusals.fetch_add(1, AcqRel);
                return Err(node.quota_reached(used - bytes));
            }
            node.disk_peak_bytes.fetch_max(used, Relaxed);
        }
        Ok(())
    }

    fn quota_reached(&self, used_bytes: u64) -> Error {
        Error::QuotaReached {
            account: self.name.clone(),
            used_bytes,
            limit_bytes: self.disk_quota_bytes.load(Relaxed),
        }
    }

    /// How often each quota of the chain has refused a page of this account or of another.
    pub(crate) fn quota_refusals(&self) -> Vec<u64> {
        let of = |node: &Node| node.quota_refusals.load(Acquire);
        self.chain().map(of).collect()
    }

    /// The error of a quota of the chain that has refused a page since that reading.
    pub(crate) fn refused_since(&self, refusals: &[u64]) -> Option<Error> {
        let mut nodes = self.chain().zip(refusals);
        let (node, _) =
            nodes.find(|(node, before)| node.quota_refusals.load(Acquire) != **before)?;
        Some(node.quota_reached(node.disk_bytes()))
    }

    /// Refuses what would add to pages that are on disk beyond a quota of the chain.
    pub(crate) fn check_overdraft(&self) -> Result<()> {
        for node in self.chain() {
            // Taken down first: whoever overdraws meanwhile puts it up again.
            if node.is_overdrawn.load(Relaxed) && node.is_overdrawn.swap(false, AcqRel) {
                let used_bytes = node.disk_bytes.load(Acquire);
                if used_bytes > node.disk_quota_bytes.load(Relaxed) {
                    node.is_overdrawn.store(true, Release);
                    return Err(node.quota_reached(used_bytes));
                }
            }
        }
        Ok(())
    }

    /// Sets how much disk the account and those below it may take from here on; what they have
    /// stays theirs.
    pub(crate) fn set_disk_quota(&self, bytes: Option<u64>) {
        self.disk_quota_bytes
            .store(bytes.unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn return_disk(&self, bytes: u64) {
        for node in self.chain() {
            node.disk_bytes.fetch_sub(bytes, Relaxed);
        }
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        self.disk_bytes.load(Relaxed)
    }

    fn living_children(&self) -> Vec<Arc<Node>> {
        lock(&self.children)
            .values()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// Adds what was tallied here and below; freed pages are kept apart until all are counted.
    fn sum(&self, into: &mut Counters, pages_freed: &mut u64) {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let tally = &self.tally;
        *pages_freed += read(&tally.pages_freed);
        into.pages_allocated += read(&tally.pages_allocated);
        into.bytes_allocated += read(&tally.bytes_allocated);
        into.pinned_bytes += read(&self.pinned_bytes);
        into.evictions += read(&tally.evictions);
        into.bytes_written += read(&tally.bytes_written);
        into.bytes_read += read(&tally.bytes_read);
        into.device_bytes_written += read(&tally.device_bytes_written);
        into.device_bytes_read += read(&tally.device_bytes_read);
        into.wasted_write_bytes += read(&tally.wasted_write_bytes);
        into.pages_written += read(&tally.pages_written);
        into.read_misses += read(&tally.read_misses);
        into.prefetched_pages += read(&tally.prefetched_pages);
        into.waits += read(&tally.waits);
        into.wait_nanos += read(&tally.wait_nanos);
        into.read_wait_nanos += read(&tally.read_wait_nanos);
        into.write_failures += read(&tally.write_failures);
        into.files_created += read(&tally.files_created);
        // The upgraded children are dropped after the lock: the last one to go takes it itself.
        for child in self.living_children() {
            child.sum(into, pages_freed);
        }
    }

    /// The counters of the node with its descendants. **Cost**: plain loads, some twenty for each
    /// node below; short statements read them twice.
    pub(crate) fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let mut counters = Counters {
            resident_bytes: self.resident_bytes(),
            away_bytes: u64::try_from(self.away_bytes.load(Relaxed)).unwrap_or(0),
            reserved_bytes: read(&self.reserved_bytes),
            peak_bytes: read(&self.peak_bytes),
            live_peak_bytes: read(&self.live_peak_bytes),
            disk_bytes_used: read(&self.disk_bytes),
            disk_peak_bytes: read(&self.disk_peak_bytes),
            ..Counters::default()
        };
        let mut pages_freed = 0;
        self.sum(&mut counters, &mut pages_freed);
        counters.pages_live = counters.pages_allocated.saturating_sub(pages_freed);
        counters
    }

    /// Checks that the claims of the tree add up; returns this node's claim in KiB.
    pub(crate) fn check(&self) -> u64 {
        let word = self.claim.load(Acquire);
        let (minimum, inner) = (word >> 32, word & HALF);
        let children: u64 = self
            .living_children()
            .iter()
            .map(|child| child.check())
            .sum();
        assert!(
            inner >= children,
            "claims of {}: {inner} KiB < {children} KiB",
            self.name
        );
        assert!(
            inner - children >= self.pinned_bytes.load(Relaxed) / KIB,
            "pins of {}",
            self.name
        );
        minimum.max(inner)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(parent) = &self.parent {
            let mut siblings = lock(&parent.children);
            self.tally.fold_into(&parent.tally);
            siblings.remove(&self.id);
        }
    }
}
