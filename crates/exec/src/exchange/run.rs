//! One execution of an exchange: tasks that fill queues, and streams that empty them.
//!
//! Owns: [`Run`]. Never: knows where a row belongs, which DataFusion's partitioner says, or who
//! waits for whom, which the queues know.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder,
};
use datafusion::physical_plan::repartition::{BatchPartitioner, RepartitionExec};
use futures::{Stream, TryStreamExt};
use mayfly_table::Drain;
use mayfly_table::rows::StopFlag;

use super::queue::Chunk;
use super::queues::Queues;
use crate::context::StatementContext;
use crate::error::{rows_error, table_error};
use crate::lock::lock;
use crate::time_slice::TimeSlice;

/// What all outputs of one execution share.
pub(super) struct Run {
    /// Those who fill the queues, before the first output asks for rows.
    waiting: Mutex<Vec<Dealer>>,
    /// Dropped with the last output, which ends them.
    tasks: Mutex<Vec<SpawnedTask<()>>>,
    queues: Arc<Queues>,
    stop: StopFlag,
}

/// Fills queues from one input.
struct Dealer {
    input: SendableRecordBatchStream,
    partitioner: BatchPartitioner,
}

/// Begins an execution: inputs are executed, and minima admitted.
pub(super) fn begin(
    stock: &RepartitionExec,
    metrics: &ExecutionPlanMetricsSet,
    context: &Arc<TaskContext>,
) -> Result<Arc<Run>> {
    let statement = StatementContext::of(context)?;
    let queues = Queues::new(stock, context, &statement)?;
    let inputs = stock.input().output_partitioning().partition_count();
    let dealer = |input: usize| -> Result<Dealer> {
        let time = MetricBuilder::new(metrics).subset_time("repartition_time", input);
        let partitioning = stock.partitioning().clone();
        Ok(Dealer {
            input: stock.input().execute(input, Arc::clone(context))?,
            partitioner: BatchPartitioner::try_new(partitioning, time, input, inputs)?,
        })
    };
    Ok(Arc::new(Run {
        waiting: Mutex::new((0..inputs).map(dealer).collect::<Result<_>>()?),
        tasks: Mutex::default(),
        queues: Arc::new(queues),
        stop: statement.stop.clone(),
    }))
}

/// The rows of an output.
pub(super) fn output(
    run: Arc<Run>,
    index: usize,
    baseline: BaselineMetrics,
    written: Count,
) -> Result<impl Stream<Item = Result<RecordBatch>> + Send> {
    run.queues.hand_out(index)?;
    let mut taker = Taker {
        run,
        index,
        pages: None,
        has_ended: false,
        written,
    };
    Ok(futures::stream::poll_fn(move |context| {
        let next = match taker.has_ended {
            true => Poll::Ready(None),
            false => taker.next(context),
        };
        taker.has_ended = matches!(next, Poll::Ready(None | Some(Err(_))));
        baseline.record_poll(next)
    }))
}

/// Empties the queue of one output; dropping it closes that.
struct Taker {
    run: Arc<Run>,
    index: usize,
    pages: Option<Drain>,
    has_ended: bool,
    written: Count,
}

impl Taker {
    /// Adds to the metrics what all queues wrote since the last call.
    fn count_written(&self) {
        let bytes = self.run.queues.take_written();
        self.written
            .add(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    fn next(&mut self, context: &Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        self.run.start();
        loop {
            if let Some(pages) = &mut self.pages {
                match pages.next_copied() {
                    Some(batch) => return Poll::Ready(Some(batch.map_err(table_error))),
                    None => {
                        self.pages = None;
                        self.run.queues.has_read(self.index);
                    }
                }
            }
            match self.run.queues.pop(self.index, context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Some(Chunk::Batch(batch)))) => return Poll::Ready(Some(Ok(batch))),
                Poll::Ready(Ok(Some(Chunk::Pages(run)))) => match run.drain() {
                    Ok(pages) => self.pages = Some(pages),
                    Err(error) => return Poll::Ready(Some(Err(table_error(error)))),
                },
                Poll::Ready(Ok(None)) => {
                    self.count_written();
                    return Poll::Ready(None);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        self.pages = None;
        self.count_written();
        self.run.queues.close(self.index);
    }
}

impl Run {
    /// Begins to fill the queues, once.
    fn start(&self) {
        let dealers = std::mem::take(&mut *lock(&self.waiting));
        if dealers.is_empty() {
            return;
        }
        let start = |dealer: Dealer| {
            let dealing = Dealing {
                queues: Arc::clone(&self.queues),
                stop: self.stop.clone(),
                has_ended: false,
            };
            SpawnedTask::spawn(dealing.run(dealer))
        };
        lock(&self.tasks).extend(dealers.into_iter().map(start));
    }
}

/// Tells the outputs how a task ended, even if that panicked.
struct Dealing {
    queues: Arc<Queues>,
    stop: StopFlag,
    has_ended: bool,
}

impl Dealing {
    async fn run(mut self, dealer: Dealer) {
        let dealt = self.deal(dealer).await;
        let ended = dealt.and_then(|()| self.queues.end_dealer());
        if let Err(error) = ended {
            self.queues.fail(error);
        }
        self.has_ended = true;
    }

    /// Deals out all rows of an input, or as many as somebody reads.
    async fn deal(&self, dealer: Dealer) -> Result<()> {
        let Dealer {
            mut input,
            mut partitioner,
        } = dealer;
        let mut slice = TimeSlice::begin();
        while let Some(batch) = input.try_next().await? {
            if batch.num_rows() > 0 {
                partitioner.partition(batch, |index, part| self.queues.push(index, part))?;
            }
            let is_read = std::future::poll_fn(|context| self.queues.has_room(context)).await;
            if !is_read {
                return Ok(());
            }
            slice.share().await;
        }
        Ok(())
    }
}

impl Drop for Dealing {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        // A statement that is stopped ends its tasks in any order.
        let error = match self.stop.check() {
            Err(stopped) => rows_error(stopped),
            Ok(()) => exec_datafusion_err!("a task of an exchange ended early"),
        };
        self.queues.fail(error);
    }
}
