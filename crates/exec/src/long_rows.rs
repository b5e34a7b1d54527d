//! How many rows a batch may have where rows are long.
//!
//! Owns: [`batch_rows`] and the filters that obey it. Never: looks at rows, only at how the pages
//! of tables are filled.
//!
//! Stock operators count rows. One that gathers thousands of them before it hands a batch on holds
//! as many pages where each row fills one, or copies of them that nobody accounts for: a filter
//! over a table that is larger than the budget would find no room for its next page. A scan hands
//! its pages on one by one, so all that is needed is that nobody gathers more rows than a part of
//! the budget has room for.
//!
//! Cost: a look at the list of pages of each table of which texts, blobs or many columns are read.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use mayfly_table::TableSnapshot;

use crate::by_key::{KeyJoin, KeyScan, LateScan};
use crate::table_scan::TableScan;

/// The rows of a batch take at most this part of a partition's share of the budget: where rows are
/// shorter than half a KiB, batches are as long as they are configured.
const BATCHES_PER_SHARE: u64 = 8;

/// Rows of numbers and times that are not longer are short: nobody looks at their pages.
const SHORT_BYTES_MAX: usize = 256;

/// The rows that operators of a plan should put into a batch: as many as are configured, or fewer
/// where tables of the plan have long rows.
pub fn batch_rows(plan: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> usize {
    let rows_max = config.execution.batch_size.get();
    let partitions = config.execution.target_partitions.max(1) as u64;
    let mut share_bytes = u64::MAX;
    let mut row_bytes = 0;
    visit(plan, &mut |snapshot| {
        let memory_bytes = snapshot.account().space().memory_bytes();
        share_bytes = memory_bytes / partitions / BATCHES_PER_SHARE;
        let usual_bytes = share_bytes / rows_max as u64;
        row_bytes += snapshot.long_row_bytes(usual_bytes, share_bytes);
    });
    match row_bytes {
        0 => rows_max,
        _ => {
            let rows = usize::try_from(share_bytes / row_bytes);
            rows.unwrap_or(rows_max).clamp(1, rows_max)
        }
    }
}

/// Makes the filters of a plan hand rows on as soon as they have gathered so many.
pub(crate) fn shorten_batches(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let rows = batch_rows(&plan, config);
    if rows >= config.execution.batch_size.get() {
        return Ok(plan);
    }
    let shorten = |node: Arc<dyn ExecutionPlan>| -> Result<Transformed<_>> {
        Ok(match node.downcast_ref::<FilterExec>() {
            Some(filter) => {
                let filter: Arc<dyn ExecutionPlan> = Arc::new(filter.with_batch_size(rows)?);
                Transformed::yes(filter)
            }
            None => Transformed::no(node),
        })
    };
    plan.transform_up(shorten).data()
}

/// Whether rows may be long: with a value of any length, or with many columns.
fn may_be_long(schema: &Schema) -> bool {
    let fields = schema.fields().iter();
    // A value of any length makes it so, as does a sum beyond the bound.
    let bytes = { fields }.try_fold(0_usize, |bytes, field| {
        let sum = bytes + field.data_type().primitive_width()?;
        (sum <= SHORT_BYTES_MAX).then_some(sum)
    });
    bytes.is_none()
}

/// Shows the tables of which a plan reads rows that may be long.
fn visit(plan: &Arc<dyn ExecutionPlan>, see: &mut dyn FnMut(&TableSnapshot)) {
    let schema = plan.schema();
    let has_long = || may_be_long(&schema);
    if let Some(scan) = plan.downcast_ref::<TableScan>() {
        if has_long() {
            see(scan.snapshot());
        }
    } else if let Some(late) = plan.downcast_ref::<LateScan>() {
        if has_long() {
            see(late.scan().snapshot());
        }
    } else if let Some(scan) = plan.downcast_ref::<KeyScan>() {
        if let Some(source) = scan.source().filter(|_| has_long()) {
            see(&source.snapshot);
        }
    } else if let Some(join) = plan.downcast_ref::<KeyJoin>()
        && has_long()
    {
        see(&join.found().table.snapshot());
    }
    for child in plan.children() {
        visit(child, see);
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn texts_and_many_columns_make_rows_long() {
        let check = |of: DataType, count: usize, expect: bool| {
            let field = |at: usize| Field::new(format!("c{at}"), of.clone(), true);
            let schema = Schema::new((0..count).map(field).collect::<Vec<_>>());
            assert_eq!(may_be_long(&schema), expect, "{count} of {of}");
        };
        check(DataType::Utf8View, 1, true);
        check(DataType::Int64, 32, false);
        check(DataType::Int64, 33, true);
        check(DataType::Int32, 64, false);
        check(DataType::Int32, 65, true);
    }
}
