//! What joins, sorts and windows keep of a table larger than memory.
//!
//! Owns: the choice of the scans that copy what they read. Never: copies itself.
//!
//! A batch of a scan points into its page, which stays in memory as long as the batch. That is free
//! for an operator that is done with a batch before it takes the next one. A hash join keeps all
//! batches of one side, and with them all pages of the table, whether it reads one column of them
//! or ten; and it asks the pool for the bytes that the pages have been granted already. Where those
//! pages would be a part of the budget that counts, the scan copies the columns that are read. A
//! sort or a window keeps some rows at a time, which matters where each has a page of its own.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use crate::by_key::{LateScan, is_exchange};
use crate::filter::filter_of;
use crate::join::JoinOperator;
use crate::materialized::MaterializedScan;
use crate::nested_loop::NestedLoopOperator;
use crate::sideways::SidewaysOperator;
use crate::sort::SortOperator;
use crate::table_scan::TableScan;
use crate::whole_partitions::ReadAgain;
use crate::window::WindowOperator;

/// Pages of less than this part of the budget may stay.
const PAGES_PER_MEMORY: u64 = 8;

/// What is kept of the rows of a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Nothing,
    /// A few at a time, of which as many bytes are asked for as they have.
    Some,
    All,
}

/// Makes the scans that joins and sorts keep the rows of copy what they read.
///
/// # Errors
/// Where DataFusion cannot rebuild a node.
pub(crate) fn copy_kept(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(visit(&plan, Kept::Nothing)?.unwrap_or(plan))
}

/// The plan of rows that are all kept.
///
/// # Errors
/// As [`copy_kept`].
pub(crate) fn copied(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(visit(plan, Kept::All)?.unwrap_or_else(|| Arc::clone(plan)))
}

/// The plan with scans that copy; `None` if all is well as it is.
fn visit(plan: &Arc<dyn ExecutionPlan>, kept: Kept) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let late = plan.downcast_ref::<LateScan>();
    if let Some(scan) = late.map(LateScan::scan).or(plan.downcast_ref()) {
        let scan: &TableScan = scan;
        let memory_bytes = scan.snapshot().account().space().memory_bytes();
        let copies = match kept {
            Kept::Nothing => false,
            // A page that is larger than others has little but one row, and room left.
            Kept::Some => scan.snapshot().has_large_pages(),
            Kept::All => scan.bytes() > memory_bytes / PAGES_PER_MEMORY,
        };
        return Ok(copies.then(|| match late {
            Some(late) => Arc::new(late.with_scan(scan.copying())) as Arc<dyn ExecutionPlan>,
            None => Arc::new(scan.copying()),
        }));
    }
    if let Some(scan) = plan.downcast_ref::<MaterializedScan>() {
        // How many rows it will have, nobody knows.
        return Ok((kept == Kept::All).then(|| Arc::new(scan.copying()) as _));
    }
    // Ours keeps the batches of its first side as long as they are few.
    let is_join =
        plan.is::<HashJoinExec>() || plan.is::<JoinOperator>() || plan.is::<CrossJoinExec>();
    let writes_first = plan.is::<NestedLoopOperator>();
    let hands_on = is_join
        || writes_first
        || filter_of(plan.as_ref()).is_some()
        || plan.is::<ProjectionExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<ReadAgain>()
        || plan.is::<SidewaysOperator>()
        || is_exchange(plan);
    let mut is_changed = false;
    let mut children = Vec::new();
    for (place, child) in plan.children().into_iter().enumerate() {
        let kept = match hands_on {
            // The first side is the one that a join keeps.
            true if is_join && place == 0 => Kept::All,
            true if writes_first && place == 0 => Kept::Nothing,
            // By turns an exchange keeps whole batches that nobody has taken; by hash it copies.
            true if is_dealt_by_turns(plan) => Kept::All,
            true => kept,
            false if plan.is::<SortOperator>() || plan.is::<WindowOperator>() => Kept::Some,
            false => Kept::Nothing,
        };
        let changed = visit(child, kept)?;
        is_changed |= changed.is_some();
        children.push(changed.unwrap_or_else(|| Arc::clone(child)));
    }
    if !is_changed {
        return Ok(None);
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Arc::clone(plan)
        .replace_children(children, options)
        .map(Some)
}

fn is_dealt_by_turns(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let exchange = plan.downcast_ref::<RepartitionExec>();
    exchange
        .is_some_and(|exchange| matches!(exchange.partitioning(), Partitioning::RoundRobinBatch(_)))
}
