//! Values that assign variables, in the order of the rows: what `mayfly_sql::assigned` has taken
//! out of a query.
//!
//! Owns: the values of the variables while the query runs. A variable has one type meanwhile, that
//! of what is assigned to it. **Cost**: some microseconds for each row, on one thread.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;
use mayfly_sql::assigned::{self, Assigned, Place};
use mayfly_sql::bindings::Bindings;
use mayfly_sql::compute::Computed;
use mayfly_sql::functions::converted;
use mayfly_sql::plan::Planner;
use mayfly_sql::references::References;
use mayfly_sql::typing::type_planner;
use mayfly_types::{ColumnType, MySqlError};

use super::Job;
use super::batch::batch_of;
use super::evaluate::user_value;
use super::query::Ready;
use crate::column_info::ColumnInfo;
use crate::errors;

/// How often types are looked for that stay what they are.
const ATTEMPTS: usize = 4;

/// The values of a query that are computed row by row.
pub(crate) struct Assigning {
    job: Job,
    items: Vec<Item>,
    /// What the items read: columns that the query has gained, and variables.
    schema: SchemaRef,
    variables: Vec<Variable>,
    /// How many columns are gained.
    inputs: usize,
    /// The columns of the query, those that are gained among them.
    shown: SchemaRef,
}

struct Item {
    place: usize,
    /// Which of the variables it assigns.
    variable: Option<usize>,
    computed: Computed,
}

struct Variable {
    name: String,
    field: FieldRef,
    /// Its value, as an array of one.
    value: ArrayRef,
}

impl Job {
    /// A query that assigns variables in its list, and what is computed beside its plan; `None` for
    /// any other.
    pub(crate) async fn assigning(
        &self,
        query: &ast::Query,
    ) -> Result<Option<(Ready, Assigning)>, MySqlError> {
        let mut rest = query.clone();
        let Some(assigned) = assigned::split(&mut rest, &self.connection.aggregates)? else {
            return Ok(None);
        };
        let bindings = self.bindings(&References::of_query(query)).await?;
        let ready = Box::pin(self.without_assigned(rest, &assigned, &bindings)).await?;
        let planned = Assigning::planned(self, ready, assigned, bindings).await?;
        Ok(Some(planned))
    }

    /// The plan of the rest of a query, whose rows come in their order.
    async fn without_assigned(
        &self,
        query: ast::Query,
        assigned: &Assigned,
        bindings: &Bindings,
    ) -> Result<Ready, MySqlError> {
        let mut source = self.source.as_ref().clone();
        if let ast::SetExpr::Select(select) = query.body.as_ref() {
            let place = select.select_token.0.span.start;
            let mut texts = source.items(place).to_vec();
            texts.extend((0..assigned.inputs).map(assigned::input_name));
            source.set_items(place, texts);
        }
        let planned = self.planned_of(query, bindings, Arc::new(source)).await?;
        self.physical_in_order(planned).await
    }
}

impl Assigning {
    /// What is computed beside a plan; made on a thread that plans.
    pub(crate) async fn planned(
        job: &Job,
        ready: Ready,
        assigned: Assigned,
        bindings: Bindings,
    ) -> Result<(Ready, Assigning), MySqlError> {
        job.plan(move |job| {
            let assigning = Assigning::begin(job, &ready, assigned, &bindings)?;
            Ok((ready, assigning))
        })
        .await
    }

    fn begin(
        job: &Job,
        ready: &Ready,
        assigned: Assigned,
        bindings: &Bindings,
    ) -> Result<Assigning, MySqlError> {
        let plan = ready.plan.schema();
        let visible = plan.fields().len() - assigned.inputs;
        let inputs = plan.fields()[visible..].iter().enumerate();
        let inputs: Vec<Field> = inputs
            .map(|(number, field)| renamed(field, assigned::input_name(number)))
            .collect();
        let mut variables: Vec<Variable> = Vec::new();
        for name in assigned
            .items
            .iter()
            .filter_map(|item| item.variable.as_ref())
        {
            if variables.iter().any(|variable| variable.name == *name) {
                continue;
            }
            let value = job.connection.local().user_variables.get(name).cloned();
            let value = value.unwrap_or(ScalarValue::Null);
            let of_type = match value.data_type() {
                DataType::Null => DataType::Int64,
                of_type => of_type,
            };
            let value = value.cast_to(&of_type).and_then(|value| value.to_array());
            variables.push(Variable {
                field: Arc::new(Field::new(assigned::variable_name(name), of_type, true)),
                name: name.clone(),
                value: value.map_err(|error| errors::from_plan(&error))?,
            });
        }
        let place_of = |name: &Option<String>| {
            let name = name.as_ref()?;
            variables.iter().position(|variable| variable.name == *name)
        };
        let assigns: Vec<Option<usize>> = { assigned.items.iter() }
            .map(|item| place_of(&item.variable))
            .collect();
        let mut attempts = 0;
        let (schema, computed) = loop {
            let fields = inputs.iter().cloned();
            let fields = fields.chain(variables.iter().map(|of| of.field.as_ref().clone()));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let values = assigned.items.iter().map(|item| item.value.clone());
            let planner = Planner {
                state: job.connection.state()?,
                type_planner: Some(type_planner()),
                bindings,
            };
            let computed = planner.computed(values.collect(), &schema);
            let computed = computed.map_err(|error| errors::from_plan(&error))?;
            let mut is_same = true;
            for (computed, place) in computed.iter().zip(&assigns) {
                let Some(variable) = place.map(|place| &mut variables[place]) else {
                    continue;
                };
                let field = renamed(computed.field(), variable.field.name().clone());
                let is_null = *field.data_type() == DataType::Null;
                if is_null || field.data_type() == variable.field.data_type() {
                    continue;
                }
                variable.value = as_type(&variable.value, &field)?;
                variable.field = Arc::new(field);
                is_same = false;
            }
            attempts += 1;
            if is_same || attempts == ATTEMPTS {
                break (schema, computed);
            }
        };
        let mut fields: Vec<FieldRef> = plan.fields().iter().cloned().collect();
        let items = assigned.items.iter().zip(computed).zip(&assigns);
        let items = items.map(|((item, computed), variable)| {
            let place = match item.place {
                Place::FromStart(before) => before,
                Place::FromEnd(behind) => visible - 1 - behind,
            };
            let name = plan.field(place).name().clone();
            fields[place] = Arc::new(renamed(computed.field(), name));
            Item {
                place,
                variable: *variable,
                computed,
            }
        });
        Ok(Assigning {
            items: items.collect(),
            job: job.clone(),
            // The last types may not be those that the values were made ready for.
            variables: variables
                .into_iter()
                .zip(&schema.fields()[inputs.len()..])
                .map(|(variable, field)| {
                    Ok(Variable {
                        value: as_type(&variable.value, field)?,
                        field: Arc::clone(field),
                        name: variable.name,
                    })
                })
                .collect::<Result<_, MySqlError>>()?,
            schema,
            inputs: inputs.len(),
            shown: Arc::new(Schema::new(fields)),
        })
    }

    /// The columns of the rows, without those that the query has gained.
    pub(crate) fn visible(&self) -> Vec<usize> {
        (0..self.shown.fields().len() - self.inputs).collect()
    }

    /// What a client is told of its columns.
    pub(crate) fn columns(&self, ready: &Ready, job: &Job) -> Result<Vec<ColumnInfo>, MySqlError> {
        let visible = self.visible();
        let labels = &ready.labels[..visible.len()];
        let shown = self.shown.project(&visible);
        let shown = shown.map_err(|error| errors::from_plan(&error.into()))?;
        let origins = ready.origins.of_tables_only();
        Ok(job.described(&shown, labels, &origins))
    }

    /// All columns of the rows.
    pub(crate) fn shown(&self) -> &SchemaRef {
        &self.shown
    }

    /// The next rows of the plan with their values; the variables have those of the last row then.
    pub(crate) fn computed(&mut self, batch: &RecordBatch) -> Result<RecordBatch, MySqlError> {
        let failed = |error: arrow::error::ArrowError| errors::from_plan(&error.into());
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.shown)));
        }
        let first = batch.num_columns() - self.inputs;
        let mut found: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(rows); self.items.len()];
        for row in 0..rows {
            let inputs = batch.columns()[first..].iter();
            let inputs: Vec<ArrayRef> = inputs.map(|input| input.slice(row, 1)).collect();
            for (item, found) in self.items.iter().zip(&mut found) {
                let mut columns = inputs.clone();
                columns.extend(self.variables.iter().map(|of| Arc::clone(&of.value)));
                let value = item.computed.values(&batch_of(&self.schema, columns, 1)?);
                let value = value.map_err(|error| errors::from_plan(&error))?;
                if let Some(place) = item.variable {
                    let variable = &mut self.variables[place];
                    variable.value = as_type(&value, &variable.field)?;
                }
                found.push(value);
            }
        }
        for variable in &self.variables {
            let column_type = ColumnType::from_arrow(&variable.field);
            let value = user_value(&variable.value, &column_type)?;
            let mut local = self.job.connection.local();
            local.user_variables.insert(variable.name.clone(), value);
        }
        let mut columns = batch.columns().to_vec();
        for (item, values) in self.items.iter().zip(found) {
            let values: Vec<&dyn arrow::array::Array> = values.iter().map(AsRef::as_ref).collect();
            columns[item.place] = concat(&values).map_err(failed)?;
        }
        batch_of(&self.shown, columns, rows)
    }
}

fn renamed(field: &Field, name: String) -> Field {
    field.clone().with_name(name).with_nullable(true)
}

/// A value as one of a variable's type, as CAST makes it: a text that is no number counts as 0.
fn as_type(value: &ArrayRef, field: &Field) -> Result<ArrayRef, MySqlError> {
    if value.data_type() == field.data_type() {
        return Ok(Arc::clone(value));
    }
    let value = converted(value, ColumnType::from_arrow(field));
    let value = value.map_err(|error| errors::from_plan(&error))?;
    cast(&value, field.data_type()).map_err(|error| errors::from_plan(&error.into()))
}
