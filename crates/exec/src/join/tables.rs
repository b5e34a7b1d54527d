//! The tables that the streams of a join look rows up in, and how they are given up.
//!
//! Tables are pinned from the end of the left side to the end of the right one, which may be long.
//! All joins of a space share what joins may pin: each looks at every batch whether it has more
//! than its share by now, and gives tables up until it has not, the largest first. It also does
//! where others need memory that have less ([`GivesMemory`]).
//!
//! ```text
//!   snapshot 1: table table table      a stream in the midst of a batch keeps what it began with
//!   snapshot 2: table   -   table      the next batch defers rows whose partners have no table
//!                       \-> leaving -> a part in pages, once no snapshot has the table
//! ```
//!
//! Between two batches, while it waits for its input, a stream has no snapshot.
//!
//! Rows that have found a partner keep their marks, in their pages: their pair goes on from there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use datafusion::common::{Result, internal_err};
use mayfly_space::{GivesMemory, Share};
use mayfly_table::rows::{JoinPart, JoinTables, LeavingTable, SideRows};

use super::report::Counts;

use crate::lock::lock;

/// A partition of the left side that is in pages.
pub(super) type AbsentPart = (usize, JoinPart);

/// The tables of a join.
pub(super) struct Tables {
    state: Mutex<State>,
    /// What the tables have pinned that are not given up.
    held_bytes: AtomicU64,
    limits: TableLimits,
    /// Whether rows may come later than in their turn.
    may_give_up: bool,
    counts: Counts,
}

struct State {
    /// `None` once the last stream has them.
    tables: Option<Arc<JoinTables>>,
    leaving: Vec<LeavingTable>,
    absent: Vec<AbsentPart>,
    /// Where rows of the right side go whose partners have no table.
    partner: Option<Arc<SideRows>>,
}

/// What a stream has of the tables while it deals with a batch.
pub(super) struct Snapshot {
    pub(super) tables: Arc<JoinTables>,
    /// Where its rows go whose partners have no table.
    pub(super) partner: Option<Arc<SideRows>>,
}

/// What is left when the last stream has seen all of its rows.
pub(super) struct Rest {
    pub(super) tables: Option<JoinTables>,
    pub(super) absent: Vec<AbsentPart>,
    pub(super) partner: Option<Arc<SideRows>>,
}

/// How much memory tables may pin.
pub(super) struct TableLimits {
    pub(super) share: Share,
    /// What all joins may pin.
    pub(super) all_bytes: u64,
    /// What this one may pin even if it is alone: a part, where operators on its right side need
    /// memory at the same time.
    pub(super) bytes_max: u64,
}

impl TableLimits {
    pub(super) fn bytes(&self) -> u64 {
        self.share.of(self.all_bytes).min(self.bytes_max)
    }
}

impl Tables {
    /// The tables as they were built, and what has none.
    pub(super) fn new(
        tables: JoinTables,
        absent: Vec<AbsentPart>,
        partner: Option<Arc<SideRows>>,
        limits: TableLimits,
        may_give_up: bool,
        counts: Counts,
    ) -> Tables {
        Tables {
            held_bytes: AtomicU64::new(held_by(&tables)),
            state: Mutex::new(State {
                tables: Some(Arc::new(tables)),
                leaving: Vec::new(),
                absent,
                partner,
            }),
            limits,
            may_give_up,
            counts,
        }
    }

    /// What tables of this join may pin at this moment.
    pub(super) fn share_bytes(&self) -> u64 {
        self.limits.bytes()
    }

    /// The tables as they are now, within this join's share; `None` once the last stream has them.
    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        let mut state = self.state();
        let held_bytes = self.held_bytes.load(Ordering::Relaxed);
        let too_many = held_bytes.saturating_sub(self.share_bytes());
        if too_many > 0 {
            self.give_up(&mut state, too_many);
        }
        state.settle();
        Some(Snapshot {
            tables: Arc::clone(state.tables.as_ref()?),
            partner: state.partner.clone(),
        })
    }

    /// Gives up tables that have pinned so many bytes together, the largest first.
    fn give_up(&self, state: &mut State, bytes: u64) {
        let Some(tables) = state.tables.take_if(|_| self.may_give_up) else {
            return;
        };
        let (mut rest, mut given) = (tables, 0);
        while given < bytes
            && let Some((partition, held)) = rest.held_bytes().max_by_key(|(_, bytes)| *bytes)
        {
            let (without, leaving) = rest.without(partition);
            state.leaving.push(leaving);
            rest = Arc::new(without);
            given += held;
            self.counts.given_up();
        }
        self.held_bytes.store(held_by(&rest), Ordering::Relaxed);
        state.tables = Some(rest);
    }

    /// What is left when the last stream has dropped its snapshot.
    pub(super) fn take_rest(&self) -> Result<Rest> {
        let mut state = self.state();
        let tables = state.tables.take().map(Arc::into_inner);
        state.settle();
        if !state.leaving.is_empty() || matches!(tables, Some(None)) {
            return internal_err!("a stream that has ended uses no table");
        }
        let mut absent = std::mem::take(&mut state.absent);
        absent.sort_unstable_by_key(|(partition, _)| *partition);
        Ok(Rest {
            tables: tables.flatten(),
            absent,
            partner: state.partner.take(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl GivesMemory for Tables {
    fn spare_bytes(&self) -> u64 {
        match self.may_give_up {
            true => self.held_bytes.load(Ordering::Relaxed) + self.state().leaving_bytes(),
            false => 0,
        }
    }

    // Nothing is claimed with this lock in hand.
    fn give(&self, bytes: u64) -> u64 {
        let mut state = self.state();
        // What is on its way to others will do for this one, or has to.
        let coming = state.leaving_bytes();
        let held_before = self.held_bytes.load(Ordering::Relaxed);
        if coming < bytes {
            self.give_up(&mut state, bytes - coming);
        }
        state.settle();
        coming + held_before - self.held_bytes.load(Ordering::Relaxed)
    }
}

impl State {
    /// What tables have pinned that were given up and are still in use.
    fn leaving_bytes(&self) -> u64 {
        self.leaving.iter().map(LeavingTable::held_bytes).sum()
    }

    /// Turns tables that no snapshot has any more into pages.
    fn settle(&mut self) {
        for leaving in std::mem::take(&mut self.leaving) {
            match leaving.try_into_part() {
                Ok(part) => self.absent.push(part),
                Err(leaving) => self.leaving.push(leaving),
            }
        }
    }
}

fn held_by(tables: &JoinTables) -> u64 {
    tables.held_bytes().map(|(_, bytes)| bytes).sum()
}
