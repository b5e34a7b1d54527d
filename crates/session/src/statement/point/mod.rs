//! Statements on few rows of one table, found by a key or given as constants: no plan, no task.
//!
//! Owns what is known of the statements of a connection: a statement whose shape was seen before
//! (see [`mayfly_sql::template`]) is neither parsed nor planned, and runs on the thread that asks
//! if its text is short. A statement that is seen first is parsed, as all are, and if it is of this
//! kind its meaning is kept for those that follow.
//!
//! ```text
//! text -> shape, constants --known--> PointStatement --> table
//!             |                            ^    |
//!             +-- unknown: parse, compile -+    +-- a value that must be converted: the long way
//! ```
//!
//! Where a SELECT finds thousands of rows, they are fetched page by page by whoever reads them: the
//! client's thread, which waits for the client between them and runs others meanwhile.
//!
//! What depends on the rows, the rest of a condition behind its key or a value such as `UPPER(c)`,
//! is computed over those that are found ([`over_rows`] for changes, [`remainder`] for queries).
//!
//! **Never** warns, and never converts: where a value would be rounded, cut or refused, where very
//! many rows are found or a table is busy, it does nothing, and the statement goes the long way
//! from its beginning. So it has no meaning of its own.
//!
//! **Cost**: an INSERT of one row, or a search of the index and a look into one page, some
//! microseconds in all, where a plan takes a millisecond.

mod change;
mod compile;
mod compile_change;
mod key_condition;
mod known;
mod over_rows;
mod remainder;
mod row_expression;
mod run;
mod search;
mod target;
mod upsert;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::Query;
use mayfly_exec::TempTable;
use mayfly_space::Counters;
use mayfly_sql::statement::Statement;
use mayfly_sql::template::TEXT_BYTES_MAX;
use mayfly_table::{RowReader, Table};
use mayfly_types::MySqlError;

use super::apart::{Apart, Given, SHORT_BYTES_MAX};
use super::turns::Deadline;
use super::{Busy, Job};
use crate::column_info::ColumnInfo;
use crate::connection::Connection;
use crate::crash::{crashed, panic_text};
use crate::digests::DigestCell;
use crate::errors::may_pass;
use crate::outcome::{Outcome, RowStream};
use crate::reads::Reads;
use crate::running::Running;
use crate::stats::{Ended, StatementStats};
use crate::status::RowChanges;

pub(crate) use known::Known;
use known::PointStatement;
use remainder::Kept;
pub(crate) use target::HeldTurn;
use target::Target;

/// What a constant takes when its statement is taken apart, in a list that grows. Commas stand
/// between constants.
const CONSTANT_BYTES: u64 = 64;

/// What a statement did.
enum Done {
    Inserted {
        rows: u64,
        first_number: Option<u64>,
        insert_id: u64,
    },
    /// A row took the place of others, of which so many count as deleted.
    Replaced {
        deleted: u64,
        first_number: Option<u64>,
        insert_id: u64,
    },
    Updated {
        matched: u64,
        changed: u64,
    },
    Deleted(u64),
    /// A row was met, and has other values now or not.
    Upserted {
        is_changed: bool,
        insert_id: u64,
    },
    /// The rows, and the temporary tables that they went through.
    Selected(RecordBatch, Vec<TempTable>),
}

/// What came of a statement that was run.
enum Ran {
    /// It is over.
    Done(Done),
    /// The first rows; the others are fetched while they are read.
    Fetching(RecordBatch, RowReader),
}

impl Done {
    /// Rows that came, went or were returned.
    fn rows(&self) -> u64 {
        match self {
            Done::Inserted { rows, .. } => *rows,
            Done::Replaced { deleted, .. } => 1 + *deleted,
            Done::Updated { changed, .. } => *changed,
            Done::Deleted(rows) => *rows,
            // MySQL counts it twice.
            Done::Upserted { is_changed, .. } => 2 * u64::from(*is_changed),
            Done::Selected(batch, _) => batch.num_rows() as u64,
        }
    }

    /// Rows of the table that came, changed and went.
    fn changes(&self) -> RowChanges {
        let mut changes = RowChanges::default();
        match self {
            Done::Inserted { rows, .. } => changes.written = *rows,
            Done::Replaced { deleted, .. } => {
                changes.written = 1;
                changes.deleted = *deleted;
            }
            Done::Updated { changed, .. } => changes.updated = *changed,
            Done::Deleted(rows) => changes.deleted = *rows,
            Done::Upserted { is_changed, .. } => changes.updated = u64::from(*is_changed),
            Done::Selected(..) => {}
        }
        changes
    }

    /// What the client is told, and `ROW_COUNT()`.
    fn affected(&self, counts_found: bool) -> u64 {
        match self {
            Done::Updated { matched, .. } if counts_found => *matched,
            // It is told of a row that was met as well.
            Done::Upserted { is_changed, .. } if counts_found => 1 + u64::from(*is_changed),
            other => other.rows(),
        }
    }

    /// What the client gets.
    fn outcome(self, columns: &[ColumnInfo], counts_found: bool) -> Outcome {
        let affected_rows = self.affected(counts_found);
        let (last_insert_id, info) = match self {
            Done::Selected(batch, _) => return Outcome::known(columns.to_vec(), batch),
            Done::Inserted {
                rows, insert_id, ..
            } => (
                insert_id,
                match rows {
                    1 => String::new(),
                    _ => format!("Records: {rows}  Duplicates: 0  Warnings: 0"),
                },
            ),
            Done::Replaced { insert_id, .. } => (insert_id, String::new()),
            Done::Updated { matched, changed } => {
                let info = format!("Rows matched: {matched}  Changed: {changed}  Warnings: 0");
                (0, info)
            }
            Done::Deleted(_) => (0, String::new()),
            Done::Upserted { insert_id, .. } => (insert_id, String::new()),
        };
        Outcome::Done {
            affected_rows,
            last_insert_id,
            warnings: 0,
            info,
        }
    }
}

/// What the client gets of a statement that goes on while its rows are read.
fn fetched(
    columns: &[ColumnInfo],
    first: RecordBatch,
    rest: RowReader,
    running: &Arc<Running>,
) -> Outcome {
    running.mark_query();
    Outcome::Rows {
        columns: columns.to_vec(),
        batches: RowStream::fetched(first, rest, running),
    }
}

/// What came of looking whether a statement is known.
pub(crate) enum Attempt {
    /// It was, and this is its end.
    Ended(Result<Outcome, MySqlError>),
    /// It is, but it is somebody else's turn to write its table. Nothing was done.
    Busy(Busy),
    /// It is, and found no memory. Nothing was done but that numbers of AUTO_INCREMENT were taken.
    Short,
    /// It goes the long way. Nothing was done.
    Unknown,
}

/// Runs a statement whose shape is known; with the right to write its table, where the one who asks
/// has waited for it.
pub(crate) fn run_known(
    connection: &Arc<Connection>,
    text: &str,
    apart: &Apart<'_>,
    held: Option<HeldTurn>,
) -> Attempt {
    let started = Instant::now();
    let given = &apart.given;
    let Some((statement, target)) = connection.known_statement(&apart.shape) else {
        return Attempt::Unknown;
    };
    target.held.replace(held);
    let own_digest = DigestCell::new();
    let before = target.table.account().counters();
    let run = || statement.run(connection, &target, given);
    let ended = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(None)) => {
            return match target.busy.take() {
                Some(busy) => Attempt::Busy(busy),
                None => Attempt::Unknown,
            };
        }
        Ok(Ok(Some(Ran::Fetching(first, rest)))) => {
            let running = connection.begin_fetching(&statement, text, &target, before);
            running.share_digest(statement.digests.of(given, &own_digest));
            let outcome = fetched(&statement.columns, first, rest, &running);
            return Attempt::Ended(Ok(outcome));
        }
        Ok(Ok(Some(Ran::Done(done)))) => Ok(done),
        Ok(Err(error)) if may_pass(&error) => return Attempt::Short,
        Ok(Err(error)) => Err(error),
        Err(panic) => Err(crashed(&panic_text(panic))),
    };
    let rows = ended.as_ref().map_or(0, Done::rows);
    let is_query = statement.is_query();
    let counters = moved(&target.table, &before);
    let tables = match &ended {
        Ok(Done::Selected(_, tables)) => tables.as_slice(),
        _ => &[],
    };
    let told = Ended {
        text,
        digest: statement.digests.of(given, &own_digest),
        is_failed: ended.is_err(),
        stats: StatementStats::new(started.elapsed(), rows, tables, &counters),
        is_query,
        reads: Reads {
            tables: target.reads.get(),
            rows: if is_query { rows } else { 0 },
            ..Reads::default()
        },
        tables,
        counters: &counters,
        stages: &[],
    };
    let counts_found = connection.local().counts_found;
    let affected = ended.as_ref().map_or(0, |done| done.affected(counts_found));
    connection.count(|status| statement.count(status));
    connection.ended_at_once(&told, affected, ended.as_ref().err());
    Attempt::Ended(ended.map(|done| {
        connection.has_done(&target, &done);
        done.outcome(&statement.columns, counts_found)
    }))
}

/// The bytes that a table moved to and from disk since `before`.
fn moved(table: &Table, before: &Counters) -> Counters {
    let after = table.account().counters();
    let mut moved = Counters {
        peak_bytes: after.resident_bytes,
        ..Counters::default()
    };
    moved.add_moved(&after, before);
    moved
}

impl Job {
    /// Runs a statement that was parsed if it is of this kind, and keeps its meaning for those that
    /// follow; `None` for any other one, of which nothing was done.
    pub(crate) async fn point(&self, parsed: &Statement) -> Result<Option<Outcome>, MySqlError> {
        if self.running.text.len() > TEXT_BYTES_MAX {
            return Ok(None);
        }
        let connection = &self.connection;
        let compiled = match self.compiled(parsed) {
            Some(compiled) => Some(compiled),
            None => Box::pin(self.computed_change(parsed)).await,
        };
        let Some((statement, given)) = compiled else {
            return match parsed {
                Statement::Query(query) => self.planned_once(query).await,
                _ => Ok(None),
            };
        };
        let Some((ran, target)) = self.run_point(&statement, &given).await? else {
            return Ok(None);
        };
        self.share_digest(&statement, &given);
        let outcome = self.ended(&statement, &target, ran);
        if let Some(apart) = Apart::of(&self.running.text)
            && apart.given == given
        {
            let (statement, shape) = (Arc::new(statement), apart.shape);
            if !target.is_own
                && statement.is_for_others()
                && let Some(owner) = connection.plan_owner_or_new()
            {
                let mut local = owner.connection.local();
                local.known.keep(shape.clone(), Arc::clone(&statement));
            }
            connection.local().known.keep(shape, statement);
        }
        Ok(Some(outcome))
    }

    /// Keeps a plan of a query that comes again, and runs it; `None` for any other query, of which
    /// nothing was done.
    async fn planned_once(&self, query: &Query) -> Result<Option<Outcome>, MySqlError> {
        let statement = match Box::pin(self.keep_computed(query)).await {
            Kept::Now(statement) => statement,
            Kept::NotYet => return Ok(None),
            Kept::OtherKind => {
                Box::pin(self.keep_repeated(query, false)).await;
                return Ok(None);
            }
        };
        let Some(Apart { given, .. }) = Apart::of(&self.running.text) else {
            return Ok(None);
        };
        self.share_digest(&statement, &given);
        let run = Box::pin(self.run_point(&statement, &given)).await?;
        if run.is_none() {
            // It finds too many rows, of which its plan may want a few.
            Box::pin(self.keep_repeated(query, true)).await;
        }
        Ok(run.map(|(ran, target)| self.ended(&statement, &target, ran)))
    }

    /// Lets a statement be counted with others of its shape.
    fn share_digest(&self, statement: &PointStatement, given: &Given<'_>) {
        let own = DigestCell::new();
        self.running.share_digest(statement.digests.of(given, &own));
    }

    /// Runs a statement whose shape is known, and that is too long for [`run_known`] or waited in
    /// vain there; `None` for any other one, of which nothing was done.
    pub(crate) async fn long_known(&self) -> Option<Result<Outcome, MySqlError>> {
        let text = &self.running.text;
        if text.len() <= SHORT_BYTES_MAX && !self.running.has_waited() {
            return None;
        }
        if text.len() <= TEXT_BYTES_MAX {
            let commas = text.bytes().filter(|byte| *byte == b',').count();
            let planners = &self.connection.engine.shared().planners;
            let bytes = commas as u64 * CONSTANT_BYTES;
            let patience = self.connection.local().settings().memory_wait;
            let held = planners.hold_text(&self.running.planning, bytes, patience);
            if let Err(error) = held.await {
                return Some(Err(error));
            }
        }
        let Apart { shape, given } = Apart::of(&self.running.text)?;
        let (statement, _) = self.connection.known_statement(&shape)?;
        let ended = self.run_point(&statement, &given).await;
        let ended = ended.transpose()?;
        self.share_digest(&statement, &given);
        self.connection.begin_statement(false);
        Some(ended.map(|(ran, target)| self.ended(&statement, &target, ran)))
    }

    /// Runs a statement when it is its turn to write: the long way has the table while it plans, so
    /// that others would find it busy and go the long way too, one after the other, for ever.
    async fn run_point(
        &self,
        statement: &PointStatement,
        given: &Given<'_>,
    ) -> Result<Option<(Ran, Target)>, MySqlError> {
        let connection = &self.connection;
        let target = statement.target(
            &mut connection.local(),
            &connection.engine.shared().dictionary,
        );
        let Some(target) = target else {
            return Ok(None);
        };
        let mut deadline = Deadline::default();
        loop {
            let account = target.table.account();
            let before = account.counters();
            let ran = statement.run(connection, &target, given)?;
            let busy = target.busy.take();
            match (ran, busy) {
                (Some(ran), _) => {
                    // The long way counts for itself.
                    if !statement.is_query() {
                        self.running.also_count_since(account, before);
                    }
                    return Ok(Some((ran, target)));
                }
                (None, Some(busy)) => {
                    let turn = self.take_turn(&busy, &mut deadline).await?;
                    target.held.replace(Some((busy, turn)));
                }
                (None, None) => return Ok(None),
            }
        }
    }

    /// Counts what was done, and tells the client.
    fn ended(&self, statement: &PointStatement, target: &Target, ran: Ran) -> Outcome {
        let connection = &self.connection;
        connection.local().calculated_rows = None;
        connection.count(|status| statement.count(status));
        let done = match ran {
            Ran::Done(done) => done,
            Ran::Fetching(first, rest) => {
                return fetched(&statement.columns, first, rest, &self.running);
            }
        };
        connection.has_done(target, &done);
        self.running.report.add_reads(target.reads.get());
        if let Done::Selected(_, tables) = &done {
            for table in tables {
                self.running.report.add(table.clone());
            }
        }
        let counts_found = connection.local().counts_found;
        done.outcome(&statement.columns, counts_found)
    }
}

impl Connection {
    /// A statement of this shape, and the table that it means now.
    fn known_statement(&self, shape: &[u8]) -> Option<(Arc<PointStatement>, Target)> {
        let known = self.local().known.get(shape);
        let statement = match known {
            Some(statement) => statement,
            None => {
                let owner = self.plan_owner()?;
                let of_owner = owner.connection.local().known.get(shape)?;
                let mut local = self.local();
                local.known.keep(shape.to_vec(), Arc::clone(&of_owner));
                of_owner
            }
        };
        let target = statement.target(&mut self.local(), &self.engine.shared().dictionary)?;
        Some((statement, target))
    }

    /// Begins a statement that goes on while its rows are read; its table had moved `before` bytes
    /// when it began.
    fn begin_fetching(
        self: &Arc<Self>,
        statement: &PointStatement,
        text: &str,
        target: &Target,
        before: Counters,
    ) -> Arc<Running> {
        self.begin_statement(false);
        {
            let mut local = self.local();
            local.calculated_rows = None;
            local.end_single();
        }
        self.count(|status| statement.count(status));
        let running = Running::begin(self, text, self.statement_account());
        running.also_count_since(target.table.account(), before);
        running.report.add_reads(target.reads.get());
        running
    }

    /// Counts what was done.
    fn has_done(&self, target: &Target, done: &Done) {
        if matches!(done, Done::Selected(..)) {
            return;
        }
        self.changed_rows(&target.table, done.changes());
        if let Done::Inserted {
            first_number: Some(first),
            ..
        }
        | Done::Replaced {
            first_number: Some(first),
            ..
        } = done
        {
            self.values.lock().last_insert_id = *first;
        }
    }
}
