//! Rows that a join above has no use for, dropped before they are grouped, or before the rest of
//! their columns is read ("sideways information passing", "semi-join reduction").
//!
//! ```text
//!   Join: p = l, tells p                     Join: p = l
//!     |-- parts that a condition leaves        |-- parts that a condition leaves
//!     `-- Aggregate: AVG(q) by l               `-- Aggregate: AVG(q) by l
//!           `-- Sideways: l <- lineitem              `-- lineitem
//! ```
//!
//! A group whose keys no row of the left side has is in no pair, so all rows of that group can go
//! before they are grouped, or none. All of them: expressions above would otherwise see a part of a
//! group, and might refuse or warn of a value that no group has. Whether rows are dropped is
//! therefore decided once for all partitions, by the join, before its right side is executed (see
//! `join::wanted_keys`); and rows with the same keys are told alike.
//!
//! Where rows are not grouped, they are dropped right above the scan of a table of ours: the keys
//! are read first, the other columns of the rows that are left. That ends where it drops little.
//!
//! `path` finds the aggregate or the scan and its keys, `operator` drops rows; here it is decided
//! whether that gains anything.
//!
//! **Never** changes what a join answers. A guess that is wrong costs time. What an expression
//! above the rows would have warned of in a group that nobody asks for, it does not, as where a
//! condition is pushed below an aggregate; what stands below sees all rows, unless the left side is
//! empty: then nothing below runs.
//!
//! **Source.** Beeri and Ramakrishnan, "On the Power of Magic" (PODS 1987); Ives and Taylor,
//! "Sideways Information Passing for Push-Style Query Processing" (ICDE 2008). MariaDB calls its
//! own way to it "split grouping" and "LATERAL DERIVED".

mod operator;
mod path;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

pub use self::operator::SidewaysOperator;
use self::path::{Path, with_operator};
use crate::by_key::{KeyJoin, KeyScan};
use crate::estimate::Estimates;
use crate::filter::filter_of;
use crate::join::{self, EitherJoin, JoinOperator, KeysPromise};

/// Fewer rows are grouped before a filter is made.
const ROWS_MIN: f64 = 10_000.0;
/// And fewer are scanned before it is: a join drops them itself nearly as fast.
const SCANNED_ROWS_MIN: f64 = 50_000.0;
/// If more than this part of the groups is wanted, little is spared ...
const WANTED_MAX: f64 = 0.5;
/// ... and so it is with more keys than this, where nobody knows how many groups there are.
const KEYS_MAX: usize = 1 << 20;

/// Puts operators that drop rows below the aggregates on the right side of joins.
///
/// # Errors
/// Where DataFusion cannot rebuild a node.
pub(crate) fn drop_early(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    // From the root to the leaves, so that guesses see the plan as it was.
    plan.transform_down(|node| {
        Ok(match telling_join(&node)? {
            Some(join) => Transformed::yes(join),
            None => Transformed::no(node),
        })
    })
    .data()
}

/// A join that tells the keys of its left side; `None` if the node is none that should.
fn telling_join(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(EitherJoin { stock, left, right }) = EitherJoin::of(node.as_ref()) else {
        return Ok(None);
    };
    let ours = node.downcast_ref::<JoinOperator>();
    if ours.is_some_and(JoinOperator::tells_keys) || !drops_unmatched(stock) {
        return Ok(None);
    }
    let Some(path) = path_of(stock.on(), left, right)? else {
        return Ok(None);
    };
    let left_keys = path.of_join().map(|place| Arc::clone(&stock.on()[place].0));
    let left_keys: Vec<PhysicalExprRef> = left_keys.collect();
    // A stock join does as well where its left side is small, and so is what is grouped.
    let is_stock = ours.is_none();
    let keys_max = match path.is_grouped() {
        true => keys_worth_telling(left, &left_keys, &path, is_stock)?,
        false => keys_worth_telling_scan(left, &path)?,
    };
    let Some(keys_max) = keys_max else {
        return Ok(None);
    };
    let converted = match ours {
        Some(_) => None,
        None => join::ours(stock)?,
    };
    let Some(join) = ours.or(converted.as_ref()) else {
        return Ok(None);
    };
    let nulls_match = stock.null_equality() == NullEquality::NullEqualsNull;
    let promise = Arc::new(KeysPromise::new(left_keys, keys_max, nulls_match));
    // Below our join the right side may have lost an exchange: the way down is the same.
    let Some(right) = with_operator(join.right(), &path, &promise)? else {
        return Ok(None);
    };
    Ok(Some(Arc::new(join.telling(right, promise))))
}

/// Whether a join returns no row of its right side that has no partner, and nothing depends on
/// whether there is one.
fn drops_unmatched(stock: &HashJoinExec) -> bool {
    let by_kind = match stock.join_type() {
        JoinType::Inner
        | JoinType::Left
        | JoinType::LeftSemi
        | JoinType::LeftAnti
        | JoinType::LeftMark
        | JoinType::RightSemi => true,
        JoinType::Right | JoinType::Full | JoinType::RightAnti | JoinType::RightMark => false,
    };
    by_kind && !stock.null_aware
}

/// The way from the right side of a join to an aggregate by some of its keys.
fn path_of(
    on: &[(PhysicalExprRef, PhysicalExprRef)],
    left: &Arc<dyn ExecutionPlan>,
    right: &Arc<dyn ExecutionPlan>,
) -> Result<Option<Path>> {
    let (left_schema, right_schema) = (left.schema(), right.schema());
    let mut columns = Vec::new();
    for (place, (left_key, right_key)) in on.iter().enumerate() {
        let Some(column) = right_key.downcast_ref::<Column>() else {
            continue;
        };
        let data_type = right_key.data_type(&right_schema)?;
        let is_same = left_key.data_type(&left_schema)? == data_type;
        if is_same && join::is_hashed_by_value(&data_type) && may_be_computed_twice(left_key) {
            columns.push((place, column.index()));
        }
    }
    Ok(path::find(right, columns))
}

/// Whether nobody notices that a key of the left side is computed for the filter as well.
fn may_be_computed_twice(key: &PhysicalExprRef) -> bool {
    match key.downcast_ref::<CastExpr>() {
        Some(cast) => cast.expr().is::<Column>(),
        None => key.is::<Column>(),
    }
}

/// With how many keys of the left side it is worth dropping rows; `None` if it is not.
fn keys_worth_telling(
    left: &Arc<dyn ExecutionPlan>,
    left_keys: &[PhysicalExprRef],
    path: &Path,
    is_stock: bool,
) -> Result<Option<usize>> {
    let estimates = Estimates::default();
    let input = path.input();
    let rows = estimates.rows(input.as_ref())?;
    if rows.map_or(is_stock, |rows| rows < ROWS_MIN) {
        return Ok(None);
    }
    let at_most = |count: Option<f64>, most: Option<f64>| match (count, most) {
        (Some(count), Some(most)) => Some(count.min(most)),
        (count, most) => count.or(most),
    };
    let groups = estimates.groups(&path.keys(), input)?;
    let is_guess = groups.is_none();
    let groups = at_most(groups, rows);
    let of_left = estimates.rows(left.as_ref())?;
    let wanted = match of_left {
        Some(_) => at_most(estimates.groups(left_keys, left)?, of_left),
        None => None,
    };
    // Without a condition the left side may well have all keys that there are.
    if (is_guess || wanted.is_none()) && !is_filtered(left) {
        return Ok(None);
    }
    Ok(match (wanted, groups) {
        (Some(wanted), Some(groups)) if wanted > groups * WANTED_MAX => None,
        (_, Some(groups)) => Some(((groups * WANTED_MAX) as usize).max(1)),
        (_, None) => Some(KEYS_MAX),
    })
}

/// With how many keys of the left side it is worth dropping rows of a scan; `None` if it is not.
fn keys_worth_telling_scan(left: &Arc<dyn ExecutionPlan>, path: &Path) -> Result<Option<usize>> {
    let estimates = Estimates::default();
    let Some(rows) = estimates.rows(path.input().as_ref())? else {
        return Ok(None);
    };
    let most = rows * WANTED_MAX;
    let of_left = estimates.rows(left.as_ref())?;
    if rows < SCANNED_ROWS_MIN || of_left.is_some_and(|of_left| of_left > most) {
        return Ok(None);
    }
    Ok(is_filtered(left).then_some(KEYS_MAX.min(most as usize)))
}

/// Whether a plan has fewer rows than its tables, as far as can be seen.
fn is_filtered(plan: &Arc<dyn ExecutionPlan>) -> bool {
    filter_of(plan.as_ref()).is_some()
        || plan.is::<KeyScan>()
        || plan.is::<KeyJoin>()
        || plan.fetch().is_some()
        || plan.children().into_iter().any(is_filtered)
}
