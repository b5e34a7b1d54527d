//! The key beyond which no row can be among the first `n`.
//!
//! Owns: [`Cutoff`], what one partition knows, and [`SharedCutoff`], the best that all
//! partitions of a sort know together. Never: holds rows.
//!
//! Every sorted run is summed up in buckets: so many rows with keys up to this one. As soon as the
//! buckets hold `n` rows, the largest of their keys is a cutoff; buckets that are not needed for
//! `n` rows are dropped from the top, and the cutoff sinks.
//!
//! The shared cutoff is also the dynamic filter that the plan may have pushed into a scan, so
//! that Parquet row groups are skipped.
//!
//! Source: histogram-guided top-k filtering as in "Sort-based top-k processing with early input
//! filtering" (Chronis, Do, Graefe, Peters, CIDR 2020).

use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::filter_record_batch;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, DynamicFilterPhysicalExpr, is_not_null, is_null, lit,
};
use datafusion::physical_expr::{LexOrdering, PhysicalExprRef, PhysicalSortExpr};

use crate::lock::lock;

/// What one partition knows about the first `keep` rows.
pub(super) struct Cutoff {
    keep: u64,
    buckets: BinaryHeap<(Vec<u8>, u64)>,
    rows: u64,
}

impl Cutoff {
    pub(super) fn new(keep: u64) -> Self {
        Self {
            keep,
            buckets: BinaryHeap::new(),
            rows: 0,
        }
    }

    /// Counts `rows` rows, counted never before, whose keys are at most `key`. Answers with the
    /// cutoff when there is one: rows with that key or a greater one are not needed beyond those
    /// counted.
    pub(super) fn add(&mut self, key: Vec<u8>, rows: u64) -> Option<&[u8]> {
        self.buckets.push((key, rows));
        self.rows += rows;
        while let Some((_, top_rows)) = self.buckets.peek()
            && self.rows - top_rows >= self.keep
        {
            self.rows -= top_rows;
            self.buckets.pop();
        }
        if self.rows < self.keep {
            return None;
        }
        self.buckets.peek().map(|(key, _)| key.as_slice())
    }
}

/// The best cutoff of all partitions, and the dynamic filter that tells the scan.
#[derive(Debug)]
pub(super) struct SharedCutoff {
    ordering: LexOrdering,
    /// The filter that the plan made for the stock operator, if any.
    dynamic_filter: Option<PhysicalExprRef>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    key: Option<Arc<[u8]>>,
    predicate: Option<PhysicalExprRef>,
    running: usize,
}

impl SharedCutoff {
    pub(super) fn new(ordering: LexOrdering, dynamic_filter: Option<PhysicalExprRef>) -> Self {
        Self {
            ordering,
            dynamic_filter,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A cutoff is replaced whole, so a panic elsewhere leaves a valid one.
        lock(&self.state)
    }

    /// Begins the execution of a partition; the first one forgets what an earlier execution of
    /// the same plan knew.
    pub(super) fn begin(&self) -> Result<()> {
        let mut state = self.state();
        if state.running == 0 && state.key.is_some() {
            *state = State::default();
            self.publish(lit(true))?;
        }
        state.running += 1;
        Ok(())
    }

    /// Ends the execution of a partition.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.running = state.running.saturating_sub(1);
    }

    fn publish(&self, predicate: PhysicalExprRef) -> Result<()> {
        let filter = self.dynamic_filter.as_ref();
        match filter.and_then(|filter| filter.downcast_ref::<DynamicFilterPhysicalExpr>()) {
            Some(filter) => filter.update(predicate),
            None => Ok(()),
        }
    }

    /// The best cutoff so far.
    pub(super) fn key(&self) -> Option<Arc<[u8]>> {
        self.state().key.clone()
    }

    /// Offers a cutoff. `values` decodes the key into one scalar per sort expression, or into
    /// none when the keys cannot be compared outside the operator.
    pub(super) fn offer(
        &self,
        key: &[u8],
        values: impl FnOnce() -> Result<Option<Vec<ScalarValue>>>,
    ) -> Result<()> {
        if self.state().key.as_deref().is_some_and(|best| best <= key) {
            return Ok(());
        }
        let predicate = match values()? {
            Some(values) => Some(before(&self.ordering, &values)?),
            None => None,
        };
        let mut state = self.state();
        if state.key.as_deref().is_some_and(|best| best <= key) {
            return Ok(());
        }
        state.key = Some(key.into());
        state.predicate.clone_from(&predicate);
        match predicate {
            Some(predicate) => self.publish(predicate),
            None => Ok(()),
        }
    }

    /// The rows of a batch of the input that may still be among the first, as far as the cutoff's
    /// predicate can tell.
    pub(super) fn filter(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let Some(predicate) = self.state().predicate.clone() else {
            return Ok(batch.clone());
        };
        let kept = predicate.evaluate(batch)?.into_array(batch.num_rows())?;
        let kept = kept.as_boolean();
        if kept.null_count() == 0 && !kept.has_false() {
            return Ok(batch.clone());
        }
        Ok(filter_record_batch(batch, kept)?)
    }
}

/// The predicate "sorts strictly before these values".
fn before(ordering: &[PhysicalSortExpr], values: &[ScalarValue]) -> Result<PhysicalExprRef> {
    let binary = |left: PhysicalExprRef, op, right| -> PhysicalExprRef {
        Arc::new(BinaryExpr::new(left, op, right))
    };
    // From the last key to the first: before = less OR (equal AND before in the keys behind).
    let mut result: Option<PhysicalExprRef> = None;
    for (sort, value) in ordering.iter().zip(values).rev() {
        let expr = &sort.expr;
        let null = is_null(Arc::clone(expr))?;
        let op = if sort.options.descending {
            Operator::Gt
        } else {
            Operator::Lt
        };
        let compared = |op| binary(Arc::clone(expr), op, lit(value.clone()));
        let less = match (value.is_null(), sort.options.nulls_first) {
            (true, true) => lit(false),
            (true, false) => is_not_null(Arc::clone(expr))?,
            (false, true) => binary(Arc::clone(&null), Operator::Or, compared(op)),
            (false, false) => compared(op),
        };
        let equal = if value.is_null() {
            null
        } else {
            compared(Operator::Eq)
        };
        result = Some(match result {
            None => less,
            Some(behind) => binary(less, Operator::Or, binary(equal, Operator::And, behind)),
        });
    }
    Ok(result.unwrap_or_else(|| lit(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cutoff_sinks_to_what_the_buckets_prove() {
        let mut cutoff = Cutoff::new(10);
        assert_eq!(cutoff.add(vec![50], 4), None);
        assert_eq!(cutoff.add(vec![90], 4), None);
        assert_eq!(cutoff.add(vec![70], 4), Some([90].as_slice()));
        // Ten rows lie at or below 50: the buckets of 90 and 70 are not needed.
        assert_eq!(cutoff.add(vec![20], 6), Some([50].as_slice()));
        assert_eq!(cutoff.add(vec![10], 10), Some([10].as_slice()));
    }
}
