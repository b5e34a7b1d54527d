//! MIN and MAX of all rows by the rows at the ends of keys.
//!
//! Owns: which aggregates want no more than the first rows in some orders, and the plan that gives
//! them these. Never: aggregates: the least value of all rows is the least one of any of them that
//! the first row is among, so the stock operator runs over the rows that are left. Never: walks
//! where a row may warn: a walk that is given up would warn of its rows, and the scan behind it
//! again.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};

use super::in_order::{Ordered, OrderedKey, is_worth};
use super::limits::rows_by_key;
use super::order::{KeyOrder, Spec};
use super::pipeline::Pipeline;
use super::stock::in_one_partition;
use crate::filter::may_warn;
use crate::plan_node::over_input;
use crate::source::Source;

/// So few rows are scanned as soon as a key is searched.
const SCANNED_ROWS: u64 = 1024;

/// The expressions over its input that an aggregate wants the least or the greatest value of, each
/// with the order whose first row has it; `None` if it wants anything else.
pub(crate) fn extremes(
    aggregate: &AggregateExec,
) -> Option<Vec<(Arc<dyn PhysicalExpr>, SortOptions)>> {
    let is_of_rows = aggregate.mode().input_mode() == AggregateInputMode::Raw
        && aggregate.group_expr().is_true_no_grouping()
        && aggregate.filter_expr().iter().all(Option::is_none);
    if !is_of_rows || aggregate.aggr_expr().is_empty() {
        return None;
    }
    let schema = aggregate.input_schema();
    let mut extremes = Vec::new();
    for function in aggregate.aggr_expr() {
        let descending = match function.fun().name() {
            "min" => false,
            "max" => true,
            _ => return None,
        };
        let Ok([of]) = <[_; 1]>::try_from(function.expressions()) else {
            return None;
        };
        if function.is_distinct() || !compares_as_key(&of.data_type(&schema).ok()?) {
            return None;
        }
        // As MySQL orders them; rows with NULL are not walked through.
        let options = SortOptions {
            descending,
            nulls_first: !descending,
        };
        extremes.push((of, options));
    }
    Some(extremes)
}

/// Whether of values of a type the one that a key holds first is the one that MIN returns, to the
/// bit: texts that are equal may differ, and so do the zeros of floating point.
fn compares_as_key(of_type: &DataType) -> bool {
    of_type.is_integer() || of_type.is_decimal() || of_type.is_temporal()
}

/// Whether the rows of a table are worth a search for the first one in an order, of those that a
/// key has found if one was asked.
pub(crate) fn is_worth_a_key(source: &Source, found: Option<u64>) -> bool {
    source.snapshot.row_count() > SCANNED_ROWS && is_worth(source, 1, found)
}

/// The aggregate over the rows at the ends of keys in the place of all rows.
///
/// # Errors
/// Where DataFusion cannot rebuild the aggregate.
pub(super) fn replace(
    plan: &Arc<dyn ExecutionPlan>,
    aggregate: &AggregateExec,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(extremes) = extremes(aggregate) else {
        return Ok(None);
    };
    if may_warn(aggregate.input()) {
        return Ok(None);
    }
    let Some(pipeline) = Pipeline::of(aggregate.input()) else {
        return Ok(None);
    };
    let source = &pipeline.source;
    if !is_worth_a_key(source, source.found.map(|found| found as u64)) {
        return Ok(None);
    }
    let limit = rows_by_key(source.snapshot.row_count());
    let specs = extremes.iter().map(|(of, options)| {
        let column = pipeline.column(of)?;
        let ordered = Ordered::by(&source.table, column, *options)?;
        let key = OrderedKey::best(&source.table, &source.filters, &[ordered])?;
        Some(Spec {
            pipeline: pipeline.clone(),
            key: key.without_null(&source.table, ordered)?,
            fetch: 1,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        })
    });
    let Some(specs) = specs.collect::<Option<Vec<Spec>>>() else {
        return Ok(None);
    };
    let all = in_one_partition(Arc::clone(aggregate.input()));
    match KeyOrder::new(specs, all) {
        Some(ends) => over_input(plan, Arc::new(ends)).map(Some),
        None => Ok(None),
    }
}
