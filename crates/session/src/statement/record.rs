//! A row of VALUES whose expressions name columns of the table.
//!
//! Values are computed in the order in which they are written. A name means what the column has by
//! then: the value that stands before, as the column keeps it, else the default.

use arrow::array::ArrayRef;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, Value};
use mayfly_sql::change::{self, Mention};
use mayfly_sql::{bindings, declared};
use mayfly_table::{Column, Table};
use mayfly_types::{ColumnType, MySqlError};

use super::Job;
use super::assign::zero;
use super::defaults::Fallback;
use crate::errors;
use crate::render;

/// What the columns of a row have so far.
pub(crate) struct Record<'a> {
    table: &'a Table,
    mention: &'a Mention,
    /// The current database.
    database: Option<String>,
    values: Vec<Expr>,
}

/// Whether an expression names columns.
pub(crate) fn names_columns(expression: &Expr) -> bool {
    !declared::mentions(expression).is_empty()
}

impl Record<'_> {
    /// A row of defaults; what is computed for each row is not known yet.
    pub(crate) fn begin<'a>(
        job: &Job,
        table: &'a Table,
        mention: &'a Mention,
    ) -> Result<Record<'a>, MySqlError> {
        let values = table.columns().iter().map(|column| {
            let value = match Fallback::of(column)? {
                Fallback::Value(value) => value,
                Fallback::Expression(_) | Fallback::Missing => ScalarValue::Null,
            };
            kept(column, &value)
        });
        Ok(Record {
            table,
            mention,
            database: job.current_database(),
            values: values.collect::<Result<_, _>>()?,
        })
    }

    /// A column gets a value.
    pub(crate) fn set(&mut self, column: usize, value: &ScalarValue) -> Result<(), MySqlError> {
        self.values[column] = kept(&self.table.columns()[column], value)?;
        Ok(())
    }

    /// Puts the values of columns in the places of their names.
    ///
    /// # Errors
    /// 1054 for a name with another database.
    pub(crate) fn fill(&self, expression: &mut Expr) -> Result<(), MySqlError> {
        change::settle_names_of(expression, self.mention, self.database.as_deref())?;
        for (column, value) in self.table.columns().iter().zip(&self.values) {
            change::substitute(expression, self.table.name(), &column.name, value);
        }
        Ok(())
    }
}

/// A value as a column keeps it.
fn kept(column: &Column, value: &ScalarValue) -> Result<Expr, MySqlError> {
    let value = match value.is_null() && !column.is_nullable {
        true => zero(&column.column_type).unwrap_or(ScalarValue::Null),
        false => value.clone(),
    };
    change::kept_as(written(&value)?, &column.column_type)
}

/// A value as it would be written.
fn written(value: &ScalarValue) -> Result<Expr, MySqlError> {
    let of = ColumnType::from_data_type(&value.data_type());
    if !of.is_temporal() || value.is_null() {
        return Ok(bindings::literal(value));
    }
    let array: ArrayRef = { value.to_array() }.map_err(|error| errors::from_plan(&error))?;
    let text = render::cell(&array, 0, &of).unwrap_or_default();
    Ok(Expr::Value(Value::SingleQuotedString(text).into()))
}
