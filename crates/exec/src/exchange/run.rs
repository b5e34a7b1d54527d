//! One execution of an exchange: tasks that fill queues, and streams that empty them.
//!
//! Owns: [`Run`]. Never: knows where a row belongs; DataFusion's partitioner says so.
//!
//! **Who waits.** Tasks that fill queues wait while every output that is still read has rows that
//! it has not taken. While one has none they go on, however many rows the others have: whoever
//! reads may need that one first. So a queue has no bound, but only a part of its rows is in
//! memory.
//!
//! **Locks**: an output's, then the gate's. Pages are written under an output's lock, and read
//! under none.
//!
//! Source of the gate: `DistributorChannels` of DataFusion's exchange. Cost: two short locks for
//! each batch and output.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder,
};
use datafusion::physical_plan::repartition::{BatchPartitioner, RepartitionExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use futures::{Stream, TryStreamExt};
use mayfly_space::{Account, AccountOptions, Admission, PageClass};
use mayfly_table::Drain;
use mayfly_table::rows::StopFlag;

use super::queue::{Chunk, PAGES_PER_QUEUE, Queue};
use crate::compact::{batch_bytes, compact};
use crate::context::StatementContext;
use crate::error::{rows_error, space_error, table_error};
use crate::time_slice::TimeSlice;

/// Rows that wait in memory take at most this part of the budget ...
const ROWS_PER_MEMORY: u64 = 8;
/// ... and leave this part of it free.
const HEADROOM_PER_MEMORY: u64 = 16;
/// A batch that is gathered from several takes at most this part of an output's share of the rows
/// that wait, or so many bytes.
const GATHERED_PER_SHARE: u64 = 8;
const GATHERED_BYTES_MAX: u64 = 1 << 20;
/// A page is at most this part of an output's share of the budget, and at most that large.
const PAGES_PER_SHARE: u64 = 256;
const PAGE_CLASS_MAX: PageClass = PageClass::K256;

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic of another thread left behind is not read: `Dealing` ends the run then.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all outputs of one execution share.
pub(super) struct Run {
    /// Those who fill the queues, before the first output asks for rows.
    waiting: Mutex<Vec<Dealer>>,
    /// Dropped with the last output, which ends them.
    tasks: Mutex<Vec<SpawnedTask<()>>>,
    queues: Arc<Queues>,
}

/// The queues of all outputs.
struct Queues {
    outputs: Vec<Mutex<Output>>,
    gate: Mutex<Gate>,
    has_failed: AtomicBool,
    stop: StopFlag,
    /// Whether rows of a batch go to several outputs, and are gathered to batches again.
    gathers: bool,
    /// Rows and bytes that are gathered before they are handed on.
    batch_rows: usize,
    gathered_bytes: usize,
    account: Account,
    /// Bytes that were written to disk, as far as they are in the metrics.
    counted_bytes: AtomicU64,
    // Goes last.
    _admission: Admission,
}

struct Output {
    queue: Queue,
    gathered: Gathered,
    /// Whether it was handed out.
    is_taken: bool,
    /// Whether pages of the queue are being read outside of it.
    is_reading: bool,
    is_open: bool,
    reader: Option<Waker>,
}

/// Rows that are to become a batch.
#[derive(Default)]
struct Gathered {
    /// None before there are rows.
    coalescer: Option<BatchCoalescer>,
    bytes: usize,
}

impl Gathered {
    /// Adds rows. A batch is handed on when it has `rows_max` rows or about `bytes_max` bytes;
    /// memory for one is taken at its first row.
    fn push(&mut self, rows: RecordBatch, rows_max: usize, bytes_max: usize) -> Result<()> {
        let bytes = batch_bytes(&rows);
        if self.coalescer.is_none() {
            let row_bytes = bytes / rows.num_rows().max(1) + 1;
            let target = (bytes_max / row_bytes).clamp(1, rows_max);
            self.coalescer = Some(BatchCoalescer::new(rows.schema(), target));
        }
        self.bytes += bytes;
        let Some(coalescer) = &mut self.coalescer else {
            return Ok(());
        };
        coalescer.push_batch(rows)?;
        if coalescer.has_completed_batch() {
            self.bytes = 0;
        } else if self.bytes > 2 * bytes_max {
            // These are longer than the first ones.
            return self.finish();
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.bytes = 0;
        match &mut self.coalescer {
            Some(coalescer) => Ok(coalescer.finish_buffered_batch()?),
            None => Ok(()),
        }
    }

    fn pop(&mut self) -> Option<RecordBatch> {
        self.coalescer.as_mut()?.next_completed_batch()
    }
}

impl Output {
    fn has_rows(&self) -> bool {
        self.is_reading || !self.queue.is_empty()
    }
}

/// What holds tasks back.
struct Gate {
    /// Outputs that are read.
    open: usize,
    /// Those of them that have no rows.
    hungry: usize,
    /// Inputs that have more rows.
    dealers: usize,
    error: Option<Arc<DataFusionError>>,
    waiting: Vec<Waker>,
}

impl Gate {
    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
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
    let account = statement
        .account
        .child("exchange", AccountOptions::default());
    let memory_bytes = account.space().memory_bytes();
    let outputs = stock.partitioning().partition_count();
    let rows = account.child(
        "waiting rows",
        AccountOptions {
            claim_max_bytes: Some(memory_bytes / ROWS_PER_MEMORY),
            headroom_bytes: memory_bytes / HEADROOM_PER_MEMORY,
            ..AccountOptions::default()
        },
    );
    let takes = AccountOptions {
        takes_memory: true,
        ..AccountOptions::default()
    };
    let pages = account.child("pages", takes);
    let (page_class, admission) = admit(&pages, outputs as u64)?;
    let output = || -> Result<Mutex<Output>> {
        let schema = stock.schema();
        Ok(Mutex::new(Output {
            gathered: Gathered::default(),
            is_taken: false,
            queue: Queue::new([&rows, &pages], schema, page_class)?,
            is_reading: false,
            is_open: true,
            reader: None,
        }))
    };
    let inputs = stock.input().output_partitioning().partition_count();
    let share_bytes = memory_bytes / ROWS_PER_MEMORY / outputs as u64;
    let gathered_bytes = (share_bytes / GATHERED_PER_SHARE).min(GATHERED_BYTES_MAX);
    let queues = Queues {
        outputs: (0..outputs).map(|_| output()).collect::<Result<_>>()?,
        gate: Mutex::new(Gate {
            open: outputs,
            hungry: outputs,
            dealers: inputs,
            error: None,
            waiting: Vec::new(),
        }),
        has_failed: AtomicBool::new(false),
        gathers: !matches!(stock.partitioning(), Partitioning::RoundRobinBatch(_)),
        batch_rows: context.session_config().batch_size(),
        gathered_bytes: usize::try_from(gathered_bytes).unwrap_or(usize::MAX),
        stop: statement.stop.clone(),
        account,
        counted_bytes: AtomicU64::new(0),
        _admission: admission,
    };
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
    }))
}

/// The pages that an output's share of the budget can afford, and the admission of as many as the
/// queues cannot do without: smaller ones where memory is short.
fn admit(account: &Account, outputs: u64) -> Result<(PageClass, Admission)> {
    let space = account.space();
    let largest = space.memory_bytes() / outputs / PAGES_PER_SHARE;
    let usual = space.default_page_class().min(PageClass::K16);
    let affordable = PageClass::ALL.into_iter().rev().filter(|class| {
        *class <= PAGE_CLASS_MAX && (*class <= usual || class.bytes() as u64 <= largest)
    });
    for class in affordable {
        let bytes = outputs * PAGES_PER_QUEUE * class.bytes() as u64;
        // The second half of the budget is for those that do with less.
        let is_crowded = space.memory_claimed_bytes() + bytes > space.memory_bytes() / 2;
        if is_crowded && class != PageClass::K4 {
            continue;
        }
        // Others give memory up for the least only.
        let admission = match class {
            PageClass::K4 => account.admit(bytes).map_err(space_error)?,
            _ => match account.admit_within_limits(bytes) {
                Ok(admission) => admission,
                Err(_) => continue,
            },
        };
        return Ok((class, admission));
    }
    unreachable!("the smallest class is always affordable")
}

/// The rows of an output.
pub(super) fn output(
    run: Arc<Run>,
    index: usize,
    baseline: BaselineMetrics,
    written: Count,
) -> Result<impl Stream<Item = Result<RecordBatch>> + Send> {
    if std::mem::replace(&mut lock(&run.queues.outputs[index]).is_taken, true) {
        return internal_err!("output {index} of an exchange was asked for before");
    }
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
                    self.run.queues.count_written(&self.written);
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
        self.run.queues.count_written(&self.written);
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
                has_ended: false,
            };
            SpawnedTask::spawn(dealing.deal(dealer))
        };
        lock(&self.tasks).extend(dealers.into_iter().map(start));
    }
}

/// Tells the outputs how a task ended, even if that panicked.
struct Dealing {
    queues: Arc<Queues>,
    has_ended: bool,
}

impl Dealing {
    async fn deal(mut self, dealer: Dealer) {
        let dealt = self.queues.deal(dealer).await;
        let ended = dealt.and_then(|()| self.queues.end_dealer());
        if let Err(error) = ended {
            self.queues.fail(error);
        }
        self.has_ended = true;
    }
}

impl Drop for Dealing {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        // A statement that is stopped ends its tasks in any order.
        let error = match self.queues.stop.check() {
            Err(stopped) => rows_error(stopped),
            Ok(()) => exec_datafusion_err!("a task of an exchange ended early"),
        };
        self.queues.fail(error);
    }
}

impl Queues {
    /// Deals out all rows of an input, or as many as somebody reads.
    async fn deal(&self, dealer: Dealer) -> Result<()> {
        let Dealer {
            mut input,
            mut partitioner,
        } = dealer;
        let mut slice = TimeSlice::begin();
        while let Some(batch) = input.try_next().await? {
            if batch.num_rows() > 0 {
                partitioner.partition(batch, |index, part| self.push(index, part))?;
            }
            let is_read = std::future::poll_fn(|context| self.has_room(context)).await;
            if !is_read {
                return Ok(());
            }
            slice.share().await;
        }
        Ok(())
    }

    /// Waits until an output has no rows; whether there is an output that is read.
    fn has_room(&self, context: &Context<'_>) -> Poll<bool> {
        let mut gate = lock(&self.gate);
        if gate.open == 0 || gate.error.is_some() {
            Poll::Ready(false)
        } else if gate.hungry > 0 {
            Poll::Ready(true)
        } else {
            gate.waiting.push(context.waker().clone());
            Poll::Pending
        }
    }

    /// Adds rows to an output.
    fn push(&self, index: usize, batch: RecordBatch) -> Result<()> {
        let mut output = lock(&self.outputs[index]);
        if !output.is_open {
            return Ok(());
        }
        if !self.gathers {
            return self.enqueue(&mut output, batch);
        }
        let (rows_max, bytes_max) = (self.batch_rows, self.gathered_bytes);
        output.gathered.push(batch, rows_max, bytes_max)?;
        self.enqueue_gathered(&mut output)
    }

    fn enqueue_gathered(&self, output: &mut Output) -> Result<()> {
        while let Some(batch) = output.gathered.pop() {
            self.enqueue(output, batch)?;
        }
        Ok(())
    }

    fn enqueue(&self, output: &mut Output, batch: RecordBatch) -> Result<()> {
        let had_rows = output.has_rows();
        output.queue.push(compact(batch)?)?;
        if !had_rows {
            lock(&self.gate).hungry -= 1;
            if let Some(reader) = output.reader.take() {
                reader.wake();
            }
        }
        Ok(())
    }

    /// What an output is to read next; `None` at the end.
    fn pop(&self, index: usize, context: &Context<'_>) -> Poll<Result<Option<Chunk>>> {
        let mut output = lock(&self.outputs[index]);
        if self.has_failed.load(Ordering::Acquire) {
            let error = lock(&self.gate).error.as_ref().map(Arc::clone);
            return Poll::Ready(match error {
                Some(error) => Err(DataFusionError::Shared(error)),
                None => Ok(None),
            });
        }
        match output.queue.pop() {
            Some(chunk) => {
                output.is_reading = matches!(chunk, Chunk::Pages(_));
                self.has_taken(&output);
                Poll::Ready(Ok(Some(chunk)))
            }
            None if lock(&self.gate).dealers == 0 => Poll::Ready(Ok(None)),
            None => {
                output.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The pages of an output that were read outside of its queue are read.
    fn has_read(&self, index: usize) {
        let mut output = lock(&self.outputs[index]);
        output.is_reading = false;
        self.has_taken(&output);
    }

    fn has_taken(&self, output: &Output) {
        if !output.has_rows() {
            let mut gate = lock(&self.gate);
            gate.hungry += 1;
            gate.wake();
        }
    }

    /// Nobody reads an output any more.
    fn close(&self, index: usize) {
        let mut output = lock(&self.outputs[index]);
        let had_rows = output.has_rows();
        output.is_open = false;
        output.is_reading = false;
        output.queue.clear();
        output.gathered = Gathered::default();
        output.reader = None;
        let mut gate = lock(&self.gate);
        gate.open -= 1;
        gate.hungry -= usize::from(!had_rows);
        gate.wake();
    }

    /// An input has no more rows; what is gathered goes to the outputs with the last one.
    fn end_dealer(&self) -> Result<()> {
        let mut gate = lock(&self.gate);
        let is_last = gate.dealers == 1;
        gate.dealers -= usize::from(!is_last);
        drop(gate);
        if !is_last {
            return Ok(());
        }
        for output in &self.outputs {
            let mut output = lock(output);
            output.gathered.finish()?;
            self.enqueue_gathered(&mut output)?;
        }
        lock(&self.gate).dealers = 0;
        self.wake_readers();
        Ok(())
    }

    /// Adds what all queues wrote since the last call.
    fn count_written(&self, written: &Count) {
        let bytes = self.account.counters().bytes_written;
        let before = self.counted_bytes.fetch_max(bytes, Ordering::Relaxed);
        let more = bytes.saturating_sub(before);
        written.add(usize::try_from(more).unwrap_or(usize::MAX));
    }

    fn fail(&self, error: DataFusionError) {
        let mut gate = lock(&self.gate);
        gate.error.get_or_insert(Arc::new(error));
        self.has_failed.store(true, Ordering::Release);
        gate.wake();
        drop(gate);
        self.wake_readers();
    }

    fn wake_readers(&self) {
        for output in &self.outputs {
            if let Some(reader) = lock(output).reader.take() {
                reader.wake();
            }
        }
    }
}
