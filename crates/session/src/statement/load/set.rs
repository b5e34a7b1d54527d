//! SET of LOAD DATA.
//!
//! A field is stored in its column first; then the assignments are computed from the row, one after
//! the other, each from what those before it have made. A column without a field has its default
//! by then, but for one that is computed, and a variable has the field as it is.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::sql::sqlparser::ast::{Expr, Ident};
use mayfly_sql::by_row::by_row;
use mayfly_sql::change::{self, Mention};
use mayfly_sql::parse;
use mayfly_sql::statement::{LoadData, SetColumn};
use mayfly_sql::walk::change_expressions;
use mayfly_table::{Column, Table};
use mayfly_types::{ErrorCode, MySqlError, Warning};

use super::plan::Plan;
use crate::errors;
use crate::statement::Job;
use crate::statement::assign::Values;
use crate::statement::batch::batch_of;
use crate::statement::change::{assigned_before, assigned_place, assigned_values};
use crate::statement::changing_batch::ChangingBatch;
use crate::statement::counter::{Counter, Numbering};
use crate::statement::defaults::{Fallback, default_expression, zero};
use crate::statement::query::Ready;
use crate::statement::write::Writer;

/// Computes the rows of a statement with SET.
pub(super) struct Assignments {
    job: Job,
    /// Stores fields in their columns.
    fields: Values,
    /// The rows of fields and defaults, and behind them the variables.
    rows: Arc<ChangingBatch>,
    /// The columns of the table that these rows have.
    columns: Vec<usize>,
    /// What computes the columns that are written from such rows.
    ready: Ready,
    /// The columns that are written.
    names: Vec<String>,
    /// Those among them that get the zero of their type for the default that they lack, which is
    /// told for each row.
    zeros: Vec<String>,
}

/// What a statement with SET writes.
#[derive(Default)]
struct Written {
    names: Vec<String>,
    list: Vec<Expr>,
    zeros: Vec<String>,
}

impl Written {
    fn put(&mut self, column: &Column, value: Expr) {
        self.list.push(value);
        self.names.push(column.name.clone());
    }
}

impl Assignments {
    /// Plans the assignments; `None` if there are none and some fields are those of columns.
    pub(super) async fn begin(
        job: &Job,
        load: &LoadData,
        table: &Arc<Table>,
        plan: &Plan,
        ignore: bool,
    ) -> Result<Option<Assignments>, MySqlError> {
        if load.assignments.is_empty() && !plan.names.is_empty() {
            return Ok(None);
        }
        let mut fields = Values::begin_fields(job, table, &plan.names, ignore).await?;
        // A number that is counted may be missing.
        fields.counter = Counter::of(table, Numbering::default());
        let mention = Mention::of(load.table.clone());
        let strict = job.connection.local().variables.is_strict() && !ignore;
        let written = columns_to_write(job, load, table, plan, (&mention, strict)).await?;
        let Written { names, list, zeros } = written;
        let columns: Vec<usize> = { table.columns().iter().enumerate() }
            .filter(|(_, column)| column.generated.is_none())
            .map(|(place, _)| place)
            .collect();
        let rows = Arc::new(ChangingBatch::new(schema_of_rows(table, &columns, plan)));
        let planned = job.planned_over(&rows, &mention.alias, list).await?;
        let mut ready = job.physical_in_order(planned).await?;
        ready.plan = by_row(ready.plan).map_err(|error| errors::from_plan(&error))?;
        Ok(Some(Assignments {
            job: job.clone(),
            fields,
            rows,
            columns,
            ready,
            names,
            zeros,
        }))
    }

    /// The columns that are written, in the order of the rows.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Writes a batch of fields. Where a field is an error or warns, its row is computed and
    /// written alone, so that what is said comes row by row.
    pub(super) async fn write(
        &mut self,
        batch: &RecordBatch,
        plan: &Plan,
        writer: &mut Writer,
    ) -> Result<(), MySqlError> {
        let mut waiting = vec![batch.clone()];
        while let Some(batch) = waiting.pop() {
            let count = batch.num_rows();
            let fields = plan.of_columns(&batch)?;
            let stored = if count < 2 || self.job.connection.values.is_full() {
                let stored = self.fields.assigned(&fields);
                stored.map_err(|error| writer.first_error(error))?
            } else if let Some(stored) = self.fields.assigned_well(&fields) {
                stored
            } else {
                let half = count.div_ceil(2);
                waiting.push(batch.slice(half, count.saturating_sub(half)));
                waiting.push(batch.slice(0, half));
                continue;
            };
            let stored = self.columns.iter().filter_map(|place| stored.get(*place));
            let mut columns: Vec<ArrayRef> = stored.cloned().collect();
            let variables = plan.variables.iter();
            columns.extend(variables.map(|(_, place)| Arc::clone(batch.column(*place))));
            for _ in 0..count {
                for name in &self.zeros {
                    let warning = Warning::new(ErrorCode::NoDefaultForField, &[name]);
                    self.job.connection.warn(warning);
                }
            }
            self.rows.put(batch_of(self.rows.schema(), columns, count)?);
            // A plan runs once; this one runs for each part of the rows.
            let run = reset_plan_states(Arc::clone(&self.ready.plan));
            self.ready.plan = run.map_err(|error| errors::from_plan(&error))?;
            writer.write_rows(self.job.rows(&self.ready)?).await?;
            self.rows.clear();
        }
        Ok(())
    }
}

/// The columns that are written, and what computes them: those of fields, and behind them those
/// that are assigned.
async fn columns_to_write(
    job: &Job,
    load: &LoadData,
    table: &Table,
    plan: &Plan,
    (mention, strict): (&Mention, bool),
) -> Result<Written, MySqlError> {
    let (columns, alias) = (table.columns(), &mention.alias);
    let database = job.current_database();
    let mut places = Vec::with_capacity(load.assignments.len());
    // A number that is missing is 0 until it is counted.
    let counted = { columns.iter() }.find(|column| column.is_auto_increment);
    let counted = counted.map(|counted| {
        let column = change::column(alias, &counted.name);
        let number = parse::parse_expression(&format!("IFNULL({column}, 0)"))?;
        Ok::<_, MySqlError>((&counted.name, number))
    });
    let counted = counted.transpose()?;
    let mut assignments = load.assignments.clone();
    let put_in = assigned_before(&assignments);
    for set in &mut assignments {
        places.push(assigned_column(set, table, mention, database.as_deref())?);
        let Some(value) = &mut set.value else {
            continue;
        };
        change::refuse_groups([&*value], &job.connection.aggregates)?;
        change_expressions(value, &mut |expr| variables_as_columns(expr, plan));
        job.settle_names_of(value, (table, mention), None, &put_in)
            .await?;
        if let Some((name, number)) = &counted {
            change::substitute(value, alias, name, number);
        }
    }
    let assigned = assignments.iter().zip(places);
    let assigned = assigned_values(columns, alias, assigned, true)?;
    let mut written = Written::default();
    for name in &plan.names {
        let place = table.definition().column(name);
        let place = place.filter(|place| !assigned.contains_key(place));
        // What a file has for a generated column is passed over.
        let column = place.and_then(|place| columns.get(place));
        if let Some(column) = column.filter(|column| column.generated.is_none()) {
            written.put(column, change::column(alias, &column.name));
        }
    }
    for (place, value) in assigned {
        let Some(column) = columns
            .get(place)
            .filter(|column| column.generated.is_none())
        else {
            continue;
        };
        let value = match value {
            Some(value) => value,
            None if !strict && has_only_zero(column) => {
                written.zeros.push(column.name.clone());
                zero_of(column)?
            }
            None => default_expression(column, alias)?,
        };
        written.put(column, value);
    }
    if written.names.is_empty() {
        put_default(job, columns, (alias, strict), &mut written)?;
    }
    Ok(written)
}

/// A row of defaults: something must be written.
fn put_default(
    job: &Job,
    columns: &[Column],
    (alias, strict): (&str, bool),
    written: &mut Written,
) -> Result<(), MySqlError> {
    let mut others = columns.iter().filter(|of| of.generated.is_none());
    let with_default = others.clone().find(|of| !has_only_zero(of));
    let Some(column) = with_default.or_else(|| others.next()) else {
        return Ok(());
    };
    let value = match strict || !has_only_zero(column) {
        true => default_expression(column, alias)?,
        false => {
            let warning = Warning::new(ErrorCode::NoDefaultForField, &[&column.name]);
            job.connection.warn(warning);
            zero_of(column)?
        }
    };
    written.put(column, value);
    Ok(())
}

/// Whether the zero of its type stands for the default of a column.
fn has_only_zero(column: &Column) -> bool {
    matches!(Fallback::of(column), Ok(Fallback::Missing)) && zero(&column.column_type).is_some()
}

/// That zero.
fn zero_of(column: &Column) -> Result<Expr, MySqlError> {
    let null = parse::parse_expression("NULL")?;
    Ok(change::kept_or_zero(null, &column.column_type))
}

/// The place of the column that an assignment names.
fn assigned_column(
    set: &SetColumn,
    table: &Table,
    mention: &Mention,
    database: Option<&str>,
) -> Result<usize, MySqlError> {
    let place = assigned_place(set, (table, mention), database)?;
    let is_generated = { table.columns().get(place) }.is_some_and(|of| of.generated.is_some());
    if is_generated && set.value.is_some() {
        let code = ErrorCode::GeneratedValue;
        return Err(MySqlError::new(code, &[&set.column, &table.name()]));
    }
    Ok(place)
}

/// Columns of the table, any of which may be NULL as yet, and the variables.
fn schema_of_rows(table: &Table, columns: &[usize], plan: &Plan) -> SchemaRef {
    let columns = columns.iter().map(|place| {
        let field = table.schema().field(*place).clone();
        field.with_nullable(true)
    });
    let variables = plan.variables.iter();
    let variables =
        variables.map(|(name, _)| Field::new(variable_column(name), DataType::Utf8View, true));
    Arc::new(Schema::new(columns.chain(variables).collect::<Vec<_>>()))
}

fn variable_column(name: &str) -> String {
    format!("\u{1}variable {name}")
}

/// Reads the variables that the file fills from the row.
fn variables_as_columns(expr: &mut Expr, plan: &Plan) {
    let Expr::Identifier(ident) = expr else {
        return;
    };
    let name = ident.value.strip_prefix('@').map(str::to_lowercase);
    let mut variables = plan.variables.iter();
    if let Some((variable, _)) = variables.find(|(variable, _)| Some(variable) == name.as_ref()) {
        *ident = Ident::with_quote('`', variable_column(variable));
    }
}
