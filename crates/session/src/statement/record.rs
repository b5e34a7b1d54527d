//! A row of VALUES whose expressions name columns of the table.
//!
//! Values are computed in the order in which they are written. A name means what the column has by
//! then: the value that stands before, as the column keeps it, else the default.

use arrow::array::ArrayRef;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, Value};
use mayfly_sql::bindings;
use mayfly_sql::change::{self, Mention};
use mayfly_sql::compute::TypedValue;
use mayfly_sql::names_of_changes::{self, RowColumns};
use mayfly_table::{Column, Table};
use mayfly_types::MySqlError;

use super::Job;
use super::defaults::{Fallback, zero};
use super::evaluate::names_columns;
use crate::errors;
use crate::render;

/// What the columns of a row have so far.
pub(crate) struct Record<'a> {
    table: &'a Table,
    mention: &'a Mention,
    columns: RowColumns,
    values: Vec<Expr>,
}

/// Whether an expression may read columns of the row, itself or in subqueries.
pub(crate) fn reads(expression: &Expr, table: &Table) -> bool {
    let definition = table.definition();
    let is_of_row = &mut |of: Option<&str>, name: &str| {
        of.is_none_or(|of| of == table.name()) && definition.column(name).is_some()
    };
    names_columns(expression) || names_of_changes::named_in_subqueries(expression, is_of_row)
}

impl Record<'_> {
    /// A row of defaults; what is computed for each row is not known yet.
    pub(crate) fn begin<'a>(
        table: &'a Table,
        mention: &'a Mention,
    ) -> Result<Record<'a>, MySqlError> {
        let values = table.columns().iter().map(|column| {
            let value = match Fallback::of(column)? {
                Fallback::Value(value) => value,
                Fallback::Expression(_) | Fallback::Missing => ScalarValue::Null,
            };
            kept(column, &value.into())
        });
        Ok(Record {
            table,
            mention,
            columns: RowColumns::of(table.columns().iter().map(|column| &column.name)),
            values: values.collect::<Result<_, _>>()?,
        })
    }

    /// A column gets a value.
    pub(crate) fn set(&mut self, column: usize, value: &TypedValue) -> Result<(), MySqlError> {
        self.values[column] = kept(&self.table.columns()[column], value)?;
        Ok(())
    }

    /// Puts the values of columns in the places of their names.
    ///
    /// # Errors
    /// 1054 for a name with another database, and others as of a query.
    pub(crate) async fn fill(&self, job: &Job, expression: &mut Expr) -> Result<(), MySqlError> {
        let table = (self.table, self.mention);
        job.settle_names_of(expression, table, None, &self.columns)
            .await?;
        for (column, value) in self.table.columns().iter().zip(&self.values) {
            change::substitute(expression, self.table.name(), &column.name, value);
        }
        Ok(())
    }
}

/// A value as a column keeps it.
fn kept(column: &Column, typed: &TypedValue) -> Result<Expr, MySqlError> {
    let value = match typed.value.is_null() && !column.is_nullable {
        true => written(
            &zero(&column.column_type)
                .unwrap_or(ScalarValue::Null)
                .into(),
        )?,
        false => written(typed)?,
    };
    Ok(change::kept_as(value, &column.column_type))
}

/// A value as it would be written.
fn written(typed: &TypedValue) -> Result<Expr, MySqlError> {
    let of = typed.column_type();
    if typed.value.is_null() || (typed.field.is_none() && !of.is_temporal()) {
        return Ok(bindings::literal(&typed.value));
    }
    let value = match of.is_temporal() {
        true => {
            let array = typed.value.to_array();
            let array: ArrayRef = array.map_err(|error| errors::from_plan(&error))?;
            let text = render::cell(&array, 0, &of).unwrap_or_default();
            Expr::Value(Value::SingleQuotedString(text).into())
        }
        false => bindings::literal(&typed.value),
    };
    // To a column of numbers it is another number than its text.
    Ok(change::kept_as(value, &of))
}
