//! When a sort with a limit is read in the order of a key.
//!
//! Owns: the reading of the sort. Never: says which key lies in its order (`in_order`). Never:
//! reads on behind a filter where a row may warn: filters may let so few rows through that the walk
//! is given up, and the sort in its place would warn again of the rows that were read.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::in_order::{Ordered, OrderedKey, is_worth};
use super::limits::rows_by_key;
use super::order::{KeyOrder, Spec};
use super::pipeline::Pipeline;
use crate::filter::may_warn;
use crate::sort::SortOperator;

/// The reading in the order of a key in the place of a sort with a limit.
///
/// # Errors
/// Where DataFusion cannot rebuild the sort.
pub(super) fn replace(sort: &SortExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (Some(fetch), Some(pipeline)) = (sort.fetch(), Pipeline::of(sort.input())) else {
        return Ok(None);
    };
    let source = &pipeline.source;
    let is_worth = is_worth(source, fetch, source.found.map(|found| found as u64));
    if !is_worth || (pipeline.steps.has_filter() && may_warn(sort.input())) {
        return Ok(None);
    }
    let ordered = sort.expr().iter().map(|by| {
        let column = pipeline.column(&by.expr)?;
        Ordered::by(&source.table, column, by.options)
    });
    let Some(ordered) = ordered.collect::<Option<Vec<Ordered>>>() else {
        return Ok(None);
    };
    let Some(key) = OrderedKey::best(&source.table, &source.filters, &ordered) else {
        return Ok(None);
    };
    let limit = rows_by_key(source.snapshot.row_count());
    let mut stock: Arc<dyn ExecutionPlan> = match SortOperator::try_from_stock(sort)? {
        Some(operator) => Arc::new(operator),
        None => Arc::new(sort.clone()),
    };
    if stock.output_partitioning().partition_count() > 1 {
        let merge = SortPreservingMergeExec::new(sort.expr().clone(), stock);
        stock = Arc::new(merge.with_fetch(Some(fetch)));
    }
    let spec = Spec {
        pipeline,
        key,
        fetch,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let order = KeyOrder::new(vec![spec], stock);
    Ok(order.map(|order| Arc::new(order) as Arc<dyn ExecutionPlan>))
}
