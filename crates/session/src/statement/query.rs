//! Queries: plan, run, send.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::compute::concat_batches;
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result as PlanResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, execute_stream};
use datafusion::sql::sqlparser::ast;
use futures::{StreamExt, TryStreamExt};
use mayfly_sql::bindings::Bindings;
use mayfly_sql::functions::{refusing_zero, waits};
use mayfly_sql::origin::Origins;
use mayfly_sql::plan::{Planned, Planner, raise};
use mayfly_sql::planning::{Optimized, in_one_partition, planned_with_tables};
use mayfly_sql::references::References;
use mayfly_sql::selects::Selects;
use mayfly_sql::source::Source;
use mayfly_sql::typing::type_planner;
use mayfly_sql::{clause, in_turn};
use mayfly_types::{ErrorCode, MySqlError};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::Job;
use crate::column_info::ColumnInfo;
use crate::outcome::{Message, Outcome, RowStream};
use crate::profile::Stage;
use crate::running::{AFTER_FAILURE, AFTER_SUCCESS};
use crate::{errors, lowered, planning};

/// Batches that wait between the plan and the reader.
const BATCHES_AHEAD: usize = 1;

/// A query ready to run.
pub(crate) struct Ready {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) labels: Vec<String>,
    pub(super) origins: Origins,
    /// Whether its partitions are read one after the other.
    pub(super) in_order: bool,
    /// Held while a plan runs that others will make again.
    pub(super) in_use: Option<Arc<()>>,
}

impl Ready {
    /// What a client is told of its columns.
    pub(crate) fn columns(&self, job: &Job) -> Vec<ColumnInfo> {
        job.described(&self.plan.schema(), &self.labels, &self.origins)
    }
}

impl Job {
    /// Runs a query whose rows go to the client.
    pub(crate) async fn query(&self, query: ast::Query) -> Result<Outcome, MySqlError> {
        self.running.mark_query();
        self.limit_time();
        let calculated = match calculates_rows(&query) {
            true => Some(Box::pin(self.count_rows(&query)).await?),
            false => None,
        };
        self.connection.local().calculated_rows = calculated;
        let query = self.limited(query);
        let (ready, assigning) = match Box::pin(self.assigning(&query)).await? {
            Some((ready, assigning)) => (ready, Some(assigning)),
            None => (Box::pin(self.ready_again(query)).await?, None),
        };
        let mut stream = self.rows(&ready)?;
        let columns = match assigning {
            None => ready.columns(self),
            Some(mut assigning) => {
                let columns = assigning.columns(&ready, self)?;
                let visible = assigning.visible();
                let schema = Arc::new(assigning.shown().project(&visible).map_err(failed)?);
                let computed = stream.map(move |batch| {
                    let batch = assigning.computed(&batch?).map_err(raise)?;
                    Ok(batch.project(&visible)?)
                });
                stream = Box::pin(RecordBatchStreamAdapter::new(schema, computed));
                columns
            }
        };
        // Both end together.
        let mut run = (stream, ready.in_use.clone());
        // A plan keeps what its operators share, such as the table of a hash join.
        drop(ready);
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let running = Arc::clone(&self.running);
        let sending = async move {
            while let Some(batch) = run.0.next().await {
                let message = match batch {
                    Ok(batch) if batch.num_rows() == 0 => continue,
                    Ok(batch) => {
                        running.enter(Stage::SendingData);
                        running.add_rows(batch.num_rows() as u64);
                        Message::Batch(batch)
                    }
                    Err(error) => {
                        drop(run);
                        running.let_go(AFTER_FAILURE).await;
                        let _ = sender
                            .send(Message::Failed(errors::from_plan(&error)))
                            .await;
                        return;
                    }
                };
                if sender.send(message).await.is_err() {
                    return;
                }
            }
            // Operators report when they are dropped.
            drop(run);
            running.let_go(AFTER_SUCCESS).await;
            let _ = sender.send(Message::End).await;
        };
        self.running.spawn(&Handle::current(), sending);
        let batches = RowStream::begin(receiver, Arc::clone(&self.running)).await?;
        Ok(Outcome::Rows { columns, batches })
    }

    /// Ends a query when its time is over.
    pub(super) fn limit_time(&self) {
        let limit_ms = self.time_limit_ms();
        if limit_ms > 0 {
            self.running.end_after(Duration::from_millis(limit_ms));
        }
    }

    /// The time that a query may take: what its hint says, or else `max_execution_time`; 0 is any.
    pub(super) fn time_limit_ms(&self) -> u64 {
        let local = self.connection.local();
        hinted_time_ms(&self.running.text)
            .unwrap_or_else(|| local.variables.number("max_execution_time"))
    }

    /// The rows that a query has without its LIMIT: it runs twice for SQL_CALC_FOUND_ROWS.
    async fn count_rows(&self, query: &ast::Query) -> Result<u64, MySqlError> {
        let mut query = query.clone();
        query.limit_clause = None;
        query.order_by = None;
        let bindings = self.bindings(&References::of_query(&query)).await?;
        let planned = self.planned(query, &bindings).await?;
        let counting = || -> PlanResult<LogicalPlan> {
            let counted = vec![count(lit(1_i64))];
            LogicalPlanBuilder::from(planned.plan.clone())
                .aggregate(Vec::<Expr>::new(), counted)?
                .build()
        };
        let plan = counting().map_err(|error| errors::from_plan(&error))?;
        let labels = vec!["count".to_owned()];
        let planned = Planned {
            plan,
            labels,
            origins: Origins::default(),
        };
        let ready = self.physical(planned).await?;
        let counted = self.small_result(&ready).await?;
        let counted = counted.column(0).as_primitive::<Int64Type>().value(0);
        Ok(u64::try_from(counted).unwrap_or_default())
    }

    /// Applies `sql_select_limit` to a query without a LIMIT of its own.
    pub(super) fn limited(&self, mut query: ast::Query) -> ast::Query {
        let limit = self.connection.local().variables.number("sql_select_limit");
        if limit != u64::MAX && query.limit_clause.is_none() {
            let number = ast::Value::Number(limit.min(i64::MAX.unsigned_abs()).to_string(), false);
            query.limit_clause = Some(ast::LimitClause::LimitOffset {
                limit: Some(ast::Expr::Value(number.into())),
                offset: None,
                limit_by: Vec::new(),
            });
        }
        query
    }

    /// Plans a query.
    pub(crate) async fn ready(&self, query: ast::Query) -> Result<Ready, MySqlError> {
        let bindings = self.bindings(&References::of_query(&query)).await?;
        self.plan(move |job| {
            let planned = job.planned_here(query, &bindings, &job.source)?;
            job.physical_here(planned)
        })
        .await
    }

    /// Makes a part of the statement's plan on a thread that plans.
    pub(super) async fn plan<T: Send + 'static>(
        &self,
        make: impl FnOnce(&Job) -> Result<T, MySqlError> + Send + 'static,
    ) -> Result<T, MySqlError> {
        let job = self.clone();
        let planners = &self.connection.engine.shared().planners;
        let planned = planners.plan(&self.running.planning, move || make(&job));
        planned.await
    }

    /// Makes a plan that others will run too, ahead of all plans that wait; `None` where it cannot
    /// be made.
    pub(super) async fn plan_for_others<T: Send + 'static>(
        &self,
        make: impl FnOnce(&Job) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let job = self.clone();
        let planners = &self.connection.engine.shared().planners;
        let planned = planners.plan_first(&self.running.planning, move || Ok(make(&job)));
        planned.await.ok().flatten()
    }

    /// The logical plan of a query.
    pub(crate) async fn planned(
        &self,
        query: ast::Query,
        bindings: &Bindings,
    ) -> Result<Planned, MySqlError> {
        self.planned_of(query, bindings, Arc::clone(&self.source))
            .await
    }

    /// The same, of another text.
    pub(super) async fn planned_of(
        &self,
        query: ast::Query,
        bindings: &Bindings,
        source: Arc<Source>,
    ) -> Result<Planned, MySqlError> {
        let bindings = bindings.clone();
        self.plan(move |job| job.planned_here(query, &bindings, &source))
            .await
    }

    /// The same, on this thread, which plans.
    pub(super) fn planned_here(
        &self,
        query: ast::Query,
        bindings: &Bindings,
        source: &Source,
    ) -> Result<Planned, MySqlError> {
        self.running.enter(Stage::Optimizing);
        let state = self.connection.state()?;
        let planner = Planner {
            state,
            type_planner: Some(type_planner()),
            bindings,
        };
        let asked = query.clone();
        let mut planned = planner
            .query(query, source)
            .map_err(|error| self.placed(errors::from_plan(&error), &asked, bindings))?;
        if self.connection.values.lock().refuses_division_by_zero {
            let plan = refusing_zero(planned.plan);
            planned.plan = plan.map_err(|error| errors::from_plan(&error))?;
            // Rows that a LIMIT leaves out may be computed before they are.
            if in_turn::limits(&planned.plan) {
                self.connection.values.lock().refuses_misfits = false;
            }
        }
        Ok(planned)
    }

    /// Adds to an error what only the statement knows: the clause, the database.
    fn placed(&self, error: MySqlError, query: &ast::Query, bindings: &Bindings) -> MySqlError {
        if error.is(ErrorCode::UnknownColumn)
            && let Some((name, clause)) = error
                .message
                .strip_prefix("Unknown column '")
                .and_then(|rest| rest.split_once("' in '"))
            && clause.starts_with("field list")
        {
            return unknown_column(query, name);
        }
        if error.is(ErrorCode::NotSupportedYet)
            && let Some((_, column)) = error.message.split_once(NESTED)
            && let Some(word) = column.rsplit('.').next()
            && let Some(name) = clause::behind(query, word.trim_matches('\''))
        {
            return unknown_column(query, &name);
        }
        if error.is(ErrorCode::NotInDistinct) {
            return first_not_selected(error, query);
        }
        in_database(error, bindings)
    }

    /// The rows of a small query over a batch, which it names as a file.
    pub(crate) async fn query_over(
        &self,
        query: ast::Query,
        name: &str,
        batch: RecordBatch,
    ) -> Result<RecordBatch, MySqlError> {
        let mut references = References::of_query(&query);
        references.files.remove(name);
        let mut bindings = self.bindings(&references).await?;
        let bound = lowered::bind_batch(batch)?;
        bindings.files.insert(name.to_owned(), bound);
        let planned = self.planned(query, &bindings).await?;
        let ready = self.physical(planned).await?;
        self.small_result(&ready).await
    }

    /// The physical plan of a logical one.
    pub(crate) async fn physical(&self, planned: Planned) -> Result<Ready, MySqlError> {
        self.plan(move |job| job.physical_here(planned)).await
    }

    pub(super) fn physical_here(&self, planned: Planned) -> Result<Ready, MySqlError> {
        let (_, ready) = self.optimized_here(planned)?;
        Ok(ready)
    }

    /// The physical plan with the logical one that it is made from.
    fn optimized_here(&self, planned: Planned) -> Result<(Optimized, Ready), MySqlError> {
        match waits(&planned.plan) {
            // One row after the other.
            true => self.in_order_here(planned),
            false => self.physical_by(self.connection.state()?, planned),
        }
    }

    /// The plans of a query that is explained, and its SELECTs.
    pub(super) async fn explained_plans(
        &self,
        query: ast::Query,
        bindings: Bindings,
    ) -> Result<(Optimized, Ready, Selects), MySqlError> {
        self.plan(move |job| {
            let planned = job.planned_here(query.clone(), &bindings, &job.source)?;
            // Behind the count of tables: it reads a table expression wherever that is named.
            let selects = Selects::of(&query, &bindings);
            let (logical, ready) = job.optimized_here(planned)?;
            Ok((logical, ready, selects))
        })
        .await
    }

    /// A plan whose rows come in the order of its inputs: one partition each, read one after the
    /// other.
    pub(crate) async fn physical_in_order(&self, planned: Planned) -> Result<Ready, MySqlError> {
        self.plan(move |job| {
            let (_, ready) = job.in_order_here(planned)?;
            Ok(ready)
        })
        .await
    }

    fn in_order_here(&self, planned: Planned) -> Result<(Optimized, Ready), MySqlError> {
        let state = self.connection.state()?;
        let state = in_one_partition(state).build();
        let (logical, ready) = self.physical_by(&state, planned)?;
        let in_order = true;
        Ok((logical, Ready { in_order, ..ready }))
    }

    fn physical_by(
        &self,
        state: &SessionState,
        planned: Planned,
    ) -> Result<(Optimized, Ready), MySqlError> {
        self.running.enter(Stage::Preparing);
        let plans = planning::wait(planned_with_tables(state, planned.plan));
        let (logical, mut plan) = plans.map_err(|error| errors::from_plan(&error))?;
        if self.connection.values.lock().refuses_misfits {
            plan = in_turn::in_turn(plan).map_err(|error| errors::from_plan(&error))?;
        }
        let ready = Ready {
            plan,
            origins: planned.origins,
            labels: planned.labels,
            in_order: false,
            in_use: None,
        };
        Ok((logical, ready))
    }

    /// Starts a plan, in the order of its partitions if it is to keep one.
    pub(crate) fn rows(&self, ready: &Ready) -> Result<SendableRecordBatchStream, MySqlError> {
        self.running.enter(Stage::Executing);
        if !ready.in_order {
            return self.stream(&ready.plan);
        }
        self.running.set_plan(&ready.plan);
        let start = || -> PlanResult<SendableRecordBatchStream> {
            let context = self.connection.task_context(&self.running, &ready.plan)?;
            let plan = Arc::clone(&ready.plan);
            let schema = plan.schema();
            let count = plan.output_partitioning().partition_count();
            let streams = futures::stream::iter(0..count);
            let streams =
                streams.map(move |partition| plan.execute(partition, Arc::clone(&context)));
            Ok(Box::pin(RecordBatchStreamAdapter::new(
                schema,
                streams.try_flatten(),
            )))
        };
        start().map_err(|error| errors::from_plan(&error))
    }

    /// Starts a plan on the statement's account.
    pub(crate) fn stream(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Result<SendableRecordBatchStream, MySqlError> {
        self.running.enter(Stage::Executing);
        self.running.set_plan(plan);
        let start = || -> PlanResult<SendableRecordBatchStream> {
            let context = self.connection.task_context(&self.running, plan)?;
            execute_stream(Arc::clone(plan), context)
        };
        start().map_err(|error| errors::from_plan(&error))
    }

    /// Runs a query and keeps its rows; only for results that are known to be small.
    pub(crate) async fn small_result(&self, ready: &Ready) -> Result<RecordBatch, MySqlError> {
        let mut stream = self.stream(&ready.plan)?;
        let mut batches = Vec::new();
        while let Some(batch) = stream.next().await {
            batches.push(batch.map_err(|error| errors::from_plan(&error))?);
        }
        concat_batches(&ready.plan.schema(), &batches)
            .map_err(|error| errors::from_plan(&error.into()))
    }
}

/// The error of a DISTINCT in the order of columns that are not selected, with the first of them:
/// the planner writes their names without anything between them.
fn first_not_selected(error: MySqlError, query: &ast::Query) -> MySqlError {
    let list = match query.order_by.as_ref().map(|order_by| &order_by.kind) {
        Some(ast::OrderByKind::Expressions(list)) => list.as_slice(),
        _ => &[],
    };
    let (_, rest) = error.message.split_once("column '").unwrap_or_default();
    let (all, _) = rest.rsplit_once("' which is not").unwrap_or_default();
    let lower = all.to_lowercase();
    let mut found: Option<(Range<usize>, usize)> = None;
    for (index, by) in list.iter().enumerate() {
        let _ = ast::visit_expressions(&by.expr, |expr| {
            let name = match expr {
                ast::Expr::Identifier(name) => Some(name),
                ast::Expr::CompoundIdentifier(names) => names.last(),
                _ => None,
            };
            let name = name.map_or(String::new(), |name| name.value.to_lowercase());
            let mut places = lower.match_indices(&name).map(|(place, _)| place);
            let is_whole = |place: &usize| *place == 0 || lower[..*place].ends_with('.');
            if let Some(place) = places.find(is_whole).filter(|_| !name.is_empty()) {
                let range = place..place + name.len();
                // Of two that begin in one place, the longer name is there.
                let is_before = found
                    .as_ref()
                    .is_none_or(|(other, _)| (range.start, other.end) < (other.start, range.end));
                if is_before {
                    found = Some((range, index + 1));
                }
            }
            ControlFlow::<()>::Continue(())
        });
    }
    match found.and_then(|(range, number)| Some((all.get(..range.end)?, number))) {
        Some((column, number)) => {
            let arguments: [&dyn std::fmt::Display; 4] =
                [&number, &"ORDER BY clause", &column, &"DISTINCT"];
            MySqlError::new(ErrorCode::NotInDistinct, &arguments)
        }
        None => error,
    }
}

fn failed(error: arrow::error::ArrowError) -> MySqlError {
    errors::from_plan(&error.into())
}

/// What `MAX_EXECUTION_TIME(n)` says in the hints behind the first SELECT.
fn hinted_time_ms(text: &str) -> Option<u64> {
    let (first, rest) = text
        .trim_start_matches(['(', ' ', '\n', '\t'])
        .split_at_checked(6)?;
    let hints = rest.trim_start().strip_prefix("/*+")?;
    if !first.eq_ignore_ascii_case("SELECT") {
        return None;
    }
    let (hints, _) = hints.split_once("*/")?;
    let hints = hints.to_ascii_uppercase();
    let (_, behind) = hints.split_once("MAX_EXECUTION_TIME")?;
    let (number, _) = behind.trim_start().strip_prefix('(')?.split_once(')')?;
    number.trim().parse().ok()
}

/// How the planner refuses a name behind that of a column of an outer query.
const NESTED: &str = "Nested identifiers are not yet supported for OuterReferenceColumn ";

/// A column that does not exist, as the query writes it.
fn unknown_column(query: &ast::Query, name: &str) -> MySqlError {
    let written = clause::written(query, name);
    let place = clause::of_column(query, name);
    let name = written.as_deref().unwrap_or(name);
    MySqlError::new(ErrorCode::UnknownColumn, &[&name, &place])
}

/// Adds the database to the error of a function that is not there, unless the query names one.
pub(crate) fn in_database(error: MySqlError, bindings: &Bindings) -> MySqlError {
    if error.is(ErrorCode::NoSuchFunction)
        && let Some(database) = &bindings.database
        && let Some(name) = error.message.strip_prefix("FUNCTION ")
        && !name.contains('.')
    {
        let message = format!("FUNCTION {database}.{name}");
        return MySqlError { message, ..error };
    }
    error
}

/// Whether a query with a LIMIT asks for the rows without it.
fn calculates_rows(query: &ast::Query) -> bool {
    let mut body = query.body.as_ref();
    while let ast::SetExpr::SetOperation { left, .. } = body {
        body = left;
    }
    let asked = match body {
        ast::SetExpr::Select(select) => select.select_modifiers.as_ref(),
        _ => None,
    };
    query.limit_clause.is_some() && asked.is_some_and(|modifiers| modifiers.sql_calc_found_rows)
}
