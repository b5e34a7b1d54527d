//! The operator that adds the value of a subquery to the rows of its input.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements,
    PlanProperties,
};
use futures::{StreamExt, stream};

use super::outer_row::OuterRow;
use super::runs::Runs;
use crate::plan_node::{leaf_properties, node_over_input};

/// Adds a column to the rows of its input, which come in one partition: for each of them the one
/// value that a subquery has, or NULL where it has no row.
pub struct ApplyOperator {
    input: Arc<dyn ExecutionPlan>,
    subquery: Subquery,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// A subquery and what it names of the outer rows.
#[derive(Clone)]
pub(super) struct Subquery {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    pub(super) row: Arc<OuterRow>,
    /// The outer columns by the places of their values, with their types.
    pub(super) columns: Vec<(usize, DataType)>,
    /// Whether it may have another value for the same outer row.
    pub(super) varies: bool,
}

impl ApplyOperator {
    /// Runs a plan of one column for the rows of `input`. What it names of them, the given columns,
    /// are the values of `row`; `varies` is whether it may differ for the same values.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        plan: Arc<dyn ExecutionPlan>,
        row: Arc<OuterRow>,
        columns: &[usize],
        varies: bool,
    ) -> Self {
        let schema = input.schema();
        let columns = columns.iter();
        let columns = columns.map(|column| (*column, schema.field(*column).data_type().clone()));
        let subquery = Subquery {
            plan,
            row,
            columns: columns.collect(),
            varies,
        };
        Self::over(input, subquery)
    }

    fn over(input: Arc<dyn ExecutionPlan>, subquery: Subquery) -> Self {
        let value = subquery.plan.schema().field(0).clone().with_nullable(true);
        let schema = input.schema();
        let fields = schema.fields().iter().cloned().chain([Arc::new(value)]);
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
        write!(f, "ApplyOperator: outer_columns={columns:?}")
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
        let rows = self.input.execute(partition, Arc::clone(&context))?;
        let runs = Runs::begin(self.subquery.clone(), &context)?;
        let measured = BaselineMetrics::new(&self.metrics, partition);
        let schema = self.schema();
        let output = SchemaRef::clone(&schema);
        let batches = stream::try_unfold((rows, runs), move |(mut rows, mut runs)| {
            let schema = SchemaRef::clone(&schema);
            let measured = measured.clone();
            async move {
                let Some(batch) = rows.next().await.transpose()? else {
                    return Ok(None);
                };
                let mut columns = batch.columns().to_vec();
                columns.push(runs.values(&batch).await?);
                measured.record_output(batch.num_rows());
                let batch = RecordBatch::try_new(schema, columns)?;
                Ok(Some((batch, (rows, runs))))
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(output, batches)))
    }
}
