//! When a join with groups reads only the rows of groups that it wants.
//!
//! Owns: the reading of a stock hash join one side of which groups a table by columns that the join
//! compares. Never: applies where rows of that side are shown that the other one has not asked for.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::common::{JoinSide, JoinType, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;

use super::apply::KeyApply;
use super::join_key::JoinKey;
use super::join_rule::{DOUBTED_PART, may_be_by_key, partitioned, partitioning};
use super::late_scan::LateScan;
use super::limits::rows_by_key;
use super::path::{Path, with_scan};
use crate::plan_node::known_rows;

/// Which outer sides are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outer {
    /// Those that are thought to find few rows.
    KnownFew,
    /// Those too of which that is not known.
    Any,
}

/// The join that reads groups by key in the place of a hash join.
///
/// # Errors
/// If an index cannot be read.
pub(super) fn replace(join: &HashJoinExec, taken: Outer) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if !may_be_by_key(join) {
        return Ok(None);
    }
    let Some(partitioning) = partitioning(join) else {
        return Ok(None);
    };
    for outer in [JoinSide::Left, JoinSide::Right] {
        if let Some(apply) = apply(join, outer, taken)? {
            return partitioned(Arc::new(apply), partitioning).map(Some);
        }
    }
    Ok(None)
}

fn apply(join: &HashJoinExec, outer: JoinSide, taken: Outer) -> Result<Option<KeyApply>> {
    let is_left = outer == JoinSide::Left;
    // Groups that meet no outer row must not be shown.
    let is_asked_for = match join.join_type() {
        JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi => true,
        JoinType::Left | JoinType::LeftAnti | JoinType::LeftMark => is_left,
        JoinType::Right | JoinType::RightAnti | JoinType::RightMark => !is_left,
        JoinType::Full => false,
    };
    if !is_asked_for {
        return Ok(None);
    }
    let (outer_plan, inner_plan) = match is_left {
        true => (join.left(), join.right()),
        false => (join.right(), join.left()),
    };
    let Some(path) = Path::of(inner_plan).filter(Path::has_groups) else {
        return Ok(None);
    };
    let table = &path.source.table;
    if table.definition().keys.is_empty() {
        return Ok(None);
    }
    let of_inner = |expr: &Arc<dyn PhysicalExpr>| path.column_or_cast(expr);
    let Some(key) = JoinKey::best(join, outer, table, of_inner)? else {
        return Ok(None);
    };
    let limit = rows_by_key(path.source.snapshot.row_count());
    let rows = |outer: usize| (outer as u64).saturating_mul(key.rows_each);
    let limit = match outer_rows(outer_plan) {
        Precision::Exact(outer) if rows(outer) > limit => return Ok(None),
        Precision::Exact(_) => limit,
        Precision::Inexact(outer) if rows(outer) <= limit => limit,
        _ if taken == Outer::KnownFew => return Ok(None),
        // A guess is tried with a part of the rows.
        Precision::Inexact(_) | Precision::Absent => limit / DOUBTED_PART,
    };
    let late = LateScan::of_join(key.found(), key.rows_each, path.scan, path.source.clone());
    let inner = with_scan(inner_plan, Arc::new(late))?;
    KeyApply::new(join, outer, inner, key.values(join, outer), limit).map(Some)
}

/// The rows of a plan, as far as is known, where joins that find one partner at most add none.
fn outer_rows(plan: &Arc<dyn ExecutionPlan>) -> Precision<usize> {
    let rows = known_rows(plan.as_ref());
    if rows != Precision::Absent {
        return rows;
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let is_one = *join.join_type() == JoinType::Left
            && Path::of(join.right()).is_some_and(|path| {
                let columns: Vec<&Arc<dyn PhysicalExpr>> =
                    join.on().iter().map(|(_, of_inner)| of_inner).collect();
                path.is_unique(&columns)
            });
        return match is_one {
            true => outer_rows(join.left()).to_inexact(),
            false => Precision::Absent,
        };
    }
    let hands_on = plan.is::<ProjectionExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<RepartitionExec>();
    match plan.children().first() {
        Some(below) if hands_on => outer_rows(below),
        _ => Precision::Absent,
    }
}
