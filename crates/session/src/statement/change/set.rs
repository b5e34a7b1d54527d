//! What an UPDATE writes: the assignments to one table, and the rows that they make.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::kernels::boolean::or;
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{filter, filter_record_batch};
use arrow::datatypes::{Field, FieldRef, Schema, UInt64Type};
use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast;
use mayfly_sql::change::{self, Mention, ROW_ID};
use mayfly_sql::parse;
use mayfly_sql::statement::SetColumn;
use mayfly_table::owned::owned;
use mayfly_table::{Column, Table};
use mayfly_types::MySqlError;

use super::target::{Target, Updated, present};
use crate::errors;
use crate::statement::Job;
use crate::statement::assign::Values;
use crate::statement::batch::batch_of;
use crate::statement::counter::Counter;
use crate::statement::defaults::{Fallback, default_expression};
use crate::statement::evaluate::number_of_bits;

/// Where the new value of a column stands.
enum New {
    /// In this column of the query.
    Value(usize),
    /// It is the column's default.
    Default,
}

/// The assignments of one table.
pub(crate) struct Set {
    /// The column of the query that has the ids; the old values stand behind it.
    first: usize,
    new: Vec<(usize, New)>,
    /// How many of them the statement names; the others follow when one of these differs.
    assigned_count: usize,
    values: Values,
    /// Rows that a join has shown already.
    matched: HashSet<u64>,
    /// The numbers and new values of rows that change one after the other, because some of them may
    /// meet others and are then left as they are; `None` where all change at once.
    pub(super) one_by_one: Option<Vec<(Vec<u64>, RecordBatch)>>,
}

impl Set {
    /// The assignments to one table, by the places of its columns. What a query must read for
    /// them is added to its list.
    pub(crate) async fn begin(
        job: &Job,
        table: &Arc<Table>,
        mention: &Mention,
        assignments: impl Iterator<Item = (&SetColumn, usize)>,
        is_one_table: bool,
        ignore: bool,
        list: &mut Vec<ast::Expr>,
    ) -> Result<Set, MySqlError> {
        let alias = &mention.alias;
        let columns = table.columns();
        let values = Values::begin_all(job, table, ignore).await?;
        let assigned = assigned_values(columns, alias, assignments, is_one_table)?;
        for (column, value) in &assigned {
            if value.is_some() {
                values.refuse_value(*column)?;
            }
        }
        let first = list.len();
        list.push(change::column(alias, ROW_ID));
        let old = columns.iter();
        list.extend(old.map(|column| change::column(alias, &column.name)));
        let mut new = Vec::with_capacity(assigned.len());
        for (column, value) in assigned {
            if columns[column].generated.is_some() {
                continue;
            }
            let value = match value {
                Some(value) => {
                    list.push(value);
                    New::Value(list.len() - 1)
                }
                None => New::Default,
            };
            new.push((column, value));
        }
        let assigned_count = new.len();
        for (place, column) in columns.iter().enumerate() {
            if let Some(now) = &column.on_update
                && new.iter().all(|(assigned, _)| *assigned != place)
            {
                list.push(parse::parse_expression(now)?);
                new.push((place, New::Value(list.len() - 1)));
            }
        }
        let assigned_columns: Vec<usize> = new.iter().map(|(column, _)| *column).collect();
        Ok(Set {
            first,
            new,
            assigned_count,
            values,
            matched: HashSet::new(),
            one_by_one: (ignore && assigns_unique(table, &assigned_columns)).then(Vec::new),
        })
    }

    /// The same assignments, whose rows never change one after the other.
    pub(crate) fn all_at_once(self) -> Set {
        Set {
            one_by_one: None,
            ..self
        }
    }

    /// As [`Values::refuse_null`].
    pub(crate) fn refuse_null(&mut self) {
        self.values.refuse_null();
    }

    /// Whether the statement names a column.
    fn assigns(&self, column: usize) -> bool {
        let mut new = self.new[..self.assigned_count].iter();
        new.any(|(assigned, _)| *assigned == column)
    }

    pub(crate) fn apply(
        &mut self,
        batch: &RecordBatch,
        target: &mut Target,
        is_one_table: bool,
        done: &mut Updated,
    ) -> Result<(), MySqlError> {
        let plan = |error: arrow::error::ArrowError| errors::from_plan(&error.into());
        let ids = batch.column(self.first).as_primitive::<UInt64Type>();
        let batch = if is_one_table {
            batch.clone()
        } else {
            // Each row changes once, by its first partner.
            let is_first = |id: Option<u64>| id.is_some_and(|id| self.matched.insert(id));
            let first: BooleanArray = ids.iter().map(is_first).map(Some).collect();
            filter_record_batch(batch, &first).map_err(plan)?
        };
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        done.matched += rows as u64;
        let table = Arc::clone(target.table());
        let width = table.columns().len();
        let mut arrays: Vec<ArrayRef> = batch.columns()[self.first + 1..][..width].to_vec();
        let schema = batch.schema();
        let mut fields: Vec<FieldRef> = schema.fields()[self.first + 1..][..width].to_vec();
        for (column, new) in &self.new {
            match new {
                New::Value(place) => {
                    arrays[*column] = Arc::clone(batch.column(*place));
                    fields[*column] = Arc::clone(&schema.fields()[*place]);
                }
                New::Default => {
                    // Those that are computed are among the values.
                    let Fallback::Value(value) = self.values.default_of(*column)? else {
                        continue;
                    };
                    arrays[*column] = value
                        .to_array_of_size(rows)
                        .map_err(|error| errors::from_plan(&error))?;
                    let of = arrays[*column].data_type().clone();
                    fields[*column] = Arc::new(Field::new("default", of, true));
                }
            }
        }
        let counted = table.definition().auto_increment();
        let source = batch_of(&Arc::new(Schema::new(fields)), arrays, rows)?;
        let mut new = self.values.assigned(&source)?;
        if let Some(column) = counted.filter(|counted| self.assigns(*counted)) {
            Counter::raise(&table, &new[column]).map_err(plan)?;
        }
        let mut differs = BooleanArray::from(vec![false; rows]);
        for (column, _) in &self.new[..self.assigned_count] {
            let old = batch.column(self.first + 1 + column);
            let differing = distinct(&new[*column], old).map_err(plan)?;
            differs = or(&differs, &differing).map_err(plan)?;
        }
        let mut ids = filter(batch.column(self.first), &differs).map_err(plan)?;
        for column in &mut new {
            *column = filter(column, &differs).map_err(plan)?;
        }
        let (mut changed, stays) = self.values.obeying(new, ids.len())?;
        if let Some(stays) = stays {
            ids = filter(&ids, &stays).map_err(plan)?;
            changed = filter_record_batch(&changed, &stays).map_err(plan)?;
        }
        if let Some(waiting) = &mut self.one_by_one {
            let ids = present(&ids);
            let numbers = target.change.snapshot().numbers(ids.values());
            let numbers = numbers.map_err(|error| errors::from_table(&error))?;
            waiting.push((numbers, compact(&changed)?));
            return Ok(());
        }
        // A row that several rows of a query stand for changes once.
        let replaced = target.change.replace(&present(&ids), &changed);
        done.changed += replaced.map_err(|error| errors::from_table(&error))?;
        Ok(())
    }
}

/// What columns get, by their places; `None` is DEFAULT. The last assignment of a column counts; in
/// an UPDATE of one table it sees what columns got before.
pub(crate) fn assigned_values<'a>(
    columns: &[Column],
    alias: &str,
    assignments: impl Iterator<Item = (&'a SetColumn, usize)>,
    is_one_table: bool,
) -> Result<BTreeMap<usize, Option<ast::Expr>>, MySqlError> {
    let mut assigned: BTreeMap<usize, Option<ast::Expr>> = BTreeMap::new();
    let names = columns.iter().map(|column| &column.name);
    let mut before = change::Assigned::new(alias, names);
    let mut assignments = assignments.peekable();
    while let Some((set, column)) = assignments.next() {
        let of = &columns[column];
        let mut value = match &set.value {
            None => computed_default(of, alias)?,
            given => given.clone(),
        };
        if let Some(value) = &mut value {
            if let Some(number) = number_of_bits(value, of) {
                let number = ast::Value::Number(number.to_string(), false);
                *value = ast::Expr::Value(number.into());
            }
            before.put_into(value)?;
        }
        if is_one_table && assignments.peek().is_some() {
            let now = match &value {
                Some(value) => value.clone(),
                None => parse::parse_expression(of.default.as_deref().unwrap_or("NULL"))?,
            };
            before.add(&of.name, kept(now, of));
        }
        assigned.insert(column, value);
    }
    Ok(assigned)
}

/// What a column has got where the assignments behind it read it: NULL is the zero of one that
/// takes none.
fn kept(value: ast::Expr, of: &Column) -> ast::Expr {
    match of.is_nullable || of.is_auto_increment {
        true => change::kept_as(value, &of.column_type),
        false => change::kept_or_zero(value, &of.column_type),
    }
}

/// What DEFAULT stands for where it is no constant, or another one than in a new row.
fn computed_default(column: &Column, alias: &str) -> Result<Option<ast::Expr>, MySqlError> {
    let is_computed = matches!(Fallback::of(column)?, Fallback::Expression(_));
    match is_computed || column.is_auto_increment {
        true => default_expression(column, alias).map(Some),
        false => Ok(None),
    }
}

/// Rows in memory of their own: views would pin the pages that they point into.
fn compact(rows: &RecordBatch) -> Result<RecordBatch, MySqlError> {
    let columns = rows.columns().iter().map(owned);
    RecordBatch::try_new(rows.schema(), columns.collect())
        .map_err(|error| errors::from_plan(&error.into()))
}

/// Whether a column of a unique key is among these, or may be computed from them.
pub(crate) fn assigns_unique(table: &Table, columns: &[usize]) -> bool {
    let definition = table.definition();
    let keys = definition.keys.iter();
    let mut parts = keys
        .filter(|key| key.is_unique())
        .flat_map(|key| key.parts.iter());
    let changes =
        |column: usize| columns.contains(&column) || definition.columns[column].generated.is_some();
    parts.any(|part| changes(part.column))
}
