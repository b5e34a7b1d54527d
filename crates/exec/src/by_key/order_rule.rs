//! When the first rows are read in the order of a key.
//!
//! Owns: the comparison of an ORDER BY with the parts of a key. Never: takes an order for that of a
//! key that keeps only prefixes, or of a type whose bytes lie in another order.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use mayfly_table::Table;

use super::choice::{InOrder, in_order, keeps_order};
use super::order::{KEPT_BYTES_MAX, KeyOrder, Spec};
use super::pipeline::Pipeline;
use super::scan::Found;
use super::{ROWS_FEW, rows_by_key};
use crate::sort::SortOperator;

/// A column of an ORDER BY.
struct Ordered {
    column: usize,
    is_descending: bool,
}

/// The reading in the order of a key in the place of a sort with a limit.
///
/// # Errors
/// Where DataFusion cannot rebuild the sort.
pub(super) fn replace(sort: &SortExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (Some(fetch), Some(pipeline)) = (sort.fetch(), Pipeline::of(sort.input())) else {
        return Ok(None);
    };
    let source = &pipeline.source;
    let limit = rows_by_key(source.snapshot.row_count());
    // Few rows that a key has found already are sorted sooner than they are searched again.
    let is_found = |found: usize| found as u64 <= ROWS_FEW.max(2 * fetch as u64);
    let is_small = fetch as u64 <= limit
        && (fetch as u64).saturating_mul(source.row_bytes()) <= KEPT_BYTES_MAX
        && !source.found.is_some_and(is_found);
    if fetch == 0 || !is_small {
        return Ok(None);
    }
    let ordered = sort.expr().iter().map(|by| ordered(&pipeline, by));
    let Some(ordered) = ordered.collect::<Option<Vec<Ordered>>>() else {
        return Ok(None);
    };
    let table = &source.table;
    let mut best: Option<(InOrder, bool)> = None;
    for key in 0..table.definition().keys.len() {
        let found = in_order(table, key, &source.filters);
        let Some(is_reversed) = direction(table, key, found.search.equal.len(), &ordered) else {
            continue;
        };
        if best
            .as_ref()
            .is_none_or(|(best, _)| found.parts > best.parts)
        {
            best = Some((found, is_reversed));
        }
    }
    let Some((in_order, is_reversed)) = best else {
        return Ok(None);
    };
    let found = Found {
        table: Arc::clone(table),
        key: in_order.search.key,
        parts: match in_order.parts {
            0 => table.definition().keys[in_order.search.key].parts.len(),
            parts => parts,
        },
        access: in_order.access,
        is_covered: false,
    };
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
        search: in_order.search,
        is_reversed,
        fetch,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    };
    Ok(Some(Arc::new(KeyOrder::new(spec, found, stock))))
}

/// The column of the table that an expression sorts by, in MySQL's order of NULL.
fn ordered(pipeline: &Pipeline, by: &PhysicalSortExpr) -> Option<Ordered> {
    let column = pipeline.column(&by.expr)?;
    let of_table = &pipeline.source.table.columns()[column];
    let is_descending = by.options.descending;
    let has_null_in_place = !of_table.is_nullable || by.options.nulls_first != is_descending;
    (has_null_in_place && keeps_order(&of_table.column_type)).then_some(Ordered {
        column,
        is_descending,
    })
}

/// Whether the entries of a key lie in an order (`false`) or against it (`true`), where the first
/// parts have one value each.
fn direction(table: &Table, key: usize, equal: usize, ordered: &[Ordered]) -> Option<bool> {
    let key = &table.definition().keys[key];
    let mut wanted = ordered.iter().peekable();
    let mut is_reversed = None;
    for (index, part) in key.parts.iter().enumerate() {
        let Some(next) = wanted.peek() else {
            break;
        };
        let is_constant = index < equal;
        if part.column != next.column {
            if is_constant {
                continue;
            }
            return None;
        }
        if !is_constant {
            if part.prefix.is_some() {
                return None;
            }
            let against = part.is_descending != next.is_descending;
            if *is_reversed.get_or_insert(against) != against {
                return None;
            }
        }
        wanted.next();
    }
    // Behind a key that tells all rows apart nothing is left to be ordered.
    let is_ordered = wanted.peek().is_none() || table.definition().identifies(key);
    is_ordered.then_some(is_reversed.unwrap_or(false))
}
