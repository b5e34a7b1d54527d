//! Runs one statement.
//!
//! Owns the dispatch. Everything here runs inside a task of the engine's workers, so a panic ends
//! the statement and not the session.

mod absent;
mod alter;
mod altered;
mod apart;
mod assign;
mod assigning;
mod batch;
mod bind;
mod bound_table;
mod change;
mod changing_batch;
mod check;
mod counter;
mod create;
mod defaults;
mod define;
mod describe;
mod described;
mod duplicate;
mod evaluate;
mod explain;
mod expressions;
mod few_rows;
mod foreign_key;
mod information;
mod insert;
mod into;
mod known_tables;
mod later_plan_cache;
mod later_plans;
mod load;
mod maintenance;
mod maintenance_listing;
mod meanings;
mod name_length;
mod name_resolution;
mod origins;
mod plan_cache;
mod plan_constants;
mod point;
mod query;
mod record;
mod repeated;
mod route;
mod row_values;
mod rules;
mod set;
mod show;
mod slots;
mod statement_values;
mod succession;
mod table_digests;
mod table_rules;
mod turns;
mod typed_comparisons;
mod view;
mod working_table;
mod write;
mod written;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use mayfly_sql::parse;
use mayfly_sql::planning::text_bytes;
use mayfly_sql::references::References;
use mayfly_sql::source::Source;
use mayfly_sql::statement::{Access, Completion, Show, Statement, TableName};
use mayfly_table::Table;
use mayfly_types::{ErrorCode, MySqlError, Warning};

use crate::commands::Command;
use crate::connection::Connection;
use crate::errors;
use crate::local::Local;
use crate::outcome::Outcome;
use crate::profile::Stage;
use crate::running::Running;
use crate::status::Status;

pub(crate) use apart::Apart;
pub(crate) use counter::Numbering;
pub(crate) use describe::{describe, known_columns};
pub(crate) use described::Described;
pub(crate) use known_tables::run_known_table;
pub(crate) use later_plan_cache::LaterPlans;
pub(crate) use plan_cache::Repeated;
pub(crate) use point::{Attempt, Known, run_known};
pub(crate) use repeated::run_repeated;
pub(crate) use route::{is_control, is_light};
pub(crate) use table_digests::KnownTables;
pub(crate) use table_rules::{Lately, ThroughViews, ViewCheck};
pub(crate) use turns::Busy;

/// What a statement has at hand.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) connection: Arc<Connection>,
    pub(crate) running: Arc<Running>,
    pub(crate) source: Arc<Source>,
    /// What it asks of rows that it writes through views.
    pub(crate) through_views: ThroughViews,
}

/// Reads and runs the text of `running`.
pub(crate) async fn run(
    connection: Arc<Connection>,
    running: Arc<Running>,
) -> Result<Outcome, MySqlError> {
    let mut job = Job {
        connection,
        running,
        source: Arc::default(),
        through_views: ThroughViews::default(),
    };
    let explains = job.connection.explains.load(Ordering::Relaxed);
    if !explains && let Some(ended) = Box::pin(job.long_known()).await {
        return ended.map(|outcome| job.settle(outcome));
    }
    let parsed = job.parsed().await;
    if matches!(
        &parsed,
        Ok((Statement::Show(Show::Profile(_) | Show::Profiles), _))
    ) {
        job.running.hide();
    }
    let keeps_warnings = matches!(
        &parsed,
        Ok((
            Statement::Show(Show::Warnings { .. } | Show::WarningCount { .. }),
            _
        ))
    ) || matches!(&parsed, Ok((statement, _)) if reads_counts(statement));
    job.connection.begin_statement(keeps_warnings);
    let (mut statement, source) = parsed?;
    job.source = Arc::new(source);
    let through = job.change_through_views(&mut statement)?;
    job.name_defaults(&mut statement)?;
    job.running.enter(Stage::Executing);
    if explains {
        Box::pin(job.explain_for_log(&statement)).await;
    }
    // What is kept for a text knows the tables that stand in it, and no views.
    let known = match through {
        Some(through) => {
            job.through_views = through;
            None
        }
        None => Box::pin(job.point(&statement)).await?,
    };
    let outcome = match known {
        Some(outcome) => outcome,
        None => job.dispatch(statement).await?,
    };
    Ok(job.settle(outcome))
}

/// Entries of keys that come and go in a step before it counts as long: some ten milliseconds.
const LONG_STEP_ENTRIES: u64 = 32 << 10;

/// How long a text may be that is read where its statement runs: it takes less than a millisecond.
const SHORT_TEXT_BYTES_MAX: usize = 8 << 10;

/// The answer to who ends its own connection.
fn connection_killed() -> MySqlError {
    MySqlError {
        code: 1927,
        sqlstate: "70100",
        message: "Connection was killed".to_owned(),
    }
}

/// The number of a connection that KILL is given, whatever it is.
fn thread_id(value: &ScalarValue) -> u64 {
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(id))) => id.cast_unsigned(),
        _ => 0,
    }
}

/// Whether a query asks for `@@warning_count` or `@@error_count`, which must not reset them.
fn reads_counts(statement: &Statement) -> bool {
    match statement {
        Statement::Query(query) => {
            let references = References::of_query(query);
            ["warning_count", "error_count"].iter().any(|name| {
                references
                    .system_variables
                    .iter()
                    .any(|found| found.ends_with(name))
            })
        }
        _ => false,
    }
}

impl Job {
    /// Reads the text; a long one as it is planned, beside the workers.
    async fn parsed(&self) -> Result<(Statement, Source), MySqlError> {
        if self.running.text.len() <= SHORT_TEXT_BYTES_MAX {
            return parse::parse(&self.running.text);
        }
        let bytes = text_bytes(&self.running.text);
        let planners = &self.connection.engine.shared().planners;
        let patience = self.connection.local().settings().memory_wait;
        let held = planners.hold_text(&self.running.planning, bytes, patience);
        held.await?;
        self.plan(|job| parse::parse(&job.running.text)).await
    }

    /// Does a step in which so many rows of a table change with their keys. Another thread takes
    /// the place of this worker meanwhile if they are many.
    pub(crate) fn in_long_step<T>(&self, table: &Table, rows: u64, step: impl FnOnce() -> T) -> T {
        let keys = table.definition().keys.len() as u64;
        match rows.saturating_mul(keys.max(1)) >= LONG_STEP_ENTRIES {
            true => self.connection.engine.shared().waiting_room.compute(step),
            false => step(),
        }
    }

    /// Counts the statement, also if it is started again.
    fn count(&self, count: impl Fn(&mut Status)) {
        if !self.running.is_again() {
            self.connection.count(count);
        }
    }

    async fn dispatch(&self, statement: Statement) -> Result<Outcome, MySqlError> {
        let connection = &self.connection;
        if defines(&statement) {
            let mut local = connection.local();
            if commits(&statement) {
                local.transaction.commit();
                local.next_access = None;
            }
            if local.only_reads() {
                return Err(MySqlError::new(ErrorCode::ReadOnlyTransaction, &[]));
            }
        }
        if ends_transaction(&statement, &mut connection.local()) {
            connection.local().transaction.commit();
        }
        let is_transaction = connection.local().next_access.is_some() && is_transaction(&statement);
        if let Some(command) = Command::of(&statement, &self.running.text) {
            self.count(|status| status.commands.add(command));
        }
        let changes_state = self.changes_temporary(&statement);
        let outcome = self.obey(statement).await?;
        let mut local = connection.local();
        if changes_state {
            local.session_state_changed();
        }
        if is_transaction {
            local.end_single();
        }
        Ok(outcome)
    }

    /// Whether a statement makes, changes or drops a temporary table, as its text says it.
    fn changes_temporary(&self, statement: &Statement) -> bool {
        match statement {
            Statement::CreateTable(create) => create.temporary,
            Statement::DropTable(drop) => drop.temporary,
            Statement::AlterTable(alter) => self
                .table(&alter.table)
                .is_ok_and(|table| self.connection.local().temporary.has(&table)),
            _ => false,
        }
    }

    async fn obey(&self, statement: Statement) -> Result<Outcome, MySqlError> {
        let connection = &self.connection;
        // Boxed: a future is moved several times before it begins, with room for the largest of the
        // statements that it might run.
        match statement {
            Statement::Query(query) => {
                self.count(|status| status.selects += 1);
                Box::pin(self.query(*query)).await
            }
            Statement::QueryInto(query, into) => {
                self.count(|status| status.selects += 1);
                Box::pin(self.query_into(*query, into)).await
            }
            Statement::Explain(explain) => Box::pin(self.explain(explain)).await,
            Statement::CreateTable(table) => Box::pin(self.create_table(*table)).await,
            Statement::DropTable(drop) => self.drop_table(&drop).await,
            Statement::CreateView(view) => Box::pin(self.create_view(*view)).await,
            Statement::DropView(drop) => self.drop_views(&drop),
            Statement::DropAbsent(drop) => self.drop_absent(&drop),
            Statement::AlterTable(alter) => Box::pin(self.alter_table(*alter)).await,
            Statement::RenameTable(names) => Box::pin(self.rename_tables(names)).await,
            Statement::Truncate(name) => {
                self.count(|status| status.truncates += 1);
                self.truncate(&name).await
            }
            Statement::CreateDatabase {
                name,
                if_not_exists,
            } => self.create_database(&name, if_not_exists),
            Statement::DropDatabase { name, if_exists } => {
                self.drop_database(&name, if_exists).await
            }
            Statement::Use(name) => {
                if !self.has_database(&name) {
                    return Err(MySqlError::new(ErrorCode::UnknownDatabase, &[&name]));
                }
                let mut local = connection.local();
                local.database = Some(name);
                local.database_changed();
                local.session_state_changed();
                Ok(Outcome::done(0))
            }
            Statement::Insert(insert) => Box::pin(self.insert(*insert)).await,
            Statement::LoadData(load) => Box::pin(self.load(*load)).await,
            Statement::Set(assignments) => {
                connection.count(|status| status.sets += 1);
                let outcome = Box::pin(self.set(assignments)).await;
                if !connection.is_in_transaction() {
                    // SET autocommit = 1 ends what was open.
                    connection.local().transaction.commit();
                }
                outcome
            }
            Statement::Show(show) => Box::pin(self.show(show)).await,
            Statement::Maintain(asked) => Box::pin(self.maintain(asked)).await,
            Statement::Flush(flush) => {
                if flush.slow_log {
                    connection.engine.reopen_slow_log()?;
                }
                if flush.accounts {
                    connection.engine.read_accounts_again()?;
                }
                if flush.status {
                    connection.local().status = Default::default();
                }
                if flush.gtids {
                    let mut globals = connection.engine.globals();
                    globals
                        .variables
                        .put_with_pair("gtid_purged", String::new());
                }
                Ok(Outcome::done(0))
            }
            Statement::StopReplica => {
                self.note(ErrorCode::ReplicaStopped, &[&""]);
                Ok(Outcome::done(0))
            }
            // A session runs these itself, unless another statement has them inside.
            Statement::OnPrepared(_) => Err(MySqlError::new(ErrorCode::NotPreparable, &[])),
            Statement::Do(expressions) => {
                for expression in expressions {
                    Box::pin(self.evaluate(&expression)).await?;
                }
                Ok(Outcome::done(0))
            }
            Statement::Kill { id, only_query } => {
                connection.count(|status| status.kills += 1);
                let id = Box::pin(self.evaluate(&id)).await?;
                self.kill(thread_id(&id), only_query)
            }
            Statement::Update(update) => Box::pin(self.update(*update)).await,
            Statement::Delete(delete) => Box::pin(self.delete(*delete)).await,
            Statement::Begin(access) => {
                connection.count(|status| status.begins += 1);
                let mut local = connection.local();
                let access = access.or(local.next_access.take());
                local.transaction.begin(access);
                Ok(Outcome::done(0))
            }
            Statement::Commit(completion) => {
                connection.count(|status| status.commits += 1);
                let access = connection.local().transaction_access();
                connection.local().transaction.commit();
                Ok(self.complete(completion, access))
            }
            Statement::Rollback(completion) => {
                connection.count(|status| status.rollbacks += 1);
                let access = connection.local().transaction_access();
                let mut local = connection.local();
                if local.transaction.rollback() {
                    let code = ErrorCode::RollbackNonTransactional;
                    local.add_warning(Warning::new(code, &[]));
                }
                drop(local);
                Ok(self.complete(completion, access))
            }
            Statement::Savepoint(name) => {
                if connection.is_in_transaction() {
                    connection.local().transaction.savepoint(&name);
                }
                Ok(Outcome::done(0))
            }
            Statement::RollbackTo(name) => {
                let mut local = connection.local();
                let rolled_back = local.transaction.rollback_to(&name);
                if rolled_back.ok_or_else(|| no_savepoint(&name))? {
                    let code = ErrorCode::RollbackNonTransactional;
                    local.add_warning(Warning::new(code, &[]));
                }
                Ok(Outcome::done(0))
            }
            Statement::ReleaseSavepoint(name) => {
                if !connection.local().transaction.release(&name) {
                    return Err(no_savepoint(&name));
                }
                Ok(Outcome::done(0))
            }
            Statement::LockTables(_) | Statement::Nothing => Ok(Outcome::done(0)),
        }
    }

    /// Ends a statement that has no rows, or all of them at hand.
    fn settle(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Done {
                affected_rows,
                last_insert_id,
                info,
                ..
            } => {
                self.running.add_rows(affected_rows);
                self.running.finish();
                let mut local = self.connection.local();
                local.row_count = i64::try_from(affected_rows).unwrap_or(i64::MAX);
                let warnings = u16::try_from(local.warning_count).unwrap_or(u16::MAX);
                let info = info.replace("Warnings: ?", &format!("Warnings: {warnings}"));
                Outcome::Done {
                    affected_rows,
                    last_insert_id,
                    warnings,
                    info,
                }
            }
            Outcome::Rows { columns, batches } => {
                if let Some(rows) = batches.ready_rows() {
                    self.running.add_rows(rows);
                    self.running.mark_query();
                    self.running.finish();
                }
                Outcome::Rows { columns, batches }
            }
        }
    }

    /// Does what follows the end of a transaction that had an access of its own, or had none.
    fn complete(&self, completion: Completion, access: Option<Access>) -> Outcome {
        let mut local = self.connection.local();
        // What SET TRANSACTION said was for the transaction that has ended.
        local.next_access = None;
        match completion {
            Completion::Nothing => {}
            Completion::Chain => local.transaction.begin(access),
            Completion::Release => self.connection.end.set(),
        }
        Outcome::done(0)
    }

    fn kill(&self, id: u64, only_query: bool) -> Result<Outcome, MySqlError> {
        let found = self.connection.engine.open_connections();
        match found.into_iter().find(|connection| connection.id == id) {
            Some(connection) => {
                let killer = self.connection.id;
                tracing::info!(connection = id, killer, only_query, "killed");
                if !only_query {
                    connection.end.set();
                    if id == killer {
                        return Err(connection_killed());
                    }
                }
                if id == killer {
                    return Err(MySqlError::new(ErrorCode::QueryInterrupted, &[]));
                }
                connection.cancel.cancel();
                Ok(Outcome::done(0))
            }
            None => Err(MySqlError::new(ErrorCode::NoSuchThread, &[&id])),
        }
    }

    /// The database of a table name: the one written, or the current one.
    pub(crate) fn database_of(&self, name: &TableName) -> Result<String, MySqlError> {
        { name.database.clone() }
            .or_else(|| self.current_database())
            .ok_or_else(|| MySqlError::new(ErrorCode::NoDatabase, &[]))
    }

    /// The database that names without one mean.
    pub(crate) fn current_database(&self) -> Option<String> {
        self.connection.local().database.clone()
    }

    /// The table of a name: a temporary one of this session first.
    pub(crate) fn table(&self, name: &TableName) -> Result<Arc<Table>, MySqlError> {
        let database = self.database_of(name)?;
        let shared = self.connection.engine.shared();
        let local = self.connection.local();
        local
            .temporary
            .resolve(&shared.dictionary, &database, &name.table)
            .map_err(|error| match error {
                mayfly_table::Error::UnknownDatabase { .. } => {
                    MySqlError::no_such_table(&database, &name.table)
                }
                _ if shared.dictionary.view(&database, &name.table).is_some() => {
                    Job::not_base_table(&database, &name.table)
                }
                error => errors::from_table(&error),
            })
    }

    pub(crate) fn note(&self, code: ErrorCode, arguments: &[&dyn std::fmt::Display]) {
        self.connection.warn(Warning::note(code, arguments));
    }
}

/// Whether a statement changes definitions, which a READ ONLY transaction does not allow: not even
/// those of temporary tables, whose rows it may change.
fn defines(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateTable(_)
            | Statement::DropTable(_)
            | Statement::AlterTable(_)
            | Statement::RenameTable(_)
            | Statement::Truncate(_)
            | Statement::CreateView(_)
            | Statement::DropView(_)
            | Statement::DropAbsent(_)
            | Statement::CreateDatabase { .. }
            | Statement::DropDatabase { .. }
    )
}

/// Whether a statement that changes definitions commits what was open before it begins: all do but
/// those that say TEMPORARY.
fn commits(statement: &Statement) -> bool {
    match statement {
        Statement::CreateTable(create) => !create.temporary,
        Statement::DropTable(drop) => !drop.temporary,
        _ => true,
    }
}

/// Whether a statement that defines nothing commits what was open: FLUSH, table maintenance but for
/// CHECKSUM, LOCK TABLES, and UNLOCK TABLES if some are locked, which BEGIN ends too.
fn ends_transaction(statement: &Statement, local: &mut Local) -> bool {
    match statement {
        Statement::Flush(_) | Statement::StopReplica => true,
        Statement::Maintain(asked) => asked.ends_transaction(),
        Statement::LockTables(locks) => {
            let has_locked = std::mem::replace(&mut local.has_locked, *locks);
            *locks || has_locked
        }
        Statement::Begin(_) => {
            local.has_locked = false;
            false
        }
        _ => false,
    }
}

/// Whether a statement that changes no rows is a transaction if none is open.
fn is_transaction(statement: &Statement) -> bool {
    match statement {
        Statement::CreateTable(_) | Statement::DropTable(_) => true,
        Statement::Query(query) | Statement::QueryInto(query, _) => {
            !References::of_query(query).tables.is_empty()
        }
        _ => false,
    }
}

fn no_savepoint(name: &str) -> MySqlError {
    MySqlError::new(ErrorCode::NoSuchFunction, &[&"SAVEPOINT", &name])
}
