//! Queries over few rows that come again: their plan is kept.
//!
//! Owns the plans of a connection, by the shape of their statement (see [`mayfly_sql::template`]):
//! of one shape there is a plan for all constants of its conditions, where that can be (`slots`),
//! or one for each text. Those over shared tables are made once for all connections that are alike
//! (see [`crate::plan_owner`]). A plan is kept without rows (see [`mayfly_exec::ShortPlan`]), so it
//! holds no page and no table. It runs over the rows of now, on the thread that asks, and only as
//! long as no step returns more than a few thousand rows; where one does, planning is not what
//! takes the time, and the statement goes the long way with all threads.
//!
//! **Never** fails: where a kept plan cannot run to its end at once, nothing was done, and the
//! statement goes the long way from its beginning.
//!
//! **Cost**: some ten microseconds, where a plan takes milliseconds; each plan that is kept is
//! thought to take [`PLAN_BYTES`], which are reserved.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::Query;
use mayfly_exec::slots::{runnable_plan, with_values};
use mayfly_exec::{ShortPlan, ShortRun, Size, UnboundTable};
use mayfly_space::Counters;
use mayfly_sql::bindings::Bindings;
use mayfly_sql::planning::{analyzed, with_rules};
use mayfly_sql::references::References;
use mayfly_sql::repeatable::is_repeatable;
use mayfly_sql::template::{Template, bare};
use mayfly_table::Table;

use super::Job;
use super::apart::Apart;
use super::few_rows::{run_short, unless_warned_elsewhere};
use super::plan_cache::{Asked, KeptPlan, LONG, LONG_RUNS_MAX, Place, Worth};
use super::plan_constants::{KeptConstants, StatementValues};
use super::slots::Slotted;
use crate::column_info::ColumnInfo;
use crate::connection::Connection;
use crate::digests::DigestCell;
use crate::lowered;
use crate::outcome::Outcome;
use crate::planning::processor_time;
use crate::reads::Reads;
use crate::stats::{Ended, StatementStats};

/// What a plan of some ten operators takes, about.
const PLAN_BYTES: u64 = 32 << 10;
const OPERATORS_OF_PLAN: usize = 10;
/// The plans of all connections take at most this part of the budget; of one that is smaller than
/// this they take nothing, which is for rows.
const PLANS_PER_MEMORY: u64 = 16;
const MEMORY_BYTES_MIN: u64 = 8 << 20;
/// What a plan may have to do.
const SIZE_MAX: Size = Size::of(4096, 2 << 20);

impl KeptPlan {
    /// Whether the plan takes long time and again, or has too many rows; `took` is its last run,
    /// if that came to its end. With some constants there are many rows, with most there are not.
    fn is_too_long(&self, took: Option<Duration>) -> bool {
        if took.is_some_and(|took| took <= LONG) {
            self.long_runs.store(0, Ordering::Relaxed);
            return false;
        }
        let runs = self.long_runs.fetch_add(1, Ordering::Relaxed) + 1;
        runs >= LONG_RUNS_MAX || took.is_none() && !self.constants.has_slots()
    }
}

/// Room for one more plan of so many operators, if there is any.
pub(super) fn find_place(connection: &Connection, operators: usize) -> Option<Place> {
    let memory_bytes = connection.engine.space().memory_bytes();
    if memory_bytes < MEMORY_BYTES_MIN {
        return None;
    }
    let most = memory_bytes / PLANS_PER_MEMORY / PLAN_BYTES;
    let count = operators.div_ceil(OPERATORS_OF_PLAN);
    let reservation = connection.account.reserve(PLAN_BYTES * count as u64).ok()?;
    let plans = Arc::clone(&connection.engine.shared().kept_plans);
    let taken = plans.fetch_add(count, Ordering::Relaxed);
    let place = Place {
        plans,
        count,
        _reservation: reservation,
    };
    ((taken as u64) < most).then_some(place)
}

/// Runs a query whose plan is kept; `None` for any other statement, of which nothing was done.
pub(crate) fn run_repeated(
    connection: &Arc<Connection>,
    text: &str,
    apart: Option<&Apart<'_>>,
) -> Option<Outcome> {
    let started = Instant::now();
    let asked = Asked::of(text, apart)?;
    let (kept, values, tables) = connection.kept_plan(&asked)?;
    if !kept.statement_values.is_empty() {
        connection.begin_looking(false);
    }
    let values = kept.statement_values.add(values, connection)?;
    let before: Vec<Counters> = tables
        .iter()
        .map(|table| table.account().counters())
        .collect();
    let began = processor_time();
    let run = catch_unwind(AssertUnwindSafe(|| kept.run(values, connection)));
    let ran = run.ok().flatten();
    let took = ran.as_ref().map(|_| processor_time().saturating_sub(began));
    if kept.is_too_long(took) {
        connection.give_up_plan(asked.shape, &kept);
    }
    // Where its rows are no longer few, or it fails, the long way finds out, and says why.
    let ran = ran?;
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
    Some(Outcome::known(kept.columns_of(text), ran.rows))
}

/// A plan, the values of its slots and its tables.
type Found = (Arc<KeptPlan>, Vec<ScalarValue>, Vec<Arc<Table>>);

impl Connection {
    /// The plan of a statement, if it would be made in the same way now.
    fn kept_plan(&self, asked: &Asked<'_>) -> Option<Found> {
        if let Some(found) = self.own_plan(asked) {
            return Some(found);
        }
        let owner = self.plan_owner()?;
        let (kept, values, _) = owner.connection.own_plan(asked)?;
        let mut local = self.local();
        // A table of its own may have the name of a shared one.
        let tables = kept.meanings.now(&local, self)?;
        local.repeated.keep(asked.shape, Arc::clone(&kept));
        Some((kept, values, tables))
    }

    /// The plan of a statement among those that it keeps; one that means something else is given
    /// up.
    fn own_plan(&self, asked: &Asked<'_>) -> Option<Found> {
        let mut local = self.local();
        let (kept, values) = local.repeated.plan(asked)?;
        match kept.meanings.now(&local, self) {
            Some(tables) => Some((kept, values, tables)),
            None => {
                local.repeated.renew(asked, &kept);
                None
            }
        }
    }

    /// Gives up a plan that cannot run here, for others too.
    fn give_up_plan(&self, shape: &[u8], plan: &Arc<KeptPlan>) {
        self.local().repeated.remove(shape, plan);
        if let Some(owner) = self.plan_owner() {
            owner.connection.local().repeated.remove(shape, plan);
        }
    }
}

impl KeptPlan {
    /// The columns of the rows that a text asks for.
    fn columns_of(&self, text: &str) -> Vec<ColumnInfo> {
        let mut columns = self.columns.clone();
        if self.slot_labels.is_empty() {
            return columns;
        }
        let text = bare(text);
        let places = Template::placed(text).map(|(_, places)| places);
        let places = places.unwrap_or_default();
        for column in &mut columns {
            let label = self
                .slot_labels
                .iter()
                .find(|label| label.is_of(&column.name));
            if let Some(label) = label {
                column.name = label.shown(text, &places);
            }
        }
        columns
    }

    /// Runs the plan; `None` if it cannot run here.
    fn run(&self, values: Vec<ScalarValue>, connection: &Connection) -> Option<ShortRun> {
        let context = connection.few_rows_context()?;
        let _entered = connection.engine.runtime().enter();
        let reads = || self.values.lock().reads;
        let before = reads();
        let ran = with_values(values, || {
            unless_warned_elsewhere(&self.values, connection, || {
                run_short(&self.plan, None, SIZE_MAX, &context)
            })
        });
        // A time became a moment of today, by the clock of who made the plan.
        ran.filter(|_| reads() == before)
    }
}

impl Job {
    /// Keeps the plan of a query that comes for the second time, if it is over few rows; `has_come`
    /// says that its shape was here before, where it was taken for a query of another kind.
    pub(super) async fn keep_repeated(&self, query: &Query, has_come: bool) {
        let connection = &self.connection;
        // A limit of time is kept by tasks.
        if self.time_limit_ms() > 0 {
            return;
        }
        let apart = Apart::of_short(&self.running.text);
        let Some(asked) = Asked::of(&self.running.text, apart.as_ref()) else {
            return;
        };
        let references = References::of_query(query);
        if !is_repeatable(query, &references) {
            return;
        }
        let Some(tables) = self.tables(&references.tables) else {
            return;
        };
        let home = self.home(&tables);
        let there = &home.job.connection;
        // Somebody else may have made it while this statement waited to be parsed or planned.
        let is_new = || {
            let plan = there.own_plan(&asked);
            plan.is_some_and(|(kept, ..)| kept.made.elapsed() < self.running.elapsed())
        };
        if is_new() {
            return;
        }
        let Some(worth) = there.local().repeated.worth(&asked, has_come) else {
            return;
        };
        let Some(_making) = home.begin_making().await else {
            // The next one may have better luck.
            there.local().repeated.postpone(&asked);
            return;
        };
        if is_new() {
            return;
        }
        let planned = Box::pin(
            home.job
                .planned_without_rows(query, &references, &asked, worth),
        );
        let Some(plan) = home.job.without_warning(planned).await else {
            if worth == Worth::AnyConstants {
                there.local().repeated.depends(asked.shape);
            }
            return;
        };
        // What has too many rows now is not tried again soon.
        let run = async {
            let values = plan.constants.values(asked.constants)?;
            plan.run(plan.statement_values.add(values, connection)?, there)
        };
        if home.job.without_warning(run).await.is_some() {
            let plan = Arc::new(plan);
            there.local().repeated.keep(asked.shape, Arc::clone(&plan));
            connection.local().repeated.keep(asked.shape, plan);
        } else if worth == Worth::AnyConstants {
            // A plan for these constants may have less to do.
            there.local().repeated.depends(asked.shape);
        }
    }

    /// A plan for this query, for any constants in its conditions or for these.
    async fn planned_without_rows(
        &self,
        query: &Query,
        references: &References,
        asked: &Asked<'_>,
        worth: Worth,
    ) -> Option<KeptPlan> {
        let connection = &self.connection;
        let reads = || connection.values.lock().reads;
        let before = reads();
        let place = find_place(connection, OPERATORS_OF_PLAN)?;
        let meanings = self.meanings(&references.tables)?;
        let mut bindings = self.bindings(references).await.ok()?;
        for name in &references.tables {
            let table = self.table(name).ok()?;
            let key = (self.database_of(name).ok()?, name.table.clone());
            let unbound = lowered::bind(Arc::new(UnboundTable::new(&table))).ok()?;
            bindings.tables.get_mut(&key)?.provider = unbound.provider;
        }
        let query = self.limited(query.clone());
        let of_text = KeptConstants::fixed(asked.constants);
        let made = self.plan_for_others(move |job| {
            let slotted = (worth == Worth::AnyConstants).then(|| job.slotted_here(&bindings));
            let slotted = match slotted.flatten() {
                Some(slotted) => slotted,
                None => job.of_these_constants(query, &bindings, of_text)?,
            };
            let plan = job.few_rows_operators_here(&slotted.plan)?;
            let plan = ShortPlan::of(&plan).ok()??;
            let columns = job.described(plan.schema(), &slotted.labels, &slotted.origins);
            Some((plan, columns, slotted))
        });
        let (plan, columns, slotted) = made.await?;
        let Slotted {
            constants,
            statement_values,
            slot_labels,
            ..
        } = slotted;
        if worth == Worth::AnyConstants && !constants.has_slots() {
            connection.local().repeated.depends(asked.shape);
        }
        if reads() != before {
            // Something of this statement's own was folded, which no other has.
            return None;
        }
        Some(KeptPlan {
            columns,
            plan,
            constants,
            statement_values,
            slot_labels,
            meanings,
            values: connection.values.clone(),
            digest: DigestCell::new(),
            made: Instant::now(),
            long_runs: AtomicU32::new(0),
            _place: place,
        })
    }

    /// The plan of a query for its own constants, on this thread, which plans.
    fn of_these_constants(
        &self,
        query: Query,
        bindings: &Bindings,
        constants: KeptConstants,
    ) -> Option<Slotted> {
        let planned = self.planned_here(query, bindings, &self.source).ok()?;
        let state = self.few_rows_state()?;
        let plan = analyzed(&state, planned.plan).ok()?;
        let placed = StatementValues::placed(plan, 0, state.config_options());
        let (plan, statement_values) = placed.ok()?;
        let plan = with_rules(&state, plan).ok()?;
        Some(Slotted {
            plan: runnable_plan(plan).ok()?,
            labels: planned.labels,
            origins: planned.origins,
            constants,
            statement_values,
            slot_labels: Vec::new(),
        })
    }
}
