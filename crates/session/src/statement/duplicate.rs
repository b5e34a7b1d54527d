//! ON DUPLICATE KEY UPDATE: an UPDATE whose rows are those that new ones have met.
//!
//! The assignments are planned once, over a table of pairs: the columns of the row that is there,
//! and behind them those of the row that would have come, which VALUES(column) or its alias names,
//! and columns of the query that this row is from ([`mayfly_sql::source_columns`]).

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow::compute::{take, take_record_batch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use futures::StreamExt;
use mayfly_sql::change::{self, Mention, NewRow, ROW_ID};
use mayfly_sql::statement::SetColumn;
use mayfly_table::{Change, Table};
use mayfly_types::{ErrorCode, MySqlError};

use super::Job;
use super::change::{Set, Target, Updated, assigned_before, assigned_place, assigns_unique};
use super::changing_batch::ChangingBatch;
use super::query::Ready;
use crate::errors;

/// Changes rows of one table as the assignments say.
pub(crate) struct Updater {
    job: Job,
    ready: Ready,
    pairs: Arc<ChangingBatch>,
    set: Set,
    ignores: bool,
    changes_unique: bool,
    columns_behind: usize,
}

impl Updater {
    /// Plans the assignments. `names` are the columns that the statement fills, which the names of
    /// the row's alias follow, `behind` the columns that its source has for the assignments.
    pub(crate) async fn begin(
        job: &Job,
        (table, mention): (&Arc<Table>, &Mention),
        assignments: &[SetColumn],
        row_alias: Option<&(String, Vec<String>)>,
        names: &[String],
        ignore: bool,
        behind: &[FieldRef],
    ) -> Result<Updater, MySqlError> {
        let alias = table.name().to_owned();
        let new_row = match row_alias {
            None => NewRow::default(),
            Some((name, columns)) => {
                if !columns.is_empty() && columns.len() != names.len() {
                    return Err(MySqlError::new(ErrorCode::ViewWrongList, &[]));
                }
                let pairs = columns.iter().cloned().zip(names.iter().cloned());
                NewRow {
                    alias: Some(name.clone()),
                    renamed: pairs.collect(),
                }
            }
        };
        let database = job.current_database();
        let database = database.as_deref();
        let mut places = Vec::with_capacity(assignments.len());
        let mut renamed = Vec::with_capacity(assignments.len());
        let put_in = assigned_before(assignments);
        for set in assignments {
            places.push(assigned_place(set, (table, mention), database)?);
            let mut set = set.clone();
            if let Some(value) = &mut set.value {
                change::refuse_groups([&*value], &job.connection.aggregates)?;
                let row = new_row.alias.as_deref();
                job.settle_names_of(value, (table, mention), row, &put_in)
                    .await?;
                change::name_new_row(value, &alias, &new_row);
            }
            renamed.push(set);
        }
        // A column that VALUES names is told by its own name, not by that of the new row's.
        let told = |error: MySqlError| match error.message.contains('\u{1}') {
            true => MySqlError {
                message: error
                    .message
                    .replace(&format!("{alias}.{}", change::new_column("")), ""),
                ..error
            },
            false => error,
        };
        let mut list = Vec::new();
        let changes_unique = assigns_unique(table, &places);
        let assignments = renamed.iter().zip(places);
        let set = Set::begin(job, table, mention, assignments, true, ignore, &mut list).await?;
        let set = set.all_at_once();
        let pairs = Arc::new(ChangingBatch::new(pairs_schema(table, behind)));
        let planned = job.planned_over(&pairs, &alias, list).await;
        let planned = planned.map_err(told)?;
        let ready = job.physical(planned).await?;
        Ok(Updater {
            job: job.clone(),
            ready,
            pairs,
            set,
            ignores: ignore,
            changes_unique,
            columns_behind: behind.len(),
        })
    }

    /// As [`Set::refuse_null`].
    pub(crate) fn refuse_null(&mut self) {
        self.set.refuse_null();
    }

    /// Whether rows that would meet another one stay as they are.
    pub(crate) fn ignores(&self) -> bool {
        self.ignores
    }

    /// How many columns the source has for the assignments, behind those that are written.
    pub(crate) fn columns_behind(&self) -> usize {
        self.columns_behind
    }

    /// Whether a changed row may meet another one.
    pub(crate) fn changes_unique(&self) -> bool {
        self.changes_unique
    }

    /// Changes the rows with these numbers, which rows of `new` have met. `behind` is what the
    /// source has for the assignments, a row for each of `new`.
    pub(crate) async fn update(
        &mut self,
        change: Change,
        (new, behind): (&RecordBatch, &RecordBatch),
        met: &[(u32, u64)],
        done: &mut Updated,
    ) -> Result<Change, MySqlError> {
        let table = |error: mayfly_table::Error| errors::from_table(&error);
        let plan = |error: arrow::error::ArrowError| errors::from_plan(&error.into());
        let numbers = met.iter().map(|(_, number)| *number);
        let ids = change.snapshot().locate(numbers).map_err(table)?;
        let old = change.snapshot().rows(&ids, None).map_err(table)?;
        let rows: UInt32Array = met.iter().map(|(row, _)| *row).collect::<Vec<_>>().into();
        let new = take_record_batch(new, &rows).map_err(plan)?;
        let mut columns = old.columns().to_vec();
        columns.push(Arc::new(UInt64Array::from(ids)) as ArrayRef);
        columns.extend_from_slice(new.columns());
        for column in behind.columns() {
            columns.push(take(column, &rows, None).map_err(plan)?);
        }
        let pairs = RecordBatch::try_new(Arc::clone(self.pairs.schema()), columns).map_err(plan)?;
        self.pairs.put(pairs);
        let mut target = Target::unnamed(change);
        // A plan runs once; this one runs for each part of the rows.
        let plan = reset_plan_states(Arc::clone(&self.ready.plan));
        let plan = plan.map_err(|error| errors::from_plan(&error))?;
        let mut stream = self.job.stream(&plan)?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|error| errors::from_plan(&error))?;
            self.set.apply(&batch, &mut target, true, done)?;
        }
        self.pairs.clear();
        Ok(target.change)
    }
}

/// The columns of a row that is there, behind them those of the one that would have come, and
/// behind these what its source has beside it.
fn pairs_schema(table: &Table, behind: &[FieldRef]) -> SchemaRef {
    let mut fields: Vec<FieldRef> = table.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(ROW_ID, DataType::UInt64, false)));
    let new = table.schema().fields().iter().map(|field| {
        let name = change::new_column(field.name());
        Arc::new(field.as_ref().clone().with_name(name))
    });
    fields.extend(new);
    fields.extend(behind.iter().cloned());
    Arc::new(Schema::new(fields))
}
