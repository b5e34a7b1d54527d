//! Statements on few rows of one table, found by a key or given as constants: no plan, no task.
//!
//! Owns what is known of the statements of a connection: a statement whose shape was seen before
//! (see [`mayfly_sql::template`]) is neither parsed nor planned, and runs on the thread that asks.
//! A statement that is seen first is parsed, as all are, and if it is of this kind its meaning is
//! kept for those that follow.
//!
//! ```text
//! text -> shape, constants --known--> PointStatement --> table
//!             |                            ^    |
//!             +-- unknown: parse, compile -+    +-- a value that must be converted: the long way
//! ```
//!
//! **Never** warns, and never converts: where a value would be rounded, cut or refused, where rows
//! are many or a table is busy, it does nothing, and the statement goes the long way from its
//! beginning. So it has no meaning of its own.
//!
//! **Cost**: an INSERT of one row, or a search of the index and a look into one page, some
//! microseconds in all, where a plan takes a millisecond.

mod compile;
mod known;
mod run;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use arrow::record_batch::RecordBatch;
use mayfly_space::Counters;
use mayfly_sql::statement::Statement;
use mayfly_sql::template::Template;
use mayfly_table::Table;
use mayfly_types::MySqlError;

use super::Job;
use crate::connection::Connection;
use crate::outcome::{ColumnInfo, Outcome, crashed, panic_text};
use crate::stats::StatementStats;

pub(crate) use known::Known;
use known::{PointStatement, Target};

/// What a statement did.
enum Done {
    Inserted {
        rows: u64,
        first_number: Option<u64>,
    },
    Updated {
        matched: u64,
        changed: u64,
    },
    Deleted(u64),
    Selected(RecordBatch),
}

impl Done {
    /// Rows that came, went or were returned.
    fn rows(&self) -> u64 {
        match self {
            Done::Inserted { rows, .. } => *rows,
            Done::Updated { changed, .. } => *changed,
            Done::Deleted(rows) => *rows,
            Done::Selected(batch) => batch.num_rows() as u64,
        }
    }

    fn outcome(self, columns: &[ColumnInfo], is_one: bool) -> Outcome {
        let affected_rows = self.rows();
        let (last_insert_id, info) = match self {
            Done::Selected(batch) => return Outcome::known(columns.to_vec(), batch),
            Done::Inserted { rows, first_number } => (
                first_number.unwrap_or(0),
                match is_one {
                    true => String::new(),
                    false => format!("Records: {rows}  Duplicates: 0  Warnings: 0"),
                },
            ),
            Done::Updated { matched, changed } => {
                let info = format!("Rows matched: {matched}  Changed: {changed}  Warnings: 0");
                (0, info)
            }
            Done::Deleted(_) => (0, String::new()),
        };
        Outcome::Done {
            affected_rows,
            last_insert_id,
            warnings: 0,
            info,
        }
    }
}

/// Runs a statement whose shape is known; `None` for any other one, of which nothing was done.
pub(crate) fn run_known(
    connection: &Arc<Connection>,
    text: &str,
) -> Option<Result<Outcome, MySqlError>> {
    let started = Instant::now();
    let template = Template::read(text)?;
    let (statement, target) = connection.known_statement(&template.shape)?;
    let before = target.table.account().counters();
    let run = || statement.run(connection, &target, &template.constants);
    let ended = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(None)) => return None,
        Ok(Ok(Some(done))) => Ok(done),
        Ok(Err(error)) => Err(error),
        Err(panic) => Err(crashed(&panic_text(panic))),
    };
    let rows = ended.as_ref().map_or(0, Done::rows);
    let counters = moved(&target.table, &before);
    let stats = StatementStats::new(started.elapsed(), rows, &[], &counters);
    {
        let mut local = connection.local();
        local.warnings.clear();
        local.warning_count = 0;
        local.calculated_rows = None;
        local.status.questions += 1;
        local.row_count = i64::try_from(rows).unwrap_or(i64::MAX);
    }
    connection.count(|status| statement.count(status));
    connection.statement_finished(stats, &[], &counters, statement.is_query());
    Some(match ended {
        Ok(done) => {
            connection.has_done(&target, &done);
            Ok(done.outcome(&statement.columns, statement.is_one))
        }
        Err(error) => {
            connection.failed(&error);
            Err(error)
        }
    })
}

/// The bytes that a table moved to and from disk since `before`.
fn moved(table: &Table, before: &Counters) -> Counters {
    let after = table.account().counters();
    Counters {
        bytes_written: after.bytes_written.saturating_sub(before.bytes_written),
        bytes_read: after.bytes_read.saturating_sub(before.bytes_read),
        peak_bytes: after.resident_bytes,
        ..Counters::default()
    }
}

impl Job {
    /// Runs a statement that was parsed if it is of this kind, and keeps its meaning for those that
    /// follow; `None` for any other one, of which nothing was done.
    pub(crate) fn point(&self, parsed: &Statement) -> Result<Option<Outcome>, MySqlError> {
        let connection = &self.connection;
        let Some((statement, constants)) = self.compiled(parsed) else {
            return Ok(None);
        };
        let target = statement.target(
            &mut connection.local(),
            &connection.engine.shared().dictionary,
        );
        let Some(target) = target else {
            return Ok(None);
        };
        if !statement.is_query() {
            self.running.also_count(target.table.account());
        }
        let Some(done) = statement.run(connection, &target, &constants)? else {
            return Ok(None);
        };
        connection.local().calculated_rows = None;
        connection.count(|status| statement.count(status));
        connection.has_done(&target, &done);
        let outcome = done.outcome(&statement.columns, statement.is_one);
        if let Some(template) = Template::read(&self.running.text)
            && template.constants == constants
        {
            let mut local = connection.local();
            local.known.keep(template.shape, Arc::new(statement));
        }
        Ok(Some(outcome))
    }
}

impl Connection {
    /// A statement of this shape, and the table that it means now.
    fn known_statement(&self, shape: &[u8]) -> Option<(Arc<PointStatement>, Target)> {
        let mut local = self.local();
        let statement = local.known.get(shape)?;
        let target = statement.target(&mut local, &self.engine.shared().dictionary)?;
        Some((statement, target))
    }

    /// Counts what was done.
    fn has_done(&self, target: &Target, done: &Done) {
        if matches!(done, Done::Selected(_)) {
            return;
        }
        self.changed_rows(&target.table, done.rows());
        if let Done::Inserted {
            first_number: Some(first),
            ..
        } = done
        {
            self.values.lock().last_insert_id = *first;
        }
    }
}
