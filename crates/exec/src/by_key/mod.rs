//! Rows by the keys of their table.
//!
//! **Owns** every way in which a plan uses a key: conditions (`choice`, `scan`), those whose values
//! come when the plan runs (`late_scan`), joins (`join`), joins with groups (`apply`), orders
//! (`order`) and the rows at their ends (`extremes`), and the rule that puts all but the first into
//! a plan. **Never** answers what the key cannot: each operator keeps the stock plan that it stands
//! for, and goes over to it when there are more rows than a key is worth, or when the table has
//! changed since the plan was made.
//!
//! ```text
//!   stock plan -- rule --> KeyJoin  -- pipeline --> rows of the table, filtered, projected
//!                      |-> KeyOrder --/     |
//!                      |-> LateScan --------+  (a filter by a subquery, a KeyApply)
//!                                           +--- Table::lookup, Table::walk
//! ```

mod apply;
mod apply_rule;
mod choice;
mod chunk;
mod extremes;
mod found_memory;
mod in_order;
mod join;
mod join_key;
mod join_rule;
mod late_rule;
mod late_scan;
mod limits;
mod look_up;
mod order;
mod order_rule;
mod path;
mod pipeline;
mod scan;
mod stock;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::sorts::sort::SortExec;

pub use apply::KeyApply;
use apply_rule::Outer;
pub use choice::{Access, key_value};
pub(crate) use choice::{Choice, choose, is_searchable};
pub(crate) use extremes::{extremes, is_worth_a_key};
pub(crate) use found_memory::{KEY_SCAN_ROW_BYTES, reserved};
pub(crate) use in_order::{Ordered, OrderedKey, Walk, Walked, is_worth};
pub use join::KeyJoin;
pub(crate) use join_rule::look_ups;
pub(crate) use late_rule::waiting_conditions;
pub use late_scan::LateScan;
pub(crate) use late_scan::{Condition, Known, known};
pub(crate) use limits::{ROWS_FEW, rows_by_key};
pub(crate) use look_up::LookUp;
pub use order::KeyOrder;
pub(crate) use pipeline::{Steps, is_exchange};
pub(crate) use scan::FoundRows;
pub use scan::{Found, KeyScan};

/// Replaces a stock join or sort by one that reads a key, the scan below a filter, and the rows of
/// a MIN or MAX, where that is worth its while.
///
/// # Errors
/// If an index cannot be read.
pub fn replace(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let replaced = late_rule::replace(&plan, filter)?;
        return Ok(replaced.map_or_else(|| Transformed::no(plan), Transformed::yes));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let replaced = extremes::replace(&plan, aggregate)?;
        return Ok(replaced.map_or_else(|| Transformed::no(plan), Transformed::yes));
    }
    let Some(sort) = plan.downcast_ref::<SortExec>() else {
        return replace_join(plan);
    };
    let replaced = order_rule::replace(sort)?;
    Ok(replaced.map_or_else(|| Transformed::no(plan), Transformed::yes))
}

/// Replaces a stock join likewise, and leaves all else.
///
/// # Errors
/// As [`replace`].
pub fn replace_join(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else {
        return Ok(Transformed::no(plan));
    };
    // Groups that nobody asks for are not made, where it is known that few are.
    let mut replaced = apply_rule::replace(join, Outer::KnownFew)?;
    if replaced.is_none() {
        replaced = join_rule::replace(join)?;
    }
    if replaced.is_none() {
        replaced = apply_rule::replace(join, Outer::Any)?;
    }
    Ok(replaced.map_or_else(|| Transformed::no(plan), Transformed::yes))
}
