//! Drops rows that no row of a join's left side asks for.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, RecordOutput, Time,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan,
};
use futures::{StreamExt, stream};

use crate::filter::{FilterOperator, PassingRows};
use crate::join::{WantedKeys, told};
use crate::open_scan::OpenRows;
use crate::plan_node::pass_through_node;
use crate::selection::Selection;
use crate::table_scan::TableScan;

/// So many rows are looked at before it is asked whether that is worth it: it is where at least one
/// of three is dropped.
const SEEN_MIN: usize = 16 << 10;
const DROPPED_PART: usize = 3;
/// Keys are read of the open rows alone where they are no more than one of so many.
const ROWS_PER_OPEN: usize = 16;

/// What is counted beside the rows that go on.
const ROWS_DROPPED: &str = "rows_dropped";

/// The rows of its input whose keys a join above may have a partner for; all of them where it does
/// not say.
pub struct SidewaysOperator {
    /// By which the join and this node know each other.
    promise: u64,
    /// The columns of the input that are the keys, in the order in which they are told.
    columns: Arc<[usize]>,
    /// Whether rows of one key must be told alike, as where they are grouped above.
    tells_alike: bool,
    input: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
}

impl SidewaysOperator {
    pub(super) fn new(
        promise: u64,
        columns: Arc<[usize]>,
        tells_alike: bool,
        input: Arc<dyn ExecutionPlan>,
    ) -> Self {
        SidewaysOperator {
            promise,
            columns,
            tells_alike,
            input,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _options: &ReplaceChildrenOptions,
    ) -> Result<Self> {
        let columns = Arc::clone(&self.columns);
        Ok(Self::new(self.promise, columns, self.tells_alike, input))
    }

    /// The rows of a scan below that pass, if it stands right below, or below a filter or other
    /// nodes of this kind: their columns are read when they are asked for.
    fn passing(&self, partition: usize, context: &Arc<TaskContext>) -> Result<Option<PassingRows>> {
        let passing = if let Some(scan) = self.input.downcast_ref::<TableScan>() {
            let open = scan.open(partition, context)?;
            open.map(|open| PassingRows::of_scan(open, scan.schema()))
        } else if let Some(filter) = self.input.downcast_ref::<FilterOperator>() {
            match filter.stock().fetch() {
                None => filter.passing(partition, context)?,
                Some(_) => None,
            }
        } else if let Some(other) = self.input.downcast_ref::<SidewaysOperator>() {
            other.passing(partition, context)?
        } else {
            None
        };
        let Some(wanted) = told(context, self.promise) else {
            return Ok(passing);
        };
        let mut test = self.test(wanted, partition)?;
        Ok(passing.map(|passing| {
            passing.tested(&self.columns, move |rows, columns, open| {
                test.narrow(rows, columns, open)
            })
        }))
    }

    fn test(&self, wanted: Arc<WantedKeys>, partition: usize) -> Result<KeyTest> {
        Ok(KeyTest {
            schema: Arc::new(self.schema().project(&self.columns)?),
            wanted,
            may_end: !self.tells_alike,
            seen: 0,
            passed: 0,
            dropped: MetricBuilder::new(&self.metrics).counter(ROWS_DROPPED, partition),
            elapsed: MetricBuilder::new(&self.metrics).elapsed_compute(partition),
        })
    }

    /// How many rows its executions have dropped; `None` where it was not executed, as where copies
    /// of it were (each level of a recursion has its own).
    pub fn rows_dropped(&self) -> Option<usize> {
        let dropped = self.metrics.clone_inner().sum_by_name(ROWS_DROPPED)?;
        Some(dropped.as_usize())
    }
}

impl fmt::Debug for SidewaysOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SidewaysOperator")
            .field("promise", &self.promise)
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for SidewaysOperator {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let keys = self.columns.iter();
        let keys = keys.map(|column| format!("{}@{column}", schema.field(*column).name()));
        let keys = keys.collect::<Vec<_>>().join(", ");
        write!(f, "SidewaysOperator: keys=[{keys}]")
    }
}

impl ExecutionPlan for SidewaysOperator {
    pass_through_node!("SidewaysOperator");

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let schema = self.schema();
        let wanted = told(&context, self.promise);
        // No row is wanted, so none needs to be read.
        if wanted.as_ref().is_some_and(|wanted| wanted.is_empty()) {
            return Ok(Box::pin(EmptyRecordBatchStream::new(schema)));
        }
        if let Some(passing) = self.passing(partition, &context)? {
            let batch_rows = context.session_config().batch_size();
            let seen = move |rows| metrics.record_output(rows);
            return Ok(passing.stream(batch_rows, None, seen));
        }
        let dropping = Dropping {
            test: match wanted {
                Some(wanted) => Some(self.test(wanted, partition)?),
                None => None,
            },
            columns: Arc::clone(&self.columns),
            input: self.input.execute(partition, context)?,
            metrics,
        };
        let rows = stream::try_unfold(dropping, async |mut dropping| {
            Ok(dropping.next().await?.map(|batch| (batch, dropping)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}

/// Whether rows find a partner, for one partition.
struct KeyTest {
    wanted: Arc<WantedKeys>,
    /// That of the keys.
    schema: SchemaRef,
    /// Whether it ends where it drops little.
    may_end: bool,
    seen: usize,
    passed: usize,
    dropped: Count,
    elapsed: Time,
}

impl KeyTest {
    /// The rows with these keys that pass; `None` where it has ended, and all do.
    fn passing(&mut self, keys: &[ArrayRef], rows: usize) -> Result<Option<BooleanBuffer>> {
        if self.is_over() {
            return Ok(None);
        }
        let found = {
            let _timer = self.elapsed.timer();
            self.wanted.wanted(keys, rows)?
        };
        self.count(&found);
        Ok(Some(found))
    }

    fn count(&mut self, found: &BooleanBuffer) {
        let passed = found.count_set_bits();
        self.seen += found.len();
        self.passed += passed;
        self.dropped.add(found.len() - passed);
    }

    /// The rows of a page whose key passes, if the page can be asked; `None` where their keys are
    /// best read.
    fn passing_in_page(
        &mut self,
        rows: &OpenRows,
        columns: &[usize],
        open: &Selection,
    ) -> Result<Option<BooleanBuffer>> {
        let [column] = columns else {
            return Ok(None);
        };
        if rows.are_few(open, ROWS_PER_OPEN) {
            return Ok(None);
        }
        let passing = {
            let _timer = self.elapsed.timer();
            let data_type = self.schema.field(0).data_type();
            self.wanted.wanted_of_page(rows, *column, data_type)?
        };
        if let Some(passing) = &passing {
            self.count(passing);
        }
        Ok(passing)
    }

    /// Whether it has seen that it drops too little to be worth its time.
    fn is_over(&self) -> bool {
        self.may_end
            && self.seen >= SEEN_MIN
            && (self.seen - self.passed) * DROPPED_PART < self.seen
    }

    /// Closes open rows that do not pass, by some columns that are read for that.
    fn narrow(
        &mut self,
        rows: &mut OpenRows,
        columns: &[usize],
        open: Selection,
    ) -> Result<Selection> {
        if self.is_over() {
            return Ok(open);
        }
        if let Some(passing) = self.passing_in_page(rows, columns, &open)? {
            return Ok(open.and(passing));
        }
        let schema = Arc::clone(&self.schema);
        rows.narrow(open, ROWS_PER_OPEN, (columns, &schema), |keys, open| {
            let passing = self.passing(keys.columns(), keys.num_rows())?;
            Ok(match passing {
                Some(passing) => open.and(passing),
                None => open,
            })
        })
    }
}

/// One partition.
struct Dropping {
    /// `None` if the join said nothing.
    test: Option<KeyTest>,
    columns: Arc<[usize]>,
    input: SendableRecordBatchStream,
    metrics: BaselineMetrics,
}

impl Dropping {
    /// The next rows that go on.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(batch) = self.input.next().await {
            let batch = self.kept(batch?)?;
            if batch.num_rows() > 0 {
                return Ok(Some(batch.record_output(&self.metrics)));
            }
        }
        Ok(None)
    }

    fn kept(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let Some(test) = &mut self.test else {
            return Ok(batch);
        };
        let keys = self.columns.iter();
        let keys: Vec<ArrayRef> =
            { keys.map(|column| Arc::clone(batch.column(*column))) }.collect();
        let kept = match test.passing(&keys, batch.num_rows())? {
            Some(found) if found.has_false() => {
                filter_record_batch(&batch, &BooleanArray::from(found))?
            }
            _ => batch,
        };
        Ok(kept)
    }
}
