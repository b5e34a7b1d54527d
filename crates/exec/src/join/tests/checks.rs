//! A join of random rows, run as the stock operator and as ours.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::common::{JoinSide, JoinType, NullEquality, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect};
use datafusion::prelude::SessionConfig;
use futures::TryStreamExt;
use mayfly_space::Space;
use mayfly_testkit::Random;

use super::rows::{KeyKind, Shape, batches};
use crate::join::replace;
use crate::tests::sorted;
use crate::{JoinOperator, runtime};

/// An operator and its streams.
pub(super) type Streams = (Arc<dyn ExecutionPlan>, Vec<SendableRecordBatchStream>);

/// A join of random rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) kind: JoinType,
    pub(super) keys: KeyKind,
    pub(super) null_equality: NullEquality,
    pub(super) has_filter: bool,
    pub(super) is_null_aware: bool,
    pub(super) left: Shape,
    pub(super) right: Shape,
    pub(super) seed: u64,
}

impl Case {
    /// The stock join, with two partitions on the left side and three on the right.
    fn plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let mut random = Random::new(self.seed);
        let mut side = |name, shape, partitions: usize| -> Result<Arc<dyn ExecutionPlan>> {
            let (schema, batches) = batches(name, self.keys, shape, &mut random);
            let mut parts = vec![Vec::new(); partitions];
            for (at, batch) in batches.into_iter().enumerate() {
                parts[at % partitions].push(batch);
            }
            Ok(MemorySourceConfig::try_new_exec(&parts, schema, None)?)
        };
        let left = side("l", self.left, 2)?;
        let right = side("r", self.right, 3)?;
        let column = |plan: &Arc<dyn ExecutionPlan>, name: &str| -> Result<PhysicalExprRef> {
            Ok(Arc::new(Column::new_with_schema(name, &plan.schema())?))
        };
        let on = (0..self.keys.count()).map(|n| {
            Ok((
                column(&left, &format!("lk{n}"))?,
                column(&right, &format!("rk{n}"))?,
            ))
        });
        let on = on.collect::<Result<Vec<_>>>()?;
        let filter = self
            .has_filter
            .then(|| self.filter(&left.schema(), &right.schema()));
        // Every second case returns some columns only, in another order.
        let columns = match self.kind {
            JoinType::LeftSemi | JoinType::LeftAnti => left.schema().fields().len(),
            JoinType::RightSemi | JoinType::RightAnti => right.schema().fields().len(),
            JoinType::LeftMark => left.schema().fields().len() + 1,
            JoinType::RightMark => right.schema().fields().len() + 1,
            _ => left.schema().fields().len() + right.schema().fields().len(),
        };
        let projection = match self.seed % 4 {
            1 => Some(
                (0..columns)
                    .rev()
                    .filter(|column| column % 3 != 0)
                    .collect(),
            ),
            3 => Some(Vec::new()),
            _ => None,
        };
        let left = Arc::new(CoalescePartitionsExec::new(left));
        Ok(Arc::new(HashJoinExec::try_new(
            left,
            right,
            on,
            filter,
            &self.kind,
            projection,
            PartitionMode::CollectLeft,
            self.null_equality,
            self.is_null_aware,
        )?))
    }

    /// A number and a text of the left side are less than those of the right one.
    fn filter(&self, left: &Schema, right: &Schema) -> JoinFilter {
        let columns = [
            (JoinSide::Left, left, "ln"),
            (JoinSide::Left, left, "ls"),
            (JoinSide::Right, right, "rn"),
            (JoinSide::Right, right, "rs"),
        ];
        let fields = columns.map(|(_, schema, name)| schema.field_with_name(name).unwrap().clone());
        let indices = columns.map(|(side, schema, name)| ColumnIndex {
            index: schema.index_of(name).unwrap(),
            side,
        });
        let compare = |left, operator, right| -> PhysicalExprRef {
            Arc::new(BinaryExpr::new(left, operator, right))
        };
        let column = |at: usize| -> PhysicalExprRef { Arc::new(Column::new(columns[at].2, at)) };
        let numbers = compare(column(0), Operator::Lt, column(2));
        let texts = compare(column(1), Operator::Lt, column(3));
        let both = compare(numbers, Operator::And, texts);
        JoinFilter::new(
            both,
            indices.to_vec(),
            Arc::new(Schema::new(fields.to_vec())),
        )
    }

    fn ours(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = replace(self.plan()?, 0)?.data;
        assert!(plan.is::<JoinOperator>(), "{self:?}");
        Ok(plan)
    }

    fn task(space: &Space, config: SessionConfig) -> Result<Arc<TaskContext>> {
        let task = TaskContext::default()
            .with_session_config(config.with_batch_size(500))
            .with_runtime(runtime(space.root(), None)?);
        Ok(Arc::new(task))
    }

    /// Our operator and its streams.
    pub(super) fn streams(&self, space: &Space, config: SessionConfig) -> Result<Streams> {
        let (plan, task) = (self.ours()?, Case::task(space, config)?);
        let partitions = 0..plan.output_partitioning().partition_count();
        let streams = partitions.map(|partition| plan.execute(partition, Arc::clone(&task)));
        let streams = streams.collect::<Result<_>>()?;
        Ok((plan, streams))
    }

    /// Our operator and its rows.
    pub(super) async fn run_with(
        &self,
        space: &Space,
        config: SessionConfig,
    ) -> Result<(Arc<dyn ExecutionPlan>, Vec<String>)> {
        let (plan, task) = (self.ours()?, Case::task(space, config)?);
        let mut rows = Vec::new();
        // One after the other: no stream may wait for another one.
        for partition in 0..plan.output_partitioning().partition_count() {
            let stream = plan.execute(partition, Arc::clone(&task))?;
            rows.extend(stream.try_collect::<Vec<_>>().await?);
        }
        Ok((plan, sorted(&rows)))
    }
}

pub(super) async fn run_stock(case: &Case) -> Vec<String> {
    let rows = collect(case.plan().unwrap(), Arc::default()).await.unwrap();
    sorted(&rows)
}

pub(super) async fn run_ours(case: &Case, space: &Space) -> Result<Vec<String>> {
    case.run_with(space, SessionConfig::new())
        .await
        .map(|(_, rows)| rows)
}

/// What our operator counted.
pub(super) fn counted(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let metrics = plan.metrics().unwrap();
    metrics.sum_by_name(name).unwrap().as_usize()
}
