//! The plan node of window functions.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{OrderingRequirements, PhysicalExprRef};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowExpr};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, InputOrderMode};
use futures::TryStreamExt;

use super::run::{Progress, Run, RunOptions};
use super::spec::WindowSpec;
use crate::context::StatementContext;
use crate::plan_node::stock_node;
use crate::report::next_temp_table_id;
use crate::time_slice::TimeSlice;

/// Computes window functions over input that is sorted by their keys, in the memory that it is
/// granted.
///
/// Rows leave in the order in which they come. The minimum of every partition is admitted by
/// `execute`, which fails with `MinimumNotMet` when the budget cannot hold it.
pub struct WindowOperator {
    /// The stock node that this one stands for: the source of everything that plans ask.
    stock: WindowAggExec,
    spec: Arc<WindowSpec>,
    id: u64,
    metrics: ExecutionPlanMetricsSet,
}

/// Windows over one input with the same partition keys, from the lowest node on.
pub(super) struct Windows {
    pub expressions: Vec<Arc<dyn WindowExpr>>,
    pub input: Arc<dyn ExecutionPlan>,
    /// Whether input partitions hold whole partitions of the window.
    is_partitioned: bool,
}

impl Windows {
    /// Those of a stock node over sorted input.
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<Windows> {
        if let Some(stock) = plan.downcast_ref::<WindowAggExec>() {
            return Some(Windows {
                expressions: stock.window_expr().to_vec(),
                input: Arc::clone(stock.input()),
                is_partitioned: !stock.partition_keys().is_empty(),
            });
        }
        let stock = plan.downcast_ref::<BoundedWindowAggExec>()?;
        (stock.input_order_mode == InputOrderMode::Sorted).then(|| Windows {
            expressions: stock.window_expr().to_vec(),
            input: Arc::clone(stock.input()),
            is_partitioned: !stock.partition_keys().is_empty(),
        })
    }

    /// Takes the windows below along that have the same partitions, if none of these reads their
    /// results: all are answered in one pass over the rows.
    fn with_those_below(mut self) -> Windows {
        while let Some(below) = Windows::of(&self.input) {
            let width = below.input.schema().fields().len();
            let is_same = has_same_keys(&self.expressions, &below.expressions)
                && self.is_partitioned == below.is_partitioned
                && self
                    .expressions
                    .iter()
                    .all(|window| reads_only(window, width));
            if !is_same {
                break;
            }
            self.input = below.input;
            self.expressions.splice(0..0, below.expressions);
        }
        self
    }
}

fn has_same_keys(above: &[Arc<dyn WindowExpr>], below: &[Arc<dyn WindowExpr>]) -> bool {
    match (above.first(), below.first()) {
        (Some(above), Some(below)) => are_same_keys(above.partition_by(), below.partition_by()),
        _ => false,
    }
}

/// Whether two lists of partition keys make the same partitions: their order does not matter.
pub(crate) fn are_same_keys(one: &[PhysicalExprRef], other: &[PhysicalExprRef]) -> bool {
    one.iter().all(|key| other.contains(key)) && other.iter().all(|key| one.contains(key))
}

/// Whether all that a window reads are the first `width` columns.
fn reads_only(window: &Arc<dyn WindowExpr>, width: usize) -> bool {
    let read = window.all_expressions();
    let read = { read.args.into_iter() }
        .chain(read.partition_by_exprs)
        .chain(read.order_by_exprs);
    read.into_iter().all(|expression| {
        let columns = datafusion::physical_expr::utils::collect_columns(&expression);
        columns.iter().all(|column| column.index() < width)
    })
}

impl WindowOperator {
    /// The operator for a stock node, and for those right below that share its partitions; none if
    /// a function or a frame is left to DataFusion.
    ///
    /// # Errors
    /// When DataFusion cannot type an expression.
    pub fn try_from_plan(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Self>> {
        let Some(windows) = Windows::of(plan) else {
            return Ok(None);
        };
        let windows = windows.with_those_below();
        let (input, is_partitioned) = (windows.input, windows.is_partitioned);
        let stock = WindowAggExec::try_new(windows.expressions, input, is_partitioned)?;
        Self::try_from_stock(&stock)
    }

    /// The operator for a stock node; none if a function or a frame is left to DataFusion.
    ///
    /// # Errors
    /// As [`WindowOperator::try_from_plan`].
    pub fn try_from_stock(stock: &WindowAggExec) -> Result<Option<Self>> {
        let spec = WindowSpec::new(&stock.input().schema(), stock.window_expr())?;
        Ok(spec.map(|spec| Self {
            stock: stock.clone(),
            spec: Arc::new(spec),
            id: next_temp_table_id(),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    /// Identity of the temporary table in the statement's report.
    pub fn temp_table_id(&self) -> u64 {
        self.id
    }

    /// Whether partitions are kept as a whole. Where they are not, rows pass through, and only long
    /// frames or many peers make a temporary table of some of them.
    pub fn keeps_partitions(&self) -> bool {
        self.spec.keeps_partitions()
    }
}

impl fmt::Debug for WindowOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowOperator")
            .field("functions", &self.spec.functions)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for WindowOperator {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let windows = self.stock.window_expr().iter();
        if matches!(t, DisplayFormatType::TreeRender) {
            return self.stock.fmt_as(t, f);
        }
        let shown =
            windows.map(|window| format!("{} {:?}", window.name(), window.get_window_frame()));
        write!(
            f,
            "WindowOperator: [{}]",
            shown.collect::<Vec<_>>().join(", ")
        )
    }
}

impl ExecutionPlan for WindowOperator {
    stock_node!("WindowOperator", WindowAggExec);

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.stock.required_input_ordering()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.stock.maintains_input_order()
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let statement = StatementContext::of(&context)?;
        let options = RunOptions {
            spec: Arc::clone(&self.spec),
            schema: self.schema(),
            batch_rows: context.session_config().batch_size(),
            temp_table_id: self.id,
            partitions: self.properties().output_partitioning().partition_count(),
        };
        let run = Run::new(&statement, options)?;
        let steps = Steps {
            run,
            input: Some(self.stock.input().execute(partition, context)?),
            slice: TimeSlice::begin(),
            baseline: BaselineMetrics::new(&self.metrics, partition),
        };
        let written = MetricBuilder::new(&self.metrics).spilled_bytes(partition);
        let rows = futures::stream::try_unfold(steps, move |mut steps| {
            let written = written.clone();
            async move {
                let next = steps.next().await?;
                if next.is_none() {
                    written.add(steps.run.bytes_written());
                }
                Ok(next.map(|batch| (batch, steps)))
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// A run and its input.
struct Steps {
    run: Run,
    /// `None` once it has ended.
    input: Option<SendableRecordBatchStream>,
    slice: TimeSlice,
    baseline: BaselineMetrics,
}

impl Steps {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.slice.share().await;
            let timer = self.baseline.elapsed_compute().timer();
            let progress = self.run.next()?;
            match progress {
                Progress::Batch(batch) => {
                    self.baseline.record_output(batch.num_rows());
                    return Ok(Some(batch));
                }
                Progress::Worked => {}
                Progress::Waits => {
                    self.run.settle()?;
                    timer.done();
                    let Some(input) = &mut self.input else {
                        return Ok(None);
                    };
                    match input.try_next().await? {
                        Some(batch) => {
                            let _timer = self.baseline.elapsed_compute().timer();
                            self.run.push(&batch)?;
                        }
                        None => {
                            self.input = None;
                            self.run.end();
                        }
                    }
                }
            }
        }
    }
}
