//! Aggregates without GROUP BY of which at least one is DISTINCT: all rows are one group.
//!
//! Owns one execution of them. Never: keeps a row. The distinct values are what takes memory; they
//! go into a [`DistinctSet`], whose partitions are what the readers share:
//!
//! ```text
//!  input 0 -> functions over rows ------------------------------+
//!          -> worker 0 -+                                       |
//!                       +- DistinctSet -> reader 0 -> DISTINCT -+-> merged -> one row
//!          -> worker 1 -+              -> reader 1 -> DISTINCT -+
//!  input 1 -> functions over rows ------------------------------+
//! ```
//!
//! Every function has an accumulator in each task that feeds it; in the end their states are
//! merged, as the stock partial and final aggregate do.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Accumulator;
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::{self, StreamExt};
use mayfly_space::{Error as SpaceError, Reservation};
use mayfly_table::rows::GroupOptions;

use super::distinct::{DistinctReader, DistinctSet, DistinctWorker};
use super::functions::{Function, Functions, Source, select};
use super::operator::AggregateOperator;
use super::run::{Usage, operator_account};
use crate::context::StatementContext;
use crate::error::space_error;
use crate::tasks::join_all;
use crate::time_slice::TimeSlice;

/// What the tasks of one execution share.
struct Whole {
    functions: Functions,
    set: DistinctSet,
    usage: Usage,
    batch_rows: usize,
}

/// The stream of the one result row.
pub(super) fn stream(
    operator: &AggregateOperator,
    functions: &Functions,
    context: &Arc<TaskContext>,
    metrics: BaselineMetrics,
) -> Result<SendableRecordBatchStream> {
    let statement = StatementContext::of(context)?;
    let account = operator_account(&statement, operator.why);
    let space = account.space();
    let workers = operator.input_partitions();
    let memory_bytes = space.memory_bytes();
    let options = GroupOptions::for_budget(memory_bytes, space.default_page_class(), workers);
    let set =
        DistinctSet::new(functions, &account, options, &statement.stop).map_err(space_error)?;
    let whole = Arc::new(Whole {
        functions: functions.clone(),
        set,
        usage: Usage::new(operator, account, statement),
        batch_rows: context.session_config().batch_size(),
    });
    let mut inputs = Vec::with_capacity(workers);
    for partition in 0..workers {
        inputs.push(operator.input.execute(partition, Arc::clone(context))?);
    }
    let schema = Arc::clone(&operator.schema);
    let row = result_row(whole, inputs, Arc::clone(&schema), metrics);
    let stream = stream::once(row);
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
}

async fn result_row(
    whole: Arc<Whole>,
    inputs: Vec<SendableRecordBatchStream>,
    schema: SchemaRef,
    metrics: BaselineMetrics,
) -> Result<RecordBatch> {
    let workers = inputs.len();
    let mut fillers = Vec::with_capacity(workers);
    for (number, input) in inputs.into_iter().enumerate() {
        let filler = Filler {
            worker: whole.set.worker(number)?,
            states: States::new(&whole, |source| matches!(source, Source::Rows(_)))?,
            whole: Arc::clone(&whole),
        };
        fillers.push(SpawnedTask::spawn(filler.consume(input)));
    }
    let mut parts = join_all(fillers).await?;
    let mut readers = Vec::with_capacity(workers);
    for _ in 0..workers {
        let reader = whole.set.reader();
        let states = States::new(&whole, |source| matches!(source, Source::Distinct(_)))?;
        let reader = read(Arc::clone(&whole), reader, states);
        readers.push(SpawnedTask::spawn(reader));
    }
    parts.extend(join_all(readers).await?);
    let timer = metrics.elapsed_compute().timer();
    let columns = merge(&whole.functions, &mut parts)?;
    timer.done();
    let row = RecordBatch::try_new(schema, columns)?;
    Ok(row.record_output(&metrics))
}

/// One task that reads an input partition.
struct Filler {
    whole: Arc<Whole>,
    worker: DistinctWorker,
    states: States,
}

impl Filler {
    async fn consume(mut self, mut input: SendableRecordBatchStream) -> Result<States> {
        let mut slice = TimeSlice::begin();
        while let Some(batch) = input.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                self.push(&batch)?;
            }
            slice.share().await;
        }
        self.worker.finish()?;
        Ok(self.states)
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let functions = &self.whole.functions;
        let columns = functions.evaluate(batch)?;
        let rows = batch.num_rows();
        self.states.update_rows(functions, &columns, rows)?;
        self.states.account_for(&self.whole)?;
        self.worker.push(functions, &columns, rows, None)
    }
}

/// One task that reads distinct values until none are left.
async fn read(whole: Arc<Whole>, mut reader: DistinctReader, mut states: States) -> Result<States> {
    while let Some(batches) = reader.next(whole.batch_rows).await? {
        for batch in batches {
            states.update_distinct(&whole.functions, batch.tuple, &batch.values)?;
            whole.usage.add_rows(batch.groups.len());
        }
        states.account_for(&whole)?;
    }
    Ok(states)
}

/// The accumulators that one task feeds.
struct States {
    /// One for each function; `None` where another task feeds it.
    accumulators: Vec<Option<Box<dyn Accumulator>>>,
    memory: Reservation,
}

impl States {
    fn new(whole: &Whole, is_fed: impl Fn(&Source) -> bool) -> Result<States> {
        let accumulator = |function: &Function| {
            is_fed(&function.source)
                .then(|| function.aggregate.create_accumulator())
                .transpose()
        };
        let functions = whole.functions.list.iter();
        Ok(States {
            accumulators: functions.map(accumulator).collect::<Result<_>>()?,
            memory: whole.usage.account().reserve(0).map_err(space_error)?,
        })
    }

    fn update_rows(
        &mut self,
        functions: &Functions,
        columns: &[ArrayRef],
        rows: usize,
    ) -> Result<()> {
        for (function, accumulator) in functions.list.iter().zip(&mut self.accumulators) {
            if let (Source::Rows(tuple), Some(accumulator)) = (&function.source, accumulator) {
                let mut values = tuple.values(columns, rows)?;
                if let Some(condition) = tuple.condition(columns) {
                    select(&mut values, condition)?;
                }
                accumulator.update_batch(&values)?;
            }
        }
        Ok(())
    }

    fn update_distinct(
        &mut self,
        functions: &Functions,
        tuple: usize,
        values: &[ArrayRef],
    ) -> Result<()> {
        for (function, accumulator) in functions.list.iter().zip(&mut self.accumulators) {
            let is_own = matches!(function.source, Source::Distinct(source) if source == tuple);
            if let Some(accumulator) = accumulator.as_mut().filter(|_| is_own) {
                accumulator.update_batch(values)?;
            }
        }
        Ok(())
    }

    /// Charges what the states have grown to; the set gives memory up for them.
    fn account_for(&mut self, whole: &Whole) -> Result<()> {
        let sizes = self.accumulators.iter().flatten().map(|a| a.size());
        let bytes = sizes.sum::<usize>() as u64;
        loop {
            match self.memory.try_resize(bytes) {
                Ok(()) => return Ok(()),
                Err(SpaceError::BudgetExceeded { .. })
                    if whole.set.table().shed(bytes - self.memory.bytes()) > 0 => {}
                Err(error) => return Err(space_error(error)),
            }
        }
    }
}

/// The results of all functions, from the states of all tasks.
fn merge(functions: &Functions, parts: &mut [States]) -> Result<Vec<ArrayRef>> {
    (0..functions.list.len())
        .map(|function| {
            let mut fed = parts
                .iter_mut()
                .filter_map(|part| part.accumulators[function].take());
            let mut all = match fed.next() {
                Some(first) => first,
                None => functions.list[function].aggregate.create_accumulator()?,
            };
            for mut other in fed {
                let state = other.state()?;
                let state: Vec<ArrayRef> = state
                    .iter()
                    .map(|value| value.to_array())
                    .collect::<Result<_>>()?;
                all.merge_batch(&state)?;
            }
            all.evaluate()?.to_array()
        })
        .collect()
}
