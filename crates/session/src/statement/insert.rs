//! INSERT.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;
use mayfly_sql::bindings::Bindings;
use mayfly_sql::by_row::by_row;
use mayfly_sql::change::Mention;
use mayfly_sql::compute::TypedValue;
use mayfly_sql::references::References;
use mayfly_sql::source_columns::{self, Filled};
use mayfly_sql::statement::{Insert, InsertSource, SetColumn};
use mayfly_table::Table;
use mayfly_types::{ErrorCode, MySqlError};

use super::Job;
use super::batch::batch_of;
use super::defaults::Fallback;
use super::evaluate::literal;
use super::query::Ready;
use super::record::{Record, reads};
use super::row_values::{KnownValues, RowValues};
use super::write::Writer;
use super::written::Written;
use crate::commands::Command;
use crate::errors;
use crate::outcome::Outcome;

/// Rows of VALUES that are converted together.
const ROWS_TOGETHER: usize = 1024;

impl Job {
    pub(crate) async fn insert(&self, insert: Insert) -> Result<Outcome, MySqlError> {
        self.count(|status| match Command::of_insert(&insert) {
            Some(command) => status.commands.add(command),
            None => status.inserts += 1,
        });
        self.refuse_system_rows(&insert.table, "INSERT")?;
        let (table, turns) = self.table_to_fill(&insert.table).await?;
        let mention = Mention::of(insert.table.clone());
        let database = self.current_database();
        for (named, column) in &insert.qualified {
            if !mention.owns(named, database.as_deref()) {
                let name = format!("{named}.{column}");
                let code = ErrorCode::UnknownColumn;
                return Err(MySqlError::new(code, &[&name, &"field list"]));
            }
        }
        // VALUES () stands for a row of defaults.
        let is_empty = |rows: &[Vec<Option<ast::Expr>>]| rows.iter().all(Vec::is_empty);
        let columns = &insert.columns;
        let to = (&table, turns);
        let mut writer = Writer::begin(self, to, columns, insert.ignore).await?;
        if insert.replace {
            writer.replace();
        }
        let updates = !insert.on_duplicate.is_empty();
        let (mut on_duplicate, alias) = (insert.on_duplicate, insert.alias);
        match insert.source {
            InsertSource::Values(mut rows) => {
                if updates {
                    let alias = alias.as_ref();
                    let update = writer.update(&mention, &on_duplicate, alias, insert.ignore, &[]);
                    update.await?;
                }
                if columns.is_empty() && is_empty(&rows) {
                    rows = vec![vec![None; writer.filled().len()]; rows.len()];
                }
                let is_one = rows.len() == 1;
                if is_one && !insert.ignore {
                    writer.refuse_null();
                }
                writer.expect(rows.len());
                let written = self.insert_values(writer, &mention, rows).await?;
                Ok(match is_one {
                    true => Outcome::Done {
                        affected_rows: written.affected(),
                        last_insert_id: written.insert_id,
                        warnings: 0,
                        info: String::new(),
                    },
                    false => with_info(written),
                })
            }
            InsertSource::Query(mut query) => {
                let assignments = on_duplicate.as_mut_slice();
                let to = (&*table, &mention);
                let bindings = self.bindings(&References::of_query(&query)).await?;
                let behind = self.show_source(&mut query, &bindings, assignments, to)?;
                let in_order = writer.depends_on_order() || updates && writer.has_unique_key();
                let ready = Box::pin(self.ready_source(*query, &bindings, in_order)).await?;
                let schema = ready.plan.schema();
                let (written, behind) = parted(&schema, behind);
                if written != writer.filled().len() {
                    return Err(MySqlError::new(ErrorCode::ValueCount, &[&1]));
                }
                if updates {
                    let (alias, ignore) = (alias.as_ref(), insert.ignore);
                    let update = writer.update(&mention, &on_duplicate, alias, ignore, &behind);
                    update.await?;
                }
                writer.pass_over_all()?;
                Ok(with_info(Box::pin(writer.write(&ready)).await?))
            }
        }
    }

    /// Lets the query behind an INSERT show the columns of its tables that assignments of ON
    /// DUPLICATE KEY UPDATE name, and these name what it shows. Returns how many they are.
    fn show_source(
        &self,
        query: &mut ast::Query,
        bindings: &Bindings,
        assignments: &mut [SetColumn],
        (table, mention): (&Table, &Mention),
    ) -> Result<usize, MySqlError> {
        if assignments.is_empty() {
            return Ok(0);
        }
        let columns = table.columns().iter().map(|column| column.name.as_str());
        let filled = Filled {
            mention,
            alias: table.name(),
            columns: columns.collect(),
        };
        let values = assignments.iter_mut().filter_map(|set| set.value.as_mut());
        source_columns::show(query, values, &filled, (bindings, &self.source))
    }

    /// The same for an INSERT that is prepared. Returns the columns that the query shows.
    pub(crate) async fn source_of(
        &self,
        insert: &Insert,
        (table, mention): (&Table, &Mention),
    ) -> Result<(Vec<SetColumn>, Vec<FieldRef>), MySqlError> {
        let mut assignments = insert.on_duplicate.clone();
        let InsertSource::Query(query) = &insert.source else {
            return Ok((assignments, Vec::new()));
        };
        let mut query = query.clone();
        let to = (table, mention);
        let bindings = self.bindings(&References::of_query(&query)).await?;
        let behind = self.show_source(&mut query, &bindings, &mut assignments, to)?;
        if behind == 0 {
            return Ok((assignments, Vec::new()));
        }
        let ready = Box::pin(self.ready_source(*query, &bindings, false)).await?;
        let (_, behind) = parted(&ready.plan.schema(), behind);
        Ok((assignments, behind))
    }

    /// The plan of the query behind an INSERT.
    async fn ready_source(
        &self,
        query: ast::Query,
        bindings: &Bindings,
        in_order: bool,
    ) -> Result<Ready, MySqlError> {
        let planned = self.planned(query, bindings).await?;
        let mut ready = match in_order {
            true => self.physical_in_order(planned).await?,
            false => self.physical(planned).await?,
        };
        ready.plan = by_row(ready.plan).map_err(|error| errors::from_plan(&error))?;
        Ok(ready)
    }

    async fn insert_values(
        &self,
        mut writer: Writer,
        mention: &Mention,
        rows: Vec<Vec<Option<ast::Expr>>>,
    ) -> Result<Written, MySqlError> {
        let filled = writer.filled();
        if let Some(short) = rows.iter().position(|row| row.len() != filled.len()) {
            return Err(MySqlError::new(ErrorCode::ValueCount, &[&(short + 1)]));
        }
        let mut waiting: Vec<Vec<TypedValue>> = Vec::new();
        let mut row_values = RowValues::of(&rows);
        let mut known = KnownValues::default();
        let mut place = 0;
        let mut rows = rows.into_iter();
        loop {
            if place == known.rows() {
                known = row_values
                    .known(self, rows.as_slice(), &writer, &filled)
                    .await?;
                place = 0;
            }
            let Some(row) = rows.next() else {
                break;
            };
            let warned = self.connection.values.lock().warnings.len();
            let known = |position| known.take(place, position);
            let values = self.values_of_row(row, known, &writer, mention, &filled);
            let values = values.await;
            place += 1;
            let values = values.and_then(|values| {
                self.check_misfits()?;
                Ok(values)
            });
            let has_warned = self.connection.values.lock().warnings.len() > warned;
            if (has_warned || values.is_err()) && !waiting.is_empty() {
                // What is said of the rows before comes first.
                let since = self.connection.values.lock().warnings.split_off(warned);
                writer
                    .append(&rows_as_batch(&std::mem::take(&mut waiting))?)
                    .await?;
                self.connection.values.lock().warnings.extend(since);
            }
            let values = values.map_err(|error| writer.first_error(error))?;
            let differs = waiting
                .last()
                .is_some_and(|other| !same_types(other, &values));
            if differs || waiting.len() == ROWS_TOGETHER {
                writer
                    .append(&rows_as_batch(&std::mem::take(&mut waiting))?)
                    .await?;
            }
            waiting.push(values);
        }
        if !waiting.is_empty() {
            writer.append(&rows_as_batch(&waiting)?).await?;
        }
        writer.commit()
    }

    /// The values of a row; `known` are those of cells that are computed already.
    async fn values_of_row(
        &self,
        row: Vec<Option<ast::Expr>>,
        mut known: impl FnMut(usize) -> Option<TypedValue>,
        writer: &Writer,
        mention: &Mention,
        filled: &[usize],
    ) -> Result<Vec<TypedValue>, MySqlError> {
        let mut values = Vec::with_capacity(row.len());
        let mut computed = Vec::new();
        for (position, expression) in row.into_iter().enumerate() {
            let column = filled[position];
            let is_passed_over = match &expression {
                Some(value) => writer.passes_over(column, is_null(value))?,
                None => false,
            };
            let expression = expression.filter(|_| !is_passed_over);
            if let Some(value) = known(position).filter(|_| !is_passed_over) {
                values.push(value);
                continue;
            }
            let given = match expression {
                None => writer.default_of(column)?,
                Some(expression) => {
                    // Bits are a number to a column of numbers, and text to others.
                    let bits = || writer.number_of_bits(column, &expression);
                    let bytes = || writer.bytes(column, &expression);
                    match bits().or_else(bytes).or_else(|| literal(&expression)) {
                        Some(value) => Fallback::Value(value),
                        None => Fallback::Expression(Box::new(expression)),
                    }
                }
            };
            values.push(match given {
                Fallback::Value(value) => value.into(),
                Fallback::Expression(expression) => {
                    computed.push((position, *expression));
                    ScalarValue::Null.into()
                }
                Fallback::Missing => ScalarValue::Null.into(),
            });
        }
        if computed
            .iter()
            .any(|(_, value)| reads(value, writer.table()))
        {
            let mut record = Record::begin(writer.table(), mention)?;
            let mut computed = computed.into_iter().peekable();
            for (position, value) in values.iter_mut().enumerate() {
                if let Some((_, mut expression)) = computed.next_if(|next| next.0 == position) {
                    record.fill(self, &mut expression).await?;
                    let results = Box::pin(self.evaluate_all(vec![expression])).await?;
                    results.into_iter().for_each(|result| *value = result);
                }
                record.set(filled[position], value)?;
            }
        } else if !computed.is_empty() {
            let (positions, expressions): (Vec<usize>, Vec<ast::Expr>) =
                computed.into_iter().unzip();
            let results = Box::pin(self.evaluate_all(expressions)).await?;
            for (position, value) in positions.into_iter().zip(results) {
                values[position] = value;
            }
        }
        Ok(values)
    }
}

/// How many columns of a source are written, and the fields of those behind them, as assignments
/// name them.
fn parted(schema: &Schema, behind: usize) -> (usize, Vec<FieldRef>) {
    let written = schema.fields().len().saturating_sub(behind);
    let fields = schema.fields()[written..].iter().enumerate();
    let fields = fields.map(|(number, field)| {
        let field = field.as_ref().clone().with_nullable(true);
        Arc::new(field.with_name(source_columns::source_column(number)))
    });
    (written, fields.collect())
}

fn is_null(expression: &ast::Expr) -> bool {
    matches!(expression, ast::Expr::Value(value) if value.value == ast::Value::Null)
}

fn same_types(left: &[TypedValue], right: &[TypedValue]) -> bool {
    let mut pairs = left.iter().zip(right);
    pairs.all(|(left, right)| left.has_type_of(right))
}

fn rows_as_batch(rows: &[Vec<TypedValue>]) -> Result<RecordBatch, MySqlError> {
    let first = rows.first().map_or(&[][..], Vec::as_slice);
    let mut fields = Vec::with_capacity(first.len());
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(first.len());
    for (column, typed) in first.iter().enumerate() {
        let values = rows.iter().map(|row| row[column].value.clone());
        let array =
            ScalarValue::iter_to_array(values).map_err(|error| errors::from_plan(&error))?;
        fields.push(typed.field_of(&format!("column_{column}")));
        arrays.push(array);
    }
    batch_of(&Arc::new(Schema::new(fields)), arrays, rows.len())
}

/// The end of a statement that wrote rows; the warnings are filled in when they are counted.
pub(crate) fn with_info(written: Written) -> Outcome {
    let (rows, duplicates) = (written.rows, written.duplicates());
    Outcome::Done {
        affected_rows: written.affected(),
        last_insert_id: written.insert_id,
        warnings: 0,
        info: format!("Records: {rows}  Duplicates: {duplicates}  Warnings: ?"),
    }
}
