//! Rows in pieces for joins that never rest.
//!
//! A stock hash join looks at all pairs of rows of the same key before it asks for another batch of
//! its right side, and hands nothing on while its condition keeps none of them. 8192 rows with a
//! key that 100,000 rows have are 800 million pairs: for seconds nobody else has the thread, and
//! nobody can end the statement. [`Paced`] stands below the right side of joins with a condition:
//! it hands on pieces of batches, as many rows as the join is done with in a slice of time, and
//! lets others run between them.
//!
//! Owns: how long a piece is. Never: changes a row or their order.
//!
//! **Cost**: none where a join is done with whole batches in time, after the first few pieces,
//! which are slices of their batches and not copies.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::{TryStreamExt, stream};

use crate::plan_node::{pass_through_node, same_rows, with_inputs};
use crate::time_slice::TimeSlice;

/// More rows than a batch has.
const LENGTH_MAX: usize = 1 << 20;

/// Rows of the first piece.
const LENGTH_FIRST: usize = 256;

/// How long a join is to be busy with a piece.
const BUSY: Duration = Duration::from_millis(2);

/// Puts [`Paced`] below the right sides of stock joins with a condition beside their keys.
pub(crate) fn pace_joins(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let pace = |node: Arc<dyn ExecutionPlan>| {
        let join = node.downcast_ref::<HashJoinExec>();
        let Some(join) = join.filter(|join| join.filter().is_some()) else {
            return Ok(Transformed::no(node));
        };
        let right = |place, input: Arc<dyn ExecutionPlan>| match place {
            1 if !input.is::<Paced>() => Ok(right_of(join, input)),
            _ => Ok(input),
        };
        with_inputs(Arc::clone(&node), right).map(Transformed::yes)
    };
    plan.transform_up(pace).data()
}

/// The right side of a join as it is to be read.
pub(crate) fn right_of(
    join: &HashJoinExec,
    input: Arc<dyn ExecutionPlan>,
) -> Arc<dyn ExecutionPlan> {
    match join.filter() {
        Some(_) => Arc::new(Paced { input }),
        None => input,
    }
}

/// The rows of its input, in pieces.
#[derive(Debug)]
pub(crate) struct Paced {
    input: Arc<dyn ExecutionPlan>,
}

impl Paced {
    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _options: &ReplaceChildrenOptions,
    ) -> Result<Paced> {
        Ok(Paced { input })
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

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let pieces = Pieces {
            rows: self.input.execute(partition, context)?,
            rest: None,
            length: LENGTH_FIRST,
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
        let row_secs = busy.as_secs_f64() / rows.max(1) as f64;
        return ((BUSY.as_secs_f64() / row_secs) as usize).max(1);
    }
    match busy < BUSY / 2 {
        true => length.max(rows.saturating_mul(2)).min(LENGTH_MAX),
        false => length,
    }
}

#[cfg(test)]
mod tests;
