//! The memory pool that puts DataFusion's own operators under the budget of the temp space.
//!
//! Owns: [`SpacePool`], two reservations on behalf of every stock operator: of those that can write
//! to the disk, and of the others. Never: looks at who asked beyond that (first come, first
//! served).
//!
//! Stock operators ask often and for little, so the pool rents from its accounts in steps and gives
//! a step back only when two of them lie idle. A grant that the account cannot give at once makes
//! the space evict unpinned pages, whoever owns them. When nothing evictable is left:
//!
//! - an operator that can write to the disk is refused, and spills. All of them together hold a
//!   part of the budget, and leave a part of it free: those that they feed and the files that they
//!   write need pages. Each has pages of such files from the beginning: when it has to write, it
//!   would find none.
//! - for another one, operators are asked that hold more ([`mayfly_space::GivesMemory`]); only then
//!   does it fail.
//!
//! `MemoryPool::grow` cannot fail: DataFusion calls it for memory that exists already. What the
//! account refuses then is recorded as over-commit and made good by the next releases.
//!
//! Source: `MemoryPool` in `datafusion-execution`. Cost: one uncontended lock per call, one call
//! of the budget per step.

use std::fmt;
use std::sync::{Mutex, MutexGuard};

use datafusion::common::Result;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use mayfly_space::{Account, AccountOptions, Admission, Reservation};

use crate::error::{exhausted, space_error};
use crate::lock::lock;

/// Bytes of the step for budgets that can afford it: sixteen default pages, so that the budget
/// is asked once for many small grants.
const STEP_BYTES_MAX: u64 = 1 << 20;
/// Bytes of the step for the smallest budgets.
const STEP_BYTES_MIN: u64 = 64 << 10;
/// Stock operators that can write to the disk hold at most this part of the budget together ...
const SPILLERS_PER_MEMORY: u64 = 2;
/// ... and leave this part of it free.
const HEADROOM_PER_MEMORY: u64 = 16;
/// Pages that each of them has for files: what it gathers, and those that are written and read.
const FILE_PAGES: u64 = 4;
/// The step is at most this part of the budget.
const STEPS_PER_BUDGET: u64 = 128;

/// A `MemoryPool` over an account of the temp space.
pub struct SpacePool {
    account: Account,
    step_bytes: u64,
    /// What operators hold that can write to the disk.
    spillers: Mutex<State>,
    /// What all others hold.
    others: Mutex<State>,
    files: SpillFiles,
}

/// What files of stock operators hold.
struct SpillFiles {
    account: Account,
    state: Mutex<Spillers>,
}

#[derive(Default)]
struct Spillers {
    count: usize,
    /// The minima of as many of them as found room.
    admissions: Vec<Admission>,
}

struct State {
    reservation: Reservation,
    /// What the account has granted.
    granted_bytes: u64,
    /// What DataFusion believes it holds; above `granted_bytes` only by over-commit.
    used_bytes: u64,
    overcommit_bytes_max: u64,
}

impl SpacePool {
    /// A pool that charges an account.
    ///
    /// # Errors
    /// As `Account::reserve`.
    pub fn new(account: &Account) -> Result<Self> {
        let memory_bytes = account.space().memory_bytes();
        let step_bytes = (memory_bytes / STEPS_PER_BUDGET)
            .next_power_of_two()
            .clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
        // Accounts of their own, so that they may be given memory of others of the same statement.
        let takes = || AccountOptions {
            takes_memory: true,
            ..AccountOptions::default()
        };
        let spillers = AccountOptions {
            claim_max_bytes: Some(memory_bytes / SPILLERS_PER_MEMORY),
            headroom_bytes: memory_bytes / HEADROOM_PER_MEMORY,
            ..AccountOptions::default()
        };
        Ok(Self {
            account: account.clone(),
            step_bytes,
            spillers: State::new(&account.child("stock operators that spill", spillers))?,
            others: State::new(&account.child("stock operators", takes()))?,
            files: SpillFiles {
                account: account.child("spill files of stock operators", takes()),
                state: Mutex::default(),
            },
        })
    }

    /// The account that the pool charges.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The account of the files that operators write when the pool refuses them memory.
    pub fn file_account(&self) -> &Account {
        &self.files.account
    }

    /// The most bytes that DataFusion held beyond what the budget granted, since the pool exists.
    pub fn overcommit_bytes_max(&self) -> u64 {
        let of = |state: &Mutex<State>| lock(state).overcommit_bytes_max;
        of(&self.spillers) + of(&self.others)
    }

    fn state_of(&self, consumer: &MemoryConsumer) -> MutexGuard<'_, State> {
        lock(match consumer.can_spill() {
            true => &self.spillers,
            false => &self.others,
        })
    }
}

impl SpillFiles {
    fn begin(&self) {
        let page_bytes = self.account.space().default_page_class().bytes() as u64;
        // Where there is no room now there may be when it has to write.
        let admission = self.account.admit_within_limits(FILE_PAGES * page_bytes);
        let mut spillers = lock(&self.state);
        spillers.count += 1;
        spillers.admissions.extend(admission);
    }

    fn end(&self) {
        let mut spillers = lock(&self.state);
        spillers.count = spillers.count.saturating_sub(1);
        let count = spillers.count;
        spillers.admissions.truncate(count);
    }
}

impl State {
    fn new(account: &Account) -> Result<Mutex<State>> {
        Ok(Mutex::new(State {
            reservation: account.reserve(0).map_err(space_error)?,
            granted_bytes: 0,
            used_bytes: 0,
            overcommit_bytes_max: 0,
        }))
    }

    /// Makes the grant cover `bytes` of what is free: with a step in reserve, or else exactly.
    fn cover_in_free(&mut self, bytes: u64, step_bytes: u64) -> Result<(), mayfly_space::Error> {
        if bytes <= self.granted_bytes {
            return Ok(());
        }
        let rounded = bytes.next_multiple_of(step_bytes);
        if self.reservation.try_resize_in_free(rounded).is_ok() {
            self.granted_bytes = rounded;
            return Ok(());
        }
        self.reservation.try_resize_in_free(bytes)?;
        self.granted_bytes = bytes;
        Ok(())
    }

    /// The same, and takes what is missing from operators that hold more.
    fn cover(&mut self, bytes: u64, step_bytes: u64) -> Result<(), mayfly_space::Error> {
        if self.cover_in_free(bytes, step_bytes).is_ok() {
            return Ok(());
        }
        self.reservation.try_resize(bytes)?;
        self.granted_bytes = bytes;
        Ok(())
    }

    fn give_back(&mut self, step_bytes: u64) {
        let wanted = self.used_bytes.next_multiple_of(step_bytes);
        let idle = self.granted_bytes.saturating_sub(wanted);
        if (self.used_bytes == 0 || idle >= 2 * step_bytes)
            && self.granted_bytes > wanted
            && self.reservation.try_resize(wanted).is_ok()
        {
            self.granted_bytes = wanted;
        }
    }
}

impl MemoryPool for SpacePool {
    fn name(&self) -> &str {
        "mayfly_space"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.files.begin();
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.files.end();
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let mut state = self.state_of(reservation.consumer());
        state.used_bytes += additional as u64;
        let used_bytes = state.used_bytes;
        if state.cover_in_free(used_bytes, self.step_bytes).is_err() {
            let over = used_bytes - state.granted_bytes;
            state.overcommit_bytes_max = state.overcommit_bytes_max.max(over);
        }
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut state = self.state_of(reservation.consumer());
        state.used_bytes = state.used_bytes.saturating_sub(shrink as u64);
        state.give_back(self.step_bytes);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let consumer = reservation.consumer();
        let mut state = self.state_of(consumer);
        let wanted = state.used_bytes + additional as u64;
        match state.cover(wanted, self.step_bytes) {
            Ok(()) => {
                state.used_bytes = wanted;
                Ok(())
            }
            Err(error) => Err(exhausted(consumer.name(), &error)),
        }
    }

    fn reserved(&self) -> usize {
        let used_bytes = |state: &Mutex<State>| lock(state).used_bytes;
        usize::try_from(used_bytes(&self.spillers) + used_bytes(&self.others)).unwrap_or(usize::MAX)
    }

    fn memory_limit(&self) -> MemoryLimit {
        match usize::try_from(self.account.space().memory_bytes()) {
            Ok(bytes) => MemoryLimit::Finite(bytes),
            Err(_) => MemoryLimit::Infinite,
        }
    }
}

impl fmt::Debug for SpacePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpacePool")
            .field("used_bytes", &self.reserved())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for SpacePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(used: {})", self.name(), self.reserved())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::common::DataFusionError;
    use mayfly_space::{Space, SpaceOptions};

    use super::*;
    use crate::find_space_error;

    fn pool(memory_bytes: u64) -> (Space, Arc<SpacePool>, Arc<dyn MemoryPool>) {
        let options = SpaceOptions {
            memory_bytes,
            ..SpaceOptions::default()
        };
        let space = Space::open(options).unwrap();
        let ours = Arc::new(SpacePool::new(space.root()).unwrap());
        let any: Arc<dyn MemoryPool> = ours.clone();
        (space, ours, any)
    }

    #[test]
    fn grants_come_from_the_budget_and_go_back() {
        let (space, _, pool) = pool(8 << 20);
        let one = MemoryConsumer::new("one").register(&pool);
        let two = MemoryConsumer::new("two").register(&pool);
        one.try_grow(3 << 20).unwrap();
        two.try_grow(4 << 20).unwrap();
        assert_eq!(pool.reserved(), 7 << 20);
        assert!(space.counters().reserved_bytes >= 7 << 20);
        let error = two.try_grow(2 << 20).unwrap_err();
        assert!(
            matches!(error, DataFusionError::ResourcesExhausted(_)),
            "{error}"
        );
        assert!(matches!(
            *find_space_error(&error).unwrap(),
            mayfly_space::Error::BudgetExceeded { limit_bytes, .. } if limit_bytes == 8 << 20
        ));
        drop(one);
        two.try_grow(2 << 20).unwrap();
        drop(two);
        assert_eq!(pool.reserved(), 0);
        assert_eq!(space.counters().reserved_bytes, 0);
    }

    #[test]
    fn small_grants_are_rented_in_steps() {
        let (space, ..) = pool(64 << 20);
        let pool: Arc<dyn MemoryPool> = Arc::new(SpacePool::new(space.root()).unwrap());
        let consumer = MemoryConsumer::new("small").register(&pool);
        for _ in 0..100 {
            consumer.try_grow(10).unwrap();
        }
        assert_eq!(space.counters().reserved_bytes, 512 << 10);
        consumer.shrink(500);
        assert_eq!(space.counters().reserved_bytes, 512 << 10);
        drop(consumer);
        assert_eq!(space.counters().reserved_bytes, 0);
    }

    #[test]
    fn what_cannot_be_refused_is_recorded_as_overcommit() {
        let (space, ours, pool) = pool(8 << 20);
        let consumer = MemoryConsumer::new("infallible").register(&pool);
        consumer.grow(10 << 20);
        assert_eq!(pool.reserved(), 10 << 20);
        assert!(ours.overcommit_bytes_max() >= 2 << 20);
        consumer.shrink(4 << 20);
        consumer.try_grow(1 << 20).unwrap();
        assert!(space.counters().reserved_bytes >= 7 << 20);
        drop(consumer);
        assert_eq!(space.counters().reserved_bytes, 0);
    }
}
