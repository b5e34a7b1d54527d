//! When a key is asked for what is known once the plan runs: the value of a subquery, as in
//! `id = (SELECT MAX(id) FROM t)`, or of the outer row that the plan runs for.
//!
//! Owns: the reading of a filter whose constants are known once the plan runs. Never: computes
//! them, or takes a value that may warn for one: it is asked for again by the filter.

use std::ops::Bound;
use std::sync::Arc;

use arrow::array::{ArrayRef, NullArray};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use mayfly_table::Table;

use super::Access;
use super::choice::{searches, wanted};
use super::join_key::{looked_up, rows_each};
use super::late_scan::{Condition, LateScan};
use super::limits::ROWS_FEW;
use super::path::{Path, with_scan};
use super::scan::{Found, KeyScan};
use crate::filter::expression_warns;
use crate::slots::is_of_outer_row;
use crate::table_scan::TableScan;

/// A range is thought to find one of so many rows.
const ROWS_PER_RANGE: u64 = 3;

/// The filter over a scan that asks a key when it runs; `None` where no key serves.
///
/// # Errors
/// If an index cannot be read.
pub(super) fn replace(
    plan: &Arc<dyn ExecutionPlan>,
    filter: &FilterExec,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let found = key_scan(filter.input());
    let scanned = match found {
        Some(found) => match found.source() {
            Some(source) => {
                let scan = TableScan::new(source.clone(), None, 1);
                with_scan(filter.input(), Arc::new(scan))?
            }
            None => return Ok(None),
        },
        None => Arc::clone(filter.input()),
    };
    let Some(path) = Path::of(&scanned).filter(|path| {
        let keys = &path.source.table.definition().keys;
        !keys.is_empty() && !path.has_groups()
    }) else {
        return Ok(None);
    };
    // A projection below may have computed a value for two that ask for it.
    let conditions: Vec<Condition> = split_conjunction(filter.predicate())
        .into_iter()
        .filter_map(|condition| compared(&path, condition))
        .filter(|condition| waits(&condition.value))
        .collect();
    if conditions.is_empty() {
        return Ok(None);
    }
    let source = path.source.clone();
    let Some((key, rows)) = thought(&source.table, &source.filters, &conditions)? else {
        return Ok(None);
    };
    // Where constants have found fewer rows, these are known already.
    if found.is_some_and(|found| found.row_count() as u64 <= rows.max(ROWS_FEW)) {
        return Ok(None);
    }
    let scan = LateScan::of_values(key, rows, conditions, path.scan, source);
    with_scan(plan, Arc::new(scan)).map(Some)
}

/// The rows that constants have found, where all rows of a plan are some of these.
fn key_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<&KeyScan> {
    let mut plan = plan;
    while let [input] = plan.children().as_slice() {
        plan = input;
    }
    plan.downcast_ref::<KeyScan>()
}

/// The comparison of a column with a value that reads no column.
fn compared(path: &Path<'_>, condition: &Arc<dyn PhysicalExpr>) -> Option<Condition> {
    let table = &path.source.table;
    comparison(
        table,
        condition,
        |value| path.expression(value),
        |column| path.column_or_cast(column),
    )
}

/// The comparisons in a condition of columns of a table with values that are known once the plan
/// runs; `column_or_cast` tells which column an expression is, and to which type it is cast.
pub(crate) fn waiting_conditions(
    table: &Table,
    condition: &Arc<dyn PhysicalExpr>,
    column_or_cast: impl Fn(&Arc<dyn PhysicalExpr>) -> Option<(usize, Option<DataType>)>,
) -> Vec<Condition> {
    let conditions = split_conjunction(condition).into_iter();
    let conditions = conditions
        .filter_map(|of| comparison(table, of, |value| Some(Arc::clone(value)), &column_or_cast));
    conditions
        .filter(|condition| waits(&condition.value))
        .collect()
}

/// Whether an expression has the value of a subquery or of an outer row in it.
fn waits(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let is_of_row = |part: &Arc<dyn PhysicalExpr>| {
        let call = part.downcast_ref::<ScalarFunctionExpr>();
        call.is_some_and(|call| is_of_outer_row(call.fun()))
    };
    let waits = expr.exists(|part| Ok(part.is::<ScalarSubqueryExpr>() || is_of_row(part)));
    waits.unwrap_or(false)
}

fn comparison(
    table: &Table,
    condition: &Arc<dyn PhysicalExpr>,
    expression: impl Fn(&Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>>,
    column_or_cast: impl Fn(&Arc<dyn PhysicalExpr>) -> Option<(usize, Option<DataType>)>,
) -> Option<Condition> {
    let comparison = condition.downcast_ref::<BinaryExpr>()?;
    let operator = *comparison.op();
    let is_known = matches!(
        operator,
        Operator::Eq
            | Operator::IsNotDistinctFrom
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
    );
    if !is_known {
        return None;
    }
    let (left, right) = (comparison.left(), comparison.right());
    let condition = |column: &Arc<dyn PhysicalExpr>, value: &Arc<dyn PhysicalExpr>, operator| {
        let value = expression(value).filter(|value| is_silent(value, table))?;
        let value_type = value.data_type(table.schema()).ok()?;
        let (column, cast) = column_or_cast(column)?;
        // Values of a column are compared as they are, or as wider integers.
        let column = match cast {
            None => column,
            Some(cast) => looked_up((column, Some(cast)), table, &value_type)?,
        };
        Some(Condition {
            column,
            operator,
            value,
        })
    };
    condition(left, right, operator)
        .or_else(|| condition(right, left, operator.swap().unwrap_or(operator)))
}

/// Whether an expression reads no column, and warns of nothing. One that fails does so again where
/// the filter asks for it.
fn is_silent(expr: &Arc<dyn PhysicalExpr>, table: &Table) -> bool {
    let reads_column = expr.exists(|part| Ok(part.is::<Column>()));
    !reads_column.unwrap_or(true) && !expression_warns(expr, table.schema())
}

/// The key that is thought to find the fewest rows, and how many those are.
fn thought(
    table: &Arc<Table>,
    filters: &[Expr],
    conditions: &[Condition],
) -> Result<Option<(Found, u64)>> {
    let mut all = wanted(table, filters);
    let value: ArrayRef = Arc::new(NullArray::new(1));
    for condition in conditions {
        let of_column = all.entry(condition.column).or_default();
        let bound = Some(Bound::Included(Arc::clone(&value)));
        match condition.operator {
            Operator::Eq | Operator::IsNotDistinctFrom => {
                of_column.equal = Some(vec![Arc::clone(&value)]);
            }
            Operator::Lt | Operator::LtEq => of_column.high = bound,
            _ => of_column.low = bound,
        }
    }
    let mut best: Option<(Found, u64)> = None;
    for (index, key) in table.definition().keys.iter().enumerate() {
        let Some((_, parts, access)) = searches(table, index, &all) else {
            continue;
        };
        // A key that asks for none of the values has been asked already.
        let asks = |condition: &Condition| {
            let mut parts = key.parts.iter().take(parts);
            parts.any(|part| part.column == condition.column)
        };
        if !conditions.iter().any(asks) {
            continue;
        }
        let rows = match access {
            Access::Range | Access::Index => table.row_count() / ROWS_PER_RANGE,
            _ => rows_each(table, index, key, parts)?,
        };
        if best.as_ref().is_none_or(|(_, before)| rows < *before) {
            let found = Found {
                table: Arc::clone(table),
                key: index,
                parts,
                access,
                is_covered: false,
            };
            best = Some((found, rows.max(1)));
        }
    }
    Ok(best)
}
