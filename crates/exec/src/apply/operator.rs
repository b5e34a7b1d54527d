//! The operator that runs a subquery for the rows of its input.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements,
    PlanProperties,
};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::lateral::Lateral;
use super::runs::Runs;
use super::short_runs::steps;
use super::subquery::{Subquery, Yield};
use crate::plan_node::{leaf_properties, node_over_input};
use crate::slots::OuterRow;

/// Puts what a subquery has for each row of the input beside it. The input comes in one partition.
pub struct ApplyOperator {
    input: Arc<dyn ExecutionPlan>,
    subquery: Subquery,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ApplyOperator {
    /// Runs a plan for the rows of `input`. What it names of them, the given columns, are the
    /// values of `row`; `varies` is whether it may differ for the same values.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        plan: Arc<dyn ExecutionPlan>,
        row: Arc<OuterRow>,
        columns: &[usize],
        varies: bool,
        yields: Yield,
    ) -> Self {
        let schema = input.schema();
        let columns = columns.iter();
        let columns = columns.map(|column| (*column, schema.field(*column).data_type().clone()));
        let subquery = Subquery {
            plan,
            short: None,
            row,
            columns: columns.collect(),
            varies,
            yields,
        };
        Self::over(input, subquery)
    }

    /// The same, whose runs that have little to do go through the steps of another plan of the
    /// subquery: one of stock operators, over the same snapshots.
    ///
    /// # Errors
    /// If an index cannot be read.
    pub fn with_steps_of(mut self, stock: &Arc<dyn ExecutionPlan>) -> Result<Self> {
        self.subquery.short = steps(stock)?;
        Ok(self)
    }

    fn over(input: Arc<dyn ExecutionPlan>, subquery: Subquery) -> Self {
        let found = subquery.plan.schema();
        let found = found.fields().iter().map(|field| {
            let is_nullable = subquery.yields != Yield::Rows || field.is_nullable();
            Arc::new(field.as_ref().clone().with_nullable(is_nullable))
        });
        let schema = input.schema();
        let fields = schema.fields().iter().cloned().chain(found);
        let schema =
            Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
        Self {
            properties: leaf_properties(Arc::new(schema), 1),
            metrics: ExecutionPlanMetricsSet::new(),
            input,
            subquery,
        }
    }

    /// The plan that runs for each row.
    pub fn subquery(&self) -> &Arc<dyn ExecutionPlan> {
        &self.subquery.plan
    }

    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _options: &ReplaceChildrenOptions,
    ) -> Result<Self> {
        Ok(Self::over(input, self.subquery.clone()))
    }
}

impl fmt::Debug for ApplyOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplyOperator")
            .field("input", &self.input)
            .field("subquery", &self.subquery.plan)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for ApplyOperator {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<usize> = { self.subquery.columns.iter() }
            .map(|(column, _)| *column)
            .collect();
        let yields = self.subquery.yields;
        write!(
            f,
            "ApplyOperator: yields={yields:?}, outer_columns={columns:?}"
        )
    }
}

impl ExecutionPlan for ApplyOperator {
    node_over_input!("ApplyOperator");

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let outer = self.input.execute(partition, Arc::clone(&context))?;
        let runs = Runs::of(self.subquery.clone(), &context)?;
        let measured = BaselineMetrics::new(&self.metrics, partition);
        let schema = self.schema();
        let batches = match self.subquery.yields {
            Yield::Value => with_values(outer, runs, SchemaRef::clone(&schema)).boxed(),
            yields => Lateral {
                outer,
                runs,
                schema: SchemaRef::clone(&schema),
                keeps_outer: yields == Yield::RowsOrNull,
                at: None,
            }
            .stream()
            .boxed(),
        };
        let batches = batches.inspect_ok(move |batch| measured.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// The outer rows, each with the value of the subquery.
fn with_values(
    outer: SendableRecordBatchStream,
    runs: Runs,
    schema: SchemaRef,
) -> impl Stream<Item = Result<RecordBatch>> + Send {
    stream::try_unfold((outer, runs, None), move |(mut outer, mut runs, rest)| {
        let schema = SchemaRef::clone(&schema);
        async move {
            let batch: RecordBatch = match rest {
                Some(rest) => rest,
                None => match outer.next().await.transpose()? {
                    Some(batch) => batch,
                    None => return Ok(None),
                },
            };
            let values = runs.values(&batch).await?;
            let count = values.len();
            let mut columns = batch.slice(0, count).columns().to_vec();
            columns.push(values);
            let found = RecordBatch::try_new(schema, columns)?;
            let left = batch.num_rows() - count;
            let rest = (left > 0).then(|| batch.slice(count, left));
            Ok(Some((found, (outer, runs, rest))))
        }
    })
}
