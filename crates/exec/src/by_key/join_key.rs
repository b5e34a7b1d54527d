//! The key that the equalities of a join ask.
//!
//! Owns: which key that is, and the values that it is asked for. Never: decides whether asking it
//! is worth it.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{JoinSide, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::HashJoinExec;
use mayfly_table::{Key, Table};

use super::choice::Access;
use super::scan::Found;
use crate::error::table_error;

type Expr = Arc<dyn PhysicalExpr>;

/// A key of a table that one side of a join reads.
pub(super) struct JoinKey {
    table: Arc<Table>,
    /// The place of the key in the table's definition.
    pub(super) key: usize,
    /// For each part of the key that is used, which of the equalities it is.
    pub(super) parts: Vec<usize>,
    /// How many rows one outer row finds, about.
    pub(super) rows_each: u64,
}

/// What a key is asked for: expressions over the outer side, and the types of its columns.
#[derive(Clone)]
pub(super) struct KeyValues(Vec<(Expr, DataType)>);

impl JoinKey {
    /// The key of a table that finds the fewest rows for a row of the outer side. `column_or_cast`
    /// knows which column of the table an expression over the other side is, and what it is cast
    /// to.
    ///
    /// # Errors
    /// If an index cannot be read.
    pub(super) fn best(
        join: &HashJoinExec,
        outer: JoinSide,
        table: &Arc<Table>,
        column_or_cast: impl Fn(&Expr) -> Option<(usize, Option<DataType>)>,
    ) -> Result<Option<Self>> {
        let outer_schema = match outer {
            JoinSide::Left => join.left().schema(),
            _ => join.right().schema(),
        };
        let column_of = |pair| {
            let (value, of_inner) = sides(pair, outer);
            let value_type = value.data_type(&outer_schema).ok()?;
            looked_up(column_or_cast(of_inner)?, table, &value_type)
        };
        let columns: Vec<Option<usize>> = join.on().iter().map(column_of).collect();
        let mut best: Option<Self> = None;
        for (index, key) in table.definition().keys.iter().enumerate() {
            let parts = key.parts.iter().map_while(|part| {
                let is_it = |column: &Option<usize>| *column == Some(part.column);
                columns.iter().position(is_it)
            });
            let parts: Vec<usize> = parts.collect();
            if parts.is_empty() {
                continue;
            }
            let rows_each = rows_each(table, index, key, parts.len())?;
            if best.as_ref().is_none_or(|best| rows_each < best.rows_each) {
                best = Some(Self {
                    table: Arc::clone(table),
                    key: index,
                    parts,
                    rows_each,
                });
            }
        }
        Ok(best)
    }

    /// The key, as EXPLAIN shows it.
    pub(super) fn found(&self) -> Found {
        let key = &self.table.definition().keys[self.key];
        let is_whole = key.is_unique() && self.parts.len() == key.parts.len();
        Found {
            table: Arc::clone(&self.table),
            key: self.key,
            parts: self.parts.len(),
            access: if is_whole { Access::EqRef } else { Access::Ref },
            is_covered: false,
        }
    }

    /// What the key is asked for.
    pub(super) fn values(&self, join: &HashJoinExec, outer: JoinSide) -> KeyValues {
        let key = &self.table.definition().keys[self.key];
        let values = key.parts.iter().zip(&self.parts).map(|(part, equality)| {
            let (value, _) = sides(&join.on()[*equality], outer);
            let of_type = self.table.schema().field(part.column).data_type();
            (Arc::clone(value), of_type.clone())
        });
        KeyValues(values.collect())
    }
}

impl KeyValues {
    /// The expressions over the outer side, in the order of the key.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.0.iter().map(|(value, _)| value)
    }

    /// The values for rows of the outer side; one that its column cannot hold becomes NULL, as
    /// which it finds nothing.
    ///
    /// # Errors
    /// If an expression fails.
    pub(super) fn evaluate(&self, outer: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let value = |(value, of_type): &(Expr, DataType)| {
            let value = value.evaluate(outer)?.into_array(outer.num_rows())?;
            Ok(match value.data_type() == of_type {
                true => value,
                false => cast(&value, of_type)?,
            })
        };
        self.0.iter().map(value).collect()
    }
}

/// An equality as the outer side and the other one.
pub(super) fn sides((left, right): &(Expr, Expr), outer: JoinSide) -> (&Expr, &Expr) {
    match outer {
        JoinSide::Left => (left, right),
        _ => (right, left),
    }
}

/// The column of a table that may be looked up, by a value of some type, instead of the column or
/// what it is cast to.
pub(super) fn looked_up(
    (column, cast): (usize, Option<DataType>),
    table: &Table,
    value_type: &DataType,
) -> Option<usize> {
    let of_type = table.schema().field(column).data_type();
    let is_found = match cast {
        // `-0` and `0` are one key, and two values of a hash join.
        None => of_type == value_type && !of_type.is_floating(),
        // An integer that was made wider is equal to what was it before.
        Some(cast) => of_type.is_integer() && cast == *value_type && is_wider(&cast, of_type),
    };
    is_found.then_some(column)
}

/// Whether an integer type holds all values of another one.
fn is_wider(wide: &DataType, narrow: &DataType) -> bool {
    let bits = |of_type: &DataType| of_type.primitive_width().unwrap_or(0);
    let signed = |of_type: &DataType| of_type.is_signed_integer();
    if !wide.is_integer() {
        return false;
    }
    match (signed(wide), signed(narrow)) {
        (true, true) | (false, false) => bits(wide) >= bits(narrow),
        (true, false) => bits(wide) > bits(narrow),
        (false, true) => false,
    }
}

/// How many rows one value of the first parts of a key finds, about.
pub(super) fn rows_each(table: &Table, index: usize, key: &Key, parts: usize) -> Result<u64> {
    if key.is_unique() && parts == key.parts.len() {
        return Ok(1);
    }
    let distinct = table.distinct(index, parts).map_err(table_error)?;
    Ok(table.row_count().div_ceil(distinct.max(1)).max(1))
}
