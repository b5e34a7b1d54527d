//! The plans that a connection keeps.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use datafusion::scalar::ScalarValue;
use mayfly_exec::ShortPlan;
use mayfly_space::Reservation;
use mayfly_sql::functions::SessionValues;
use mayfly_sql::slot_labels::SlotLabel;

use super::apart::Apart;
use super::name_resolution::Meanings;
use super::plan_constants::{Constants, KeptConstants, StatementValues};
use crate::column_info::ColumnInfo;
use crate::digests::DigestCell;

/// Plans that a connection keeps, those of one shape, and the bytes of the longest shape.
pub(super) const PLANS_MAX: usize = 64;
pub(super) const PLANS_OF_SHAPE_MAX: usize = 16;
pub(super) const SHAPE_BYTES_MAX: usize = 4 << 10;

/// Shapes and texts that are remembered to have come.
pub(super) const SEEN_MAX: usize = 256;

/// A plan that computes for longer is given up: others wait for this thread. On a busy machine any
/// run may be interrupted for longer, so that only the time of the thread counts.
pub(super) const LONG: Duration = Duration::from_millis(5);
/// So often in a row: a plan that is given up comes back only after twice as many runs as the time
/// before.
pub(super) const LONG_RUNS_MAX: u32 = 4;

/// The plans of a connection.
#[derive(Default)]
pub(crate) struct Repeated {
    pub(super) plans: HashMap<Vec<u8>, Vec<Arc<KeptPlan>>>,
    /// How often shapes and texts came without a plan, by their hash.
    pub(super) seen: HashMap<u64, u32>,
    /// Shapes whose plans depend on their constants, by their hash.
    pub(super) fixed: HashSet<u64>,
    pub(super) hasher: RandomState,
}

impl Repeated {
    /// Whether a shape or a text comes for the second time, or for the fourth, the eighth ...: what
    /// is not worth a plan once may be later. `has_come` says that somebody else counted it before.
    pub(super) fn comes_again(&mut self, hash: u64, has_come: bool) -> bool {
        if self.seen.len() >= SEEN_MAX {
            self.seen.clear();
            self.fixed.clear();
        }
        let times = self.seen.entry(hash).or_default();
        *times = (*times).max(u32::from(has_come)).saturating_add(1);
        *times > 1 && times.is_power_of_two()
    }

    /// The hashes of a shape, and of a text.
    pub(super) fn hashes(&self, asked: &Asked<'_>) -> [u64; 2] {
        let of_text = self.hasher.hash_one((asked.shape, asked.constants));
        [self.hasher.hash_one(asked.shape), of_text]
    }

    /// How a plan for this statement may be made, if it is worth one now.
    pub(super) fn worth(&mut self, asked: &Asked<'_>, has_come: bool) -> Option<Worth> {
        let [of_shape, of_text] = self.hashes(asked);
        if !asked.constants.is_empty() && !self.fixed.contains(&of_shape) {
            let comes_again = self.comes_again(of_shape, has_come);
            return comes_again.then_some(Worth::AnyConstants);
        }
        // Others may have had other constants.
        let has_come = has_come && asked.constants.is_empty();
        let comes_again = self.comes_again(of_text, has_come);
        comes_again.then_some(Worth::TheseConstants)
    }

    /// Takes back that a statement came: its plan is not made now.
    pub(super) fn postpone(&mut self, asked: &Asked<'_>) {
        for hash in self.hashes(asked) {
            if let Some(times) = self.seen.get_mut(&hash) {
                *times = times.saturating_sub(1);
            }
        }
    }

    /// Takes note that the plans of a shape depend on its constants.
    pub(super) fn depends(&mut self, shape: &[u8]) {
        let hash = self.hasher.hash_one(shape);
        self.fixed.insert(hash);
    }

    /// The plan for a statement, and the values of its slots.
    pub(super) fn plan(&self, asked: &Asked<'_>) -> Option<(Arc<KeptPlan>, Vec<ScalarValue>)> {
        let plans = self.plans.get(asked.shape)?;
        plans.iter().find_map(|plan| {
            let values = plan.constants.values(asked.constants)?;
            Some((Arc::clone(plan), values))
        })
    }

    pub(super) fn keep(&mut self, shape: &[u8], plan: Arc<KeptPlan>) {
        let count: usize = self.plans.values().map(Vec::len).sum();
        if count >= PLANS_MAX
            && let Some(other) = self.plans.keys().find(|of| *of != shape).cloned()
        {
            self.plans.remove(&other);
        }
        let plans = self.plans.entry(shape.to_vec()).or_default();
        if plans.len() >= PLANS_OF_SHAPE_MAX {
            plans.remove(0);
        }
        plans.push(plan);
    }

    /// Removes a plan from those of its shape.
    pub(super) fn remove(&mut self, shape: &[u8], plan: &Arc<KeptPlan>) {
        if let Some(plans) = self.plans.get_mut(shape) {
            plans.retain(|of| !Arc::ptr_eq(of, plan));
        }
    }

    /// Gives up a plan that means something else by now; the statement may be worth another one.
    pub(super) fn renew(&mut self, asked: &Asked<'_>, plan: &Arc<KeptPlan>) {
        self.remove(asked.shape, plan);
        let [of_shape, of_text] = self.hashes(asked);
        self.seen.remove(&of_shape);
        self.seen.remove(&of_text);
        self.fixed.remove(&of_shape);
    }
}

/// How a plan is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    AnyConstants,
    TheseConstants,
}

/// A statement that asks for a plan.
pub(super) struct Asked<'a> {
    /// Its shape, or its text if it has none.
    pub(super) shape: &'a [u8],
    pub(super) constants: &'a Constants<'a>,
}

impl<'a> Asked<'a> {
    /// What a text asks for; `None` if that is too long.
    pub(super) fn of(text: &'a str, apart: Option<&'a Apart<'_>>) -> Option<Asked<'a>> {
        let asked = match apart {
            Some(apart) => Asked {
                shape: &apart.shape,
                constants: &apart.given.constants,
            },
            None => Asked {
                shape: text.as_bytes(),
                constants: &[],
            },
        };
        (asked.shape.len() <= SHAPE_BYTES_MAX).then_some(asked)
    }
}

/// The room of a plan among those of all connections.
pub(super) struct Place {
    pub(super) plans: Arc<AtomicUsize>,
    /// For how many plans of some ten operators it is.
    pub(super) count: usize,
    pub(super) _reservation: Reservation,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.plans.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// A plan without rows.
pub(super) struct KeptPlan {
    pub(super) plan: ShortPlan,
    pub(super) constants: KeptConstants,
    pub(super) statement_values: StatementValues,
    pub(super) columns: Vec<ColumnInfo>,
    /// The labels that hold constants of the run.
    pub(super) slot_labels: Vec<SlotLabel>,
    pub(super) meanings: Meanings,
    /// Where its functions warn.
    pub(super) values: SessionValues,
    pub(super) digest: DigestCell,
    pub(super) made: Instant,
    /// The last runs that took long or could not end, without one between them that did.
    pub(super) long_runs: AtomicU32,
    pub(super) _place: Place,
}
