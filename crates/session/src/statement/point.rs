//! Statements on the rows of one key: no plan, no task, no batch but the rows themselves.
//!
//! Owns the reading of `WHERE a = 1 AND b = 'x'`, where the columns are those of a key and the
//! constants are of their types, so that the index gives the answer alone. Whatever is not exactly
//! that is not answered here, and goes through the planner.
//!
//! **Cost**: a search of the index and a look into one page, some microseconds in all, where a plan
//! takes a millisecond.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, UInt64Array};
use arrow::datatypes::{Field, FieldRef, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SelectItem, SetExpr, TableWithJoins,
};
use mayfly_exec::key_value;
use mayfly_sql::change::{mentions, only_table};
use mayfly_sql::parse;
use mayfly_sql::statement::{Delete, RowChoice, Statement, Update};
use mayfly_table::{Column, Search, Table, TableSnapshot};
use mayfly_types::MySqlError;

use super::Job;
use super::change::{Set, Target, Updated, deleted};
use super::evaluate::literal;
use crate::errors;
use crate::outcome::Outcome;

/// Most rows that are handled here: more are worth a plan.
const ROWS_MAX: usize = 64;

/// `SELECT` without anything: what a plain one has besides its list, its table and its condition.
static PLAIN: LazyLock<Option<Query>> = LazyLock::new(|| {
    let (statement, _) = parse::parse("SELECT 1").ok()?;
    match statement {
        Statement::Query(mut query) => {
            take_parts(&mut query)?;
            Some(*query)
        }
        _ => None,
    }
});

/// The rows that a key finds.
struct Point {
    table: Arc<Table>,
    search: Search,
}

impl Job {
    /// The answer of a plain SELECT by key; `None` for any other query.
    pub(crate) fn query_by_key(&self, query: &Query) -> Result<Option<Outcome>, MySqlError> {
        let SetExpr::Select(select) = query.body.as_ref() else {
            return Ok(None);
        };
        if select.from.len() != 1 || select.selection.is_none() {
            return Ok(None);
        }
        let Some((point, alias)) = self.point(&select.from, select.selection.as_ref()) else {
            return Ok(None);
        };
        let Some(columns) = listed(&select.projection, &point.table, &alias) else {
            return Ok(None);
        };
        if !is_plain(query)
            || self.connection.local().variables.number("sql_select_limit") != u64::MAX
        {
            return Ok(None);
        }
        let Some((snapshot, ids)) = point.rows()? else {
            return Ok(None);
        };
        let rows = snapshot
            .rows(&ids, Some(&columns))
            .map_err(|error| errors::from_table(&error))?;
        self.connection.local().calculated_rows = None;
        Ok(Some(Outcome::ready(rows)))
    }

    /// How many rows a plain DELETE by key removed; `None` for any other one.
    pub(crate) fn delete_by_key(&self, delete: &Delete) -> Result<Option<u64>, MySqlError> {
        let Some((point, _)) = self.chosen(&delete.choice) else {
            return Ok(None);
        };
        let mut from = delete.choice.from.clone();
        deleted(&mentions(&mut from), &delete.targets)?;
        let mut change = point.table.begin_change();
        let Some((_, ids)) = point.rows()? else {
            return Ok(None);
        };
        change.remove(&UInt64Array::from(ids));
        let removed = change.removed();
        let table = |error: mayfly_table::Error| errors::from_table(&error);
        self.before_change(&point.table)?;
        change.commit().map_err(table)?;
        self.changed_rows(&point.table, removed);
        Ok(Some(removed))
    }

    /// What a plain UPDATE by key with constant values did; `None` for any other one.
    pub(crate) async fn update_by_key(
        &self,
        update: &Update,
    ) -> Result<Option<Updated>, MySqlError> {
        let Some((point, alias)) = self.chosen(&update.choice) else {
            return Ok(None);
        };
        let mut values = Vec::with_capacity(update.assignments.len());
        for set in &update.assignments {
            let is_other = set.table.as_ref().is_some_and(|table| *table != alias);
            let value = set.value.as_ref().and_then(literal);
            let column = point.table.definition().column(&set.column);
            match (column, value) {
                (Some(column), Some(value)) if !is_other => values.push((column, value)),
                _ => return Ok(None),
            }
        }
        let mut columns: Vec<usize> = values.iter().map(|(column, _)| *column).collect();
        columns.sort_unstable();
        columns.dedup();
        let mut all = point.table.columns().iter();
        let has_more = all.any(|column| column.on_update.is_some());
        if update.ignore || has_more || columns.len() < values.len() {
            return Ok(None);
        }
        let change = point.table.begin_change();
        let Some((snapshot, ids)) = point.rows()? else {
            return Ok(None);
        };
        let mut done = Updated::default();
        let columns = values.iter().map(|(column, _)| *column);
        let mut set = Set::of_values(self, &point.table, columns).await?;
        let mut target = Target::unnamed(change);
        if !ids.is_empty() {
            let batch = pairs(&snapshot, ids, values)?;
            set.apply(&batch, &mut target, true, &mut done)?;
        }
        self.before_change(&point.table)?;
        let committed = target.change.commit();
        committed.map_err(|error| errors::from_table(&error))?;
        self.changed_rows(&point.table, done.changed);
        Ok(Some(done))
    }

    fn chosen(&self, choice: &RowChoice) -> Option<(Point, String)> {
        if !choice.order_by.is_empty() || choice.limit.is_some() {
            return None;
        }
        let (point, alias) = self.point(&choice.from, choice.condition.as_ref())?;
        // Shared tables take turns, which is the business of the long way.
        let is_own = self.connection.local().temporary.has(&point.table);
        is_own.then_some((point, alias))
    }

    /// The search of a condition on one table, and what its columns are qualified with.
    fn point(&self, from: &[TableWithJoins], condition: Option<&Expr>) -> Option<(Point, String)> {
        let mention = only_table(from)?;
        let table = self.table(&mention.table).ok()?;
        if table.definition().keys.is_empty() {
            return None;
        }
        let mut equal = Vec::new();
        read(condition?, &table, &mention.alias, &mut equal)?;
        let search = searched(&table, equal)?;
        Some((Point { table, search }, mention.alias))
    }
}

impl Point {
    /// The rows; `None` when they are many.
    fn rows(&self) -> Result<Option<(TableSnapshot, Vec<u64>)>, MySqlError> {
        let table = |error: mayfly_table::Error| errors::from_table(&error);
        let searches = std::slice::from_ref(&self.search);
        let found = self.table.search(searches, ROWS_MAX).map_err(table)?;
        let Some((snapshot, numbers)) = found else {
            return Ok(None);
        };
        let ids = snapshot.locate(numbers).map_err(table)?;
        Ok(Some((snapshot, ids)))
    }
}

/// Reads `column = constant`, joined by AND; `None` for anything else.
fn read(
    condition: &Expr,
    table: &Table,
    alias: &str,
    equal: &mut Vec<(usize, ArrayRef)>,
) -> Option<()> {
    let Expr::BinaryOp { left, op, right } = condition else {
        return match condition {
            Expr::Nested(inner) => read(inner, table, alias, equal),
            _ => None,
        };
    };
    if *op == BinaryOperator::And {
        read(left, table, alias, equal)?;
        return read(right, table, alias, equal);
    }
    if *op != BinaryOperator::Eq {
        return None;
    }
    let (column, value) = match column_of(left, table, alias) {
        Some(column) => (column, right),
        None => (column_of(right, table, alias)?, left),
    };
    let value = constant(&literal(value)?, &table.columns()[column])?;
    equal.push((column, value));
    Some(())
}

fn column_of(expr: &Expr, table: &Table, alias: &str) -> Option<usize> {
    match expr {
        Expr::Identifier(ident) => table.definition().column(&ident.value),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [of, ident] if of.value == alias => table.definition().column(&ident.value),
            _ => None,
        },
        _ => None,
    }
}

/// A constant as a value of the column, where both are of one kind and nothing is lost.
fn constant(value: &ScalarValue, column: &Column) -> Option<ArrayRef> {
    let fits = match value {
        ScalarValue::Int64(Some(_)) | ScalarValue::UInt64(Some(_)) => {
            column.column_type.is_integer()
        }
        ScalarValue::Utf8(Some(_)) => {
            use mayfly_types::ColumnType::{Char, Text, VarChar};
            matches!(column.column_type, Char { .. } | VarChar { .. } | Text(_))
        }
        _ => false,
    };
    if !fits {
        return None;
    }
    key_value(value, &column.column_type.data_type())
}

/// The key whose columns, or first columns, are these.
fn searched(table: &Table, mut equal: Vec<(usize, ArrayRef)>) -> Option<Search> {
    let mut columns: Vec<usize> = equal.iter().map(|(column, _)| *column).collect();
    columns.sort_unstable();
    columns.dedup();
    if columns.len() < equal.len() {
        // Two conditions on one column.
        return None;
    }
    for (place, key) in table.definition().keys.iter().enumerate() {
        let Some(parts) = key.parts.get(..equal.len()) else {
            continue;
        };
        let mut parts = parts.iter().map(|part| (part.column, part.prefix));
        let answers = parts.all(|(column, prefix)| {
            prefix.is_none() && equal.iter().any(|(found, _)| *found == column)
        });
        if answers {
            let order = |column: usize| key.parts.iter().position(|part| part.column == column);
            equal.sort_by_key(|(column, _)| order(*column));
            let values: Vec<ArrayRef> = equal.into_iter().map(|(_, value)| value).collect();
            return Some(Search::equal(place, values));
        }
    }
    None
}

/// The columns of a list of `*` or of names that are spelled as in the table.
fn listed(list: &[SelectItem], table: &Table, alias: &str) -> Option<Vec<usize>> {
    let columns = table.columns();
    let mut places = Vec::with_capacity(list.len());
    for item in list {
        match item {
            SelectItem::Wildcard(options) if options == &Default::default() => {
                let visible = columns.iter().enumerate();
                let visible = visible.filter(|(_, column)| !column.is_invisible);
                places.extend(visible.map(|(place, _)| place));
            }
            SelectItem::UnnamedExpr(expr) => {
                let place = column_of(expr, table, alias)?;
                let name = match expr {
                    Expr::Identifier(ident) => &ident.value,
                    Expr::CompoundIdentifier(parts) => &parts.last()?.value,
                    _ => return None,
                };
                if *name != columns[place].name {
                    return None;
                }
                places.push(place);
            }
            _ => return None,
        }
    }
    Some(places)
}

/// Whether a query has no more than a list, a table and a condition.
fn is_plain(query: &Query) -> bool {
    let mut rest = query.clone();
    take_parts(&mut rest).is_some() && PLAIN.as_ref() == Some(&rest)
}

/// Takes out of a query what plain queries differ in.
fn take_parts(query: &mut Query) -> Option<()> {
    let SetExpr::Select(select) = query.body.as_mut() else {
        return None;
    };
    let select: &mut Select = select;
    select.projection.clear();
    select.from.clear();
    select.selection = None;
    Some(())
}

/// The rows as [`Set::apply`] takes them: ids, old values, and the constants behind them.
fn pairs(
    snapshot: &TableSnapshot,
    ids: Vec<u64>,
    values: Vec<(usize, ScalarValue)>,
) -> Result<RecordBatch, MySqlError> {
    let old = snapshot
        .rows(&ids, None)
        .map_err(|error| errors::from_table(&error))?;
    let rows = ids.len();
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(ids))];
    arrays.extend_from_slice(old.columns());
    let id_type = arrays[0].data_type().clone();
    let mut fields: Vec<FieldRef> = vec![Arc::new(Field::new("id", id_type, false))];
    fields.extend(old.schema_ref().fields().iter().cloned());
    for (_, value) in values {
        let array = value
            .to_array_of_size(rows)
            .map_err(|error| errors::from_plan(&error))?;
        let of_type = array.data_type().clone();
        fields.push(Arc::new(Field::new("value", of_type, true)));
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|error| errors::from_plan(&error.into()))
}
