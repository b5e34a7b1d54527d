//! Queries over few rows whose text comes again: their plan is kept.
//!
//! Owns the plans of a connection, by the text of their statement. Those over shared tables are
//! made once for all connections that are alike (see [`crate::plan_owner`]). A plan is kept without
//! rows (see [`mayfly_exec::ShortPlan`]), so it holds no page and no table. It runs over the rows
//! of now, on the thread that asks, and only as long as no step returns more than a few thousand
//! rows; where one does, planning is not what takes the time, and the statement goes the long way
//! with all threads.
//!
//! **Never** fails: where a kept plan cannot run to its end at once, nothing was done, and the
//! statement goes the long way from its beginning.
//!
//! **Cost**: some ten microseconds, where a plan takes milliseconds; each plan that is kept is
//! thought to take [`PLAN_BYTES`], which are reserved.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::Query;
use mayfly_exec::{ShortPlan, ShortRun, Size, UnboundTable};
use mayfly_space::{Counters, Reservation};
use mayfly_sql::functions::SessionValues;
use mayfly_sql::references::References;
use mayfly_sql::repeatable::is_repeatable;
use mayfly_table::Table;

use super::Job;
use super::few_rows::{run_short, unless_warned_elsewhere};
use super::meanings::Meanings;
use crate::connection::Connection;
use crate::digests::DigestCell;
use crate::lowered;
use crate::outcome::{ColumnInfo, Outcome};
use crate::slow_log::Reads;
use crate::stats::{Ended, StatementStats};

/// Plans that a connection keeps, and the bytes of the longest text.
const PLANS_MAX: usize = 32;
const TEXT_BYTES_MAX: usize = 4 << 10;
/// What a plan of some ten operators takes, about.
const PLAN_BYTES: u64 = 32 << 10;
/// The plans of all connections take at most this part of the budget; of one that is smaller than
/// this they take nothing, which is for rows.
const PLANS_PER_MEMORY: u64 = 16;
const MEMORY_BYTES_MIN: u64 = 16 << 20;
/// Texts that are remembered to have come.
const SEEN_MAX: usize = 256;
/// What a plan may have to do.
const SIZE_MAX: Size = Size {
    rows: 4096,
    bytes_read: 2 << 20,
};
/// A plan that takes longer is given up: others wait for this thread.
const LONG: Duration = Duration::from_millis(5);
/// So often in a row. On a busy machine any run may be interrupted for longer, and a plan that is
/// given up comes back only after twice as many runs as the time before.
const LONG_RUNS_MAX: u32 = 4;

/// The plans of a connection.
#[derive(Default)]
pub(crate) struct Repeated {
    plans: HashMap<String, Arc<KeptPlan>>,
    /// How often texts came without a plan, by their hash.
    seen: HashMap<u64, u32>,
    hasher: RandomState,
}

impl Repeated {
    /// Whether a text comes for the second time, or for the fourth, the eighth ...: what is not
    /// worth a plan once may be later.
    fn comes_again(&mut self, text: &str) -> bool {
        if self.seen.len() >= SEEN_MAX {
            self.seen.clear();
        }
        let hash = self.hasher.hash_one(text);
        let times = self.seen.entry(hash).or_default();
        *times = times.saturating_add(1);
        *times > 1 && times.is_power_of_two()
    }

    fn keep(&mut self, text: &str, plan: Arc<KeptPlan>) {
        if self.plans.len() >= PLANS_MAX
            && let Some(other) = self.plans.keys().next().cloned()
        {
            self.renew(&other);
        }
        self.plans.insert(text.to_owned(), plan);
    }

    /// Gives up a plan that means something else by now; its text may be worth another one.
    fn renew(&mut self, text: &str) {
        self.plans.remove(text);
        let hash = self.hasher.hash_one(text);
        self.seen.remove(&hash);
    }
}

/// A plan without rows.
struct KeptPlan {
    plan: ShortPlan,
    columns: Vec<ColumnInfo>,
    meanings: Meanings,
    /// Where its functions warn.
    values: SessionValues,
    digest: DigestCell,
    /// The last runs that took long, without one between them that did not.
    long_runs: AtomicU32,
    _place: Place,
}

impl KeptPlan {
    /// Whether the plan takes long time and again; `took` is its last run.
    fn is_too_long(&self, took: Duration) -> bool {
        if took <= LONG {
            self.long_runs.store(0, Ordering::Relaxed);
            return false;
        }
        self.long_runs.fetch_add(1, Ordering::Relaxed) + 1 >= LONG_RUNS_MAX
    }
}

/// The room of a plan among those of all connections.
struct Place {
    plans: Arc<AtomicUsize>,
    _reservation: Reservation,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.plans.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Place {
    /// Room for one more plan, if there is any.
    fn find(connection: &Connection) -> Option<Place> {
        let memory_bytes = connection.engine.space().memory_bytes();
        if memory_bytes < MEMORY_BYTES_MIN {
            return None;
        }
        let most = memory_bytes / PLANS_PER_MEMORY / PLAN_BYTES;
        let reservation = connection.account.reserve(PLAN_BYTES).ok()?;
        let plans = Arc::clone(&connection.engine.shared().kept_plans);
        let taken = plans.fetch_add(1, Ordering::Relaxed);
        let place = Place {
            plans,
            _reservation: reservation,
        };
        ((taken as u64) < most).then_some(place)
    }
}

/// Runs a query whose plan is kept; `None` for any other statement, of which nothing was done.
pub(crate) fn run_repeated(connection: &Arc<Connection>, text: &str) -> Option<Outcome> {
    let started = Instant::now();
    let (kept, tables) = connection.kept_plan(text)?;
    let before: Vec<Counters> = tables
        .iter()
        .map(|table| table.account().counters())
        .collect();
    let run = catch_unwind(AssertUnwindSafe(|| kept.run(connection)));
    let ran = run.ok().flatten();
    if ran.is_none() || kept.is_too_long(started.elapsed()) {
        connection.give_up_plan(text);
    }
    let Some(ran) = ran else {
        // Its rows are no longer few, or it fails; the long way finds out, and says why.
        return None;
    };
    let mut counters = Counters::default();
    for (table, before) in tables.iter().zip(before) {
        counters.add_moved(&table.account().counters(), &before);
    }
    let row_count = ran.rows.num_rows() as u64;
    let told = Ended {
        text,
        digest: &kept.digest,
        is_failed: false,
        stats: StatementStats::new(started.elapsed(), row_count, &ran.temp_tables, &counters),
        is_query: true,
        reads: Reads {
            tables: ran.reads,
            rows: ran.reads.rows() + ran.rows_given,
            has_full_scan: ran.has_full_scan,
            has_full_join: ran.has_full_join,
        },
        tables: &ran.temp_tables,
        counters: &counters,
        stages: &[],
    };
    connection.count(|status| {
        status.selects += 1;
        status.plans_reused += 1;
    });
    connection.ended_at_once(&told, row_count, None);
    Some(Outcome::known(kept.columns.clone(), ran.rows))
}

impl Connection {
    /// The plan of a text, if it would be made in the same way now, and its tables.
    fn kept_plan(&self, text: &str) -> Option<(Arc<KeptPlan>, Vec<Arc<Table>>)> {
        if let Some(found) = self.own_plan(text) {
            return Some(found);
        }
        let owner = self.plan_owner()?;
        let (kept, _) = owner.connection.own_plan(text)?;
        let mut local = self.local();
        // A table of its own may have the name of a shared one.
        let tables = kept.meanings.now(&local, self)?;
        local.repeated.keep(text, Arc::clone(&kept));
        Some((kept, tables))
    }

    /// The plan of a text among those that it keeps; one that means something else is given up.
    fn own_plan(&self, text: &str) -> Option<(Arc<KeptPlan>, Vec<Arc<Table>>)> {
        let mut local = self.local();
        let kept = Arc::clone(local.repeated.plans.get(text)?);
        match kept.meanings.now(&local, self) {
            Some(tables) => Some((kept, tables)),
            None => {
                local.repeated.renew(text);
                None
            }
        }
    }

    /// Gives up a plan that cannot run here, for others too.
    fn give_up_plan(&self, text: &str) {
        let given_up = self.local().repeated.plans.remove(text);
        let Some(owner) = self.plan_owner() else {
            return;
        };
        let mut local = owner.connection.local();
        let of_owner = local.repeated.plans.get(text);
        let is_same = given_up
            .zip(of_owner)
            .is_some_and(|(plan, other)| Arc::ptr_eq(&plan, other));
        if is_same {
            local.repeated.plans.remove(text);
        }
    }
}

impl KeptPlan {
    /// Runs the plan; `None` if it cannot run here.
    fn run(&self, connection: &Connection) -> Option<ShortRun> {
        let context = connection.few_rows_context()?;
        let _entered = connection.engine.runtime().enter();
        unless_warned_elsewhere(&self.values, connection, || {
            run_short(&self.plan, None, SIZE_MAX, &context)
        })
    }
}

/// Whether a table has times, which become moments of today where they are compared with others.
fn has_times(table: &Table) -> bool {
    let mut fields = table.schema().fields().iter();
    fields.any(|field| matches!(field.data_type(), DataType::Duration(_)))
}

impl Job {
    /// Keeps the plan of a query whose text comes for the second time, if it is over few rows.
    pub(super) async fn keep_repeated(&self, query: &Query) {
        let (text, connection) = (&self.running.text, &self.connection);
        // A limit of time is kept by tasks.
        if text.len() > TEXT_BYTES_MAX || self.time_limit_ms() > 0 {
            return;
        }
        let references = References::of_query(query);
        if !is_repeatable(query, &references) {
            return;
        }
        let Some(tables) = self.tables(&references.tables) else {
            return;
        };
        let home = self.home(&tables);
        let there = &home.job.connection;
        if !there.local().repeated.comes_again(text) {
            return;
        }
        let Some(_making) = home.begin_making().await else {
            return;
        };
        let planned = Box::pin(home.job.planned_without_rows(query, &references));
        if let Some(plan) = home.job.without_warning(planned).await {
            let plan = Arc::new(plan);
            there.local().repeated.keep(text, Arc::clone(&plan));
            connection.local().repeated.keep(text, plan);
        }
    }

    async fn planned_without_rows(
        &self,
        query: &Query,
        references: &References,
    ) -> Option<KeptPlan> {
        let connection = &self.connection;
        let place = Place::find(connection)?;
        let meanings = self.meanings(&references.tables)?;
        let mut bindings = self.bindings(references).await.ok()?;
        for name in &references.tables {
            let table = self.table(name).ok()?;
            if has_times(&table) {
                return None;
            }
            let key = (self.database_of(name).ok()?, name.table.clone());
            let unbound = lowered::bind(Arc::new(UnboundTable::new(&table))).ok()?;
            bindings.tables.get_mut(&key)?.provider = unbound.provider;
        }
        let query = self.limited(query.clone());
        let planned = self.planned(query, &bindings).await.ok()?;
        let plan = self.few_rows_plan(planned.plan).await?;
        let plan = ShortPlan::of(&plan).ok()??;
        // What has too many rows now is not tried again soon.
        let context = connection.few_rows_context()?;
        run_short(&plan, None, SIZE_MAX, &context)?;
        Some(KeptPlan {
            columns: self.described(plan.schema(), &planned.labels, &planned.origins),
            plan,
            meanings,
            values: connection.values.clone(),
            digest: DigestCell::new(),
            long_runs: AtomicU32::new(0),
            _place: place,
        })
    }
}
