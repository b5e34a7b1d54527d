//! The queues of all outputs of an exchange, and what holds those back who fill them.
//!
//! Owns: [`Queues`]. Never: knows an input, or reads a page.
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

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use mayfly_space::{Account, AccountOptions, Admission, PageClass};

use super::queue::{Chunk, PAGES_PER_QUEUE, Queue};
use crate::compact::{batch_bytes, compact};
use crate::context::StatementContext;
use crate::error::space_error;
use crate::lock::lock;
use crate::page_classes;

/// Rows that wait in memory take at most this part of the budget ...
const ROWS_PER_MEMORY: u64 = 8;
/// ... and leave this part of it free.
const HEADROOM_PER_MEMORY: u64 = 16;
/// A batch that is gathered from several takes at most this part of an output's share of the rows
/// that wait, or so many bytes.
const GATHERED_PER_SHARE: u64 = 8;
const GATHERED_BYTES_MAX: u64 = 1 << 20;

/// The queues of all outputs.
pub(super) struct Queues {
    outputs: Vec<Mutex<Output>>,
    gate: Mutex<Gate>,
    /// Whether rows of a batch go to several outputs, and are gathered to batches again.
    gathers: bool,
    /// Rows and bytes that are gathered before they are handed on.
    batch_rows: usize,
    gathered_bytes: usize,
    account: Account,
    /// Bytes that were written to disk, as far as somebody has taken note of them.
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
        let coalescer = self.coalescer.get_or_insert_with(|| {
            let row_bytes = bytes / rows.num_rows().max(1) + 1;
            let target = (bytes_max / row_bytes).clamp(1, rows_max);
            BatchCoalescer::new(rows.schema(), target)
        });
        self.bytes += bytes;
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

impl Queues {
    /// Empty queues for the outputs of an exchange; admits what they need at least.
    pub(super) fn new(
        stock: &RepartitionExec,
        context: &TaskContext,
        statement: &StatementContext,
    ) -> Result<Self> {
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
        let (page_class, admission) = admit(&pages, outputs)?;
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
        Ok(Self {
            outputs: (0..outputs).map(|_| output()).collect::<Result<_>>()?,
            gate: Mutex::new(Gate {
                open: outputs,
                hungry: outputs,
                dealers: inputs,
                error: None,
                waiting: Vec::new(),
            }),
            gathers: !matches!(stock.partitioning(), Partitioning::RoundRobinBatch(_)),
            batch_rows: context.session_config().batch_size(),
            gathered_bytes: usize::try_from(gathered_bytes).unwrap_or(usize::MAX),
            account,
            counted_bytes: AtomicU64::new(0),
            _admission: admission,
        })
    }

    /// Hands an output out, once.
    pub(super) fn hand_out(&self, index: usize) -> Result<()> {
        match std::mem::replace(&mut lock(&self.outputs[index]).is_taken, true) {
            true => internal_err!("output {index} of an exchange was asked for before"),
            false => Ok(()),
        }
    }

    /// Waits until an output has no rows; whether there is an output that is read.
    pub(super) fn has_room(&self, context: &Context<'_>) -> Poll<bool> {
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
    pub(super) fn push(&self, index: usize, batch: RecordBatch) -> Result<()> {
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
    pub(super) fn pop(&self, index: usize, context: &Context<'_>) -> Poll<Result<Option<Chunk>>> {
        let mut output = lock(&self.outputs[index]);
        if let Some(error) = &lock(&self.gate).error {
            return Poll::Ready(Err(DataFusionError::Shared(Arc::clone(error))));
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
    pub(super) fn has_read(&self, index: usize) {
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
    pub(super) fn close(&self, index: usize) {
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
    pub(super) fn end_dealer(&self) -> Result<()> {
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

    /// Bytes that all queues wrote to disk since the last call.
    pub(super) fn take_written(&self) -> u64 {
        let bytes = self.account.counters().bytes_written;
        bytes.saturating_sub(self.counted_bytes.fetch_max(bytes, Ordering::Relaxed))
    }

    /// Ends all outputs with an error.
    pub(super) fn fail(&self, error: DataFusionError) {
        let mut gate = lock(&self.gate);
        gate.error.get_or_insert(Arc::new(error));
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

/// The pages that an output's share of the budget can afford, and the admission of as many as the
/// queues cannot do without: smaller ones where memory is short.
fn admit(account: &Account, outputs: usize) -> Result<(PageClass, Admission)> {
    let space = account.space();
    let (memory_bytes, default_class) = (space.memory_bytes(), space.default_page_class());
    for class in page_classes::affordable(memory_bytes, default_class, outputs) {
        let bytes = (outputs * PAGES_PER_QUEUE * class.bytes()) as u64;
        if page_classes::is_crowded(&space, bytes) && class != PageClass::K4 {
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
