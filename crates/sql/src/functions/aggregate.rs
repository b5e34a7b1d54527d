//! What the aggregates of this crate share: one group is many groups of which there is one.

use arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, GroupsAccumulator};

/// Whether the FILTER of an aggregate lets a row pass.
pub(super) fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

/// Groups whose values can be looked at without taking them out.
pub(super) trait Groups: GroupsAccumulator + Sync + std::fmt::Debug {
    /// The result of a group; also asked of a group without rows.
    fn value(&self, group: usize) -> Result<ScalarValue>;

    /// The state of a group.
    fn state_of(&self, group: usize) -> Result<Vec<ScalarValue>>;
}

/// The only group of a query without GROUP BY, or the frame of a window.
#[derive(Debug)]
pub(super) struct OneGroup<G>(pub(super) G);

impl<G: Groups> Accumulator for OneGroup<G> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let groups = vec![0; values[0].len()];
        self.0.update_batch(values, &groups, None, 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.value(0)
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state_of(0)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let groups = vec![0; states[0].len()];
        self.0.merge_batch(states, &groups, 1)
    }
}
