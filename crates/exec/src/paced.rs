//! Rows in pieces for joins that never rest.
//!
//! A stock join compares a batch of its right side with all that its left side has before it asks
//! for another one, and hands nothing on while no pair fits. 8192 rows against 100,000 are 800
//! million pairs: for seconds nobody else has the thread, and nobody can end the statement.
//! [`Paced`] stands below the right side of such joins: it hands on pieces of batches, as many rows
//! as the join is done with in a slice of time, and lets others run between them.
//!
//! Owns: how long a piece is. Never: changes a row or their order.
//!
//! **Cost**: none where a join is done with whole batches in time, after the first few pieces.
//! Pieces are slices of their batches, not copies; short ones cost the nested loop join nothing,
//! which takes several left rows at once then.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{TryStreamExt, stream};

use crate::plan_node::{pass_through_node, same_rows, with_inputs};
use crate::time_slice::TimeSlice;

/// How long a join is to be busy with a piece.
const BUSY: Duration = Duration::from_millis(2);
/// Rows of the first piece for a join that compares each of them with all of its left side.
const FIRST_OF_ALL_PAIRS: usize = 16;
/// Rows of the first piece for a join that compares them with those of their keys.
const FIRST_OF_KEYS: usize = 256;
/// More rows than a batch has.
const LENGTH_MAX: usize = 1 << 20;

/// Puts [`Paced`] below the right sides of stock joins with conditions on pairs.
pub(crate) fn pace_joins(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let pace = |node: Arc<dyn ExecutionPlan>| {
        let first = if node.is::<NestedLoopJoinExec>() {
            FIRST_OF_ALL_PAIRS
        } else if node.downcast_ref::<HashJoinExec>().is_some_and(has_pairs) {
            FIRST_OF_KEYS
        } else {
            return Ok(Transformed::no(node));
        };
        let right = |place, input: Arc<dyn ExecutionPlan>| match place {
            1 if !input.is::<Paced>() => Ok(Arc::new(Paced { input, first }) as _),
            _ => Ok(input),
        };
        with_inputs(node, right).map(Transformed::yes)
    };
    plan.transform_up(pace).data()
}

/// The right side of a hash join as it is to be read.
pub(crate) fn right_of(
    join: &HashJoinExec,
    input: Arc<dyn ExecutionPlan>,
) -> Arc<dyn ExecutionPlan> {
    match has_pairs(join) {
        true => Arc::new(Paced {
            input,
            first: FIRST_OF_KEYS,
        }),
        false => input,
    }
}

/// Whether it compares pairs of a key that it may not hand on.
fn has_pairs(join: &HashJoinExec) -> bool {
    join.filter().is_some()
}

/// The rows of its input, in pieces.
#[derive(Debug)]
pub(crate) struct Paced {
    input: Arc<dyn ExecutionPlan>,
    /// Rows of the first piece.
    first: usize,
}

impl Paced {
    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _options: &ReplaceChildrenOptions,
    ) -> Result<Paced> {
        let first = self.first;
        Ok(Paced { input, first })
    }
}

impl DisplayAs for Paced {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Paced")
    }
}

impl ExecutionPlan for Paced {
    pass_through_node!("Paced");
    same_rows!();

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let pieces = Pieces {
            rows: self.input.execute(partition, context)?,
            rest: None,
            length: self.first,
            handed: None,
            slice: TimeSlice::begin(),
        };
        let pieces = stream::try_unfold(pieces, |mut pieces| async move {
            let piece = pieces.next().await?;
            Ok(piece.map(|piece| (piece, pieces)))
        });
        let schema = self.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, pieces)))
    }
}

struct Pieces {
    rows: SendableRecordBatchStream,
    /// What is left of a batch.
    rest: Option<RecordBatch>,
    /// Rows of the next piece.
    length: usize,
    /// The rows of the last piece, and when it was handed on.
    handed: Option<(usize, Instant)>,
    slice: TimeSlice,
}

impl Pieces {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some((rows, at)) = self.handed.take() {
            self.length = next_length(self.length, rows, at.elapsed());
        }
        self.slice.share().await;
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => match self.rows.try_next().await? {
                Some(batch) => batch,
                None => return Ok(None),
            },
        };
        let rows = batch.num_rows().min(self.length);
        if rows < batch.num_rows() {
            self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        self.handed = Some((rows, Instant::now()));
        Ok(Some(batch.slice(0, rows)))
    }
}

/// How long the next piece is, where the join was busy for some time with one of `rows` rows.
fn next_length(length: usize, rows: usize, busy: Duration) -> usize {
    if busy > BUSY * 2 {
        let share = BUSY.as_secs_f64() / busy.as_secs_f64();
        return ((rows as f64 * share) as usize).max(1);
    }
    match busy < BUSY / 2 {
        true => length.max(rows.saturating_mul(2)).min(LENGTH_MAX),
        false => length,
    }
}

#[cfg(test)]
mod tests;
