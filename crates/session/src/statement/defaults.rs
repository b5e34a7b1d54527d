//! What a column gets when nothing is given: its DEFAULT clause, the word DEFAULT in the place of a
//! value, and `DEFAULT(column)` in an expression.
//!
//! A constant is the same in all rows of a statement; an expression is computed for each row, and
//! may name other columns of it.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::UInt64Type;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, Value};
use mayfly_sql::change::{self, Mention};
use mayfly_sql::statement::{InsertSource, SetColumn, Statement};
use mayfly_sql::{declared, defaults, parse};
use mayfly_table::Column;
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::Job;
use super::evaluate::{literal, number_of_bits};
use crate::render;

pub(crate) use mayfly_sql::functions::zero;

/// What stands for nothing in a column.
#[derive(Clone)]
pub(crate) enum Fallback {
    /// The same in each row.
    Value(ScalarValue),
    /// Computed for each row.
    Expression(Box<Expr>),
    /// Something must be given.
    Missing,
}

impl Fallback {
    /// That of a column. One that is counted up or computed gets NULL, from which it is made what
    /// it will be.
    pub(crate) fn of(column: &Column) -> Result<Fallback, MySqlError> {
        if column.is_auto_increment || column.generated.is_some() {
            return Ok(Fallback::Value(ScalarValue::Null));
        }
        let Some(text) = &column.default else {
            return Ok(match &column.column_type {
                _ if column.is_nullable => Fallback::Value(ScalarValue::Null),
                // The first word needs no DEFAULT.
                ColumnType::Enum(words) => match words.first() {
                    Some(word) => Fallback::Value(word.clone().into()),
                    None => Fallback::Missing,
                },
                _ => Fallback::Missing,
            });
        };
        let expression = parse::parse_expression(text)?;
        let number = number_of_bits(&expression, column);
        let number = number.map(|number| ScalarValue::UInt64(Some(number)));
        Ok(match number.or_else(|| literal(&expression)) {
            Some(value) => Fallback::Value(value),
            None => Fallback::Expression(Box::new(expression)),
        })
    }
}

impl Job {
    /// Puts defaults in the places of `DEFAULT(column)` in a statement.
    pub(crate) fn name_defaults(&self, statement: &mut Statement) -> Result<(), MySqlError> {
        if !defaults::may_call(&self.running.text) {
            return Ok(());
        }
        let database = self.current_database();
        let database = database.as_deref();
        let mut lookup = |mention: &Mention, column: &str| self.default_of(mention, column);
        let lookup = &mut lookup;
        let mut values: Vec<&mut Expr> = Vec::new();
        let tables = match statement {
            Statement::Explain(explain) => return self.name_defaults(&mut explain.statement),
            Statement::Query(query) => return defaults::in_query(query, database, lookup),
            Statement::CreateTable(create) => {
                let query = create.query.as_mut();
                return query.map_or(Ok(()), |query| defaults::in_query(query, database, lookup));
            }
            Statement::Insert(insert) => {
                match &mut insert.source {
                    InsertSource::Query(query) => defaults::in_query(query, database, lookup)?,
                    InsertSource::Values(rows) => {
                        values.extend(rows.iter_mut().flatten().flatten());
                    }
                }
                values.extend(insert.on_duplicate.iter_mut().filter_map(value_of));
                vec![Mention::of(insert.table.clone())]
            }
            Statement::LoadData(load) => {
                values.extend(load.assignments.iter_mut().filter_map(value_of));
                vec![Mention::of(load.table.clone())]
            }
            Statement::Update(update) => {
                values.extend(update.assignments.iter_mut().filter_map(value_of));
                values.extend(&mut update.choice.condition);
                values.extend(update.choice.order_by.iter_mut().map(|by| &mut by.expr));
                change::mentions(&mut update.choice.from)
            }
            Statement::Delete(delete) => {
                values.extend(&mut delete.choice.condition);
                values.extend(delete.choice.order_by.iter_mut().map(|by| &mut by.expr));
                change::mentions(&mut delete.choice.from)
            }
            _ => return Ok(()),
        };
        let mut values = values.into_iter();
        values.try_for_each(|value| defaults::in_expression(value, &tables, database, lookup))
    }

    /// The default of a column as an expression, if the table has such a column.
    fn default_of(&self, mention: &Mention, name: &str) -> Result<Option<Expr>, MySqlError> {
        // A name that is none of a table is one of a common table expression.
        let Ok(table) = self.table(&mention.table) else {
            return Ok(None);
        };
        let Some(place) = table.definition().column(name) else {
            return Ok(None);
        };
        let column = &table.columns()[place];
        let default = default_expression(column, &mention.alias)?;
        Ok(Some(change::kept_as(default, &column.column_type)))
    }
}

fn value_of(set: &mut SetColumn) -> Option<&mut Expr> {
    set.value.as_mut()
}

/// The text of a value that a column keeps, as its default.
pub(crate) fn constant(value: &ArrayRef, of: &ColumnType) -> Option<String> {
    let cell = render::cell(value, 0, of);
    match of {
        ColumnType::Bit { .. } => {
            let bits = value.as_primitive_opt::<UInt64Type>()?;
            Some(format!("b'{:b}'", bits.value(0)))
        }
        of if of.is_numeric() => cell,
        _ => cell.map(|text| declared::written(&Expr::Value(text_value(text).into()))),
    }
}

fn text_value(text: String) -> Value {
    Value::SingleQuotedString(text)
}

/// The default of a column as an expression over the rows of its table.
pub(crate) fn default_expression(column: &Column, alias: &str) -> Result<Expr, MySqlError> {
    let text = match Fallback::of(column)? {
        Fallback::Missing => {
            let code = ErrorCode::NoDefaultForField;
            return Err(MySqlError::new(code, &[&column.name]));
        }
        Fallback::Expression(expression) => return Ok(of_table(*expression, alias)),
        Fallback::Value(_) if column.is_auto_increment => "0",
        Fallback::Value(ScalarValue::UInt64(Some(number))) => {
            let number = Value::Number(number.to_string(), false);
            return Ok(Expr::Value(number.into()));
        }
        Fallback::Value(ScalarValue::Utf8(Some(word))) if column.default.is_none() => {
            return Ok(Expr::Value(text_value(word).into()));
        }
        Fallback::Value(_) => column.default.as_deref().unwrap_or("NULL"),
    };
    parse::parse_expression(text)
}

/// An expression whose columns are those of a table, wherever it stands.
fn of_table(mut expression: Expr, alias: &str) -> Expr {
    for (_, name) in declared::mentions(&expression) {
        let column = change::column(alias, &name);
        change::substitute(&mut expression, alias, &name, &column);
    }
    Expr::Nested(Box::new(expression))
}
