//! Expressions over the rows that a key finds: the rest of a condition, and values that depend on
//! the row.
//!
//! Owns such expressions made ready, and what they give for rows. They are computed apart: where a
//! value warns, fails, is long or would be changed on its way into its column, there is none, and
//! the statement goes the long way.
//!
//! ```text
//!   UPDATE t SET c = CONCAT(c, ?) WHERE id = ? AND k > ?
//!                    |                  |          |
//!                    a value            a search   the rest of the condition
//! ```
//!
//! **Cost**: some hundred microseconds when made, some microseconds for the rows of a statement.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::{cast, filter};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use mayfly_exec::batch_of;
use mayfly_sql::change::new_column;
use mayfly_sql::functions::{aside, assignment};
use mayfly_sql::literal::Literal;
use mayfly_sql::long_values::without_long_values;
use mayfly_table::Table;
use mayfly_types::ColumnType;

use super::known::{Assigned, OverRows};
use super::row_expression::{Reads, RowExpression, is_plain_type, slot_name};
use crate::connection::Connection;
use crate::statement::Job;
use crate::statement::rules::ready_over;

/// What expressions give for rows.
pub(super) struct RowValues {
    /// Which rows are meant, unless all are.
    pub(super) stays: Option<BooleanArray>,
    /// What their columns get, in the types of these.
    pub(super) values: Vec<ArrayRef>,
}

impl OverRows {
    /// Makes expressions ready: conditions, all of which must be true, and values with the places
    /// of their columns. `constants` are those of the statement.
    pub(super) fn of(
        job: &Job,
        table: &Table,
        conditions: Vec<RowExpression>,
        values: Vec<(usize, RowExpression)>,
        constants: &[Option<Literal<'static>>],
    ) -> Option<OverRows> {
        let mut reads = Reads::default();
        let read = conditions
            .iter()
            .chain(values.iter().map(|(_, value)| value));
        read.for_each(|expression| reads.add(&expression.reads));
        let columns = table.columns();
        let new = |place: &usize| {
            columns[*place]
                .field()
                .with_name(new_column(&columns[*place].name))
        };
        let fields = { reads.columns.iter() }
            .map(|place| columns[*place].field())
            .chain(reads.new_columns.iter().map(new))
            .chain(
                reads
                    .slots
                    .iter()
                    .map(|(place, of_type)| Field::new(slot_name(*place), of_type.clone(), true)),
            );
        let fields = fields.map(|field| field.with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let condition = conditions
            .into_iter()
            .map(|condition| nested(condition.expr));
        let condition = condition.reduce(|left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        });
        let has_condition = condition.is_some();
        let condition = condition.map(|condition| Expr::IsTrue(Box::new(nested(condition))));
        let (places, exprs): (Vec<usize>, Vec<Expr>) = { values.into_iter() }
            .map(|(place, value)| (place, value.expr))
            .unzip();
        let exprs = condition.into_iter().chain(exprs).collect();
        let pipes_as_concat = job.connection.values.lock().pipes_as_concat;
        // What is told of a constant is told once, and would not be told again.
        let (ready, warned) = aside(|| ready_over(job, &schema, exprs, pipes_as_concat));
        let mut ready = ready.ok().filter(|_| warned.is_empty())?.into_iter();
        let condition = ready.by_ref().take(usize::from(has_condition)).next();
        let mut assigned = Vec::with_capacity(places.len());
        for (place, value) in places.into_iter().zip(ready) {
            let column = &columns[place];
            if !is_plain_type(&column.column_type) {
                return None;
            }
            assigned.push(Assigned {
                value,
                field: Arc::clone(&table.schema().fields()[place]),
                column_type: column.column_type.clone(),
                is_nullable: column.is_nullable,
                convert: assignment(column.column_type.clone(), &column.name, true),
            });
        }
        let fixed = reads.fixed.iter();
        let fixed = fixed.map(|place| Some((*place, constants.get(*place)?.clone()?)));
        let connection = &job.connection;
        let variables = connection.local().variables.version();
        Some(OverRows {
            columns: reads.columns.into_iter().collect(),
            new_columns: reads.new_columns.into_iter().collect(),
            slots: reads.slots,
            fixed: fixed.collect::<Option<_>>()?,
            schema,
            condition,
            values: assigned,
            options: Arc::clone(connection.state().ok()?.config_options()),
            variables,
        })
    }

    /// Whether these would be made in the same way now, for these constants.
    pub(super) fn are_of(
        &self,
        connection: &Connection,
        constants: &[Option<Literal<'_>>],
    ) -> bool {
        let is_same = |(place, value): &(usize, Literal<'_>)| {
            constants.get(*place).and_then(Option::as_ref) == Some(value)
        };
        self.fixed.iter().all(is_same) && connection.local().variables.version() == self.variables
    }

    /// What they give for rows, of which the columns are given that are read, and for the row that
    /// would have come; `None` where that takes the long way.
    pub(super) fn given(
        &self,
        rows: &[ArrayRef],
        row_count: usize,
        new_row: &[ArrayRef],
        constants: &[Option<Literal<'_>>],
    ) -> Option<RowValues> {
        let mut arrays = rows.to_vec();
        arrays.extend(
            self.new_columns
                .iter()
                .map(|place| Arc::clone(&new_row[*place])),
        );
        for (place, of_type) in &self.slots {
            let value = constants.get(*place)?.as_ref()?.value()?;
            if value.data_type() != *of_type {
                return None;
            }
            arrays.push(value.to_array_of_size(row_count).ok()?);
        }
        let compute = || without_long_values(|| self.compute(arrays, row_count));
        let (given, warned) = aside(compute);
        given.ok().flatten().filter(|_| warned.is_empty())
    }

    fn compute(&self, mut arrays: Vec<ArrayRef>, row_count: usize) -> Result<Option<RowValues>> {
        let mut stays = None;
        let mut count = row_count;
        if let Some(condition) = &self.condition {
            let rows = batch_of(&self.schema, arrays.clone(), row_count)?;
            let is_true = cast(&condition.values(&rows)?, &DataType::Boolean)?;
            let is_true = is_true.as_boolean();
            let found: BooleanArray = is_true.iter().map(|is| Some(is == Some(true))).collect();
            count = found.true_count();
            if count < row_count {
                // No value is asked for where a row is not meant: it might warn.
                for array in &mut arrays {
                    *array = filter(array, &found)?;
                }
                stays = Some(found);
            }
        }
        let mut values = Vec::with_capacity(self.values.len());
        if count > 0 && !self.values.is_empty() {
            let rows = batch_of(&self.schema, arrays, count)?;
            for assigned in &self.values {
                match assigned.value_of(assigned.value.values(&rows)?, &self.options)? {
                    Some(value) => values.push(value),
                    None => return Ok(None),
                }
            }
        }
        Ok(Some(RowValues { stays, values }))
    }
}

impl Assigned {
    /// Values in the type of the column; `None` where one is NULL that may not be.
    fn value_of(&self, values: ArrayRef, options: &Arc<ConfigOptions>) -> Result<Option<ArrayRef>> {
        let field = self.value.field();
        let is_same = values.data_type() == self.field.data_type()
            && ColumnType::from_arrow(field) == self.column_type;
        let rows = values.len();
        let values = match is_same {
            true => values,
            false => {
                let arguments = ScalarFunctionArgs {
                    args: vec![ColumnarValue::Array(values)],
                    arg_fields: vec![Arc::clone(field)],
                    number_rows: rows,
                    return_field: Arc::clone(&self.field),
                    config_options: Arc::clone(options),
                };
                self.convert.invoke_with_args(arguments)?.into_array(rows)?
            }
        };
        let fits = self.is_nullable || values.null_count() == 0;
        Ok(fits.then_some(values))
    }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}
