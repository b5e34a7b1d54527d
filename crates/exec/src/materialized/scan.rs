//! Reads the rows of a table that is computed once.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;

use super::rows::{MaterializedRows, Rows};
use super::table::Materialized;
use crate::batches::batch_of;
use crate::error::table_error;
use crate::plan_node::{known_rows, leaf_node, leaf_properties, row_statistics};
use crate::table_scan::admit_scan;

/// A scan of some columns, in as many partitions as the plan of the query has.
pub struct MaterializedScan {
    table: Materialized,
    /// Places among the columns that are kept.
    columns: Vec<usize>,
    /// Whether rows are copied out of their pages, for those who keep them.
    copies: bool,
    partitions: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl MaterializedScan {
    /// A scan of these columns; `schema` has them only.
    pub(super) fn new(
        table: Materialized,
        schema: SchemaRef,
        columns: Vec<usize>,
        partitions: usize,
    ) -> MaterializedScan {
        MaterializedScan {
            table,
            columns,
            copies: false,
            partitions,
            properties: leaf_properties(schema, partitions),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same scan for those who keep all rows.
    pub(crate) fn copying(&self) -> MaterializedScan {
        MaterializedScan {
            copies: true,
            ..self.again()
        }
    }

    /// The same scan, which has counted nothing yet.
    pub(crate) fn again(&self) -> MaterializedScan {
        MaterializedScan {
            table: self.table.clone(),
            columns: self.columns.clone(),
            copies: self.copies,
            partitions: self.partitions,
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// What EXPLAIN calls the table.
    pub fn table_name(&self) -> &str {
        self.table.name()
    }
}

impl fmt::Debug for MaterializedScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaterializedScan")
            .field("table", &self.table)
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for MaterializedScan {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.table.name();
        write!(
            f,
            "MaterializedScan: table={name}, partitions={}",
            self.partitions
        )
    }
}

impl ExecutionPlan for MaterializedScan {
    leaf_node!("MaterializedScan");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (table, columns) = (self.table.clone(), self.columns.clone());
        let (copies, partitions) = (self.copies, self.partitions);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let schema = self.schema();
        let part = async move {
            let coming = MaterializedRows::of(&context).rows_of(&table, &context)?;
            let rows = coming.await.map_err(DataFusionError::Shared)?;
            let batches = batches_of(rows, (partition, partitions))?;
            let batches = batches.map(move |(rows, run, index)| {
                let run = &rows.runs[run];
                let batch = match copies {
                    true => run.read_copied(index, Some(&columns)),
                    false => run.read(index, Some(&columns)),
                };
                let batch = batch.map_err(table_error)?;
                let (columns, count) = (batch.columns().to_vec(), batch.num_rows());
                baseline.record_output(count);
                batch_of(&schema, columns, count)
            });
            Ok::<_, DataFusionError>(futures::stream::iter(batches))
        };
        let batches = futures::stream::once(part).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            batches,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let rows = known_rows(self.table.plan()?.as_ref()).to_inexact();
        let rows = match args.partition() {
            Some(_) => rows.map(|rows| rows / self.partitions),
            None => rows,
        };
        row_statistics(self, rows)
    }
}

/// The batches of one of `partitions` parts, each by its run and its place there.
fn batches_of(
    rows: Arc<Rows>,
    (part, partitions): (usize, usize),
) -> Result<impl Iterator<Item = (Arc<Rows>, usize, usize)>> {
    let total: usize = rows.runs.iter().map(|run| run.batch_count()).sum();
    let range = part * total / partitions..(part + 1) * total / partitions;
    let page_bytes = rows.runs.iter().map(|run| run.longest_page_bytes()).max();
    let page_bytes = page_bytes.unwrap_or_default() as u64;
    let admission = admit_scan(&rows.account, page_bytes)?;
    let mut run = 0;
    let mut before = 0;
    Ok(range.map(move |place| {
        let _admission = &admission;
        while place - before >= rows.runs[run].batch_count() {
            before += rows.runs[run].batch_count();
            run += 1;
        }
        let index = place - before;
        rows.runs[run].prefetch(index + 1);
        (Arc::clone(&rows), run, index)
    }))
}
