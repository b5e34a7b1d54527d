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
//! **Cost**: none where a join is done with whole batches in time, after the first few pieces,
//! which are slices of their batches and not copies. A nested loop join asks its condition once for
//! each left row and piece, however short the piece is, and for a piece of less than a tenth of a
//! batch it copies several left rows, which takes three times as long for each pair. It gets those
//! only where its left side is so long that a tenth of a batch would keep others waiting. Over
//! 20,000 rows it takes twice as long in pieces, and nearly four times with functions in its
//! condition.

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
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::{TryStreamExt, stream};

use crate::plan_node::{pass_through_node, same_rows, with_inputs};
use crate::time_slice::TimeSlice;

/// More rows than a batch has.
const LENGTH_MAX: usize = 1 << 20;

/// What a join compares the rows of a piece with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pairs {
    /// All of its left side.
    All,
    /// Those of the same key.
    OfKeys,
}

impl Pairs {
    /// The pairs that a stock join compares and may not hand on, if it does.
    fn of(node: &dyn ExecutionPlan) -> Option<Pairs> {
        if node.is::<NestedLoopJoinExec>() {
            return Some(Pairs::All);
        }
        let join: &HashJoinExec = node.downcast_ref()?;
        join.filter().map(|_| Pairs::OfKeys)
    }

    fn pace(self, batch_rows: usize) -> Pace {
        match self {
            Pairs::All => Pace {
                first: 16,
                least: batch_rows / 10 + 1,
                busy: Duration::from_millis(20),
                most_busy: Duration::from_millis(100),
            },
            Pairs::OfKeys => Pace {
                first: 256,
                least: 1,
                busy: Duration::from_millis(2),
                most_busy: Duration::from_millis(2),
            },
        }
    }
}

/// How pieces are cut.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Rows of the first one.
    first: usize,
    /// Rows from which on a join is fast.
    least: usize,
    /// How long a join is to be busy with one.
    busy: Duration,
    /// And how long at most with one of `least` rows, before they become shorter.
    most_busy: Duration,
}

/// Puts [`Paced`] below the right sides of stock joins with conditions on pairs.
pub(crate) fn pace_joins(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let pace = |node: Arc<dyn ExecutionPlan>| {
        if Pairs::of(node.as_ref()).is_none() {
            return Ok(Transformed::no(node));
        }
        let join = Arc::clone(&node);
        let right = |place, input: Arc<dyn ExecutionPlan>| match place {
            1 if !input.is::<Paced>() => Ok(right_of(join.as_ref(), input)),
            _ => Ok(input),
        };
        with_inputs(node, right).map(Transformed::yes)
    };
    plan.transform_up(pace).data()
}

/// The right side of a join as it is to be read.
pub(crate) fn right_of(
    join: &dyn ExecutionPlan,
    input: Arc<dyn ExecutionPlan>,
) -> Arc<dyn ExecutionPlan> {
    match Pairs::of(join) {
        Some(pairs) => Arc::new(Paced { input, pairs }),
        None => input,
    }
}

/// The rows of its input, in pieces.
#[derive(Debug)]
pub(crate) struct Paced {
    input: Arc<dyn ExecutionPlan>,
    pairs: Pairs,
}

impl Paced {
    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _options: &ReplaceChildrenOptions,
    ) -> Result<Paced> {
        let pairs = self.pairs;
        Ok(Paced { input, pairs })
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
        let pace = self.pairs.pace(context.session_config().batch_size());
        let pieces = Pieces {
            rows: self.input.execute(partition, context)?,
            rest: None,
            pace,
            length: pace.first,
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
    pace: Pace,
    /// Rows of the next piece.
    length: usize,
    /// The rows of the last piece, and when it was handed on.
    handed: Option<(usize, Instant)>,
    slice: TimeSlice,
}

impl Pieces {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some((rows, at)) = self.handed.take() {
            self.length = self.pace.next_length(self.length, rows, at.elapsed());
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

impl Pace {
    /// How long the next piece is, where the join was busy for some time with one of `rows` rows.
    fn next_length(&self, length: usize, rows: usize, busy: Duration) -> usize {
        let row_secs = busy.as_secs_f64() / rows.max(1) as f64;
        // Shorter pieces take longer for each row: so much is certain not to be passed.
        if length < self.least && row_secs * self.least as f64 <= self.most_busy.as_secs_f64() * 2.0
        {
            return self.least;
        }
        if busy > self.busy * 2 {
            let fits = |busy: Duration| (busy.as_secs_f64() / row_secs).round() as usize;
            let least = match fits(self.most_busy) >= self.least {
                true => self.least,
                false => 1,
            };
            return fits(self.busy).max(least);
        }
        match busy < self.busy / 2 {
            true => length.max(rows.saturating_mul(2)).min(LENGTH_MAX),
            false => length,
        }
    }
}

#[cfg(test)]
mod tests;
