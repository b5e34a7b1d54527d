//! Filters that look at a batch term by term.
//!
//! Owns: [`FilterOperator`], the operator in the place of DataFusion's `FilterExec`, [`filter_of`],
//! which knows both, and the conditions of joins (`by_terms`). Never: changes which rows pass.
//!
//! ```text
//!   a AND b AND c --terms--> cheap ones: a bit for each row of the batch, ANDed
//!                            costly ones, and those that may warn: for the rows that are open
//!                 --mask---> the columns that are asked for, filtered once
//! ```
//!
//! The stock operator evaluates the condition as one expression. Where few rows pass the first
//! side of an AND, it copies all columns of those rows for the other side, and scatters the bits
//! back. For comparisons of numbers that copy costs more than all comparisons. Here it is made for
//! terms that are worth it, of the columns that they read (`terms`); short texts are compared as
//! one word each (`words`). Which functions never warn is a list (`silent`). Right above a scan of
//! a table of ours, terms read their columns themselves, and those that are handed on are read of
//! the rows that pass (`late_terms`, `passing`), and comparisons of integers with constants are
//! asked of the page, where they are narrow (`integer_ranges`).
//!
//! Cost: for each cheap term a pass over its columns, for each costly one a copy of its columns of
//! the open rows.

mod by_terms;
mod condition;
mod integer_ranges;
mod late_terms;
mod passing;
mod silent;
mod terms;
#[cfg(test)]
mod tests;
mod words;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce::{LimitedBatchCoalescer, PushBatchStatus};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricType, RatioMetrics,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::EmptyRecordBatchStream;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::{Stream, StreamExt};

pub(crate) use self::by_terms::{all_of, in_joins, silent_terms};
pub(crate) use self::condition::Condition;
use self::passing::PassingFilter;
pub(crate) use self::passing::PassingRows;
use self::silent::is_silent_aggregate;
pub use self::silent::{Kind, SilentFunction, silent_names};
pub(crate) use self::terms::{Terms, chosen, may_warn as expression_warns, true_rows};
pub(crate) use self::words::valid_only;
use crate::plan_node::{ours_or_stock, stock_answers};
use crate::table_scan::TableScan;

/// Hands on the rows for which a condition is true.
///
/// The sides of its ANDs and ORs are asked one after the other, as in MySQL: one that may warn or
/// fail is asked only for rows that those before it leave open.
pub struct FilterOperator {
    /// The stock node that this one stands for: the source of everything that plans ask.
    stock: FilterExec,
    condition: Condition,
    metrics: ExecutionPlanMetricsSet,
}

impl FilterOperator {
    /// The operator for a stock node.
    pub fn of(stock: &FilterExec) -> FilterOperator {
        FilterOperator::new(stock, Condition::of(stock))
    }

    fn new(stock: &FilterExec, condition: Condition) -> FilterOperator {
        FilterOperator {
            stock: stock.clone(),
            condition,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The stock node that this one stands for.
    pub fn stock(&self) -> &FilterExec {
        &self.stock
    }

    /// The rows of a scan right below this filter that pass it, for those who ask more of them;
    /// `None` where the input is no such scan, or it is not known what the condition reads.
    ///
    /// # Errors
    /// Where the scan finds no memory.
    pub(crate) fn passing(
        &self,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<Option<PassingRows>> {
        let scan = self.stock.input().downcast_ref::<TableScan>();
        let Some(scan) = scan.filter(|_| self.condition.late_terms().is_some()) else {
            return Ok(None);
        };
        let Some(scan) = scan.open(partition, context)? else {
            return Ok(None);
        };
        let filter = PassingFilter {
            comes_first: !self.condition.is_silent(),
            left: self.stock.fetch().unwrap_or(usize::MAX),
            condition: self.condition.clone(),
            baseline: BaselineMetrics::new(&self.metrics, partition),
            selectivity: self.selectivity(partition),
        };
        let projection = self.stock.projection().as_deref();
        let passing = PassingRows::of_scan(scan, self.stock.input().schema());
        Ok(Some(passing.through(filter, projection, self.schema())))
    }

    fn selectivity(&self, partition: usize) -> RatioMetrics {
        MetricBuilder::new(&self.metrics)
            .with_type(MetricType::Summary)
            .ratio_metrics("selectivity", partition)
    }

    /// The operator for a stock node that was made of this one's.
    fn again(&self, stock: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        ours_or_stock(stock, |stock: &FilterExec| {
            let condition = self.condition.again(stock);
            Ok(Some(FilterOperator::new(stock, condition)))
        })
    }
}

/// The filter that a node is: a stock one, or the one that ours stands for.
pub fn filter_of(plan: &dyn ExecutionPlan) -> Option<&FilterExec> {
    let ours = plan.downcast_ref::<FilterOperator>();
    ours.map(FilterOperator::stock)
        .or_else(|| plan.downcast_ref::<FilterExec>())
}

/// Whether a filter or a projection may warn, between a plan and the next node below it that has no
/// input or several. How often it does depends on which rows are read.
pub(crate) fn may_warn(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut plan = plan;
    while let [input] = plan.children().as_slice() {
        if warns(plan) {
            return true;
        }
        plan = *input;
    }
    false
}

/// Whether a node is a filter or a projection that may warn.
pub(crate) fn warns(node: &Arc<dyn ExecutionPlan>) -> bool {
    let inputs = node.children();
    let [input] = inputs.as_slice() else {
        return false;
    };
    let schema = input.schema();
    match (
        filter_of(node.as_ref()),
        node.downcast_ref::<ProjectionExec>(),
    ) {
        (Some(filter), _) => terms::may_warn(filter.predicate(), &schema),
        (None, Some(projection)) => {
            let mut exprs = projection.expr().iter();
            exprs.any(|of| terms::may_warn(&of.expr, &schema))
        }
        (None, None) => false,
    }
}

/// Whether a node has an aggregate that may warn.
pub(crate) fn aggregates_warn(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<AggregateExec>().is_some_and(|node| {
        let mut functions = node.aggr_expr().iter();
        functions.any(|function| !is_silent_aggregate(function.fun().name()))
    })
}

/// The plan with our filters in the place of stock ones.
pub(crate) fn replace_all(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let stock = node.downcast_ref::<FilterExec>();
        Ok(match stock.map(FilterOperator::of) {
            Some(ours) => Transformed::yes(Arc::new(ours) as Arc<dyn ExecutionPlan>),
            None => Transformed::no(node),
        })
    })
    .data()
}

impl fmt::Debug for FilterOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterOperator")
            .field("predicate", self.stock.predicate())
            .finish_non_exhaustive()
    }
}

impl DisplayAs for FilterOperator {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What passes is the same, and EXPLAIN shows what it is.
        self.stock.fmt_as(t, f)
    }
}

impl ExecutionPlan for FilterOperator {
    stock_answers!("FilterOperator");

    // A recursive query makes its plan anew for each round.
    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.again(Arc::new(self.stock.clone()).replace_children(children, options)?)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        self.again(Arc::new(self.stock.clone()).reset_state()?)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.stock.maintains_input_order()
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        self.again(self.stock.with_fetch(fetch)?).ok()
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (batch_rows, fetch) = (self.stock.batch_size(), self.stock.fetch());
        let projection = self.stock.projection().as_ref();
        let input = self.stock.input();
        // Who wants no rows is not told of warnings either.
        let wants_none = fetch == Some(0);
        let passing = match wants_none {
            true => None,
            false => self.passing(partition, &context)?,
        };
        if let Some(passing) = passing {
            return Ok(passing.stream(batch_rows, fetch, |_| {}));
        }
        let input: SendableRecordBatchStream = match wants_none {
            true => Box::pin(EmptyRecordBatchStream::new(input.schema())),
            false => input.execute(partition, context)?,
        };
        Ok(Box::pin(Filtered {
            schema: self.schema(),
            condition: self.condition.clone(),
            projection: projection.map(|columns| columns.to_vec()),
            input,
            gathered: LimitedBatchCoalescer::new(self.schema(), batch_rows, fetch),
            is_finished: wants_none,
            baseline: BaselineMetrics::new(&self.metrics, partition),
            selectivity: self.selectivity(partition),
        }))
    }
}

/// The rows of one partition.
struct Filtered {
    /// That of the projected columns.
    schema: SchemaRef,
    condition: Condition,
    projection: Option<Vec<usize>>,
    input: SendableRecordBatchStream,
    /// Rows that pass, until they fill a batch.
    gathered: LimitedBatchCoalescer,
    /// Whether no more rows are read: the input has ended or failed, or there are enough.
    is_finished: bool,
    baseline: BaselineMetrics,
    selectivity: RatioMetrics,
}

impl Filtered {
    /// Takes the rows of a batch that pass; whether more of them are wanted.
    fn push(&mut self, batch: RecordBatch) -> Result<bool> {
        self.selectivity.add_total(batch.num_rows());
        let terms = self.condition.terms();
        let Some(passing) = terms.filtered(batch, self.projection.as_deref())? else {
            return Ok(true);
        };
        let status = self.gathered.push_batch(passing)?;
        Ok(matches!(status, PushBatchStatus::Continue))
    }

    /// Ends the last batch, and releases what the input holds.
    fn finish(&mut self) -> Result<()> {
        self.is_finished = true;
        self.input = Box::pin(EmptyRecordBatchStream::new(self.input.schema()));
        self.gathered.finish()
    }

    fn step(&mut self, batch: Option<Result<RecordBatch>>) -> Result<()> {
        let elapsed = self.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let goes_on = match batch {
            Some(batch) => self.push(batch?)?,
            None => false,
        };
        if goes_on { Ok(()) } else { self.finish() }
    }
}

impl Stream for Filtered {
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(batch) = this.gathered.next_completed_batch() {
                this.selectivity.add_part(batch.num_rows());
                return this.baseline.record_poll(Poll::Ready(Some(Ok(batch))));
            }
            if this.is_finished {
                return Poll::Ready(None);
            }
            let batch = ready!(this.input.poll_next_unpin(context));
            if let Err(error) = this.step(batch) {
                this.is_finished = true;
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl RecordBatchStream for Filtered {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
