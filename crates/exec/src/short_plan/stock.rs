//! Operators of DataFusion in a short plan: they are handed their inputs, and run to their end.

use std::fmt;
use std::sync::Arc;

use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::{FutureExt, TryStreamExt};

use super::run::Run;
use crate::nested_loop::NestedLoopOperator;
use crate::plan_node::{leaf_node, stream_of};
use crate::report::Why;

/// A stock operator.
pub(super) struct Stock {
    node: Arc<dyn ExecutionPlan>,
    kind: Kind,
}

enum Kind {
    /// Returns a row for each group of its rows, for each way in which they are grouped.
    Aggregate {
        groupings: u64,
        why: Option<Why>,
    },
    Join,
    /// Has no inputs.
    Leaf,
}

impl Stock {
    /// The operator of a node; `None` if it is not known how many rows it returns, or it would
    /// start a task.
    pub(super) fn of(node: &Arc<dyn ExecutionPlan>) -> Option<Stock> {
        let ours = node.downcast_ref::<NestedLoopOperator>();
        let node = ours.map_or(node, NestedLoopOperator::stock);
        let is_one =
            |node: &Arc<dyn ExecutionPlan>| node.output_partitioning().partition_count() == 1;
        if !is_one(node) || !node.children().into_iter().all(is_one) {
            return None;
        }
        let kind = if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
            let group_by = aggregate.group_expr();
            let why = match aggregate.aggr_expr().is_empty() {
                _ if group_by.is_empty() => None,
                true => Some(Why::Distinct),
                false => Some(Why::GroupBy),
            };
            // WITH ROLLUP groups the same rows several times.
            let groupings = group_by.groups().len().max(1) as u64;
            Kind::Aggregate { groupings, why }
        } else if node.is::<HashJoinExec>()
            || node.is::<NestedLoopJoinExec>()
            || node.is::<CrossJoinExec>()
        {
            Kind::Join
        } else if node.is::<PlaceholderRowExec>() || node.is::<EmptyExec>() {
            Kind::Leaf
        } else {
            return None;
        };
        let node = Arc::clone(node);
        Some(Stock { node, kind })
    }

    /// The temporary table that it is, if it is one.
    pub(super) fn why(&self) -> Option<Why> {
        match self.kind {
            Kind::Aggregate { why, .. } => why,
            Kind::Join | Kind::Leaf => None,
        }
    }

    /// Its rows; `None` if they may be too many, or it would have to wait.
    pub(super) fn rows(
        &self,
        inputs: Vec<RecordBatch>,
        run: &mut Run,
    ) -> Result<Option<RecordBatch>> {
        let is_grouped = matches!(self.kind, Kind::Aggregate { why: Some(_), .. });
        if is_grouped && inputs.iter().all(|rows| rows.num_rows() == 0) {
            // The stock operator has a row for all rows WITH ROLLUP even if there are none.
            return Ok(Some(RecordBatch::new_empty(self.node.schema())));
        }
        let counts = inputs.iter().map(|rows| rows.num_rows() as u64);
        let rows_max = match self.kind {
            Kind::Aggregate { groupings, .. } => counts.sum::<u64>().saturating_mul(groupings),
            // A row without a partner stands for itself.
            Kind::Join => counts.fold(1_u64, |all, rows| {
                all.saturating_mul(rows.saturating_add(1))
            }),
            Kind::Leaf => 1,
        };
        if rows_max > run.most.rows {
            return Ok(None);
        }
        if matches!(self.kind, Kind::Join) {
            run.joins_without_key();
        }
        let stream = self.over(inputs)?.execute(0, Arc::clone(run.context))?;
        // Operators that yield now and then count the steps of the task that they think they are
        // in.
        let batches = tokio::task::unconstrained(stream.try_collect());
        let Some(batches) = batches.now_or_never() else {
            return Ok(None);
        };
        let batches: Vec<RecordBatch> = batches?;
        Ok(Some(match batches.as_slice() {
            [rows] => rows.clone(),
            batches => concat_batches(&self.node.schema(), batches)?,
        }))
    }

    /// The node over some rows, with nothing of what it learned while it ran before.
    fn over(&self, inputs: Vec<RecordBatch>) -> Result<Arc<dyn ExecutionPlan>> {
        let node = Arc::clone(&self.node).reset_state()?;
        if inputs.is_empty() {
            return Ok(node);
        }
        let children = self.node.children();
        let inputs = inputs.into_iter().zip(children).map(|(rows, child)| {
            let properties = Arc::clone(child.properties());
            Arc::new(Handed { rows, properties }) as Arc<dyn ExecutionPlan>
        });
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        node.replace_children(inputs.collect(), options)
    }
}

/// The rows of an input, with what was known of them.
struct Handed {
    rows: RecordBatch,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handed")
            .field("rows", &self.rows.num_rows())
            .finish_non_exhaustive()
    }
}

impl DisplayAs for Handed {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handed: rows={}", self.rows.num_rows())
    }
}

impl ExecutionPlan for Handed {
    leaf_node!("Handed");

    fn execute(
        &self,
        _partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        Ok(stream_of(self, [Ok(self.rows.clone())].into_iter()))
    }
}
