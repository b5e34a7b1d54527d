//! One execution of an aggregate: tasks that fill it, streams that read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::aggregates::{PhysicalGroupBy, evaluate_group_by};

use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, RecordOutput, Time,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::future::{BoxFuture, FutureExt, Shared, TryFutureExt};
use futures::stream::{self, StreamExt};
use mayfly_space::{Account, AccountOptions};
use mayfly_table::rows::{
    GroupInput, GroupOptions, GroupReader, GroupSet, GroupWorker, KeyColumn, RowLayout,
};

use super::accumulate::KeptReader;
use super::finish::result_batch;
use super::operator::{AggregateOperator, Recipe};
use crate::context::StatementContext;
use crate::error::{rows_error, space_error};
use crate::report::{TempTable, Why};
use crate::tasks::{join_all, next_groups};
use crate::time_slice::TimeSlice;

/// The end of all input: shared by every output stream.
type Filled = Shared<BoxFuture<'static, Result<(), Arc<DataFusionError>>>>;

/// What the output partitions of one execution share.
pub(super) struct Run {
    set: Arc<GroupSet>,
    recipe: Recipe,
    key_columns: Vec<KeyColumn>,
    schema: SchemaRef,
    /// How many output partitions there are.
    readers: usize,
    filled: Filled,
    usage: Arc<Usage>,
}

/// Reports what the temporary table used, when the last stream is gone.
pub(super) struct Usage {
    id: u64,
    why: Why,
    account: Account,
    context: Arc<StatementContext>,
    rows: AtomicU64,
}

impl Usage {
    pub(super) fn new(
        operator: &AggregateOperator,
        account: Account,
        context: Arc<StatementContext>,
    ) -> Usage {
        Usage {
            id: operator.id,
            why: operator.why,
            account,
            context,
            rows: AtomicU64::new(0),
        }
    }

    /// The account that is reported.
    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    pub(super) fn add_rows(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }
}

/// The account of one execution, which leaves a part of the budget to others.
pub(super) fn operator_account(statement: &StatementContext, why: Why) -> Account {
    let memory_bytes = statement.account.space().memory_bytes();
    let limits = AccountOptions {
        claim_max_bytes: Some(memory_bytes / 4 * 3),
        ..AccountOptions::default()
    };
    statement.table_account(why.text(), 1, limits)
}

impl Drop for Usage {
    fn drop(&mut self) {
        let counters = self.account.counters();
        let rows = self.rows.load(Ordering::Relaxed);
        let passes = if counters.bytes_read > 0 { 2 } else { 1 };
        let table = TempTable::of(self.id, self.why, &self.account, rows, passes);
        self.context.report.add(table);
    }
}

impl Run {
    pub(super) fn start(
        operator: &AggregateOperator,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<Run>> {
        let statement = StatementContext::of(context)?;
        let account = operator_account(&statement, operator.why);
        let space = account.space();
        let memory = space.memory_bytes();
        let inputs = operator.input_partitions();
        let workers = inputs.max(operator.output_partitions());
        let mut options = GroupOptions::for_budget(memory, space.default_page_class(), workers);
        let group_schema = operator.group_by.group_schema(&operator.input.schema())?;
        let key_columns: Vec<KeyColumn> = group_schema
            .fields()
            .iter()
            .map(|field| KeyColumn {
                data_type: field.data_type().clone(),
                nullable: field.is_nullable(),
            })
            .collect();
        let layout = match &operator.recipe {
            Recipe::Inline(recipe) => RowLayout::new(&key_columns, &recipe.payload, &recipe.states),
            Recipe::Kept(functions) => {
                options.keep_rows = true;
                RowLayout::new(&key_columns, &functions.payload(), &[])
            }
            Recipe::Whole(_) => return internal_err!("all rows are one group: see `whole`"),
        };
        let Some(layout) = layout else {
            return internal_err!("the planner checked that a row can hold the columns");
        };
        let stop = statement.stop.clone();
        let set = GroupSet::stoppable(layout, &account, options, stop).map_err(space_error)?;
        let usage = Arc::new(Usage::new(operator, account, statement));
        let mut tasks = Vec::with_capacity(inputs);
        for partition in 0..inputs {
            let input = operator.input.execute(partition, Arc::clone(context))?;
            let filler = Filler {
                worker: set.worker(partition),
                group_by: Arc::clone(&operator.group_by),
                recipe: operator.recipe.clone(),
                compute: MetricBuilder::new(&operator.metrics).elapsed_compute(partition),
            };
            tasks.push(SpawnedTask::spawn(filler.consume(input)));
        }
        Ok(Arc::new(Run {
            set,
            recipe: operator.recipe.clone(),
            key_columns,
            schema: Arc::clone(&operator.schema),
            readers: operator.output_partitions(),
            filled: join_all(tasks)
                .map_ok(drop)
                .map_err(Arc::new)
                .boxed()
                .shared(),
            usage,
        }))
    }

    /// The stream of one output partition.
    pub(super) fn output(
        self: Arc<Self>,
        partition: usize,
        batch_rows: usize,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(metrics, partition);
        let schema = Arc::clone(&self.schema);
        let stream = stream::once(async move {
            let filled = self.filled.clone();
            filled.await.map_err(DataFusionError::Shared)?;
            let reader = Reader::new(&self, batch_rows);
            let batches = stream::try_unfold((self, reader, metrics), async |reading| {
                let (run, mut reader, metrics) = reading;
                let timer = metrics.elapsed_compute().timer();
                let next = reader.next(&run).await;
                timer.done();
                Ok(next?.map(|batch| {
                    run.usage.add_rows(batch.num_rows());
                    (batch.record_output(&metrics), (run, reader, metrics))
                }))
            });
            Ok::<_, DataFusionError>(batches)
        })
        .map(|result| match result {
            Ok(batches) => batches.left_stream(),
            Err(error) => stream::once(async move { Err(error) }).right_stream(),
        })
        .flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

/// One task that reads an input partition.
struct Filler {
    worker: GroupWorker,
    group_by: Arc<PhysicalGroupBy>,
    recipe: Recipe,
    compute: Time,
}

impl Filler {
    async fn consume(mut self, mut input: SendableRecordBatchStream) -> Result<()> {
        let mut slice = TimeSlice::begin();
        while let Some(batch) = input.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                self.push(&batch)?;
            }
            slice.share().await;
        }
        let _timer = self.compute.timer();
        self.worker.finish().map_err(rows_error)
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let compute = self.compute.clone();
        let _timer = compute.timer();
        let (payload, states) = match &self.recipe {
            Recipe::Inline(recipe) => (recipe.payload_columns(batch)?, recipe.state_inputs(batch)?),
            Recipe::Kept(functions) => (functions.evaluate(batch)?, Vec::new()),
            Recipe::Whole(_) => return internal_err!("all rows are one group: see `whole`"),
        };
        for key in evaluate_group_by(&self.group_by, batch)? {
            let rows = batch.num_rows();
            let input = GroupInput {
                rows,
                key: &key,
                payload: &payload,
                states: &states,
            };
            self.worker.push(&input).map_err(rows_error)?;
        }
        Ok(())
    }
}

/// What one output partition reads with.
enum Reader {
    Inline {
        groups: Box<GroupReader>,
        batch_rows: usize,
        slice: TimeSlice,
    },
    Kept(Box<KeptReader>),
}

impl Reader {
    fn new(run: &Run, batch_rows: usize) -> Reader {
        let groups = GroupReader::new(Arc::clone(&run.set));
        match &run.recipe {
            Recipe::Kept(functions) => Reader::Kept(Box::new(KeptReader::new(
                groups,
                functions.clone(),
                run.key_columns.clone(),
                run.usage.account(),
                run.readers,
                batch_rows,
            ))),
            _ => Reader::Inline {
                groups: Box::new(groups),
                batch_rows,
                slice: TimeSlice::begin(),
            },
        }
    }

    async fn next(&mut self, run: &Run) -> Result<Option<RecordBatch>> {
        match (self, &run.recipe) {
            (
                Reader::Inline {
                    groups,
                    batch_rows,
                    slice,
                },
                Recipe::Inline(recipe),
            ) => match next_groups(groups, *batch_rows, slice).await? {
                Some(found) => result_batch(&run.schema, &recipe.outputs, found).map(Some),
                None => Ok(None),
            },
            (Reader::Kept(reader), _) => reader.next_batch(&run.schema).await,
            (Reader::Inline { .. }, _) => internal_err!("a reader reads what its recipe wrote"),
        }
    }
}
