//! The plans over many rows that a connection keeps.

use std::collections::hash_map::RandomState;
use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Query;
use mayfly_exec::LaterPlan;
use mayfly_sql::origin::Origins;

use super::name_resolution::Meanings;
use super::plan_cache::Place;

/// Plans that a connection keeps.
const PLANS_MAX: usize = 32;

/// Texts that are remembered to have come.
const SEEN_MAX: usize = 256;

/// The plans of a connection, the newest last.
#[derive(Default)]
pub(crate) struct LaterPlans {
    plans: VecDeque<Arc<Kept>>,
    /// Texts that came without a plan, by their hash.
    seen: HashSet<u64>,
    hasher: RandomState,
}

/// What a plan is for: a query, what its names meant and which rows its tables had before it was
/// planned. Rules may have seen rows that came later, and then it is the plan of no rows.
pub(super) struct PlanKey {
    pub(super) text: String,
    pub(super) query: Query,
    pub(super) meanings: Meanings,
    /// Those of its tables.
    pub(super) versions: Vec<u64>,
}

impl PlanKey {
    fn is_of(&self, text: &str, query: &Query) -> bool {
        self.text == text && self.query == *query
    }
}

/// A plan and what it is for.
pub(super) struct Kept {
    pub(super) key: PlanKey,
    pub(super) plan: LaterPlan,
    pub(super) labels: Vec<String>,
    pub(super) origins: Origins,
    /// Held by the run that has the plan.
    pub(super) in_use: Arc<()>,
    pub(super) _place: Place,
}

impl LaterPlans {
    /// Whether a text comes for the second time.
    pub(super) fn comes_again(&mut self, text: &str) -> bool {
        if self.seen.len() >= SEEN_MAX {
            self.seen.clear();
        }
        !self.seen.insert(self.hasher.hash_one(text))
    }

    pub(super) fn plan(&self, text: &str, query: &Query) -> Option<Arc<Kept>> {
        let mut plans = self.plans.iter();
        plans.find(|kept| kept.key.is_of(text, query)).cloned()
    }

    /// Keeps a plan, in the place of another one of its query.
    pub(super) fn keep(&mut self, kept: Kept) {
        let PlanKey { text, query, .. } = &kept.key;
        self.plans.retain(|other| !other.key.is_of(text, query));
        if self.plans.len() >= PLANS_MAX {
            self.plans.pop_front();
        }
        self.plans.push_back(Arc::new(kept));
    }

    /// Gives up a plan that would be another one now; its text may be worth one if it comes again.
    pub(super) fn give_up(&mut self, kept: &Arc<Kept>) {
        self.plans.retain(|other| !Arc::ptr_eq(other, kept));
        let hash = self.hasher.hash_one(kept.key.text.as_str());
        self.seen.remove(&hash);
    }
}
