//! Values into columns: conversion, NULL, defaults.
//!
//! Owns the way of every inserted row. What a value becomes in a column is the business of
//! `mayfly_sql`; here it is applied to batches, in order, so that errors name the right row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, new_null_array};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{filter, is_null};
use arrow::datatypes::{Field, FieldRef, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::Expr;
use mayfly_sql::functions::{aside, assignment, rows_seen, see_again, skip_rows};
use mayfly_table::{Column, Table};
use mayfly_types::{ColumnType, ErrorCode, Level, MySqlError, Warning};

use super::Job;
use super::batch::batch_of;
use super::counter::{Counter, unnumbered};
use super::defaults::{Fallback, zero};
use super::table_rules::Rules;
use crate::errors;

/// Makes rows of a source the rows of a table.
pub(crate) struct Values {
    job: Job,
    table: Arc<Table>,
    columns: Vec<Target>,
    schema: SchemaRef,
    /// The same, but for the column that is counted up, which may have NULL.
    unnumbered: SchemaRef,
    options: Arc<ConfigOptions>,
    strict: bool,
    /// Whether NULL in a column that refuses it is an error.
    refuses_null: bool,
    /// Whether rows that violate a constraint are left out.
    ignores: bool,
    /// What the table makes of its rows.
    rules: Option<Arc<Rules>>,
    /// The defaults that are computed for each row.
    computed: Option<Rules>,
    /// What numbers rows that come, if a column does.
    pub(crate) counter: Option<Counter>,
}

/// Rows of a table, and which ones of a source they are if some of these are left out.
type Converted = (RecordBatch, Option<BooleanArray>);

struct Target {
    column: Column,
    field: FieldRef,
    convert: ScalarUDF,
    /// Which column of the source fills it; `None` takes the default.
    source: Option<usize>,
    /// Whether that column has fields of a text file.
    is_field: bool,
    /// What it gets when the source has nothing.
    default: Fallback,
}

impl Values {
    /// Begins a statement whose source has a value for each column of the table.
    pub(crate) async fn begin_all(
        job: &Job,
        table: &Arc<Table>,
        ignore: bool,
    ) -> Result<Values, MySqlError> {
        let sources = (0..table.columns().len()).map(Some).collect();
        Values::begin_from(job, table, sources, ignore).await
    }

    /// Begins a statement that writes the named columns, in the order of its source; all visible
    /// columns where none is named.
    pub(crate) async fn begin(
        job: &Job,
        table: &Arc<Table>,
        names: &[String],
        ignore: bool,
    ) -> Result<Values, MySqlError> {
        let values = Values::begin_from(job, table, sources(table, names)?, ignore).await?;
        let mut left_out = values.columns.iter().filter(|of| of.source.is_none());
        left_out.try_for_each(|target| target.check_default(job, values.strict))?;
        Ok(values)
    }

    /// Begins a statement that stores fields of a text file in the named columns, and will assign
    /// others: none needs a default yet, and those that are computed have no values by then.
    pub(crate) async fn begin_fields(
        job: &Job,
        table: &Arc<Table>,
        names: &[String],
        ignore: bool,
    ) -> Result<Values, MySqlError> {
        let mut found = vec![None; table.columns().len()];
        if !names.is_empty() {
            found = sources(table, names)?;
        }
        let mut values = Values::begin_from(job, table, found, ignore).await?;
        values.take_fields(names.len());
        values.computed = None;
        Ok(values)
    }

    async fn begin_from(
        job: &Job,
        table: &Arc<Table>,
        sources: Vec<Option<usize>>,
        ignore: bool,
    ) -> Result<Values, MySqlError> {
        let strict = job.begin_assignments(ignore);
        job.running.also_count(table.account());
        let state = job.connection.state()?;
        let schema = Arc::clone(table.schema());
        let mut columns = Vec::with_capacity(sources.len());
        let mut defaults = Vec::new();
        for ((column, field), source) in table.columns().iter().zip(schema.fields()).zip(sources) {
            let convert = assignment(column.column_type.clone(), &column.name, strict);
            let target = Target {
                column: column.clone(),
                field: Arc::clone(field),
                convert,
                source,
                is_field: false,
                default: Fallback::of(column)?,
            };
            if target.source.is_none()
                && let Fallback::Expression(expression) = &target.default
            {
                defaults.push((columns.len(), expression.as_ref().clone()));
            }
            columns.push(target);
        }
        Ok(Values {
            job: job.clone(),
            columns,
            unnumbered: unnumbered(table),
            schema,
            options: Arc::clone(state.config_options()),
            strict,
            refuses_null: strict,
            ignores: ignore,
            rules: job.rules(table).await?,
            computed: Rules::of_table_defaults(job, table, defaults).await?,
            counter: None,
            table: Arc::clone(table),
        })
    }

    /// What DEFAULT stands for in a column: a value or an expression.
    pub(crate) fn default_of(&self, column: usize) -> Result<Fallback, MySqlError> {
        let target = &self.columns[column];
        match &target.default {
            Fallback::Missing => {
                let code = ErrorCode::NoDefaultForField;
                let zero = zero(&target.column.column_type).filter(|_| !self.strict);
                let zero = zero.ok_or_else(|| MySqlError::new(code, &[&target.column.name]))?;
                self.job
                    .connection
                    .warn(Warning::new(code, &[&target.column.name]));
                Ok(Fallback::Value(zero))
            }
            other => Ok(other.clone()),
        }
    }

    /// The expression that DEFAULT stands for in a column, if it is one.
    pub(crate) fn default_expression(&self, column: usize) -> Option<&Expr> {
        match &self.columns.get(column)?.default {
            Fallback::Expression(expression) => Some(expression),
            Fallback::Value(_) | Fallback::Missing => None,
        }
    }

    /// The statement.
    pub(crate) fn job(&self) -> &Job {
        &self.job
    }

    /// Makes NULL in a column that refuses it an error in every mode.
    pub(crate) fn refuse_null(&mut self) {
        self.refuses_null = true;
    }

    /// Takes the first columns of the source for fields of a text file.
    pub(crate) fn take_fields(&mut self, count: usize) {
        for target in &mut self.columns {
            target.is_field = target.source.is_some_and(|source| source < count);
        }
    }

    /// Takes the rows as they are: they have been in a table with the same rules.
    pub(crate) fn keep_rows(&mut self) {
        self.rules = None;
    }

    /// Refuses a value for a generated column.
    pub(crate) fn refuse_value(&self, column: usize) -> Result<(), MySqlError> {
        let column = &self.columns[column].column;
        let code = ErrorCode::GeneratedValue;
        let refused = || MySqlError::new(code, &[&column.name, &self.table.name()]);
        column.generated.as_ref().map_or(Ok(()), |_| Err(refused()))
    }

    /// Whether a value that does not fit is an error.
    pub(crate) fn is_strict(&self) -> bool {
        self.strict
    }

    /// The names of the columns that the source fills, in the order of the source.
    pub(crate) fn source_columns(&self) -> Vec<String> {
        let filled = self.filled().into_iter();
        filled
            .map(|index| self.columns[index].column.name.clone())
            .collect()
    }

    /// The columns of the table that the source fills, in the order of the source.
    pub(crate) fn filled(&self) -> Vec<usize> {
        let mut filled: Vec<(usize, usize)> = self
            .columns
            .iter()
            .enumerate()
            .filter_map(|(index, target)| Some((target.source?, index)))
            .collect();
        filled.sort_unstable();
        filled.into_iter().map(|(_, index)| index).collect()
    }

    /// A batch of the source as rows of the table, which have no numbers yet; and which rows of the
    /// batch they are if some are left out.
    pub(crate) fn converted(&mut self, batch: &RecordBatch) -> Result<Converted, MySqlError> {
        let mut arrays = self.assigned(batch)?;
        let mut rows = batch.num_rows();
        let stays = self.obey(&mut arrays, rows)?;
        if let Some(stays) = &stays {
            rows = stays.true_count();
            for array in &mut arrays {
                let kept = filter(array, stays);
                *array = kept.map_err(|error| errors::from_plan(&error.into()))?;
            }
        }
        Ok((batch_of(&self.unnumbered, arrays, rows)?, stays))
    }

    /// The same, unless a value is an error or says what is kept: then nothing has happened, and
    /// the rows are to be converted one by one.
    pub(crate) fn converted_well(&mut self, batch: &RecordBatch) -> Option<Converted> {
        self.well(|values| values.converted(batch))
    }

    /// As [`Values::assigned`], with the same exception.
    pub(crate) fn assigned_well(&mut self, batch: &RecordBatch) -> Option<Vec<ArrayRef>> {
        self.well(|values| values.assigned(batch))
    }

    fn well<T>(&mut self, convert: impl FnOnce(&mut Values) -> Result<T, MySqlError>) -> Option<T> {
        let seen = self.columns.iter();
        let seen: Vec<u64> = seen.map(|target| rows_seen(&target.convert)).collect();
        let (converted, warned) = aside(|| convert(self));
        let said = &self.job.connection.values;
        let passes = |warning: &Warning| warning.level == Level::Note && said.only_counts_notes();
        if let Ok(rows) = converted
            && warned.iter().all(passes)
        {
            warned.into_iter().for_each(|note| said.warn(note));
            return Some(rows);
        }
        for (target, seen) in self.columns.iter().zip(seen) {
            see_again(&target.convert, seen);
        }
        None
    }

    /// Rows with the numbers that they would get if none were left out, and whether some of them
    /// have numbers of their own.
    pub(crate) fn tried(&mut self, rows: &RecordBatch) -> Result<(RecordBatch, bool), MySqlError> {
        let table = Arc::clone(&self.table);
        self.with_numbers(rows, |counter, numbers| counter.tried(&table, numbers))
    }

    /// Rows with their numbers: those that are written.
    pub(crate) fn numbered(&mut self, rows: &RecordBatch) -> Result<RecordBatch, MySqlError> {
        let table = Arc::clone(&self.table);
        let filled = self.with_numbers(rows, |counter, numbers| {
            counter.fill(&table, numbers).map(|filled| (filled, false))
        });
        filled.map(|(rows, _)| rows)
    }

    fn with_numbers(
        &mut self,
        rows: &RecordBatch,
        fill: impl FnOnce(&mut Counter, &ArrayRef) -> Result<(ArrayRef, bool), MySqlError>,
    ) -> Result<(RecordBatch, bool), MySqlError> {
        let Some(counter) = &mut self.counter else {
            return Ok((rows.clone(), false));
        };
        let waited = counter.waits();
        let mut arrays = rows.columns().to_vec();
        let numbers = &mut arrays[counter.column];
        let (filled, mixes) = fill(counter, numbers)?;
        *numbers = filled;
        if waited && !counter.waits() {
            // It was said for one statement.
            let mut local = self.job.connection.local();
            local.variables.put("insert_id", "0".to_owned());
        }
        Ok((batch_of(&self.schema, arrays, rows.num_rows())?, mixes))
    }

    /// A batch of the source as columns of the table, of which the generated ones are yet to be
    /// computed.
    pub(crate) fn assigned(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, MySqlError> {
        let rows = batch.num_rows();
        let mut arrays = Vec::with_capacity(self.columns.len());
        let mut from_source = self.in_order_of_source(batch)?;
        for (index, target) in self.columns.iter().enumerate() {
            if let Some(array) = from_source.get_mut(index).and_then(Option::take) {
                arrays.push(array);
                continue;
            }
            if self.rules.is_some() && target.column.generated.is_some() {
                arrays.push(new_null_array(target.field.data_type(), rows));
                continue;
            }
            arrays.push(match target.source {
                Some(source) => self.column(
                    target,
                    batch.column(source),
                    &batch.schema_ref().fields()[source],
                )?,
                None => {
                    let is_null = self.computed.is_some() || target.column.is_nullable;
                    let value = match &target.default {
                        Fallback::Value(value) => Some(value.clone()),
                        // It is computed below, or not before its row is written.
                        Fallback::Expression(_) if is_null => None,
                        // Checked when the statement began, or when the row is written.
                        Fallback::Expression(_) | Fallback::Missing => {
                            zero(&target.column.column_type)
                        }
                    };
                    let Some(value) = value else {
                        arrays.push(new_null_array(target.field.data_type(), rows));
                        continue;
                    };
                    let array = value
                        .to_array_of_size(rows)
                        .map_err(|error| errors::from_plan(&error))?;
                    let field = Arc::new(Field::new("default", array.data_type().clone(), true));
                    self.column(target, &array, &field)?
                }
            });
        }
        if let Some(computed) = &self.computed {
            self.compute(computed, &mut arrays, rows)?;
        }
        Ok(arrays)
    }

    /// The columns that the source fills, where it has them in another order than the table: values
    /// warn in the order in which a statement lists them. Nothing for the order of the table.
    fn in_order_of_source(&self, batch: &RecordBatch) -> Result<Vec<Option<ArrayRef>>, MySqlError> {
        if self
            .columns
            .iter()
            .filter_map(|target| target.source)
            .is_sorted()
        {
            return Ok(Vec::new());
        }
        let mut arrays = vec![None; self.columns.len()];
        for index in self.filled() {
            let target = &self.columns[index];
            if let (Some(source), None) = (target.source, &target.column.generated) {
                let field = &batch.schema_ref().fields()[source];
                arrays[index] = Some(self.column(target, batch.column(source), field)?);
            }
        }
        Ok(arrays)
    }

    /// Computes columns from the others.
    fn compute(
        &self,
        rules: &Rules,
        arrays: &mut [ArrayRef],
        rows: usize,
    ) -> Result<(), MySqlError> {
        for (number, place) in rules.computed().enumerate() {
            let generated = self.columns[place].column.generated.as_ref();
            let is_virtual = generated.is_some_and(|generated| !generated.is_stored);
            // MySQL does not compute it before it is asked for: what is cut there refuses no row.
            let functions = &self.job.connection.values;
            let refuses = functions.lock().refuses_misfits;
            functions.lock().refuses_misfits = refuses && !is_virtual;
            let computed = rules.values(number, arrays, rows);
            functions.lock().refuses_misfits = refuses;
            let (values, field) = computed?;
            let target = &self.columns[place];
            if !is_virtual {
                arrays[place] = self.column(target, &values, &field)?;
                continue;
            }
            // Nor does it tell then that digits are rounded away.
            let (column, said) = aside(|| self.column(target, &values, &field));
            let told = said.into_iter().filter(|said| said.level != Level::Note);
            told.for_each(|warning| functions.warn(warning));
            arrays[place] = column?;
        }
        Ok(())
    }

    /// Rows that [`Values::assigned`] has made, with their generated columns; and which of them
    /// stay if not all do, because others violate a constraint.
    pub(crate) fn obeying(
        &self,
        mut arrays: Vec<ArrayRef>,
        rows: usize,
    ) -> Result<(RecordBatch, Option<BooleanArray>), MySqlError> {
        let stays = self.obey(&mut arrays, rows)?;
        Ok((batch_of(&self.schema, arrays, rows)?, stays))
    }

    /// Computes the generated columns, then looks at the constraints: a row that violates one is an
    /// error, or left out with a warning; those that stay are told if not all do.
    fn obey(
        &self,
        arrays: &mut [ArrayRef],
        rows: usize,
    ) -> Result<Option<BooleanArray>, MySqlError> {
        let Some(rules) = &self.rules else {
            return Ok(None);
        };
        self.compute(rules, arrays, rows)?;
        let Some(violated) = rules.violated(arrays, rows)? else {
            return Ok(None);
        };
        for check in violated.iter().flatten() {
            let error = check.error();
            if !self.ignores {
                return Err(error);
            }
            let level = Level::Warning;
            self.job.connection.warn(Warning { level, error });
        }
        let stays = violated.iter().map(Option::is_none).map(Some);
        Ok(Some(stays.collect()))
    }

    fn column(
        &self,
        target: &Target,
        array: &ArrayRef,
        field: &FieldRef,
    ) -> Result<ArrayRef, MySqlError> {
        let same = array.data_type() == target.field.data_type()
            && ColumnType::from_arrow(field) == target.column.column_type;
        let before = rows_seen(&target.convert);
        let array = if same {
            skip_rows(&target.convert, array.len());
            Arc::clone(array)
        } else {
            let arguments = ScalarFunctionArgs {
                args: vec![ColumnarValue::Array(Arc::clone(array))],
                arg_fields: vec![Arc::clone(field)],
                number_rows: array.len(),
                return_field: Arc::clone(&target.field),
                config_options: Arc::clone(&self.options),
            };
            target
                .convert
                .invoke_with_args(arguments)
                .and_then(|value| value.into_array(array.len()))
                .map_err(|error| errors::from_plan(&error))?
        };
        let counts = self.counter.is_some() && target.column.is_auto_increment;
        if target.column.is_nullable || counts || array.null_count() == 0 {
            return Ok(array);
        }
        self.without_nulls(target, array, before)
    }

    /// NULL in a column that refuses it: an error, or the zero of the type. So many rows have come
    /// before these.
    fn without_nulls(
        &self,
        target: &Target,
        array: ArrayRef,
        before: u64,
    ) -> Result<ArrayRef, MySqlError> {
        let value = target.zero().filter(|_| !self.refuses_null);
        let rows = (before.saturating_add(1)..).zip(0..array.len());
        for (number, row) in rows {
            if array.is_valid(row) {
                continue;
            }
            let name = &target.column.name;
            let error = match target.is_field {
                true => MySqlError::new(ErrorCode::NullToNotNull, &[name, &number]),
                false => MySqlError::new(ErrorCode::ColumnNull, &[name]),
            };
            if value.is_none() {
                return Err(error);
            }
            let level = Level::Warning;
            self.job.connection.warn(Warning { level, error });
        }
        let Some(value) = value else {
            return Ok(array);
        };
        let plan = |error: datafusion::error::DataFusionError| errors::from_plan(&error);
        let value = value
            .cast_to(array.data_type())
            .map_err(plan)?
            .to_scalar()
            .map_err(plan)?;
        let missing = is_null(&array).map_err(|error| plan(error.into()))?;
        zip(&missing, &value, &array).map_err(|error| plan(error.into()))
    }
}

impl Job {
    /// Notes that the statement stores values, and tells whether it refuses those that do not fit.
    pub(crate) fn begin_assignments(&self, ignore: bool) -> bool {
        let strict = self.connection.local().variables.is_strict() && !ignore;
        let mut values = self.connection.values.lock();
        // A LIMIT may have said otherwise since the statement began.
        let is_first = !values.refuses_division_by_zero;
        values.refuses_misfits = strict && (is_first || values.refuses_misfits);
        values.refuses_division_by_zero = strict;
        strict
    }

    /// Fails if a value was cut or wrong on which depends what a statement in strict mode writes.
    pub(crate) fn check_misfits(&self) -> Result<(), MySqlError> {
        match self.connection.values.lock().refused.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Target {
    /// What stands for NULL, if something does.
    fn zero(&self) -> Option<ScalarValue> {
        match &self.column.column_type {
            // Only of a file it is none of its words.
            ColumnType::Enum(_) if self.is_field => Some(ScalarValue::Utf8(Some(String::new()))),
            column_type => zero(column_type),
        }
    }

    /// A column that is left out must have a default.
    fn check_default(&self, job: &Job, strict: bool) -> Result<(), MySqlError> {
        if !matches!(self.default, Fallback::Missing) {
            return Ok(());
        }
        let code = ErrorCode::NoDefaultForField;
        if strict || zero(&self.column.column_type).is_none() {
            return Err(MySqlError::new(code, &[&self.column.name]));
        }
        job.connection
            .warn(Warning::new(code, &[&self.column.name]));
        Ok(())
    }
}

/// For each column of the table, the place of its value in the source.
pub(crate) fn sources(table: &Table, names: &[String]) -> Result<Vec<Option<usize>>, MySqlError> {
    let columns = table.columns();
    if names.is_empty() {
        let mut visible = 0..;
        let sources = columns.iter().map(|column| match column.is_invisible {
            true => None,
            false => visible.next(),
        });
        return Ok(sources.collect());
    }
    let mut sources = vec![None; columns.len()];
    for (position, name) in names.iter().enumerate() {
        let lower = name.to_lowercase();
        let Some(index) = columns
            .iter()
            .position(|column| column.name.to_lowercase() == lower)
        else {
            return Err(MySqlError::new(
                ErrorCode::UnknownColumn,
                &[name, &"field list"],
            ));
        };
        if sources[index].replace(position).is_some() {
            return Err(MySqlError::new(ErrorCode::ColumnTwice, &[name]));
        }
    }
    Ok(sources)
}
